"""Many starts, one mixture of sparse Laplace optima; or one mode at fixed precisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from sbnn.evidence.laplace.layout import Array
from sbnn.evidence.laplace.mixture import (
    SparseMixture,
    Trial,
    merge,
    mixture_weights,
)
from sbnn.evidence.laplace.models import Model
from sbnn.evidence.laplace.optimum import Optimum, initial, log_evidence, polish, relax
from sbnn.evidence.laplace.precision import Precision
from sbnn.evidence.laplace.pruning import evolve, remove_units
from sbnn.likelihoods import Gaussian

# Iterations before α and the noise are updated where there are fewer observations than weights:
# there the first updates would take the whole signal for noise (30 rows, 56 weights: log evidence
# −31 without it, +3 with it). 5 to 15 do as well.
WARM_UP = 8
# Sparse iterations after which families of architectures are compared. The evidence of the shared
# stage would not do: it prefers few neurons even where pruned wide networks are far better.
TRIAL = 30
TIE = 3.0  # nats, a Bayes factor of 20: less is no strong evidence for the larger networks
# Weights kept up to which every unit is tried: each try costs a re-convergence.
FEW_WEIGHTS = 60
MAX_CLIMB = 500  # steps to a mode at fixed precisions


@dataclass(frozen=True)
class Options:
    """Settings of `fit`.

    Attributes
    ----------
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
        Units tried per round of `remove_units`; None: all where up to `FEW_WEIGHTS` are left, else
        none.
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
    """

    n_starts: int = 16
    group_iterations: int = 45
    iterations: int | None = None
    race: float = 0.5
    keep: float = 1.0
    step: float = 0.5
    tol: float = 0.05
    neuron_moves: int | None = None
    weighting: str = "mixed"
    max_rows: int = 2500
    precision_power: float = 1.0
    n_threads: int = 1
    sparse: bool = True


DEFAULT = Options()
# For networks of a few dozen weights, where every optimum can be converged and every neuron tried.
SMALL = Options(iterations=300, tol=1e-3, race=1.0, keep=0.5)

Family = Sequence[Model]  # architectures on the same data, which share the starts evenly


@dataclass(frozen=True)
class Start:
    """A start on its way: its model, where it is, and its own random numbers."""

    model: Model
    optimum: Optimum
    rng: np.random.Generator

    def at(self, optimum: Optimum) -> Start:
        """The same start further on."""
        return Start(self.model, optimum, self.rng)


def fit(
    families: Sequence[Family], rng: np.random.Generator, options: Options = DEFAULT
) -> SparseMixture:
    """Many starts to a mixture of sparse Laplace optima.

    Parameters
    ----------
    families : sequence of sequences of Model
        Of several families, each has its starts, and the one of the best evidence after `TRIAL`
        sparse iterations stays, the earlier one if it is within `TIE`: give the smaller networks
        first. Wide networks need not find the narrow ones' optima: where few neurons suffice, many
        share one job and their optima stay redundant and poor.
    rng : numpy.random.Generator
    options : Options

    Returns
    -------
    SparseMixture

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.evidence.laplace.fit import SMALL, fit
    >>> from sbnn.evidence.laplace.models import NetworkModel
    >>> x = np.linspace(-2, 2, 30)[None]
    >>> model = NetworkModel(x_t=x, y_t=np.tanh(2 * x), sizes=(1, 2, 1))
    >>> mixture = fit([[model]], np.random.default_rng(0), SMALL)
    >>> len(mixture.optima[0].active) < 7
    True
    """
    starts: list[Start] = []
    for family in families:
        for m, model in enumerate(family):
            share, rest = divmod(options.n_starts, len(family))
            count = max(1, share + (m < rest))
            starts += [Start(model, initial(model, own), own) for own in rng.spawn(count)]
    starts = [s for s in starts if _possible(s.model, s.optimum)]
    _require_starts(starts)
    # One BLAS thread per start: the matrices are too small to be shared with profit.
    with threadpool_limits(limits=1, user_api="blas"):
        starts, trials = _optimise(families, starts, options)
    distinct = merge([(start.model, start.optimum) for start in starts])
    for model, opt in distinct:
        opt.log_evidence, opt.precision = log_evidence(model, opt)
    loo = None
    if options.weighting not in ("equal", "evidence"):
        loo = np.array(
            [m.loo_log_density(o.phi, o.layout, o.noise, _factor(o)) for m, o in distinct]
        )
    optima = tuple(opt for _, opt in distinct)
    evidences = np.array([o.log_evidence for o in optima])
    weights = mixture_weights(options.weighting, evidences, loo)
    likelihood = distinct[0][0].likelihood or Gaussian()
    return SparseMixture(optima, weights, likelihood, options.precision_power, trials)


def _optimise(
    families: Sequence[Family], starts: list[Start], options: Options
) -> tuple[list[Start], tuple[Trial, ...]]:
    """Shared α, then pruning; the better starts go on, and one family."""
    budget = _Budget.of(starts[0].model, options, several=len(families) > 1)
    first = options.group_iterations // 3
    starts = _map(lambda s: s.at(_dense(s, first, options)), starts, options.n_threads)
    starts = _best(starts, options.race)
    starts = _map(lambda s: s.at(_go_on(s, first, budget, options)), starts, options.n_threads)
    starts = _best(starts, options.keep)
    starts, trials = _best_family(families, starts)
    return _map(lambda s: s.at(_finish(s, budget, options)), starts, options.n_threads), trials


def _factor(opt: Optimum) -> Precision:
    assert opt.precision is not None
    return opt.precision


def fit_sparse(model: Model, rng: np.random.Generator, n_starts: int) -> list[Optimum]:
    """Sparse optima of one small model, best evidence first, with modes to many digits."""
    options = replace(SMALL, n_starts=n_starts, weighting="evidence")
    mixture = fit([[model]], rng, options)
    best = polish(model, mixture.optima[0])
    return [best, *mixture.optima[1:]]


def fit_fixed(
    model: Model, log_alpha: Array, rng: np.random.Generator, n_starts: int, start: Array | None
) -> list[Optimum]:
    """Modes at fixed precisions, best evidence first, each once; the noise follows the evidence.

    Parameters
    ----------
    log_alpha : array, shape (d,)
    start : array, shape (d,), optional
        Climb from here instead of from `n_starts` random starts.
    """
    found = []
    for own in rng.spawn(1 if start is not None else n_starts):
        opt = initial(model, own)
        opt.log_alpha = log_alpha.copy()
        if start is not None:
            opt.phi = start.copy()
        if _possible(model, opt):
            found.append((model, _climb(model, opt)))
    _require_starts(found)
    return [polish(model, opt) for _, opt in merge(found)]


def _possible(model: Model, opt: Optimum) -> bool:
    """Whether a start has a finite log-likelihood."""
    return bool(np.isfinite(model.misfit(model.evaluate(opt.phi, opt.layout), opt.noise)))


def _require_starts(starts: Sequence[object]) -> None:
    if not starts:
        raise ValueError("No start had a finite log-likelihood; check the function and the priors.")


def _climb(model: Model, opt: Optimum) -> Optimum:
    """LM steps to the mode; inferred noise is re-estimated there until it stays."""
    for _ in range(100):
        term, precision = relax(model, opt, MAX_CLIMB, tol=1e-9)
        noise = model.updated_noise(term, opt.noise, precision.relevance(), precision)
        moved = float(np.abs(noise - opt.noise).max(initial=0.0))
        opt.noise = noise
        if moved < 1e-9:
            opt.converged = True
            break
    return opt


@dataclass(frozen=True)
class _Budget:
    """Iterations of the stages: shared α on all rows, pruning on trial, pruning in all."""

    on_all: int
    trial: int
    pruning: int

    @classmethod
    def of(cls, model: Model, options: Options, several: bool) -> _Budget:
        n_out, n = model.shape
        iterations = options.iterations
        if iterations is None:
            iterations = round(40 * min(max(250 / max(n, 1), 1.0) ** 3, 12.0))
        on_all = iterations // 2 if options.max_rows // max(n_out, 1) < n else 0
        pruning = iterations - on_all if options.sparse else 0
        return cls(on_all, min(TRIAL, pruning) if several else pruning, pruning)


def _dense(start: Start, n_iter: int, options: Options) -> Optimum:
    """Iterations with one α per weight matrix and bias vector, on a subset of many rows."""
    model, opt, groups = start.model, start.optimum, start.model.groups()
    if groups is None:
        return opt
    n_out, n = model.shape
    few = max(options.max_rows // n_out, 1)
    part = model if few >= n else model.rows(np.sort(start.rng.choice(n, few, replace=False)))
    warm_up = WARM_UP if opt.iterations == 0 and n * n_out < len(opt.phi) else 0
    return evolve(part.single(), opt, n_iter, groups, options.step, options.tol, warm_up)


def _go_on(start: Start, first: int, budget: _Budget, options: Options) -> Optimum:
    """The rest of the shared stage, and pruning as far as families are tried."""
    model = start.model
    opt = _dense(start, options.group_iterations - first, options)
    if budget.on_all and options.sparse:
        opt = evolve(model.single(), opt, budget.on_all, model.groups(), options.step, options.tol)
    # On all rows: a subset would cut what the others support.
    return evolve(model, opt, budget.trial, None, options.step, options.tol)


def _finish(start: Start, budget: _Budget, options: Options) -> Optimum:
    """The rest of the pruning, and units removed on trial where that is affordable."""
    model, opt = start.model, start.optimum
    if not opt.converged:
        opt = evolve(model, opt, budget.pruning - budget.trial, None, options.step, options.tol)
    tries = options.neuron_moves if options.sparse else 0
    if tries is None:
        tries = len(model.units()) if len(opt.active) <= FEW_WEIGHTS else 0
    if not tries:
        return opt
    return remove_units(model, opt, budget.pruning, tries, options.step, options.tol)


def _map(function: Callable[[Start], Start], items: Sequence[Start], n_threads: int) -> list[Start]:
    if n_threads <= 1 or len(items) <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(n_threads) as pool:  # BLAS and ufuncs release the interpreter lock
        return list(pool.map(function, items))


def _best(starts: list[Start], fraction: float) -> list[Start]:
    """The better starts of each architecture, by evidence."""
    models = list({id(s.model): s.model for s in starts}.values())
    out: list[Start] = []
    for model in models:
        mine = [s for s in starts if s.model is model]
        ranked = sorted(mine, key=lambda start: -start.optimum.log_evidence)
        out += ranked[: max(1, round(fraction * len(ranked)))]
    return out


def _best_family(
    families: Sequence[Family], starts: list[Start]
) -> tuple[list[Start], tuple[Trial, ...]]:
    """The starts of the first family with an optimum next to the best, and what each reached."""
    mine = [[s for s in starts if any(s.model is m for m in family)] for family in families]
    reached = [max(start.optimum.log_evidence for start in part) for part in mine]
    trials = tuple(
        Trial(tuple(model.layout().sizes[1:-1] for model in family), value)
        for family, value in zip(families, reached)
    )
    return mine[int(np.argmax(np.array(reached) >= max(reached) - TIE))], trials
