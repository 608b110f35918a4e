"""The Gaussian likelihood against closed forms, automatic differentiation and simulation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_within_errors, rng
from scipy import stats

from sbnn.likelihoods import Gaussian
from sbnn.likelihoods.base import Likelihood

LIKELIHOOD = Gaussian()


@pytest.fixture(scope="module")
def case():
    r = rng(200)
    return r.normal(size=(7, 2)), r.normal(size=(7, 2, 1)), r.normal(size=(2, 1))


def test_log_density_matches_the_normal_distribution(case):
    y, f, theta = case
    truth = stats.norm.logpdf(y, f[..., 0], np.exp(theta[:, 0]))
    np.testing.assert_allclose(LIKELIHOOD.log_density(y, f, theta), truth, rtol=1e-12)
    np.testing.assert_allclose(LIKELIHOOD.log_likelihood(y, f, theta), truth.sum(), rtol=1e-12)
    by_row = np.broadcast_to(theta, (7, 2, 1))
    np.testing.assert_allclose(LIKELIHOOD.log_likelihood(y, f, by_row), truth.sum(), rtol=1e-12)


def test_misfit_and_normaliser_sum_to_the_negative_log_likelihood(case):
    """In the Laplace engine's layout: targets first, then observations."""
    y, f, theta = case
    y_t, f_t = y.T, f.transpose(1, 0, 2)
    value = -LIKELIHOOD.misfit(y_t, f_t, theta[:, None]) - LIKELIHOOD.normaliser(theta, 7)
    np.testing.assert_allclose(value, LIKELIHOOD.log_likelihood(y, f, theta), rtol=1e-12)
    each = np.broadcast_to(theta[:, None], (2, 7, 1))
    value = -LIKELIHOOD.misfit(y_t, f_t, each) - LIKELIHOOD.normaliser(each, 7)
    np.testing.assert_allclose(value, LIKELIHOOD.log_likelihood(y, f, theta), rtol=1e-12)


def test_score_is_the_gradient(case):
    y, f, theta = case
    np.testing.assert_allclose(
        LIKELIHOOD.score(y, f, theta), Likelihood.score(LIKELIHOOD, y, f, theta), rtol=1e-10
    )


def test_information_is_the_mean_squared_score(case):
    """log p is quadratic in y, so residuals ±σ give the exact mean square."""
    _, f, theta = case
    sigma = np.exp(theta[:, 0])
    squares = [LIKELIHOOD.score(f[..., 0] + s * sigma, f, theta) ** 2 for s in (-1, 1)]
    np.testing.assert_allclose(LIKELIHOOD.information(f, theta), np.mean(squares, 0), rtol=1e-10)


def test_parameter_information_is_the_mean_curvature_in_log_sigma():
    y, f, theta = np.array([1.0, -1.0]), np.zeros((2, 1)), np.zeros(1)  # residuals ±σ
    with jax.enable_x64(True):
        general = Likelihood.parameter_information(LIKELIHOOD, y, f, jnp.asarray(theta))
    np.testing.assert_allclose(LIKELIHOOD.parameter_information(y, f, theta), general, rtol=1e-10)


def test_sum_over_rows_is_the_log_likelihood(case):
    y, f, theta = case
    n_draws = 3
    thetas = np.repeat(theta[:, None], n_draws, axis=1)
    setup = LIKELIHOOD.fast_setup(thetas, "float64")
    total = sum(
        LIKELIHOOD.fast_row(y[i], np.repeat(f[i][:, None], n_draws, axis=1), setup)
        for i in range(7)
    )
    found = LIKELIHOOD.fast_total(total, thetas, 7)
    np.testing.assert_allclose(found, LIKELIHOOD.log_likelihood(y, f, theta), rtol=1e-12)


def test_update_converges_to_mackays_fixed_point():
    """EM and MacKay's update take different steps to the same σ."""
    r = rng(201)
    f = r.normal(size=(30, 1))
    y = f[:, 0] + 0.3 * r.normal(size=30)
    variance = np.full((30, 1), 0.01)
    theta = np.array([-1.0])
    for _ in range(200):
        theta = LIKELIHOOD.update(y, f, theta, variance * np.exp(2 * theta) / 0.09)
    share = variance.sum() / 0.09  # leverage, kept fixed
    squares = ((y - f[:, 0]) ** 2).sum()
    np.testing.assert_allclose(np.exp(2 * theta[0]), squares / (30 - share), rtol=1e-8)


def test_draws_have_the_stated_mean_and_standard_deviation():
    f, theta = np.full((40_000, 1), 1.5), np.array([[np.log(0.4)]])
    draws = LIKELIHOOD.sample(rng(202), f, theta)
    assert_within_errors(draws.mean(), 1.5, 0.4 / 200, "mean")
    assert_within_errors(draws.std(), 0.4, 0.4 / np.sqrt(80_000), "standard deviation")
    np.testing.assert_allclose(LIKELIHOOD.std(f, theta), 0.4)


def test_quadrature_predictions_agree_with_the_closed_form():
    """The default of `Likelihood.predictive` against the normal mixture."""
    r = rng(203)
    weights = r.dirichlet(np.ones(3), size=5).T
    f, variance = r.normal(size=(3, 5, 1)), r.uniform(0.1, 0.5, size=(3, 5, 1))
    theta = r.normal(-0.5, 0.1, size=(3, 1, 1))
    exact = LIKELIHOOD.predictive(weights, f, variance, theta)
    found = Likelihood.predictive(LIKELIHOOD, weights, f, variance, theta)
    y = r.normal(size=5)
    np.testing.assert_allclose(found.mean(), exact.mean(), rtol=1e-10)
    np.testing.assert_allclose(found.std(), exact.std(), rtol=1e-10)
    np.testing.assert_allclose(found.log_density(y), exact.log_density(y), atol=1e-5)
    np.testing.assert_allclose(found.cdf(y), exact.cdf(y), atol=1e-6)
    np.testing.assert_allclose(
        found.quantiles([0.025, 0.5]), exact.quantiles([0.025, 0.5]), atol=1e-4
    )
    np.testing.assert_allclose(found.crps(y), exact.crps(y), rtol=0.01)
    scaled, truth = found.rescaled(2.0, 3.0), exact.rescaled(2.0, 3.0)
    np.testing.assert_allclose(scaled.mean(), truth.mean(), rtol=1e-10)
    np.testing.assert_allclose(scaled.log_density(y), truth.log_density(y), atol=1e-4)
