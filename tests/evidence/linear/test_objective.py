"""Exact evidence of a linear model: closed form, derivatives, compression of rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import rng
from scipy import stats

from sbnn.evidence.closed_form import log_evidence, posterior
from sbnn.evidence.closed_form import relevance as mixture_relevance
from sbnn.evidence.linear.factor import Factor
from sbnn.evidence.linear.learning import fit_at
from sbnn.evidence.linear.objective import evaluate, solve
from sbnn.evidence.mixture import GaussianMixture


def data_and_factor(n=40, d=5, salt=1):
    r = rng(salt)
    features, y = r.normal(size=(n, d)), r.normal(size=n)
    rows = np.column_stack([features, y])
    return features, y, Factor.empty(d, 1).added(rows, None, None)


def covariance(features, log_alpha, log_beta):
    return np.exp(-log_beta) * np.eye(len(features)) + (features * np.exp(-log_alpha)) @ features.T


@pytest.mark.parametrize(("n", "d"), [(40, 5), (4, 7), (1, 1), (60, 60)])
def test_log_evidence_is_that_of_the_normal_distribution_of_y(n, d):
    features, y, factor = data_and_factor(n, d)
    log_alpha, log_beta = rng(2).normal(size=d), 0.7
    exact = stats.multivariate_normal(
        np.zeros(n), covariance(features, log_alpha, log_beta)
    ).logpdf(y)
    found = solve(log_alpha, log_beta, factor.models()[0]).log_evidence
    assert found == pytest.approx(exact, rel=1e-10)


def test_posterior_and_relevance_are_those_of_linear_regression():
    features, y, factor = data_and_factor()
    log_alpha, log_beta = rng(3).normal(size=5), 1.1
    fit = fit_at(factor.models()[0], log_alpha, log_beta)
    alpha, beta = np.exp(log_alpha), np.exp(log_beta)
    cov = np.linalg.inv(beta * features.T @ features + np.diag(alpha))
    np.testing.assert_allclose(fit.covariance(), cov, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(fit.mean, beta * cov @ features.T @ y, rtol=1e-10)
    np.testing.assert_allclose(fit.relevance, 1 - alpha * np.diag(cov), rtol=1e-10)


def test_linear_model_agrees_with_the_mixture_of_one_kernel():
    features, y, factor = data_and_factor()
    log_alpha, beta = rng(4).normal(size=5), 2.0
    precision = beta * features.T @ features
    mean = np.linalg.lstsq(features, y, rcond=None)[0]
    residual = y - features @ mean
    scale = (
        0.5 * len(y) * np.log(beta / (2 * np.pi))
        - 0.5 * beta * residual @ residual
        + 2.5 * np.log(2 * np.pi)
        - 0.5 * np.linalg.slogdet(precision)[1]
    )
    kernel = GaussianMixture(
        np.zeros((1, 1)), mean[None, None], np.linalg.inv(precision)[None], float(scale)
    )
    ard = np.ones(5, bool)
    fit = fit_at(factor.models()[0], log_alpha, np.log(beta))
    assert fit.log_evidence == pytest.approx(log_evidence(log_alpha, kernel, ard), rel=1e-10)
    at = posterior(log_alpha, kernel, ard)
    np.testing.assert_allclose(fit.mean, at.means[0, 0], rtol=1e-9)
    np.testing.assert_allclose(fit.covariance(), at.covariances[0], rtol=1e-8, atol=1e-12)
    gamma = mixture_relevance(log_alpha, kernel, ard).weighted
    np.testing.assert_allclose(fit.relevance, gamma, rtol=1e-9)


@pytest.mark.parametrize("known", [None, 0.4])
def test_derivatives_agree_with_automatic_differentiation(known):
    features, y, factor = data_and_factor(30, 4)
    z = np.append(rng(5).normal(size=4), 0.3)[: 5 if known is None else 4]

    def value(z):
        beta = jnp.exp(z[4]) if known is None else jnp.exp(known)
        cov = jnp.eye(30) / beta + (features * jnp.exp(-z[:4])) @ features.T
        return -0.5 * (
            30 * jnp.log(2 * jnp.pi) + jnp.linalg.slogdet(cov)[1] + y @ jnp.linalg.solve(cov, y)
        )

    with jax.enable_x64(True):
        at = jax.jit(lambda z: (value(z), jax.grad(value)(z), jax.hessian(value)(z)))
        expected = [np.asarray(part) for part in at(z)]
    found = evaluate(z, factor.models()[0], known)
    assert found.log_evidence == pytest.approx(float(expected[0]), rel=1e-12)
    np.testing.assert_allclose(found.gradient, expected[1], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.hessian, expected[2], rtol=1e-8, atol=1e-10)


def test_factor_does_not_depend_on_how_the_rows_are_cut():
    r = rng(6)
    rows = r.normal(size=(500, 8))
    counts, precision = r.integers(1, 4, size=500).astype(float), r.uniform(0.5, 2, size=500)
    whole = Factor.empty(7, 1).added(rows, counts, precision)
    parts = [
        Factor.empty(7, 1).added(rows[i], counts[i], precision[i])
        for i in (slice(300, 500), slice(0, 7), slice(7, 300))
    ]
    merged = parts[0].merged(parts[1]).merged(parts[2])
    gram = (rows * (counts * precision)[:, None]).T @ rows
    np.testing.assert_allclose(whole.triangle.T @ whole.triangle, gram, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(merged.triangle.T @ merged.triangle, gram, rtol=1e-12, atol=1e-10)
    assert merged.n_rows == whole.n_rows == counts.sum()
    expected = 0.5 * (counts * np.log(precision)).sum()
    assert merged.log_precision == pytest.approx(expected, rel=1e-12)


def test_factor_keeps_residuals_that_a_gram_matrix_loses():
    r = rng(7)
    features = r.normal(size=(2000, 3)) + 100.0
    noise = 1e-7 * r.normal(size=2000)
    y = 1e3 * features.sum(axis=1) + noise
    rows = np.column_stack([features, y])
    exact = np.linalg.lstsq(features, noise, rcond=None)
    expected = float(np.sum((noise - features @ exact[0]) ** 2))
    triangle = Factor.empty(3, 1).added(rows, None, None).triangle
    assert triangle[-1, -1] ** 2 == pytest.approx(expected, rel=1e-2)
    gram = rows.T @ rows
    by_gram = gram[3, 3] - gram[3, :3] @ np.linalg.solve(gram[:3, :3], gram[:3, 3])
    assert by_gram != pytest.approx(expected, rel=0.5)  # negative control
