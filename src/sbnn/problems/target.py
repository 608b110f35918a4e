"""`Target`: likelihood and prior of a problem, in a form that JAX compiles once per shape."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from sbnn._core.arrays import Array
from sbnn.priors import JointPrior


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["data", "prior"],
    meta_fields=["log_likelihood", "rapid"],
)
@dataclass(frozen=True)
class Target:
    """Log-likelihood (data, φ of shape (n, d)) → (n,) and joint prior, for samplers.

    The function is static and the numbers are leaves, so a second problem of the same shape
    reuses the compiled sampler. `rapid`, if given, is a faster form of the same function, for use
    without derivatives.
    """

    data: Any
    prior: JointPrior
    log_likelihood: Callable
    rapid: Callable | None = None

    def evaluate(self, phi: Array) -> Array:
        """Log-likelihood of each row; NaN and +inf become −inf."""
        return _finite_or_impossible(self.log_likelihood(self.data, phi))

    def evaluate_rapidly(self, phi: Array) -> Array:
        """The same without support for derivatives, as random walks need it."""
        function = self.log_likelihood if self.rapid is None else self.rapid
        return _finite_or_impossible(function(self.data, phi))


def _finite_or_impossible(value: Array) -> Array:
    return jnp.where(jnp.isnan(value) | (value == jnp.inf), -jnp.inf, value)
