"""Predictions of fits to few rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from sbnn.evidence.laplace import calibration
from sbnn.evidence.laplace.fit import DEFAULT, fit
from sbnn.evidence.laplace.mixture import components, predictive, sample
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import initial, log_evidence
from sbnn.evidence.laplace.stages import with_intercepts
from sbnn.likelihoods import Gaussian, VaryingGaussian
from sbnn.scores import NormalMixture

QUICK = replace(DEFAULT, n_starts=2)


def rows(n, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.7, 1.7, (1, n))
    y = np.sin(2 * x) + noise * rng.normal(size=(1, n))
    return NetworkModel(x_t=x, y_t=(y - y.mean()) / y.std(), sizes=(1, 3, 1))


def constant(model):
    """The optimum without any weight but the output bias."""
    opt = initial(model, np.random.default_rng(0))
    bare = opt.without(opt.active)
    return bare, with_intercepts(model, bare)


def test_error_of_the_mean_is_part_of_a_constant():
    model = rows(12)
    bare, opt = constant(model)
    assert len(bare.active) == 0
    assert len(opt.active) == 1
    noise = np.exp(2 * opt.noise[0, 0])
    _, precision = log_evidence(model, opt)
    # A mean with prior N(0, 1): 1/(n/σ² + 1).
    np.testing.assert_allclose(
        precision.variance(np.ones((1, 1))), 1 / (12 / noise + 1), rtol=1e-12
    )
    assert with_intercepts(model, opt) is opt


def test_inflation_of_a_constant_is_that_of_left_out_means(monkeypatch):
    """Without any weights, left-out rows have the mean 0 and the noise of the other rows."""
    model = rows(8)
    bare, _ = constant(model)
    folds = np.random.default_rng(0).permutation(8) % 8
    squares = []
    for k in range(8):
        out = np.flatnonzero(folds == k)
        # σ² = mean y² is the fixed point of the update; it starts at the spread and moves there.
        left = np.delete(model.y_t[0], out)
        squares.append(float(model.y_t[0, out[0]] ** 2 / np.mean(left**2)))
    monkeypatch.setattr(calibration, "AGAIN", 60)
    found = calibration.inflation([(model, bare)], np.ones(1), DEFAULT)
    want = np.sqrt(np.mean(squares))
    assert want > stats.t.ppf(0.975, 8) / stats.norm.ppf(0.975)  # which does not decide here
    assert found == pytest.approx(want, rel=0.02)


@pytest.mark.parametrize("too_sure", [0.5, 1.0, 2.0])
def test_the_larger_of_measured_and_theoretical_inflation_counts(monkeypatch, too_sure):
    """An intercept takes γ degrees of freedom; errors are `too_sure` predicted ones."""
    model = rows(8)
    _, opt = constant(model)
    gamma = log_evidence(model, opt)[1].relevance().sum()
    assert 0.8 < gamma < 1.0
    predicted = np.sqrt(np.mean(model.y_t**2)) / too_sure
    sure = lambda m, o, out, options: NormalMixture(
        np.ones((1, 1, len(out))),
        np.zeros((1, 1, len(out))),
        np.full((1, 1, len(out)), predicted),
    )
    monkeypatch.setattr(calibration, "_left_out", sure)
    found = calibration.inflation([(model, opt)], np.ones(1), DEFAULT)
    scale = stats.t.ppf(0.975, 8 - gamma) / stats.norm.ppf(0.975)
    assert 1.0 < scale < 2.0
    assert found == pytest.approx(max(too_sure, scale), rel=1e-12)


def test_many_rows_and_known_noise_are_not_inflated():
    many, known = rows(61), replace(rows(20), noise=np.zeros((1, 1)))
    for model in (many, known):
        opt = initial(model, np.random.default_rng(0))
        assert calibration.inflation([(model, opt)], np.ones(1), DEFAULT) == 1.0


@pytest.mark.parametrize("kind", [Gaussian(), VaryingGaussian()])
def test_inflation_scales_the_standard_deviation(kind):
    model = rows(40).with_likelihood(kind)
    mixture = fit([[model]], np.random.default_rng(0), QUICK)
    plain, wide = (replace(mixture, inflation=c) for c in (1.0, 1.5))
    x = np.linspace(-1, 1, 7)[None]
    np.testing.assert_array_equal(
        components(plain, x).mean[..., 0], components(wide, x).mean[..., 0]
    )
    if len(mixture.optima) == 1:
        before, after = predictive(plain, x).std(), predictive(wide, x).std()
        # The uncertainty of an output log σ, which is inflated too, raises the mean of σ².
        assert (after > 1.5 * before * (1 - 1e-12)).all()
        np.testing.assert_allclose(after, 1.5 * before, rtol=1e-10 if kind == Gaussian() else 0.1)
    draws = [sample(m, x, 4000, np.random.default_rng(0), noise=True) for m in (plain, wide)]
    ratio = draws[1].std(axis=0) / draws[0].std(axis=0)
    assert (ratio > 1.2).all()


def test_few_rows_are_covered_and_without_inflation_they_are_not():
    """Mean coverage of 95 % intervals at ten rows, 24 repeats of 200 new rows."""
    inside = {True: [], False: []}
    for seed in range(24):
        rng = np.random.default_rng([3, seed])
        x, new = rng.uniform(-1.7, 1.7, (1, 8)), rng.uniform(-1.7, 1.7, (1, 200))
        y, there = (np.sin(2 * v) + 0.2 * rng.normal(size=v.shape) for v in (x, new))
        model = NetworkModel(x_t=x, y_t=y, sizes=(1, 3, 1))
        mixture = fit([[model]], np.random.default_rng(0), QUICK)
        for used in inside:
            found = mixture if used else replace(mixture, inflation=1.0)
            low, high = predictive(found, new).quantiles((0.025, 0.975))
            inside[used].append(np.mean((low[:, 0] <= there[0]) & (there[0] <= high[:, 0])))
    error = np.std(inside[True]) / np.sqrt(24)
    assert np.mean(inside[True]) > 0.95 - 3 * error
    assert np.mean(inside[False]) < np.mean(inside[True]) - 0.02
