"""Scores against closed forms and numerical integration; push-forward against the network."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_shares, assert_within_errors, rng
from scipy import stats
from scipy.integrate import quad

from sbnn import scores as predict
from sbnn.problems.network import Network, check_inputs, push_forward

WEIGHTS = np.array([0.2, 0.5, 0.3])
MEANS = np.array([[-1.0, 0.0], [0.5, 2.0], [2.0, -3.0]])
STDS = np.array([[0.5, 1.0], [0.2, 0.7], [1.0, 2.0]])
Y = np.array([0.3, 1.0])


def normal_crps(y, mean, std):
    """Gneiting & Raftery (2007), Eq. (5): σ[z(2Φ(z) − 1) + 2φ(z) − 1/√π]."""
    z = (y - mean) / std
    return std * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))


def mixture_cdf(t, column):
    return float(WEIGHTS @ stats.norm.cdf(t, MEANS[:, column], STDS[:, column]))


def test_push_forward_is_the_network_at_every_draw():
    net = Network((2, 3, 2))
    phi, x = rng(10).normal(size=(70, net.n_parameters + 2)), rng(11).normal(size=(4, 2))
    values = push_forward(net, phi, x)
    assert values.shape == (70, 4, 2)
    assert values.dtype == np.float64
    for i in (0, 69):
        (w1, b1), (w2, b2) = net.unflatten(phi[i, :-2])
        np.testing.assert_allclose(values[i], np.tanh(x @ w1.T + b1) @ w2.T + b2, rtol=1e-12)


def test_inputs_are_brought_to_rows_and_columns():
    one, two = Network((1, 1)), Network((2, 1))
    assert check_inputs(one, 0.5).shape == (1, 1)
    assert check_inputs(one, [1, 2, 3]).shape == (3, 1)
    assert check_inputs(two, [1, 2]).shape == (1, 2)
    with pytest.raises(ValueError, match=r"2 column\(s\).*got shape \(3, 1\)"):
        check_inputs(two, np.ones((3, 1)))
    with pytest.raises(ValueError, match="NaN or infinite"):
        check_inputs(one, [1.0, np.nan])


def test_rmse_and_width_are_the_formulas():
    assert predict.rmse([0.0, 0.0], [3.0, 4.0]) == pytest.approx(np.sqrt(12.5), rel=1e-14)
    assert predict.interval_width([0.0, 1.0], [1.0, 4.0]) == 2.0


def test_crps_of_draws_is_unbiased_for_a_normal():
    y, exact = 0.7, normal_crps(0.7, 0.2, 1.3)
    replicates = [
        predict.crps_draws(np.array([y]), rng(12, i).normal(0.2, 1.3, size=(10, 1)))
        for i in range(900)
    ]
    error = np.std(replicates, ddof=1) / 30
    assert_within_errors(np.mean(replicates), exact, error, "CRPS")
    # The biased estimator with the divisor n² is off by more than the check allows.
    biased = np.mean(replicates) + 1.3 / np.sqrt(np.pi) / 10
    with pytest.raises(AssertionError):
        assert_within_errors(biased, exact, error, "CRPS")


def test_crps_of_draws_is_the_double_sum():
    draws, y = rng(13).normal(size=(30, 3)), np.array([0.1, -1.0, 2.0])
    pairs = np.abs(draws[:, None] - draws[None]).sum(axis=(0, 1)) / (30 * 29)
    expected = np.mean(np.abs(draws - y).mean(axis=0) - 0.5 * pairs)
    assert predict.crps_draws(y, draws) == pytest.approx(expected, rel=1e-12)


def test_crps_of_one_component_is_that_of_the_normal():
    expected = np.mean(normal_crps(Y, MEANS[0], STDS[0]))
    assert predict.crps_mixture(Y, MEANS[0], STDS[0]) == pytest.approx(expected, rel=1e-12)


def test_crps_of_a_mixture_is_the_integral_of_the_squared_cdf_difference():
    total = 0.0
    for j, y in enumerate(Y):
        below = quad(lambda t, j=j: mixture_cdf(t, j) ** 2, -25, y, limit=200, points=[-3, 0])[0]
        above = quad(lambda t, j=j: (1 - mixture_cdf(t, j)) ** 2, y, 25, limit=200, points=[2, 4])[
            0
        ]
        total += below + above
    found = predict.crps_mixture(Y, MEANS, STDS, WEIGHTS)
    assert found == pytest.approx(total / 2, rel=1e-6)
    assert predict.crps_mixture(Y, MEANS, STDS) != pytest.approx(total / 2, rel=1e-3)


def test_nlpd_is_the_mean_negative_log_of_the_mixture_density():
    density = (WEIGHTS[:, None] * stats.norm.pdf(Y, MEANS, STDS)).sum(axis=0)
    found = predict.nlpd(Y, MEANS, STDS, WEIGHTS)
    assert found == pytest.approx(-np.log(density).mean(), rel=1e-12)
    assert predict.nlpd(Y, MEANS, STDS, 7 * WEIGHTS) == pytest.approx(found, rel=1e-12)
    far = predict.nlpd(np.array([1e4, 1e4]), MEANS, STDS, WEIGHTS)
    assert np.isfinite(far)  # in logarithms nothing underflows


@pytest.mark.parametrize("q", [1e-6, 0.05, 0.5, 0.95])
def test_the_quantile_undoes_the_cdf(q):
    at = predict.mixture_quantile(q, MEANS, STDS, WEIGHTS)
    np.testing.assert_allclose([mixture_cdf(at[j], j) for j in range(2)], q, rtol=1e-9)
    np.testing.assert_allclose(predict.pit_mixture(at, MEANS, STDS, WEIGHTS), q, rtol=1e-9)


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, np.nan])
def test_quantiles_outside_zero_and_one_are_refused(q):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        predict.mixture_quantile(q, MEANS, STDS)


@pytest.mark.parametrize("weights", [[1.0], [0.5, 0.7, -0.2], [0.0, 0.0, 0.0]])
def test_impossible_weights_are_refused(weights):
    with pytest.raises(ValueError, match="3 non-negative numbers"):
        predict.nlpd(Y, MEANS, STDS, weights)


def test_a_component_of_weight_zero_does_not_count():
    expected = predict.nlpd(Y, MEANS[:2], STDS[:2], [0.5, 0.5])
    assert predict.nlpd(Y, MEANS, STDS, [0.5, 0.5, 0.0]) == pytest.approx(expected, rel=1e-12)


def observations(n):
    generator = rng(14)
    kind = generator.choice(3, size=n, p=WEIGHTS)
    return generator.normal(MEANS[kind, 0], STDS[kind, 0])


def test_pit_is_uniform_when_the_prediction_is_right_and_not_when_it_is_wrong():
    y = observations(2000)
    means, stds = np.tile(MEANS[:, :1], 2000), np.tile(STDS[:, :1], 2000)
    pit = predict.pit_mixture(y, means, stds, WEIGHTS)
    assert stats.kstest(pit, "uniform").pvalue > 1e-4
    assert stats.kstest(predict.pit_mixture(y, means, stds), "uniform").pvalue < 1e-4
    kind = rng(15).choice(3, size=(999, 2000), p=WEIGHTS)
    draws = rng(16).normal(MEANS[kind, 0], STDS[kind, 0])
    assert stats.kstest(predict.pit_draws(y, draws), "uniform").pvalue > 1e-4


def test_intervals_between_quantiles_cover_their_share():
    y = observations(2000)
    low, high = (predict.mixture_quantile(q, MEANS, STDS, WEIGHTS)[0] for q in (0.05, 0.95))
    inside = predict.coverage(y, low, high)
    assert_shares([2000 * inside, 2000 * (1 - inside)], [0.9, 0.1])
    assert predict.coverage([0.0, 1.0, 2.0], 0.0, 1.0) == pytest.approx(2 / 3)
