"""Exact evidences around Laplace optima: against TMCMC from the prior, and their symmetries."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import N_ERRORS, assert_within_errors, keys, rng
from scipy import special, stats
from sklearn.exceptions import ConvergenceWarning

import sbnn
from sbnn.evidence.exact import warm_modes
from sbnn.evidence.exact.cold import cold_evidence
from sbnn.problems.many_networks import forward_many, gradient_of_many, log_likelihood_of_many
from sbnn.problems.network import Network
from sbnn.problems.symmetry import Symmetry, flip_walls, mirror_signs


@pytest.fixture(scope="module")
def boxcar():
    """A 1-2-1 net at the α of `laplace_nsbl`."""
    x, y = sbnn.datasets.boxcar()
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(2,), noise_std=0.5)
    return problem, sbnn.laplace_nsbl(problem, key=0)


def test_warm_and_cold_evidences_agree_on_the_boxcar(boxcar):
    problem, found = boxcar
    log_alpha = np.where(np.isinf(found.log_alpha), 30.0, found.log_alpha)
    warm = sbnn.exact_evidence(problem, log_alpha, key=keys(1)[0], n_particles=256)
    cold = cold_evidence(problem, log_alpha, keys(1)[0])
    error = np.hypot(warm.error, cold.log_evidence_error)
    assert warm.verified
    assert_within_errors(warm.log_evidence, cold.log_evidence, error)


def test_images_with_exchanged_neurons_are_counted():
    """At equal α both orders of two neurons have the same mass: log 2 would be missing."""
    x, y = sbnn.datasets.boxcar()
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(2,), noise_std=0.5)
    log_alpha = np.full(7, -2.0)
    warm = sbnn.exact_evidence(problem, log_alpha, key=keys(1)[0], n_particles=256)
    cold = cold_evidence(problem, log_alpha, keys(1)[0])
    error = np.hypot(warm.error, cold.log_evidence_error)
    assert N_ERRORS * error < np.log(2.0)
    assert_within_errors(warm.log_evidence, cold.log_evidence, error)


@pytest.fixture(scope="module")
def three_steps():
    """A function that needs three neurons, which differ."""
    x = np.linspace(-3, 3, 60)[:, None]
    steps = np.tanh(4 * (x + 2)) - 2 * np.tanh(4 * x) + 1.5 * np.tanh(4 * (x - 2))
    y = steps[:, 0] + 0.1 * rng(3).normal(size=60)
    return sbnn.network_problem(x, y, hidden_layer_sizes=(3,), noise_std=0.1)


def test_all_orders_of_three_neurons_are_counted(three_steps):
    """One order, from its mode, plus log 3!; only pairs exchanged would be 4 of 6 orders."""
    log_alpha, key = np.full(10, -2.0), keys(1)[0]
    every = sbnn.exact_evidence(three_steps, log_alpha, key=key, n_particles=256)
    start = every.draws[0]
    one = sbnn.exact_evidence(three_steps, log_alpha, start=start, key=key, n_particles=256)
    error = np.hypot(every.error, one.error)
    assert every.verified
    assert N_ERRORS * error < np.log(6 / 4)
    assert_within_errors(every.log_evidence, one.log_evidence + np.log(6.0), error)


def test_evidence_without_some_of_the_images_is_not_verified(three_steps, monkeypatch):
    monkeypatch.setattr(warm_modes, "MAX_MODES", 2)
    with pytest.warns(ConvergenceWarning, match="not verified"):
        found = sbnn.exact_evidence(three_steps, np.full(10, -2.0), n_particles=128)
    assert not found.verified
    assert "neurons exchanged" in found.reason


@pytest.mark.parametrize("sheared", [True, False])
def test_a_neuron_in_its_linear_range_has_the_evidence_of_a_quadrature(sheared, monkeypatch):
    """v tanh(w x) with small w: only the product v w is known, and the posterior bends along it.

    Without coordinates that bend with it, the run falls short by 0.5 to 0.9 nats and cannot tell.
    """
    x = np.linspace(-2, 2, 40)
    y = 0.5 * x + 0.1 * rng(1).normal(size=40)
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(1,), noise_std=0.1)
    # dw dv = d(log v) d(v w), for v > 0; its image under a change of signs has the same mass.
    log_v, product = np.linspace(-1.0, 8.0, 900), np.linspace(0.3, 0.7, 700)
    v = np.exp(log_v)[:, None]
    w = product / v
    log_density = stats.norm.logpdf(w, 0, np.exp(-3.5)) + stats.norm.logpdf(v, 0, np.exp(4.7))
    for at, value in zip(x, y):
        log_density = log_density + stats.norm.logpdf(value, v * np.tanh(w * at), 0.1)
    cell = (log_v[1] - log_v[0]) * (product[1] - product[0])
    truth = special.logsumexp(log_density) + np.log(2.0 * cell)
    if not sheared:
        monkeypatch.setattr(warm_modes, "sheared", lambda *_: None)
    found = sbnn.exact_evidence(
        problem, [7.0, np.inf, -9.4, np.inf], start=[0.005, 0.0, 100.0, 0.0], key=keys(1)[0]
    )
    inside = abs(found.log_evidence - truth) < N_ERRORS * found.error
    assert inside == sheared
    assert found.verified or not sheared


def test_a_large_network_without_output_weights_has_the_evidence_of_a_constant():
    x = rng(1).normal(size=(40, 4))
    problem = sbnn.network_problem(x, x[:, 0], hidden_layer_sizes=(6,), noise_std=0.5)
    truth = stats.norm.logpdf(x[:, 0], 0.0, 0.5).sum()
    nothing = sbnn.exact_evidence(problem, np.full(37, np.inf))
    hidden = sbnn.exact_evidence(problem, np.repeat([0.0, np.inf], [30, 7]))
    assert nothing.log_evidence == pytest.approx(truth, abs=1e-6)
    assert abs(hidden.log_evidence - truth) < N_ERRORS * hidden.error + 1e-6


def test_linear_models_are_verified_in_any_unit():
    x, noise = rng(0).normal(size=(50, 3)), rng(2).normal(size=50)
    found = []
    for unit in (1.0, 1e6, 1e-6):
        problem = sbnn.Problem.from_model(
            lambda theta: jnp.asarray(x) @ theta, unit * (x[:, 0] + 0.1 * noise),
            names=list("abc"), ard=list("abc"), noise_std=0.1 * unit, bound=1e3 * unit,
        )  # fmt: skip
        run = sbnn.exact_evidence(problem, np.full(3, -2.0 * np.log(unit)), n_particles=64)
        assert run.verified
        found.append(run.log_evidence + 50 * np.log(unit))
    np.testing.assert_allclose(found, found[0], rtol=0, atol=1e-6)


def test_one_mode_has_less_evidence_than_all(boxcar):
    problem, found = boxcar
    key = keys(1)[0]
    one, error, draws = sbnn.exact_evidence(
        problem, found.log_alpha, start=found.details.mode, key=key, n_particles=256
    )
    both = sbnn.exact_evidence(problem, found.log_alpha, key=key, n_particles=256)
    assert one < both.log_evidence + N_ERRORS * np.hypot(error, both.error)
    assert draws.shape == (256, problem.n_parameters)
    assert (draws[:, np.isinf(found.log_alpha)] == 0).all()


def test_inferred_noise_is_sampled_with_the_weights():
    r = rng(91)
    x = r.uniform(-2, 2, size=40)
    y = np.tanh(2 * x) + 0.2 * r.normal(size=40)
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(1,))
    log_alpha = np.zeros(int(problem.ard.sum()))
    warm = sbnn.exact_evidence(problem, log_alpha, key=keys(1)[0], n_particles=256)
    cold = cold_evidence(problem, log_alpha, keys(1)[0])
    assert warm.verified
    error = np.hypot(warm.error, cold.log_evidence_error)
    assert_within_errors(warm.log_evidence, cold.log_evidence, error)


@pytest.mark.slow
def test_warm_and_cold_evidences_agree_on_a_table():
    r = rng(92)
    x = r.normal(size=(80, 6))
    y = np.tanh(x[:, 0] + x[:, 1]) - 0.5 * x[:, 2] + 0.3 * r.normal(size=80)
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(2,), noise_std=0.3)
    log_alpha = np.full(problem.n_parameters, np.log(2.0))
    warm = sbnn.exact_evidence(problem, log_alpha, key=keys(1)[0])
    cold = cold_evidence(problem, log_alpha, keys(1)[0], n_particles=4000, move="hmc")
    error = np.hypot(warm.error, cold.log_evidence_error)
    assert_within_errors(warm.log_evidence, cold.log_evidence, error)


def test_an_interrupted_exact_evidence_continues_with_the_same_numbers(boxcar, tmp_path):
    problem, found = boxcar
    options = {"start": found.details.mode, "key": keys(1)[0], "n_particles": 64}
    whole = sbnn.exact_evidence(problem, found.log_alpha, **options)
    n_stages = 0

    def stop(stage):
        nonlocal n_stages
        n_stages += 1
        if n_stages == 2:
            raise KeyboardInterrupt

    options["checkpoint"] = tmp_path / "c"
    with pytest.raises(KeyboardInterrupt):
        sbnn.exact_evidence(problem, found.log_alpha, progress=stop, **options)
    resumed = sbnn.exact_evidence(problem, found.log_alpha, **options)
    assert resumed.log_evidence == whole.log_evidence
    assert (resumed.draws == whole.draws).all()


def test_exact_evidence_refuses_precisions_of_the_wrong_length(boxcar):
    with pytest.raises(ValueError, match="one number per ARD parameter, 7 in all"):
        sbnn.exact_evidence(boxcar[0], [0.0, 1.0])
    with pytest.raises(ValueError, match="7 finite numbers"):
        sbnn.exact_evidence(boxcar[0], np.zeros(7), start=[1.0])


@pytest.mark.parametrize("sizes", [(2, 3, 1), (1, 2, 2, 1), (2, 2, 2, 2)])
def test_exactly_one_image_of_a_point_lies_inside_the_walls(sizes):
    network, r = Network(sizes, "tanh"), rng(93)
    n = network.n_parameters
    mode, root = r.normal(size=n), r.normal(size=(n, n))
    walls = flip_walls(network, mode, root @ root.T)
    assert (walls @ mode > 0).all()
    assert len(walls) == sum(sizes[1:-1])
    symmetry = Symmetry(network, permute=False)
    for phi in r.normal(size=(5, n)):
        images = symmetry.expand(phi)
        assert (images @ walls.T > 0).all(axis=1).sum() == 1
        inside = mirror_signs(network, phi, walls) * phi
        assert (walls @ inside > 0).all()


def test_activations_without_odd_symmetry_have_no_walls():
    network = Network((1, 2, 1), "relu")
    assert not flip_walls(network, np.ones(7), np.eye(7)).any()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sizes", [(3, 4, 2), (3, 4, 3, 2)])
def test_many_networks_have_the_likelihood_and_gradient_of_single_ones(sizes, weighted):
    import jax

    r, network = rng(94), Network(sizes, "tanh")
    likelihood = sbnn.likelihoods.VaryingStudentT()
    phi = 0.5 * r.normal(size=(5, network.n_parameters))
    x, y, theta = r.normal(size=(20, 3)), r.normal(size=(20, 1)), np.full((1, 1), 1.0)
    weights = r.integers(1, 4, size=20).astype(float)
    data = (x, y, theta, weights) if weighted else (x, y, theta)
    with jax.enable_x64(True):
        outputs = np.asarray(forward_many(network, phi, x))
        single = np.stack([np.asarray(network.forward(p, x)).T for p in phi])
        function = log_likelihood_of_many(network, likelihood, False)
        value = np.asarray(function(data, phi))
        slope = np.asarray(gradient_of_many(network, likelihood, False)(data, phi))
        exact = np.asarray(
            jax.grad(lambda p: log_likelihood_of_many(network, likelihood, False)(data, p).sum())(
                phi
            )
        )
    np.testing.assert_allclose(outputs, single, rtol=1e-12)
    terms = likelihood.log_density(y, single.transpose(0, 2, 1)[:, :, None], theta)
    if weighted:
        terms = terms * weights[:, None]
    np.testing.assert_allclose(value, terms.sum(axis=(1, 2)), rtol=1e-12)
    np.testing.assert_allclose(slope, exact, rtol=1e-3, atol=1e-3)
