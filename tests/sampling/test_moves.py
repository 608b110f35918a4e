"""Moves leave the target invariant, on host and device, and their scale follows acceptance."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from helpers import SEED, assert_within_errors, gaussian_problem, rng
from scipy import stats

from sbnn._core.keys import seed_of
from sbnn.sampling.moves import HMC, Particles, RandomWalk, Tempered, mutate
from sbnn.sampling.moves.mutation import _correlation
from sbnn.sampling.moves.random_walk import random_words, symmetric_noise


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def posterior_draws(problem, n, beta, salt=0):
    """Exact draws of N(θ | 0, 1) N(m | θ, s²)^β."""
    mean, std = problem.data
    precision = 1 + beta / std**2
    centre = beta * mean / std**2 / precision
    return (
        centre,
        1 / precision,
        centre + rng(30, salt).normal(size=(n, len(mean))) / np.sqrt(precision),
    )


def population(problem, phi):
    return Particles(phi, problem.log_likelihood(phi), np.arange(len(phi)))


def walk(problem, beta, particles, factor, scale, **options):
    density = Tempered(problem.target(), beta)
    key = jax.random.key(SEED)
    return mutate(density, key, particles, factor, scale, move=RandomWalk(), **options)


@pytest.mark.parametrize("kind", ["random_walk", "hmc", "black box"])
def test_moves_leave_the_tempered_target_invariant(kind):
    problem, _ = gaussian_problem(2)
    beta = 0.3
    centre, variance, phi = posterior_draws(problem, 800, beta)
    before = population(problem, phi)
    factor = np.sqrt(variance) * np.eye(2)

    def on_the_host(theta):
        return stats.norm.logpdf(theta, *problem.data).sum(axis=1)

    after, info = mutate(
        Tempered(problem.target(), beta, on_the_host if kind == "black box" else None),
        jax.random.key(SEED),
        before,
        factor,
        0.5,
        move=HMC() if kind == "hmc" else RandomWalk(),
    )
    assert info.decorrelated
    assert info.correlation <= 0.2
    assert (after.phi != phi).any(axis=1).mean() > 0.9
    z = (after.phi - centre) / np.sqrt(variance)
    assert_within_errors(z.mean(axis=0), 0.0, 1 / np.sqrt(800), "mean")
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4
    np.testing.assert_allclose(
        after.log_likelihood, problem.log_likelihood(after.phi), rtol=1e-9, atol=1e-9
    )


def test_moves_converge_to_the_target_from_elsewhere():
    """Negative control of the test above: after no moves the same comparison fails."""
    problem, _ = gaussian_problem(2)
    centre, variance, _ = posterior_draws(problem, 1, 0.3)
    phi = rng(31).normal(size=(800, 2))
    start = population(problem, phi)
    factor = np.sqrt(variance) * np.eye(2)
    after, _ = walk(problem, 0.3, start, factor, 1.0)
    distance = [
        stats.kstest(((p - centre) / np.sqrt(variance)).ravel(), "norm").pvalue
        for p in (phi, after.phi)
    ]
    assert distance[0] < 1e-4 < distance[1]


@pytest.mark.parametrize("scale", [1e-3, 30.0])
def test_scale_adapts_to_target_acceptance(scale):
    problem, _ = gaussian_problem(2)
    _, variance, phi = posterior_draws(problem, 800, 1.0)
    factor = np.sqrt(variance) * np.eye(2)
    _, info = walk(problem, 1.0, population(problem, phi), factor, scale, threshold=-1.0)
    assert info.n_moves >= 400
    assert not info.decorrelated
    assert info.acceptance == pytest.approx(RandomWalk.target_acceptance, abs=0.05)
    assert 0.5 < info.scale < 5.0


def test_each_half_of_the_ancestors_uses_its_own_factor():
    problem, _ = gaussian_problem(2)
    _, variance, phi = posterior_draws(problem, 200, 1.0)
    factors = np.stack([0.0 * np.eye(2), np.sqrt(variance) * np.eye(2)])
    before = population(problem, phi)._replace(ancestor=np.repeat([99, 100], 100))
    after, _ = walk(problem, 1.0, before, factors, 1.0)
    np.testing.assert_array_equal(after.phi[:100], phi[:100])
    assert (after.phi[100:] != phi[100:]).any(axis=1).mean() > 0.9


def test_proposal_noise_is_symmetric_with_unit_variance():
    words = random_words(seed_of(SEED), (2, 20_000))
    noise = np.asarray(symmetric_noise(words, 3)).T
    assert noise.shape == (20_000, 3)
    assert np.abs(noise).max() < np.sqrt(3)
    assert_within_errors(noise.mean(axis=0), 0.0, 1 / np.sqrt(20_000), "mean")
    # var(x²) = 9/5 − 1 for a uniform of unit variance
    assert_within_errors((noise**2).mean(axis=0), 1.0, np.sqrt(0.8 / 20_000), "variance")
    assert_within_errors(
        (noise[:, 0] * noise[:, 2]).mean(), 0.0, 1 / np.sqrt(20_000), "correlation"
    )
    np.testing.assert_array_equal(  # every value has its mirror image
        symmetric_noise(np.array([[5], [7]], np.uint32), 2),
        -symmetric_noise(np.array([[65530], [65528]], np.uint32), 2),
    )


def test_random_words_differ_between_keys_moves_and_chunks():
    seeds = [seed_of(1), seed_of(1, 0), seed_of(1, 0, 0), seed_of(1, 1), seed_of(2)]
    words = [tuple(random_words(s, (5,))) for s in seeds]
    assert len(set(words)) == len(seeds)
    assert words[1] == tuple(random_words(seed_of(1, 0), (5,)))


def test_constant_log_likelihood_counts_as_decorrelated():
    assert _correlation(np.zeros(5), np.arange(5.0)) == 0.0
    assert _correlation(np.arange(5.0), np.arange(5.0)) == pytest.approx(1.0)
