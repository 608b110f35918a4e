"""The iteration towards one sparse optimum: evidence updates with verified pruning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from sbnn.evidence.laplace.layout import Array
from sbnn.evidence.laplace.models import DataTerm, Model
from sbnn.evidence.laplace.optimum import (
    Optimum,
    free,
    linearise,
    lm_step,
    log_evidence,
    relax,
    update,
)
from sbnn.evidence.laplace.precision import Precision, cholesky

# Iterations without a higher evidence after which an optimum counts as converged. The update of α
# is a fixed-point iteration: it may pass through lower evidence before it rises again.
PATIENCE = 15

State = tuple[Optimum, DataTerm, Precision]


def removal_gain(precision: Precision, u: Array, index: Array) -> float:
    """Change of the linearised log evidence when the weights S = `index` are removed.

    −½ (log|C_SS| + u_Sᵀ C_SS⁻¹ u_S) with C = B⁻¹ and u = A^½ φ*; for one weight this is Tipping
    and Faul's −½ (log α − log(α + s) + q²/(α + s)).
    """
    factor = cholesky(precision.covariance(index))
    z = linalg.solve_triangular(factor, u[index], lower=True)
    return float(-np.log(np.diag(factor)).sum() - 0.5 * z @ z)


def prune_weights(model: Model, state: State, fraction: float, steps: int = 3) -> State | None:
    """Try to remove weights whose evidence optimum is α = ∞, the least visible first.

    Candidates have q² < s, that is u² < C(1 − C): their own evidence rises as α → ∞. At most
    `fraction` of the weights go at once; None if the evidence speaks against it.
    """
    opt, term, precision = state
    gamma = precision.relevance()
    u = opt.phi[opt.active] * np.exp(0.5 * opt.log_alpha[opt.active])
    c = np.clip(1.0 - gamma, 1e-12, 1.0)
    ard = free(model, opt.active)
    unseen = ard & (opt.layout.unseen | term.without_effect)
    candidates = np.flatnonzero(ard & ((u * u < c * gamma) | unseen))
    if not len(candidates):
        return None
    gain = -np.log(c[candidates]) - u[candidates] ** 2 / c[candidates]
    visible = np.where(unseen[candidates], -1.0, np.abs(gain))
    n_removed = max(int(unseen.sum()), 1, int(fraction * len(u)))
    return _without(model, opt, opt.active[candidates[np.argsort(visible)[:n_removed]]], steps)


def prune_units(model: Model, state: State, share: float, steps: int = 4) -> State | None:
    """Try to remove the `share` of the hidden neurons the linearised evidence can do without.

    Neurons that share one job hold each other up: each weight by itself seems needed, and only the
    removal of whole neurons lets the others take over. None if the evidence speaks against it.
    """
    opt, _, precision = state
    moves = [move for move in unit_moves(model, opt, precision) if move[0] > 0.0]
    if not moves:
        return None
    dead = [members for _, members in moves[: max(1, int(share * len(moves)))]]
    return _without(model, opt, np.unique(np.concatenate(dead)), steps)


def unit_moves(model: Model, opt: Optimum, precision: Precision) -> list[tuple[float, Array]]:
    """(removal gain, active weights) of every hidden neuron with an ARD prior, best first."""
    u = opt.phi[opt.active] * np.exp(0.5 * opt.log_alpha[opt.active])
    place = np.full(len(opt.phi), -1)
    place[opt.active] = np.arange(len(opt.active))
    moves = []
    for member in model.units():
        index = place[member]
        index = index[index >= 0]
        if len(index) and free(model, member).all():
            moves.append((removal_gain(precision, u, index), opt.active[index]))
    return sorted(moves, key=lambda move: -move[0])


def _without(model: Model, opt: Optimum, dead: Array, steps: int) -> State | None:
    """The state without the weights `dead`, at once or after some LM steps; None if worse.

    The removal is carried out and *verified*: for large sets the linearised gain is worth little.
    Looking before any LM step lets weights go that have no effect even where the evidence of the
    unpruned network would itself fall with these steps.
    """
    new = opt.without(dead)
    for n in (0, steps):
        term, precision = relax(model, new, n)
        if new.log_evidence >= opt.log_evidence - 1e-3:
            return new, term, precision
    return None


def evolve(
    model: Model,
    opt: Optimum,
    n_iter: int,
    groups: Array | None = None,
    step: float = 0.5,
    tol: float = 0.05,
    warm_up: int = 0,
) -> Optimum:
    """Alternate one LM step with one damped update of α and σ², and with tries to prune.

    Without `groups` the best state met is returned, after up to ten LM steps towards its mode:
    MacKay's updates neglect how log|H| changes with φ, and where weights are redundant they can
    drift for hundreds of iterations while the evidence falls.

    Parameters
    ----------
    groups : array of int, shape (d,), optional
        Weights of one group share one α, and none is pruned.
    tol : float
        Converged when the log evidence has not risen by more than `tol` for `PATIENCE` iterations
        (with `groups`: has moved by less than that over ten).
    warm_up : int
        Iterations before α and σ² are updated: a network that has not yet found its job looks like
        noise, and with few rows the updates would make it so.
    """
    opt = opt.copy()
    opt.converged = opt.converged and not n_iter
    term, start = linearise(model, opt), len(opt.history)
    fraction, share, pause, best, top, waited = 0.1, 0.5, 3, None, -np.inf, 0
    next_try = 1
    for it in range(n_iter):
        term, _ = lm_step(model, opt, term)
        opt.log_evidence, precision = log_evidence(model, opt, term)
        if groups is None and it % 3 == 2:
            found = prune_weights(model, (opt, term, precision), fraction)
            fraction = max(fraction / 3.0, 1e-3) if found is None else min(fraction * 1.5, 0.3)
            opt, term, precision = found or (opt, term, precision)
        elif groups is None and it >= next_try:
            found = prune_units(model, (opt, term, precision), share)
            share = share / 2.0 if found is None else min(share * 1.5, 0.5)
            pause = 2 * pause if found is None else 3  # each refusal makes the next less likely
            next_try = it + pause
            opt, term, precision = found or (opt, term, precision)
        opt.history.append(opt.log_evidence)
        opt.iterations += 1
        if groups is None:
            top = max(top, opt.log_evidence)
            if best is None or _better(opt, best, top, tol):
                best, waited = opt.copy(), 0
            else:
                waited += 1
            if waited >= PATIENCE:
                opt.converged = True
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


def _better(opt: Optimum, best: Optimum, top: float, tol: float) -> bool:
    """Higher evidence, or as good as the best ever met with fewer weights."""
    smaller = len(opt.active) < len(best.active) and opt.log_evidence > top - tol
    return smaller or opt.log_evidence > best.log_evidence + tol


def remove_units(
    model: Model,
    opt: Optimum,
    n_iter: int,
    max_tries: int = 3,
    step: float = 0.5,
    tol: float = 0.05,
) -> Optimum:
    """Try to remove units one by one; the smaller model stays if its evidence is no lower.

    Units (hidden neurons of a network, else parameters) are tried in the order of their linearised
    `removal_gain`, and unlike in `prune_units` the smaller model is converged before it is judged.
    """
    improved = True
    while improved and model.units():
        improved = False
        precision = log_evidence(model, opt)[1]
        moves: Sequence[tuple[float, Array]] = unit_moves(model, opt, precision)
        for _, dead in moves[:max_tries]:
            new = opt.without(dead)
            if not len(new.active):
                continue
            new = evolve(model, new, n_iter, None, step, tol)
            if new.log_evidence > opt.log_evidence - tol:  # on a tie the smaller net wins
                opt, improved = new, True
                break
    return opt
