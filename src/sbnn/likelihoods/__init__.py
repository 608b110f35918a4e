"""Likelihoods: how observations scatter around the predictions of a model.

`Likelihood` is the seam: subclass it to add one. Imports `_core`, `priors` and `scores`; workers
load it, so nothing here imports JAX before it is needed.
"""

from typing import Any

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
    "resolve",
]


# The likelihoods of the package by the name that `noise=` takes.
NAMES: dict[str, type[Likelihood]] = {
    "constant": Gaussian,
    "varying": VaryingGaussian,
    "student_t": StudentT,
    "varying_student_t": VaryingStudentT,
}


def resolve(noise: str | Likelihood) -> Likelihood:
    """The likelihood that `noise` names, or `noise` itself if it is one.

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
    raise ValueError(
        f"`noise` must be one of {', '.join(map(repr, NAMES))}, or an instance of "
        f"sbnn.likelihoods.Likelihood; got {noise!r}."
    )


def is_known(description: dict[str, Any]) -> bool:
    """Whether `from_description` can rebuild a likelihood; one of your own is not stored."""
    return description["kind"] in {likelihood.__name__ for likelihood in NAMES.values()}


def from_description(description: dict[str, Any]) -> Likelihood:
    """The inverse of `Likelihood.describe`, for the likelihoods of this package."""
    for likelihood in NAMES.values():
        if likelihood.__name__ == description["kind"]:
            return likelihood()
    raise ValueError(f"a likelihood of kind {description['kind']!r} is not part of sbnn")
