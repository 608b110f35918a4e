"""A linear model whose evidence is known, and a walk that must fail: shared by several tests."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

import sbnn
from sbnn._core.keys import seed_of
from sbnn.evidence.mixture import GaussianMixture
from sbnn.sampling import moves
from sbnn.sampling.moves import MoveInfo, Particles

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


def naive_mutate(target, key, particles, beta, factor, scale, **_):
    """One move with the textbook scale 2.38/√d, whatever the acceptance: what must not pass."""
    phi, log_likelihood, _ = particles
    n, d = phi.shape
    factor = 2.38 / np.sqrt(d) * np.broadcast_to(factor, (2, d, d))
    words = moves.random_words(seed_of(key), (moves.n_words(phi.shape[1]), n))
    word = words[-1]
    proposal = moves._host_propose(words, phi, factor, np.zeros(n, np.int32))
    new = np.asarray(target.evaluate(proposal))
    phi, log_likelihood, accept, bad = (
        np.asarray(a)
        for a in moves._host_accept(
            target.prior, word, np.float64(beta), phi, log_likelihood, proposal, new
        )
    )
    info = MoveInfo(accept.mean(), scale, 1, n, int(bad.sum()), 1.0, False)
    return Particles(phi, log_likelihood, particles.ancestor), info
