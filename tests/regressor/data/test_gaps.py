"""Gaps: fills come from the right distribution, and new categories from that of the known ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest, t

from sbnn import SparseBNNRegressor
from sbnn.regressor.data import completion
from sbnn.regressor.data.completed import Completed
from sbnn.regressor.data.gaps import Donors, fill, informative, new_category, resample
from sbnn.regressor.data.scaling import Scaling
from sbnn.scores import NormalMixture
from sbnn.tables.column_types import read_series
from sbnn.tables.encoder import ColumnEncoder, Encoded
from sbnn.tables.input_column import InputColumn


def correlated(n, r=0.9, seed=0):
    z = np.random.default_rng(seed).normal(size=(n, 2))
    return np.column_stack([z[:, 0], r * z[:, 0] + np.sqrt(1 - r**2) * z[:, 1]])


def filled(x, donors, n=40):
    encoder = ColumnEncoder.of_numbers(donors)
    scaling = Scaling.of(donors, donors[:, :1])
    return fill(encoder.encode_numbers(x), encoder, scaling, scaling.inputs(donors), n)


def test_fills_follow_the_other_columns():
    """With correlation r, x₂ given x₁ is N(r x₁, 1 − r²)."""
    known = np.linspace(-1.5, 1.5, 61)
    x, starts = filled(np.column_stack([known, np.full(61, np.nan)]), correlated(500))
    assert starts.tolist() == list(range(0, 61 * 40, 40))
    fills = x[:, 1].reshape(61, 40)
    np.testing.assert_array_equal(x[:, 0].reshape(61, 40), known[:, None] * np.ones(40))
    slope, offset = np.polyfit(known, fills.mean(axis=1), 1)
    assert abs(slope - 0.9) < 0.1
    assert abs(offset) < 0.1
    residual = fills - fills.mean(axis=1, keepdims=True)
    assert abs(residual.std() - np.sqrt(1 - 0.81)) < 0.1
    # Without a correlation they follow the column itself.
    x, _ = filled(np.column_stack([known, np.full(61, np.nan)]), correlated(500, r=0.0))
    assert abs(np.polyfit(known, x[:, 1].reshape(61, 40).mean(axis=1), 1)[0]) < 0.2
    assert abs(x[:, 1].std() - 1.0) < 0.1


def test_known_cells_and_complete_rows_stay():
    donors = correlated(50)
    x = np.array([[1.0, 2.0], [np.nan, 0.5], [3.0, 4.0], [np.nan, np.nan]])
    out, starts = filled(x, donors, n=5)
    assert starts.tolist() == [0, 1, 6, 7]
    np.testing.assert_array_equal(out[[0, 6]], x[[0, 2]])
    np.testing.assert_array_equal(out[1:6, 1], 0.5)
    pairs = {tuple(row) for row in np.round(donors, 9)}
    assert all(tuple(row) in pairs for row in np.round(out[7:], 9))  # both cells of one donor


def test_few_donors_are_repeated():
    out, _ = filled(np.array([[np.nan, 0.0]]), correlated(3), n=10)
    assert len(out) == 10
    assert len(np.unique(out[:, 0])) == 3
    assert np.isfinite(Donors(np.zeros((2, 2))).nearest(np.array([[np.nan, 0.0]]), 4)).all()


def test_new_category_has_the_predictive_distribution_of_a_normal_population():
    """The effect of a new level is ā + s √(1 + 1/K) t_{K−1}."""
    effects = np.array([0.3, -1.2, 2.0, 0.9, -0.4])
    column = InputColumn("category", counts=dict.fromkeys("abcde", 20))
    # the first level is the reference
    z = effects[0] + new_category(column, 4000) @ (effects[1:] - effects[0])
    scale = effects.std(ddof=1) * np.sqrt(1 + 1 / 5)
    standard = (z - effects.mean()) / scale
    assert kstest(standard[:2000], t(4).cdf).pvalue > 1e-3
    assert kstest(standard[:2000] * 1.3, t(4).cdf).pvalue < 1e-3  # the check can fail
    np.testing.assert_allclose(z.mean(), effects.mean())  # antithetic


def test_new_category_is_centred_at_the_rare_ones():
    column = InputColumn("category", counts={"u": 50, "v": 50, "w": 2, "x": 2})
    draws = new_category(column, 4000)
    np.testing.assert_allclose(draws.mean(axis=0), [0.0, 1.0], atol=1e-9)
    two = new_category(InputColumn("category", counts={"u": 50, "v": 50}), 4000)
    assert two.shape == (4000, 1)
    np.testing.assert_allclose(two.mean(), 0.5)
    one = new_category(InputColumn("category", counts={"u": 50}), 6)
    np.testing.assert_array_equal(one, 1.0)


def test_resampling_follows_the_densities():
    log_density = np.log(np.array([[0.5, 0.25, 0.25, 1e-12], [1e-9, 1.0, 1e-9, 1e-9]]))
    assert resample(log_density, 4).tolist() == [[0, 0, 1, 2], [1, 1, 1, 1]]
    weights = np.random.default_rng(0).dirichlet(np.ones(5))
    picked = resample(np.log(weights)[None], 1000)[0]
    np.testing.assert_allclose(np.bincount(picked, minlength=5) / 1000, weights, atol=1e-3)


@pytest.mark.parametrize("unit", [1.0, 1e-20, 1e149])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_indicators_are_used_where_missing_cells_carry_information(shift, unit):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(600, 3))
    missing = rng.random((600, 3)) < [0.1, 0.1, 0.0]
    y = x[:, :1] + 0.3 * rng.normal(size=(600, 1)) + shift * missing[:, :1]
    values = np.where(missing, np.nan, x)
    encoder = ColumnEncoder.of_numbers(values)
    chosen = informative(encoder.encode_numbers(values), encoder, unit * y, None)
    assert chosen.tolist() == [shift > 0, False, False]


def mixture(n=30, copies=(1, 3, 2), seed=0):
    """Completed rows beside the normal mixture that they mean."""
    rng = np.random.default_rng(seed)
    counts = np.array(copies)
    means, stds = rng.normal(size=counts.sum()), rng.uniform(0.1, 2.0, size=counts.sum())
    parts = NormalMixture(np.ones(1), means[None], stds[None])
    rows = Completed(parts, np.cumsum(counts) - counts)
    width, starts = counts.max(), np.cumsum(counts) - counts
    weights = np.zeros((width, len(counts)))
    m, s = np.zeros_like(weights), np.ones_like(weights)
    for k, (start, count) in enumerate(zip(starts, counts)):
        weights[:count, k] = 1 / count
        m[:count, k], s[:count, k] = (
            means[start : start + count],
            stds[start : start + count],
        )
    m, s = np.where(weights > 0, m, m[:1]), np.where(weights > 0, s, s[:1])
    return rows, NormalMixture(weights, m, s)


def test_completed_rows_are_mixtures_over_their_copies():
    rows, exact = mixture()
    y = np.array([0.3, -0.5, 2.0])
    for of in ("mean", "std"):
        np.testing.assert_allclose(getattr(rows, of)(), getattr(exact, of)(), rtol=1e-12)
    np.testing.assert_allclose(rows.cdf(y), exact.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(rows.log_density(y), exact.log_density(y), rtol=1e-12)
    levels = (0.025, 0.5, 0.9)
    np.testing.assert_allclose(rows.quantiles(levels), exact.quantiles(levels), atol=1e-9)
    np.testing.assert_allclose(rows.crps(y), exact.crps(y), rtol=2e-3)
    np.testing.assert_allclose(rows[1:].mean(), exact.mean()[1:], rtol=1e-12)
    np.testing.assert_allclose(rows[np.array([2, 0])].std(), exact.std()[[2, 0]], rtol=1e-12)
    scaled = rows.rescaled(2.0, 1.0)
    np.testing.assert_allclose(scaled.mean(), 2 * exact.mean() + 1, rtol=1e-12)
    np.testing.assert_allclose(scaled.std(), 2 * exact.std(), rtol=1e-12)
    assert rows.shape == (3,)


def test_components_of_completed_rows_can_be_reweighted():
    parts = NormalMixture([0.5, 0.5], [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], 1.0)
    rows = Completed(parts, np.array([0, 1]))
    new = rows.reweighted(np.array([[1.0, 0.0], [0.0, 1.0]]))
    np.testing.assert_allclose(new.mean(), [0.0, 4.5])
    inside = rows.component_log_density(np.zeros(2))
    assert inside.shape == (2, 2)
    both = np.logaddexp(*(parts.component_log_density(np.zeros(3))[0, 1:])) - np.log(2)
    np.testing.assert_allclose(inside[0, 1], both)


def test_fills_of_a_category_are_whole_categories():
    frame = pd.DataFrame({"k": list("uvw") * 40, "a": np.tile([0.0, 1.0, 2.0], 40)})
    columns = [read_series(frame[n]) for n in frame]
    encoder = ColumnEncoder.of(columns)
    encoded = encoder.encode(columns)
    scaling = Scaling.of(encoded.values, encoded.values[:, :1])
    assert encoded.values.shape == (120, 3)
    gap = Encoded(
        np.array([[np.nan] * 2 + [2.0]]), np.array([[True, False]]), np.zeros((1, 2), bool)
    )
    x, _ = fill(gap, encoder, scaling, scaling.inputs(encoded.values), 20)
    np.testing.assert_allclose(x[:, :2], np.tile([0.0, 1.0], (20, 1)), atol=1e-9)


def test_noise_is_found_where_hardly_any_row_is_complete(monkeypatch):
    """One step of EM from means, the negative control, takes half of the signal for noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 8))
    y = 2 * x[:, 0] + x[:, 1] + 0.3 * rng.normal(size=150)
    x[rng.random(x.shape) < 0.25] = np.nan
    assert (~np.isnan(x).any(axis=1)).sum() < completion.FEW_ROWS
    model = SparseBNNRegressor((2,), n_starts=2, noise="constant", random_state=0, n_jobs=1)
    assert model.fit(x, y).noise_std_ < 0.6
    monkeypatch.setattr(completion, "STEPS_FROM_MEANS", 1)
    assert model.fit(x, y).noise_std_ > 0.7
