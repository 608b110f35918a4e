"""Bands outside the range of the data."""

from __future__ import annotations

import numpy as np
import pytest

from sbnn import SparseBNNRegressor

TRUTHS = {
    "linear": lambda x: 2.0 * x,
    "saturating": lambda x: np.tanh(2.0 * x),
    "periodic": lambda x: np.sin(4.0 * x),
    "quadratic": lambda x: x * x,
    "boxcar": lambda x: np.where(np.abs(x) < 0.5, 1.0, 0.0),
}
FAR = np.array([1.0, 1.5, 2.0, 3.0, 10.0])


@pytest.fixture(scope="module", params=sorted(TRUTHS))
def fitted(request):
    rng, f = np.random.default_rng(1), TRUTHS[request.param]
    x = np.sort(rng.uniform(-1, 1, 40))
    y = f(x) + 0.1 * rng.normal(size=40)
    model = SparseBNNRegressor((4,), n_starts=4, random_state=0).fit(x[:, None], y)
    return request.param, f, model


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_band_never_narrows_with_distance(fitted, side):
    _, _, model = fitted
    _, interval = model.predict(side * FAR[:, None], return_interval=0.95)
    assert (np.diff(interval[:, 1] - interval[:, 0]) >= 0).all()


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_band_covers_truths_that_go_on_or_level_off(fitted, side):
    name, f, model = fitted
    if name not in ("linear", "saturating"):
        pytest.skip("nothing in the data says how the function goes on")
    x = side * FAR
    _, interval = model.predict(x[:, None], return_interval=0.95)
    assert ((interval[:, 0] <= f(x)) & (f(x) <= interval[:, 1])).all()


def test_draws_agree_with_the_predictive_distribution_outside(fitted):
    _, _, model = fitted
    x = np.array([[-3.0], [0.0], [2.0]])
    draws = model.sample_y(x, 4000, noise=False)
    std = model.predictive(x, noise=False).std()
    # The optima are drawn with shares averaged over the points, so only the order is the same.
    assert (draws.std(axis=1) > 0.5 * std).all()
    assert (draws.std(axis=1) < 2.0 * std).all()


def test_inputs_inside_the_range_are_not_affected(fitted):
    _, _, model = fitted
    posterior = model.posterior_
    from dataclasses import replace

    x_t = np.linspace(posterior.mixture.reach.lower, posterior.mixture.reach.upper, 20).T
    without = replace(posterior, mixture=replace(posterior.mixture, reach=None))
    np.testing.assert_array_equal(posterior.predictive(x_t).std(), without.predictive(x_t).std())
    far = 3.0 * x_t[:, -1:]
    assert posterior.predictive(far).std() > without.predictive(far).std()
