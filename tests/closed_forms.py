"""A linear model whose evidence is known, and a walk that must fail: shared by several tests."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

import sbnn
from sbnn._core.keys import seed_of
from sbnn.evidence.mixture import GaussianMixture
from sbnn.sampling.moves import RandomWalk, metropolis, moved
from sbnn.sampling.moves.base import failures
from sbnn.sampling.moves.random_walk import log_uniform, n_words, propose, random_words
from sbnn.sampling.state import MoveInfo

SIGMA = 0.4


def linear_log_likelihood(theta, data):
    design, y = data
    residual = (y - design @ theta) / SIGMA
    return -0.5 * jnp.sum(residual**2) - len(y) * np.log(SIGMA * np.sqrt(2 * np.pi))


@functools.cache
def linear():
    """y = Xφ + noise with one coefficient that is zero; the problem and its exact mixture."""
    r = np.random.default_rng(70)
    design = r.normal(size=(25, 3))
    y = design @ np.array([1.5, -0.7, 0.0]) + SIGMA * r.normal(size=25)
    problem = sbnn.Problem(
        linear_log_likelihood, ["a", "b", "c"], ard=["a", "b", "c"], data=(design, y)
    )
    precision = design.T @ design / SIGMA**2
    mean = np.linalg.solve(precision, design.T @ y / SIGMA**2)
    log_normaliser = (
        float(problem.log_likelihood(mean))
        + 1.5 * np.log(2 * np.pi)
        - 0.5 * np.linalg.slogdet(precision)[1]
    )
    mixture = GaussianMixture(
        np.zeros((1, 1)), mean[None, None], np.linalg.inv(precision)[None], log_normaliser
    )
    return problem, mixture


def naive_mutate(density, key, particles, factor, scale, **_):
    """One move with the textbook scale 2.38/√d, whatever the acceptance: what must not pass."""
    n, d = particles.phi.shape
    factor = RandomWalk().initial_scale(d) * np.broadcast_to(factor, (2, d, d))
    words = random_words(seed_of(key), (n_words(d), n))
    proposal = np.asarray(propose(words, particles.phi, factor, np.zeros(n, np.int32)))
    there = density.there(proposal)
    now, accepted = metropolis(log_uniform(words[-1]), density.beta, density.here(particles), there)
    info = MoveInfo(accepted.mean(), scale, 1, n, int(failures(there).sum()), 1.0, False)
    return moved(particles, now), info
