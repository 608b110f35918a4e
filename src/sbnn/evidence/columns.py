"""Choice of the input columns of a wide table, before every weight gets a precision of its own.

1. Screening, only if there are more than `SCREENED` columns: each column is scored alone, by how
   much smooth functions of it explain of the targets and of their squared deviations (an
   interaction leaves the mean as it is and changes the spread). The best `SCREENED` go on.
2. Small networks with one α per column, from several starts: columns are removed while the
   evidence, verified after each removal, does not fall.
3. A column that is left goes too if the evidence falls by less than log p without it: with p
   columns, that much is expected from the best of those without effect. The columns kept by any
   start are used, unless it has more weights than rows, or gains far less evidence over a constant
   than the best: then it has learned noise. If no start with `UNITS` units is left, columns are
   added whose score of the screening would be one in p by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

from sbnn._core.parallel import run_all
from sbnn._core.watch import NEVER, Watch
from sbnn.evidence.laplace.models.base import DataTerm
from sbnn.evidence.laplace.models.layout import Array
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.models.precision import Precision
from sbnn.evidence.laplace.optimum import (
    Optimum,
    initial,
    linearise,
    lm_step,
    log_evidence,
    relax,
    update,
)
from sbnn.evidence.laplace.pruning import evolve, removal_gain, removed
from sbnn.likelihoods import Gaussian
from sbnn.problems.network import layer_slices

SCREENED = 200
FUNCTIONS = 4  # cosines of the ranks of a column in the screening
FAR = 5.0  # robust standard deviations at which targets are cut off, so that outliers do not decide
UNITS, STARTS, ROWS = 10, 3, 2500
LEAST_GAIN = 0.25  # of the evidence that the best start gains over a constant
FEWEST = 3  # units of a further start that has at most one weight per row if possible
DENSE, ITERATIONS, STEPS = 15, 60, 4
FEW = 30  # columns from which on the search works in double precision


def relevant_columns(
    model: NetworkModel, rng: np.random.Generator, n_threads: int = 1, watch: Watch = NEVER
) -> Array:
    """Columns of the inputs on which the targets depend, as far as the evidence can tell.

    Parameters
    ----------
    model : NetworkModel
        Its inputs, targets, weights of the rows and known noise are used, not its widths.
    rng : numpy.random.Generator
    n_threads : int
        Starts that run in parallel; the result does not depend on it.
    watch : Watch

    Returns
    -------
    array of int
        Sorted positions of the columns kept, at least one.

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.evidence.columns import relevant_columns
    >>> from sbnn.evidence.laplace.models.network import NetworkModel
    >>> x = np.random.default_rng(0).normal(size=(50, 300))
    >>> y = np.sin(2 * x[3]) + x[7] + 0.1 * np.random.default_rng(1).normal(size=300)
    >>> model = NetworkModel(x_t=x, y_t=y[None], sizes=(50, 20, 1))
    >>> relevant_columns(model, np.random.default_rng(0))
    array([3, 7])
    """
    n_columns, n = model.x_t.shape
    few = max(ROWS // len(model.y_t), 1)
    if n > few:
        model = model.rows(np.sort(rng.choice(n, few, replace=False)))
    if model.noise is None:
        model = replace(model, y_t=_cut(model.y_t)).with_likelihood(Gaussian())
    if n_columns > SCREENED:
        best = np.argsort(-marginal_scores(model.x_t, model.y_t))[:SCREENED]
        columns = np.sort(best)
    else:
        columns = np.arange(n_columns)
    small = replace(
        model,
        x_t=np.ascontiguousarray(model.x_t[columns]),
        sizes=(len(columns), UNITS, model.sizes[-1]),
        columns=None,
    )
    price, units = float(np.log(n_columns)), _units(small)
    watch.begin(f"choosing from {n_columns:,} inputs", len(units), 0.0, 0.0)
    with threadpool_limits(limits=1, user_api="blas"):
        found = run_all(
            lambda start: _search(_with_units(small, start[0]), start[1], price, watch),
            list(zip(units, rng.spawn(len(units)))),
            n_threads,
            lambda kept: watch.done(kept[1]),
        )
    nothing = _constant(small)
    sparse = [
        (kept, value - nothing, n_units)
        for (kept, value), n_units in zip(found, units)
        if n_units * (len(kept) + 2) < small.y_t.size
    ]
    least = LEAST_GAIN * max([0.0, *(gain for _, gain, _ in sparse)])
    good = [(kept, n_units) for kept, gain, n_units in sparse if gain > least]
    chosen = [kept for kept, _ in good]
    if UNITS not in {n_units for _, n_units in good}:
        scores = marginal_scores(small.x_t, small.y_t)
        chosen.append(np.flatnonzero(scores >= min(price, scores.max())))
    return columns[np.unique(np.concatenate(chosen))]


def _units(model: NetworkModel) -> list[int]:
    """Units of the hidden layer of every start.

    With more weights than rows, starts may fit the rows exactly and keep most columns. Few units
    never do, but they miss some effects.
    """
    few = model.y_t.size // (model.sizes[0] + 2)
    return [UNITS] * STARTS + ([max(few, FEWEST)] if few < UNITS else [])


def _with_units(model: NetworkModel, units: int) -> NetworkModel:
    return replace(model, sizes=(model.sizes[0], units, model.sizes[-1]))


def marginal_scores(x_t: Array, y_t: Array) -> Array:
    """How surprising each column would be if it had no effect: the largest −log p, shape (p,).

    A column is replaced by cosines of its ranks. n R² of a regression on them has a χ² distribution
    for a column without effect, for the targets and for their squares.

    Parameters
    ----------
    x_t : array, shape (p, n)
    y_t : array, shape (K, n)
    """
    centred = y_t - y_t.mean(axis=1, keepdims=True)
    targets = np.concatenate([centred, centred**2])
    targets -= targets.mean(axis=1, keepdims=True)
    targets /= np.maximum(targets.std(axis=1, keepdims=True), 1e-300)
    n = x_t.shape[1]
    out = np.zeros(len(x_t))
    for j, column in enumerate(x_t):
        ranks = (stats.rankdata(column) - 0.5) / n
        waves = np.cos(np.pi * np.arange(1, FUNCTIONS + 1)[:, None] * ranks)
        waves -= waves.mean(axis=1, keepdims=True)
        values, vectors = np.linalg.eigh(waves @ waves.T / n)
        own = values > 1e-6 * max(float(values.max()), 1e-6)  # ties make the cosines dependent
        if not own.any():
            continue
        projected = (vectors[:, own].T @ waves @ targets.T) / np.sqrt(n * values[own])[:, None]
        square = (projected**2).sum(axis=0)
        out[j] = float((-stats.chi2.logsf(square, int(own.sum()))).max())
    return out


def _constant(model: NetworkModel) -> float:
    """Log-likelihood of a constant: starts with less evidence have learned nothing."""
    mean, spread = model.y_t.mean(axis=1), np.maximum(model.y_t.std(axis=1), 1e-100)
    f = np.broadcast_to(mean[:, None, None], (*model.y_t.shape, 1))
    noise = np.log(spread)[:, None] if model.noise is None else model.noise
    return -model.misfit_of(f, noise) - model.normaliser(noise)


def _cut(y_t: Array) -> Array:
    """Targets with outliers cut off."""
    centre = np.median(y_t, axis=1, keepdims=True)
    scale = 1.4826 * np.median(np.abs(y_t - centre), axis=1, keepdims=True)
    far = np.where(scale > 0, FAR * scale, np.inf)
    return np.clip(y_t, centre - far, centre + far)


@dataclass
class _State:
    """A point of the search: model, optimum, data term, factored precision."""

    model: NetworkModel
    opt: Optimum
    term: DataTerm
    precision: Precision

    @classmethod
    def at(cls, model: NetworkModel, opt: Optimum) -> _State:
        term = linearise(model, opt)
        opt.log_evidence, precision = log_evidence(model, opt, term)
        return cls(model, opt, term, precision)


def _members(model: NetworkModel, opt: Optimum) -> dict[int, Array]:
    """Active weights of the first layer by column."""
    end = layer_slices(model.sizes)[0][1]
    first = opt.active[opt.active < end]
    column = first % model.sizes[0]
    return {int(j): first[column == j] for j in np.unique(column)}


def _gains(state: _State) -> dict[int, float]:
    """Linearised change of the log evidence if a column is removed."""
    opt = state.opt
    u = opt.phi[opt.active] * np.exp(0.5 * opt.log_alpha[opt.active])
    place = {j: np.searchsorted(opt.active, own) for j, own in _members(state.model, opt).items()}
    return {j: removal_gain(state.precision, u, index) for j, index in place.items()}


def _without(state: _State, columns: list[int], allowed: float) -> _State | None:
    """The state without some columns; None if the evidence falls by more than `allowed`."""
    members = _members(state.model, state.opt)
    dead = np.sort(np.concatenate([members[j] for j in columns]))
    new = removed(state.model, state.opt, state.precision, dead)
    term, precision = relax(state.model, new, STEPS)
    if new.log_evidence >= state.opt.log_evidence - allowed:
        return _State(state.model, new, term, precision)
    return None


def _search(
    model: NetworkModel, rng: np.random.Generator, price: float, watch: Watch
) -> tuple[Array, float]:
    """Columns kept from one start, and its log evidence.

    First α is shared by layers, then by the weights of each column, and columns are removed.
    """
    groups = model.groups()
    opt = initial(model, rng)
    warm_up = 8 if model.y_t.size < len(opt.phi) else 0
    with np.errstate(over="ignore", invalid="ignore"):  # a step too far is rejected
        opt = evolve(model.single(), opt, DENSE, groups, warm_up=warm_up)
        end = layer_slices(model.sizes)[0][1]
        groups = groups + model.sizes[0]
        groups[:end] = np.arange(end) % model.sizes[0]
        state = _remove_groups(_State.at(model.single(), opt), groups, watch)
        state = _remove_groups(_State.at(model, state.opt), groups, watch)
        state = _remove_cheap(state, price)
    kept = np.array(sorted(_members(model, state.opt)), dtype=int)
    return kept if len(kept) else np.zeros(1, int), state.opt.log_evidence


def _remove_groups(state: _State, groups: Array, watch: Watch, tol: float = 0.05) -> _State:
    """One α per column; columns are removed while the evidence does not fall."""
    single = state.model.x_t.dtype == np.float32
    fraction, history = 0.3, [state.opt.log_evidence]
    for it in range(ITERATIONS):
        left = _members(state.model, state.opt)
        if (single and len(left) <= FEW) or watch.over:
            break
        update(state.model, state.opt, state.term, state.precision, groups, 0.5)
        state.term, _ = lm_step(state.model, state.opt, state.term)
        state.opt.log_evidence, state.precision = log_evidence(state.model, state.opt, state.term)
        state.opt.iterations += 1
        found = None
        if it % 2:
            gains = {j: gain for j, gain in _gains(state).items() if gain > 0.0}
            best = sorted(gains, key=lambda j: -gains[j])[: max(1, int(fraction * len(left)))]
            found = _without(state, best, 1e-3) if best else None
            fraction = max(fraction / 2.0, 0.01) if found is None else min(1.5 * fraction, 0.3)
            state = found or state
        history.append(state.opt.log_evidence)
        if found is None and len(history) > 10 and np.ptp(history[-10:]) < 10 * tol:
            break
    return state


def _remove_cheap(state: _State, price: float) -> _State:
    """Remove, one by one, columns whose removal costs less than `price` nats."""
    while True:
        gains = _gains(state)
        for j in sorted(gains, key=lambda j: -gains[j]):
            if len(gains) == 1 or gains[j] < -5.0 * price:
                return state
            found = _without(state, [j], price)
            if found is not None:
                state = found
                break
        else:
            return state
