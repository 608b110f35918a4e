"""Predictions of noise with an uncertain scale, against integration and simulation."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from helpers import assert_within_errors, rng
from scipy import integrate, stats

from sbnn.likelihoods import StudentT, VaryingGaussian, VaryingStudentT

WEIGHTS = np.array([[0.3], [0.7]])
# Noise far below, equal to and far above the uncertainty of the function.
RATIOS = [0.03, 1.0, 30.0]


def student(sigma, nu=4.0, spread=1.0):
    """Two components at one point: the distribution, and its density and cdf by integration."""
    f, variance = np.array([[[-1.0]], [[2.0]]]), np.full((2, 1, 1), spread**2)
    theta = np.log([sigma, nu - 2.0])[None, None]
    found = StudentT().predictive(WEIGHTS, f, variance, theta)

    def over_the_function(of_noise, y):
        """Mean of a function of the noise y − f over f."""

        def part(mean):
            inner = lambda u: of_noise(y - mean - u) * stats.norm.pdf(u, 0, spread)
            points = [y - mean - 3 * sigma, y - mean, y - mean + 3 * sigma]
            kinks = sorted(p for p in points if abs(p) < 9 * spread)
            return integrate.quad(inner, -9 * spread, 9 * spread, points=kinks, limit=400)[0]

        return 0.3 * part(-1.0) + 0.7 * part(2.0)

    noise = stats.t(nu, 0, sigma)
    return found, partial(over_the_function, noise.pdf), partial(over_the_function, noise.cdf)


@pytest.mark.parametrize("sigma", RATIOS)
def test_density_of_student_noise_matches_integration(sigma):
    found, density, _ = student(sigma)
    for y in (-1.5, 0.4, 2.0, 7.0):
        truth = np.log(density(y))
        np.testing.assert_allclose(found.log_density(np.array([y])), truth, atol=1e-4)


@pytest.mark.parametrize("nu", [2.1, 4.0, 40.0])
def test_far_tails_are_those_of_student_noise(nu):
    """At 10⁶ noise scales the uncertainty of the function no longer matters."""
    found, *_ = student(0.1, nu)
    y = 1e5
    truth = np.logaddexp(
        np.log(0.3) + stats.t.logpdf(y + 1, nu, 0, 0.1),
        np.log(0.7) + stats.t.logpdf(y - 2, nu, 0, 0.1),
    )
    np.testing.assert_allclose(found.log_density(np.array([y])), truth, rtol=1e-6)


@pytest.mark.parametrize("sigma", RATIOS)
def test_cdf_and_quantiles_of_student_noise_match_integration(sigma):
    found, _, cdf = student(sigma)
    low, high = found.quantiles([0.025, 0.975])[:, 0]
    np.testing.assert_allclose([cdf(low), cdf(high)], [0.025, 0.975], atol=1e-5)
    inside = found.cdf(np.array([high])) - found.cdf(np.array([low]))
    np.testing.assert_allclose(inside, 0.95, atol=1e-10)


@pytest.mark.parametrize("nu", [2.05, 3.0, 50.0])
def test_moments_of_student_noise_are_exact(nu):
    found, *_ = student(0.5, nu)
    np.testing.assert_allclose(found.mean(), 0.3 * -1 + 0.7 * 2, rtol=1e-9)
    between = 0.3 * (-1 - 1.1) ** 2 + 0.7 * (2 - 1.1) ** 2
    np.testing.assert_allclose(found.std() ** 2, 1 + 0.25 * nu / (nu - 2) + between, rtol=1e-9)


@pytest.mark.parametrize("likelihood", [VaryingGaussian(), VaryingStudentT()])
def test_uncertain_log_sigma_matches_simulation(likelihood):
    f, variance = np.array([[[0.5, -0.3]]]), np.array([[[0.2, 0.15]]])
    theta = np.log(np.full(len(likelihood.parameters), 3.0))[None, None]
    found = likelihood.predictive(np.ones((1, 1)), f, variance, theta)
    r = rng(301)
    outputs = f[0, 0] + np.sqrt(variance[0, 0]) * r.normal(size=(400_000, 2))
    draws = likelihood.sample(r, outputs, theta[0, 0])
    levels = (0.025, 0.25, 0.6, 0.975)
    for level, bound in zip(levels, found.quantiles(levels)[:, 0]):
        error = np.sqrt(level * (1 - level) / len(draws))
        assert_within_errors((draws <= bound).mean(), level, error, f"quantile {level}")
    without = likelihood.predictive(np.ones((1, 1)), f, variance * (1, 0), theta)
    error = np.sqrt(0.05 * 0.95 / len(draws))
    low, high = without.quantiles((0.025, 0.975))[:, 0]
    assert abs(((draws < low) | (draws > high)).mean() - 0.05) > 5 * error  # it matters


def test_a_point_and_other_units_give_the_same_distribution():
    found, *_ = student(0.5)
    moved = found.rescaled(-3.0, 2.0)[np.array([0])]
    y = np.array([40.0])
    expected = found.log_density((y - 2.0) / -3.0) - np.log(3.0)
    np.testing.assert_allclose(moved.log_density(y), expected, rtol=1e-12)
    np.testing.assert_allclose(moved.std(), 3.0 * found.std(), rtol=1e-12)


def test_components_of_student_predictions_cannot_be_reweighted():
    with pytest.raises(TypeError, match="cannot be reweighted"):
        student(0.5)[0].reweighted(np.ones(48) / 48)
