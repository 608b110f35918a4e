"""Laplace: exact for linear models, and the sparse optimum of the study's network."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from closed_forms import SIGMA, linear
from helpers import keys, rng
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import multivariate_normal, norm

import sbnn
from sbnn._core.messages import FreeDirections
from sbnn.evidence import closed_form as evidence
from sbnn.evidence.laplace.gaussian import GaussianPosterior
from sbnn.evidence.laplace.models.problems import box_log_alpha, model_of, resting_log_alpha
from sbnn.evidence.laplace.modes import fit_fixed
from sbnn.methods import _laplace as laplace_methods
from sbnn.priors import Hyperprior, Normal, Uniform

HYPERPRIOR = Hyperprior()


def study_net(**options):
    x, y = sbnn.datasets.boxcar(seed=0)
    return sbnn.network_problem(x, y, (3,), noise_std=0.5, **options)


def mode_at(problem, log_alpha, start):
    """The mode at fixed precisions and its Gaussian posterior."""
    with jax.enable_x64(True):
        model = model_of(problem, HYPERPRIOR)
        full = np.zeros(problem.n_parameters)
        full[problem.ard] = log_alpha
        (mode,) = fit_fixed(model, full[: len(start)], rng(40), 1, start)
        return mode, GaussianPosterior.of(problem, model, mode)


def test_log_evidence_is_exact_for_a_linear_model():
    """N(y | 0, σ²I + XA⁻¹Xᵀ); the mode is the posterior mean."""
    problem, mixture = linear()
    log_alpha = np.array([0.3, -0.5, 2.0])
    mode, gaussian = mode_at(problem, log_alpha, rng(40).normal(size=3))
    design, y = problem.data
    total = SIGMA**2 * np.eye(len(y)) + (design * np.exp(-log_alpha)) @ design.T
    truth = multivariate_normal.logpdf(y, np.zeros(len(y)), total)
    assert mode.converged
    np.testing.assert_allclose(mode.log_evidence, truth, rtol=1e-10)
    at = evidence.posterior(log_alpha, mixture, problem.ard)
    np.testing.assert_allclose(mode.phi, at.means[0, 0], atol=1e-6)
    np.testing.assert_allclose(gaussian.data_precision, design.T @ design / SIGMA**2, rtol=1e-9)
    np.testing.assert_allclose(gaussian.covariance, at.covariances[0], rtol=1e-8)


@pytest.mark.parametrize("as_network", [True, False])
def test_log_evidence_is_exact_for_linear_regression_with_a_known_prior(as_network):
    """b ~ N(0.2, 0.1²) known, W ~ N(0, 1/α): as a network and as a user's model."""
    r = rng(41)
    x = r.normal(size=(20, 2))
    y = x @ [1.0, 0.0] + 0.3 + 0.2 * r.normal(size=20)
    if as_network:
        problem = sbnn.network_problem(x, y, (), noise_std=0.2, priors={"b": Normal(0.2, 0.1)})
    else:
        problem = sbnn.Problem.from_model(
            lambda t: jnp.asarray(x) @ t[:2] + t[2], y, names=["v", "w", "b"], noise_std=0.2,
            priors={"b": Normal(0.2, 0.1)}, ard=["v", "w"],
        )  # fmt: skip
    mode, _ = mode_at(problem, np.array([0.0, 1.0]), np.zeros(3))
    design = np.column_stack([x, np.ones(20)])
    variances = np.array([1.0, np.exp(-1.0), 0.01])
    total = 0.04 * np.eye(20) + (design * variances) @ design.T
    truth = multivariate_normal.logpdf(y, np.full(20, 0.2), total)
    np.testing.assert_allclose(mode.log_evidence, truth, rtol=1e-9)


def test_known_noise_per_row_weights_the_rows():
    """N(y | 0, diag σ² + XA⁻¹Xᵀ)."""
    r = rng(45)
    x, sigma = r.normal(size=(20, 2)), r.uniform(0.1, 0.5, size=20)
    y = x @ [1.0, -1.0] + sigma * r.normal(size=20)
    problem = sbnn.network_problem(x, y, (), noise_std=sigma)
    mode, _ = mode_at(problem, np.zeros(3), np.zeros(3))
    design = np.column_stack([x, np.ones(20)])
    truth = multivariate_normal.logpdf(y, np.zeros(20), np.diag(sigma**2) + design @ design.T)
    np.testing.assert_allclose(mode.log_evidence, truth, rtol=1e-9)


def test_inferred_noise_maximises_the_evidence():
    """Against a scalar optimiser of the exact evidence."""
    r = rng(46)
    x = r.normal(size=(30, 3))
    y = x @ [1.0, -1.0, 0.5] + 0.3 * r.normal(size=30)
    problem = sbnn.network_problem(x, y, ())
    mode, gaussian = mode_at(problem, np.zeros(4), np.zeros(4))
    design = np.column_stack([x, np.ones(30)])

    def exact(log_sigma):
        total = np.exp(2 * log_sigma) * np.eye(30) + design @ design.T
        return multivariate_normal.logpdf(y, np.zeros(30), total)

    best = minimize_scalar(lambda s: -exact(s), bounds=(-3, 1), method="bounded").x
    np.testing.assert_allclose(mode.noise[0, 0], best, atol=1e-5)
    np.testing.assert_allclose(mode.log_evidence, exact(best), rtol=1e-8)
    h = 1e-3  # the Gaussian of log σ has the curvature of the evidence
    curvature = -(exact(best + h) - 2 * exact(best) + exact(best - h)) / h**2
    np.testing.assert_allclose(gaussian.covariance[-1, -1], 1 / curvature, rtol=0.1)


def is_the_sparse_optimum(result) -> bool:
    irrelevant = (result.neuron_relevance()[0] < 0.1).sum()
    return result.log_evidence >= -46.8 and irrelevant == 1


@pytest.mark.parametrize("key", keys(3))
def test_laplace_nsbl_finds_the_sparse_optimum_of_the_study(key):
    """−46.75 with one neuron pruned; the dense optima are at −48.1 … −48.5."""
    result = sbnn.laplace_nsbl(study_net(), key=key, n_starts=4, n_particles=200)
    assert is_the_sparse_optimum(result), result
    assert result.log_evidence < -46.5  # no better optimum is known: a higher value would be wrong
    assert len(result.prune().neurons) == 1
    assert result.converged


@pytest.mark.slow
def test_laplace_nsbl_finds_the_sparse_optimum_for_nine_of_ten_keys():
    results = [sbnn.laplace_nsbl(study_net(), key=key) for key in keys(10)]
    print("\nlaplace_nsbl:", [round(r.log_evidence, 2) for r in results])
    assert sum(is_the_sparse_optimum(r) for r in results) >= 9


def test_laplace_nsbl_is_exact_for_a_linear_jax_model():
    problem, mixture = linear()
    result = sbnn.laplace_nsbl(problem, key=keys(1)[0], n_starts=3, n_particles=4000)
    # With α₃ = ∞, the optimum over the others from a general optimiser.
    loss = lambda a: -evidence.log_evidence(np.r_[a, 60.0], mixture, problem.ard)
    best = minimize(loss, np.zeros(2), tol=1e-10)
    assert np.isclose(result.log_evidence, -best.fun, atol=0.01)
    np.testing.assert_allclose(result.log_alpha[:2], best.x, atol=0.02)
    assert result.log_alpha[2] == np.inf
    pruned = np.where(np.isinf(result.log_alpha), 25.0, result.log_alpha)
    gamma = evidence.relevance(pruned, mixture, problem.ard).weighted
    np.testing.assert_allclose(result.relevance, gamma, atol=1e-8)
    at = evidence.posterior(pruned, mixture, problem.ard)
    error = np.sqrt(np.diag(at.covariances[0]) / 4000)
    assert (np.abs(result.phi.mean(axis=0) - at.means[0, 0]) < 5 * error + 1e-9).all()


def test_laplace_learns_no_relevance_and_reports_free_directions():
    problem = sbnn.Problem(lambda t: -0.5 * (t[0] - 1.0) ** 2, ["a", "b"], ard=["a", "b"])
    result = laplace_methods.laplace(problem, key=keys(1)[0], n_starts=2, n_particles=2000)
    assert result.relevance is None
    assert FreeDirections(1) in result.messages
    # The free parameter keeps its prior N(0, 40²/12), with the variance of the box ±20.
    np.testing.assert_allclose(result.phi[:, 1].std(), 40 / np.sqrt(12), rtol=0.1)
    exact = norm.logpdf(1.0, 0.0, np.sqrt(1 + 40**2 / 12)) + 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(result.log_evidence, exact, rtol=1e-8)
    with pytest.raises(ValueError, match="learns no relevance"):
        result.prune()


def test_box_prior_becomes_a_gaussian_of_the_same_variance():
    problem = sbnn.Problem(
        lambda t: -jnp.sum(t**2), ["a", "b"], {"a": Uniform(-3.0, 3.0)}, ard=["a", "b"], bound=6.0
    )
    np.testing.assert_allclose(np.exp(-box_log_alpha(problem)), [36 / 12, 144 / 12])


@pytest.mark.parametrize("method", [laplace_methods.laplace, laplace_methods.laplace_nsbl])
def test_black_box_raises_with_a_remedy(method):
    problem = sbnn.Problem(lambda t: -float(np.sum(t**2)), ["a"], ard=["a"], black_box=True)
    with pytest.raises(ValueError, match=r"needs gradients.*black box.*jax\.numpy.*sbnn\.nsbl"):
        method(problem)


def test_starts_without_finite_likelihood_raise():
    problem = sbnn.Problem(lambda t: -jnp.inf * jnp.sum(t**2 + 1), ["a"], ard=["a"])
    with pytest.raises(ValueError, match="No start had a finite log-likelihood"):
        sbnn.laplace_nsbl(problem, n_starts=2)


def test_undetermined_parameter_raises():
    problem = sbnn.Problem(lambda t: -0.5 * t[0] ** 2, ["a", "b"], {"b": Uniform(-1, 1)}, ard=["a"])
    with pytest.raises(ValueError, match="singular: a parameter without ARD"):
        sbnn.laplace_nsbl(problem, n_starts=1)


def test_resting_log_alpha_matches_the_study():
    assert resting_log_alpha(Hyperprior(rate=np.exp(-25.0))) == pytest.approx(12.1534, abs=1e-4)
