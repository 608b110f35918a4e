"""Moves of a population until it has decorrelated, with an adaptive scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnn._core.keys import key_data
from sbnn.sampling.moves.base import Move, Tempered
from sbnn.sampling.state import MoveInfo, Particles

# Correlation of the log-likelihood with its value before the moves at which particles count as
# decorrelated.
DECORRELATED = 0.2


def mutate(
    density: Tempered,
    key: Any,
    particles: Particles,
    factor: np.ndarray,
    scale: float,
    *,
    move: Move,
    max_moves: int = 400,
    threshold: float = DECORRELATED,
) -> tuple[Particles, MoveInfo]:
    """Move all particles under p(φ) p(D|φ)^β until they have forgotten where they started.

    After every block of moves the scale is adapted to the target acceptance, and the moves stop
    once the correlation, over the population, between the log-likelihood now and before the first
    move is at most `threshold` in two checks in a row, or after `max_moves`. The log-likelihood is
    the quantity from which the evidence is built; single coordinates of a multimodal posterior
    never decorrelate by local moves, however many, and need not, because the masses of modes come
    from resampling.

    Parameters
    ----------
    density : Tempered
    key : int or JAX key
    particles : Particles
    factor : ndarray, shape (d, d) or (2, d, d)
        Cholesky factor of the population's covariance. With two of them, particles whose ancestor
        was in the first half of the population use the first, the others the second
        (`sbnn.sampling.tempering.split_factors`).
    scale : float
        Initial scale of the proposals.
    move : Move
    max_moves : int
    threshold : float

    Returns
    -------
    Particles
    MoveInfo
    """
    n = len(particles.phi)
    start = particles.log_likelihood
    factor = np.broadcast_to(factor, (2, *np.shape(factor)[-2:]))
    run = move.kernel(density, factor, key_data(key))
    acceptance, correlation = 0.0, 1.0
    n_moves = n_rejected = n_calm = 0
    while n_moves < max_moves and n_calm < 2:
        particles, info = run(particles, scale)
        n_moves += move.block
        n_rejected += info.n_failed
        acceptance = info.n_accepted / (move.block * n)
        if move.target_acceptance is not None:
            # Robbins–Monro without decay: the target moves from stage to stage, and the population
            # average over thousands of particles is steady enough to follow it.
            scale = float(scale * np.exp(2.0 * (acceptance - move.target_acceptance)))
        correlation = _correlation(start, particles.log_likelihood)
        n_calm = n_calm + 1 if correlation <= threshold else 0
    n_evaluations = n_moves * n * move.evaluations_per_move
    return particles, MoveInfo(
        acceptance, scale, n_moves, n_evaluations, n_rejected, correlation, correlation <= threshold
    )


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])
