"""Noise of `SparseBNNRegressor`: the kinds it chooses between, known errors, and the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnn._core.messages import Message
from sbnn.likelihoods import CANDIDATES, NAMES, Likelihood, resolve
from sbnn.problems.noise import check_noise_std, require_gaussian

AUTO = "auto"
WORDS = {
    "constant": "constant Gaussian noise",
    "student_t": "constant Student-t noise",
    "varying": "varying Gaussian noise",
    "varying_student_t": "varying Student-t noise",
}


@dataclass(frozen=True)
class NoiseRequested(Message, code="noise_requested"):
    """The user named the noise model."""

    def __str__(self) -> str:
        return "requested"


@dataclass(frozen=True)
class NoiseKnown(Message, code="noise_known"):
    """The standard deviation of the noise is known."""

    def __str__(self) -> str:
        return "its standard deviation is known"


@dataclass(frozen=True)
class NoiseChosen(Message, code="noise_chosen"):
    """noise="auto" compared the kinds of noise by their evidence.

    `gain` is the log evidence above that of constant Gaussian noise in the comparison.
    """

    noise: str
    gain: float

    def __str__(self) -> str:
        if self.noise == "constant":
            return "no other kind of noise had clearly more evidence"
        return (
            f"log evidence {self.gain:.1f} nat above that of constant Gaussian noise, compared "
            "early in the fit and before pruning"
        )


@dataclass(frozen=True)
class NoiseNotCompared(Message, code="noise_not_compared"):
    """The fit ended before kinds of noise were compared."""

    def __str__(self) -> str:
        return "kinds of noise were not compared, because the fit ended before"


FEW_ROWS = 30  # below, the level of the noise cannot be told from that of the function


def likelihoods(noise: Any, known: bool, n_rows: float) -> dict[str, Likelihood]:
    """The noise models to choose between, by name; one if there is no choice.

    Parameters
    ----------
    noise : str or Likelihood
        See `SparseBNNRegressor`.
    known : bool
        Whether the standard deviation is known.
    n_rows : float
        Repetitions included.

    Returns
    -------
    dict of Likelihood

    Raises
    ------
    ValueError
        If `noise` is none of the names and no likelihood, or contradicts `known`.
    """
    if isinstance(noise, str) and noise == AUTO:
        names = CANDIDATES[: 1 if known else 2 if n_rows < FEW_ROWS else None]
        return {name: NAMES[name]() for name in names}
    if isinstance(noise, str) and noise not in NAMES:
        raise ValueError(
            f"`noise` must be one of {', '.join(map(repr, (AUTO, *NAMES)))}, or an instance of "
            f"sbnn.likelihoods.Likelihood; got {noise!r}."
        )
    likelihood = resolve(noise)
    if known:
        require_gaussian(likelihood)
    return {name_of(likelihood): likelihood}


def name_of(likelihood: Likelihood) -> str:
    """The name of a likelihood in `noise=`, or that of its class."""
    kinds = {kind: name for name, kind in NAMES.items()}
    return kinds.get(type(likelihood), type(likelihood).__name__)


def known_noise(
    of_outputs: Any, of_rows: Any, shape: tuple[int, int], flat: bool
) -> np.ndarray | None:
    """Known standard deviations, shape (n_outputs,) or (n_rows, n_outputs); None if inferred.

    Parameters
    ----------
    of_outputs : float, sequence or None
        `noise_std` of the estimator.
    of_rows : array_like or None
        `noise_std` of `fit`, one per row (and output).
    shape : tuple of int
        (n_rows, n_outputs).
    flat : bool
        Whether y has one axis.

    Returns
    -------
    ndarray or None

    Raises
    ------
    ValueError
        If both are given, or one is not positive or of the wrong shape.
    """
    if of_rows is None:
        if of_outputs is None:
            return None
        found = check_noise_std(of_outputs, shape[1:], per_observation=False)
        return np.broadcast_to(found, shape[1:])
    if of_outputs is not None:
        raise ValueError("Give `noise_std` to the estimator or to `fit`, not to both.")
    found = np.asarray(of_rows)
    expected = shape[:1] if flat else shape
    if found.shape not in (expected, shape, (shape[0], 1)):
        raise ValueError(
            f"`noise_std` must have one number per row, shape {expected}; got shape {found.shape}."
        )
    return np.broadcast_to(check_noise_std(found.reshape(shape[0], -1), shape), shape)


def reason(noise: Any, known: bool, chosen: str, trials: Mapping[str, float]) -> Message:
    """Why the noise model `chosen` was used, after trials with log evidences by name."""
    if known:
        return NoiseKnown()
    if not isinstance(noise, str) or noise != AUTO:
        return NoiseRequested()
    if len(trials) == 1:
        return NoiseNotCompared()
    return NoiseChosen(chosen, trials.get(chosen, 0.0) - trials.get("constant", 0.0))
