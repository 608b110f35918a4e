"""Likelihoods that return something odd: text, complex numbers, NaN or +inf on half the prior."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import sbnn
from sbnn._core.arrays import NotRealError
from sbnn.priors import Normal, Uniform

X = np.linspace(0.0, 1.0, 6)
PRIORS = {"a": Normal()}


def custom(function, **options):
    return sbnn.Problem(function, ["a"], PRIORS, **options)


def regression(model, y=2.0 * X, **options):
    options = {"noise_std": 0.5, **options}
    return sbnn.Problem.from_model(model, y, names=["a"], priors=PRIORS, **options)


def sample(problem, **options):
    return sbnn.standard(problem, key=0, n_particles=200, **options)


@pytest.mark.parametrize(
    "value", ["3.0", b"3.0", np.array("3.0"), True, np.array([True])], ids=repr
)
@pytest.mark.parametrize("on_failure", ["reject", "raise"])
def test_log_likelihood_that_returns_no_number_raises(value, on_failure):
    with pytest.raises(NotRealError, match=r"must be numeric; could not.*'3.0'|return a number"):
        sample(custom(lambda theta: value, black_box=True), on_failure=on_failure)


@pytest.mark.parametrize("value", [np.datetime64("2020-01-01"), np.timedelta64(3, "s")], ids=str)
def test_dates_and_times_are_no_log_likelihoods(value):
    with pytest.raises(NotRealError, match="must be numeric; give dates and times as numbers"):
        sample(custom(lambda theta: value, black_box=True))


def test_masked_values_are_missing():
    masked = np.ma.array([1.0], mask=[True])
    with pytest.raises(ValueError, match="at every one of the 200 prior draws"):
        sample(custom(lambda theta: masked, black_box=True))
    y = np.ma.array(np.arange(len(X)), mask=X > 0.5)
    with pytest.raises(ValueError, match="y has masked entries"):
        regression(lambda theta: theta[0] * X, y=y)


def test_text_is_not_a_prediction_nor_an_observation_nor_a_parameter():
    text = [str(x) for x in X]
    with pytest.raises(ValueError, match=r"could not convert the text '0.0'"):
        sample(regression(lambda theta: text, black_box=True))
    with pytest.raises(ValueError, match=r"y must be numeric; could not convert the text '0.0'"):
        regression(lambda theta: theta[0] * X, y=text)
    with pytest.raises(ValueError, match=r"X must be numeric; could not convert the text '0.0'"):
        sbnn.network_problem(text, X, (1,), noise_std=0.5)
    with pytest.raises(ValueError, match=r"`noise_std` must be numeric; got '0.5'"):
        regression(lambda theta: theta[0] * X, noise_std="0.5")
    with pytest.raises(ValueError, match="φ must be numeric"):
        custom(lambda theta: -(theta[0] ** 2)).log_likelihood(["1.0"])
    with pytest.raises(ValueError, match="finite `mean`; got '1'"):
        Normal("1", 1.0)


COMPLEX = {
    "JAX": lambda: custom(lambda theta: 1j * theta[0]),
    "black box": lambda: custom(lambda theta: 1j * theta[0], black_box=True),
    "black box, on half the prior": lambda: custom(
        lambda theta: complex(theta[0]) if theta[0] > 0 else float(theta[0]), black_box=True
    ),
    "model": lambda: regression(lambda theta: 1j * theta[0] * X),
    "black-box model": lambda: regression(lambda theta: 1j * theta[0] * X, black_box=True),
    "y": lambda: regression(lambda theta: theta[0] * X, y=X + 1j),
    "X of a network": lambda: sbnn.network_problem(X + 1j, X, (1,), noise_std=0.5),
}


@pytest.mark.parametrize("problem", COMPLEX.values(), ids=COMPLEX.keys())
def test_complex_values_raise_one_error(problem):
    with pytest.raises(ValueError, match="is complex; give real numbers") as caught:
        sample(problem())
    assert "\n" not in str(caught.value)


def test_complex_options_raise():
    parabola = custom(lambda theta: -(theta[0] ** 2))
    with pytest.raises(ValueError, match="`start` is complex"):
        sbnn.laplace(parabola, start=[1j])
    with pytest.raises(ValueError, match="φ is complex"):
        parabola.log_likelihood(np.array([1j]))
    with pytest.raises(ValueError, match="`bound` must be a finite number"):
        sbnn.Problem(lambda theta: theta[0], ["a"], ard=["a"], bound=1j)
    with pytest.raises(ValueError, match="finite `high`; got 1j"):
        Uniform(0, 1j)


def test_complex_values_from_workers_raise_one_error():
    with pytest.raises(ValueError, match="is complex; give real numbers"):
        sample(custom(lambda theta: 1j * theta[0], black_box=True), executor=1)


def half(value, black_box=False):
    if black_box:
        return custom(lambda t: value if t[0] > 0 else -(float(t[0]) ** 2), black_box=True)
    return custom(lambda t: jnp.where(t[0] > 0, value, -(t[0] ** 2)))


METHODS = {"standard": sample, "laplace": lambda problem: sbnn.laplace(problem, n_particles=50)}


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("method", "black_box"), [("standard", False), ("standard", True), ("laplace", False)]
)
def test_nan_and_infinity_on_half_of_the_prior_warn(value, method, black_box):
    with pytest.warns(RuntimeWarning, match=r"NaN or \+inf at [45]\d % of the prior draws"):
        result = METHODS[method](half(value, black_box))
    assert any("wrong if they are not" in str(message) for message in result.messages)


def test_warning_about_half_of_the_prior_comes_with_a_resumed_run(tmp_path):
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=r"NaN or \+inf at"):
            sample(half(np.nan, True), checkpoint=tmp_path / "run")


@pytest.mark.parametrize("black_box", [False, True])
def test_zero_likelihood_on_half_of_the_prior_does_not_warn(black_box):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sample(half(-np.inf, black_box))
    assert result.n_rejected > 50


def test_integer_log_likelihood_has_derivatives():
    problem = custom(lambda t: jnp.where(t[0] > 0, 0, 0))
    assert np.isclose(sbnn.laplace(problem, n_particles=50).log_evidence, 0.0)
