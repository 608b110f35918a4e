"""Paths to sparser networks: ever fewer neurons, then fewer inputs.

From a dense start, many neurons share the work, no single removal pays, and the evidence has
plateaus of dense networks. A path of ever smaller networks passes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sbnn._core.watch import NEVER, Watch
from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.layout import Array
from sbnn.evidence.laplace.models.precision import Precision
from sbnn.evidence.laplace.models.regression import RegressionModel
from sbnn.evidence.laplace.models.terms import per_row
from sbnn.evidence.laplace.optimum import Optimum, log_evidence, relax
from sbnn.evidence.laplace.options import Options
from sbnn.evidence.laplace.pruning import (
    evolve,
    evolve_with,
    removal_gain,
    removed,
    unit_moves,
    value,
)
from sbnn.likelihoods import Likelihood

SHARE = 4  # every fourth neuron of a layer is removed at a time
# Nats below the best state at which a path ends: transient losses reach 30, with few rows a
# quarter of their number.
GIVE_UP, PER_ROW, FEWEST = 40.0, 0.25, 10.0
RECOVERY = 15  # LM steps after a removal; far fewer are taken if the noise is large
DAMPING = 1e-2  # after a removal, the last step of the larger network says nothing about the next
AGAIN = 8  # LM steps after the removal of an input
WEAKEST, LONGER = 2, 40  # inputs after whose removal the network is trained on, and iterations
# Share of the weight up to which the optima that use an input try to do without it, and nats that
# this may cost for each input. On Friedman's function, the evidence rose in 9 of 10 trials.
MAJORITY, CONSENT = 0.6, 5.0


def thin(
    model: Model,
    opt: Optimum,
    n_iter: int,
    step: float = 0.5,
    tol: float = 0.05,
    watch: Watch = NEVER,
    predictive: bool = False,
) -> Optimum:
    """Remove a share of the neurons again and again; return the best state.

    The best state has the highest evidence or, with `predictive`, the highest mean of log evidence
    and leave-one-out log density. On real tables, evidence alone removes more neurons than is good
    for predictions, and the leave-one-out density, which takes α for known, too few.

    Parameters
    ----------
    model : Model
    opt : Optimum
    n_iter : int
        Iterations of `evolve` after each removal.
    step, tol, watch
        As for `evolve`.
    predictive : bool

    Returns
    -------
    Optimum
        After `n_iter` iterations only if the model has no neurons.
    """
    best = current = evolve(model, opt, n_iter, None, step, tol, watch=watch)
    top, precision = _merit(model, best, predictive)
    while not watch.over and (dead := _weakest(model, current, precision)) is not None:
        assert isinstance(model, RegressionModel)  # it has neurons
        smaller = removed(model, current, precision, dead)
        smaller = recover(model, current, smaller, RECOVERY)
        current = evolve(model, smaller, n_iter, None, step, tol, watch=watch)
        merit, precision = _merit(model, current, predictive)
        if merit > top - tol:
            best, top = current, merit
        elif not merit > top - min(GIVE_UP, max(FEWEST, PER_ROW * model.shape[1])):
            break
    return best


def _merit(model: Model, opt: Optimum, predictive: bool) -> tuple[float, Precision]:
    """Log evidence, or the mean of it and the leave-one-out log density; and the precision.

    The latter less one nat for every weight: with the correction of `optimism` for few rows, a few
    neurons too many are removed; 100 rows from Gaussian processes lost 0.02 nats per unseen row.
    """
    found, precision = log_evidence(model, opt)
    if predictive and model.unit_layers() is not None:
        found = 0.5 * (found + left_out_density(model, opt, precision) - len(opt.active))
    return found, precision


def left_out(model: Model, opt: Optimum, precision: Precision | None = None) -> float:
    """Leave-one-out log density of all rows, less its `optimism`.

    The log evidence if the model has no rows.
    """
    if model.unit_layers() is None:
        return log_evidence(model, opt)[0]
    precision = log_evidence(model, opt)[1] if precision is None else precision
    return left_out_density(model, opt, precision) - optimism(model, opt)


def optimism(model: Model, opt: Optimum) -> float:
    """Nats by which the leave-one-out log density is too high, as α was fitted to all rows.

    For each of k weights, half a nat is gained on the n observations and half lost on others; with
    the correction for few of them (AICc) that is kn/(n − k − 1). On 100 rows of Friedman's
    function, inputs without an effect had no influence in 98 % of the cases, without the correction
    in 90 %.
    """
    k, n = len(opt.active), model.shape[0] * getattr(model, "n_rows", model.shape[1])
    return k * n / max(n - k - 1.0, 1.0)


def left_out_density(model: Model, opt: Optimum, precision: Precision) -> float:
    """Leave-one-out log density of all rows, α taken for known."""
    loo = model.loo_log_density(opt.phi, opt.layout, opt.noise, precision)
    rows = getattr(model, "weights", None)
    return float(loo.sum() if rows is None else rows @ loo)


def _weakest(model: Model, opt: Optimum, precision: Precision) -> Array | None:
    """Weights of every fourth neuron of each layer, those with the least effect; or None."""
    layers = model.unit_layers()
    if layers is None:
        return None
    moves = unit_moves(model, opt, precision)
    dead: list[Array] = []
    for layer in np.unique(layers):
        members = [weights for _, weights, own in moves if own == layer]
        dead += members[: max(len(members) // SHARE, int(len(members) > 1))]
    if not dead:
        return None
    found = np.unique(np.concatenate(dead))
    return found if len(found) < len(opt.active) else None


def drop_inputs(model: Model, opt: Optimum, price: float, watch: Watch = NEVER) -> Optimum:
    """Remove all weights of an input if that costs less than `price` nats, the cheapest first.

    Neither the log evidence nor the leave-one-out log density may fall by more. Without the weakest
    inputs, the network is trained on before it is judged.

    Parameters
    ----------
    model : Model
    opt : Optimum
    price : float
    watch : Watch

    Returns
    -------
    Optimum
    """
    dropped = True
    while dropped:
        dropped, precision = False, log_evidence(model, opt)[1]
        before = left_out(model, opt, precision)
        u = opt.phi[opt.active] * np.exp(0.5 * opt.log_alpha[opt.active])
        groups = [np.flatnonzero(np.isin(opt.active, member)) for member in model.inputs()]
        gains = [(removal_gain(precision, u, g), opt.active[g]) for g in groups if len(g)]
        for rank, (gain, dead) in enumerate(sorted(gains, key=lambda move: -move[0])):
            hopeless = gain < -2.0 * price - 5.0  # linearised: steps may recover some of the loss
            if (hopeless and rank >= WEAKEST) or len(dead) == len(opt.active):
                break
            new = removed(model, opt, precision, dead)
            relax(model, new, AGAIN)
            if value(model, new) < value(model, opt) - price and rank < WEAKEST:
                goal = value(model, opt) - price
                new = evolve(model, new, LONGER, watch=watch, goal=goal)
            if value(model, new) < value(model, opt) - price:
                continue
            if left_out(model, new) >= before - price:
                opt, dropped = new, True
                break
    return opt


def without_doubtful_inputs(
    pairs: list[tuple[Model, Optimum]], weights: Array, options: Options
) -> list[tuple[Model, Optimum]]:
    """The optima of a mixture without the inputs that most of them do without.

    Each optimum had many ways to find a use for an input without effect. The removal is undone if
    it costs more than `CONSENT` nats per input; more often it gains some.

    Parameters
    ----------
    pairs : list of (Model, Optimum)
    weights : array, shape (K,)
    options : Options

    Returns
    -------
    list of (Model, Optimum)
        `pairs` itself if no input is doubtful.
    """
    used = np.array([[np.isin(i, opt.active).any() for i in m.inputs()] for m, opt in pairs])
    doubtful = used & (weights @ used <= MAJORITY)
    if not doubtful.any():
        return pairs
    out = []
    for (model, opt), mine in zip(pairs, doubtful):
        dead = [model.inputs()[i] for i in np.flatnonzero(mine)]
        out.append((model, _tried_without(model, opt, dead, options) if dead else opt))
    return out


def _tried_without(model: Model, opt: Optimum, inputs: list[Array], options: Options) -> Optimum:
    """The optimum without some inputs, after iterations; or as it was, if that costs too much."""
    dead = np.intersect1d(np.concatenate(inputs), opt.active)
    if len(dead) == len(opt.active):
        return opt
    before, precision = log_evidence(model, opt)
    new = removed(model, opt, precision, dead)
    new = evolve_with(model, new, options.iterations, options)
    loss = CONSENT * len(inputs)
    if log_evidence(model, new)[0] < before - loss:
        return opt
    return new if left_out(model, new) >= left_out(model, opt, precision) - loss else opt


@dataclass(frozen=True)
class _Near(Likelihood):
    """−½ Σ W (f − g)² for outputs g and information W, θ = (g, W) of shape (…, 2p)."""

    outputs: tuple[str, ...]  # type: ignore[misc]
    constant_information = True
    separable_information = True

    def log_density(self, y: Array, f: Array, theta: Array) -> Array:
        goal, weight = np.split(theta, 2, axis=-1)
        return -0.5 * (weight * (f - goal) ** 2).sum(axis=-1)

    def information(self, f: Array, theta: Array) -> Array:
        return np.broadcast_to(np.split(theta, 2, axis=-1)[1][..., : f.shape[-2], :], f.shape)

    def score(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        goal, weight = np.split(theta, 2, axis=-1)
        return weight * (goal - f)

    def std(self, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def sample(self, rng: np.random.Generator, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def cdf(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        raise NotImplementedError


def recover(model: RegressionModel, before: Optimum, opt: Optimum, steps: int) -> Optimum:
    """A smaller network after LM steps towards the outputs of the larger one.

    Heavy-tailed likelihoods would take all rows for outliers after a removal; a varying noise level
    would explain what the mean no longer does. The outputs before the removal, in units of their
    information, have neither problem.

    Parameters
    ----------
    model : RegressionModel
    before, opt : Optimum
        With all neurons, and without some of them.
    steps : int

    Returns
    -------
    Optimum
    """
    f = model.split(model.evaluate(before.phi, before.layout).output)
    weight = np.broadcast_to(model.likelihood.information(f, per_row(before.noise)), f.shape)
    goal = np.concatenate([f, weight], axis=-1).astype(float)
    near = replace(model, likelihood=_Near(model.likelihood.outputs), noise=goal)
    new = replace(opt.copy(), noise=goal, variance=None, damping=DAMPING)
    relax(near, new, steps, 0.1)
    return replace(new, noise=before.noise.copy(), variance=before.variance)
