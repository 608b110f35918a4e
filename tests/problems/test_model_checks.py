"""Problems from models: Gaussian likelihood, known and inferred noise, clear errors."""

from __future__ import annotations

import cloudpickle
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_within_errors, keys, rng
from scipy import stats

import sbnn
from sbnn.priors import Normal, Uniform

T = np.linspace(0.0, 2.0, 6)
Y = 1.0 + 0.5 * T + 0.1 * np.random.default_rng(3).normal(size=6)
PRIORS = {"a": Normal(0, 2), "b": Normal(0, 2)}


def line(theta):
    return theta[0] + theta[1] * T


def plain_line(theta):
    return float(theta[0]) + float(theta[1]) * T


def make(model=line, y=Y, **options):
    options = {"names": ["a", "b"], "priors": PRIORS, "noise_std": 0.2, **options}
    return sbnn.Problem.from_model(model, y, **options)


@pytest.mark.parametrize("noise", [0.2, np.linspace(0.1, 0.6, 6)], ids=["one", "per observation"])
def test_log_likelihood_is_gaussian_for_jax_and_python_models(noise):
    theta = rng(30).normal(size=(4, 2))
    expected = [stats.norm.logpdf(Y, line(t), noise).sum() for t in theta]
    for model, black_box in ((line, False), (plain_line, True)):
        problem = make(model, noise_std=noise)
        assert problem.black_box is black_box
        np.testing.assert_allclose(problem.log_likelihood(theta), expected, rtol=1e-12)


def test_each_output_has_its_own_noise_level():
    y = np.column_stack([Y, -Y, 2 * Y])
    two = lambda theta: jnp.stack([line(theta), -line(theta), 2 * line(theta)], axis=1)
    two_plain = lambda theta: np.column_stack([plain_line(theta) * f for f in (1, -1, 2)])
    sigma = np.array([0.1, 0.2, 0.4])
    theta = rng(31).normal(size=(4, 2))
    predictions = np.array([two_plain(t) for t in theta])
    expected = stats.norm.logpdf(y, predictions, sigma).sum(axis=(1, 2))
    both = np.hstack([theta, np.log(np.tile(sigma, (4, 1)))])
    for model in (two, two_plain):
        known, inferred = make(model, y, noise_std=sigma), make(model, y, noise_std=None)
        assert inferred.names[2:] == ("log_sigma[1]", "log_sigma[2]", "log_sigma[3]")
        np.testing.assert_allclose(known.log_likelihood(theta), expected, rtol=1e-12)
        np.testing.assert_allclose(inferred.log_likelihood(both), expected, rtol=1e-12)


def test_noise_prior_defaults_to_the_data_scale_and_can_be_replaced():
    problem = make(noise_std=None)
    assert problem.names == ("a", "b", "log_sigma")
    assert problem.priors[2] == Normal(float(np.log(Y.std() / 3)), 1.5)
    assert make(noise_std=None, noise_prior=Normal(-1, 0.3)).priors[2] == Normal(-1, 0.3)
    given = make(noise_std=None, priors={**PRIORS, "log_sigma": Uniform(-5, 0)})
    assert given.priors[2] == Uniform(-5, 0)
    y = np.column_stack([Y, Y])
    group = make(
        lambda t: jnp.stack([line(t)] * 2, axis=1),
        y,
        noise_std=None,
        priors={**PRIORS, "log_sigma": Uniform(-5, 0)},
    )
    assert group.priors[2:] == (Uniform(-5, 0), Uniform(-5, 0))


@pytest.mark.slow
def test_log_evidence_is_exact_for_a_black_box_line():
    """y ~ N(0, σ²I + 4 F Fᵀ) with F = [1, t]: the evidence is a normal density."""
    problem = make(plain_line)
    design = np.column_stack([np.ones(6), T])
    truth = stats.multivariate_normal.logpdf(
        Y, np.zeros(6), 0.2**2 * np.eye(6) + 4 * design @ design.T
    )
    result = sbnn.standard(problem, key=keys(1)[0], n_particles=300)
    assert_within_errors(result.log_evidence, truth, result.log_evidence_error, "log evidence")


def test_model_that_ignores_the_tracer_is_a_black_box():
    """A program that receives the tracer as text returns constants, not the model."""
    written = []

    def writes_a_file(theta):
        written.append(f"{theta}")  # as written to a file or command line
        return np.zeros(6)

    assert make(writes_a_file).black_box
    assert sbnn.Problem(lambda t: len(f"{t}"), ["a"], {"a": Normal()}).black_box


def test_a_name_that_does_not_exist_is_an_error():
    with pytest.raises(NameError, match="omega"):
        make(lambda theta: theta[0] * jnp.cos(omega * jnp.arange(6.0)))  # noqa: F821


def test_problem_from_a_model_can_be_pickled():
    problem = make(lambda theta: plain_line(theta), noise_std=None)
    problem.known_prior()
    copy = cloudpickle.loads(cloudpickle.dumps(problem))
    theta = rng(32).normal(size=(3, 3))
    np.testing.assert_array_equal(copy.log_likelihood(theta), problem.log_likelihood(theta))
    assert copy.fingerprint() == problem.fingerprint()


def test_data_fingerprint_does_not_depend_on_the_noise():
    assert make(noise_std=0.1).data_fingerprint() == make(noise_std=None).data_fingerprint()
    assert make(noise_std=0.1).fingerprint() != make(noise_std=0.2).fingerprint()
    assert make(y=Y + 1e-9).data_fingerprint() != make().data_fingerprint()


BAD = {
    "not a function": ({"model": 3}, TypeError, "`model` must be a function"),
    "shape": ({"model": lambda t: t}, ValueError, r"y's shape \(6,\); it returned shape \(2,\)"),
    "column": (
        {"model": lambda t: line(t)[:, None]},
        ValueError,
        r"y's shape \(6,\); it returned shape \(6, 1\)",
    ),
    "NaN in y": (
        {"y": np.r_[Y[:2], np.nan, Y[3:]]},
        ValueError,
        "y contains nan at index 2; remove",
    ),
    "inf in y": ({"y": np.full((2, 2), np.inf)}, ValueError, r"y contains inf at index \(0, 0\)"),
    "text": ({"y": ["a"]}, ValueError, "y must be numeric"),
    "scalar": ({"y": 1.0}, ValueError, "one or two dimensions"),
    "empty": ({"y": []}, ValueError, "not be empty"),
    "noise": ({"noise_std": [0.1, 0.2]}, ValueError, r"got shape \(2,\) for y of shape \(6,\)"),
    "no noise": ({"noise_std": 0.0}, ValueError, "finite and above zero"),
    "taken": (
        {"names": ["a", "log_sigma"], "noise_std": None},
        ValueError,
        "'log_sigma' is the name of the inferred noise",
    ),
    "masked": ({"y": np.ma.masked_array(Y, T > 1)}, ValueError, "masked entries; remove them"),
    "complex y": ({"y": Y + 1j}, ValueError, "y is complex"),
    "constant y": ({"y": np.ones(6), "noise_std": None}, ValueError, "y is constant"),
    "no prior": ({"priors": {"a": Normal()}}, ValueError, "'b' has no prior"),
}


@pytest.mark.parametrize(("options", "kind", "message"), BAD.values(), ids=BAD.keys())
def test_invalid_input_raises_with_a_remedy(options, kind, message):
    with pytest.raises(kind, match=message):
        make(**options)


def test_black_box_predictions_of_the_wrong_shape_raise_when_called():
    problem = make(lambda theta: plain_line(theta)[:-1])
    assert problem.black_box
    with pytest.raises(ValueError, match=r"y's shape \(6,\); it returned shape \(5,\)"):
        problem.log_likelihood(np.zeros(2))


def test_complex_predictions_raise():
    theta = np.array([1.0, 1.0])
    for model, black_box in ((lambda t: line(t) + 1j * t[0], False), (lambda t: 1j * T, True)):
        with pytest.raises(ValueError, match="is complex; give real numbers"):
            make(model, black_box=black_box).log_likelihood(theta)


class Scaled:
    """An unhashable model with a mutable attribute."""

    __hash__ = None

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, theta):
        return self.scale * line(theta)


@pytest.mark.parametrize("method", [sbnn.standard, sbnn.laplace])
def test_new_problem_sees_current_values_of_model_attributes(method):
    model = Scaled(1.0)
    options = {"key": keys(1)[0], "n_particles": 50}
    before = method(make(model), **options).phi.mean(axis=0)
    model.scale = 2.0
    after = method(make(model), **options).phi.mean(axis=0)
    np.testing.assert_allclose(2 * after, before, atol=0.2)
    assert np.abs(after - before).max() > 0.3
    unchanged = method(make(Scaled(2.0)), **options).phi.mean(axis=0)
    np.testing.assert_array_equal(unchanged, after)
