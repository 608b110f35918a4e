"""The methods, each a short composition of the parts above: problem and key in, Result out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pandas as pd

from sbnn._float64 import as_key, float64, key_data
from sbnn.problem import Problem, invariant_symmetry
from sbnn.results import Result
from sbnn.tmcmc import Stage, TmcmcResult, check_options, tmcmc

Progress = bool | Callable[[Stage], None]


def _require_problem(problem: Any) -> None:
    if not isinstance(problem, Problem):
        raise TypeError(
            f"The first argument must be an sbnn.Problem; got {type(problem).__name__}. "
            "Make one with sbnn.network_problem(X, y, …) or sbnn.Problem(log_likelihood, …)."
        )


def _reporter(progress: Progress, title: str):
    """A context that shows stages while they run; nothing when `progress` is False."""
    from sbnn.progress import reporter

    return reporter(progress, title)


def _evaluator(problem: Problem):
    return problem.log_likelihood if problem.black_box else None


def stage_table(run: TmcmcResult) -> pd.DataFrame:
    """The per-stage record as a table."""
    return pd.DataFrame(run.stages, columns=list(Stage._fields))


@float64
def standard(
    problem: Problem,
    key: Any = 0,
    n_particles: int = 2000,
    move: str = "auto",
    max_moves: int = 400,
    progress: Progress = False,
) -> Result:
    """Standard Bayesian inference: the posterior under the known priors, by TMCMC.

    Parameters that are ARD in the sparse methods are uniform on their box here.

    Parameters
    ----------
    problem : Problem
    key : int or JAX key
        The same key gives the same answer, on any number of devices.
    n_particles : int
    move : {"auto", "random_walk", "hmc"}
    max_moves : int
        Cap of moves per tempering stage.
    progress : bool or callable
        Show a display, or be called with every finished stage.

    Examples
    --------
    >>> import sbnn
    >>> x, y = sbnn.datasets.boxcar()
    >>> problem = sbnn.network_problem(x, y, hidden_layer_sizes=(2,), noise_std=0.5)
    >>> result = sbnn.standard(problem, key=0, n_particles=500)
    >>> result.phi.shape
    (500, 7)
    """
    _require_problem(problem)
    evaluate = _evaluator(problem)
    check_options(n_particles, move, max_moves, evaluate)
    started = time.perf_counter()
    target = problem.target()
    symmetry = invariant_symmetry(problem.symmetry, target.prior, jax.random.key(0))
    with _reporter(progress, "Standard Bayes") as on_stage:
        run = tmcmc(
            target,
            as_key(key),
            n_particles=n_particles,
            move=move,
            max_moves=max_moves,
            symmetry=symmetry,
            evaluate=evaluate,
            on_stage=on_stage,
        )
    return Result(
        method="standard",
        problem=problem,
        phi=run.particles.phi,
        log_likelihood=run.particles.log_likelihood,
        log_evidence=run.log_evidence,
        log_evidence_error=run.log_evidence_error,
        n_evaluations=run.n_evaluations,
        seconds=time.perf_counter() - started,
        converged=run.converged,
        reason=run.reason,
        key=tuple(int(word) for word in np.ravel(key_data(key))),
        settings={"n_particles": n_particles, "move": move, "max_moves": max_moves},
        n_rejected=run.n_rejected,
        messages=_rejection_message(run),
        history={"stages": stage_table(run)},
        description=problem.description(),
    )


def _rejection_message(run: TmcmcResult) -> tuple[str, ...]:
    if run.n_rejected == 0:
        return ()
    return (
        f"The log-likelihood was NaN or −inf in {run.n_rejected} of {run.n_evaluations} "
        "evaluations; those points were rejected.",
    )
