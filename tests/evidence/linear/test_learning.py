"""Sparse Bayesian learning: the maximum of the evidence, whatever the units and the start."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import rng
from sklearn.linear_model import ARDRegression

from sbnn.evidence.linear.factor import Factor
from sbnn.evidence.linear.learning import fit_at, learn


def sparse_data(n=150, d=12, salt=1, correlation=0.5):
    r = rng(salt)
    features = r.normal(size=(n, d)) + correlation * r.normal(size=(n, 1))
    weights = np.zeros(d)
    weights[:3] = (1.0, -2.0, 0.5)
    return features, features @ weights + 0.3 * r.normal(size=n)


def compressed(features, y, counts=None, precision=None):
    rows = np.column_stack([features, y])
    return Factor.empty(features.shape[1], 1).added(rows, counts, precision).models()[0]


def learned(features, y, log_beta=None, **options):
    shared = np.zeros(features.shape[1], int)
    return learn(compressed(features, y, **options), shared, log_beta)


def mackay(features, y, log_alpha, beta, n_iterations=20_000):
    """An independent fixed point: α = γ/m², β = (n − Σγ)/|r|², on the features with finite α."""
    kept = np.isfinite(log_alpha)
    phi, alpha = features[:, kept], np.exp(log_alpha[kept])
    for _ in range(n_iterations):
        cov = np.linalg.inv(beta * phi.T @ phi + np.diag(alpha))
        mean = beta * cov @ phi.T @ y
        gamma = 1 - alpha * np.diag(cov)
        residual = y - phi @ mean
        alpha, beta = gamma / mean**2, (len(y) - gamma.sum()) / (residual @ residual)
    return np.log(alpha), beta, mean


@pytest.mark.parametrize("salt", range(1, 6))
def test_learned_precisions_are_the_fixed_point_of_sparse_bayesian_learning(salt):
    features, y = sparse_data(salt=salt)
    fit = learned(features, y)
    assert fit.converged
    start = np.where(np.isfinite(fit.log_alpha), 0.0, np.inf)
    log_alpha, beta, mean = mackay(features, y, start, 1.0)
    kept = fit.kept
    np.testing.assert_allclose(fit.mean[kept], mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(fit.log_alpha[kept], log_alpha, atol=1e-5)
    assert np.exp(fit.log_beta) == pytest.approx(beta, rel=1e-8)


@pytest.mark.parametrize("salt", range(1, 6))
def test_learned_model_is_that_of_scikit_learn(salt):
    features, y = sparse_data(salt=salt, correlation=0.0)
    fit = learned(features, y)
    peer = ARDRegression(
        max_iter=20_000, tol=1e-14, fit_intercept=False, threshold_lambda=1e8,
        alpha_1=0.0, alpha_2=0.0, lambda_1=0.0, lambda_2=0.0,
    ).fit(features, y)  # fmt: skip
    kept = fit.kept
    assert set(kept) == set(np.flatnonzero(np.abs(peer.coef_) > 1e-6))
    np.testing.assert_allclose(peer.coef_[kept], fit.mean[kept], rtol=1e-4, atol=1e-6)
    assert peer.alpha_ == pytest.approx(np.exp(fit.log_beta), rel=1e-5)


@pytest.mark.parametrize("salt", range(1, 6))
def test_no_single_precision_can_be_improved(salt):
    features, y = sparse_data(60, 20, salt, correlation=2.0)
    fit, data = learned(features, y), compressed(features, y)
    for i in range(20):
        for value in (*np.linspace(-8, 12, 41), np.inf):
            other = fit.log_alpha.copy()
            other[i] = value
            assert fit_at(data, other, fit.log_beta).log_evidence <= fit.log_evidence + 1e-6
    for change in (-0.1, 0.1):
        assert fit_at(data, fit.log_alpha, fit.log_beta + change).log_evidence < fit.log_evidence


def test_units_change_the_numbers_but_not_the_model():
    features, y = sparse_data(correlation=1.0)
    units, scale = np.logspace(-6, 6, 12), 1e4
    fit, other = learned(features, y), learned(features * units, scale * y)
    np.testing.assert_allclose(other.mean * units / scale, fit.mean, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(other.relevance, fit.relevance, rtol=1e-8, atol=1e-12)
    shifted = other.log_evidence + len(y) * np.log(scale)
    assert shifted == pytest.approx(fit.log_evidence, rel=1e-9)


def test_columns_of_zeros_are_pruned():
    features, y = sparse_data()
    features[:, 5] = 0.0
    fit = learned(features, y)
    assert np.isinf(fit.log_alpha[5])
    assert fit.converged


def test_repeated_column_changes_neither_evidence_nor_predictions():
    features, y = sparse_data(correlation=0.0)
    twice = np.column_stack([features, features[:, 0]])
    one, two = learned(features, y), learned(twice, y)
    assert two.log_evidence == pytest.approx(one.log_evidence, rel=1e-9)
    np.testing.assert_allclose(two.at(twice)[0], one.at(features)[0], atol=1e-6)
    np.testing.assert_allclose(two.at(twice)[1], one.at(features)[1], rtol=1e-5)


def test_known_noise_is_kept():
    features, y = sparse_data()
    fit = learned(features, y, log_beta=1.5)
    assert fit.log_beta == pytest.approx(1.5, rel=1e-12)
    assert fit.converged


def test_y_without_noise_is_reported_as_interpolated():
    features, _ = sparse_data()
    fit = learned(features, features[:, 0])
    assert fit.interpolates
    assert np.isfinite(fit.log_evidence)
    assert fit.mean[0] == pytest.approx(1.0, rel=1e-6)
    assert not learned(*sparse_data()).interpolates


def test_y_of_zeros_prunes_everything():
    fit = learned(sparse_data()[0], np.zeros(150))
    assert not len(fit.kept)
    np.testing.assert_array_equal(fit.mean, 0.0)
