"""The best output weights against least squares, and their derivative."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import rng

from sbnn._core.float64 import float64
from sbnn.problems.network import Network
from sbnn.problems.output_layer import Output, output_weights


def task(sizes, seed=3, pruned=()):
    """Data of `output_weights` for a network with some output weights pruned, and its φ."""
    network, r = Network(sizes), rng(seed)
    x, n_out = r.normal(size=(30, sizes[0])), sizes[-1]
    phi = r.normal(size=network.n_parameters)
    weights, biases = (np.arange(network.n_parameters)[part] for part in network.slices[-1])
    order = np.c_[weights.reshape(n_out, -1), biases]
    positions = np.setdiff1d(np.arange(network.n_parameters), pruned)
    phi[list(pruned)] = 0.0
    outputs = []
    for mine in order:
        columns = np.flatnonzero(~np.isin(mine, pruned))
        precision = r.uniform(0.1, 2.0, size=len(columns))
        information, responses = r.uniform(0.5, 9, size=30), r.normal(size=30)
        outputs.append(Output(columns, mine[columns], precision, information, responses))
    return network, (x, tuple(outputs), positions), phi, order


@pytest.mark.parametrize(
    ("sizes", "pruned"), [((2, 3, 1), ()), ((2, 4, 3, 2), (28,)), ((3, 1), (1,))]
)
def test_output_weights_solve_the_weighted_ridge_problem(sizes, pruned):
    network, data, phi, order = task(sizes, pruned=pruned)
    x, outputs, positions = data
    found = np.zeros(network.n_parameters)
    found[positions] = float64(output_weights(network))(data, phi[None, positions])[0]
    hidden = x.T
    for w, b in network.slices[:-1]:
        hidden = np.tanh(phi[w].reshape(-1, len(hidden)) @ hidden + phi[b][:, None])
    features = np.vstack([hidden, np.ones(len(x))])
    for output in outputs:
        phi_k = features[output.columns]
        gram = phi_k * output.information @ phi_k.T + np.diag(output.precision)
        truth = np.linalg.solve(gram, phi_k @ (output.information * output.responses))
        np.testing.assert_allclose(found[output.where], truth, rtol=1e-9)
    below = np.setdiff1d(np.arange(network.n_parameters), order)
    assert not found[below].any()


def test_parameters_behind_the_weights_are_left_alone():
    network, data, phi, _ = task((2, 3, 1))
    alone = float64(output_weights(network))(data, phi[None])
    more = float64(output_weights(network))(data, np.append(phi, [0.7, -2.0])[None])
    np.testing.assert_array_equal(more[0, :-2], alone[0])
    assert not more[0, -2:].any()


def test_their_derivative_is_that_of_differences():
    network, data, phi, _ = task((2, 3, 1))

    @float64
    def slopes():
        function = output_weights(network)
        gradient = jax.jacobian(lambda p: function(data, p[None])[0])(jnp.asarray(phi))
        step = 1e-6 * jnp.eye(len(phi))
        differences = (function(data, phi + step) - function(data, phi - step)) / 2e-6
        return np.asarray(gradient), np.asarray(differences).T

    gradient, differences = slopes()
    np.testing.assert_allclose(gradient, differences, atol=1e-6 * np.abs(gradient).max())
    assert np.abs(gradient).max() > 0.1
