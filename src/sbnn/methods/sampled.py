"""The methods, each a short composition of the parts above: problem and key in, Result out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from sbnn._core.float64 import float64
from sbnn._core.keys import as_key, derive_key, key_data
from sbnn.evidence.candidates import search
from sbnn.evidence.mixture import GaussianMixture
from sbnn.methods.averaging import (
    average_draws,
    check_nsbl,
    first_run,
    make_mixture,
    optima_table,
    shares_of,
    too_fine,
)
from sbnn.methods.result import Result
from sbnn.methods.resume import convergence_warning, resumable
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem, require_ard, require_problem
from sbnn.problems.symmetry import invariant_symmetry
from sbnn.sampling.evaluator import with_executor
from sbnn.sampling.joint import joint_evaluator, joint_symmetry, joint_target, to_parameters
from sbnn.sampling.moves import STUCK, Move, move_name
from sbnn.sampling.state import Stage
from sbnn.sampling.tmcmc import TmcmcResult, check_options, tmcmc

Progress = bool | Callable[[Stage], None]


def _reporter(progress: Progress, title: str):
    """A context that shows stages while they run; nothing when `progress` is False."""
    from sbnn.sampling.progress import reporter

    return reporter(progress, title)


def stage_table(run: TmcmcResult) -> pd.DataFrame:
    """The per-stage record as a table."""
    return pd.DataFrame(run.stages, columns=list(Stage._fields))


@float64
@resumable
@with_executor
def standard(
    problem: Problem,
    key: Any = 0,
    n_particles: int = 2000,
    move: str | Move = "auto",
    max_moves: int = 400,
    progress: Progress = False,
    executor: Any = None,
    on_failure: str = "retry",
    checkpoint: Any = None,
) -> Result:
    """Standard Bayesian inference: the posterior under the known priors, by TMCMC.

    Parameters that are ARD in the sparse methods are uniform on their box here.

    Parameters
    ----------
    problem : Problem
    key : int or JAX key
        The same key gives the same answer, on any number of devices.
    n_particles : int
    move : {"auto", "random_walk", "hmc"} or sbnn.sampling.moves.Move
    max_moves : int
        Cap of moves per tempering stage.
    progress : bool or callable
        Show a display, or be called with every finished stage.
    executor : None, "processes", int or distributed.Client
        Where a black-box function runs: this process, worker processes, or a Dask cluster.
    on_failure : {"retry", "reject", "raise"}
        What an exception in it, or the death of its worker, leads to.
    checkpoint : path, optional
        A directory in which every finished stage is kept: the same call, after an interruption,
        continues from there and gives the same numbers; after its end, it returns the result.

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
    evaluate = executor
    check_options(n_particles, move, max_moves, evaluate)
    started = time.perf_counter()
    target = problem.target()
    symmetry = invariant_symmetry(problem.symmetry, target.prior, 0)
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
            checkpoint=checkpoint.part("tmcmc"),
        )
    return Result(
        method="standard",
        phi=run.particles.phi,
        settings={"n_particles": n_particles, "move": move_name(move), "max_moves": max_moves},
        **_record(run, problem, key, started),
    )


def _record(run: TmcmcResult, problem: Problem, key: Any, started: float) -> dict[str, Any]:
    """What every result of one TMCMC run says of it."""
    return {
        "problem": problem,
        "log_likelihood": run.particles.log_likelihood,
        "log_evidence": run.log_evidence,
        "log_evidence_error": run.log_evidence_error,
        "n_evaluations": run.n_evaluations,
        "seconds": time.perf_counter() - started,
        "converged": run.converged,
        "reason": run.reason,
        "key": key_words(key),
        "n_rejected": run.n_rejected,
        "messages": _messages(run),
        "history": {"stages": stage_table(run)},
        "description": problem.description(),
    }


def _messages(run: TmcmcResult) -> tuple[str, ...]:
    """What the user should know of a run; a sampler that got stuck is also warned of."""
    out = []
    if run.n_rejected:
        out.append(
            f"The log-likelihood was NaN or −inf in {run.n_rejected} of {run.n_evaluations} "
            "evaluations; those points were rejected."
        )
    if max(stage.correlation for stage in run.stages) > STUCK:
        out.append(
            f"The sampler got stuck: it {run.reason}. The log evidence may be off by far more than "
            "its error; raise `max_moves`, or write the log-likelihood with jax.numpy."
        )
        warnings.warn(out[-1], convergence_warning(), stacklevel=3)
    return tuple(out)


@float64
@resumable
@with_executor
def nsbl(
    problem: Problem,
    key: Any = 0,
    n_particles: int = 2000,
    mixture: str | GaussianMixture = "kde",
    hyperprior: Hyperprior | None = None,
    n_starts: int = 12,
    sparsify: float = 0.75,
    tolerance: float = 1.0,
    average: bool = True,
    progress: Progress = False,
    executor: Any = None,
    on_failure: str = "retry",
    checkpoint: Any = None,
) -> Result:
    """Nonlinear sparse Bayesian learning, verified against the exact evidence.

    The likelihood is sampled once by TMCMC and approximated by a Gaussian mixture, whose evidence
    is maximised over log α in closed form. The optima found are then judged, refined and ranked by
    the exact evidence (`sbnn.evidence.candidates`); the draws come from the exact posterior.

    Parameters
    ----------
    problem : Problem
        With at least one ARD parameter.
    key : int or JAX key
    n_particles : int
    mixture : {"kde", "em"} or GaussianMixture
        A kernel density with shared bandwidth; EM with the number of kernels that BIC picks; or a
        mixture of your own. A bad one costs time, not truth: what it proposes is verified.
    hyperprior : Hyperprior, optional
    n_starts : int
        Starts of the Newton ascent.
    sparsify : float
        Evidence, in nats, that may be given up for a sparser answer; 0 keeps the maximum. Noise
        alone gains more than the default once in twenty times.
    tolerance : float
        Largest difference between the estimated and the exact log evidence of a verified result.
    average : bool
        Draws also carry the uncertainty of log α: from the optima, each by its exact evidence,
        they are led to p(φ, log α|D). With False they come from the exact posterior at α* alone;
        these are in `arrays["best_phi"]` in any case.
    progress, executor, on_failure, checkpoint
        As for `standard`.
    """
    require_ard(problem, "nsbl")
    evaluate = executor
    check_options(n_particles, "auto", 1, evaluate)
    check_nsbl(problem, mixture, n_starts, sparsify, tolerance)
    hyperprior = hyperprior or Hyperprior()
    started = time.perf_counter()
    key_sample, key_search, key_average = (derive_key(key, i) for i in range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", convergence_warning())  # said in other words below
        base = standard(
            problem, key_sample, n_particles, progress=progress, executor=executor,
            checkpoint=checkpoint.part("standard"),
        )  # fmt: skip
    particles = base.phi if problem.symmetry is None else problem.symmetry.fold(base.phi)
    surrogate = make_mixture(problem, mixture, particles, base.log_evidence)
    found = search(
        problem,
        particles,
        surrogate,
        hyperprior,
        key_search,
        n_particles=n_particles,
        n_starts=n_starts,
        sparsify=sparsify,
        tolerance=tolerance,
        evaluate=evaluate,
        on_event=_events(progress),
        checkpoint=checkpoint.part("search"),
    )
    best = found.optima[0]
    verified = abs(best.gap) <= tolerance
    messages = first_run(base.messages)
    if not verified:
        messages.append(
            f"Not verified: the estimated log evidence {best.estimate:.2f} and the exact one "
            f"{best.exact.log_evidence:.2f} ± {best.exact.log_evidence_error:.2f} differ by more "
            f"than {tolerance} nat. Raise n_particles, or do not rely on this α."
        )
        warnings.warn(messages[-1], convergence_warning(), stacklevel=2)
    messages += too_fine(problem, best, hyperprior)
    shares = shares_of(problem, found, hyperprior)
    n_evaluations = base.n_evaluations + found.n_evaluations
    arrays = {}
    if average:
        phi, log_likelihood, draws, spent = average_draws(
            problem, found, shares, hyperprior, key_average, n_particles, evaluate,
            checkpoint.part("average"),
        )  # fmt: skip
        arrays["log_alpha_draws"] = draws
        n_evaluations += spent
    else:
        phi, log_likelihood = best.exact.particles.phi, best.exact.particles.log_likelihood
    newton = found.surrogate_optima[0]
    return Result(
        method="nsbl",
        problem=problem,
        phi=phi,
        log_likelihood=log_likelihood,
        log_evidence=best.exact.log_evidence,
        log_evidence_error=best.exact.log_evidence_error,
        n_evaluations=n_evaluations,
        seconds=time.perf_counter() - started,
        converged=newton.converged and best.exact.converged,
        reason=f"Newton: {newton.reason}; exact run: {best.exact.reason}",
        key=key_words(key),
        settings={
            "n_particles": n_particles,
            "mixture": mixture if isinstance(mixture, str) else "given",
            "hyperprior": [hyperprior.shape, hyperprior.rate],
            "n_starts": n_starts,
            "sparsify": sparsify,
            "tolerance": tolerance,
            "average": average,
        },
        n_rejected=base.n_rejected,
        log_alpha=full_length(problem, best.log_alpha),
        relevance=full_length(problem, best.relevance),
        verified=verified,
        evidence_gap=best.gap,
        optima=optima_table(found, shares, hyperprior),
        messages=tuple(messages),
        history={
            "stages": base.history["stages"],
            "newton": pd.DataFrame(
                {"objective": [s.objective for s in newton.history]},
            ),
            "refine": pd.DataFrame({"log_evidence": [s.log_evidence for s in best.steps]}),
        },
        arrays={
            **arrays,
            "standard_phi": base.phi,
            "best_phi": best.exact.particles.phi,
            "newton_iterations": np.array([o.n_iterations for o in found.surrogate_optima]),
            "newton_log_alpha": np.array([s.log_alpha for s in newton.history]),
            "newton_relevance": np.array([s.relevance for s in newton.history]),
            "optima_log_alpha": np.array([c.log_alpha for c in found.optima]),
            "optima_relevance": np.array([c.relevance for c in found.optima]),
            "standard_log_evidence": np.array([base.log_evidence, base.log_evidence_error]),
            "surrogate": np.array([newton.log_evidence, found.first_exact]),
            "mixture_log_weights": surrogate.log_weights,
            "mixture_means": surrogate.means,
            "mixture_covariances": surrogate.covariances,
            "mixture_log_normaliser": np.array(surrogate.log_normaliser),
        },
        description=problem.description(),
    )


def _events(progress: Progress):
    from sbnn.sampling.progress import events

    return events(progress)


def key_words(key: Any) -> tuple[int, ...]:
    return tuple(int(word) for word in np.ravel(key_data(key)))


def full_length(problem: Problem, values: np.ndarray) -> np.ndarray:
    """Values of the ARD parameters at full length, NaN where the prior is known."""
    out = np.full(problem.n_parameters, np.nan)
    out[problem.ard] = values
    return out


@float64
@resumable
@with_executor
def hierarchical(
    problem: Problem,
    key: Any = 0,
    n_particles: int = 2000,
    hyperprior: Hyperprior | None = None,
    move: str | Move = "auto",
    max_moves: int | None = None,
    progress: Progress = False,
    executor: Any = None,
    on_failure: str = "retry",
    checkpoint: Any = None,
) -> Result:
    """Hierarchical Bayes: φ and log α sampled together by TMCMC, in twice the dimensions.

    Non-centred, φ = z exp(−½ log α), with log α cut to the range over which the default hyperprior
    is flat. HMC moves where the problem has gradients. `arrays["log_alpha_draws"]` holds log α.
    The other parameters are those of `standard`.
    """
    require_ard(problem, "hierarchical")
    hyperprior = hyperprior or Hyperprior()
    if move == "auto":
        move = "random_walk" if problem.black_box else "hmc"
    max_moves = max_moves or (1000 if move == "random_walk" else 150)
    evaluate = joint_evaluator(problem, executor)
    check_options(n_particles, move, max_moves, evaluate)
    started = time.perf_counter()
    target = joint_target(problem, hyperprior)
    with _reporter(progress, "Hierarchical Bayes") as on_stage:
        run = tmcmc(
            target,
            as_key(key),
            n_particles=n_particles,
            move=move,
            max_moves=max_moves,
            symmetry=joint_symmetry(problem),
            evaluate=evaluate,
            on_stage=on_stage,
            checkpoint=checkpoint.part("tmcmc"),
        )
    joint = run.particles.phi
    phi = np.asarray(to_parameters(joint, problem.ard))
    log_alpha = joint[:, problem.n_parameters :]
    return Result(
        method="hierarchical",
        phi=phi,
        settings={
            "n_particles": n_particles,
            "hyperprior": [hyperprior.shape, hyperprior.rate],
            "move": move_name(move),
            "max_moves": max_moves,
        },
        log_alpha=full_length(problem, log_alpha.mean(axis=0)),
        arrays={"log_alpha_draws": log_alpha, "joint": joint},
        **_record(run, problem, key, started),
    )
