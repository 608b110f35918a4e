"""The `Posterior` of results and fitted estimators."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_within_errors

import sbnn
from sbnn.evidence.laplace.models.layout import Layout, exchange, input_gradient
from sbnn.methods.posterior import effect_shares, summary

X_T = np.linspace(-2, 2, 5)[None]


@pytest.fixture(scope="module")
def estimator():
    x = np.linspace(-2, 2, 40)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    return sbnn.SparseBNNRegressor((3,), n_starts=3, random_state=0).fit(x, y)


@pytest.fixture(params=["draws", "laplace"])
def posterior(request, small_result, estimator):
    return small_result.posterior() if request.param == "draws" else estimator.posterior_


def test_posterior_and_result_give_the_same_predictions(small_result):
    posterior = small_result.posterior()
    assert posterior.sampled
    predictive = posterior.predictive(X_T)
    mean, std = small_result.predict(X_T[0])
    np.testing.assert_allclose(predictive.mean()[:, 0], mean)
    np.testing.assert_allclose(predictive.std()[:, 0], std)


def test_function_draws_have_the_moments_of_the_noise_free_predictive(posterior):
    x_t = X_T[:, :1]  # one point: joint draws and the mixture then agree exactly
    function = posterior.predictive(x_t, noise=False)
    n = 20_000
    draws = posterior.sample(x_t, n, np.random.default_rng(1))
    assert draws.shape == (n, 1, 1)
    error = function.std() / np.sqrt(n)
    assert_within_errors(draws.mean(axis=0), function.mean(), error, "mean")
    with pytest.raises(AssertionError):
        assert_within_errors(draws.mean(axis=0) + function.std(), function.mean(), error, "mean")


def test_summary_has_one_row_per_parameter_and_agrees_with_the_draws(posterior):
    table = summary(posterior)
    assert list(table.index) == list(posterior.network.names)
    draws = posterior.parameter_draws(4000, np.random.default_rng(0))
    assert draws.shape[1] == len(table)
    kept = ~table["pruned"].to_numpy()
    spread = table["spread"].to_numpy()[kept]
    centre = np.median(draws, axis=0)[kept]
    # the error of a median of 4,000 Gaussian draws is 1.25 σ/√4000
    assert (
        np.abs(centre - table["median"].to_numpy()[kept]) <= 5 * 1.25 * spread / 60 + 1e-9
    ).all()


def test_shares_of_the_inputs_sum_to_one(posterior):
    shares, spread = posterior.sensitivities(X_T, np.random.default_rng(0))
    np.testing.assert_allclose(shares, 1.0)  # one input
    assert spread.shape == shares.shape


def test_table_and_counts_agree(posterior):
    table, (kept, total) = posterior.table(), posterior.counts
    assert table["n_kept"].sum() == kept
    assert table["n_parameters"].sum() == total
    assert kept <= total


@pytest.mark.parametrize("reference", range(3))
def test_share_of_a_category_does_not_depend_on_the_level_without_a_column(reference):
    """f = 0.5 z + a[level] at n rows: shares are those of the variances."""
    rng = np.random.default_rng(0)
    level, effects = rng.integers(3, size=400), np.array([0.0, 2.0, 2.1])
    others = [k for k in range(3) if k != reference]
    hot = np.array([level == k for k in others], dtype=float)
    scale = hot.std(axis=1)
    z = rng.normal(size=400)
    x_t = np.vstack([(z - z.mean()) / z.std(), (hot - hot.mean(axis=1)[:, None]) / scale[:, None]])
    x_t = np.vstack([x_t, np.zeros(400)])  # constant, with a weight that the data leave free
    slopes = np.r_[0.5, (effects[others] - effects[reference]) * scale, 3.0]
    layout = Layout((4, 1))
    change = exchange(np.r_[slopes, 0.0], x_t, layout, "tanh", np.array([0, 1, 1, 2]))
    shares = effect_shares(change)
    variances = np.array([0.25, effects[level].var(), 0.0])
    np.testing.assert_allclose(shares, variances / variances.sum(), atol=0.03)
    assert shares[2] == 0


def test_share_of_a_binary_input_is_its_share_in_the_variance():
    """f = tanh(20 b) + z with a steep step in b = ±1: the derivative would be near 0 at both."""
    rng = np.random.default_rng(1)
    x_t = np.vstack([rng.choice([-1.0, 1.0], size=400), rng.normal(size=400)])
    # Hidden: tanh(20 b), tanh(0.01 z); output: their sum, the second times 100.
    phi = np.array([20.0, 0.0, 0.0, 0.01, 0.0, 0.0, 1.0, 100.0, 0.0])
    change = exchange(phi, x_t, Layout((2, 2, 1)), "tanh")
    np.testing.assert_allclose(effect_shares(change), 0.5, atol=0.05)
    slopes = input_gradient(phi, x_t, Layout((2, 2, 1)), "tanh")
    assert (slopes[0] ** 2).mean() < 1e-6 * (slopes[1] ** 2).mean()
