"""`method="nsbl"` on larger networks: exact draws of the optima of the Laplace mixture."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from helpers import assert_within_errors, rng
from scipy import stats

import sbnn
from sbnn import SparseBNNRegressor
from sbnn.regressor.exact import left_out
from sbnn.regressor.options import architectures_for, infeasible, samples_optima

X = rng(125).uniform(-2, 2, size=(60, 2))
Y = np.tanh(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng(126).normal(size=60)
OPTIONS = {"noise": "constant", "n_starts": 3, "random_state": 0}
FEW = {"n_particles": 64, "refine": False}


@pytest.fixture(scope="module")
def fitted():
    """Two architectures: more than `sbnn.nsbl` takes."""
    model = SparseBNNRegressor([(2,), (3,)], method="nsbl", method_options=FEW, **OPTIONS)
    return model.fit(X, Y)


def test_exact_draws_of_a_linear_model_predict_as_its_gaussian_posterior():
    y = 3.0 + X @ [2.0, -1.0] + 0.3 * rng(127).normal(size=60)
    exact = SparseBNNRegressor([(), ()], method="nsbl", method_options={"refine": False}, **OPTIONS)
    mean, std = exact.fit(X, y).predict(X, return_std=True)
    expected, spread = SparseBNNRegressor((), **OPTIONS).fit(X, y).predict(X, return_std=True)
    n = len(exact.posterior_.draws[0])
    assert_within_errors(mean, expected, spread / np.sqrt(n))  # the noise has no sampling error
    np.testing.assert_allclose(std, spread, rtol=0.02)


def test_predictions_agree_with_those_of_the_linearised_mixture(fitted):
    linearised = SparseBNNRegressor([(2,), (3,)], **OPTIONS).fit(X, Y)
    mean, std = linearised.predict(X, return_std=True)
    assert (np.abs(fitted.predict(X) - mean) < 0.5 * std).all()
    assert fitted.optima_["weight"].sum() == pytest.approx(1.0)
    gap = fitted.optima_["laplace"] - fitted.optima_["log_evidence"]
    assert (abs(gap) < 5).all()
    assert (fitted.optima_["log_evidence_error"] > 0).all()
    assert fitted.log_evidence_ == pytest.approx(fitted.optima_["log_evidence"].max())


def test_sampled_observations_have_the_predicted_moments(fitted):
    mean, std = fitted.predict(X[:5], return_std=True)
    draws = fitted.sample_y(X[:5], 4000, random_state=0)
    assert_within_errors(draws.mean(axis=1), mean, 1.5 * std / np.sqrt(4000))
    np.testing.assert_allclose(draws.std(axis=1), std, rtol=0.1)


def test_files_and_pickles_keep_the_draws(fitted, tmp_path):
    fitted.save(tmp_path / "m.nc")
    for model in (sbnn.load(tmp_path / "m.nc"), pickle.loads(pickle.dumps(fitted))):
        assert (model.predict(X) == fitted.predict(X)).all()
        assert model.optima_.equals(fitted.optima_)


def test_smaller_forms_predict_from_the_draws(fitted):
    np.testing.assert_allclose(fitted.compact().predict(X), fitted.predict(X), rtol=1e-9)
    single = fitted.compact(single=True)
    assert len(single.optima_) == 1
    assert np.isfinite(single.predict(X)).all()


def test_relevance_of_inputs_follows_from_the_draws(fitted):
    assert fitted.feature_relevance_.sum() == pytest.approx(1.0)
    assert (fitted.feature_relevance_ > 0.02).all()
    assert ((fitted.relevance_ >= 0) & (fitted.relevance_ <= 1)).all()


def test_a_second_run_verifies_the_exact_evidence(fitted):
    found = fitted.verify(key=5, n_particles=64)
    kept = fitted.optima_.loc[found["optimum"]]
    error = np.hypot(found["error"], kept["log_evidence_error"].to_numpy())
    assert_within_errors(found["exact"], kept["log_evidence"].to_numpy(), error)
    np.testing.assert_allclose(found["laplace"], kept["laplace"])


def test_exports_refuse_exact_draws(fitted, tmp_path):
    with pytest.raises(ValueError, match="cannot be exported"):
        fitted.export(tmp_path / "m.json")


def test_only_networks_too_large_for_the_sampler_use_optima():
    assert not samples_optima("nsbl", [((3,),)], 1, 1)
    assert not samples_optima("standard", [((30,),)], 5, 1)
    assert architectures_for("nsbl", "default", 100, 1, 1) == [((3,),)]
    assert architectures_for("nsbl", "default", 100, 8, 1) == [((12,), (8, 6))]
    assert architectures_for("standard", "default", 100, 8, 1) == [((3,),)]
    assert infeasible((20,), 8, 1)["nsbl"] == ""


def test_left_out_densities_are_those_of_a_normal_mean():
    """y ~ N(φ, 1) with a flat prior: without row i, φ ~ N(mean of the others, 1/(n − 1))."""
    r = rng(128)
    y = r.normal(size=15)
    phi = y.mean() + r.normal(size=20_000) / np.sqrt(15)
    found = left_out(stats.norm.logpdf(y, phi[:, None]))
    others = (y.sum() - y) / 14
    np.testing.assert_allclose(found, stats.norm.logpdf(y, others, np.sqrt(15 / 14)), atol=0.03)
    inside = stats.norm.logpdf(y, y.mean(), np.sqrt(16 / 15))
    assert (found < inside).mean() > 0.8  # a row that is left out is less probable


def test_rows_that_count_twice_are_left_out_twice():
    log_density = rng(129).normal(size=(500, 4))
    two = left_out(log_density, np.full(4, 2.0))
    weights = np.exp(-2 * log_density)
    weights = np.minimum(weights, weights.sum(axis=0) / np.sqrt(500))
    expected = np.log((weights * np.exp(log_density)).sum(axis=0) / weights.sum(axis=0))
    np.testing.assert_allclose(two, expected)
