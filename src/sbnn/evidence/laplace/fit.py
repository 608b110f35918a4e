"""Sampling-free nonlinear sparse Bayesian learning: many starts, one mixture of sparse optima."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from sbnn.evidence.laplace.mixture import (
    SparseMixture,
    Trial,
    loo_log_density,
    merge,
    mixture_weights,
)
from sbnn.evidence.laplace.optimum import Model, Optimum, initial, layer_groups, log_evidence
from sbnn.evidence.laplace.pruning import evolve, neuron_members, remove_neurons

__all__ = ["SMALL", "Model", "Optimum", "SparseMixture", "fit", "neuron_members"]

# Iterations before α and σ² are updated where there are fewer observations than weights: there the
# first updates would take the whole signal for noise (30 rows, 56 weights: log evidence −31 without
# it, +3 with it). 5 to 15 do as well.
WARM_UP = 8
# Sparse iterations after which families of architectures are compared. The evidence of the shared
# stage would not do: it prefers few neurons even where pruned wide networks are far better.
TRIAL = 30
TIE = 3.0  # nats, a Bayes factor of 20: less is no strong evidence for the larger networks
# Weights kept up to which every neuron is tried: each try costs a re-convergence.
FEW_WEIGHTS = 60
# Options of `fit` for networks of a few dozen weights, where every optimum can be converged and
# every neuron be tried.
SMALL: dict[str, Any] = {"iterations": 300, "tol": 1e-3, "race": 1.0, "keep": 0.5}


Start = tuple[Model, Optimum, np.random.Generator]


def fit(
    models: Model | Sequence[Model] | Sequence[Sequence[Model]],
    rng: np.random.Generator,
    n_starts: int = 16,
    group_iterations: int = 45,
    iterations: int | None = None,
    race: float = 0.5,
    keep: float = 1.0,
    step: float = 0.5,
    tol: float = 0.05,
    neuron_moves: int | None = None,
    weighting: str = "mixed",
    max_rows: int = 2500,
    precision_power: float = 1.0,
    n_threads: int = 1,
    sparse: bool = True,
) -> SparseMixture:
    """Many starts to a mixture of sparse Laplace optima.

    Parameters
    ----------
    models : Model, sequence of Model, or sequence of such sequences
        Several architectures on the same data share the starts evenly. Of several sequences, the
        families, each has its starts, and the one of the best evidence after `TRIAL` sparse
        iterations stays, the earlier one if it is within `TIE`: give the smaller networks first.
        Wide networks need not find the narrow ones' optima: where few neurons suffice, many share
        one job and their optima stay redundant and poor.
    rng : numpy.random.Generator
    n_starts : int
        Of each family.
    group_iterations, iterations : int
        Iterations with one α per weight matrix and bias vector, then with one α per weight and
        pruning. The shared stage finds a good dense fit; α per weight from a random start prune
        before the network has found its job. None: 40, and up to 480 below 250 rows, where pruning
        takes more of them and each is cheap. An optimum that has converged stops earlier.
    race, keep : float
        Fraction of the starts of each architecture that go on after a third of the first stage, and
        of these that are kept in the end, by evidence.
    step, tol : float
        Damping of the update of log α; change of the log evidence over ten iterations that counts
        as converged.
    neuron_moves : int or None
        Neurons tried per round of `remove_neurons`; None: all where up to `FEW_WEIGHTS` are left,
        else none.
    weighting : str
        See `mixture_weights`.
    max_rows : int
        With more observations the first stage runs on a random subset and then, for half of
        `iterations`, on all rows; pruning always sees all rows.
    precision_power : float
        See `SparseMixture`.
    n_threads : int
        Starts that run side by side; the answer does not depend on it.
    sparse : bool
        False stops after the first stage: one α per weight matrix and bias vector, no pruning.

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.evidence.laplace.fit import SMALL, Model, fit
    >>> x = np.linspace(-2, 2, 30)[None]
    >>> mixture = fit(Model(x, np.tanh(2 * x), (1, 2, 1)), np.random.default_rng(0), **SMALL)
    >>> len(mixture.optima[0].active) < 7
    True
    """
    families = _families(models)
    starts: list[Start] = []
    for family in families:
        for m, model in enumerate(family):
            count = max(1, n_starts // len(family) + (m < n_starts % len(family)))
            starts += [(model, initial(model, stream), stream) for stream in rng.spawn(count)]
    first = group_iterations // 3
    n_out, n = starts[0][0].y_t.shape
    if iterations is None:
        iterations = round(40 * min(max(250 / n, 1.0) ** 3, 12.0))
    on_all = iterations // 2 if max_rows // n_out < n else 0
    pruning = iterations - on_all if sparse else 0
    trial = pruning if len(families) == 1 else min(TRIAL, pruning)

    def begin(start: Start) -> Start:
        model, opt, stream = start
        return model, _dense(model, opt, stream, first, step, tol, max_rows), stream

    def go_on(start: Start) -> Start:
        model, opt, stream = start
        opt = _dense(model, opt, stream, group_iterations - first, step, tol, max_rows)
        if on_all and sparse:
            opt = evolve(model.single(), opt, on_all, layer_groups(model.sizes), step, tol)
        # On all rows: a subset would cut what the others ask for.
        return model, evolve(model, opt, trial, None, step, tol), stream

    def finish(start: Start) -> tuple[Model, Optimum]:
        model, opt, _ = start
        if not opt.converged:
            opt = evolve(model, opt, pruning - trial, None, step, tol)
        tries = neuron_moves if sparse else 0
        if tries is None:
            tries = len(neuron_members(model.sizes)) if len(opt.active) <= FEW_WEIGHTS else 0
        return model, remove_neurons(model, opt, pruning, tries, step, tol) if tries else opt

    starts = _best(families, _map(begin, starts, n_threads), race)
    starts = _best(families, _map(go_on, starts, n_threads), keep)
    starts, trials = _best_family(families, starts)
    distinct = merge(_map(finish, starts, n_threads))
    for model, opt in distinct:
        opt.log_evidence, opt.precision = log_evidence(model, opt)
    loo = None
    if weighting not in ("equal", "evidence"):
        loo = np.array([loo_log_density(model, opt) for model, opt in distinct])
    optima = tuple(opt for _, opt in distinct)
    weights = mixture_weights(weighting, np.array([o.log_evidence for o in optima]), loo)
    return SparseMixture(optima, weights, precision_power, trials)


def _families(models) -> list[list[Model]]:
    if isinstance(models, Model):
        return [[models]]
    models = list(models)
    if all(isinstance(model, Model) for model in models):
        return [models]
    return [list(family) for family in models]


def _map(function, items, n_threads: int) -> list:
    if n_threads <= 1 or len(items) <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(n_threads) as pool:  # BLAS and ufuncs release the interpreter lock
        return list(pool.map(function, items))


def _best(families: list[list[Model]], starts: list[Start], fraction: float) -> list[Start]:
    """The better starts of each architecture, by evidence."""
    out: list[Start] = []
    for model in (model for family in families for model in family):
        ranked = sorted(
            (s for s in starts if s[0] is model), key=lambda start: -start[1].log_evidence
        )
        out += ranked[: max(1, round(fraction * len(ranked)))]
    return out


def _best_family(
    families: list[list[Model]], starts: list[Start]
) -> tuple[list[Start], tuple[Trial, ...]]:
    """The starts of the first family with an optimum next to the best, and what each reached."""
    mine = [[s for s in starts if any(s[0] is m for m in family)] for family in families]
    reached = [max(start[1].log_evidence for start in part) for part in mine]
    trials = tuple(
        Trial(tuple(model.sizes[1:-1] for model in family), value)
        for family, value in zip(families, reached)
    )
    return mine[int(np.argmax(np.array(reached) >= max(reached) - TIE))], trials


def _dense(model, opt, rng, n_iter, step, tol, max_rows) -> Optimum:
    """Iterations with one α per weight matrix and bias vector, on a subset of many rows."""
    n_out, n = model.y_t.shape
    few = max(max_rows // n_out, 1)
    part = model if few >= n else model.rows(np.sort(rng.choice(n, few, replace=False)))
    groups = layer_groups(model.sizes)
    warm_up = WARM_UP if opt.iterations == 0 and n * n_out < len(opt.phi) else 0
    return evolve(part.single(), opt, n_iter, groups, step, tol, warm_up)
