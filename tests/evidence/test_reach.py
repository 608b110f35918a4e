"""Uncertainty outside the range of the training inputs."""

from __future__ import annotations

import numpy as np
import pytest

from sbnn.evidence.laplace.models.layout import Layout
from sbnn.evidence.reach import Reach, WeightedNetwork

X = np.array([[-1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])


def identity_network(slopes):
    """f(x) = slopes · x, a network without hidden layers."""
    phi = np.array([*slopes, 0.0])
    return WeightedNetwork(1.0, phi, Layout((2, 1)), "identity")


@pytest.fixture
def reach():
    return Reach.of([identity_network([3.0, -2.0])], X, 1, np.arange(3))


def test_slopes_are_those_of_a_linear_network(reach):
    np.testing.assert_allclose(reach.slope[:, 0], [3.0, 2.0], rtol=1e-14)
    np.testing.assert_array_equal(reach.lower, [-1.0, 0.0])
    np.testing.assert_array_equal(reach.upper, [2.0, 1.0])


def test_slopes_of_a_mixture_are_root_mean_squares():
    nets = [
        identity_network(s)._replace(weight=w) for s, w in (([3.0, 0.0], 0.25), ([1.0, 4.0], 0.75))
    ]
    found = Reach.of(nets, X, 1, np.arange(3)).slope[:, 0]
    np.testing.assert_allclose(found, np.sqrt([0.25 * 9 + 0.75 * 1, 0.75 * 16]), rtol=1e-14)


def test_variance_is_zero_inside_and_quadratic_outside(reach):
    assert (reach.variance(X) == 0).all()
    x = np.array([[5.0, -2.0], [0.5, 3.0]])
    np.testing.assert_allclose(reach.variance(x)[:, 0], [(3 * 3) ** 2, (3 * 1) ** 2 + (2 * 2) ** 2])


def test_draws_have_the_stated_variance_and_are_linear(reach):
    x = np.array([[3.0, 4.0, 0.0, -2.0], [0.5, 0.5, 0.5, 2.0]])
    draws = reach.draws(x, 20_000, np.random.default_rng(0))[..., 0]
    want = reach.variance(x)[:, 0]
    # The relative standard error of a variance of normal draws is √(2/n) = 1 %.
    np.testing.assert_allclose(draws.var(axis=0), want, rtol=0.04)
    np.testing.assert_allclose(draws[:, 1], 2 * draws[:, 0], rtol=1e-12)
    correlation = np.corrcoef(draws[:, 0], draws[:, 3])[0, 1]
    assert abs(correlation) < 4 / np.sqrt(20_000)  # both sides are independent


def test_error_of_slopes_is_that_of_a_regression():
    """Of least squares on one input, from repeated noise; two inputs share it."""
    nothing = Reach.of([identity_network([0.0, 0.0])], X, 1, np.arange(3))
    rows = np.array([1.0, 2.0, 3.0])
    noise = 0.2 * np.random.default_rng(0).normal(size=(6, 20_000))
    repeated = nothing.with_error_of_slopes(np.array([0.04]), np.repeat(X, [1, 2, 3], axis=1))
    found = nothing.with_error_of_slopes(np.array([0.04]), X, rows).slope[:, 0]
    np.testing.assert_allclose(found, repeated.slope[:, 0], rtol=1e-12)
    for x, error in zip(np.repeat(X, [1, 2, 3], axis=1), found):
        slopes = np.linalg.lstsq(np.column_stack([np.ones(6), x]), noise, rcond=None)[0][1]
        assert error**2 == pytest.approx(slopes.var() / 2, rel=0.04)  # standard error 1 %


def test_error_of_slopes_is_for_constants_only(reach):
    assert reach.with_error_of_slopes(np.ones(1), X) is reach
    constant = np.ones((1, 5))
    flat = Reach(constant[:, 0], constant[:, 0], np.zeros((1, 1)))
    assert flat.with_error_of_slopes(np.ones(1), constant).slope[0, 0] == 0.0


def test_arrays_restore_a_reach(reach):
    again = Reach.from_arrays(reach.arrays())
    assert again is not None
    for name in ("lower", "upper", "slope"):
        np.testing.assert_array_equal(getattr(again, name), getattr(reach, name))
    assert Reach.from_arrays({}) is None
