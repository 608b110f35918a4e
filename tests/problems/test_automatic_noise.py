"""noise="auto" of a network problem."""

from __future__ import annotations

import numpy as np
import pytest

import sbnn
from sbnn.likelihoods import Gaussian

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(120, 1))


def problem(noise, **options):
    y = 1e3 * (X[:, 0] + noise)
    return sbnn.network_problem(X, y, hidden_layer_sizes=(3,), noise="auto", **options)


def test_auto_takes_heavy_tails_for_outliers():
    scatter = 0.1 * RNG.normal(size=120)
    scatter[[3, 50, 90]] += 30.0
    assert "log_nu_minus_2" in problem(scatter).names


def test_auto_takes_varying_noise_where_it_varies():
    scatter = np.where(X[:, 0] > 0, 0.5, 0.02) * RNG.normal(size=120)
    assert "log_sigma" in problem(scatter).likelihood.outputs


def test_auto_with_known_noise_is_constant():
    assert problem(0.1 * RNG.normal(size=120), noise_std=100.0).likelihood == Gaussian()


def test_auto_needs_a_network():
    with pytest.raises(ValueError, match="for networks only"):
        sbnn.Problem.from_model(lambda p: p[0] * X[:, 0], X[:, 0], names=["a"], noise="auto")
