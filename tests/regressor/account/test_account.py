"""The account of a predictor: counts, the loss of inputs, single networks, formulas."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import sbnn
from sbnn import SparseBNNRegressor
from sbnn.regressor.account.counts import SUFFICIENT, account_of
from sbnn.regressor.account.formula import formula_of
from sbnn.regressor.account.left_out import LeftOut
from sbnn.regressor.data.scaling import Scaling

SIGMA = 0.3


def table(n=150, seed=0):
    """y depends on a (or its near copy), on the city, and not on the noise columns."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(5, 2, n), "of no use": rng.normal(size=n)})
    X["copy of a"] = X["a"] + 0.1 * rng.normal(size=n)
    X["city"] = rng.choice(["Bern", "Oslo", "Rome"], n)
    y = 3 * np.tanh(X["a"] / 3 - 1) + 2 * (X["city"] == "Oslo") + SIGMA * rng.normal(size=n)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    options = {"noise": "constant", "n_starts": 6, "random_state": 0}
    return SparseBNNRegressor([(3,), (2, 2)], **options).fit(X, y), X, y


@pytest.fixture(scope="module")
def linear():
    """One linear neuron: removals can be computed by least squares."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + 0.5 * X[:, 1] + SIGMA * rng.normal(size=200)
    model = SparseBNNRegressor((1,), "identity", noise="constant", n_starts=2, random_state=0)
    return model.fit(X, y), X, y


# ----------------------------------------------------------------------------------- counts
def test_counts_are_those_of_all_networks_that_predict(fitted):
    model = fitted[0]
    account, optima = model.account_, model.posterior_.mixture.optima
    assert account.n_optima == len(model.optima_) == len(optima) > 1
    weights = [(opt.phi != 0).sum() for opt in optima]
    assert account.n_kept == model.n_parameters_kept_ == sum(weights)
    assert (account.fewest, account.most) == (min(weights), max(weights))
    assert account.n_parameters == model.n_parameters_ == sum(len(opt.phi) for opt in optima)
    # Columns in use are those that change a prediction.
    X = fitted[1]
    for name in X:
        moved = model.predict(X.assign(**{name: X[name].to_numpy()[::-1]}))
        assert (name in account.inputs) == (np.abs(moved - model.predict(X)).max() > 0)


def test_compact_models_keep_exactly_what_the_account_counts(fitted, tmp_path):
    model, X, _ = fitted
    small = model.compact()
    assert small.n_parameters_ == small.n_parameters_kept_ == model.account_.n_kept
    assert small.account_ == replace(model.account_, n_parameters=model.account_.n_kept)
    mean, std = model.predict(X, return_std=True)
    for found, truth in zip(small.predict(X, return_std=True), (mean, std)):
        np.testing.assert_allclose(found, truth, rtol=1e-9)
    small.save(tmp_path / "small.nc")
    loaded = sbnn.load(tmp_path / "small.nc")
    assert loaded.account_ == small.account_
    pd.testing.assert_frame_equal(loaded.input_relevance_, model.input_relevance_)
    pd.testing.assert_frame_equal(loaded.optima_, small.optima_)


# ------------------------------------------------------------------------------ single network
def test_a_single_network_is_offered_only_if_it_suffices(fitted):
    posterior, groups = fitted[0].posterior_, fitted[0].encoder_.groups
    single = lambda *losses: account_of(
        replace(posterior, losses=np.column_stack([losses, np.zeros(len(losses))])),
        groups, list("abcd"),
    ).single  # fmt: skip
    n = len(posterior.mixture.optima)
    assert single(*[SUFFICIENT + 1e-6] * n) is None
    kept = posterior.table()["n_kept"].to_numpy()
    assert single(*[0.0] * n).n_kept == kept.min()  # of those that suffice, the sparsest
    only = [1.0] * n
    only[-1] = -0.1
    assert single(*only).optimum == n - 1
    assert single(*only).n_kept == kept[-1]


def test_the_single_network_predicts_as_its_optimum_does(fitted):
    model, X, y = fitted
    one = model.compact(single=True)
    k = model.account_.single.optimum if model.account_.single else model.optima_["loss"].argmin()
    assert one.account_.n_optima == 1
    assert one.n_parameters_kept_ == model.optima_["n_kept"].iloc[k]
    assert one.log_evidence_ == model.optima_["log_evidence"].iloc[k]
    # The loss is that of a density: on the rows of the fit, about the same as in the table.
    loss = (model.log_predictive_density(X, y) - one.log_predictive_density(X, y)).mean()
    spread = model.optima_["loss_error"].iloc[k]
    assert loss == pytest.approx(model.optima_["loss"].iloc[k], abs=4 * spread + 0.01)
    assert one.compact(single=True).formula() == one.formula()
    with pytest.raises(ValueError, match="this one is compact"):
        model.compact().compact(single=True)


# ------------------------------------------------------------------------------------ formula
def evaluate(text, X):
    """Values of a formula's target, by Python itself."""
    words = {"tanh": np.tanh, "exp": np.exp, "log": np.log, "sin": np.sin, "max": np.maximum}
    columns = {}

    def place(values):
        columns[f"v{len(columns)}"] = np.asarray(values, dtype=float)
        return f"v{len(columns) - 1}"

    text = re.sub(r"\[(.+?) = (.+?)\]", lambda m: place(X[m[1]].astype(object) == m[2]), text)
    text = re.sub(r"`(.+?)`", lambda m: place(X[m[1]]), text)
    known = words | columns | {name: X[name].to_numpy() for name in X if name.isidentifier()}
    for line in text.splitlines():
        name, value = line.split(" = ", 1)
        known[name] = eval(value, {"__builtins__": {}}, known)
    return known


def test_formula_leaves_out_terms_below_its_digits():
    phi = np.array([2.0, 1e-9, 0.5, 1.0, 3.0, 1e-7])  # 1-1-1-1: w, b of every layer
    opt = SimpleNamespace(
        phi=phi, sizes=(1, 1, 1, 1), activation="tanh",
        layout=SimpleNamespace(alive=[np.array([0])] * 4),
    )  # fmt: skip
    scaling = Scaling(np.zeros(1), np.ones(1), np.zeros(1), np.ones(1))
    four = formula_of(opt, scaling, ["x"], ["y"], digits=4)
    assert four == "h1_1 = tanh(1e-09 + 2*x)\ny = 3*tanh(1 + 0.5*h1_1)"
    twelve = formula_of(opt, scaling, ["x"], ["y"], digits=12)
    assert twelve.endswith("y = 1e-07 + 3*tanh(1 + 0.5*h1_1)")


def test_the_formula_of_every_network_is_its_prediction(fitted):
    model, _, _ = fitted
    state = model.fitted_state()
    new = table(50, seed=5)[0]
    for k in range(len(model.optima_)):
        one = replace(state, posterior=state.posterior.alone(k, state.inputs))
        one = SparseBNNRegressor.from_state(model.get_params(), one)
        found = np.broadcast_to(evaluate(one.formula(), new)["y"], len(new))
        np.testing.assert_allclose(found, one.predict(new), atol=1e-6)
        rough = np.broadcast_to(evaluate(one.formula(digits=2), new)["y"], len(new))
        assert one.account_.n_kept < 2 or np.abs(rough - one.predict(new)).max() > 1e-6
    with pytest.raises(ValueError, match=r"averages \d networks"):
        model.formula()


@pytest.mark.parametrize("activation", ["relu", "logistic", "softplus", "sin", "identity"])
def test_formulas_of_all_activations_and_targets_hold(activation):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(1, 3, size=(60, 1)), columns=["x0"])
    Y = np.column_stack([X["x0"] ** 2, -X["x0"]]) + 0.05 * rng.normal(size=(60, 2))
    quick = {"group_iterations": 15, "iterations": 15}
    model = SparseBNNRegressor(
        (2,), activation, noise="varying", n_starts=1, random_state=0, method_options=quick
    )
    one = model.fit(X.to_numpy(), Y).compact(single=True)
    found = evaluate(one.formula(), X)
    both = np.column_stack([np.broadcast_to(found[name], 60) for name in ("y0", "y1")])
    np.testing.assert_allclose(both, one.predict(X.to_numpy()), atol=1e-6)
    assert one.formula(3, ["p", "q"]).splitlines()[-1].startswith("q = ")
    with pytest.raises(ValueError, match="must be 2 names; got 1"):
        one.formula(targets=["p"])


# ---------------------------------------------------------------------------- loss of inputs
def test_losses_agree_with_least_squares_for_a_linear_model(linear):
    """½ log of the ratio of leave-one-out mean squares, for Gaussian noise of either size."""
    model, X, y = linear

    def left_out_residuals(columns):
        A = np.column_stack([np.ones(len(y)), X[:, columns]])
        hat = A @ np.linalg.pinv(A)
        return (y - hat @ y) / (1 - np.diag(hat))

    full = (left_out_residuals([0, 1]) ** 2).mean()
    found = model.input_relevance_
    for j, rest in ((0, [1]), (1, [0])):
        expected = 0.5 * np.log((left_out_residuals(rest) ** 2).mean() / full)
        # The mean and the variance of six values cost up to 0.15 nat.
        assert expected - 0.05 < found["loss"].iloc[j] < expected + 0.2
        assert 0 < found["error"].iloc[j] < 0.5 * expected
    assert abs(found["loss"].iloc[2]) < 0.01  # not an input of the truth


def test_inputs_without_weights_lose_exactly_nothing(fitted):
    model = fitted[0]
    table = model.input_relevance_
    unused = [name for name in table.index if name not in model.account_.inputs]
    assert (table.loc[unused, ["alone", "alone_error"]] == 0).all(axis=None)
    # The loss of a group is that of its inputs together.
    apart = [name for name in unused if not table.loc[name, "group"]]
    assert (table.loc[apart, ["loss", "error"]] == 0).all(axis=None)
    assert abs(table.loc["of no use", "loss"]) < 0.01


def test_collinear_inputs_are_a_group_and_replace_each_other(fitted):
    table = fitted[0].input_relevance_
    group = ["a", "copy of a"]
    assert (table.loc[group, "group"] == "a, copy of a").all()
    assert (table.loc[["of no use", "city"], "group"] == "").all()
    assert table.loc["a", "loss"] == table.loc["copy of a", "loss"] > 1.0
    assert (table.loc[group, "alone"] < 0.2 * table.loc["a", "loss"]).all()
    assert table.loc["city", "loss"] == table.loc["city", "alone"] > 0.5


def test_an_input_that_is_all_there_is_loses_what_a_constant_loses():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 1))
    y = 2.0 * X[:, 0] + 0.5 * rng.normal(size=100)
    model = SparseBNNRegressor((2,), noise="constant", n_starts=2, random_state=0).fit(X, y)
    left_out = LeftOut(model._task, model.posterior_.mixture)
    constant = stats.norm(y.mean(), y.std()).logpdf(y).mean() + np.log(y.std())
    remaining = left_out.log_density.mean() - model.input_relevance_["loss"].iloc[0]
    assert constant - 0.2 < remaining < constant + 0.05


def test_left_out_densities_weigh_rows_by_their_counts():
    X, y = table(40, seed=3)
    options = {"noise": "constant", "n_starts": 1, "random_state": 0}
    one = SparseBNNRegressor((2,), **options).fit(X, y, sample_weight=np.full(40, 2.0))
    two = SparseBNNRegressor((2,), **options).fit(pd.concat([X, X]), np.tile(y, 2))
    pd.testing.assert_frame_equal(one.input_relevance_, two.input_relevance_)


def test_methods_without_left_out_densities_have_no_losses():
    X, y = table(60)
    options = {"noise": "constant", "random_state": 0}
    model = SparseBNNRegressor((4,), method="last_layer", **options).fit(X, y)
    assert model.input_relevance_["loss"].isna().all()
    assert model.account_.n_kept == model.n_parameters_kept_
    for call in (lambda: model.compact(single=True), model.formula):
        with pytest.raises(ValueError, match="laplace_nsbl"):
            call()
