"""Likelihoods: how observations scatter around the predictions of a model.

Subclass `Likelihood` to add one. Imports `_core`, `priors` and `scores`. Workers load this folder,
so nothing here imports JAX before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sbnn._core.arrays import namespace
from sbnn.likelihoods.base import Likelihood
from sbnn.likelihoods.gaussian import Gaussian
from sbnn.likelihoods.student_t import StudentT, VaryingStudentT
from sbnn.likelihoods.varying import VaryingGaussian

if TYPE_CHECKING:
    from sbnn.scores import Predictive

__all__ = [
    "Gaussian",
    "Likelihood",
    "StudentT",
    "VaryingGaussian",
    "VaryingStudentT",
    "from_description",
    "half_width",
    "is_known",
    "namespace",
    "noise_distribution",
    "resolve",
]


# Values of `noise=`.
NAMES: dict[str, type[Likelihood]] = {
    "constant": Gaussian,
    "varying": VaryingGaussian,
    "student_t": StudentT,
    "varying_student_t": VaryingStudentT,
}


# Kinds of noise between which "auto" chooses, from simple to flexible. Varying Gaussian noise is a
# special case of the last. On its own, it calls a row impossible that its level does not foresee.
CANDIDATES = ("constant", "student_t", "varying_student_t")


def resolve(noise: str | Likelihood) -> Likelihood:
    """The likelihood named by `noise`, or `noise` itself if it is a likelihood.

    Parameters
    ----------
    noise : {"constant", "varying", "student_t", "varying_student_t"} or Likelihood

    Returns
    -------
    Likelihood

    Raises
    ------
    ValueError
        If `noise` is neither.

    Examples
    --------
    >>> from sbnn.likelihoods import resolve
    >>> resolve("student_t")
    StudentT()
    """
    if isinstance(noise, Likelihood):
        return noise
    if noise in NAMES:
        return NAMES[noise]()
    if noise == "auto":
        raise ValueError(
            "noise='auto' chooses for networks only: sbnn.network_problem and SparseBNNRegressor. "
            f"Name one of {', '.join(map(repr, NAMES))}."
        )
    raise ValueError(
        f"`noise` must be one of {', '.join(map(repr, NAMES))}, or an instance of "
        f"sbnn.likelihoods.Likelihood; got {noise!r}."
    )


def noise_distribution(
    likelihood: Likelihood,
    weights: np.ndarray,
    f: np.ndarray,
    variance: np.ndarray,
    theta: np.ndarray,
) -> Predictive:
    """Distribution of the noise alone, averaged over the distribution of the outputs.

    Parameters are those of `Likelihood.predictive`. The square of the predictive standard deviation
    is the sum of the square of that of the noise and of that of the centre.
    """
    centre = np.zeros(f.shape[-1])
    centre[0] = 1.0
    silent = np.where(centre > 0, 0.0, variance)
    return likelihood.predictive(weights, np.where(centre > 0, 0.0, f), silent, theta)


def half_width(noise: Predictive) -> np.ndarray:
    """Half the width of the central interval that a normal distribution has between −σ and σ.

    It holds 68.3 % of the noise, and is its standard deviation if the noise is Gaussian. The
    standard deviation of heavy tails is far larger than most of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.likelihoods import StudentT, half_width, noise_distribution
    >>> f, nu_3 = np.zeros((1, 1, 1)), np.zeros((1, 1, 2))
    >>> noise = noise_distribution(StudentT(), np.ones((1, 1)), f, f, nu_3)
    >>> noise.std().round(2).tolist(), half_width(noise).round(2).tolist()
    ([1.73], [1.2])
    """
    low, high = noise.quantiles((0.15865525393145707, 0.8413447460685429))  # Φ(−1) and Φ(1)
    return 0.5 * (high - low)


def is_known(description: dict[str, Any]) -> bool:
    """Whether `from_description` can rebuild a likelihood; custom likelihoods are not stored.

    Examples
    --------
    >>> from sbnn.likelihoods import Gaussian, is_known
    >>> is_known(Gaussian().describe())
    True
    """
    return description["kind"] in {likelihood.__name__ for likelihood in NAMES.values()}


def from_description(description: dict[str, Any]) -> Likelihood:
    """Inverse of `Likelihood.describe`, for the likelihoods in this package.

    Examples
    --------
    >>> from sbnn.likelihoods import StudentT, from_description
    >>> from_description(StudentT().describe())
    StudentT()
    """
    for likelihood in NAMES.values():
        if likelihood.__name__ == description["kind"]:
            return likelihood(**{k: v for k, v in description.items() if k != "kind"})
    raise ValueError(f"a likelihood of kind {description['kind']!r} is not part of sbnn")
