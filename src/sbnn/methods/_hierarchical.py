"""`sbnn.hierarchical`: parameters and their precisions sampled together, by TMCMC."""

from __future__ import annotations

import time

import numpy as np

from sbnn._core.float64 import float64
from sbnn._core.keys import Key, as_key, key_words
from sbnn.methods.details import HierarchicalDetails
from sbnn.methods.result import Result, full_length
from sbnn.methods.resume import Call, CheckpointPath, Resources, carry_out
from sbnn.methods.sampler_report import messages_of, stage_table
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem, require_ard
from sbnn.sampling.evaluator import Executor
from sbnn.sampling.joint import joint_evaluator, joint_symmetry, joint_target, to_parameters
from sbnn.sampling.joint_move import JointMove
from sbnn.sampling.moves import choose, move_name
from sbnn.sampling.progress import Progress, reporter
from sbnn.sampling.tmcmc import TmcmcResult, check_options, tmcmc


@float64
def hierarchical(
    problem: Problem,
    key: Key = 0,
    n_particles: int = 2000,
    hyperprior: Hyperprior | None = None,
    move: str = "auto",
    max_moves: int | None = None,
    progress: Progress = False,
    executor: Executor = None,
    on_failure: str = "retry",
    checkpoint: CheckpointPath = None,
) -> Result:
    """Hierarchical Bayes: φ and log α sampled together by TMCMC, in twice the dimensions.

    Non-centred, φ = z exp(−½ log α), with log α restricted to the range over which the default
    hyperprior is flat. Between the moves of all coordinates, log α is drawn from p(log α|φ) and
    rescaled together with φ (`sbnn.sampling.joint_move`). `Result.details` (`HierarchicalDetails`)
    holds the draws of log α.

    Parameters
    ----------
    problem : Problem
        With at least one ARD parameter.
    key : int or JAX key
    n_particles : int
    hyperprior : Hyperprior, optional
    move : {"auto", "random_walk", "hmc"} or Move
        "auto" is HMC where the problem has gradients, else the random walk.
    max_moves : int, optional
        Largest number of moves per tempering stage; 300 for HMC, 1,000 for the random walk.
    progress, executor, on_failure, checkpoint
        As for `sbnn.standard`.

    Returns
    -------
    Result
        `log_alpha` is the posterior mean; `relevance` is None.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, before anything runs.

    Warns
    -----
    ConvergenceWarning, RuntimeWarning
        As for `sbnn.standard`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import sbnn
    >>> problem = sbnn.Problem(lambda t: -50 * jnp.sum((t - 1) ** 2), ["a"], ard=["a"])
    >>> result = sbnn.hierarchical(problem, key=0, n_particles=100)
    >>> result.details.log_alpha_draws.shape
    (100, 1)
    """
    require_ard(problem, "hierarchical")
    if move == "auto":
        move = "random_walk" if problem.black_box else "hmc"
    max_moves = max_moves or (1000 if move == "random_walk" else 300)
    function = problem.log_likelihood if problem.black_box else None
    check_options(n_particles, move, max_moves, function)
    hyperprior = hyperprior or Hyperprior()
    options = {"n_particles": n_particles, "move": move_name(move), "max_moves": max_moves}

    def compute(resources: Resources) -> Result:
        started = time.perf_counter()
        run = _sample_jointly(
            problem, hyperprior, key, n_particles, move, max_moves, progress, resources
        )
        log_alpha = run.particles.phi[:, problem.n_parameters :]
        return Result(
            method="hierarchical",
            problem=problem,
            phi=np.asarray(to_parameters(run.particles.phi, problem.ard)),
            log_likelihood=run.particles.log_likelihood,
            log_evidence=run.log_evidence,
            log_evidence_error=run.log_evidence_error,
            n_evaluations=run.n_evaluations,
            seconds=time.perf_counter() - started,
            converged=run.converged,
            reason=run.reason,
            key=key_words(key),
            settings={**options, "hyperprior": [hyperprior.shape, hyperprior.rate]},
            n_rejected=run.n_rejected,
            log_alpha=full_length(problem, log_alpha.mean(axis=0)),
            messages=messages_of(run),
            history={"stages": stage_table(run)},
            details=HierarchicalDetails(log_alpha, joint=run.particles.phi),
            description=problem.description(),
        )

    settings = {**options, "hyperprior": hyperprior, "on_failure": on_failure}
    return carry_out(
        Call("hierarchical", problem, key, settings),
        compute,
        executor=executor,
        on_failure=on_failure,
        checkpoint=checkpoint,
    )


def _sample_jointly(
    problem: Problem,
    hyperprior: Hyperprior,
    key: Key,
    n_particles: int,
    move: str,
    max_moves: int,
    progress: Progress,
    resources: Resources,
) -> TmcmcResult:
    """Particles of (z, log α)."""
    with reporter(progress, "Hierarchical Bayes") as on_stage:
        return tmcmc(
            joint_target(problem, hyperprior),
            as_key(key),
            n_particles=n_particles,
            move=JointMove(problem, hyperprior, choose(move, resources.evaluate).first),
            max_moves=max_moves,
            symmetry=joint_symmetry(problem),
            evaluate=joint_evaluator(problem, resources.evaluate),
            on_stage=on_stage,
            checkpoint=resources.checkpoint.part("tmcmc"),
        )
