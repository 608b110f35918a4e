"""Iteration to one sparse optimum: evidence updates with verified pruning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sbnn._core.watch import NEVER, Watch
from sbnn.evidence.laplace.models.base import DataTerm, Model
from sbnn.evidence.laplace.models.layout import Array
from sbnn.evidence.laplace.models.precision import Precision, cholesky, solve_both, solve_factor
from sbnn.evidence.laplace.optimum import (
    Optimum,
    energy,
    free,
    linearise,
    lm_step,
    log_evidence,
    relax,
    update,
)
from sbnn.evidence.laplace.options import Options

# Iterations without a rise of the evidence after which an optimum counts as converged. The update
# of α is a fixed-point iteration: the evidence may fall before it rises again.
PATIENCE = 15
# A removal has failed if, after `TRIAL` iterations, the smaller network is still more than
# `HOPELESS` nats below the larger one.
TRIAL, HOPELESS = 10, 5.0
LEAST = 20  # iterations of a start, even if the time is over

State = tuple[Optimum, DataTerm, Precision]


def removal_gain(precision: Precision, u: Array, index: Array) -> float:
    """Change of the linearised log evidence on removing the weights S = `index`.

    −½ (log|C_SS| + u_Sᵀ C_SS⁻¹ u_S) with C = B⁻¹ and u = A^½ φ*; for one weight this is Tipping
    and Faul's −½ (log α − log(α + s) + q²/(α + s)).
    """
    factor = cholesky(precision.covariance(index))
    z = solve_factor(factor, u[index])
    return float(-np.log(factor.diagonal()).sum() - 0.5 * z @ z)


def value(model: Model, opt: Optimum) -> float:
    """Log evidence minus the price of the parameters kept."""
    return opt.log_evidence - model.price * len(opt.active)


def prune_weights(model: Model, state: State, fraction: float, steps: int = 3) -> State | None:
    """Try to remove weights whose evidence optimum is α = ∞, those with the least effect first.

    Candidates have q² < s, that is u² < C(1 − C): their evidence rises as α → ∞. At most
    `fraction` of the weights are removed at once. Returns None if the evidence falls.
    """
    opt, term, precision = state
    gamma = precision.relevance()
    u = opt.phi[opt.active] * np.exp(0.5 * opt.log_alpha[opt.active])
    c = np.clip(1.0 - gamma, 1e-12, 1.0)
    ard = free(model, opt.active)
    unseen = ard & (opt.layout.unseen | term.without_effect)
    gain = -0.5 * (np.log(c) + u * u / c)  # `removal_gain` of each weight
    cheap = (u * u < c * gamma) | ((gain > -model.price) & (model.price > 0.0)) | unseen
    candidates = np.flatnonzero(ard & cheap)
    if not len(candidates):
        return None
    visible = np.where(unseen[candidates], -1.0, np.abs(gain[candidates]))
    n_removed = max(int(unseen.sum()), 1, int(fraction * len(u)))
    return _without(model, state, opt.active[candidates[np.argsort(visible)[:n_removed]]], steps)


def prune_units(model: Model, state: State, share: float, steps: int = 4) -> State | None:
    """Try to remove `share` of the hidden neurons whose linearised `removal_gain` is positive.

    If neurons share work, each single weight seems necessary, and only the removal of whole
    neurons lets the others take over. Returns None if the evidence falls.
    """
    opt, _, precision = state
    moves = [m for m in unit_moves(model, opt, precision) if m[0] > -model.price * len(m[1])]
    if not moves:
        return None
    dead = [members for _, members, _ in moves[: max(1, int(share * len(moves)))]]
    return _without(model, state, np.unique(np.concatenate(dead)), steps)


def unit_moves(model: Model, opt: Optimum, precision: Precision) -> list[tuple[float, Array, int]]:
    """(removal gain, active weights, layer) of every unit with an ARD prior, best first."""
    u = opt.phi[opt.active] * np.exp(0.5 * opt.log_alpha[opt.active])
    place = np.full(len(opt.phi), -1)
    place[opt.active] = np.arange(len(opt.active))
    moves = []
    layers = model.unit_layers()
    for number, member in enumerate(model.units()):
        index = place[member]
        index = index[index >= 0]
        if len(index) and free(model, member).all():
            layer = 0 if layers is None else int(layers[number])
            moves.append((removal_gain(precision, u, index), opt.active[index], layer))
    return sorted(moves, key=lambda move: -move[0])


def _without(model: Model, state: State, dead: Array, steps: int) -> State | None:
    """The state without the weights `dead`, at once or after some LM steps; None if worse.

    The removal is carried out and *verified*: for large sets the linearised gain is unreliable.
    Checking before any LM step removes weights without effect even if such steps would lower the
    evidence of the unpruned network too.
    """
    opt, _, precision = state
    new = removed(model, opt, precision, dead)
    for n in (0, steps):
        term, factor = relax(model, new, n)
        if value(model, new) >= value(model, opt) - 1e-3:
            return new, term, factor
    return None


def removed(model: Model, opt: Optimum, precision: Precision, dead: Array) -> Optimum:
    """The optimum without the weights `dead`; the others compensate if that is better."""
    plain, shifted = opt.without(dead), compensated(opt, precision, dead)
    return min(plain, shifted, key=lambda o: np.nan_to_num(energy(model, o), nan=np.inf))


def compensated(opt: Optimum, precision: Precision, dead: Array) -> Optimum:
    """The optimum without the weights `dead`, the others at their conditional mean.

    In units of the prior, u_R becomes u_R − C_RS C_SS⁻¹ u_S. `removal_gain` is exact for it. Where
    the noise is small, the data do not tolerate a removal without compensation.
    """
    new, index = opt.without(dead), np.searchsorted(opt.active, dead)
    u = opt.phi[opt.active] * np.exp(0.5 * opt.log_alpha[opt.active])
    factor = cholesky(precision.covariance(index))
    pull = solve_both(factor, u[index])
    kept = np.delete(np.arange(len(u)), index)
    shift = precision.covariance(index, kept).T @ pull
    new.phi[new.active] -= shift * np.exp(-0.5 * opt.log_alpha[new.active])
    return new


def evolve(
    model: Model,
    opt: Optimum,
    n_iter: int,
    groups: Array | None = None,
    step: float = 0.5,
    tol: float = 0.05,
    warm_up: int = 0,
    watch: Watch = NEVER,
    patience: int = PATIENCE,
    goal: float = -np.inf,
) -> Optimum:
    """Alternate LM steps, damped updates of α and σ², and trial pruning.

    Without `groups`, returns the best state visited, after up to ten LM steps towards its mode:
    MacKay's updates neglect how log|H| changes with φ, and with redundant weights they can drift
    for hundreds of iterations while the evidence falls.

    Parameters
    ----------
    model : Model
    opt : Optimum
        Starting point; not modified.
    n_iter : int
        Maximum number of iterations.
    groups : array of int, shape (d,), optional
        Weights of a group share one α, and none is pruned.
    step : float
        Damping of the update of log α.
    tol : float
        Converged if the log evidence has not risen by more than `tol` for `patience` iterations
        (with `groups`: has changed by less than `tol` over ten).
    warm_up : int
        Iterations before α and σ² are updated. With few rows, early updates would treat the signal
        as noise.
    watch : Watch
        Once it is over, the iteration ends after at least `LEAST` iterations in all.
    patience : int
    goal : float
        The iteration ends early if this value is out of reach; see `HOPELESS`.

    Returns
    -------
    Optimum
    """
    opt = opt.copy()
    opt.converged = opt.converged and not n_iter
    if opt.variance is not None and opt.variance.shape[:2] != model.shape:
        opt.variance = None  # it belongs to a subset of the rows
    term, start = linearise(model, opt), len(opt.history)
    fraction, share, pause, best, top, waited = 0.1, 0.5, 3, None, -np.inf, 0
    next_try = 1
    for it in range(n_iter):
        if it and opt.iterations >= LEAST and watch.over:
            break
        term, _ = lm_step(model, opt, term)
        opt.log_evidence, precision = log_evidence(model, opt, term)
        if not np.isfinite(opt.log_evidence):  # such as σ = e^1000 after an unlucky removal
            opt.log_evidence = -np.inf
            break
        if groups is None and it % 3 == 2:
            found = prune_weights(model, (opt, term, precision), fraction)
            fraction = max(fraction / 3.0, 1e-3) if found is None else min(fraction * 1.5, 0.3)
            opt, term, precision = found or (opt, term, precision)
        elif groups is None and it >= next_try:
            found = prune_units(model, (opt, term, precision), share)
            share = share / 2.0 if found is None else min(share * 1.5, 0.5)
            pause = 2 * pause if found is None else 3  # a failed trial makes success less likely
            next_try = it + pause
            opt, term, precision = found or (opt, term, precision)
        opt.history.append(opt.log_evidence)
        opt.iterations += 1
        if groups is None:
            top = max(top, value(model, opt))
            if best is None or _better(model, opt, best, top, tol):
                best, waited = opt.copy(), 0
            else:
                waited += 1
            if waited >= patience:
                opt.converged = True
                break
            if it + 1 >= TRIAL and top < goal - HOPELESS:
                break
        elif len(opt.history[start:]) >= 10 and np.ptp(opt.history[-10:]) < tol:
            opt.converged = True
            break
        if warm_up <= it < n_iter - 1:
            update(model, opt, term, precision, groups, step)
    if best is None:
        return opt
    best.iterations, best.history, best.converged = opt.iterations, opt.history, opt.converged
    relax(model, best, 10)
    return best


def evolve_with(model: Model, opt: Optimum, n_iter: int, options: Options) -> Optimum:
    """`evolve` with one α per weight and the settings of a fit."""
    return evolve(
        model, opt, n_iter, None, options.step, options.tol, watch=options.watch,
        patience=options.patience,
    )  # fmt: skip


def _better(model: Model, opt: Optimum, best: Optimum, top: float, tol: float) -> bool:
    """Whether `opt` has a higher value, or fewer weights at the value of the best so far."""
    smaller = len(opt.active) < len(best.active) and value(model, opt) > top - tol
    return smaller or value(model, opt) > value(model, best) + tol


def remove_units(
    model: Model,
    opt: Optimum,
    n_iter: int,
    max_tries: int = 3,
    step: float = 0.5,
    tol: float = 0.05,
    watch: Watch = NEVER,
    patience: int = PATIENCE,
) -> Optimum:
    """Try to remove units one by one; keep the smaller model unless its evidence is lower.

    Units (hidden neurons of a network, else parameters) are tried in order of their linearised
    `removal_gain`. Unlike in `prune_units`, the smaller model is run to convergence before the
    comparison.

    Parameters
    ----------
    model : Model
    opt : Optimum
    n_iter : int
        Maximum number of iterations after each removal.
    max_tries : int
        Units tried per round.
    step, tol, watch, patience
        As for `evolve`.

    Returns
    -------
    Optimum
    """
    improved = True
    while improved and model.units() and not watch.over:
        improved = False
        precision = log_evidence(model, opt)[1]
        moves: Sequence[tuple[float, Array, int]] = unit_moves(model, opt, precision)
        for _, dead, _ in moves[:max_tries]:
            if len(dead) == len(opt.active):
                continue
            new = removed(model, opt, precision, dead)
            new = evolve(
                model, new, n_iter, None, step, tol, 0, watch, patience, goal=value(model, opt)
            )
            if value(model, new) > value(model, opt) - tol:  # on a tie the smaller net wins
                opt, improved = new, True
                break
    return opt
