"""`SparseBNNRegressor.verify`: exact where Laplace is exact, and what it needs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from helpers import N_ERRORS, assert_within_errors, keys, rng

import sbnn
from sbnn import SparseBNNRegressor

X = rng(95).normal(size=(40, 2))
Y = 3.0 + X @ [2.0, -1.0] + 0.3 * rng(96).normal(size=40)


@pytest.fixture(scope="module")
def linear():
    """A linear model, for which the Laplace evidence is exact."""
    model = SparseBNNRegressor((), noise="constant", n_starts=2, random_state=0)
    return model.fit(X, Y)


def test_the_exact_evidence_of_a_linear_model_is_that_of_laplace(linear):
    found = linear.verify(key=keys(1)[0], n_particles=64)
    assert linear.verified_
    assert linear.verification_ is found
    assert abs(found["gap"]).max() < 0.01  # the fit stops within this of the mode
    np.testing.assert_allclose(found["laplace"], linear.optima_["log_evidence"])


def test_evidence_without_any_weight_is_that_of_a_mean():
    design = np.column_stack([np.ones(40), X])
    y = Y - design @ np.linalg.lstsq(design, Y, rcond=None)[0]  # not a linear function of X
    model = SparseBNNRegressor((), noise="constant", n_starts=2, random_state=0).fit(X, y / y.std())
    assert model.optima_["n_kept"].tolist() == [1]
    found = model.verify(n_particles=64)
    # The noise with the largest evidence has the variance of y, which is one. The mean of y is
    # zero, and its prior N(0, 1).
    evidence = -20.0 * (np.log(2 * np.pi) + 1.0) - 0.5 * np.log(41.0)
    np.testing.assert_allclose(found["laplace"], evidence, atol=1e-3)
    np.testing.assert_allclose(found["exact"], evidence, atol=N_ERRORS * found["error"][0] + 1e-3)
    assert model.verified_


@pytest.mark.parametrize("noise", ["constant", "varying_student_t"])
def test_every_optimum_in_use_is_verified(noise):
    r = rng(97)
    x = r.uniform(-2, 2, size=(50, 1))
    y = np.tanh(2 * x[:, 0]) + 0.1 * r.normal(size=50)
    model = SparseBNNRegressor((2,), noise=noise, n_starts=2, random_state=0).fit(x, y)
    found = model.verify(key=keys(1)[0], n_particles=128)
    assert (found["weight"] >= 1e-3).all()
    assert found["weight"].sum() > 0.99
    assert (found["n_kept"] == model.optima_["n_kept"][found["optimum"]].to_numpy()).all()
    np.testing.assert_allclose(found["gap"], found["laplace"] - found["exact"])
    assert (abs(found["exact"] - found["forward"]) < N_ERRORS * found["error"] + 0.5).all()


def test_weights_of_rows_count_as_repetitions():
    weights = np.repeat([1.0, 2.0], 20)
    options = {"noise": "constant", "n_starts": 2, "random_state": 0}
    one = SparseBNNRegressor((), **options).fit(X, Y, sample_weight=weights)
    many = np.repeat(np.arange(40), weights.astype(int))
    two = SparseBNNRegressor((), **options).fit(X[many], Y[many])
    found = [m.verify(n_particles=64)["exact"][0] for m in (one, two)]
    assert found[0] == found[1]


def test_known_errors_of_rows_enter_the_exact_evidence():
    errors = np.linspace(0.2, 0.5, 40)
    model = SparseBNNRegressor((), n_starts=2, random_state=0).fit(X, Y, noise_std=errors)
    found = model.verify(n_particles=64)
    assert_within_errors(found["exact"][0], found["laplace"][0], found["error"][0] + 1e-6)


def test_a_model_without_its_data_cannot_be_verified(linear):
    restored = pickle.loads(pickle.dumps(linear))
    with pytest.raises(ValueError, match="call it after `fit`"):
        restored.verify()


def test_methods_without_a_laplace_approximation_cannot_be_verified():
    model = SparseBNNRegressor((2,), method="last_layer", n_starts=2, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="Laplace approximation"):
        model.verify()


@pytest.mark.parametrize("n", [0, -5, 49, 64.5, True])
def test_too_few_particles_are_refused(linear, n):
    with pytest.raises(ValueError, match="`n_particles` must be a whole number of at least 50"):
        linear.verify(n_particles=n)
    problem = sbnn.network_problem(X[:, 0], Y, hidden_layer_sizes=(1,), noise_std=0.1)
    with pytest.raises(ValueError, match="`n_particles` must be a whole number of at least 50"):
        sbnn.exact_evidence(problem, np.zeros(4), n_particles=n)


def test_optima_that_time_does_not_suffice_for_are_not_verified(linear, capsys):
    linear.set_params(verbose=True)
    found = linear.verify(n_particles=64, time_limit=1e-9)
    linear.set_params(verbose=False)
    assert found["exact"].isna().all()
    assert set(found["reason"]) == {"there was no time left"}
    assert not linear.verified_
    np.testing.assert_allclose(found["laplace"], linear.optima_["log_evidence"])
    assert "sbnn: optimum 1 of 1" in capsys.readouterr().err
    assert linear.verify(n_particles=64, time_limit=1e6)["verified"].all()
    with pytest.raises(ValueError, match="`time_limit` must be seconds above 0"):
        linear.verify(time_limit=0)
