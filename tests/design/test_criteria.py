"""Choice of measurements, against closed forms for linear models."""

import numpy as np

from sbnn.design.criteria import improve, reduce_variance


def exact(features, covariance, noise, rows):
    """Posterior covariance of linear weights after noisy measurements at some rows."""
    measured = features[rows]
    precision = np.linalg.inv(covariance) + measured.T @ (measured / noise[rows, None])
    return np.linalg.inv(precision)


def linear_case(n_draws=4000):
    """Draws of f(x) = w₁ + w₂x + w₃x² whose sample covariance is exactly diagonal."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n_draws, 3))
    z -= z.mean(axis=0)
    z @= np.linalg.inv(np.linalg.cholesky(np.cov(z.T))).T
    scale = np.array([1.0, 0.5, 0.8])
    x = np.linspace(-1, 1, 21)
    features = x[:, None] ** np.arange(3)
    noise = 0.1 + 0.3 * (x > 0)
    return features, np.diag(scale**2), noise, (z * scale) @ features.T


def test_variance_falls_as_in_the_exact_posterior_of_a_linear_model():
    features, covariance, noise, draws = linear_case()
    found = reduce_variance(draws[..., None], draws[..., None], noise[:, None], 4)
    total = np.trace(features @ covariance @ features.T)
    for k in range(1, 5):
        left = np.trace(features @ exact(features, covariance, noise, found.rows[:k]) @ features.T)
        np.testing.assert_allclose(1 - left / total, found.gains[:k].sum(), rtol=1e-8)


def test_each_choice_is_the_best_single_one():
    features, covariance, noise, draws = linear_case()
    found = reduce_variance(draws[..., None], draws[..., None], noise[:, None], 3)
    for k in range(3):
        before = found.rows[:k].tolist()
        left = [
            np.trace(features @ exact(features, covariance, noise, [*before, i]) @ features.T)
            if i not in before
            else np.inf
            for i in range(len(features))
        ]
        assert int(np.argmin(left)) == found.rows[k]


def test_noisy_candidates_are_avoided():
    features, _, _, draws = linear_case()
    loud = 0.1 + 30.0 * (features[:, 1:2] > 0)
    found = reduce_variance(draws[..., None], draws[..., None], loud, 5)
    assert (features[found.rows, 1] <= 0).all()
    even = reduce_variance(draws[..., None], draws[..., None], np.full((21, 1), 0.1), 5)
    assert (features[even.rows, 1] > 0).any()


def test_targets_that_move_together_are_measured_together():
    """Two copies of a target with half the noise precision each are one measurement."""
    _, _, noise, draws = linear_case()
    one = reduce_variance(draws[..., None], draws[..., None], noise[:, None], 3)
    twice = np.repeat(draws[..., None], 2, axis=2)
    two = reduce_variance(twice, twice, np.repeat(2 * noise[:, None], 2, axis=1), 3)
    np.testing.assert_array_equal(one.rows, two.rows)
    np.testing.assert_allclose(one.gains, two.gains, rtol=1e-8)


def test_a_batch_has_no_copies():
    _, _, noise, draws = linear_case()
    found = reduce_variance(draws[..., None], draws[..., None], 100 + noise[:, None], 21)
    assert len(set(found.rows.tolist())) == 21


def test_expected_improvement_of_a_normal_value():
    """E max(b − f, 0) = (b − m) Φ(z) + s φ(z); here b = 0, m = 0.5, s = 1."""
    draws = 0.5 + np.random.default_rng(1).normal(size=(200_000, 1))
    found = improve(draws, np.zeros((len(draws), 1)), 1)
    error = np.maximum(-draws, 0).std() / np.sqrt(len(draws))
    assert abs(found.gains[0] - 0.19780) < 4 * error


def test_batch_for_a_minimum_does_not_look_for_it_twice():
    """Candidate 1 equals candidate 0; candidate 2 is worse, but different."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 4000))
    found = improve(np.stack([a, a, 0.5 + b], axis=1), np.zeros((4000, 1)), 2)
    assert sorted(found.rows.tolist()) in ([0, 2], [1, 2])
    assert found.gains[1] > 0


def test_without_any_improvement_the_best_expected_values_come_first():
    draws = np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]])
    found = improve(draws, np.zeros((2, 1)), 3)
    assert found.rows.tolist() == [1, 2, 0]
    assert not found.gains.any()
