"""Sampling-free nonlinear sparse Bayesian learning: many starts, one mixture of sparse optima."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from sbnn.gauss_newton import Array, layer_slices, n_parameters
from sbnn.laplace_mixture import SparseMixture, loo_log_density, merge, mixture_weights
from sbnn.laplace_optimum import (
    Linearised,
    Model,
    Optimum,
    evolve,
    initial,
    layer_groups,
    log_evidence,
    removal_gain,
)

__all__ = ["SMALL", "Model", "Optimum", "SparseMixture", "fit", "neuron_members"]

# Iterations before α and σ² are updated where there are fewer observations than weights: there the
# first updates would take the whole signal for noise (30 rows, 56 weights: log evidence −31 without
# it, +3 with it). 5 to 15 do as well.
WARM_UP = 8
# Options of `fit` for networks of a few dozen weights, where every optimum can be converged and
# every neuron be tried.
SMALL: dict[str, Any] = {"iterations": 300, "tol": 1e-3, "race": 1.0, "keep": 0.5}


def fit(
    models: Model | Sequence[Model],
    rng: np.random.Generator,
    n_starts: int = 16,
    group_iterations: int = 60,
    iterations: int | None = None,
    race: float = 0.6,
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
    models : Model or sequence of Model
        Several architectures on the same data share the starts evenly.
    rng : numpy.random.Generator
    n_starts : int
        In total.
    group_iterations, iterations : int
        Iterations with one α per weight matrix and bias vector, then with one α per weight and
        pruning. The shared stage finds a good dense fit; α per weight from a random start prune
        before the network has found its job. None: 40, and up to 200 below 300 rows, where pruning
        takes more of them and each is cheap.
    race, keep : float
        Fraction of the starts of each architecture that go on after a third of the first stage, and
        of these that are kept in the end, by evidence.
    step, tol : float
        Damping of the update of log α; change of the log evidence over ten iterations that counts
        as converged.
    neuron_moves : int or None
        Neurons tried per round of `remove_neurons`; None: all in networks of up to 60 weights, else
        none (each move costs a re-convergence, and large networks are pruned weight by weight).
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
    >>> from sbnn.sparse_laplace import SMALL, Model, fit
    >>> x = np.linspace(-2, 2, 30)[None]
    >>> mixture = fit(Model(x, np.tanh(2 * x), (1, 2, 1)), np.random.default_rng(0), **SMALL)
    >>> len(mixture.optima[0].active) < 7
    True
    """
    models = [models] if isinstance(models, Model) else list(models)
    starts: list[tuple[Model, Optimum, np.random.Generator]] = []
    for m, model in enumerate(models):
        count = max(1, n_starts // len(models) + (m < n_starts % len(models)))
        starts += [(model, initial(model, stream), stream) for stream in rng.spawn(count)]
    first = group_iterations // 3
    if iterations is None:
        iterations = round(40 * min(max(300 / models[0].x_t.shape[1], 1.0), 5.0))

    def begin(start):
        model, opt, stream = start
        return model, _dense(model, opt, stream, first, step, tol, max_rows), stream

    def go_on(start):
        model, opt, stream = start
        opt = _dense(model, opt, stream, group_iterations - first, step, tol, max_rows)
        return model, _sparse(model, opt, iterations if sparse else 0, step, tol, max_rows), stream

    starts = _best(models, _map(begin, starts, n_threads), race)
    starts = _best(models, _map(go_on, starts, n_threads), keep)
    kept = [(model, opt) for model, opt, _ in starts]

    def finish(pair: tuple[Model, Optimum]) -> Optimum:
        model, opt = pair
        tries = neuron_moves if sparse else 0
        if tries is None:
            tries = len(neuron_members(model.sizes)) if n_parameters(model.sizes) <= 60 else 0
        return remove_neurons(model, opt, iterations, tries, step, tol) if tries else opt

    finished = _map(finish, kept, n_threads)
    distinct = merge([model for model, _ in kept], finished)
    for model, opt in distinct:
        opt.log_evidence, opt.precision = log_evidence(model, opt)
    loo = None
    if weighting not in ("equal", "evidence"):
        loo = np.array([loo_log_density(model, opt) for model, opt in distinct])
    optima = tuple(opt for _, opt in distinct)
    weights = mixture_weights(weighting, np.array([o.log_evidence for o in optima]), loo)
    return SparseMixture(optima, weights, precision_power)


def _map(function, items, n_threads: int) -> list:
    if n_threads <= 1 or len(items) <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(n_threads) as pool:  # BLAS and ufuncs release the interpreter lock
        return list(pool.map(function, items))


def _best(models, starts, fraction: float) -> list:
    """The better starts of each architecture, by evidence."""
    out: list = []
    for model in models:
        ranked = sorted(
            (s for s in starts if s[0] is model), key=lambda start: -start[1].log_evidence
        )
        out += ranked[: max(1, round(fraction * len(ranked)))]
    return out


def _dense(model, opt, rng, n_iter, step, tol, max_rows) -> Optimum:
    """Iterations with one α per weight matrix and bias vector, on a subset of many rows."""
    n_out, n = model.y_t.shape
    few = max(max_rows // n_out, 1)
    part = model if few >= n else model.rows(np.sort(rng.choice(n, few, replace=False)))
    groups = layer_groups(model.sizes)
    warm_up = WARM_UP if opt.iterations == 0 and n * n_out < len(opt.phi) else 0
    return evolve(part.single(), opt, n_iter, groups, step, tol, warm_up)


def _sparse(model, opt, n_iter, step, tol, max_rows) -> Optimum:
    """Iterations with one α per weight, on all rows: a subset would cut what the others ask for."""
    n_out, n = model.y_t.shape
    if max_rows // n_out < n:
        dense = n_iter // 2
        opt = evolve(model.single(), opt, dense, layer_groups(model.sizes), step, tol)
        n_iter -= dense
    return evolve(model, opt, n_iter, None, step, tol)


def choose_width(models, rng: np.random.Generator, n_threads: int = 1, start: int = 10):
    """Width of one hidden layer by evidence: doubled or halved while that raises it.

    Parameters
    ----------
    models : callable
        Makes models out of a list of hidden widths.

    Returns
    -------
    width : int
    path : list of (width, log evidence)
        In the order of trial.
    """

    def evidence(width: int) -> float:
        mixture = fit(models([(width,)]), rng, 4, 40, 30, keep=0.25, n_threads=n_threads)
        return mixture.optima[0].log_evidence

    path = [(start, evidence(start))]
    best, value = path[0]
    for factor, worth in ((2.0, 1.0), (0.5, -1.0)):  # a nat less is a fair price for half the net
        while 2 <= best * factor <= 160:
            path.append((int(best * factor), evidence(int(best * factor))))
            if path[-1][1] < value + worth:
                break
            best, value = path[-1]
        if best != start:  # wider was better: narrower need not be tried
            break
    return best, path


def widths_around(width: int) -> list[tuple[int, ...]]:
    """One hidden layer of this width, and two of a similar number of parameters."""
    return [(width,), (max(2, round(0.75 * width)), max(2, round(0.5 * width)))]


def remove_neurons(
    model: Model,
    opt: Optimum,
    n_iter: int,
    max_tries: int = 3,
    step: float = 0.5,
    tol: float = 0.05,
) -> Optimum:
    """Try to remove whole hidden neurons; the smaller net stays if its evidence is no lower.

    MacKay's iteration sees one weight at a time: two neurons that share one job hold each other up,
    and the sparse optimum has to be tried explicitly. Neurons are tried in the order of their
    linearised `removal_gain`, and the smaller net is converged before it is judged.
    """
    improved = True
    while improved and len(opt.sizes) > 2:
        improved = False
        precision = Linearised(model, opt).precision(opt)
        u = opt.phi[opt.active] * np.exp(0.5 * opt.log_alpha[opt.active])
        moves = []
        for member in neuron_members(opt.sizes):
            index = np.flatnonzero(np.isin(opt.active, member))
            if len(index) and model.free(member).all():
                moves.append((removal_gain(precision, u, index), opt.active[index]))
        for _, dead in sorted(moves, key=lambda move: -move[0])[:max_tries]:
            new = opt.without(dead)
            if not len(new.active):
                continue
            new = evolve(model, new, n_iter, None, step, tol)
            if new.log_evidence > opt.log_evidence - tol:  # on a tie the smaller net wins
                opt, improved = new, True
                break
    return opt


def neuron_members(sizes: tuple[int, ...]) -> list[Array]:
    """For every hidden neuron the indices of its incoming weights, bias and outgoing weights."""
    slices, out = layer_slices(tuple(sizes)), []
    for k in range(len(sizes) - 2):
        (s, m, _), (s2, m2, _) = slices[k], slices[k + 1]
        w_in = np.arange(s, m).reshape(sizes[k + 1], sizes[k])
        w_out = np.arange(s2, m2).reshape(sizes[k + 2], sizes[k + 1])
        out += [np.r_[w_in[i], m + i, w_out[:, i]] for i in range(sizes[k + 1])]
    return out
