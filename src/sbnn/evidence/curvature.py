"""Curvature of likelihood × known prior at given parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg

from sbnn._core.float64 import float64
from sbnn.evidence.laplace.models.layout import Layout, jacobian
from sbnn.likelihoods import Likelihood
from sbnn.problems.network import Network
from sbnn.problems.problem import Problem
from sbnn.problems.regression import Regression


@float64
def curvatures(problem: Problem, phi: np.ndarray, known_priors: bool = True) -> np.ndarray:
    """Λ = −∂² log(likelihood × known prior) at each φ, positive semi-definite.

    Gauss–Newton (Fisher information) for regressions. For other problems, the Hessian with its
    negative eigenvalues set to zero; a maximum has none.

    Parameters
    ----------
    problem : Problem
    phi : ndarray, shape (n, d)
    known_priors : bool
        Whether to include the known priors.

    Returns
    -------
    ndarray, shape (n, d, d)
    """
    target = problem.target()
    phi = np.atleast_2d(phi)
    regression = problem.regression
    if regression is not None and problem.network is not None:
        blocks = _network_information(regression, problem.network, phi)
    elif regression is not None:
        known = np.zeros(0) if regression.known is None else regression.known
        blocks = _model_information(
            regression.outputs, regression.likelihood, regression.n_model,
            regression.known is None, phi, known, regression.y,
        )  # fmt: skip
    else:
        blocks = _positive_hessians(target.log_likelihood, target.data, phi)
    free = ~problem.ard
    if known_priors and free.any():
        prior = np.asarray(_prior_curvatures(target.prior, phi))
        prior = np.where(np.isfinite(prior), np.maximum(prior, 0.0), 0.0)
        blocks = blocks + np.where(np.outer(free, free), prior, 0.0)
    return np.asarray(blocks)


@jax.jit
def _prior_curvatures(prior: Any, phi: Any) -> Any:
    return -jax.vmap(jax.hessian(prior.log_density))(phi)


def _network_information(regression: Regression, network: Network, phi: np.ndarray) -> np.ndarray:
    """JᵀWJ from the closed-form Jacobian, in NumPy to avoid compilation."""
    n_model, likelihood, y = regression.n_model, regression.likelihood, regression.y
    layout, x_t = Layout(network.sizes), np.ascontiguousarray(regression.inputs.T)
    blocks = np.zeros((len(phi), phi.shape[1], phi.shape[1]))
    for block, point in zip(blocks, phi):
        f_t, jac = jacobian(point[:n_model], x_t, layout, network.activation)
        f = f_t.T.reshape(*y.shape, -1)
        theta = regression.theta(point)
        weights = np.broadcast_to(likelihood.information(f, theta), f.shape).reshape(len(y), -1)
        scaled = (jac * np.sqrt(weights.T)).reshape(n_model, -1)
        block[:n_model, :n_model] = scaled @ scaled.T
        if regression.known is None:
            own = [
                likelihood.parameter_information(y[:, k], f[:, k], theta[k])
                for k in range(y.shape[1])
            ]
            block[n_model:, n_model:] = linalg.block_diag(*own) if own else 0.0
    return blocks


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _model_information(
    outputs: Callable[[Any, Any], Any],
    likelihood: Likelihood,
    n_model: int,
    inferred: bool,
    phi: Any,
    known: Any,
    y: Any,
) -> Any:
    """JᵀWJ by automatic differentiation, and a block for each target's noise parameters."""

    def one(point: Any) -> Any:
        f = outputs(point, None)
        # Forward mode: a model has few parameters and often many observations.
        jacobian = jax.jacfwd(lambda p: outputs(p, None))(point)[..., :n_model]
        theta = point[n_model:].reshape(y.shape[1], -1) if inferred else known
        weights = jnp.broadcast_to(likelihood.information(f, theta), f.shape)
        jacobian = jacobian.reshape(-1, n_model) * jnp.sqrt(weights).reshape(-1, 1)
        own = []
        if inferred:
            own = [
                likelihood.parameter_information(y[:, k], f[:, k], theta[k])
                for k in range(y.shape[1])
            ]
        return jax.scipy.linalg.block_diag(jacobian.T @ jacobian, *own)

    return jax.lax.map(one, phi)


@functools.partial(jax.jit, static_argnums=0)
def _positive_hessians(log_likelihood: Callable[[Any, Any], Any], data: Any, phi: Any) -> Any:
    def one(theta: Any) -> Any:
        hessian = -jax.hessian(lambda t: log_likelihood(data, t[None])[0])(theta)
        values, vectors = jnp.linalg.eigh(0.5 * (hessian + hessian.T))
        return (vectors * jnp.maximum(values, 0.0)) @ vectors.T

    return jax.lax.map(one, phi)
