"""`sbnn.standard`: the posterior under the known priors, by TMCMC."""

from __future__ import annotations

import time

from sbnn._core.float64 import float64
from sbnn._core.keys import Key, as_key, key_words
from sbnn.methods.result import Result
from sbnn.methods.resume import Call, CheckpointPath, Resources, carry_out
from sbnn.methods.sampler_report import messages_of, stage_table
from sbnn.problems.problem import Problem, require_problem
from sbnn.problems.symmetry import invariant_symmetry
from sbnn.sampling.evaluator import Executor
from sbnn.sampling.moves import move_name
from sbnn.sampling.progress import Progress, reporter
from sbnn.sampling.tmcmc import TmcmcResult, check_options, tmcmc


@float64
def standard(
    problem: Problem,
    key: Key = 0,
    n_particles: int = 2000,
    move: str = "auto",
    max_moves: int = 400,
    progress: Progress = False,
    executor: Executor = None,
    on_failure: str = "retry",
    checkpoint: CheckpointPath = None,
) -> Result:
    """Standard Bayesian inference: the posterior under the known priors, by TMCMC.

    Parameters that are ARD in the sparse methods are uniform on their box here.

    Parameters
    ----------
    problem : Problem
    key : int or JAX key
        The same key gives the same numbers, on any number of devices.
    n_particles : int
        Number of posterior draws.
    move : {"auto", "random_walk", "hmc"} or Move
        How particles move; "auto" starts with the random walk and changes to HMC if that gets
        stuck and the problem has gradients.
    max_moves : int
        Largest number of moves per tempering stage.
    progress : bool or callable
        True shows a display; a callable is called with every finished stage.
    executor : None, "serial", "processes", int or distributed.Client
        Where a black-box function runs: in this process, in worker processes (one per core, or the
        number given), or on a Dask cluster.
    on_failure : {"retry", "reject", "raise"}
        What to do when a black-box function raises an error or kills its worker: evaluate the point
        once more, count it as zero likelihood, or stop.
    checkpoint : path, optional
        A directory that keeps every finished stage. After an interruption, the same call continues
        from there and gives the same numbers; after the end, it returns the stored result.

    Returns
    -------
    Result

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, before anything runs; if the log-likelihood is NaN or −inf at
        every prior draw.
    CheckpointError
        If `checkpoint` belongs to another call, is damaged, or is in use.

    Warns
    -----
    ConvergenceWarning
        If the sampler got stuck. Also in `Result.messages`.
    RuntimeWarning
        If a black-box function failed at some points.

    Examples
    --------
    >>> import sbnn
    >>> x, y = sbnn.datasets.boxcar()
    >>> problem = sbnn.network_problem(x, y, hidden_layer_sizes=(2,), noise_std=0.5)
    >>> result = sbnn.standard(problem, key=0, n_particles=500)
    >>> result.phi.shape
    (500, 7)
    """
    require_problem(problem)
    function = problem.log_likelihood if problem.black_box else None
    check_options(n_particles, move, max_moves, function)
    settings = {"n_particles": n_particles, "move": move_name(move), "max_moves": max_moves}

    def compute(resources: Resources) -> Result:
        started = time.perf_counter()
        run = sample_posterior(
            problem, key, n_particles, resources, progress, move=move, max_moves=max_moves
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
            key=key_words(key),
            settings=settings,
            n_rejected=run.n_rejected,
            messages=messages_of(run),
            history={"stages": stage_table(run)},
            description=problem.description(),
        )

    call = Call("standard", problem, key, {**settings, "on_failure": on_failure})
    return carry_out(call, compute, executor=executor, on_failure=on_failure, checkpoint=checkpoint)


def sample_posterior(
    problem: Problem,
    key: Key,
    n_particles: int,
    resources: Resources,
    progress: Progress,
    *,
    move: str = "auto",
    max_moves: int = 400,
    give_up: bool = False,
) -> TmcmcResult:
    """Particles of the posterior under the known priors, and the log evidence."""
    target = problem.target()
    with reporter(progress, "Standard Bayes") as on_stage:
        return tmcmc(
            target,
            as_key(key),
            n_particles=n_particles,
            move=move,
            max_moves=max_moves,
            symmetry=invariant_symmetry(problem.symmetry, target.prior, 0),
            evaluate=resources.evaluate,
            on_stage=on_stage,
            give_up=give_up,
            checkpoint=resources.checkpoint.part("tmcmc"),
        )
