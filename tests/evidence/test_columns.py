"""Columns of wide tables."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import rng

from sbnn.evidence.columns import SCREENED, marginal_scores, relevant_columns
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import initial


def wide(n, p, seed, noise=0.2):
    """Six real columns: a wave, a product, an absolute value, a step and a square."""
    r = rng(seed)
    x = r.normal(size=(p, n))
    real = np.sort(r.permutation(p)[:6])
    a, b, c, d, e, f = x[real]
    y = np.sin(2 * a) + b * c + np.abs(d) + np.tanh(3 * e) + 0.5 * f**2
    y = y / y.std() + noise * r.normal(size=n)
    return NetworkModel(x_t=x, y_t=((y - y.mean()) / y.std())[None], sizes=(p, 20, 1)), real


def test_all_real_columns_are_found_among_many():
    model, real = wide(600, 45, 0)
    found = relevant_columns(model, rng(1))
    assert set(real) <= set(found)
    assert len(found) <= len(real) + 2


def test_noise_has_no_relevant_columns_to_speak_of():
    r = rng(3)
    model = NetworkModel(
        x_t=r.normal(size=(41, 150)), y_t=r.normal(size=(1, 150)), sizes=(41, 5, 1)
    )
    assert len(relevant_columns(model, rng(1))) <= 3


@pytest.mark.parametrize("seed", [2, 3])
def test_starts_that_learn_noise_add_no_columns(seed):
    """Some of the starts keep 14 to 34 columns, with more evidence than a constant."""
    x = np.random.default_rng(seed).normal(size=(60, 200))
    y = np.sin(2 * x[3]) + x[7] + 0.1 * np.random.default_rng(seed + 1).normal(size=200)
    model = NetworkModel(x_t=x, y_t=y[None], sizes=(60, 20, 1))
    found = relevant_columns(model, np.random.default_rng(0))
    assert {3, 7} <= set(found)
    assert len(found) <= 3


def test_result_does_not_depend_on_the_number_of_threads():
    model, _ = wide(120, 41, 4)
    one, three = (relevant_columns(model, rng(1), n_threads) for n_threads in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_outliers_do_not_hide_columns():
    model, real = wide(500, 41, 5)
    model.y_t[0, :6] += 1000.0
    assert set(real) <= set(relevant_columns(model, rng(1)))


def test_screening_ranks_waves_squares_and_products_before_noise():
    model, real = wide(600, 800, 6)
    scores = marginal_scores(model.x_t, model.y_t)
    assert set(real) <= set(np.argsort(-scores)[:SCREENED])


def test_scores_of_columns_without_effect_are_exponential():
    # −log p of a test that is exact is exponential with mean one; the larger of two, for the
    # targets and their squares, has mean 1.5 and variance 1.25 if they are independent.
    r = rng(7)
    scores = marginal_scores(r.normal(size=(400, 1000)), r.normal(size=(1, 1000)))
    assert scores.mean() == pytest.approx(1.5, abs=4 * np.sqrt(1.25 / 400))


def test_scores_of_constants_and_yes_or_no_columns():
    r = rng(8)
    yes = (r.random(500) < 0.3).astype(float)
    y = yes + 0.5 * r.normal(size=500)
    constant, effect, none = marginal_scores(
        np.array([np.ones(500), yes, (r.random(500) < 0.5).astype(float)]), y[None]
    )
    assert constant == 0.0
    assert effect > 50 > 10 > none


def test_start_of_some_columns_is_that_of_the_smaller_network():
    r = rng(9)
    x, columns = r.normal(size=(6, 30)), np.array([1, 4])
    model = NetworkModel(x_t=x, y_t=r.normal(size=(1, 30)), sizes=(6, 3, 1), columns=columns)
    small = NetworkModel(x_t=x[columns], y_t=model.y_t, sizes=(2, 3, 1))
    opt, other = initial(model, rng(1)), initial(small, rng(1))
    np.testing.assert_array_equal(opt.phi[opt.active], other.phi)
    assert (np.delete(opt.phi, opt.active) == 0).all()
    np.testing.assert_allclose(
        model.evaluate(opt.phi, opt.layout).output, small.evaluate(other.phi, other.layout).output
    )
