"""Predictions of models that users define: inputs, noise, errors whose advice runs."""

import warnings

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import sbnn
from sbnn._core.messages import ModeReached
from sbnn.methods.result import Result
from sbnn.problems.model_outputs import outputs_at

X = np.linspace(0.0, 2.0, 12)
DRAWS = np.random.default_rng(0).normal([1.0, -0.5, np.log(0.2)], 0.1, size=(300, 3))


def line(theta, x):
    return theta[0] + theta[1] * x


def numpy_line(theta, x):
    return float(theta[0]) + float(theta[1]) * np.asarray(x)


def problem_of(model, **options):
    flat = {"a": sbnn.priors.Normal(0.0, 3.0), "b": sbnn.priors.Normal(0.0, 3.0)}
    y = 1.0 - 0.5 * X
    return sbnn.Problem.from_model(model, y, names=["a", "b"], priors=flat, **options)


def result_of(problem, phi):
    """A result with given draws; no method is run."""
    return Result(
        "standard", problem, phi, np.zeros(len(phi)), 0.0, 0.0, 0, 0.0, True, ModeReached(), (0,),
        {}, description=problem.description(),
    )  # fmt: skip


@pytest.mark.parametrize("model", [line, numpy_line], ids=["jax", "black box"])
def test_predict_adds_function_and_noise_variance_at_new_inputs(model):
    problem = problem_of(model, x=X)
    assert problem.black_box == (model is numpy_line)
    new = [3.0, 4.0]
    mean, std = result_of(problem, DRAWS).predict(new)
    f = DRAWS[:, :1] + DRAWS[:, 1:2] * np.array(new)
    noise = np.exp(2 * DRAWS[:, 2]).mean()
    np.testing.assert_allclose(mean, f.mean(axis=0))
    np.testing.assert_allclose(std, np.sqrt(f.var(axis=0) + noise))


def test_draws_at_new_inputs_have_the_spread_of_predict():
    result = result_of(problem_of(line, x=X), DRAWS)
    drawn = result.predictive([3.0], n=20_000)
    _, std = result.predict([3.0])
    assert drawn.shape == (20_000, 1)
    assert abs(drawn.std() / std[0] - 1) < 4 / np.sqrt(2 * 300)  # 300 different draws
    assert result.push_forward([3.0, 4.0, 5.0], n=7).shape == (7, 3)


def test_without_inputs_predictions_are_at_the_observations():
    fixed = problem_of(lambda theta: theta[0] + theta[1] * X, noise_std=np.linspace(0.1, 0.5, 12))
    mean, std = result_of(fixed, DRAWS[:, :2]).predict()
    f = DRAWS[:, :1] + DRAWS[:, 1:2] * X
    np.testing.assert_allclose(mean, f.mean(axis=0))
    np.testing.assert_allclose(std, np.sqrt(f.var(axis=0) + np.linspace(0.1, 0.5, 12) ** 2))
    with pytest.raises(TypeError, match=r"takes no inputs.*leave out `x`"):
        result_of(fixed, DRAWS[:, :2]).predict([1.0])


def test_several_outputs_and_inputs_of_any_kind():
    def model(theta, x):
        return jnp.stack([theta[0] * x["u"], theta[1] * x["v"]], axis=1)

    problem = sbnn.Problem.from_model(
        model, np.zeros((4, 2)), x={"u": np.ones(4), "v": np.arange(4.0)}, names=["a", "b"],
        priors={"a": sbnn.priors.Normal(0, 1), "b": sbnn.priors.Normal(0, 1)}, noise_std=0.1,
    )  # fmt: skip
    f, theta = outputs_at(problem, DRAWS[:, :2], {"u": np.ones(3), "v": np.ones(3)})
    assert f.shape == (300, 3, 2, 1)
    assert theta.shape == (300, 1, 2, 1)
    np.testing.assert_allclose(f[:, 0, :, 0], DRAWS[:, :2])


def test_problems_with_other_inputs_are_different():
    same = problem_of(line, x=X), problem_of(line, x=X), problem_of(line, x=X + 1)
    phi = np.array([1.0, -0.5, 0.0])
    values = [p.log_likelihood(phi) for p in same]
    assert values[0] == values[1] != values[2]


def test_log_likelihoods_alone_cannot_predict():
    problem = sbnn.Problem(
        lambda t: -0.5 * jnp.sum(t**2), ["a"], priors={"a": sbnn.priors.Normal(0, 1)}
    )
    with pytest.raises(TypeError, match=r"log-likelihood only.*result\.draws\(\)"):
        result_of(problem, DRAWS[:, :1]).predict([0.0])
    with pytest.raises(ValueError, match=r"sbnn\.load\(path, problem=problem\)"):
        outputs_at(None, DRAWS, None)


def test_numpy_warnings_of_a_model_do_not_leak():
    def model(theta, x):
        return np.log(theta[0] - 10.0) + np.exp(800.0 * x) / np.zeros(len(x))

    problem = problem_of(model, x=X, black_box=True, noise_std=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert problem.log_likelihood(np.array([1.0, 1.0])) == -np.inf
        outputs_at(problem, DRAWS[:2, :2], None)


def test_impossible_starts_of_the_laplace_method_do_not_warn():
    """exp(−b x) overflows for many of the random starts."""

    def decay(theta, x):
        return theta[0] * jnp.exp(-theta[1] * x) + theta[2] * x

    wide = {name: sbnn.priors.Normal(0.0, 5.0) for name in "ab"}
    problem = sbnn.Problem.from_model(
        decay, 1.0 - 0.5 * X, x=100.0 + X, names=list("abc"), priors=wide, ard=["c"], noise_std=0.1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        sbnn.laplace_nsbl(problem, key=0)


def named_line(theta, x):
    return theta[0] + theta[1] * jnp.asarray(x["t"])


def test_text_as_inputs_is_refused_in_plain_words():
    with pytest.raises(ValueError, match="`x` must hold numbers; got 'warm'"):
        result_of(problem_of(line, x=X), DRAWS).predict(["warm"])


@pytest.mark.parametrize("model", [line, named_line])
def test_pandas_inputs_do_not_make_a_black_box(model):
    frame = pd.DataFrame({"t": X, "other": 0.0}, index=range(100, 112))
    inputs = frame if model is named_line else frame["t"]
    problem = problem_of(model, x=inputs)
    assert not problem.black_box
    theta = np.array([0.5, 0.3, 0.0])
    expected = problem_of(line, x=X).log_likelihood(theta)
    assert problem.log_likelihood(theta) == pytest.approx(expected)
    mean, _ = result_of(problem, DRAWS).predict(inputs.iloc[:3])
    np.testing.assert_allclose(mean, result_of(problem_of(line, x=X), DRAWS).predict(X[:3])[0])


def test_black_boxes_receive_pandas_as_it_is():
    def model(theta, x):
        return float(theta[0]) + float(theta[1]) * x["t"].rolling(1).mean()

    problem = problem_of(model, x=pd.DataFrame({"t": X}), noise_std=1.0)
    assert problem.black_box
    assert np.isfinite(problem.log_likelihood(np.array([1.0, 1.0])))


def test_models_with_other_arguments_are_rejected_with_a_remedy():
    with pytest.raises(TypeError, match=r"arguments are \(theta, x\); give the inputs as `x`"):
        problem_of(line)
    with pytest.raises(TypeError, match=r"model\(theta, x\), but .* leave out `x`"):
        problem_of(lambda theta: theta[0] + X, x=X)
    assert problem_of(lambda *arguments: line(*arguments), x=X).n_parameters == 3
