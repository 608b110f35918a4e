"""Stages of a fit: dense iterations, the path to a sparse optimum, and its end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sbnn.evidence.laplace.mixture import merge
from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.layout import Layout
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import Optimum, initial, log_evidence, relax
from sbnn.evidence.laplace.options import TIE, Options
from sbnn.evidence.laplace.pruning import evolve, evolve_with, remove_units
from sbnn.evidence.laplace.thinning import drop_inputs, left_out, left_out_density, thin
from sbnn.evidence.starts import Stage, Start, on_rows, run_stage
from sbnn.problems.network import layer_slices

# Iterations before α and the noise are updated if there are fewer observations than weights.
# Without it, the first updates would treat the whole signal as noise (30 rows, 56 weights: log
# evidence −31 without it, +3 with it). 5 to 15 work equally well.
WARM_UP = 8
# Units are tried one by one if at most this many weights are kept; each trial runs to convergence.
FEW_WEIGHTS = 60
# With many rows, see `Options.max_rows`: pruning uses `MORE` times the rows of the first stage;
# iterations on these rows and on all of them. Twice instead of four times saves a third of the time
# with 8,600 rows, but removes weights that all rows support: unseen rows of the power data lose
# 0.02 to 0.03 nats.
MORE, ON_MORE, LAST = 4, 20, 6
# Iterations before weights have a price: charged earlier, it removes weights that are yet to grow.
BEFORE_PRICE = 40
PER_WEIGHT = 1.5  # nats that the removal of a weight gains at most, of networks far too large
BLOCK, GAIN = 15, 5.0  # dense iterations go on in blocks; a gain counts if it is larger than `GAIN`


def on_more_rows(model: Model, options: Options) -> Model:
    """The model on the rows that are used for pruning."""
    return on_rows(model, MORE * options.max_rows)


def dense(start: Start, n_iter: int, options: Options, more: bool = False) -> Optimum:
    """Iterations with one α per weight matrix and bias vector, on some of the rows."""
    model, opt, groups = start.model, start.optimum, start.model.groups()
    if groups is None:
        return opt
    n_out, n = model.shape
    part = on_more_rows(model, options) if more else on_rows(model, options.max_rows)
    part = part.single()
    warm_up = WARM_UP if opt.iterations == 0 and n * n_out < len(opt.phi) else 0
    return evolve(part, opt, n_iter, groups, options.step, options.tol, warm_up, options.watch)


def raced(first: Stage, second: Stage, starts: list[Start], options: Options) -> list[Start]:
    """A third of the dense iterations of all starts, and the rest of them of the better ones."""
    few = options.group_iterations // 3
    run = lambda stage, n, group: run_stage(
        stage, lambda s: dense(s, n, options), group, options.n_threads, options.watch
    )
    better = best(run(first, few, starts), options.race)
    return run(second, options.group_iterations - few, better)


def settle(start: Start, options: Options) -> Optimum:
    """Dense iterations as long as evidence and leave-one-out log density rise together.

    With little noise, a network goes on learning for hundreds of iterations in which its evidence
    hardly changes. With much noise it soon learns the noise, and the evidence falls.

    Parameters
    ----------
    start : Start
        After a few dozen dense iterations.
    options : Options

    Returns
    -------
    Optimum
    """
    best = current = start.optimum
    if start.model.groups() is None or not options.settle or needs_more_rows(start.model, options):
        return best
    part = on_rows(start.model, options.max_rows)
    top, waited = _settled(part, best), 0
    for _ in range(options.settle):
        current = dense(start.at(current), BLOCK, options)
        found = _settled(part, current)
        waited = 0 if found > top + GAIN else waited + 1
        if waited == 0:
            best, top = current, found
        if waited == options.patient or current.converged or options.watch.over:
            break
    return best


def _settled(model: Model, opt: Optimum) -> float:
    """Log evidence and leave-one-out log density, less Akaike's correction for few rows (AICc)."""
    found, precision = log_evidence(model, opt)
    n, k = model.shape[0] * model.shape[1], float(precision.relevance().sum())
    found += left_out_density(model, opt, precision)
    return found - k * k / max(n - k, 1.0) if np.isfinite(found) else -np.inf


def needs_more_rows(model: Model, options: Options) -> bool:
    """Whether the first stage runs on a subset of the rows."""
    return options.sparse and on_rows(model, options.max_rows) is not model


def prune(start: Start, options: Options) -> Optimum:
    """The path to a sparse optimum, before families are compared."""
    if not options.sparse:
        return start.optimum
    part = on_more_rows(start.model, options).economical(start.optimum)
    return thin(
        part, start.optimum, options.path_iterations, options.step, options.tol, options.watch,
        predictive=options.weighting == "mixed",
    )  # fmt: skip


def finish(start: Start, options: Options) -> Optimum:
    """Convergence, the price of every weight and input, and removals of single units."""
    if not options.sparse:
        return start.optimum
    part = on_more_rows(start.model, options)
    if options.price:
        opt = evolve_with(part.economical(start.optimum), start.optimum, BEFORE_PRICE, options)
        part = replace(part, price=options.price)
        opt = _priced(part, opt, options)
        fewer = drop_inputs(part, opt, TIE, options.watch)
        opt = opt if len(fewer.active) == len(opt.active) else _converged(part, fewer, options)
    else:
        opt = _converged(part, start.optimum, options)
    if part.shape != start.model.shape:
        last = evolve_with(start.model, opt, LAST, options)
        last.converged, opt = opt.converged, last
    elif len(opt.active) <= FEW_WEIGHTS:
        opt = remove_units(
            part, opt, options.iterations, options.neuron_moves, options.step, options.tol,
            options.watch, options.patience,
        )  # fmt: skip
    return opt


def _priced(model: Model, opt: Optimum, options: Options) -> Optimum:
    """Convergence at a price, unless left-out rows would lose more than the price."""
    new = _converged(model, opt, options)
    saved = model.price * (len(opt.active) - len(new.active))
    if left_out(model, new) >= left_out(model, opt) - saved:
        return new
    return _converged(replace(model, price=0.0), opt, options)


def _converged(model: Model, opt: Optimum, options: Options) -> Optimum:
    return evolve_with(model.economical(opt), opt, options.iterations, options)


def with_intercepts(model: Model, opt: Optimum) -> Optimum:
    """The optimum with the output bias of every target, for standardised targets.

    A pruned bias says that the mean of the targets is that of the rows, without an error. With a
    prior N(0, 1) its variance is about that of a mean, σ²/n.
    """
    if not isinstance(model, NetworkModel):
        return opt
    k, p = model.shape[0], len(model.likelihood.outputs)
    biases = layer_slices(model.sizes)[-1][1] + p * np.arange(k)
    missing = np.setdiff1d(biases, opt.active)
    if not len(missing):
        return opt
    new = opt.copy()
    new.phi[missing] = new.log_alpha[missing] = 0.0
    new.layout = Layout(opt.sizes, np.union1d(opt.active, missing))
    relax(model, new, 10)
    return new


def best(starts: list[Start], fraction: float) -> list[Start]:
    """The better starts of each architecture and kind of noise, by evidence."""
    groups: dict[tuple[object, ...], list[Start]] = {}
    for s in starts:
        kind = (s.family, s.optimum.sizes, type(s.model.likelihood))
        groups.setdefault(kind, []).append(s)
    out: list[Start] = []
    for mine in groups.values():
        ranked = sorted(mine, key=lambda start: -start.optimum.log_evidence)
        out += ranked[: max(1, round(fraction * len(ranked)))]
    return out


def without_hidden_layers(model: Model) -> NetworkModel:
    """The network whose outputs are linear functions of the inputs."""
    assert isinstance(model, NetworkModel)
    return replace(model, sizes=(model.sizes[0], model.sizes[-1]))


def unless_constant(starts: list[Start], options: Options) -> list[Start]:
    """The starts that are not clearly less probable than a constant; without any, the constant.

    With fewer rows than inputs, networks may fit noise exactly, and no path leads from there to the
    constant. With as many weights as rows, the noise tends to zero and takes the evidence with it,
    so a correction for few rows is subtracted (AICc, as in `optimism`).
    """
    if not (options.constant and options.sparse) or needs_more_rows(starts[0].model, options):
        return starts
    leader = max(starts, key=lambda s: s.optimum.log_evidence)
    line = without_hidden_layers(leader.model)
    opt, biases = initial(line, leader.rng), layer_slices(line.sizes)[-1][1]
    opt = evolve_with(line, opt.without(np.arange(biases)), BEFORE_PRICE, options)
    least = opt.log_evidence - TIE
    plausible = [s for s in starts if s.optimum.log_evidence - _correction(s) >= least]
    return plausible or [Start(leader.family, line, opt, leader.rng)]


def _correction(start: Start) -> float:
    """Akaike's correction for few rows: infinite if they do not determine the noise, or zero."""
    model, k = start.model, len(start.optimum.active)
    if getattr(model, "noise", None) is not None:
        return 0.0
    n_out, n = model.shape
    rows = n_out * min(getattr(model, "n_rows", n), n)  # repeated rows say nothing about the noise
    return k * (k + 1) / (rows - k - 1) if rows > k + 1 else np.inf


def not_hopeless(starts: list[Start]) -> list[Start]:
    """The starts without those that a network without hidden layers is too far ahead of.

    The removal of a weight gains less than `PER_WEIGHT` nats, so the sparse networks on the path of
    a start that is further behind cannot catch up.
    """
    lines = {
        type(s.model.likelihood): s.optimum.log_evidence
        for s in starts
        if len(s.optimum.sizes) == 2
    }
    out = []
    for s in starts:
        ahead = lines.get(type(s.model.likelihood), -np.inf) - s.optimum.log_evidence
        if len(s.optimum.sizes) == 2 or not ahead > PER_WEIGHT * len(s.optimum.active):
            out.append(s)
    return out


def distinct(starts: list[Start], options: Options) -> list[Start]:
    """The starts without those that reached the same optimum as another."""
    kept = merge([(s.model, s.optimum) for s in starts], alike=options.alike)
    return [s for s in starts if any(s.optimum is opt for _, opt in kept)]
