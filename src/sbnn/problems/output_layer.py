"""The best output weights of networks, given the weights below them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sbnn.problems.many_networks import hidden_many
from sbnn.problems.network import Network


class Output(NamedTuple):
    """One output of a network: its free weights, and what they are fitted to."""

    columns: Any  # (k,), features with a free weight; the last feature is the bias
    where: Any  # (k,), positions of these weights in φ
    precision: Any  # (k,), of their prior
    information: Any  # (n,), weights of the rows
    responses: Any  # (n,)


@functools.lru_cache(maxsize=256)
def output_weights(network: Network) -> Callable[[Any, Any], Any]:
    """(data, free weights (m, d)) → the best output weights given the others; zero elsewhere.

    Given the weights below, the outputs are linear in the output weights v, and v = (ΦᵀΩΦ + A)⁻¹
    ΦᵀΩt fits the responses t best, with features Φ, information Ω and prior precisions A.

    data = (x (n, n_inputs), an `Output` for each output, positions of the free weights in φ (d,)).
    Further columns, such as parameters of the noise, are left alone.
    """

    def best(data: Any, free_weights: Any) -> Any:
        x, outputs, positions = data
        m, d = len(free_weights), len(positions)
        phi = jnp.zeros((m, network.n_parameters), free_weights.dtype)
        phi = phi.at[:, positions].set(free_weights[:, :d])
        hidden = hidden_many(network, phi, x)
        features = jnp.concatenate([hidden, jnp.ones((m, 1, len(x)), x.dtype)], axis=1)
        shift = jnp.zeros_like(phi)
        for output in outputs:
            found = _solution(
                features[:, output.columns], output.information, output.responses, output.precision
            )
            shift = shift.at[:, output.where].set(found)
        return jnp.zeros_like(free_weights).at[:, :d].set(shift[:, positions])

    return best


def _solution(features: Any, information: Any, responses: Any, precision: Any) -> Any:
    """The best weights (m, k) for features (m, k, n), with exact first derivatives.

    The last line is a Newton step from the solution: its value does not change, and it has the
    derivative of the solution without one of the matrix, which would cost k times as much.
    """
    fixed = jax.lax.stop_gradient(features)
    weighted = fixed * information
    inverse = _inverse(weighted @ fixed.mT + jnp.diag(precision))
    best = jnp.einsum("mij,mj->mi", inverse, weighted @ responses)
    residual = information * (responses - jnp.einsum("mkn,mk->mn", features, best))
    slope = jnp.einsum("mkn,mn->mk", features, residual) - precision * best
    return best + jnp.einsum("mij,mj->mi", inverse, slope)


def _inverse(matrices: Any) -> Any:
    """Inverses (m, k, k) of positive definite matrices by Gauss–Jordan elimination.

    All m at once, with plain array operations: a batch of LAPACK calls inside a compiled loop is
    slower and can block the threads of XLA.
    """
    scale = jax.lax.rsqrt(jnp.diagonal(matrices, axis1=1, axis2=2))
    outer = scale[:, :, None] * scale[:, None, :]

    def sweep(i: Any, a: Any) -> Any:
        row, column = a[:, i, :], a[:, :, i]
        pivot = row[:, i][:, None]
        a = a - column[:, :, None] * (row / pivot)[:, None, :]
        a = a.at[:, i, :].set(row / pivot).at[:, :, i].set(-column / pivot)
        return a.at[:, i, i].set(1.0 / pivot[:, 0])

    return jax.lax.fori_loop(0, matrices.shape[1], sweep, matrices * outer) * outer
