"""Ratios of normalising constants of two Gaussians, where they are known."""

from __future__ import annotations

import numpy as np
from helpers import assert_mean_within_errors, rng

from sbnn.sampling.warm_start.bridge import bennett, ratios, ratios_by_group


def draws(n, seed):
    """log w = x²/4 between N(0, 1) and exp(−x²/4), at draws of both; the log ratio is ½ log 2."""
    x = rng(82, seed).normal(size=(2, n))
    x[1] *= np.sqrt(2.0)
    return 0.25 * x**2


def test_all_estimates_are_unbiased_for_known_ratios():
    found = np.array([np.array(ratios(*draws(1000, i), 1.0)) for i in range(40)])
    for column in found.T:
        assert_mean_within_errors(column, 0.5 * np.log(2.0))
    assert found[:, 2].std() < found[:, :2].std(axis=0).min()


def test_the_bridge_solves_its_equation():
    before, after = draws(200, 0)
    c = bennett(before, after)
    assert np.isclose((1 / (1 + np.exp(c - before))).sum(), (1 / (1 + np.exp(after - c))).sum())


def test_groups_are_estimated_apart():
    before, after = draws(64, 1)
    both = ratios_by_group(before, after, 1.0, 2)
    assert both.bridge[1] == ratios(before[32:], after[32:], 1.0).bridge
