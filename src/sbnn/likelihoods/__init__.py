"""Likelihoods: how observations scatter around the predictions of a model.

Subclass `Likelihood` to add one. Imports `_core`, `priors` and `scores`. Workers load this folder,
so nothing here imports JAX before it is needed.
"""

from typing import Any

import numpy as np

from sbnn._core.arrays import namespace
from sbnn.likelihoods.base import Likelihood
from sbnn.likelihoods.gaussian import Gaussian
from sbnn.likelihoods.student_t import StudentT, VaryingStudentT
from sbnn.likelihoods.varying import VaryingGaussian

__all__ = [
    "Gaussian",
    "Likelihood",
    "StudentT",
    "VaryingGaussian",
    "VaryingStudentT",
    "from_description",
    "is_known",
    "namespace",
    "noise_std",
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


def noise_std(
    likelihood: Likelihood,
    weights: np.ndarray,
    f: np.ndarray,
    variance: np.ndarray,
    theta: np.ndarray,
) -> np.ndarray:
    """Standard deviation of the noise alone, averaged over the distribution of the outputs.

    Parameters are those of `Likelihood.predictive`. The square of the predictive standard deviation
    is the sum of its square and that of the centre.
    """
    centre = np.zeros(f.shape[-1])
    centre[0] = 1.0
    silent = np.where(centre > 0, 0.0, variance)
    return likelihood.predictive(weights, np.where(centre > 0, 0.0, f), silent, theta).std()


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
