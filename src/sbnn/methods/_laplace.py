"""The two methods that climb instead of sampling: Laplace, and Laplace with NSBL."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd

from sbnn._core.float64 import float64
from sbnn._core.keys import key_words
from sbnn._core.messages import FreeDirections, Message, ModeNotReached, ModeReached
from sbnn.evidence.modes import box_log_alpha, climb, find_modes, polish, sparse_modes
from sbnn.methods.details import LaplaceDetails
from sbnn.methods.result import Result, full_length
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem, require_ard, require_problem


@float64
def laplace(
    problem: Problem, key: Any = 0, n_particles: int = 2000, n_starts: int = 10, start: Any = None
) -> Result:
    """Laplace approximation: a Gaussian at the best mode, no relevance learned.

    The uniform box of every ARD parameter is replaced by the Gaussian of the same variance, so that
    directions which the data leave free (a redundant neuron has several) stay proper; how many
    there are is said in `messages`. The log evidence is that of the one mode.

    `start` of shape (n_parameters,) is climbed from in place of `n_starts` random starts. The mode
    is `details.mode`; the square roots of the diagonal of `details.covariance` are standard
    deviations, those of nonlinear regression where priors are flat (`Problem.from_model`).
    """
    require_problem(problem)
    _require_gradients(problem, "laplace")
    started = time.perf_counter()
    rng = np.random.default_rng(key_words(key))
    log_alpha = box_log_alpha(problem)
    if start is None:
        modes = find_modes(problem, log_alpha, rng, n_starts)
    else:
        modes = [climb(problem, log_alpha, _check_start(problem, start))]
    best = polish(problem, modes[0])
    free = np.linalg.eigvalsh(best.precision) < np.exp(log_alpha).min(initial=np.inf)
    free &= problem.ard.any()
    messages: tuple[Message, ...] = (FreeDirections(int(free.sum())),) if free.any() else ()
    return _gaussian_result(
        problem, key, "laplace", best, rng, n_particles, started,
        settings={"n_starts": n_starts, "n_particles": n_particles},
        messages=messages,
        history={},
        learned=False,
        optima=pd.DataFrame({"log_evidence": [m.log_evidence for m in modes]}),
    )  # fmt: skip


@float64
def laplace_nsbl(
    problem: Problem,
    key: Any = 0,
    n_particles: int = 2000,
    n_starts: int = 10,
    hyperprior: Hyperprior | None = None,
) -> Result:
    """Laplace with NSBL: log α by the Laplace evidence, re-linearised at the mode each α moves.

    Without sampling, and for one mode: the log evidence is that of the best mode found from
    `n_starts` starts. It is an approximation that is not verified here; `sbnn.nsbl` is.
    """
    require_ard(problem, "laplace_nsbl")
    _require_gradients(problem, "laplace_nsbl")
    hyperprior = hyperprior or Hyperprior()
    started = time.perf_counter()
    rng = np.random.default_rng(key_words(key))
    found = sparse_modes(problem, hyperprior, rng, n_starts)
    best = found[0]
    return _gaussian_result(
        problem, key, "laplace_nsbl", best.mode, rng, n_particles, started,
        settings={
            "n_starts": n_starts,
            "n_particles": n_particles,
            "hyperprior": [hyperprior.shape, hyperprior.rate],
        },
        messages=(),
        history={"newton": pd.DataFrame({"objective": [h[0] for h in best.history]})},
        learned=True,
        optima=pd.DataFrame(
            {
                "log_evidence": [s.mode.log_evidence for s in found],
                "objective": [s.objective for s in found],
            }
        ),
        converged=best.converged,
        newton_log_alpha=np.array([h[1] for h in best.history]),
    )  # fmt: skip


def _check_start(problem: Problem, start: Any) -> np.ndarray:
    start = np.asarray(start, dtype=float)
    if start.shape != (problem.n_parameters,) or not np.isfinite(start).all():
        raise ValueError(
            f"`start` must hold one finite number per parameter, {problem.n_parameters} in all; "
            f"got {start!r}."
        )
    return start


def _require_gradients(problem: Problem, method: str) -> None:
    if problem.black_box:
        raise ValueError(
            f"`{method}` needs gradients, and this log-likelihood is a black box. Write it with "
            "jax.numpy, or use sbnn.standard, sbnn.nsbl or sbnn.hierarchical."
        )


def _gaussian_result(
    problem, key, method, mode, rng, n, started, *, settings, messages, history, learned, optima,
    converged=None, newton_log_alpha=None,
) -> Result:  # fmt: skip
    """Draws and record of a Gaussian posterior N(φ*, (Λ + A)⁻¹)."""
    prior = np.nan_to_num(full_length(problem, np.exp(mode.log_alpha)))
    factor = np.linalg.cholesky(mode.precision + np.diag(prior))
    noise = rng.normal(size=(n, problem.n_parameters))
    phi = mode.phi + np.linalg.solve(factor.T, noise.T).T
    covariance = np.linalg.inv(mode.precision + np.diag(prior))
    gamma = np.clip(1.0 - prior * np.diag(covariance), 0.0, 1.0)
    return Result(
        method=method,
        problem=problem,
        phi=phi,
        log_likelihood=problem.log_likelihood(phi),
        log_evidence=mode.log_evidence,
        log_evidence_error=0.0,
        n_evaluations=0,
        seconds=time.perf_counter() - started,
        converged=mode.converged if converged is None else bool(converged),
        reason=ModeReached() if mode.converged else ModeNotReached(),
        key=key_words(key),
        settings=settings,
        log_alpha=full_length(problem, mode.log_alpha),
        relevance=np.where(problem.ard, gamma, np.nan) if learned else None,
        optima=optima,
        messages=messages,
        history=history,
        details=LaplaceDetails(mode.phi, mode.precision, covariance, newton_log_alpha),
        description=problem.description(),
    )
