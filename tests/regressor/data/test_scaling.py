"""Scales of inputs and targets: outliers, weights."""

import numpy as np
import pytest

from sbnn.regressor.data.scaling import Scaling

RNG = np.random.default_rng(0)


def test_targets_are_standardised():
    x, y = RNG.normal(size=(50, 2)), RNG.lognormal(size=(50, 1))
    found = Scaling.of(x, y)
    assert found.y_centre == pytest.approx(y.mean(axis=0))
    assert found.y_scale == pytest.approx(y.std(axis=0))


def test_outliers_do_not_set_the_scale_of_a_target():
    x, y = RNG.normal(size=(200, 2)), RNG.normal(3.0, 2.0, size=(200, 1))
    y[:3] += 1000.0
    found = Scaling.of(x, y)
    # The median of 200 normal values has an error of 2 · 1.25 / √200, their quartile range ± 11 %.
    assert found.y_centre == pytest.approx([3.0], abs=4 * 2.5 / np.sqrt(200))
    assert found.y_scale == pytest.approx([2.0], rel=0.45)
    inputs = Scaling.of(y, y)
    assert inputs.x_scale > 50.0  # of inputs, far values are as good as others


def test_weights_count_rows_in_the_scale_of_a_target_with_outliers():
    x, y = RNG.normal(size=(40, 1)), RNG.normal(size=(40, 1))
    y[:2] -= 500.0
    weights = RNG.integers(1, 4, size=40)
    counted = Scaling.of(x, y, weights.astype(float))
    repeated = Scaling.of(np.repeat(x, weights, axis=0), np.repeat(y, weights, axis=0))
    for a, b in zip(counted, repeated):
        assert a == pytest.approx(b, rel=1e-12)
