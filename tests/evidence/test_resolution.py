"""The default rate of the hyperprior follows the resolution of the data."""

import jax.numpy as jnp
import numpy as np
import pytest

import sbnn
from sbnn.evidence.laplace.models.problems import laplace_optima, resting_log_alpha
from sbnn.evidence.resolution import default_hyperprior, resolving, too_coarse
from sbnn.priors import Hyperprior

DEFAULT = Hyperprior().rate


def fixed_point(rate, resolved):
    """γ/(1 − γ) = √(2rΛ), and α = Λ(1 − γ)/γ, of an irrelevant parameter."""
    ratio = np.sqrt(2 * rate * resolved)
    return np.log([resolved / ratio]), np.array([ratio / (1 + ratio)])


@pytest.mark.parametrize("std", [1.0, 0.1, 0.01, 1e-4])
def test_irrelevant_parameters_can_be_pruned_at_any_resolution(std):
    covariances = np.diag([std**2, 1e-12])[None]
    hyperprior = resolving(covariances, np.array([True, False]))
    _, gamma = fixed_point(hyperprior.rate, std**-2)
    assert gamma[0] < 0.1
    assert hyperprior.rate <= DEFAULT


def test_default_rate_is_too_coarse_for_finely_resolved_parameters():
    """The negative control: with the former default, γ stays above the threshold."""
    problem = sbnn.Problem(lambda t: -jnp.sum(t**2), ["a"], ard=["a"])
    log_alpha, gamma = fixed_point(DEFAULT, 1e4)
    assert gamma[0] > 0.1
    assert too_coarse(problem, log_alpha, gamma, Hyperprior()) is not None
    rate = resolving(np.array([[[1e-4]]]), np.array([True])).rate
    assert too_coarse(problem, *fixed_point(rate, 1e4), Hyperprior(rate=rate)) is None


def test_networks_keep_the_hyperprior_of_the_study():
    x, y = sbnn.datasets.boxcar(n=10)
    assert default_hyperprior(sbnn.network_problem(x, y, (2,), noise_std=0.5)) == Hyperprior()
    assert resolving(np.eye(2)[None], np.array([True, True])) == Hyperprior()
    assert default_hyperprior(sbnn.Problem(lambda t: -jnp.sum(t**2), ["a"], ard=["a"])) is None
    assert default_hyperprior(sbnn.network_problem(x, y, (12,), noise_std=0.5)) is None
    assert default_hyperprior(sbnn.network_problem(x, y, (2,))) is None


@pytest.mark.parametrize("resolved", [1.0, 1e3, 1e8])
@pytest.mark.parametrize("rate", [np.exp(-10.0), 1e-12])
def test_resting_log_alpha_is_stationary(resolved, rate):
    """½ Λ/(Λ + α) = r α."""
    alpha = np.exp(resting_log_alpha(Hyperprior(rate=rate), resolved))
    assert np.isclose(0.5 * resolved / (resolved + alpha), rate * alpha, rtol=1e-6)


def test_the_resolution_of_a_laplace_optimum_is_that_of_its_best_determined_parameter():
    """A line y = a x + b with known noise: the data give a the precision Σx²/σ²."""
    x = np.linspace(-3.0, 3.0, 20)
    problem = sbnn.Problem.from_model(
        lambda theta: theta[0] * x + theta[1], 2.0 * x, names=["a", "b"], ard=["a", "b"],
        noise_std=0.1, bound=10.0,
    )  # fmt: skip
    best = laplace_optima(problem, Hyperprior(), np.random.default_rng(0), 1)[0]
    assert np.isclose(best.resolved, (x**2).sum() / 0.1**2, rtol=1e-6)


def test_nsbl_prunes_a_finely_resolved_term_by_default():
    """b = 0 is known to 0.005; γ would stay near 0.6 with the rate e⁻¹⁰."""

    def log_likelihood(theta):
        return -0.5 * ((theta[0] - 1.0) ** 2 + theta[1] ** 2) / 0.005**2

    problem = sbnn.Problem(log_likelihood, ["a", "b"], ard=["a", "b"], bound=3.0)
    result = sbnn.nsbl(problem, key=0, n_particles=200, n_starts=2, average=False)
    assert result.relevance[0] > 0.9
    assert result.relevance[1] < 0.1
    assert result.settings["hyperprior"][1] < 1e-7
