"""Every likelihood against SciPy, automatic differentiation and simulation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_within_errors, rng
from scipy import stats
from scipy.special import roots_legendre

from sbnn.likelihoods import Gaussian, StudentT, VaryingGaussian, VaryingStudentT
from sbnn.likelihoods.base import Likelihood

ALL = [Gaussian(), StudentT(), VaryingGaussian(), VaryingStudentT()]
each = pytest.mark.parametrize("likelihood", ALL, ids=lambda one: type(one).__name__)


def points(likelihood, *shape):
    r = rng(210)
    f = r.normal(size=(*shape, len(likelihood.outputs)))
    theta = 1.0 + 0.3 * r.normal(size=len(likelihood.parameters))
    return r.normal(size=shape), f, theta


def distribution(likelihood, f, theta):
    """The same distribution from SciPy."""
    varies = len(likelihood.outputs) == 2
    scale = np.exp(f[..., 1] if varies else theta[0])
    if "log_nu_minus_2" not in likelihood.parameters:
        return stats.norm(f[..., 0], scale)
    return stats.t(2.0 + np.exp(theta[-1]), f[..., 0], scale)


@each
def test_density_cdf_and_std_match_scipy(likelihood):
    y, f, theta = points(likelihood, 9)
    truth = distribution(likelihood, f, theta)
    np.testing.assert_allclose(likelihood.log_density(y, f, theta), truth.logpdf(y), rtol=1e-10)
    np.testing.assert_allclose(likelihood.cdf(y, f, theta), truth.cdf(y), rtol=1e-10)
    np.testing.assert_allclose(likelihood.std(f, theta), truth.std() + 0 * y, rtol=1e-10)


@each
def test_density_is_the_same_in_jax(likelihood):
    y, f, theta = points(likelihood, 9)
    with jax.enable_x64(True):
        found = likelihood.log_density(jnp.asarray(y), jnp.asarray(f), jnp.asarray(theta))
    np.testing.assert_allclose(found, likelihood.log_density(y, f, theta), rtol=1e-10)


@each
def test_score_is_the_gradient(likelihood):
    y, f, theta = points(likelihood, 9)
    expected = Likelihood.score(likelihood, y, f, theta)
    np.testing.assert_allclose(likelihood.score(y, f, theta), expected, rtol=1e-10, atol=1e-12)


@each
def test_information_is_the_mean_squared_score(likelihood):
    """E[score²] by quadrature over the quantiles of y, to 1e-6."""
    _, f, theta = points(likelihood, 3)
    nodes, weights = roots_legendre(4000)
    levels = 0.5 * (nodes + 1)
    y = distribution(likelihood, f, theta).ppf(levels[:, None])
    squares = likelihood.score(y, np.broadcast_to(f, (*y.shape, f.shape[-1])), theta) ** 2
    mean = np.einsum("i,i...->...", 0.5 * weights, squares)
    np.testing.assert_allclose(likelihood.information(f, theta), mean, rtol=1e-5)


@each
def test_misfit_and_normaliser_sum_to_the_negative_log_likelihood(likelihood):
    """In the Laplace engine's layout: targets, observations, outputs."""
    y, f, _ = points(likelihood, 2, 7)
    theta = 1.0 + 0.1 * rng(211).normal(size=(2, len(likelihood.parameters)))
    value = likelihood.misfit(y, f, theta[:, None]) + likelihood.normaliser(theta, 7)
    truth = likelihood.log_density(y, f, theta[:, None]).sum()
    np.testing.assert_allclose(-value, truth, rtol=1e-10)


@each
def test_draws_follow_the_distribution(likelihood):
    _, f, theta = points(likelihood, 1)
    f = np.repeat(f, 20_000, axis=0)
    draws = likelihood.sample(rng(212), f, theta)
    u = likelihood.cdf(draws, f, theta)  # uniform if the draws are right
    assert_within_errors(u.mean(), 0.5, np.sqrt(1 / 12 / len(u)), "mean of the PIT")
    assert_within_errors(((u - 0.5) ** 2).mean(), 1 / 12, np.sqrt(1 / 180 / len(u)), "spread")


@each
def test_update_recovers_the_parameters_of_simulated_data(likelihood):
    if not likelihood.parameters:
        return
    _, f, theta = points(likelihood, 1)
    f = np.repeat(f, 20_000, axis=0)
    y = likelihood.sample(rng(213), f, theta)
    found = theta + 0.5
    for _ in range(20):
        found = likelihood.update(y, f, found, np.zeros_like(f))
    gain = likelihood.log_likelihood(y, f, found) - likelihood.log_likelihood(y, f, theta)
    assert -0.5 < gain < 8.0  # twice the gain is χ² with at most two degrees of freedom


@pytest.mark.parametrize(
    ("heavy", "normal"), [(StudentT(), Gaussian()), (VaryingStudentT(), VaryingGaussian())]
)
def test_student_t_with_many_degrees_of_freedom_is_gaussian(heavy, normal):
    y, f, theta = points(heavy, 9)
    theta[-1] = np.log(1e6 - 2)
    sigma = normal.std(f, theta[:-1])
    y = f[..., 0] + sigma * rng(214).uniform(-2, 2, size=9)  # log densities differ by z⁴/4ν
    np.testing.assert_allclose(
        heavy.log_density(y, f, theta), normal.log_density(y, f, theta[:-1]), rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        heavy.information(f, theta), normal.information(f, theta[:-1]), rtol=1e-5
    )


def test_degrees_of_freedom_never_fall_below_two():
    """So that every predictive distribution has a standard deviation."""
    theta = np.array([0.0, -50.0])
    found = StudentT().log_density(np.array(0.7), np.zeros(1), theta)
    np.testing.assert_allclose(found, stats.t.logpdf(0.7, 2), rtol=1e-10)
