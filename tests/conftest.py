"""Fixtures: runs that several tests share."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import keys

import sbnn


@pytest.fixture(scope="session")
def small_net():
    """The 1-2-1 tanh net on the study's data, σ known."""
    x, y = sbnn.datasets.boxcar()
    return sbnn.network_problem(x, y, hidden_layer_sizes=(2,), noise_std=0.5, bound=10.0)


@pytest.fixture(scope="session")
def small_result(small_net):
    return sbnn.standard(small_net, key=keys(1)[0], n_particles=1000)


@pytest.fixture(scope="session")
def two_output_result():
    """Two inputs, two outputs, noise inferred per output."""
    x = sbnn.datasets.ridge(n=30).x
    y = np.column_stack([x[:, 0] - x[:, 1], 0.5 * x[:, 1]])
    y = y + np.array([0.1, 0.3]) * np.random.default_rng(5).normal(size=y.shape)
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(), bound=5.0)
    return sbnn.standard(problem, key=keys(1)[0], n_particles=500)
