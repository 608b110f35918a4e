"""Scores against closed forms and numerical integration; push-forward against the network."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_shares, assert_within_errors, rng
from scipy import stats
from scipy.integrate import quad

from sbnn import scores
from sbnn.problems.network import Network, check_inputs, push_forward
from sbnn.scores import NormalMixture

WEIGHTS = np.array([0.2, 0.5, 0.3])
MEANS = np.array([[-1.0, 0.0], [0.5, 2.0], [2.0, -3.0]])
STDS = np.array([[0.5, 1.0], [0.2, 0.7], [1.0, 2.0]])
Y = np.array([0.3, 1.0])
MIXTURE = NormalMixture(WEIGHTS, MEANS, STDS)
EQUAL = NormalMixture.of_draws(MEANS, STDS)


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


def test_inputs_are_reshaped_to_rows_and_columns():
    one, two = Network((1, 1)), Network((2, 1))
    assert check_inputs(one, 0.5).shape == (1, 1)
    assert check_inputs(one, [1, 2, 3]).shape == (3, 1)
    assert check_inputs(two, [1, 2]).shape == (1, 2)
    with pytest.raises(ValueError, match="x has no rows"):
        check_inputs(two, np.zeros((0, 2)))
    with pytest.raises(ValueError, match=r"2 column\(s\).*got shape \(3, 1\)"):
        check_inputs(two, np.ones((3, 1)))
    with pytest.raises(ValueError, match="NaN or infinite"):
        check_inputs(one, [1.0, np.nan])


def test_rmse_and_width_are_the_formulas():
    assert scores.rmse([0.0, 0.0], [3.0, 4.0]) == pytest.approx(np.sqrt(12.5), rel=1e-14)
    assert scores.interval_width([0.0, 1.0], [1.0, 4.0]) == 2.0


def test_crps_of_draws_is_unbiased_for_a_normal():
    y, exact = 0.7, normal_crps(0.7, 0.2, 1.3)
    replicates = [
        scores.crps_draws(np.array([y]), rng(12, i).normal(0.2, 1.3, size=(10, 1)))
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
    assert scores.crps_draws(y, draws) == pytest.approx(expected, rel=1e-12)


def test_crps_of_one_component_is_that_of_the_normal():
    one = NormalMixture([1.0], MEANS[:1], STDS[:1])
    np.testing.assert_allclose(one.crps(Y), normal_crps(Y, MEANS[0], STDS[0]), rtol=1e-12)


def test_crps_of_a_mixture_is_the_integral_of_the_squared_cdf_difference():
    found, equal = MIXTURE.crps(Y), EQUAL.crps(Y)
    for j, y in enumerate(Y):
        square = lambda t, j, above: (mixture_cdf(t, j) - above) ** 2
        below = quad(square, -25, y, (j, 0), limit=200, points=[-3, 0])[0]
        above = quad(square, y, 25, (j, 1), limit=200, points=[2, 4])[0]
        assert found[j] == pytest.approx(below + above, rel=1e-6)
        assert equal[j] != pytest.approx(below + above, rel=1e-3)


def test_crps_of_many_components_is_approximated_by_a_few():
    generator = rng(17)
    means = np.sort(generator.normal(size=(3000, 5, 1)), axis=0)
    weights = generator.dirichlet(np.ones(3000), size=5).T[..., None]
    many, y = NormalMixture(weights, means, 0.3), generator.normal(size=(5, 1))
    np.testing.assert_allclose(many.crps(y), many.crps(y, max_components=3000), rtol=0.01)


def test_nlpd_is_the_mean_negative_log_of_the_mixture_density():
    density = (WEIGHTS[:, None] * stats.norm.pdf(Y, MEANS, STDS)).sum(axis=0)
    assert scores.nlpd(Y, MIXTURE) == pytest.approx(-np.log(density).mean(), rel=1e-12)
    far = scores.nlpd(np.array([1e4, 1e4]), MIXTURE)
    assert np.isfinite(far)  # logarithms do not underflow


def test_component_densities_average_to_that_of_the_mixture():
    average = (WEIGHTS[:, None] * np.exp(MIXTURE.component_log_density(Y))).sum(axis=0)
    np.testing.assert_allclose(np.log(average), MIXTURE.log_density(Y), rtol=1e-12)


def test_moments_of_a_mixture_are_those_of_its_density():
    for j in range(2):
        density = lambda t, j=j: WEIGHTS @ stats.norm.pdf(t, MEANS[:, j], STDS[:, j])
        moment = lambda k, density=density: quad(
            lambda t: t**k * density(t), -25, 25, limit=200, points=[-3, 0, 2]
        )[0]
        assert MIXTURE.mean()[j] == pytest.approx(moment(1), rel=1e-8)
        assert MIXTURE.std()[j] == pytest.approx(np.sqrt(moment(2) - moment(1) ** 2), rel=1e-8)


@pytest.mark.parametrize("q", [1e-6, 0.05, 0.5, 0.95])
def test_quantile_inverts_the_cdf(q):
    (at,) = MIXTURE.quantiles([q])
    np.testing.assert_allclose([mixture_cdf(at[j], j) for j in range(2)], q, rtol=1e-9)
    np.testing.assert_allclose(MIXTURE.cdf(at), q, rtol=1e-9)


@pytest.mark.parametrize("q", [1e-6, 0.3, 0.975])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_quantiles_of_one_normal_and_of_equal_components_are_exact(q, scale):
    expected = stats.norm.ppf(q, MEANS[0], STDS[0]) * scale
    one = NormalMixture([1.0], MEANS[:1], STDS[:1]).rescaled(scale)
    same = NormalMixture.of_draws(np.repeat(MEANS[:1], 4, axis=0), STDS[:1]).rescaled(scale)
    unused = NormalMixture([1.0, 0.0], MEANS[:2], STDS[:2]).rescaled(scale)
    for mixture in (one, same, unused):
        np.testing.assert_allclose(mixture.quantiles([q])[0], expected, rtol=1e-9)


def test_quantiles_without_noise_are_those_of_the_draws():
    """At level 0.45 of ten equally weighted points the CDF steps from 0.4 to 0.5 at the fifth."""
    points = rng(18).normal(size=(10, 3))
    (at,) = NormalMixture.of_draws(points, 0.0).quantiles([0.45])
    np.testing.assert_allclose(at, np.sort(points, axis=0)[4], rtol=1e-9)


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, np.nan])
def test_quantiles_need_levels_between_zero_and_one(q):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        MIXTURE.quantiles([q])


@pytest.mark.parametrize("weights", [[1.0], [0.5, 0.7, -0.2], [0.0, 0.0, 0.0], [0.5, 0.5, 0.5]])
def test_impossible_weights_raise_an_error(weights):
    with pytest.raises(ValueError, match="3 non-negative numbers that sum to one"):
        NormalMixture(weights, MEANS, STDS)


def test_component_of_weight_zero_does_not_count():
    two, three = (
        NormalMixture(weights, MEANS[: len(weights)], STDS[: len(weights)])
        for weights in ([0.5, 0.5], [0.5, 0.5, 0.0])
    )
    np.testing.assert_allclose(three.log_density(Y), two.log_density(Y), rtol=1e-12)
    np.testing.assert_allclose(three.crps(Y), two.crps(Y), rtol=1e-12)


def test_weights_may_differ_from_point_to_point():
    both = NormalMixture(np.stack([WEIGHTS, WEIGHTS[::-1]], axis=1), MEANS, STDS)
    for j, weights in enumerate((WEIGHTS, WEIGHTS[::-1])):
        one = NormalMixture(weights, MEANS[:, [j]], STDS[:, [j]])
        for name in ("log_density", "crps", "cdf"):
            assert getattr(both, name)(Y)[j] == pytest.approx(getattr(one, name)(Y[[j]])[0])
        assert both[j].quantiles([0.2])[0] == pytest.approx(one.quantiles([0.2])[0, 0])
    again = NormalMixture.of_draws(MEANS, STDS).reweighted(both.weights)
    np.testing.assert_array_equal(again.log_density(Y), both.log_density(Y))


def test_rescaled_mixture_is_the_distribution_of_the_rescaled_variable():
    scale, shift = np.array([-2.0, 10.0]), np.array([1.0, -3.0])
    other = MIXTURE.rescaled(scale, shift)
    np.testing.assert_allclose(other.mean(), scale * MIXTURE.mean() + shift)
    np.testing.assert_allclose(other.std(), np.abs(scale) * MIXTURE.std())
    at = scale * Y + shift
    np.testing.assert_allclose(other.crps(at), np.abs(scale) * MIXTURE.crps(Y))
    np.testing.assert_allclose(other.log_density(at), MIXTURE.log_density(Y) - np.log(abs(scale)))
    below = MIXTURE.cdf(Y)
    np.testing.assert_allclose(other.cdf(at), [1 - below[0], below[1]])


def observations(n):
    generator = rng(14)
    kind = generator.choice(3, size=n, p=WEIGHTS)
    return generator.normal(MEANS[kind, 0], STDS[kind, 0])


def test_pit_is_uniform_when_the_prediction_is_right_and_not_when_it_is_wrong():
    y = observations(2000)
    means, stds = np.tile(MEANS[:, :1], 2000), np.tile(STDS[:, :1], 2000)
    pit = NormalMixture(WEIGHTS, means, stds).cdf(y)
    assert stats.kstest(pit, "uniform").pvalue > 1e-4
    wrong = NormalMixture.of_draws(means, stds).cdf(y)
    assert stats.kstest(wrong, "uniform").pvalue < 1e-4
    kind = rng(15).choice(3, size=(999, 2000), p=WEIGHTS)
    draws = rng(16).normal(MEANS[kind, 0], STDS[kind, 0])
    assert stats.kstest(scores.pit_draws(y, draws), "uniform").pvalue > 1e-4


def test_quantile_intervals_have_nominal_coverage():
    y = observations(2000)
    low, high = MIXTURE.quantiles([0.05, 0.95])[:, 0]
    inside = scores.coverage(y, low, high)
    assert_shares([2000 * inside, 2000 * (1 - inside)], [0.9, 0.1])
    assert scores.coverage([0.0, 1.0, 2.0], 0.0, 1.0) == pytest.approx(2 / 3)
