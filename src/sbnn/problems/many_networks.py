"""The log-likelihood of many networks at once, in a form with fast derivatives."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sbnn.likelihoods import Likelihood
from sbnn.problems.activations import ACTIVATIONS
from sbnn.problems.network import Network

Function = Callable[[Any, Any], Any]


def forward_many(network: Network, phi: Any, x: Any) -> Any:
    """Outputs of many networks: (m, n_parameters), (n, n_inputs) → (m, n_outputs, n)."""
    hidden = hidden_many(network, phi, x)
    w, b = network.slices[-1]
    weights = phi[:, w].reshape(len(phi), network.n_outputs, -1)
    return jnp.matmul(weights, hidden) + phi[:, b][:, :, None]


def hidden_many(network: Network, phi: Any, x: Any) -> Any:
    """Last hidden layer of many networks: (m, n_parameters), (n, n_inputs) → (m, n_neurons, n).

    All networks share one matrix product in the first layer, with the biases as weights of a
    constant input. For 64 networks of 20 neurons the gradient takes a fifth of the time that it
    takes when `Network.forward` is vectorised.
    """
    activation = ACTIVATIONS[network.activation].value
    m, ones = len(phi), jnp.ones((len(x), 1), x.dtype)
    hidden = jnp.concatenate([x, ones], axis=1).T
    if network.n_layers == 1:
        return jnp.broadcast_to(x.T, (m, *x.T.shape))
    layers = itertools.pairwise(network.sizes[:-1])
    for number, ((n_in, n_out), (w, b)) in enumerate(zip(layers, network.slices), start=1):
        weights, biases = phi[:, w].reshape(m, n_out, n_in), phi[:, b]
        if number == 1:
            joint = jnp.concatenate([weights, biases[:, :, None]], axis=2)
            out = (joint.reshape(m * n_out, n_in + 1) @ hidden).reshape(m, n_out, -1)
        else:
            out = jnp.matmul(weights, hidden) + biases[:, :, None]
        hidden = activation(out)
    return hidden


@functools.lru_cache(maxsize=256)
def log_likelihood_of_many(network: Network, likelihood: Likelihood, inferred: bool) -> Function:
    """(data, φ of shape (m, d)) → (m,), for data = (x, y, θ) or (x, y, θ, weights of the rows).

    θ has shape (n_targets, q) or (n, n_targets, q); if `inferred`, it is the end of φ instead.
    """

    def log_likelihood(data: Any, phi: Any) -> Any:
        x, y, theta, *weights = data
        n_targets = y.shape[1]
        if inferred:
            theta = phi[:, None, network.n_parameters :].reshape(len(phi), 1, n_targets, -1)
        f = forward_many(network, phi, x)
        f = jnp.moveaxis(f.reshape(len(phi), n_targets, -1, len(x)), 3, 1)
        terms = likelihood.log_density(y, f, theta)
        return (terms * weights[0][:, None] if weights else terms).sum(axis=(1, 2))

    return log_likelihood


@functools.lru_cache(maxsize=256)
def gradient_of_many(network: Network, likelihood: Likelihood, inferred: bool) -> Function:
    """(data, φ) → gradient (m, d) of the same function, in single precision."""
    function = log_likelihood_of_many(network, likelihood, inferred)

    def gradient(data: Any, phi: Any) -> Any:
        short = [jnp.asarray(array, jnp.float32) for array in data]
        return jax.grad(lambda point: function(short, point).sum())(phi.astype(jnp.float32))

    return gradient
