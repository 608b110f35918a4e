"""Standard Bayes on the study's networks: evidence, symmetric modes, a negative control."""

from __future__ import annotations

import numpy as np
import pytest
from closed_forms import naive_mutate
from helpers import (
    assert_equal_means,
    assert_mean_within_errors,
    assert_shares,
    assert_within_errors,
    keys,
)

import sbnn
from sbnn.priors import Normal
from sbnn.sampling import tmcmc

REFERENCE = -49.37  # log evidence of the 1-3-1 net, from two independent long runs


@pytest.fixture(scope="module")
def study_net():
    x, y = sbnn.datasets.boxcar(seed=0)
    return sbnn.network_problem(x, y, hidden_layer_sizes=(3,), noise_std=0.5, bound=10.0)


@pytest.fixture(scope="module")
def two_runs(study_net):
    return [sbnn.standard(study_net, key=key, n_particles=2000) for key in keys(2)]


def output_weights(runs):
    return np.concatenate([run.phi for run in runs])[:, 6:9]


def assert_all_sign_patterns_equal(weights):
    pattern = (weights > 0) @ [1, 2, 4]
    assert_shares(np.bincount(pattern, minlength=8), np.full(8, 1 / 8), "sign patterns")


def test_study_net_has_the_reference_evidence(two_runs):
    found = np.mean([run.log_evidence for run in two_runs])
    error = np.sqrt(np.sum([run.log_evidence_error**2 for run in two_runs])) / 2
    assert_within_errors(found, REFERENCE, error, "log evidence of the 1-3-1 net")
    assert all(run.converged for run in two_runs)


def test_sign_patterns_and_neurons_of_the_study_net_are_equally_likely(two_runs):
    weights = output_weights(two_runs)
    assert_all_sign_patterns_equal(weights)
    assert_equal_means(np.abs(weights), "mean |W[2]| per neuron")


def test_move_scale_for_the_study_net_falls_to_a_few_percent(two_runs):
    for run in two_runs:
        assert 0.01 < run.history["stages"]["scale"].iloc[-1] < 0.1


@pytest.mark.slow
def test_evidence_and_modes_of_the_study_net_over_eight_keys(study_net):
    runs = [sbnn.standard(study_net, key=key, n_particles=2000) for key in keys(8)]
    found = np.array([run.log_evidence for run in runs])
    errors = np.array([run.log_evidence_error for run in runs])
    weights = output_weights(runs)
    shares = np.bincount((weights > 0) @ [1, 2, 4], minlength=8) / len(weights)
    print(
        f"\n1-3-1: mean {found.mean():.3f}, spread {found.std(ddof=1):.3f}, reported errors "
        f"{errors.mean():.3f}; shares {shares.round(4)}; mean |W[2]| {np.abs(weights).mean(axis=0)}"
    )
    assert abs(found.mean() - REFERENCE) < 0.15
    assert found.std(ddof=1) <= 0.12
    assert_all_sign_patterns_equal(weights)
    assert_equal_means(np.abs(weights), "mean |W[2]| per neuron")


def test_naive_sampler_fails_every_check_of_the_study_net(study_net, monkeypatch):
    """Negative control: a fixed scale, one move per stage, no symmetry moves."""
    monkeypatch.setattr(tmcmc, "mutate", naive_mutate)
    runs = [tmcmc.tmcmc(study_net.target(), key, n_particles=2000) for key in keys(2)]
    found = np.mean([run.log_evidence for run in runs])
    error = np.sqrt(np.sum([run.log_evidence_error**2 for run in runs])) / 2
    with pytest.raises(AssertionError, match="standard errors"):
        assert_within_errors(found, REFERENCE, error)
    assert abs(found - REFERENCE) > 0.15
    weights = np.concatenate([run.particles.phi for run in runs])[:, 6:9]
    with pytest.raises(AssertionError, match="sign patterns"):
        assert_all_sign_patterns_equal(weights)
    with pytest.raises(AssertionError, match="mean"):
        assert_equal_means(np.abs(weights), "mean |W[2]| per neuron")


def test_evidence_is_the_same_without_symmetry_moves(small_net):
    """Symmetry moves are exact: without them the mode masses change, the evidence does not."""
    target = small_net.target()
    runs = {
        symmetry: [tmcmc.tmcmc(target, key, n_particles=1000, symmetry=symmetry) for key in keys(2)]
        for symmetry in (None, small_net.symmetry)
    }
    difference = [a.log_evidence - b.log_evidence for a, b in zip(*runs.values())]
    errors = [np.hypot(a.log_evidence_error, b.log_evidence_error) for a, b in zip(*runs.values())]
    assert_within_errors(difference, 0.0, errors, "difference in log evidence")


def linear_problem(generator, noise_std):
    x = np.linspace(-1, 1, 12)
    y = 0.5 + x + 0.3 * generator.normal(size=12)
    problem = sbnn.network_problem(
        x, y, (), noise_std=noise_std, priors={"W": Normal(0, 2.0), "b": Normal(0, 1.0)}
    )
    return x, y, problem


def test_network_without_hidden_layers_is_bayesian_linear_regression():
    x, y, problem = linear_problem(np.random.default_rng(7), 0.3)
    design = np.column_stack([x, np.ones(12)])
    prior = np.diag([4.0, 1.0])
    total = design @ prior @ design.T + 0.09 * np.eye(12)
    exact = -0.5 * (y @ np.linalg.solve(total, y) + np.linalg.slogdet(2 * np.pi * total)[1])
    mean = prior @ design.T @ np.linalg.solve(total, y)
    runs = [sbnn.standard(problem, key=key, n_particles=500) for key in keys(6)]
    for run in runs:
        assert_within_errors(run.log_evidence, exact, run.log_evidence_error)
    assert_mean_within_errors([run.phi.mean(axis=0) for run in runs], mean, "posterior mean")


def test_argument_that_is_not_a_problem_raises_with_a_remedy():
    with pytest.raises(TypeError, match=r"must be an sbnn\.Problem; got list.*network_problem"):
        sbnn.standard([1, 2, 3])


def test_result_records_how_it_was_made(small_result, small_net):
    assert small_result.method == "standard"
    assert small_result.problem is small_net
    assert small_result.settings["n_particles"] == 1000
    assert small_result.version == sbnn.__version__
    assert small_result.seconds > 0
    assert len(small_result.key) == 2
    assert small_result.verified is None
    assert small_result.log_alpha is None
    np.testing.assert_allclose(  # random walks use single precision here
        small_result.log_likelihood, small_net.log_likelihood(small_result.phi), rtol=1e-6
    )
    assert (np.abs(small_result.phi) <= 10.0).all()


def test_progress_is_shown_on_request(small_net, capsys):
    sbnn.standard(small_net, key=0, n_particles=1000, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Standard Bayes" in err
    assert "β 1.0000" in err
