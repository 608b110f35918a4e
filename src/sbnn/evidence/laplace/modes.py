"""Modes at fixed precisions from one start or many; far starts are tried again around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sbnn.evidence.laplace.mixture import merge
from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.layout import Array
from sbnn.evidence.laplace.optimum import (
    Optimum,
    UndeterminedError,
    initial,
    is_determined,
    newton_step,
    polish,
    prior_term,
    relax,
    update_noise,
)
from sbnn.evidence.starts import is_possible, require_starts

MAX_CLIMB = 500  # steps to a mode at fixed precisions
# If the climb from a given start fails: the same start with these dampings, then starts around it,
# each parameter multiplied by exp(s z) with standard normal z and these s in turn.
DAMPINGS = (1e2, 1e5)
SPREADS = 12 * (0.5, 1.0, 2.0, 3.0)
AT_MODE = 1e-3  # decrement in nats below which a point counts as a mode


def fit_fixed(
    model: Model, log_alpha: Array, rng: np.random.Generator, n_starts: int, start: Array | None
) -> list[Optimum]:
    """Distinct modes at fixed precisions, best evidence first; the noise maximises the evidence.

    Parameters
    ----------
    model : Model
    log_alpha : array, shape (d,)
        inf where a parameter is pruned.
    rng : numpy.random.Generator
    n_starts : int
        Number of random starts.
    start : array, shape (d,), optional
        Start here instead; if no mode is reached, with more damping, and then around it.

    Returns
    -------
    list of Optimum
        `converged` is False if no start reached a mode.

    Raises
    ------
    ValueError
        If no start has a finite log-likelihood, or leads to a point where data and priors
        determine all parameters.
    """
    starts = []
    for own in rng.spawn(1 if start is not None else n_starts):
        opt = initial(model, own)
        opt.log_alpha = log_alpha.copy()
        if start is not None:
            opt.phi = start.copy()
        starts.append(opt.without(np.flatnonzero(np.isinf(log_alpha))))
    with np.errstate(all="ignore"):  # a step too far is rejected
        found = _modes(model, starts)
        if start is not None and not any(opt.converged for opt in found):
            found += _modes(model, _around(starts[0], rng))
        if not found:
            require_starts([opt for opt in starts if is_possible(model, opt)])
            raise UndeterminedError(
                "The optimiser only reached points at which the data and the priors leave "
                "parameters undetermined; start nearer to the data's scale, narrow the priors, or "
                "sample with sbnn.standard."
            )
        reached = [opt for opt in found if opt.converged] or found
        return [polish(model, opt) for _, opt in merge([(model, opt) for opt in reached])]


def _modes(model: Model, starts: Sequence[Optimum]) -> list[Optimum]:
    """Climb from each start inside the priors; leave out points with undetermined parameters."""
    found = []
    for start in starts:
        inside = np.isfinite(prior_term(model, start).energy)
        if not (inside and is_possible(model, start)):
            continue
        try:
            opt = _climb(model, start.copy())
            if not is_determined(model, opt):
                continue
            decrement = newton_step(model, opt)[1]
        except (UndeterminedError, np.linalg.LinAlgError):
            continue
        opt.converged = opt.converged and abs(decrement) < AT_MODE
        found.append(opt)
    return found


def _around(start: Optimum, rng: np.random.Generator) -> list[Optimum]:
    """The same start with more damping, and random starts around it."""
    out = [replace(start.copy(), damping=damping) for damping in DAMPINGS]
    for spread in SPREADS:
        new, z = start.copy(), rng.normal(size=len(start.phi))
        new.phi = np.where(start.phi == 0.0, spread * z, start.phi * np.exp(spread * z))
        out.append(new)
    return out


def _climb(model: Model, opt: Optimum) -> Optimum:
    """LM steps to the mode, alternated with noise updates until the noise converges."""
    for _ in range(100):
        term, precision = relax(model, opt, MAX_CLIMB, tol=1e-9)
        before = opt.noise
        update_noise(model, opt, term, precision.relevance(), precision)
        if np.abs(opt.noise - before).max(initial=0.0) < 1e-9:
            opt.converged = True
            break
    return opt
