"""Baselines: scikit-learn's models with the encoding of the network."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge
from sklearn.preprocessing import StandardScaler

from sbnn.reports import validation
from sbnn.reports.baselines import BASELINES, MAX_GP_ROWS, Baseline


def table(n=80, seed=0):
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({"a": rng.normal(size=n), "k": rng.choice(list("uvw"), size=n)})
    y = np.sin(2 * x["a"]) + x["k"].map({"u": 0.0, "v": 1.0, "w": -1.0})
    return x, y.to_numpy() + 0.1 * rng.normal(size=n)


def test_mean_predicts_mean_and_spread():
    x, y = table()
    found = Baseline("mean").fit(x, y).predictive(x)
    np.testing.assert_allclose(found.mean()[:, 0], y.mean())
    np.testing.assert_allclose(found.std()[:, 0], y.std(ddof=1))
    weights = np.arange(80.0)
    again = Baseline("mean").fit(x, y, sample_weight=weights).predictive(x)
    np.testing.assert_allclose(again.mean()[:, 0], np.average(y, weights=weights))


def test_ridge_is_that_of_scikit_learn_with_dummy_columns():
    x, y = table()
    dummies = pd.get_dummies(x, columns=["k"], dtype=float)
    inputs = StandardScaler().fit_transform(dummies.drop(columns=f"k_{x['k'].mode()[0]}"))
    z = (y - y.mean()) / y.std()
    mean, std = BayesianRidge().fit(inputs, z).predict(inputs, return_std=True)
    mean, std = y.mean() + y.std() * mean, y.std() * std
    found = Baseline("bayesian_ridge").fit(x, y).predictive(x)
    np.testing.assert_allclose(found.mean()[:, 0], mean, rtol=1e-6)
    np.testing.assert_allclose(found.std()[:, 0], std, rtol=1e-6)


@pytest.mark.parametrize("name", BASELINES)
def test_units_of_the_target_do_not_matter(name):
    """Prices in dollars: scikit-learn's own ridge regression then predicts little but the mean."""
    x, y = table()
    found, large = (Baseline(name).fit(x, s * y + s).predictive(x) for s in (1.0, 1e6))
    np.testing.assert_allclose(large.mean() / 1e6, found.mean(), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(large.std() / 1e6, found.std(), rtol=1e-3)


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_predict_gaps_new_categories_and_several_targets(name):
    x, y = table()
    x.loc[3, "a"], x.loc[4, "k"] = np.nan, None
    model = Baseline(name).fit(x, np.column_stack([y, -2 * y]))
    new = x.head(6).copy()
    new.loc[5, "k"] = "new"
    found = model.predictive(new)
    assert found.shape == (6, 2)
    assert np.isfinite(found.mean()).all()
    assert (found.std() >= model.noise_std_at(new) - 1e-9).all()
    known = Baseline(name).fit(x, y, noise_std=np.full((80, 1), 0.1))
    assert np.isfinite(known.predictive(new, noise_std=np.full((6, 1), 0.1)).std()).all()


def test_gaussian_process_is_the_best_of_them_on_a_sine_and_covers():
    x, y = table(200)
    scores = {}
    for name in BASELINES:
        held = validation.cross_validate(lambda name=name: Baseline(name), x, y[:, None], 4)
        scores[name] = {n: v[0] for n, v in held.scores().items()}
    rmse = [scores[name]["rmse"] for name in BASELINES]
    assert rmse[0] > rmse[1] > rmse[2]
    assert all(0.88 <= s["coverage_95"] <= 1.0 for s in scores.values())


def test_long_tables_are_thinned_for_the_gaussian_process(monkeypatch):
    monkeypatch.setattr("sbnn.reports.baselines.MAX_GP_ROWS", 50)
    x, y = table()
    model = Baseline("gaussian_process").fit(x, y)
    assert model.models[0].X_train_.shape[0] == 50
    assert "50 random rows" in model.about(80)[0]
    assert Baseline("mean").about(10 * MAX_GP_ROWS) == []
