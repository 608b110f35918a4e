"""The shape of the tail of importance weights against arviz-stats."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import rng

from sbnn.sampling.warm_start.pareto import pareto_k


@pytest.mark.parametrize("shape", [0.2, 0.7, 1.5])
def test_the_shape_equals_that_of_arviz(shape):
    array_stats = pytest.importorskip("arviz_stats.base").array_stats
    log_weights = -shape * np.log(rng(81).uniform(size=2000))
    assert abs(pareto_k(log_weights) - float(array_stats.psislw(-log_weights)[1])) < 0.02


def test_equal_weights_have_no_tail():
    assert pareto_k(np.zeros(500)) == -np.inf


def test_too_few_weights_have_an_infinite_shape():
    assert pareto_k(np.zeros(10)) == np.inf
