"""Priors: densities against SciPy, samples against densities, matching by name, errors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SEED, rng
from scipy import stats

from sbnn.priors import (
    Custom,
    HalfNormal,
    Hyperprior,
    JointPrior,
    LogNormal,
    Normal,
    Uniform,
    prior_from_json,
    prior_to_json,
    resolve_priors,
    select_names,
)

LAPLACE = Custom(
    lambda x: -jnp.abs(x) - np.log(2.0), lambda key, shape: jax.random.laplace(key, shape)
)
PAIRS = [
    (Uniform(-2.0, 3.0), stats.uniform(-2.0, 5.0)),
    (Normal(1.0, 2.0), stats.norm(1.0, 2.0)),
    (LogNormal(0.3, 0.7), stats.lognorm(0.7, scale=np.exp(0.3))),
    (HalfNormal(1.5), stats.halfnorm(scale=1.5)),
    (LAPLACE, stats.laplace()),
]
every_prior = pytest.mark.parametrize(("prior", "truth"), PAIRS, ids=lambda p: type(p).__name__)


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


@every_prior
def test_log_density_matches_scipy(prior, truth):
    x = np.concatenate([np.linspace(-4.0, 6.0, 41) + 0.01, [0.5]])
    found = JointPrior.of([prior]).log_density(jnp.asarray(x[:, None]))
    np.testing.assert_allclose(found, truth.logpdf(x), rtol=1e-12, atol=1e-12)


@every_prior
def test_samples_follow_the_density(prior, truth):
    draws = np.asarray(JointPrior.of([prior]).sample(jax.random.key(SEED), 4000))[:, 0]
    assert stats.kstest(draws, truth.cdf).pvalue > 1e-4
    assert stats.kstest(draws + 0.3, truth.cdf).pvalue < 1e-4  # the check can fail
    low, high = prior.support
    assert low <= draws.min() <= draws.max() <= high


def test_joint_log_density_is_the_sum_of_its_parts():
    priors = [pair[0] for pair in PAIRS] + [Normal(0.0, 0.1)]
    joint = JointPrior.of(priors)
    draws = joint.sample(jax.random.key(SEED), 50)
    parts = [JointPrior.of([p]).log_density(draws[:, i : i + 1]) for i, p in enumerate(priors)]
    np.testing.assert_allclose(joint.log_density(draws), np.sum(parts, axis=0), rtol=1e-12)
    leaves, structure = jax.tree_util.tree_flatten(joint)
    again = jax.tree_util.tree_unflatten(structure, leaves)
    np.testing.assert_array_equal(again.log_density(draws), joint.log_density(draws))


def test_joint_priors_that_differ_only_in_numbers_share_a_structure():
    def structure(*priors):
        return jax.tree_util.tree_structure(JointPrior.of(priors))

    assert structure(Normal(0, 1), Uniform(0, 1)) == structure(Normal(3, 2), Uniform(-1, 1))
    assert structure(Normal(0, 1), Uniform(0, 1)) != structure(Uniform(0, 1), Normal(0, 1))


def test_hybrid_prior_is_normal_for_ard_and_known_elsewhere():
    priors = [Uniform(-5, 5), LogNormal(0.1, 0.5), Uniform(-5, 5)]
    log_alpha = np.array([1.0, -2.0])
    joint = JointPrior.replace_ard(priors, np.array([True, False, True]), log_alpha)
    phi = rng(6).uniform(0.1, 2.0, size=(10, 3))
    expected = (
        stats.norm.logpdf(phi[:, 0], 0, np.exp(-0.5))
        + stats.lognorm.logpdf(phi[:, 1], 0.5, scale=np.exp(0.1))
        + stats.norm.logpdf(phi[:, 2], 0, np.exp(1.0))
    )
    np.testing.assert_allclose(joint.log_density(phi), expected, rtol=1e-12)


def test_hyperprior_includes_the_jacobian_of_log_alpha():
    shape, rate = 1.7, 0.4
    log_alpha = np.linspace(-3, 3, 7)
    # α ~ Gamma(s, r) ⇒ p(log α) = p(α) α
    expected = stats.gamma.logpdf(np.exp(log_alpha), shape, scale=1 / rate) + log_alpha
    found = np.asarray(Hyperprior(shape, rate).log_density(log_alpha[:, None]))
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-12, atol=1e-12)
    assert Hyperprior().shape == Hyperprior().rate == np.exp(-10)


def test_exact_name_takes_precedence_over_a_group():
    names = ["W[1][1,1]", "W[1][2,1]", "b[1][1]", "b[1][10]"]
    wide, narrow, bias = Normal(0, 9), Normal(0, 1), Uniform(-1, 1)
    found = resolve_priors(names, {"W": wide, "W[1][2,1]": narrow, "b": bias}, None)
    assert found == [wide, narrow, bias, bias]
    assert resolve_priors(names, {"b[1][1]": bias}, wide) == [wide, wide, bias, wide]
    assert resolve_priors(names, {"W": wide, "W[1]": narrow, "b": bias}, None)[0] == narrow
    np.testing.assert_array_equal(select_names(names, ["b[1][1]"]), [0, 0, 1, 0])
    np.testing.assert_array_equal(select_names(names, ["b"]), [0, 0, 1, 1])


@pytest.mark.parametrize("pattern", ["W[3]", "", "w"])
def test_unknown_name_raises_and_lists_the_names(pattern):
    with pytest.raises(ValueError, match=r"Unknown parameter.*the names are W\[1\], b"):
        select_names(["W[1]", "b"], [pattern])


def test_names_that_are_not_strings_raise():
    with pytest.raises(TypeError, match="names are strings"):
        select_names(["a"], [0])


def test_parameter_without_a_prior_raises_with_a_remedy():
    with pytest.raises(ValueError, match="'b' has no prior; give one in `priors`"):
        resolve_priors(["a", "b"], {"a": Normal()}, None)


def test_prior_of_another_class_raises():
    with pytest.raises(TypeError, match=r"an sbnn\.priors class"):
        resolve_priors(["a"], {"a": stats.norm()}, None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Uniform(1.0, 1.0),
        lambda: Uniform(2.0, -2.0),
        lambda: Custom(jnp.abs, jax.random.normal, (1.0, 1.0)),
    ],
)
def test_prior_with_empty_support_raises(make):
    with pytest.raises(ValueError, match="empty support"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Normal(0.0, 0.0),
        lambda: Normal(np.nan, 1.0),
        lambda: LogNormal(0.0, -1.0),
        lambda: LogNormal(np.inf, 1.0),
        lambda: HalfNormal(np.inf),
        lambda: Uniform(-np.inf, 0.0),
        lambda: Uniform(0.0, np.nan),
        lambda: Hyperprior(-1.0, 1.0),
        lambda: Hyperprior(1.0, np.nan),
    ],
)
def test_invalid_prior_parameters_raise(make):
    with pytest.raises(ValueError, match="needs a finite"):
        make()


def test_custom_prior_requires_two_functions():
    with pytest.raises(TypeError, match="two functions"):
        Custom(1.0, jax.random.normal)


@every_prior
def test_prior_is_rebuilt_from_json_unless_custom(prior, truth):
    description = prior_to_json(prior)
    if isinstance(prior, Custom):
        with pytest.raises(ValueError, match="'Custom' cannot be rebuilt"):
            prior_from_json(description)
    else:
        assert prior_from_json(description) == prior


def test_group_ends_at_a_word_boundary():
    names = ["slope", "slope_2", "W[1][1,1]", "W[1][2,1]", "W[12][1,1]"]
    assert select_names(names, ["W[1]"]).tolist() == [False, False, True, True, False]
    assert select_names(names, ["W"]).tolist() == [False, False, True, True, True]
    assert select_names(names, ["slope"]).tolist() == [True, False, False, False, False]
    with pytest.raises(ValueError, match="Unknown parameter 'slop'"):
        select_names(names, ["slop"])
