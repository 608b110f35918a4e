"""Sparse Bayesian neural networks by nonlinear sparse Bayesian learning, verified.

The names in `__all__` are the public ones. Each is imported on first use, so that importing the
package, or asking for its version, is quick.
"""

from typing import TYPE_CHECKING

import lazy_loader

import sbnn._core.forks  # noqa: F401  (notices whether JAX was running when a process forks)

__version__ = "0.2.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules={"datasets", "likelihoods", "priors", "scores"},
    submod_attrs={
        "_core.data_warning": ["DataWarning"],
        "io": ["load"],
        "methods._exact": ["exact_evidence"],
        "methods._laplace": ["laplace", "laplace_nsbl"],
        "methods._hierarchical": ["hierarchical"],
        "methods._nsbl": ["nsbl"],
        "methods._standard": ["standard"],
        "methods.last_layer.learn": ["last_layer"],
        "methods.comparison": ["compare"],
        "problems.network_regression": ["network_problem"],
        "problems.problem": ["Problem"],
        "regressor.estimator": ["SparseBNNRegressor"],
    },
)

if TYPE_CHECKING:
    from sbnn import datasets as datasets
    from sbnn import likelihoods as likelihoods
    from sbnn import priors as priors
    from sbnn import scores as scores
    from sbnn._core.data_warning import DataWarning as DataWarning
    from sbnn.io import load as load
    from sbnn.methods._exact import exact_evidence as exact_evidence
    from sbnn.methods._hierarchical import hierarchical as hierarchical
    from sbnn.methods._laplace import laplace as laplace
    from sbnn.methods._laplace import laplace_nsbl as laplace_nsbl
    from sbnn.methods._nsbl import nsbl as nsbl
    from sbnn.methods._standard import standard as standard
    from sbnn.methods.comparison import compare as compare
    from sbnn.methods.last_layer.learn import last_layer as last_layer
    from sbnn.problems.network_regression import network_problem as network_problem
    from sbnn.problems.problem import Problem as Problem
    from sbnn.regressor.estimator import SparseBNNRegressor as SparseBNNRegressor
