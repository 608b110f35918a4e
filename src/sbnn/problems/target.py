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
    meta_fields=["log_likelihood", "rapid", "gradient"],
)
@dataclass(frozen=True)
class Target:
    """Log-likelihood (data, φ of shape (n, d)) → (n,) and joint prior, for samplers.

    The function is static and the numbers are leaves, so a second problem of the same shape
    reuses the compiled sampler. `rapid`, if given, is a faster form of the same function, for use
    without derivatives, and `gradient` (data, φ) → (n, d) a faster form of its gradient, possibly
    rounded: moves that correct for errors of the gradient may use it.
    """

    data: Any
    prior: JointPrior
    log_likelihood: Callable
    rapid: Callable | None = None
    gradient: Callable | None = None

    def evaluate(self, phi: Array) -> Array:
        """Log-likelihood of each row; NaN and +inf become −inf."""
        return _finite_or_impossible(self.log_likelihood(self.data, phi))

    def slope(self, phi: Array) -> Array:
        """Gradient of the log-likelihood at each row, (n, d) → (n, d)."""
        if self.gradient is not None:
            return self.gradient(self.data, phi).astype(phi.dtype)
        return jax.grad(lambda point: self.log_likelihood(self.data, point).sum())(phi)

    def evaluate_rapidly(self, phi: Array) -> Array:
        """The same without support for derivatives, as random walks need it."""
        function = self.log_likelihood if self.rapid is None else self.rapid
        return _finite_or_impossible(function(self.data, phi))


def _finite_or_impossible(value: Array) -> Array:
    return jnp.where(jnp.isnan(value) | (value == jnp.inf), -jnp.inf, value)


def restricted(target: Target, prior: JointPrior, template: Array, positions: Array) -> Target:
    """The target as a function of the parameters at `positions`; the others are fixed.

    Parameters
    ----------
    target : Target
    prior : JointPrior
        Of the free parameters, in the order of `positions`.
    template : array, shape (n_parameters,)
        Values of the fixed parameters.
    positions : array of int, shape (d,)

    Returns
    -------
    Target
    """
    gradient = None if target.gradient is None else _gradient_of_part(target.gradient)
    data = (target.data, template, positions)
    return Target(data, prior, _function_of_part(target.log_likelihood), None, gradient)


def _complete(template: Array, positions: Array, phi: Array) -> Array:
    whole = jnp.broadcast_to(jnp.asarray(template, phi.dtype), (len(phi), len(template)))
    return whole.at[:, positions].set(phi)


@functools.lru_cache(maxsize=256)
def _function_of_part(function: Callable) -> Callable:
    return lambda data, phi: function(data[0], _complete(data[1], data[2], phi))


@functools.lru_cache(maxsize=256)
def _gradient_of_part(gradient: Callable) -> Callable:
    return lambda data, phi: gradient(data[0], _complete(data[1], data[2], phi))[:, data[2]]
