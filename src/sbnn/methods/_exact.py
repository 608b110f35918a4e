"""`sbnn.exact_evidence`: the exact evidence at given precisions."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sbnn._core.arrays import as_real
from sbnn._core.float64 import float64
from sbnn._core.keys import Key
from sbnn.evidence.exact.cold import ExactRun, cold_evidence
from sbnn.evidence.exact.warm_modes import MAX_MODES, around_modes
from sbnn.methods.resume import Call, CheckpointPath, open_folder
from sbnn.problems.problem import Problem, require_problem
from sbnn.sampling.checkpoints import FolderCheckpoint
from sbnn.sampling.progress import Progress, reporter
from sbnn.sampling.state import check_n_particles
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint
from sbnn.sampling.warm_start import WarmStartResult


@dataclass(frozen=True)
class ExactEvidence:
    """The exact log evidence at given α; unpacks as ``log_evidence, error, draws``.

    Attributes
    ----------
    log_evidence, error : float
        With all images under sign flips of neurons; one standard error.
    draws : ndarray, shape (n, n_parameters)
        Of p(φ|D, α); of one image, and zero where a parameter is pruned.
    verified : bool
        Whether the run converged, its independent estimates agree, and no image of the best mode
        under permutations of neurons is missing.
    reason : str
        Why it is not verified; empty if it is.
    forward, backward : float
        One-sided estimates along the path, which check the log evidence; NaN for a cold run.
    k_hat : float
        Pareto shape of the weights from the Laplace approximation to the posterior: below 0.7 the
        approximation is good; NaN for a cold run.
    seconds : float
    """

    log_evidence: float
    error: float
    draws: np.ndarray = field(repr=False)
    verified: bool
    reason: str
    forward: float
    backward: float
    k_hat: float
    seconds: float

    def __iter__(self) -> Iterator[Any]:
        return iter((self.log_evidence, self.error, self.draws))


@float64
def exact_evidence(
    problem: Problem,
    log_alpha: Any,
    *,
    start: Any = None,
    key: Key = 0,
    n_particles: int = 512,
    progress: Progress = False,
    checkpoint: CheckpointPath = None,
) -> ExactEvidence:
    """The exact log evidence log p(D|α), its error, and draws of p(φ|D, α).

    With gradients, warm-start SMC leads from the Laplace approximation to the exact posterior
    (`sbnn.sampling.warm_start`), for networks of up to some hundred weights. It covers the modes
    that the Laplace engine finds from 16 random starts, or the one near `start`: a mode that is
    not among them and not connected to them is left out. A black-box problem is sampled from its
    prior by TMCMC, which takes at least 2,000 particles.

    Parameters
    ----------
    problem : Problem
    log_alpha : array, shape (n_alpha,) or (n_parameters,)
        Log precisions of the ARD parameters, inf for those that are zero. With one value per
        parameter, those without ARD are ignored, as in `Result.log_alpha`.
    start : array, shape (n_parameters,), optional
        A point near the mode, for example ``result.details.mode``.
    key : int or JAX key
        The same key gives the same numbers.
    n_particles : int
    progress, checkpoint
        As for `sbnn.standard`.

    Returns
    -------
    ExactEvidence

    Warns
    -----
    ConvergenceWarning
        If the result is not verified; `ExactEvidence.reason` says why.

    Raises
    ------
    ValueError
        If `log_alpha` or `start` has the wrong length or is not a number.

    Examples
    --------
    >>> import sbnn
    >>> x, y = sbnn.datasets.boxcar()
    >>> problem = sbnn.network_problem(x, y, hidden_layer_sizes=(2,), noise_std=0.5)
    >>> found = sbnn.laplace_nsbl(problem, key=0)
    >>> value, error, draws = sbnn.exact_evidence(
    ...     problem, found.log_alpha, start=found.details.mode, n_particles=128)
    >>> draws.shape
    (128, 7)
    """
    require_problem(problem)
    log_alpha = _check_log_alpha(problem, log_alpha)
    check_n_particles(n_particles)
    if start is not None:
        start = as_real("`start`", start)
        if start.shape != (problem.n_parameters,) or not np.isfinite(start).all():
            raise ValueError(
                f"`start` must hold {problem.n_parameters} finite numbers, one per parameter."
            )
    started = time.perf_counter()
    settings = {"log_alpha": log_alpha, "start": start, "n_particles": n_particles}
    call = Call("exact_evidence", problem, key, settings)
    complete = True
    with contextlib.ExitStack() as stack:
        kept: Checkpoint = NO_CHECKPOINT
        if checkpoint is not None:
            folder = stack.enter_context(open_folder(checkpoint, call))
            kept = FolderCheckpoint(folder).part("run")
        on_stage = stack.enter_context(reporter(progress, "Exact evidence"))
        run: ExactRun
        if problem.black_box:
            run = cold_evidence(
                problem, log_alpha, key, n_particles=max(n_particles, 2000), on_stage=on_stage,
                checkpoint=kept,
            )  # fmt: skip
        else:
            local = around_modes(problem, log_alpha, key, start=start)
            run = local.sample_all(key, n_particles, on_stage, kept)
            complete = local.complete
    found = _exact(run, complete, started)
    if not found.verified:
        from sklearn.exceptions import ConvergenceWarning  # takes half a second, rarely needed

        warnings.warn(
            f"The exact log evidence is not verified: {found.reason}.", ConvergenceWarning,
            stacklevel=3,
        )  # fmt: skip
    return found


def _exact(run: ExactRun, complete: bool, started: float) -> ExactEvidence:
    checks, agreeing = (np.nan, np.nan, np.nan), True
    if isinstance(run, WarmStartResult):
        checks, agreeing = (run.forward, run.backward, run.k_hat), run.agreeing
    reason = ""
    if not run.converged:
        reason = str(run.reason).rstrip(".")
    elif not agreeing:
        reason = "its independent estimates do not agree; raise `n_particles`"
    elif not complete:
        reason = (
            f"images of the mode with neurons exchanged are left out, more than {MAX_MODES} in "
            "all; pass `start` for the evidence of one of them"
        )
    return ExactEvidence(
        run.log_evidence, run.log_evidence_error, run.particles.phi, not reason, reason,
        *checks, time.perf_counter() - started,
    )  # fmt: skip


def _check_log_alpha(problem: Problem, log_alpha: Any) -> np.ndarray:
    log_alpha = as_real("`log_alpha`", log_alpha)
    n_alpha = int(problem.ard.sum())
    if log_alpha.shape == (problem.n_parameters,):
        log_alpha = log_alpha[problem.ard]
    if log_alpha.shape != (n_alpha,) or np.isnan(log_alpha).any() or (log_alpha == -np.inf).any():
        raise ValueError(
            f"`log_alpha` must hold one number per ARD parameter, {n_alpha} in all (inf for "
            f"pruned ones); got {log_alpha!r}."
        )
    return log_alpha
