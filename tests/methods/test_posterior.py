"""The `Posterior` of results and fitted estimators."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_within_errors

import sbnn
from sbnn.methods.posterior import summary

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
