"""The exact evidence and its ascent with particles, against closed forms of a linear model."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from closed_forms import SIGMA, linear, linear_log_likelihood
from helpers import assert_within_errors, keys, rng
from scipy.stats import multivariate_normal, norm

import sbnn
from sbnn.evidence import closed_form as evidence
from sbnn.evidence.exact import ascent as refine
from sbnn.evidence.exact.cold import cold_evidence
from sbnn.evidence.exact.particle_estimates import particle_derivatives, savage_dickey
from sbnn.evidence.newton import maximise
from sbnn.priors import Hyperprior, Normal
from sbnn.problems.symmetry import Symmetry
from sbnn.sampling.moves import relabel

HYPERPRIOR = Hyperprior()


def posterior_draws(log_alpha, n, *salt):
    problem, mixture = linear()
    return evidence.posterior(log_alpha, mixture, problem.ard).draws(rng(*salt), n)


def test_particle_derivatives_match_the_evidence_of_a_gaussian_posterior():
    """E[φ²] = m² + P and Cov(φᵢ², φⱼ²) = 2 Pᵢⱼ² + 4 mᵢmⱼPᵢⱼ make them the closed form."""
    problem, mixture = linear()
    log_alpha = np.array([-0.5, 1.0, 2.0])
    hyperprior = Hyperprior(0.2, 0.1)
    exact = evidence.evaluate(log_alpha, mixture, problem.ard, hyperprior)
    n = 4000
    parts = [
        particle_derivatives(posterior_draws(log_alpha, n, 71, i), log_alpha, hyperprior)
        for i in range(40)
    ]
    gradients, errors, hessians = (np.array(p) for p in zip(*parts))
    error = gradients.std(axis=0, ddof=1) / np.sqrt(40)
    assert_within_errors(gradients.mean(axis=0), exact.gradient, error, "gradient")
    np.testing.assert_allclose(errors.mean(axis=0), gradients.std(axis=0, ddof=1), rtol=0.5)
    error = hessians.std(axis=0, ddof=1) / np.sqrt(40)
    # Dividing by n instead of n − 1 adds a bias far below the errors allowed here.
    assert_within_errors(hessians.mean(axis=0), exact.hessian, error, "Hessian")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("radius", [0.3, 4.0])
def test_newton_step_maximises_the_model_within_the_trust_region(seed, radius):
    r = np.random.default_rng([72, seed])
    gradient = r.normal(size=2)
    hessian = r.normal(size=(2, 2))
    hessian = hessian + hessian.T - (2.0 if seed % 2 else 0.0) * np.eye(2)  # also indefinite
    step = refine.newton_step(gradient, hessian, radius)
    assert np.linalg.norm(step) <= radius * (1 + 1e-9)
    lengths, angles = np.meshgrid(np.linspace(0, radius, 201), np.linspace(0, 2 * np.pi, 721))
    points = np.stack([lengths * np.cos(angles), lengths * np.sin(angles)], axis=-1).reshape(-1, 2)

    def model(s):
        return s @ gradient + 0.5 * np.einsum("...i,ij,...j->...", s, hessian, s)

    assert model(step) >= model(points).max() - 1e-9


def test_newton_step_is_zero_for_zero_gradient():
    np.testing.assert_allclose(refine.newton_step(np.zeros(3), -np.eye(3), 1.0), 0.0)
    np.testing.assert_allclose(refine.newton_step(np.zeros(3), np.eye(3), 1.0), 0.0)


def test_savage_dickey_is_the_evidence_lost_by_removing_a_parameter():
    problem, mixture = linear()
    log_alpha = np.array([3.0, 2.5, 1.0])
    phi = posterior_draws(log_alpha, 20_000, 73)
    base = evidence.log_evidence(log_alpha, mixture, problem.ard)
    at = evidence.posterior(log_alpha, mixture, problem.ard)
    mean, std = at.means[0, 0], np.sqrt(np.diag(at.covariances[0]))
    ratios = savage_dickey(phi, log_alpha)
    for i in range(3):
        removed = log_alpha.copy()
        removed[i] = 40.0  # α → ∞
        exact = evidence.log_evidence(removed, mixture, problem.ard) - base
        # first the identity, then its estimate if particles reach zero
        density = norm.logpdf(0.0, mean[i], std[i]) - norm.logpdf(
            0.0, 0.0, np.exp(-log_alpha[i] / 2)
        )
        assert np.isclose(exact, density, atol=1e-8)
        if abs(mean[i]) < 2.5 * std[i]:
            assert abs(ratios[i] - exact) < 0.15
        else:
            assert ratios[i] < -2.0  # not dispensable
    assert ratios[2] > -1.0


@pytest.fixture(scope="module")
def exact_runs():
    problem, _ = linear()
    log_alpha = np.array([0.0, 0.5, 1.0])
    return log_alpha, [
        cold_evidence(problem, log_alpha, jax.random.key(k), n_particles=500) for k in keys(3)
    ]


def test_exact_evidence_matches_the_closed_form(exact_runs):
    """N(y | 0, σ²I + XA⁻¹Xᵀ)."""
    problem, _ = linear()
    log_alpha, runs = exact_runs
    design, y = problem.data
    total = SIGMA**2 * np.eye(len(y)) + (design * np.exp(-log_alpha)) @ design.T
    truth = multivariate_normal.logpdf(y, np.zeros(len(y)), total)
    for run in runs:
        assert_within_errors(run.log_evidence, truth, run.log_evidence_error, "log evidence")
        assert run.converged


def test_exact_evidence_draws_follow_the_posterior(exact_runs):
    problem, mixture = linear()
    log_alpha, runs = exact_runs
    at = evidence.posterior(log_alpha, mixture, problem.ard)
    means = np.array([run.particles.phi.mean(axis=0) for run in runs])
    # moves make particles nearly independent; half their number allows for the rest
    error = np.sqrt(np.diag(at.covariances[0]) / (3 * 250))
    assert_within_errors(means.mean(axis=0), at.means[0, 0], error, "posterior mean")


def test_exact_evidence_includes_known_priors():
    design, y = linear()[0].data
    problem = sbnn.Problem(
        linear_log_likelihood, ["a", "b", "c"], {"b": Normal(-0.5, 0.3)}, ard=["a", "c"],
        data=(design, y),
    )  # fmt: skip
    run = cold_evidence(problem, np.array([0.0, 1.0]), keys(1)[0], n_particles=500)
    variances = np.array([1.0, 0.09, np.exp(-1.0)])
    total = SIGMA**2 * np.eye(len(y)) + (design * variances) @ design.T
    truth = multivariate_normal.logpdf(y, -0.5 * design[:, 1], total)
    assert_within_errors(run.log_evidence, truth, run.log_evidence_error, "log evidence")


@pytest.mark.parametrize("cold", [np.zeros(3), np.array([4.0, 4.0, -3.0])])
def test_ascent_reaches_the_optimum_of_sparse_bayesian_learning(cold):
    problem, mixture = linear()
    start = cold_evidence(problem, cold, keys(1)[0], n_particles=500)
    ascent = refine.ascend(problem, cold, start, HYPERPRIOR, keys(1)[0])
    optimum = maximise(np.zeros(3), mixture, problem.ard, HYPERPRIOR)
    reached = evidence.evaluate(ascent.log_alpha, mixture, problem.ard, HYPERPRIOR)
    assert ascent.converged
    assert "predicted gain of the next step is below" in ascent.reason
    # The closed form at the α reached. Gradients within two standard errors of zero are not
    # followed, which leaves a few hundredths of a nat.
    assert 0 <= optimum.objective - reached.objective < 0.1
    np.testing.assert_allclose(ascent.log_alpha[:2], optimum.log_alpha[:2], atol=0.5)
    # The tracked evidence is that of the α reached.
    steps = len(ascent.steps)
    error = np.hypot(start.log_evidence_error, np.sqrt(steps / 500))
    assert_within_errors(ascent.log_evidence, reached.log_evidence, error, "tracked evidence")
    assert ascent.n_evaluations > 0


def test_ascent_prunes_an_irrelevant_parameter():
    problem, mixture = linear()
    cold = np.zeros(3)
    start = cold_evidence(problem, cold, keys(1)[0], n_particles=500)
    ascent = refine.ascend(problem, cold, start, HYPERPRIOR, keys(1)[0], sparsify=0.5)
    assert ascent.log_alpha[2] > 5.0
    assert (ascent.log_alpha[:2] < 3.0).all()
    optimum = maximise(np.zeros(3), mixture, problem.ard, HYPERPRIOR)
    reached = evidence.evaluate(ascent.log_alpha, mixture, problem.ard, HYPERPRIOR)
    assert optimum.objective - reached.objective < 0.6


def test_removal_that_costs_too_much_is_undone(monkeypatch):
    """Every parameter is tried; the two that the data support are restored."""
    problem, mixture = linear()
    monkeypatch.setattr(refine, "WON_BACK", 1e6)
    cold = np.zeros(3)
    start = cold_evidence(problem, cold, keys(1)[0], n_particles=500)
    plain = refine.ascend(problem, cold, start, HYPERPRIOR, keys(1)[0])
    ascent = refine.ascend(problem, cold, start, HYPERPRIOR, keys(1)[0], sparsify=0.5)
    assert ascent.pruned == (2,)
    assert ascent.n_evaluations > plain.n_evaluations
    optimum = maximise(np.zeros(3), mixture, problem.ard, HYPERPRIOR)
    reached = evidence.evaluate(ascent.log_alpha, mixture, problem.ard, HYPERPRIOR)
    assert optimum.objective - reached.objective < 0.6
    # With an unlimited budget nothing is undone and all are pruned.
    ascent = refine.ascend(problem, cold, start, HYPERPRIOR, keys(1)[0], sparsify=1e6)
    assert sorted(ascent.pruned) == [0, 1, 2]


def test_parameters_pruned_earlier_keep_their_precision():
    problem, _ = linear()
    away = np.array([0.0, 9.0, 0.0])  # the second parameter is needed but held pruned
    start = cold_evidence(problem, away, keys(1)[0], n_particles=500)
    held = refine.ascend(problem, away, start, HYPERPRIOR, keys(1)[0], pruned=(1,))
    free = refine.ascend(problem, away, start, HYPERPRIOR, keys(1)[0])
    assert held.log_alpha[1] == 9.0
    assert held.pruned == (1,)
    assert free.log_alpha[1] < 5.0


def test_relabelling_samples_permutations_in_proportion_to_the_prior():
    """Exact masses from the prior densities over the orbit; the likelihood is unchanged."""
    x = np.linspace(-1, 1, 5)
    problem = sbnn.network_problem(x, np.sin(x), (3,), noise_std=0.5)
    log_alpha = 3 * np.array([0.0, 0.4, -0.3, 0.2, 0.0, 0.5, -0.5, 0.3, 0.1, 0.0])
    prior = problem.prior_at(log_alpha)
    rng = np.random.default_rng(5)
    one = rng.normal(size=10)
    n = 4000
    phi = relabel(rng, np.tile(one, (n, 1)), prior, problem.symmetry, n_proposals=40)
    images = Symmetry(problem.network, flip=False).expand(one)
    log_mass = np.asarray(prior.log_density(images))
    masses = np.exp(log_mass - log_mass.max())
    masses /= masses.sum()
    assert masses.max() > 2 * masses.min()  # else the check could not fail
    counts = np.array([(phi == image).all(axis=1).sum() for image in images])
    assert counts.sum() == n
    errors = np.sqrt(masses * (1 - masses) / n)
    assert (np.abs(counts / n - masses) < 4 * errors).all()
    np.testing.assert_allclose(problem.log_likelihood(phi[0]), problem.log_likelihood(one))
    assert relabel(rng, phi, prior, None) is phi


def test_steps_keep_an_effective_sample_size_of_half_the_particles():
    phi = posterior_draws(np.zeros(3), 1000, 74)
    fraction, log_weights = refine._shorten(phi, np.zeros(3), np.array([5.0, 5.0, 5.0]))
    weights = np.exp(log_weights - log_weights.max())
    assert fraction < 1
    assert weights.sum() ** 2 / (weights**2).sum() >= 500
