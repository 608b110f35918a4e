"""Sparse Bayesian neural networks by nonlinear sparse Bayesian learning, verified.

The names below are the public ones; each is imported when it is first used, so that importing
the package, or asking for its version, is quick.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_PUBLIC = {
    "load": "sbnn.loading",
    "standard": "sbnn.methods",
    "nsbl": "sbnn.methods",
    "hierarchical": "sbnn.methods",
    "laplace": "sbnn.laplace_methods",
    "laplace_nsbl": "sbnn.laplace_methods",
    "compare": "sbnn.comparison",
    "Problem": "sbnn.problem",
    "SparseBNNRegressor": "sbnn.estimator",
    "network_problem": "sbnn.regression",
}
_MODULES = ("datasets", "predict", "priors", "results")
__all__ = [
    "Problem",
    "SparseBNNRegressor",
    "__version__",
    "compare",
    "datasets",
    "hierarchical",
    "laplace",
    "laplace_nsbl",
    "load",
    "network_problem",
    "nsbl",
    "predict",
    "priors",
    "standard",
]


if TYPE_CHECKING:
    from sbnn import datasets, predict, priors
    from sbnn.comparison import compare
    from sbnn.estimator import SparseBNNRegressor
    from sbnn.laplace_methods import laplace, laplace_nsbl
    from sbnn.loading import load
    from sbnn.methods import hierarchical, nsbl, standard
    from sbnn.problem import Problem
    from sbnn.regression import network_problem


def __getattr__(name: str):
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"sbnn.{name}")
    raise AttributeError(f"module 'sbnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Lets a function have the name of the module it stands on.

    Importing the submodule `sbnn.laplace` would put it in the place of the function `sbnn.laplace`.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
