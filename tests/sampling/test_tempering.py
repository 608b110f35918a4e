"""The next temperature, weights, resampling, and the covariances that shape proposals."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import rng

from sbnn.sampling.tempering import (
    covariance_factor,
    family_variance,
    next_beta,
    split_factors,
    systematic_resample,
    temper,
)


def test_next_beta_keeps_half_of_the_effective_sample_size():
    log_likelihood = 50 * rng(41).normal(size=1000)
    beta = next_beta(log_likelihood, 0.0)
    weights = np.exp(beta * (log_likelihood - log_likelihood.max()))
    assert weights.sum() ** 2 / (weights**2).sum() == pytest.approx(500, rel=1e-6)
    assert next_beta(log_likelihood * 1e-3, 0.2) == 1.0
    assert next_beta(np.zeros(10), 0.0) == 1.0


def test_next_beta_advances_unless_most_particles_have_zero_likelihood():
    impossible = np.r_[np.zeros(40), np.full(60, -np.inf)]
    assert next_beta(impossible, 0.3) == 0.3
    extreme = np.r_[0.0, np.full(99, -1e300)]
    assert next_beta(extreme, 0.5) > 0.5
    np.testing.assert_array_equal(temper(impossible, 0.0)[[0, -1]], [0.0, -np.inf])


def test_systematic_resampling_rounds_every_share_to_a_neighbouring_integer():
    weights = rng(42).dirichlet(np.ones(200))
    counts = np.bincount(systematic_resample(rng(43), weights), minlength=200)
    assert counts.sum() == 200
    assert (np.abs(counts - 200 * weights) < 1 + 1e-9).all()
    alone = systematic_resample(rng(44), np.eye(5)[3])
    np.testing.assert_array_equal(alone, np.full(5, 3))


def test_covariance_factor_reproduces_weighted_covariance():
    generator = rng(45)
    phi, weights = generator.normal(size=(300, 3)), generator.dirichlet(np.ones(300))
    phi = phi * [1.0, 1e-6, 1e4]
    factor = covariance_factor(phi, weights)
    expected = np.cov(phi.T, aweights=weights, ddof=0)
    np.testing.assert_allclose(factor @ factor.T, expected, rtol=1e-8)


def test_covariance_factor_handles_constant_and_repeated_coordinates():
    phi = rng(46).normal(size=(100, 1)) * np.array([[1.0, 1.0, 0.0]])
    factor = covariance_factor(phi, np.full(100, 0.01))
    assert np.isfinite(factor).all()
    assert (np.diag(factor) > 0).all()


def test_each_half_uses_the_covariance_of_the_other():
    phi = np.vstack([rng(47).normal(size=(100, 2)), 5 * rng(48).normal(size=(100, 2))])
    weights = np.full(200, 1 / 200)
    factors = split_factors(phi, weights)
    np.testing.assert_allclose(factors[0], covariance_factor(phi[100:], np.full(100, 0.01)))
    np.testing.assert_allclose(factors[1], covariance_factor(phi[:100], np.full(100, 0.01)))
    lopsided = np.r_[np.zeros(100), np.full(100, 0.01)]
    whole = covariance_factor(phi, lopsided)
    np.testing.assert_allclose(split_factors(phi, lopsided), np.stack([whole, whole]))


def test_siblings_count_as_one_observation_in_the_variance():
    weights = rng(49).dirichlet(np.ones(100))
    alone = family_variance(weights, np.arange(100))
    assert alone == pytest.approx(weights.var() / weights.mean() ** 2 / 100)  # CoV²/N
    twins = np.repeat(weights[:50], 2) / np.repeat(weights[:50], 2).sum()
    apart = family_variance(twins, np.arange(100))
    assert family_variance(twins, np.repeat(np.arange(50), 2)) == pytest.approx(2 * apart)
