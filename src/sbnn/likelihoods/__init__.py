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
    "namespace",
    "resolve",
]


def resolve(noise: str | Likelihood) -> Likelihood:
    """The likelihood that `noise` names, or `noise` itself if it is one."""
    if isinstance(noise, Likelihood):
        return noise
    if noise == "constant":
        return Gaussian()
    raise ValueError(
        f"`noise` must be 'constant' or an instance of sbnn.likelihoods.Likelihood; got {noise!r}."
    )


def from_description(description: dict[str, Any]) -> Likelihood:
    """The inverse of `Likelihood.describe`, for the likelihoods of this package."""
    known = {c.__name__: c for c in (Gaussian, StudentT, VaryingGaussian, VaryingStudentT)}
    kind = description["kind"]
    if kind not in known:
        raise ValueError(f"a likelihood of kind {kind!r} is not part of sbnn and is not stored")
    return known[kind]()
