"""Choice of the noise model during a fit: the mean stays, and the noise starts at its level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sbnn.evidence.laplace.mixture import NoiseTrial
from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.layout import Array, Layout
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.models.terms import per_row
from sbnn.evidence.laplace.optimum import Optimum, initial
from sbnn.evidence.laplace.options import TIE, Options
from sbnn.evidence.laplace.stages import best, dense
from sbnn.evidence.starts import Stage, Start, run_stage
from sbnn.likelihoods import Gaussian, Likelihood, StudentT, VaryingStudentT
from sbnn.likelihoods.gaussian import spread_of
from sbnn.problems.network import layer_slices

# If there is a choice of noise models, the starts begin with constant Gaussian noise, with which
# the mean learns all it can; but outliers ruin it. A further share of `EXTRA` begins with the
# flexible model, whose early noise level may explain what the mean has yet to learn, but which
# tolerates outliers. The best start then tries every kind of noise for `NOISE_TRIAL` iterations
# with shared α: in the pruning that follows, evidence depends more on the path than on the noise.
CONSTANT = Gaussian()
EXTRA = 0.125
# Distance from the median beyond which a target is an outlier, in standard deviations of a normal
# distribution with the same quartiles: `GROSS`, or `FAR` if it is `LEAP` times as far away as the
# next one. (245 rows, 5 % of the cells missing, 4 outliers at 9: the errors of the mean are 0.37 to
# 0.47 on four seeds; with gross outliers alone 0.38 to 0.77. The rows without gaps: 0.42 to 0.63,
# against 0.44 to 2.2.)
GROSS, FAR, LEAP = 15.0, 6.0, 2.0
INTERPOLATED = 1e-4  # σ relative to the spread of y below which it is no noise
ADAPT, NOISE_TRIAL = 5, 10
# Nats per row below the best start, after the noise was changed, from which a start begins anew:
# outliers had ruined it.
RUINED = 0.5
FEWER = 0.75  # share of the starts that continue with varying noise, which takes twice the time
PRIOR = 0.1  # variance of new weights into log σ
NOISE = Stage("comparing kinds of noise", 0.2, 0.05)
CHANGE = Stage("learning the noise", 0.45, 0.05)


def has_outliers(y_t: Array) -> bool:
    """Whether values are far from the median: beyond `GROSS`, or beyond `FAR` and apart.

    The tail of a skewed distribution reaches far too, but without a leap.

    Parameters
    ----------
    y_t : array, shape (K, n)

    Returns
    -------
    bool

    Examples
    --------
    >>> y = np.linspace(-1.0, 1.0, 50)
    >>> has_outliers(np.append(y, 5.0)[None]), has_outliers(np.exp(3 * y)[None])
    (True, False)
    """
    low, middle, high = np.quantile(y_t, (0.25, 0.5, 0.75), axis=1, keepdims=True)
    some = high[:, 0] > low[:, 0]
    z = np.sort(1.349 * (y_t - middle)[some] / (high - low)[some], axis=1)
    for side in (z, -z[:, ::-1]):
        apart = side[:, 1:] > LEAP * np.maximum(side[:, :-1], 1.0)
        if ((side[:, 1:] > GROSS) | (side[:, 1:] > FAR) & apart).any():
            return True
    return False


def paths_for(y_t: Array) -> dict[Likelihood, float]:
    """The kinds of noise that starts begin with, and their shares.

    Outliers ruin starts with Gaussian noise, and a noise level that varies would grow where they
    are: half of the starts then have constant Student-t noise.

    Parameters
    ----------
    y_t : array, shape (K, n)

    Returns
    -------
    dict of float

    Examples
    --------
    >>> y = np.linspace(-1.0, 1.0, 50)[None]
    >>> list(paths_for(y).values()), list(paths_for(np.append(y, [[100.0]], axis=1)).values())
    ([1.0, 0.125], [0.5, 0.5])
    """
    if has_outliers(y_t):
        return {CONSTANT: 0.5, StudentT(): 0.5}
    return {CONSTANT: 1.0, VaryingStudentT(): EXTRA}


def choose_noise(
    starts: list[Start], options: Options, noises: Mapping[str, Likelihood]
) -> tuple[Likelihood, tuple[NoiseTrial, ...]]:
    """The first kind of noise within `TIE` of the best evidence.

    If the mean interpolates the data, there is no noise to model, and it stays constant.

    Parameters
    ----------
    starts : list of Start
        With the likelihoods of `paths_for`, after dense iterations.
    options : Options
    noises : mapping of Likelihood

    Returns
    -------
    kind : Likelihood
    trials : tuple of NoiseTrial
        Empty if there was no choice, and only one if the fit ended before the comparison.
    """
    plain = on_path(starts, CONSTANT)
    others = [s for s in starts if s.model.likelihood != CONSTANT]
    leaders = [max(path, key=lambda s: s.optimum.log_evidence) for path in (plain, others) if path]
    second = as_network(others[0].model).likelihood if others else VaryingStudentT()
    if len(noises) == 1:
        return next(iter(noises.values())), ()
    if plain and _interpolates(leaders[0]):
        return CONSTANT, ()

    def reached(pairs: Sequence[tuple[Start, Likelihood]]) -> Array:
        tried = _dense_stage(NOISE, [_changed(*pair) for pair in pairs], NOISE_TRIAL, options)
        found = [s.optimum.log_evidence for s in tried]
        return np.nan_to_num(found, nan=-np.inf, neginf=-np.inf)

    flexible = reached([(leader, second) for leader in leaders])
    leader = leaders[int(np.argmax(flexible))]
    rest = [kind for kind in noises.values() if kind != second]
    found = dict(zip(rest, reached([(leader, kind) for kind in rest])))
    values = np.array([found.get(kind, flexible.max()) for kind in noises.values()])
    if not np.isfinite(values.max()):
        name, kind = next(iter(noises.items()))
        return kind, (NoiseTrial(name, leaders[0].optimum.log_evidence),)
    chosen = list(noises.values())[int(np.argmax(values >= values.max() - TIE))]
    return chosen, tuple(NoiseTrial(*pair) for pair in zip(noises, values.tolist()))


def on_path(starts: list[Start], kind: Likelihood) -> list[Start]:
    """The starts with this kind of noise."""
    return [s for s in starts if s.model.likelihood == kind]


def with_noise(starts: list[Start], kind: Likelihood, options: Options) -> list[Start]:
    """The better starts with this kind of noise, or all of them if they have it already."""
    if len(on_path(starts, kind)) == len(starts):
        return starts
    starts = _dense_stage(CHANGE, [_changed(s, kind) for s in starts], ADAPT, options)
    share = 1.0 if len(kind.outputs) == 1 else FEWER
    starts = best(starts, share / (1.0 + EXTRA))
    least = max(s.optimum.log_evidence for s in starts) - RUINED * starts[0].model.shape[1]
    good = [s for s in starts if s.optimum.log_evidence > least]
    ruined = [_renewed(s) for s in starts if not s.optimum.log_evidence > least]
    if not ruined:
        return good
    return good + _dense_stage(CHANGE, ruined, options.group_iterations, options)


def _dense_stage(stage: Stage, starts: list[Start], n_iter: int, options: Options) -> list[Start]:
    """A few dense iterations of every start."""
    run = lambda s: dense(s, n_iter, options)
    return run_stage(stage, run, starts, options.n_threads, options.watch)


def _renewed(start: Start) -> Start:
    """Another random start of the same model."""
    rng = start.rng.spawn(1)[0]
    return Start(start.family, start.model, initial(start.model, rng), rng)


def _interpolates(start: Start) -> bool:
    """Whether constant noise has become negligible for some target."""
    spread = np.array([spread_of(y) for y in as_network(start.model).y_t])
    return bool((start.optimum.noise[:, 0] < np.log(INTERPOLATED * spread)).any())


def _changed(start: Start, kind: Likelihood) -> Start:
    """The start with another kind of noise."""
    old, rng = as_network(start.model), start.rng.spawn(1)[0]
    new = old.with_likelihood(kind)
    return Start(start.family, new, adapted(start.optimum, old, new, rng), rng)


def as_network(model: Model) -> NetworkModel:
    """The model, which must be a network."""
    assert isinstance(model, NetworkModel)
    return model


def adapted(
    opt: Optimum, old: NetworkModel, new: NetworkModel, rng: np.random.Generator
) -> Optimum:
    """The optimum as a start of a model that differs only in its likelihood.

    Hidden layers, and outputs and parameters that both likelihoods have, are kept. An
    output log σ that is new starts at a regression of the residuals, other noise at its level.

    Parameters
    ----------
    opt : Optimum
    old, new : NetworkModel
    rng : numpy.random.Generator

    Returns
    -------
    Optimum
    """
    phi, log_alpha, noise = new.start(rng)
    place = _places(old, new)
    copied = place >= 0
    phi[place[copied]], log_alpha[place[copied]] = opt.phi[copied], opt.log_alpha[copied]
    active = np.ones(len(phi), bool)
    active[place[copied]] = False
    active[place[opt.active[copied[opt.active]]]] = True
    before, after = old.likelihood, new.likelihood
    for q, name in enumerate(after.parameters):
        if name in before.parameters:
            noise[:, q] = opt.noise[:, before.parameters.index(name)]
        elif name == "log_sigma":
            noise[:, q] = _log_level(opt, old)
    if "log_sigma" in after.outputs and "log_sigma" not in before.outputs:
        of_sigma = _sigma_weights(new)
        phi[of_sigma], log_alpha[of_sigma[:, :-1]] = _log_sigma_start(opt, old), -np.log(PRIOR)
    phi[~active], log_alpha[~active] = 0.0, np.inf
    layout = Layout(new.sizes, np.flatnonzero(active))
    return Optimum(
        phi, log_alpha, noise, layout, opt.activation, iterations=opt.iterations,
        history=list(opt.history),
    )  # fmt: skip


def _places(old: NetworkModel, new: NetworkModel) -> Array:
    """Position in the new φ of every parameter of the old one, −1 if it has none."""
    s, m, e = layer_slices(old.sizes)[-1]
    start, middle, _ = layer_slices(new.sizes)[-1]
    place = np.full(e, -1)
    place[:s] = np.arange(s)
    width, before, after = old.sizes[-2], old.likelihood.outputs, new.likelihood.outputs
    for target in range(len(old.y_t)):
        for name in set(before) & set(after):
            a = target * len(before) + before.index(name)
            b = target * len(after) + after.index(name)
            place[s + a * width : s + (a + 1) * width] = start + b * width + np.arange(width)
            place[m + a] = middle + b
    return place


def _sigma_weights(model: NetworkModel) -> Array:
    """Positions of the weights into the output log σ of each target, and of its bias last."""
    (s, m, _), width = layer_slices(model.sizes)[-1], model.sizes[-2]
    outputs = model.likelihood.outputs
    rows = np.arange(len(model.y_t)) * len(outputs) + outputs.index("log_sigma")
    return np.column_stack([s + rows[:, None] * width + np.arange(width), m + rows])


def _log_sigma_start(opt: Optimum, model: NetworkModel) -> Array:
    """Weights and bias of log σ for each target by ridge regression, (K, width + 1).

    log|r| of normal residuals r is log σ − 0.635 with variance π²/8. It is regressed on the last
    hidden layer, with weights of variance `PRIOR`; dead neurons have none.
    """
    done = model.evaluate(opt.phi, opt.layout)
    residual = np.abs(model.y_t - model.split(done.output)[..., 0])
    level = np.log(residual + 0.05 * np.median(residual, axis=1, keepdims=True) + 1e-300) + 0.635
    features = done.layers[-1][1].astype(float)
    centre = features.mean(axis=1, keepdims=True)
    moved = features - centre
    gram = moved @ moved.T + np.pi**2 / 8 / PRIOR * np.eye(len(moved))
    out = np.zeros((len(level), model.sizes[-2] + 1))
    for k, target in enumerate(level):
        weights = np.linalg.solve(gram, moved @ (target - target.mean()))
        out[k, opt.layout.alive[-2]] = weights
        fitted = weights @ moved
        # The bias gives the residuals, in units of σ, a mean square of one.
        scale = 0.5 * np.log(np.mean(residual[k] ** 2 * np.exp(-2 * fitted)) + 1e-300)
        out[k, -1] = scale - weights @ centre[:, 0]
    return out


def _log_level(opt: Optimum, model: NetworkModel) -> Array:
    """Logarithm of the typical noise of each target, (K,)."""
    f = model.split(model.evaluate(opt.phi, opt.layout).output)
    information = model.likelihood.information(f, per_row(opt.noise))[..., 0]
    return -0.5 * np.log(np.broadcast_to(information, f.shape[:-1])).mean(axis=1)
