"""`sbnn.laplace` and `sbnn.laplace_nsbl`, the two methods that optimise instead of sampling."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sbnn._core.arrays import as_real
from sbnn._core.float64 import float64
from sbnn._core.keys import key_words
from sbnn._core.messages import (
    MANY_UNDEFINED,
    FreeDirections,
    Message,
    ModeNotReached,
    ModeReached,
    PointsRejected,
    warn,
)
from sbnn.evidence.laplace.fit import fit_sparse
from sbnn.evidence.laplace.gaussian import GaussianPosterior
from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.problems import box_log_alpha, model_of
from sbnn.evidence.laplace.modes import fit_fixed
from sbnn.evidence.laplace.optimum import Optimum, linearise
from sbnn.methods.details import LaplaceDetails
from sbnn.methods.result import Result
from sbnn.methods.sampler_report import N_DRAWS, undefined_fraction
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem, require_ard, require_problem


@float64
def laplace(
    problem: Problem, key: Any = 0, n_particles: int = 2000, n_starts: int = 16, start: Any = None
) -> Result:
    """Laplace approximation: a Gaussian at the best mode, without relevance learning.

    The uniform box of every ARD parameter is replaced by the Gaussian of the same variance, so that
    directions the data do not determine (a redundant neuron has several) stay proper; `messages`
    reports how many there are. The log evidence counts only this mode. An inferred noise level
    maximises the evidence, as in `laplace_nsbl`.

    Parameters
    ----------
    problem : Problem
        With gradients.
    key : int or JAX key
    n_particles : int
        Number of draws.
    n_starts : int
        Number of random starts of the optimisation.
    start : array, shape (n_parameters,), optional
        Start here instead.

    Returns
    -------
    Result
        `details.mode` is the mode and the square roots of the diagonal of `details.covariance` are
        standard deviations: those of nonlinear regression where priors are flat.

    Examples
    --------
    >>> import sbnn
    >>> x, y = sbnn.datasets.boxcar()
    >>> problem = sbnn.network_problem(x, y, hidden_layer_sizes=(2,), noise_std=0.5)
    >>> sbnn.laplace(problem, key=0, n_particles=100).phi.shape
    (100, 7)
    """
    require_problem(problem)
    _require_gradients(problem, "laplace")
    started = time.perf_counter()
    rng = np.random.default_rng(key_words(key))
    model = model_of(problem, Hyperprior())
    n_model = len(model.layout().active)
    log_alpha = np.zeros(problem.n_parameters)
    log_alpha[problem.ard] = box_log_alpha(problem)
    given = None if start is None else _check_start(problem, start)[:n_model]
    modes = fit_fixed(model, log_alpha[:n_model], rng, n_starts, given)
    free = _free_directions(model, modes[0], problem)
    messages: tuple[Message, ...] = (FreeDirections(free),) if free else ()
    return _gaussian_result(
        problem, key, "laplace", model, modes, rng, started,
        settings={"n_starts": n_starts, "n_particles": n_particles},
        messages=messages,
    )  # fmt: skip


@float64
def laplace_nsbl(
    problem: Problem,
    key: Any = 0,
    n_particles: int = 2000,
    n_starts: int = 10,
    hyperprior: Hyperprior | None = None,
) -> Result:
    """Laplace with NSBL: maximise the Laplace evidence over log α and the noise, and prune.

    The engine of `SparseBNNRegressor(method="laplace_nsbl")`, here for one optimum: the draws and
    the log evidence are those of the best one found from `n_starts` starts. It is not verified;
    `sbnn.nsbl` verifies its result.

    If the noise level σ is inferred, the log evidence is that at the best σ, not the integral over
    σ that `sbnn.nsbl` and `sbnn.standard` compute; it is higher by about 2 nats for 20 observations
    and 4 for 400. Compare it with results of `laplace_nsbl` or `laplace` only.

    Parameters
    ----------
    problem : Problem
        With gradients and at least one ARD parameter.
    key : int or JAX key
    n_particles : int
        Number of draws.
    n_starts : int
        Number of random starts of the optimisation.
    hyperprior : Hyperprior, optional

    Returns
    -------
    Result
        Pruned parameters are zero in all draws, with `log_alpha` ∞ and `relevance` 0: their std
        of 0 is a decision of the method, not a measured error.

    Examples
    --------
    >>> import sbnn
    >>> x, y = sbnn.datasets.boxcar()
    >>> problem = sbnn.network_problem(x, y, hidden_layer_sizes=(3,), noise_std=0.5)
    >>> sbnn.laplace_nsbl(problem, key=0).prune().network.sizes
    (1, 2, 1)
    """
    require_ard(problem, "laplace_nsbl")
    _require_gradients(problem, "laplace_nsbl")
    hyperprior = hyperprior or Hyperprior()
    started = time.perf_counter()
    rng = np.random.default_rng(key_words(key))
    model = model_of(problem, hyperprior)
    optima = fit_sparse(model, rng, n_starts)
    return _gaussian_result(
        problem, key, "laplace_nsbl", model, optima, rng, started,
        settings={
            "n_starts": n_starts,
            "n_particles": n_particles,
            "hyperprior": [hyperprior.shape, hyperprior.rate],
        },
    )  # fmt: skip


def _check_start(problem: Problem, start: Any) -> np.ndarray:
    start = as_real("`start`", start)
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


def _free_directions(model: Model, mode: Optimum, problem: Problem) -> int:
    """Number of directions that the data determine less than the weakest ARD prior does."""
    if not problem.ard.any():
        return 0
    jac_t, gram = linearise(model, mode).weighted(mode.noise)
    data = jac_t @ jac_t.T if gram is None else gram
    weakest = np.exp(mode.log_alpha[problem.ard[: len(mode.phi)]].min())
    return int((np.linalg.eigvalsh(data) < weakest).sum())


def _gaussian_result(
    problem: Problem,
    key: Any,
    method: str,
    model: Model,
    optima: list[Optimum],
    rng: np.random.Generator,
    started: float,
    settings: Mapping[str, Any],
    messages: tuple[Message, ...] = (),
) -> Result:
    """Draws and record of the Gaussian posterior N(φ*, H⁻¹) at the best optimum."""
    best = optima[0]
    undefined = undefined_fraction(problem)
    if undefined > MANY_UNDEFINED:
        n = round(N_DRAWS * undefined)
        messages = (*messages, PointsRejected(n, N_DRAWS, undefined))
    if method == "laplace" and not best.converged:
        messages = (*messages, ModeNotReached())
    warn(messages, stacklevel=4)  # points at the caller of the public function
    posterior = GaussianPosterior.of(problem, model, best)
    phi = posterior.draw(rng, int(settings["n_particles"]))
    learned = method == "laplace_nsbl"
    return Result(
        method=method,
        problem=problem,
        phi=phi,
        log_likelihood=problem.log_likelihood(phi),
        log_evidence=best.log_evidence,
        log_evidence_error=0.0,
        n_evaluations=0,
        seconds=time.perf_counter() - started,
        converged=best.converged,
        reason=ModeReached() if best.converged else ModeNotReached(),
        key=key_words(key),
        settings=dict(settings),
        log_alpha=posterior.log_alpha,
        relevance=posterior.relevance if learned else None,
        optima=pd.DataFrame({"log_evidence": [opt.log_evidence for opt in optima]}),
        messages=messages,
        history={"optimum": pd.DataFrame({"log_evidence": best.history})} if learned else {},
        details=LaplaceDetails(posterior.mode, posterior.data_precision, posterior.covariance),
        description=problem.description(),
    )
