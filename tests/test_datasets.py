"""Data sets match the formulas in the study."""

from __future__ import annotations

import numpy as np
import pytest

from sbnn import datasets


def test_boxcar_matches_the_formula_of_the_study():
    x, y = datasets.boxcar(n=50, noise_std=0.5, seed=0)
    expected_x = np.linspace(-3, 3, 50)
    truth = 2 * np.tanh(5 * expected_x + 5) + 2 * np.tanh(-5 * expected_x + 5)
    np.testing.assert_array_equal(x, expected_x)
    np.testing.assert_array_equal(y, truth + 0.5 * np.random.default_rng(0).normal(size=50))


@pytest.mark.parametrize("make", [datasets.boxcar, datasets.sine, datasets.ridge, datasets.saddle])
def test_data_without_noise_equal_the_truth_and_noise_depends_on_the_seed(make):
    clean = make(n=21, noise_std=0.0)
    np.testing.assert_array_equal(clean.y, clean.truth(clean.x))
    assert len(clean.x) == len(clean.y) == 21
    noisy, again, other = make(seed=1), make(seed=1), make(seed=2)
    np.testing.assert_array_equal(noisy.y, again.y)
    assert not np.array_equal(noisy.y, other.y)
    assert noisy.noise_std > 0


def test_sine_has_a_gap_and_ridge_ignores_spurious_inputs():
    assert np.abs(datasets.sine().x).min() == 0.5
    data = datasets.ridge(n=10, n_spurious=3)
    assert data.x.shape == (10, 5)
    changed = data.x.copy()
    changed[:, 2:] = 9.0
    np.testing.assert_array_equal(data.truth(data.x), data.truth(changed))


@pytest.mark.parametrize("noise_std", [-1.0, np.nan])
def test_invalid_noise_std_raises(noise_std):
    with pytest.raises(ValueError, match="must not be negative"):
        datasets.boxcar(noise_std=noise_std)


def test_zero_points_raise():
    with pytest.raises(ValueError, match="at least 1"):
        datasets.boxcar(n=0)
