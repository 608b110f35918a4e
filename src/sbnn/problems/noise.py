"""Noise parameters: known standard deviations, and the names and priors of inferred ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sbnn._core.arrays import NotRealError, as_real
from sbnn.likelihoods import Gaussian, Likelihood
from sbnn.priors import KnownPrior


def check_noise_std(
    noise_std: Any, shape: tuple[int, ...], per_observation: bool = True
) -> np.ndarray:
    """Check known standard deviations and return them as an array.

    Parameters
    ----------
    noise_std : float or array
        One number, one per target, or one per observation.
    shape : tuple of int
        Shape of y: (n,) or (n, n_targets).

    Returns
    -------
    ndarray
        Broadcasts to `shape`.

    Raises
    ------
    ValueError
        If `noise_std` is not numeric, finite and positive, or does not broadcast to `shape`.
    """
    try:
        sigma = as_real("`noise_std`", noise_std)
    except NotRealError:
        shown = repr(noise_std) if np.ndim(noise_std) == 0 else "text or gaps in it"
        raise ValueError(f"`noise_std` must be numeric; got {shown}.") from None
    one_target = len(shape) == 2 and shape[1] == 1
    if one_target and sigma.shape == (shape[0],) and sigma.size > 1:
        sigma = sigma[:, None]
    try:
        np.broadcast_to(sigma, shape)
    except ValueError:
        allowed = "one number, one per output (the last axis of y) or one per observation"
        if not per_observation:
            allowed = f"one number or one per output ({shape[-1]})"
        of_y = f" for y of shape {shape}" if per_observation else ""
        raise ValueError(f"`noise_std` must be {allowed}; got shape {sigma.shape}{of_y}.") from None
    if not (np.isfinite(sigma).all() and (sigma > 0).all()):
        wrong = sigma[~(np.isfinite(sigma) & (sigma > 0))].flat[0]
        where = ""
        if sigma.size > 1:
            row = np.argwhere(~(np.isfinite(sigma) & (sigma > 0)))[0]
            where = f" in row {row[0]} (counted from 0)" if len(sigma) == shape[0] else ""
        raise ValueError(f"`noise_std` must be finite and above zero; got {wrong:g}{where}.")
    return sigma


def require_gaussian(likelihood: Likelihood) -> None:
    """Raise ValueError unless the noise is Gaussian, the only kind that takes `noise_std`."""
    if likelihood != Gaussian():
        raise ValueError(
            "`noise_std` gives the standard deviation of Gaussian noise; leave it out, or use "
            f"noise='constant', not {type(likelihood).__name__}."
        )


def noise_names(likelihood: Likelihood, n_targets: int) -> list[str]:
    """Names of the likelihood's parameters, target by target: ``log_sigma`` or ``log_sigma[2]``."""
    if n_targets == 1:
        return list(likelihood.parameters)
    return [f"{name}[{k}]" for k in range(1, n_targets + 1) for name in likelihood.parameters]


def noise_priors(
    likelihood: Likelihood,
    y: np.ndarray,
    priors: Mapping[str, KnownPrior],
    noise_prior: KnownPrior | None,
    taken: Sequence[str] = (),
) -> tuple[list[str], dict[str, KnownPrior]]:
    """Names of the inferred noise parameters, and `priors` completed with theirs.

    Parameters
    ----------
    likelihood : Likelihood
    y : ndarray, shape (n, n_targets)
    priors : mapping
        Known priors by name or group.
    noise_prior : prior, optional
        Replaces the default prior of the first parameter of every target.
    taken : sequence of str
        Names of the model's own parameters.

    Returns
    -------
    names : list of str
    priors : dict

    Raises
    ------
    ValueError
        If a name in `taken` is also the name of a noise parameter.
    """
    names = noise_names(likelihood, y.shape[1])
    if clash := sorted(set(names) & set(taken)):
        raise ValueError(
            f"{clash[0]!r} is the name of the inferred noise; rename your parameter or give "
            "`noise_std`."
        )
    out = dict(priors)
    for k, column in enumerate(y.T):
        own = names[k * len(likelihood.parameters) : (k + 1) * len(likelihood.parameters)]
        for j, name in enumerate(own):
            if any(name == key or name.startswith(f"{key}[") for key in priors):
                continue
            if noise_prior is not None and j == 0:
                out[name] = noise_prior
            else:
                out[name] = likelihood.priors(column)[j]
    return names, out
