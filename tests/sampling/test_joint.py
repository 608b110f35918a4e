"""Hierarchical Bayes: the joint prior, its coordinates, a conjugate check, NUTS."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_mean_within_errors, assert_within_errors, keys, rng
from nuts import nuts
from scipy.integrate import quad
from scipy.stats import norm

import sbnn
from sbnn.methods._hierarchical import hierarchical
from sbnn.priors import Hyperprior, Normal
from sbnn.sampling.joint import (
    LOG_ALPHA_RANGE,
    join_log_alpha,
    joint_symmetry,
    joint_target,
    log_alpha_prior,
    to_parameters,
)

LOW, HIGH = LOG_ALPHA_RANGE
OBSERVED, STD = 0.8, 0.5


def one_log_likelihood(theta, data):
    mean, std = data
    return -0.5 * ((mean - theta[0]) / std) ** 2 - jnp.log(std * np.sqrt(2 * np.pi))


def one_parameter(**options):
    """y ~ N(φ, 0.5²), φ ~ N(0, 1/α)."""
    return sbnn.Problem(
        one_log_likelihood, ["phi"], ard=["phi"],
        data=(np.float64(OBSERVED), np.float64(STD)), **options,
    )  # fmt: skip


@pytest.mark.parametrize("hyperprior", [Hyperprior(), Hyperprior(0.7, 0.3), Hyperprior(2.0, 5.0)])
def test_joint_prior_is_normalised(hyperprior):
    with jax.enable_x64(True):
        prior = joint_target(one_parameter(), hyperprior).prior
        z, w = np.polynomial.legendre.leggauss(400)
        lam = LOW + (HIGH - LOW) * (z + 1) / 2
        grid = np.stack(np.meshgrid(9 * z, lam), axis=-1).reshape(-1, 2)
        weights = np.outer(w * (HIGH - LOW) / 2, 9 * w).ravel()
        total = np.sum(weights * np.exp(np.asarray(prior.log_density(grid))))
    assert np.isclose(total, 1.0, atol=1e-5)


def test_draws_of_log_alpha_follow_the_hyperprior():
    hyperprior = Hyperprior(0.7, 0.3)
    with jax.enable_x64(True):
        prior = log_alpha_prior(hyperprior)
        draws = np.asarray(prior.sampler(jax.random.key(keys(1)[0]), (40_000,)))
    density = lambda z: np.exp(0.7 * z - 0.3 * np.exp(z))
    mass = quad(density, LOW, HIGH, limit=200)[0]
    mean = quad(lambda z: z * density(z), LOW, HIGH, limit=200)[0] / mass
    assert_within_errors(draws.mean(), mean, draws.std() / np.sqrt(len(draws)), "mean log α")


def test_phi_is_z_over_root_alpha_where_ard_and_itself_elsewhere():
    ard = np.array([True, False, True])
    joint = rng(50).normal(size=(4, 5))
    with jax.enable_x64(True):
        phi = np.asarray(to_parameters(joint, ard))
    np.testing.assert_allclose(phi[:, 0], joint[:, 0] * np.exp(-0.5 * joint[:, 3]))
    np.testing.assert_allclose(phi[:, 1], joint[:, 1])
    np.testing.assert_allclose(phi[:, 2], joint[:, 2] * np.exp(-0.5 * joint[:, 4]))


def test_log_alpha_given_phi_is_the_gamma_of_the_conjugate_pair():
    """α | φ ~ Gamma(s + ½, r + ½ φ²); and (z, log α) maps back to φ."""
    problem = one_parameter()
    hyperprior = Hyperprior(2.0, 1.5)
    phi = np.full((40_000, 1), 0.9)
    joint = join_log_alpha(rng(51), problem, phi, hyperprior)
    alpha = np.exp(joint[:, 1])
    truth = 2.5 / (1.5 + 0.5 * 0.81)
    assert_within_errors(alpha.mean(), truth, alpha.std() / 200, "mean α")
    with jax.enable_x64(True):
        back = np.asarray(to_parameters(joint, problem.ard))
    np.testing.assert_allclose(back, phi, rtol=1e-12)


def test_joint_density_is_invariant_under_network_symmetries():
    x, y = sbnn.datasets.boxcar(n=10)
    problem = sbnn.network_problem(x, y, (2,), noise_std=0.5)
    with jax.enable_x64(True):
        target = joint_target(problem, Hyperprior(0.5, 0.1))
        joint = np.asarray(target.prior.sample(jax.random.key(1), 50))
        moved = joint_symmetry(problem).apply_random(rng(52), joint)
        assert not np.allclose(joint, moved)
        both = jax.jit(lambda t, z: (t.evaluate(z), t.prior.log_density(z)))
        for one, two in zip(both(target, moved), both(target, joint)):
            np.testing.assert_allclose(one, two, rtol=1e-9)


def test_joint_symmetry_is_none_if_hidden_weights_are_not_exchangeable():
    x, y = sbnn.datasets.boxcar(n=10)
    known = sbnn.network_problem(x, y, (2,), noise_std=0.5, priors={"W[1][1,1]": Normal()})
    assert joint_symmetry(known) is None
    output = sbnn.network_problem(x, y, (2,), noise_std=0.5, priors={"b[2]": Normal()})
    assert joint_symmetry(output) is not None


def by_quadrature(hyperprior: Hyperprior) -> tuple[float, float, float]:
    """log p(D), E[φ|D] and E[log α|D]: φ integrated in closed form, log α on a fine grid."""
    lam = np.linspace(LOW, HIGH, 40_001)
    log_prior = hyperprior.shape * lam - hyperprior.rate * np.exp(lam)
    prior = np.exp(log_prior - log_prior.max())
    prior /= prior.sum()
    variance = np.exp(-lam)
    joint = prior * norm.pdf(OBSERVED, 0.0, np.sqrt(STD**2 + variance))
    posterior = joint / joint.sum()
    mean = OBSERVED * variance / (variance + STD**2)
    return float(np.log(joint.sum())), float(posterior @ mean), float(posterior @ lam)


def test_conjugate_model_gives_exact_evidence_and_posterior():
    hyperprior = Hyperprior(0.7, 0.3)
    log_evidence, mean, log_alpha = by_quadrature(hyperprior)
    runs = [
        hierarchical(one_parameter(), key=k, n_particles=500, hyperprior=hyperprior)
        for k in keys(6)
    ]
    for run in runs:
        assert_within_errors(run.log_evidence, log_evidence, run.log_evidence_error)
    assert_mean_within_errors([r.phi.mean() for r in runs], mean, "posterior mean of φ")
    draws = [r.details.log_alpha_draws.mean() for r in runs]
    assert_mean_within_errors(draws, log_alpha, "posterior mean of log α")
    np.testing.assert_allclose(runs[0].log_alpha, runs[0].details.log_alpha_draws.mean(axis=0))


@pytest.mark.slow
def test_tmcmc_in_twenty_dimensions_agrees_with_nuts():
    """Predictive mean and band; modes by the shares of sign patterns; R-hat over runs."""
    x, y = sbnn.datasets.boxcar(seed=0)
    problem = sbnn.network_problem(x, y, (3,), noise_std=0.5)
    at = np.array([-6.0, -3.0, 0.0, 3.0, 6.0])
    runs = [hierarchical(problem, key=k) for k in keys(3)]
    starts = runs[0].details.joint[:4]
    chains = nuts(problem, Hyperprior(), starts, jax.random.key(keys(1)[0]), 1000, 4000)
    phi = np.asarray(to_parameters(jnp.asarray(chains), problem.ard))
    forward = jax.vmap(jax.vmap(problem.network.forward, (0, None)), (0, None))
    values = np.asarray(forward(jnp.asarray(phi), jnp.asarray(at)[:, None]))[..., 0]
    both = [np.stack([r.push_forward(at, n=2000) for r in runs]), values]
    means = [v.mean(axis=1) for v in both]  # per run or chain
    bands = [np.diff(np.quantile(v, [0.025, 0.975], axis=1), axis=0)[0] for v in both]
    print("\nTMCMC means", means[0].mean(0).round(3), "bands", bands[0].mean(0).round(2))
    print("NUTS  means", means[1].mean(0).round(3), "bands", bands[1].mean(0).round(2))
    for one, two, what in ((*means, "mean"), (*bands, "band")):
        error = np.sqrt(sum(v.var(axis=0, ddof=1) / len(v) for v in (one, two)))
        assert_within_errors(one.mean(0), two.mean(0), np.maximum(error, 0.01), what)
    # R-hat over independent runs, for quantities invariant under the symmetries
    for quantity in (both[0], np.stack([r.log_likelihood for r in runs])[..., None]):
        within = quantity.var(axis=1, ddof=1).mean(axis=0)
        between = quantity.mean(axis=1).var(axis=0, ddof=1)
        assert (np.sqrt(1 + between / within) < 1.05).all()
