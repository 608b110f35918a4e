"""The exact evidence at a given α, by TMCMC from the prior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sbnn._core.float64 import float64
from sbnn.problems.problem import Problem
from sbnn.problems.symmetry import invariant_symmetry
from sbnn.sampling.moves import Move
from sbnn.sampling.state import Evaluate, Stage
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint
from sbnn.sampling.tmcmc import TmcmcResult, tmcmc
from sbnn.sampling.warm_start import WarmStartResult

ExactRun = TmcmcResult | WarmStartResult
"""Particles and exact log evidence, from the prior or from modes."""

# Moves per stage. With 400, one or two stages of the study's network had not decorrelated for all
# of eight keys; with 1,000, for one of three.
MOST_MOVES, MOST_CALLS = 2000, 400


@float64
def cold_evidence(
    problem: Problem,
    log_alpha: np.ndarray,
    key: Any,
    *,
    n_particles: int = 2000,
    move: str | Move = "auto",
    max_moves: int | None = None,
    evaluate: Evaluate | None = None,
    on_stage: Callable[[Stage], None] | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> TmcmcResult:
    """log p(D|α) and particles of p(φ|D, α), by TMCMC from the ARD prior at α.

    The only error comes from the finite number of particles, and it is reported. Surrogates are
    verified against this.

    Parameters
    ----------
    problem : Problem
    log_alpha : ndarray, shape (n_alpha,)
        Log precisions of the ARD parameters.
    max_moves : int, optional
        Cap of moves per stage; by default `MOST_MOVES`, or `MOST_CALLS` of a black-box likelihood.
    key, n_particles, move, evaluate, on_stage, checkpoint
        As for `sbnn.sampling.tmcmc.tmcmc`.

    Returns
    -------
    TmcmcResult

    Examples
    --------
    A Gaussian likelihood N(0.3 | φ, 0.5²) and φ ~ N(0, 1):

    >>> import jax, sbnn
    >>> from scipy.stats import norm
    >>> problem = sbnn.Problem(
    ...     lambda phi: jax.scipy.stats.norm.logpdf(0.3, phi[0], 0.5), ["phi"], ard=["phi"])
    >>> run = cold_evidence(problem, np.zeros(1), 0, n_particles=200)
    >>> error = abs(run.log_evidence - norm.logpdf(0.3, 0, 1.25**0.5))
    >>> bool(error < 4 * run.log_evidence_error)
    True
    """
    if max_moves is None:
        max_moves = MOST_MOVES if evaluate is None else MOST_CALLS
    prior = problem.prior_at(log_alpha)
    symmetry = invariant_symmetry(problem.symmetry, prior, 0)
    return tmcmc(
        problem.target(prior),
        key,
        n_particles=n_particles,
        move=move,
        max_moves=max_moves,
        symmetry=symmetry,
        evaluate=evaluate,
        on_stage=on_stage,
        checkpoint=checkpoint,
    )
