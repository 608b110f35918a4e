"""Fit a mixture of sparse Laplace optima from many starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from sbnn._core.memory import require_memory_for_threads
from sbnn.evidence.laplace.calibration import inflation
from sbnn.evidence.laplace.growth import grow
from sbnn.evidence.laplace.mixture import (
    NoiseTrial,
    SparseMixture,
    Trial,
    merge,
    mixture_weights,
)
from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.precision import Precision
from sbnn.evidence.laplace.noise_choice import (
    CONSTANT,
    as_network,
    choose_noise,
    on_path,
    paths_for,
    with_noise,
)
from sbnn.evidence.laplace.optimum import Optimum, initial, log_evidence, polish
from sbnn.evidence.laplace.options import DEFAULT, SMALL, TIE, Options
from sbnn.evidence.laplace.stages import (
    ON_MORE,
    best,
    dense,
    distinct,
    finish,
    needs_more_rows,
    not_hopeless,
    prune,
    raced,
    settle,
    unless_constant,
    with_intercepts,
    without_hidden_layers,
)
from sbnn.evidence.laplace.thinning import optimism, without_doubtful_inputs
from sbnn.evidence.starts import Stage, Start, is_possible, require_starts, run_stage
from sbnn.likelihoods import Gaussian, Likelihood

# Optima with less weight are left out. 5 % would cost 0.003 nats per unseen row, 15 % costs 0.01.
LEAST_WEIGHT = 0.025
Family = Sequence[Model]  # architectures on the same data, which share the starts evenly
RACE, DENSE = Stage("training", 0.0, 0.1), Stage("training the better", 0.1, 0.1)
SETTLE, ROWS = Stage("training on", 0.25, 0.2), Stage("training on more rows", 0.5, 0.05)
PRUNE, FINISH = Stage("pruning", 0.55, 0.15), Stage("finishing", 0.85, 0.15)


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
        Each family has its own starts. The first family within `TIE` of the best evidence of a
        sparse optimum is kept, so list smaller networks first.
    rng : numpy.random.Generator
    options : Options
    noises : mapping of Likelihood, optional
        Kinds of noise to choose between for network models, from simple to flexible; the first
        within `TIE` of the best evidence, with shared α, is kept.

    Returns
    -------
    SparseMixture

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.evidence.laplace.fit import SMALL, fit
    >>> from sbnn.evidence.laplace.models.network import NetworkModel
    >>> x = np.linspace(-2, 2, 30)[None]
    >>> model = NetworkModel(x_t=x, y_t=np.tanh(2 * x), sizes=(1, 2, 1))
    >>> mixture = fit([[model]], np.random.default_rng(0), SMALL)
    >>> len(mixture.optima[0].active) < 7
    True
    """
    require_memory_for_threads(options.n_threads, "fitting the network")
    if noises is None:
        starts = _starts(families, rng, options.n_starts, options.linear)
    else:
        starts = []
        for kind, share in paths_for(as_network(families[0][0]).y_t).items():
            path = [[as_network(m).with_likelihood(kind) for m in family] for family in families]
            n_starts = max(1, round(share * options.n_starts))
            starts += _starts(path, rng, n_starts, options.linear)
    starts = [s for s in starts if is_possible(s.model, s.optimum)]
    require_starts(starts)
    # One BLAS thread per start: the matrices are too small to benefit from more.
    with threadpool_limits(limits=1, user_api="blas"):
        starts, trials, noise_trials = _optimise(families, starts, options, noises)
        pairs = [(start.model, start.optimum) for start in starts]
        if options.calibrate and options.sparse:
            pairs = [(model, with_intercepts(model, opt)) for model, opt in pairs]
        pairs = merge(pairs)
        weights = _weights(pairs, options)
        kept = _contributes(weights, LEAST_WEIGHT, options)
        pairs = [pair for pair, keep in zip(pairs, kept) if keep]
        shares = weights[kept] / weights[kept].sum()
        pairs, shares = _agreed(pairs, shares, options)
        factor = inflation(pairs, shares, options) if options.calibrate else 1.0
    likelihood = pairs[0][0].likelihood or Gaussian()
    return SparseMixture(
        tuple(opt for _, opt in pairs), shares, likelihood, options.precision_power, trials,
        noise_trials, inflation=factor,
    )  # fmt: skip


def _weights(pairs: Sequence[tuple[Model, Optimum]], options: Options) -> np.ndarray:
    """The weight of every optimum; sets its evidence and precision."""
    for model, opt in pairs:
        opt.log_evidence, opt.precision = log_evidence(model, opt)
    loo = None
    if options.weighting not in ("equal", "evidence"):
        loo = np.array([_left_out_densities(*pair) for pair in pairs])
    evidences = np.array([opt.log_evidence for _, opt in pairs])
    rows = getattr(pairs[0][0], "weights", None)
    return mixture_weights(options.weighting, evidences, loo, rows)


def _agreed(
    pairs: list[tuple[Model, Optimum]], weights: np.ndarray, options: Options
) -> tuple[list[tuple[Model, Optimum]], np.ndarray]:
    """The optima without inputs that most of them do without, and their weights."""
    many = needs_more_rows(pairs[0][0], options)
    if many or not options.sparse or options.weighting != "mixed":
        return pairs, weights
    fewer = without_doubtful_inputs(pairs, weights, options)
    if fewer is pairs:
        return pairs, weights
    fewer = merge(fewer)
    return fewer, _weights(fewer, options)


def _left_out_densities(model: Model, opt: Optimum) -> np.ndarray:
    """Leave-one-out log density of every row, less its share of the `optimism`."""
    loo = model.loo_log_density(opt.phi, opt.layout, opt.noise, _factor(opt))
    return loo - optimism(model, opt) / getattr(model, "n_rows", len(loo))


def _contributes(weights: np.ndarray, least: float, options: Options) -> np.ndarray:
    """Which optima have at least a certain weight."""
    if options.weighting != "mixed":
        return np.full(len(weights), True)
    return weights >= min(least, weights.max())


def _contributing(starts: list[Start], options: Options) -> list[Start]:
    """The distinct starts without those whose weight is far from being enough."""
    starts = distinct(starts, options)
    weights = _weights([(s.model, s.optimum) for s in starts], options)
    kept = _contributes(weights, 0.5 * LEAST_WEIGHT, options)
    return [start for start, keep in zip(starts, kept) if keep]


def _starts(
    families: Sequence[Family], rng: np.random.Generator, n_starts: int, linear: bool
) -> list[Start]:
    """Random starts, shared evenly between the architectures of every family.

    With `linear`, one of a network without hidden layers joins the first family.
    """
    starts: list[Start] = []
    for number, family in enumerate(families):
        for m, model in enumerate(family):
            share, rest = divmod(n_starts, len(family))
            for own in rng.spawn(max(1, share + (m < rest))):
                starts.append(Start(number, model, initial(model, own), own))
    if linear:  # last: a fit that ends early needs networks first
        line, own = without_hidden_layers(families[0][0]), rng.spawn(1)[0]
        starts.append(Start(0, line, initial(line, own), own))
    return starts


def _optimise(
    families: Sequence[Family],
    starts: list[Start],
    options: Options,
    noises: Mapping[str, Likelihood] | None,
) -> tuple[list[Start], tuple[Trial, ...], tuple[NoiseTrial, ...]]:
    """Shared α, then pruning; only the better starts, one kind of noise and one family continue."""
    n_threads, watch = options.n_threads, options.watch
    noise_trials: tuple[NoiseTrial, ...] = ()
    starts = raced(RACE, DENSE, starts, options)
    starts = not_hopeless(starts)
    if noises is not None:
        starts = [s for s in starts if np.isfinite(s.optimum.log_evidence)]
        require_starts(starts)
        kind, noise_trials = choose_noise(starts, options, noises)
        if kind == CONSTANT:
            starts = on_path(starts, kind) or starts
    starts = run_stage(SETTLE, lambda s: settle(s, options), starts, n_threads, watch)
    if noises is not None:
        starts = with_noise(starts, kind, options)
    if needs_more_rows(starts[0].model, options):
        more = lambda s: dense(s, ON_MORE, options, more=True)
        starts = best(run_stage(ROWS, more, starts, n_threads, watch), options.race)
    starts = run_stage(PRUNE, lambda s: prune(s, options), starts, n_threads, watch)
    starts += grow(starts, options)
    starts = best(starts, options.keep)
    starts, trials = _best_family(families, starts)
    starts = _contributing(starts, options)
    starts = run_stage(FINISH, lambda s: finish(s, options), starts, n_threads, watch)
    starts = unless_constant(starts, options)
    return starts, trials, noise_trials


def _factor(opt: Optimum) -> Precision:
    assert opt.precision is not None
    return opt.precision


def fit_sparse(
    model: Model, rng: np.random.Generator, n_starts: int, options: Options = SMALL
) -> list[Optimum]:
    """Sparse optima of one small model, best evidence first, the best one polished."""
    options = replace(options, n_starts=n_starts, weighting="evidence")
    mixture = fit([[model]], rng, options)
    best_one = polish(model, mixture.optima[0])
    return [best_one, *mixture.optima[1:]]


def _best_family(
    families: Sequence[Family], starts: list[Start]
) -> tuple[list[Start], tuple[Trial, ...]]:
    """Starts of the first family within `TIE` of the best, and the evidence of every family."""
    mine = [[s for s in starts if s.family == number] for number in range(len(families))]
    reached = [max((s.optimum.log_evidence for s in part), default=-np.inf) for part in mine]
    trials = tuple(
        Trial(tuple(model.layout().sizes[1:-1] for model in family), value)
        for family, value in zip(families, reached)
    )
    return mine[int(np.argmax(np.array(reached) >= max(reached) - TIE))], trials
