"""Noise models of the regressor: every one predicts, scores, compacts, saves and loads."""

from __future__ import annotations

import numpy as np
import pytest

import sbnn
from sbnn import SparseBNNRegressor
from sbnn.evidence.laplace import noise_choice

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(60, 1))
Y = X[:, 0] + 0.3 * RNG.normal(size=60)
OUTLIERS = Y.copy()
OUTLIERS[[5, 20, 40]] += [30.0, -30.0, 25.0]
TARGETS = {"one": Y, "outliers": OUTLIERS, "two": np.column_stack([Y, Y**2])}
MODELS = ("constant", "varying", "student_t", "varying_student_t")


def fit(noise, y=Y, **options):
    return SparseBNNRegressor((2,), noise=noise, n_starts=4, random_state=0, **options).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("noise", MODELS)
def test_every_noise_model_gives_finite_intervals_and_densities(noise, target, tmp_path):
    y = TARGETS[target]
    model = fit(noise, y)
    mean, interval = model.predict(X, return_interval=0.9)
    assert np.isfinite(interval).all()
    assert ((interval[..., 0] < mean) & (mean < interval[..., 1])).all()
    density = model.log_predictive_density(X, y)
    assert density.shape == y.shape
    assert np.isfinite(density).all()
    assert model.sample_y(X[:3], 5).shape == (*y[:3].shape, 5)
    np.testing.assert_allclose(
        model.compact().predict(X), mean, atol=0.01 * np.ptp(y, axis=0).max()
    )
    model.save(tmp_path / "model.nc")
    loaded = sbnn.load(tmp_path / "model.nc")
    np.testing.assert_array_equal(loaded.predict(X, return_interval=0.9)[1], interval)


def test_interval_is_the_quantile_of_the_predictive_distribution():
    """90 % of draws of a heavy-tailed prediction are inside its 90 % interval."""
    model = fit("student_t", OUTLIERS)
    _, interval = model.predict(X[:10], return_interval=0.9)
    draws = model.sample_y(X[:10], 4000)
    inside = ((interval[:, :1] < draws) & (draws < interval[:, 1:])).mean()
    assert inside == pytest.approx(0.9, abs=4 * np.sqrt(0.9 * 0.1 / 4000))


@pytest.mark.parametrize("noise", MODELS)
def test_typical_noise_holds_68_percent_of_the_noise(noise):
    model = fit(noise)
    typical, scale = model.typical_noise_at(X[:5]), model._scaling.y_scale
    noise_alone = model.posterior_.noise_at(model._scaling.inputs(X[:5])).rescaled(scale)
    inside = noise_alone.cdf(typical[:, None]) - noise_alone.cdf(-typical[:, None])
    np.testing.assert_allclose(inside, 0.6827, atol=1e-4)
    if "student" not in noise:
        np.testing.assert_allclose(typical, model.noise_std_at(X[:5]), rtol=0.02)


def test_typical_noise_is_not_enlarged_by_outliers():
    """400 rows with noise of 0.3 and 6 gross outliers: the std is 1.6 times as large, or more."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (400, 2))
    y = np.sin(x[:, 0]) + 0.5 * x[:, 1] + 0.3 * rng.normal(size=400)
    y[rng.choice(400, 6, replace=False)] += rng.choice([-10.0, 10.0], 6)
    model = SparseBNNRegressor((4,), noise="student_t", n_starts=4, random_state=0).fit(x, y)
    typical = model.typical_noise_at(x)
    assert typical.shape == (400,)
    np.testing.assert_allclose(typical, 0.3, rtol=0.15)
    assert model.noise_std_ > 1.5 * 0.3


def test_student_t_noise_resists_gross_outliers():
    """Three outliers ruin a Gaussian fit and hardly move a Student-t fit."""
    grid = np.linspace(-2, 2, 30)[:, None]
    error = lambda noise: np.sqrt(np.mean((fit(noise, OUTLIERS).predict(grid) - grid[:, 0]) ** 2))
    assert error("student_t") < 0.25 < error("constant")


def test_varying_noise_follows_the_inputs():
    """σ(0.6)/σ(−0.6) = 2.85; with constant noise the ratio is about one."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, size=(200, 1))
    y = x[:, 0] + (0.5 + 0.4 * x[:, 0]) * rng.normal(size=200)
    ratios = {}
    for noise in ("varying", "constant"):
        model = SparseBNNRegressor((3,), noise=noise, n_starts=4, random_state=0).fit(x, y)
        left, right = model.predict([[-0.6], [0.6]], return_std=True)[1]
        ratios[noise] = right / left
    assert 2.0 < ratios["varying"] < 4.0
    assert ratios["constant"] < 1.2


def test_constant_target_gives_a_small_finite_noise_level():
    model = fit("student_t", np.full(60, 3.0))
    assert 0 < model.noise_std_ < 1e-3


def test_noise_std_per_observation_raises_in_the_constructor():
    with pytest.raises(ValueError, match=r"one number or one per output \(1\); got shape \(60,\)"):
        fit("constant", noise_std=np.full(60, 0.3))


def test_noise_std_with_another_noise_model_raises():
    with pytest.raises(ValueError, match="standard deviation of Gaussian noise"):
        fit("student_t", noise_std=0.3)


@pytest.mark.parametrize("n_samples", [0, -1, 1.5])
def test_sample_y_rejects_impossible_numbers_of_draws(n_samples):
    with pytest.raises(ValueError, match="`n_samples` must be a whole number ≥ 1"):
        fit("constant").sample_y(X[:1], n_samples)


def test_a_fit_that_ends_before_the_comparison_of_noise_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(noise_choice, "_dense_stage", lambda stage, starts, n, options: starts)
    model = fit("auto")
    assert model.noise_used_ == "constant"
    assert str(model.noise_reason_).startswith("kinds of noise were not compared")
    assert list(model.noise_trials_["noise"]) == ["constant"]
    model.save(tmp_path / "model.nc")
    again = sbnn.load(tmp_path / "model.nc")
    assert again.noise_reason_ == model.noise_reason_
