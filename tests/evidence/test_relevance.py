"""Relevance at the exact posterior, and pruning that preserves predictions."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from closed_forms import linear
from helpers import rng

import sbnn
from sbnn.evidence import closed_form as evidence
from sbnn.evidence import relevance
from sbnn.priors import LogNormal, Normal
from sbnn.problems.network import Network, push_forward


def test_relevance_is_exact_for_a_linear_model():
    problem, mixture = linear()
    log_alpha = np.array([0.5, -0.5, 6.0])
    draws = evidence.posterior(log_alpha, mixture, problem.ard).draws(rng(60), 50)
    got = relevance.relevance_from_particles(problem, draws, log_alpha)
    exact = evidence.relevance(log_alpha, mixture, problem.ard).weighted
    np.testing.assert_allclose(got, exact, atol=1e-10)


def test_relevance_of_a_black_box_comes_from_particle_variances():
    problem = sbnn.Problem(lambda t: 0.0, ["a", "b"], ard=["a", "b"], black_box=True)
    phi = rng(61).normal(size=(20_000, 2)) * [0.5, 0.01]
    got = relevance.relevance_from_particles(problem, phi, np.array([0.0, np.log(1e4)]))
    np.testing.assert_allclose(got, [0.75, 0.0], atol=0.03)


def test_relevance_stays_between_zero_and_one_for_extreme_precisions():
    x, y = sbnn.datasets.boxcar(n=10)
    problem = sbnn.network_problem(x, y, (2,), noise_std=0.5)
    for log_alpha in (np.full(7, -20.0), np.full(7, 30.0), np.linspace(-20, 30, 7)):
        gamma = relevance.relevance_from_particles(problem, rng(62).normal(size=(5, 7)), log_alpha)
        assert ((gamma >= 0) & (gamma <= 1)).all()


def test_neuron_needs_relevant_inputs_and_outputs():
    network = Network((2, 3, 1))
    w1 = np.array([[0.9, 0.0], [0.0, 0.0], [0.8, 0.7]])
    gamma = network.flatten([(w1, np.ones(3)), (np.array([[0.5, 1.0, 0.0]]), np.ones(1))])
    np.testing.assert_allclose(relevance.neuron_relevance(network, gamma)[0], [0.5, 0.0, 0.0])
    gamma[0] = np.nan  # a known prior counts as relevant
    np.testing.assert_allclose(relevance.neuron_relevance(network, gamma)[0], [0.5, 0.0, 0.0])


def outputs(network, phi, x):
    return push_forward(network, phi, x)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "softplus"])
@pytest.mark.parametrize("sizes", [(1, 3, 1), (2, 4, 3, 2)])
def test_dropping_neurons_keeps_every_output(sizes, activation):
    """One neuron has no incoming weights (a constant f(b)), another no outgoing weights."""
    network = Network(sizes, activation)
    layers = [
        (w.copy(), b.copy())
        for w, b in network.unflatten(rng(63).normal(size=(20, network.n_parameters)))
    ]
    layers[0][0][:, 0] = 0.0  # incoming weights of neuron 1: it is the constant f(b)
    layers[1][0][:, :, 1] = 0.0  # outgoing weights of neuron 2
    phi = network.flatten(layers)
    small, small_phi, gone = relevance.drop_dead_neurons(network, phi)
    assert gone == ((1, 1), (1, 2))
    assert small.sizes == (sizes[0], sizes[1] - 2, *sizes[2:])
    x = rng(64).normal(size=(30, sizes[0]))
    np.testing.assert_allclose(
        outputs(small, small_phi, x), outputs(network, phi, x), rtol=0, atol=1e-12
    )


def test_neurons_left_without_connections_are_dropped_too():
    """Without weights into the second layer, it is constant and the first has no effect."""
    network = Network((1, 2, 2, 1), "sigmoid")
    layers = [(w.copy(), b.copy()) for w, b in network.unflatten(rng(65).normal(size=(5, 15)))]
    layers[1][0][:] = 0.0
    phi = network.flatten(layers)
    small, small_phi, gone = relevance.drop_dead_neurons(network, phi)
    assert gone == ((1, 1), (1, 2), (2, 1), (2, 2))
    assert small.sizes == (1, 1)
    x = np.linspace(-3, 3, 7)[:, None]
    np.testing.assert_allclose(
        outputs(small, small_phi, x), outputs(network, phi, x), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("sizes", [(1, 3, 1), (2, 3, 2, 2)])
def test_pruning_everything_leaves_the_output_bias(sizes):
    network = Network(sizes)
    x, y = rng(66).normal(size=(12, sizes[0])), rng(67).normal(size=(12, sizes[-1]))
    problem = sbnn.network_problem(x, y, sizes[1:-1], noise_std=0.3)
    gamma = np.zeros(network.n_parameters)
    gamma[-sizes[-1] :] = 0.9
    phi = rng(68).normal(size=(6, network.n_parameters))
    pruned = relevance.prune(problem, phi, gamma, 0.1)
    assert len(pruned.neurons) == sum(sizes[1:-1])
    assert pruned.network.sizes == (sizes[0], sizes[-1])
    predicted = outputs(pruned.network, pruned.small_phi, x)
    np.testing.assert_allclose(
        predicted, np.broadcast_to(phi[:, None, -sizes[-1] :], predicted.shape), atol=1e-12
    )
    # without the bias too, predictions are zero
    pruned = relevance.prune(problem, phi, np.zeros(network.n_parameters), 0.1)
    np.testing.assert_array_equal(outputs(pruned.network, pruned.small_phi, x), 0.0)
    assert len(pruned.names) == network.n_parameters


def test_pruning_lists_removed_parameters_and_keeps_predictions():
    x, y = sbnn.datasets.boxcar(n=20)
    problem = sbnn.network_problem(x, y, (3,), noise_std=0.5)
    gamma = np.full(10, 0.9)
    gamma[[1, 4, 7, 9]] = 0.01  # the second neuron, and the output bias
    phi = rng(69).normal(size=(8, 10))
    pruned = relevance.prune(problem, phi, gamma, 0.1)
    assert pruned.names == ("W[1][2,1]", "b[1][2]", "W[2][1,2]", "b[2][1]")
    assert pruned.neurons == ((1, 2),)
    assert pruned.problem.network.sizes == (1, 2, 1)
    assert pruned.problem.n_parameters == pruned.small_phi.shape[1] == 7
    np.testing.assert_allclose(
        pruned.problem.log_likelihood(pruned.small_phi), problem.log_likelihood(pruned.phi)
    )


def test_smaller_problem_keeps_the_priors_of_remaining_parameters():
    """Hybrid prior and inferred noise: known priors follow their parameters."""
    x, y = sbnn.datasets.boxcar(n=20)
    known = {"b[2]": Normal(0.0, 0.1), "W[1][3,1]": Normal(1.0, 2.0)}
    problem = sbnn.network_problem(x, y, (3,), priors=known, noise_prior=LogNormal(0.0, 0.5))
    gamma = np.where(problem.ard, 0.9, np.nan)
    gamma[[1, 4, 7]] = 0.0
    small = relevance.prune(problem, rng(70).normal(size=(4, 11)), gamma, 0.1).problem
    before = dict(zip(problem.names, problem.priors))
    after = dict(zip(small.names, small.priors))
    assert after["b[2][1]"] == Normal(0.0, 0.1)
    assert after["W[1][2,1]"] == Normal(1.0, 2.0)  # the third neuron is now the second
    assert after["log_sigma"] == before["log_sigma"] == LogNormal(0.0, 0.5)
    assert [n for n, a in zip(small.names, small.ard) if not a] == [
        "W[1][2,1]", "b[2][1]", "log_sigma"
    ]  # fmt: skip


def test_pruning_without_irrelevant_parameters_returns_the_same_problem():
    x, y = sbnn.datasets.boxcar(n=20)
    problem = sbnn.network_problem(x, y, (3,), noise_std=0.5)
    pruned = relevance.prune(problem, rng(71).normal(size=(3, 10)), np.ones(10), 0.1)
    assert pruned.names == pruned.neurons == ()
    assert pruned.problem is problem


def test_pruning_other_models_sets_parameters_to_zero():
    problem = sbnn.Problem(lambda t: -jnp.sum(t**2), ["a", "b"], ard=["a", "b"])
    pruned = relevance.prune(problem, np.ones((3, 2)), np.array([0.9, 0.01]), 0.1)
    assert pruned.names == ("b",)
    np.testing.assert_array_equal(pruned.phi, [[1.0, 0.0]] * 3)


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.1, 1.5, np.nan])
def test_threshold_outside_zero_and_one_raises(threshold):
    problem = sbnn.Problem(lambda t: -jnp.sum(t**2), ["a"], ard=["a"])
    with pytest.raises(ValueError, match="`threshold` must lie strictly between 0 and 1; got"):
        relevance.prune(problem, np.ones((3, 1)), np.ones(1), threshold)
