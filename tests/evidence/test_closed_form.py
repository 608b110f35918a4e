"""Closed-form evidence: derivatives, stability, linear models, the study's 12.1534."""

from __future__ import annotations

import functools
from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_within_errors, rng
from scipy.stats import multivariate_normal

from sbnn.evidence import closed_form as evidence
from sbnn.evidence.mixture import GaussianMixture
from sbnn.evidence.newton import maximise
from sbnn.priors import Hyperprior

HYPERPRIOR = Hyperprior(shape=0.03, rate=0.02)


def random_mixture(groups: int, kernels: int, d: int, *salt: int) -> GaussianMixture:
    r = rng(groups, kernels, d, *salt)
    log_weights = r.normal(size=(groups, kernels))
    roots = r.normal(size=(groups, d, d)) / np.sqrt(d)
    return GaussianMixture(
        log_weights - np.log(np.exp(log_weights).sum()),
        r.normal(size=(groups, kernels, d)),
        roots @ roots.mT + 0.1 * np.eye(d),
        log_normaliser=-3.2,
    )


def mask(d: int, hybrid: bool) -> np.ndarray:
    out = np.ones(d, dtype=bool)
    if hybrid:
        out[[1, d - 1]] = False
    return out


def hyper(log_alpha):
    return jnp.sum(HYPERPRIOR.shape * log_alpha - HYPERPRIOR.rate * jnp.exp(log_alpha))


def independent_objective(log_alpha, log_weights, means, sigmas):
    """log Σ a N(μ | 0, Σ + A⁻¹) + Σ (s log α − r α) over the ARD block, independently in JAX."""

    def one(mean, sigma):
        total = sigma + jnp.diag(jnp.exp(-log_alpha))
        return jax.scipy.stats.multivariate_normal.logpdf(mean, jnp.zeros(len(mean)), total)

    terms = log_weights + jax.vmap(one)(means, sigmas)
    return jax.scipy.special.logsumexp(terms) + hyper(log_alpha)


def independent_information(log_alpha, constants, shifts, precisions, at):
    """c + ½ Σλ − ½ log|Λ + A| + ½ ηᵀ(Λ + A)⁻¹η + ½ (d − n_α) log 2π, in JAX."""
    d = shifts.shape[1]
    prior = jnp.zeros(d).at[at].set(jnp.exp(log_alpha))

    def one(constant, shift, precision):
        full = precision + jnp.diag(prior)
        return (
            constant
            + 0.5 * jnp.sum(log_alpha)
            - 0.5 * jnp.linalg.slogdet(full)[1]
            + 0.5 * shift @ jnp.linalg.solve(full, shift)
            + 0.5 * (d - len(log_alpha)) * jnp.log(2 * jnp.pi)
        )

    terms = jax.vmap(one)(constants, shifts, precisions)
    return jax.scipy.special.logsumexp(terms) + hyper(log_alpha)


@functools.cache
def with_derivatives(objective):
    return jax.jit(
        lambda *args: (objective(*args), jax.grad(objective)(*args), jax.hessian(objective)(*args))
    )


def check_against_autodiff(objective, arguments, mixture, ard, log_alpha):
    got = evidence.evaluate(log_alpha, mixture, ard, HYPERPRIOR)
    with jax.enable_x64(True):
        values = with_derivatives(objective)(log_alpha, *arguments)
        value, gradient, hessian = (np.asarray(v) for v in values)
    normaliser = getattr(mixture, "log_normaliser", 0.0)
    np.testing.assert_allclose(got.objective, value + normaliser, rtol=0, atol=1e-10)
    np.testing.assert_allclose(got.gradient, gradient, rtol=0, atol=1e-10)
    np.testing.assert_allclose(got.hessian, hessian, rtol=0, atol=1e-10)
    gamma = evidence.relevance(log_alpha, mixture, ard).weighted
    np.testing.assert_allclose(got.relevance, gamma, rtol=1e-12)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(("groups", "kernels"), [(1, 1), (7, 1), (1, 7), (50, 1), (1, 50), (5, 10)])
def test_gradient_and_hessian_match_automatic_differentiation(groups, kernels, hybrid):
    """For EM (many groups of one kernel), KDE (one group of many), and in between."""
    d = 6 if hybrid else 4
    mixture, ard = random_mixture(groups, kernels, d), mask(d, hybrid)
    block = mixture.covariances[:, ard][:, :, ard].repeat(kernels, axis=0)
    arguments = (mixture.log_weights.ravel(), mixture.means[..., ard].reshape(-1, 4), block)
    log_alpha = rng(3, groups, kernels).uniform(-3, 3, size=4)
    check_against_autodiff(independent_objective, arguments, mixture, ard, log_alpha)


def decimal_log_evidence(log_alpha: list[Decimal], mixture: GaussianMixture) -> Decimal:
    """log Σ a N(μ | 0, Σ + A⁻¹) in two dimensions with 90 digits, from the definition."""
    log_two_pi = Decimal("1.8378770664093454835606594728112352797227949472755668256343")
    total = Decimal(0)
    for g, sigma in enumerate(mixture.covariances):
        for log_weight, mean in zip(mixture.log_weights[g], mixture.means[g]):
            a, b, c = Decimal(sigma[0, 0]), Decimal(sigma[1, 0]), Decimal(sigma[1, 1])
            a, c = a + (-log_alpha[0]).exp(), c + (-log_alpha[1]).exp()
            m, n = Decimal(mean[0]), Decimal(mean[1])
            determinant = a * c - b * b
            distance = (c * m * m - 2 * b * m * n + a * n * n) / determinant
            exponent = Decimal(log_weight) - determinant.ln() / 2 - distance / 2 - log_two_pi
            total += exponent.exp()
    return total.ln() + Decimal(mixture.log_normaliser)


@pytest.mark.parametrize(
    "levels", [(-20, -20), (30, 30), (-20, 30), (30, -20), (0, 30), (12, 12), (-20, 0), (3, -1)]
)
def test_value_gradient_and_hessian_are_accurate_for_log_alpha_from_minus_20_to_30(levels):
    """Against 90-digit arithmetic, with derivatives by differences of 1e-20."""
    mixture = random_mixture(2, 2, 2)
    flat = Hyperprior(0.0, 0.0)
    got = evidence.evaluate(np.array(levels, float), mixture, np.ones(2, bool), flat)
    with localcontext() as context:
        context.prec = 90
        h = Decimal("1e-20")
        base = [Decimal(v) for v in levels]

        def at(i, j):
            return decimal_log_evidence([base[0] + i * h, base[1] + j * h], mixture)

        value = float(at(0, 0))
        gradient = [
            float((at(1, 0) - at(-1, 0)) / (2 * h)),
            float((at(0, 1) - at(0, -1)) / (2 * h)),
        ]
        cross = float((at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * h * h))
        hessian = [
            [float((at(1, 0) - 2 * at(0, 0) + at(-1, 0)) / (h * h)), cross],
            [cross, float((at(0, 1) - 2 * at(0, 0) + at(0, -1)) / (h * h))],
        ]
    np.testing.assert_allclose(got.log_evidence, value, rtol=1e-12)
    # A relative tolerance, and an absolute one for derivatives that have decayed to zero.
    np.testing.assert_allclose(got.gradient, gradient, rtol=1e-8, atol=1e-13)
    np.testing.assert_allclose(got.hessian, hessian, rtol=1e-7, atol=1e-13)


@pytest.mark.parametrize("level", [-20.0, 30.0])
def test_results_are_finite_in_ten_dimensions_for_extreme_log_alpha(level):
    d = 10
    mixture = random_mixture(4, 3, d)
    stretched = GaussianMixture(  # scales from 1e-4 to 1e4, correlated
        mixture.log_weights,
        mixture.means,
        mixture.covariances * np.outer(*[np.logspace(-4, 4, d)] * 2),
    )
    for log_alpha in (np.full(d, level), np.where(np.arange(d) % 2, level, -level + 10)):
        got = evidence.evaluate(log_alpha, stretched, np.ones(d, bool), Hyperprior())
        assert np.isfinite(got.log_evidence)
        assert np.isfinite(got.gradient).all()
        assert np.isfinite(got.hessian).all()
        gamma = evidence.relevance(log_alpha, stretched, np.ones(d, bool))
        assert ((gamma.weighted >= 0) & (gamma.weighted <= 1)).all()
        assert np.isfinite(evidence.posterior(log_alpha, stretched, np.ones(d, bool)).means).all()


def linear_model(hybrid: bool):
    """y = Xφ + noise: likelihood × known prior as one kernel, and the exact results."""
    r = rng(7, int(hybrid))
    n, d, sigma = 25, 5, 0.4
    design = r.normal(size=(n, d))
    y = design @ np.array([1.5, -0.7, 0.0, 0.3, 0.0]) + sigma * r.normal(size=n)
    ard = mask(d, hybrid)
    known_mean, known_precision = np.where(ard, 0.0, 0.2), np.where(ard, 0.0, 1 / 0.3**2)
    # likelihood × known prior: precision Λ, mean μ, and its integral as log Z₀
    precision = design.T @ design / sigma**2 + np.diag(known_precision)
    covariance = np.linalg.inv(precision)
    mean = covariance @ (design.T @ y / sigma**2 + known_precision * known_mean)
    residual = y - design @ mean
    log_normaliser = (
        -0.5 * n * np.log(2 * np.pi * sigma**2)
        - 0.5 * residual @ residual / sigma**2
        + 0.5 * d * np.log(2 * np.pi)
        - 0.5 * np.linalg.slogdet(precision)[1]
        + np.sum(
            0.5 * np.log(known_precision[~ard] / (2 * np.pi))
            - 0.5 * known_precision[~ard] * (mean - known_mean)[~ard] ** 2
        )
    )
    mixture = GaussianMixture(
        np.zeros((1, 1)), mean[None, None], covariance[None], float(log_normaliser)
    )

    def exact(log_alpha):
        prior_mean, prior_variance = known_mean, np.empty(d)
        prior_variance[ard], prior_variance[~ard] = np.exp(-log_alpha), 0.3**2
        total = sigma**2 * np.eye(n) + (design * prior_variance) @ design.T
        value = multivariate_normal.logpdf(y, design @ prior_mean, total)
        gain = prior_variance[:, None] * np.linalg.solve(total, design).T
        posterior_mean = prior_mean + gain @ (y - design @ prior_mean)
        posterior_covariance = np.diag(prior_variance) - gain @ (design * prior_variance)
        return value, posterior_mean, posterior_covariance

    return mixture, ard, exact


@pytest.mark.parametrize("hybrid", [False, True])
def test_closed_form_is_exact_for_a_linear_model(hybrid):
    """Evidence N(y | 0, σ²I + XA⁻¹Xᵀ), posterior by the Kalman gain, γᵢ = 1 − αᵢPᵢᵢ."""
    mixture, ard, exact = linear_model(hybrid)
    for level in (-4.0, 0.0, 3.0):
        log_alpha = level + rng(8).normal(size=ard.sum())
        value, mean, covariance = exact(log_alpha)
        np.testing.assert_allclose(
            evidence.log_evidence(log_alpha, mixture, ard), value, rtol=1e-10
        )
        got = evidence.posterior(log_alpha, mixture, ard)
        np.testing.assert_allclose(got.means[0, 0], mean, rtol=0, atol=1e-10)
        np.testing.assert_allclose(got.covariances[0], covariance, rtol=0, atol=1e-10)
        gamma = evidence.relevance(log_alpha, mixture, ard)
        truth = 1 - np.exp(log_alpha) * np.diag(covariance)[ard]
        np.testing.assert_allclose(gamma.weighted, truth, rtol=0, atol=1e-10)
        np.testing.assert_allclose(gamma.rms, truth, rtol=0, atol=1e-10)


@pytest.mark.parametrize("hybrid", [False, True])
def test_optimum_of_a_linear_model_is_the_fixed_point_of_classical_sbl(hybrid):
    """MacKay's and Tipping's α = (γ + 2s) / (m² + 2r), damped, from the textbook posterior."""
    mixture, ard, exact = linear_model(hybrid)
    hyperprior = Hyperprior(1e-4, 1e-4)
    log_alpha = np.zeros(ard.sum())
    for _ in range(20_000):
        _, mean, covariance = exact(log_alpha)
        alpha = np.exp(log_alpha)
        gamma = 1 - alpha * np.diag(covariance)[ard]
        new = np.log((gamma + 2 * hyperprior.shape) / (mean[ard] ** 2 + 2 * hyperprior.rate))
        step = 0.5 * (new - log_alpha)  # undamped, it oscillates for irrelevant parameters
        log_alpha = log_alpha + step
        if np.abs(step).max() < 1e-12:
            break
    optimum = maximise(np.zeros(ard.sum()), mixture, ard, hyperprior)
    assert optimum.converged
    np.testing.assert_allclose(optimum.log_alpha, log_alpha, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [0.0, np.exp(-25)])
def test_log_alpha_of_an_irrelevant_parameter_is_12_1534_as_in_the_study(shape):
    """Unit variance, zero mean, rate e⁻²⁵: ½/(1 + α) = r α."""
    mixture = GaussianMixture(np.zeros((1, 1)), np.zeros((1, 1, 1)), np.ones((1, 1, 1)))
    optimum = maximise(
        np.zeros(1), mixture, np.ones(1, bool), Hyperprior(shape, np.exp(-25)), tolerance=1e-12
    )
    assert abs(optimum.log_alpha[0] - 12.1534) <= 0.0005


def test_posterior_mixture_agrees_with_importance_sampling():
    """Mean under the mixture × N(0, A⁻¹), by weighting draws from the mixture."""
    mixture = random_mixture(3, 2, 2)
    log_alpha = np.array([0.5, -0.5])
    got = evidence.posterior(log_alpha, mixture, np.ones(2, bool))
    assert np.isclose(got.weights.sum(), 1.0)
    mean = np.einsum("gk,gki->i", got.weights, got.means)
    draws = mixture.draws(rng(9), 200_000)
    weights = np.exp(-0.5 * (np.exp(log_alpha) * draws**2).sum(axis=1))
    weights /= weights.sum()
    error = np.sqrt((weights[:, None] ** 2 * (draws - mean) ** 2).sum(axis=0))
    assert_within_errors(weights @ draws, mean, error, "posterior mean")
    own = got.draws(rng(10), 100_000)
    assert_within_errors(own.mean(axis=0), mean, own.std(axis=0) / np.sqrt(len(own)), "own draws")


def test_wrong_shapes_raise():
    mixture = random_mixture(1, 1, 3)
    with pytest.raises(ValueError, match=r"`log_alpha` has shape \(2,\).*expected \(3,\)"):
        evidence.log_evidence(np.zeros(2), mixture, np.ones(3, bool))
    with pytest.raises(ValueError, match="`ard`"):
        evidence.log_evidence(np.zeros(2), mixture, np.ones(2, bool))


def test_zero_evidence_raises():
    mixture = GaussianMixture(
        np.zeros((1, 1)), np.full((1, 1, 1), 1e200), np.ones((1, 1, 1)) * 1e-3
    )
    with pytest.raises(ValueError, match="zero or infinite"):
        evidence.evaluate(np.zeros(1), mixture, np.ones(1, bool), Hyperprior())
