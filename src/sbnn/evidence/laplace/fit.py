"""Fit a mixture of sparse Laplace optima from many starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from sbnn._core.memory import require_memory_for_threads
from sbnn.evidence.laplace.mixture import (
    NoiseTrial,
    SparseMixture,
    Trial,
    merge,
    mixture_weights,
)
from sbnn.evidence.laplace.models import Model, NetworkModel
from sbnn.evidence.laplace.noise_choice import adapted
from sbnn.evidence.laplace.optimum import Optimum, initial, log_evidence, polish
from sbnn.evidence.laplace.precision import Precision
from sbnn.evidence.laplace.pruning import evolve, remove_units
from sbnn.likelihoods import Gaussian, Likelihood, VaryingStudentT
from sbnn.likelihoods.gaussian import spread_of

# Iterations before α and the noise are updated if there are fewer observations than weights.
# Without it, the first updates would treat the whole signal as noise (30 rows, 56 weights: log
# evidence −31 without it, +3 with it). 5 to 15 work equally well.
WARM_UP = 8
# Sparse iterations after which families of architectures are compared. The evidence of the shared
# stage is not suitable: it prefers few neurons even if pruned wide networks are far better.
TRIAL = 30
TIE = 3.0  # nats, a Bayes factor of 20: less is not strong evidence for larger networks
# Every unit is tried if at most this many weights are kept: each trial is run to convergence.
FEW_WEIGHTS = 60
# If there is a choice of noise models, the starts begin with constant Gaussian noise, with which
# the mean learns all it can; but outliers ruin it. A further share of `EXTRA` begins with the
# flexible model, whose early noise level may explain what the mean has yet to learn, but which
# tolerates outliers. The best start of each path then tries every kind of noise for `SETTLE` dense
# iterations and `NOISE_TRIAL` iterations of pruning.
PATHS = (Gaussian(), VaryingStudentT())
EXTRA = 0.25
INTERPOLATED = 1e-4  # σ relative to the spread of y below which it is no noise
SETTLE, NOISE_TRIAL = 5, 20


@dataclass(frozen=True)
class Options:
    """Settings of `fit`.

    Attributes
    ----------
    n_starts : int
        Number of starts per family.
    group_iterations, iterations : int
        Iterations with one α per weight matrix and bias vector, then with one α per weight and
        pruning. The shared stage finds a good dense fit; with one α per weight from a random start,
        weights would be pruned before the network fits. None: 40, and up to 480 below 250 rows,
        where pruning needs more iterations and each is cheap. Converged optima stop earlier.
    race, keep : float
        Fraction of the starts of each architecture that continue after a third of the first stage,
        and fraction of these kept in the end, by evidence.
    step, tol : float
        Damping of the update of log α; change of the log evidence over ten iterations below which
        an optimum counts as converged.
    neuron_moves : int or None
        Units tried per round of `remove_units`; None: all if at most `FEW_WEIGHTS` weights are
        left, else none.
    weighting : str
        See `mixture_weights`.
    max_rows : int
        With more observations the first stage runs on a random subset and then, for half of
        `iterations`, on all rows; pruning always sees all rows.
    precision_power : float
        See `SparseMixture`.
    n_threads : int
        Starts that run in parallel; the result does not depend on it.
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
# For networks of a few dozen weights: every optimum is converged and every neuron tried.
SMALL = Options(iterations=300, tol=1e-3, race=1.0, keep=0.5)

Family = Sequence[Model]  # architectures on the same data, which share the starts evenly


@dataclass(frozen=True)
class Start:
    """One start: the number of its family, model, current optimum, random number generator."""

    family: int
    model: Model
    optimum: Optimum
    rng: np.random.Generator

    def at(self, optimum: Optimum) -> Start:
        """The same start with an updated optimum."""
        return replace(self, optimum=optimum)


def fit(
    families: Sequence[Family],
    rng: np.random.Generator,
    options: Options = DEFAULT,
    noises: Mapping[str, Likelihood] | None = None,
) -> SparseMixture:
    """Fit a mixture of sparse Laplace optima from many starts.

    Parameters
    ----------
    families : sequence of sequences of Model
        Each family has its own starts. The first family within `TIE` of the best evidence after
        `TRIAL` sparse iterations is kept, so list smaller networks first. Wide networks do not
        always find the optima of narrow ones: if few neurons suffice, many share the work and
        their optima stay redundant and poor.
    rng : numpy.random.Generator
    options : Options
    noises : mapping of Likelihood, optional
        Kinds of noise to choose between for network models, from simple to flexible; the first
        within `TIE` of the best evidence after `NOISE_TRIAL` sparse iterations is kept.

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
    require_memory_for_threads(options.n_threads, "fitting the network")
    starts: list[Start] = []
    for number, family in enumerate(families):
        for m, model in enumerate(family):
            share, rest = divmod(options.n_starts, len(family))
            generators = rng.spawn(max(1, share + (m < rest)))
            kinds: Sequence[Model] = [model] * len(generators)
            if noises is not None:
                flexible = max(1, round(EXTRA * len(kinds)))
                simple, other = (_network(model).with_likelihood(path) for path in PATHS)
                kinds = [simple] * len(kinds) + [other] * flexible
                generators += rng.spawn(flexible)
            pairs = zip(kinds, generators)
            starts += [Start(number, kind, initial(kind, own), own) for kind, own in pairs]
    starts = [s for s in starts if is_possible(s.model, s.optimum)]
    require_starts(starts)
    # One BLAS thread per start: the matrices are too small to benefit from more.
    with threadpool_limits(limits=1, user_api="blas"):
        starts, trials, noise_trials = _optimise(families, starts, options, noises)
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
    rows = getattr(distinct[0][0], "weights", None)
    weights = mixture_weights(options.weighting, evidences, loo, rows)
    likelihood = distinct[0][0].likelihood or Gaussian()
    return SparseMixture(optima, weights, likelihood, options.precision_power, trials, noise_trials)


def _optimise(
    families: Sequence[Family],
    starts: list[Start],
    options: Options,
    noises: Mapping[str, Likelihood] | None,
) -> tuple[list[Start], tuple[Trial, ...], tuple[NoiseTrial, ...]]:
    """Shared α, then pruning; only the better starts, one kind of noise and one family continue."""
    budget = _Budget.of(starts[0].model, options, several=len(families) > 1)
    n_threads, first = options.n_threads, options.group_iterations // 3
    noise_trials: tuple[NoiseTrial, ...] = ()
    starts = _map(lambda s: s.at(_dense(s, first, options)), starts, n_threads)
    rest = options.group_iterations - first
    starts = _best(starts, options.race)
    starts = _map(lambda s: s.at(_dense(s, rest, options)), starts, n_threads)
    if noises is not None:
        starts, noise_trials = _choose_noise(starts, options, noises)
    starts = _map(lambda s: s.at(_prune(s, budget, options)), starts, n_threads)
    starts = _best(starts, options.keep)
    starts, trials = _best_family(families, starts)
    starts = _map(lambda s: s.at(_finish(s, budget, options)), starts, n_threads)
    return starts, trials, noise_trials


def _network(model: Model) -> NetworkModel:
    assert isinstance(model, NetworkModel)
    return model


def _choose_noise(
    starts: list[Start], options: Options, noises: Mapping[str, Likelihood]
) -> tuple[list[Start], tuple[NoiseTrial, ...]]:
    """The starts with the first kind of noise within `TIE` of the best evidence.

    If the mean interpolates the data, there is no noise to model, and it stays constant.
    """
    starts = [s for s in starts if np.isfinite(s.optimum.log_evidence)]
    require_starts(starts)
    paths = [[s for s in starts if s.model.likelihood == kind] for kind in PATHS]
    leaders = [max(path, key=lambda s: s.optimum.log_evidence) for path in paths if path]
    if len(noises) == 1:
        return _continued(starts, next(iter(noises.values())), options), ()
    if paths[0] and _interpolates(leaders[0]):
        return paths[0], ()
    pairs = [_changed(s, kind) for kind in noises.values() for s in leaders]
    tried = _map(lambda s: s.at(_noise_trial(s, options)), pairs, options.n_threads)
    reached = np.array([start.optimum.log_evidence for start in tried])
    best = np.nan_to_num(reached, nan=-np.inf).reshape(len(noises), -1).max(axis=1)
    chosen = list(noises.values())[int(np.argmax(best >= best.max() - TIE))]
    trials = tuple(NoiseTrial(*pair) for pair in zip(noises, best.tolist()))
    return _continued(starts, chosen, options), trials


def _continued(starts: list[Start], kind: Likelihood, options: Options) -> list[Start]:
    """The better starts with another kind of noise, after a few dense iterations."""
    starts = [_changed(s, kind) for s in starts]
    starts = _map(lambda s: s.at(_dense(s, SETTLE, options)), starts, options.n_threads)
    return _best(starts, 1.0 / (1.0 + EXTRA))


def _interpolates(start: Start) -> bool:
    """Whether constant noise has become negligible for some target."""
    spread = np.array([spread_of(y) for y in _network(start.model).y_t])
    return bool((start.optimum.noise[:, 0] < np.log(INTERPOLATED * spread)).any())


def _changed(start: Start, kind: Likelihood) -> Start:
    """The start with another kind of noise."""
    old, rng = _network(start.model), start.rng.spawn(1)[0]
    new = old.with_likelihood(kind)
    return Start(start.family, new, adapted(start.optimum, old, new, rng), rng)


def _noise_trial(start: Start, options: Options) -> Optimum:
    """Shared α, then a few rounds of pruning, on at most `max_rows` values."""
    settled = start.at(_dense(start, SETTLE, options))
    part = _some_rows(settled, options)
    return evolve(part, settled.optimum, NOISE_TRIAL, None, options.step, options.tol)


def _factor(opt: Optimum) -> Precision:
    assert opt.precision is not None
    return opt.precision


def fit_sparse(model: Model, rng: np.random.Generator, n_starts: int) -> list[Optimum]:
    """Sparse optima of one small model, best evidence first, the best one polished."""
    options = replace(SMALL, n_starts=n_starts, weighting="evidence")
    mixture = fit([[model]], rng, options)
    best = polish(model, mixture.optima[0])
    return [best, *mixture.optima[1:]]


def is_possible(model: Model, opt: Optimum) -> bool:
    """Whether a start has a finite log-likelihood."""
    return bool(np.isfinite(model.misfit(model.evaluate(opt.phi, opt.layout), opt.noise)))


def require_starts(starts: Sequence[object]) -> None:
    """Raise ValueError if no start is left."""
    if not starts:
        raise ValueError("No start had a finite log-likelihood; check the function and the priors.")


@dataclass(frozen=True)
class _Budget:
    """Iterations per stage: shared α on all rows, trial pruning, and pruning in total."""

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
    """Iterations with one α per weight matrix and bias vector, on at most `max_rows` values."""
    model, opt, groups = start.model, start.optimum, start.model.groups()
    if groups is None:
        return opt
    n_out, n = model.shape
    part = _some_rows(start, options)
    warm_up = WARM_UP if opt.iterations == 0 and n * n_out < len(opt.phi) else 0
    return evolve(part.single(), opt, n_iter, groups, options.step, options.tol, warm_up)


def _some_rows(start: Start, options: Options) -> Model:
    """The model on at most `max_rows` values, drawn at random."""
    n_out, n = start.model.shape
    few = max(options.max_rows // n_out, 1)
    if few >= n:
        return start.model
    return start.model.rows(np.sort(start.rng.choice(n, few, replace=False)))


def _prune(start: Start, budget: _Budget, options: Options) -> Optimum:
    """The shared stage on all rows, and the pruning before families are compared."""
    model, opt = start.model, start.optimum
    if budget.on_all and options.sparse:
        opt = evolve(model.single(), opt, budget.on_all, model.groups(), options.step, options.tol)
    # On all rows: on a subset, weights that the other rows support would be pruned.
    return evolve(model, opt, budget.trial, None, options.step, options.tol)


def _finish(start: Start, budget: _Budget, options: Options) -> Optimum:
    """The rest of the pruning, and trial removals of units if affordable."""
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
    def run(item: Start) -> Start:
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is rejected
            return function(item)

    if n_threads <= 1 or len(items) <= 1:
        return [run(item) for item in items]
    with ThreadPoolExecutor(n_threads) as pool:  # BLAS and ufuncs release the interpreter lock
        return list(pool.map(run, items))


def _best(starts: list[Start], fraction: float) -> list[Start]:
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


def _best_family(
    families: Sequence[Family], starts: list[Start]
) -> tuple[list[Start], tuple[Trial, ...]]:
    """Starts of the first family within `TIE` of the best, and the evidence of every family."""
    mine = [[s for s in starts if s.family == number] for number in range(len(families))]
    reached = [max(start.optimum.log_evidence for start in part) for part in mine]
    trials = tuple(
        Trial(tuple(model.layout().sizes[1:-1] for model in family), value)
        for family, value in zip(families, reached)
    )
    return mine[int(np.argmax(np.array(reached) >= max(reached) - TIE))], trials
