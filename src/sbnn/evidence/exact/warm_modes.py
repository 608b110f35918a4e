"""The posterior of a problem at fixed α, around the modes that the Laplace engine finds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sbnn._core.float64 import float64
from sbnn._core.keys import seed_of
from sbnn.evidence.exact.permutations import permutations
from sbnn.evidence.exact.warm import Local, output_shear
from sbnn.evidence.laplace.gaussian import GaussianPosterior
from sbnn.evidence.laplace.mixture import merge
from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.models.problems import model_of
from sbnn.evidence.laplace.modes import fit_fixed
from sbnn.evidence.laplace.optimum import Optimum, initial, relax, update_noise
from sbnn.priors import Hyperprior, JointPrior
from sbnn.problems.network import Network
from sbnn.problems.problem import Problem
from sbnn.problems.symmetry import flip_walls, invariant_symmetry, mirror_signs
from sbnn.problems.target import restricted
from sbnn.sampling.warm_start import Reference, Shear, straightened

# Modes further below the best than this, in nats of Laplace evidence, are left out of a reference;
# 24 are all images of a mode of four neurons.
WORSE, MAX_MODES = 10.0, 24
MIN_SHARE = 0.02  # of a mode in the reference: Laplace evidences are off by several nats
# A mode with two neurons exchanged is searched for only if the prior loses less than this, in
# nats, at the start of the search.
FAR = 40.0
# Parameters above which one mode is followed: the random walk under uniform priors, and the search
# for all modes, then take many minutes.
LARGE = {"inferred noise": 20, "known noise": 30}
# Levenberg–Marquardt steps towards the mode of a large network, and updates of its noise.
RELAXATIONS, NOISE_UPDATES = 50, 4
SAME = 1.0  # distance between modes, in posterior standard deviations, below which they are one


@float64
def around_modes(
    problem: Problem,
    log_alpha: np.ndarray,
    key: Any,
    *,
    start: np.ndarray | None = None,
    also: np.ndarray | None = None,
    n_starts: int = 16,
) -> Local:
    """The posterior of a problem at fixed α, around the modes that the Laplace engine finds.

    Unequal α give images of a mode in which neurons are exchanged another mass, so these are
    searched for as modes of their own.

    Parameters
    ----------
    problem : Problem
        With gradients.
    log_alpha : ndarray, shape (n_alpha,)
        Log precisions of the ARD parameters; inf fixes one at zero.
    key : int or JAX key
    start : ndarray, shape (n_parameters,), optional
        The mode near this point alone, instead of random starts.
    also : ndarray, shape (n_parameters,), optional
        A start in addition to the random ones; for large networks, instead of them.
    n_starts : int
        Number of random starts.

    Returns
    -------
    Local
    """
    model = model_of(problem, Hyperprior())
    full = np.zeros(problem.n_parameters)
    full[problem.ard] = log_alpha
    rng = np.random.default_rng(seed_of(key, 3))
    large = is_large(problem)
    if large and start is None:  # there are more modes than could be found
        start = also
    if large and start is not None:
        modes = [_near(model, full, start, rng)]
    else:
        modes = _modes(problem, model, full, rng, start, also, n_starts)
    best = GaussianPosterior.of(problem, model, modes[0])
    walls = _walls(problem, log_alpha, best)
    if start is None and not large:
        modes = [*modes, *_exchanged(problem, model, full, modes, walls, rng)]
        modes = sorted(modes, key=lambda mode: -mode.log_evidence)
    free = np.flatnonzero(~np.isinf(full))
    means, covariances, shares = _gaussians(problem, model, modes, walls, free)
    prior = JointPrior.replace_ard(
        [problem.priors[i] for i in free], problem.ard[free], full[free][problem.ard[free]]
    )
    target = restricted(problem.smooth_target(), prior, np.zeros(problem.n_parameters), free)
    shear = sheared(problem, model, modes[0], free) if len(means) == 1 else None
    if shear is not None:
        pair = straightened(shear, means[0], covariances[0])
        means, covariances = [pair[0]], [pair[1]]
    reference = Reference.of(np.stack(means), np.stack(covariances), shares)
    complete = start is not None or len(modes) >= _n_images(problem, log_alpha, modes[0])
    return Local(target, reference, walls[:, free], free, problem.n_parameters, shear, complete)


def _n_images(problem: Problem, log_alpha: np.ndarray, mode: Optimum) -> int:
    """Number of images of a mode under permutations that leave likelihood and prior unchanged."""
    symmetry = invariant_symmetry(problem.symmetry, problem.prior_at(log_alpha), 0)
    if symmetry is None or not symmetry.permute:
        return 1
    assert problem.network is not None
    live = [np.abs(mode.phi[neuron.members]).max() > 1e-6 for neuron in problem.network.neurons()]
    images, first = 1, 0
    for width in problem.network.sizes[1:-1]:
        n_live = sum(live[first : first + width])
        images *= math.perm(width, n_live)
        first += width
    return images


@float64
def shear_near(problem: Problem, log_alpha: np.ndarray, point: np.ndarray) -> Shear | None:
    """The coordinates of `sheared` for all parameters, at the mode near a point."""
    model = model_of(problem, Hyperprior())
    full = np.zeros(problem.n_parameters)
    full[problem.ard] = log_alpha
    mode = _near(model, full, point, np.random.default_rng(0))
    return sheared(problem, model, mode, np.arange(problem.n_parameters))


def _near(model: Model, full: np.ndarray, point: np.ndarray, rng: np.random.Generator) -> Optimum:
    """An optimum close to a mode: in a narrow bent valley, the last steps take most of the time."""
    n_model = len(model.layout().active)
    opt = initial(model, rng)
    opt.log_alpha, opt.phi = full[:n_model].copy(), np.where(np.isinf(full), 0.0, point)[:n_model]
    opt = opt.without(np.flatnonzero(np.isinf(opt.log_alpha)))
    with np.errstate(all="ignore"):  # a step too far is rejected
        for _ in range(NOISE_UPDATES):
            term, precision = relax(model, opt, RELAXATIONS)
            update_noise(model, opt, term, precision.relevance(), precision)
    return opt


def is_large(problem: Problem) -> bool:
    """Whether a problem is a network of more than `LARGE` parameters."""
    if problem.network is None:
        return False
    inferred = problem.n_parameters > problem.network.n_parameters
    return problem.n_parameters > LARGE["inferred noise" if inferred else "known noise"]


def sheared(problem: Problem, model: Model, mode: Optimum, free: np.ndarray) -> Shear | None:
    """Coordinates of the free parameters in which the posterior of a network bends less."""
    if not isinstance(model, NetworkModel):
        return None
    assert problem.network is not None
    weights = free[free < problem.network.n_parameters]
    return output_shear(model, mode, problem.network, weights)


def _modes(
    problem: Problem,
    model: Model,
    full: np.ndarray,
    rng: np.random.Generator,
    start: np.ndarray | None,
    also: np.ndarray | None,
    n_starts: int,
) -> list[Optimum]:
    """Modes from the starts, distinct up to symmetry, best first."""
    n_model = len(model.layout().active)
    log_alpha = full[:n_model]

    def near(point: np.ndarray) -> list[Optimum]:
        given = np.where(np.isinf(full), 0.0, point)[:n_model]
        return fit_fixed(model, log_alpha, rng, 1, given)

    if start is not None:
        return near(start)[:1]
    modes = fit_fixed(model, log_alpha, rng, n_starts, None)
    if also is not None:
        modes = [opt for _, opt in merge([(model, opt) for opt in (*near(also), *modes)])]
    return [m for m in modes[:MAX_MODES] if m.log_evidence > modes[0].log_evidence - WORSE]


def _exchanged(
    problem: Problem,
    model: Model,
    full: np.ndarray,
    modes: list[Optimum],
    walls: np.ndarray,
    rng: np.random.Generator,
) -> list[Optimum]:
    """Further modes reached from those given when neurons of a layer are exchanged, two at a time.

    With equal α, these are all images of a mode under permutations, up to `MAX_MODES`.
    """
    network = problem.network
    if network is None or permutations(problem) is None:
        return []
    n_model = len(model.layout().active)
    precision = np.where(np.isinf(full), 0.0, np.exp(np.minimum(full, 700.0)))[:n_model]
    precision[~problem.ard[:n_model]] = 0.0
    top = modes[0].log_evidence

    def folded(phi: np.ndarray) -> np.ndarray:
        whole = np.concatenate([phi, np.zeros(problem.n_parameters - n_model)])
        return whole * mirror_signs(network, whole, walls)

    seen = [folded(mode.phi) for mode in modes]
    found: list[Optimum] = []
    for mode in itertools.chain(modes, found):  # which grows
        for index in _transpositions(network):
            image = mode.phi[index]
            if len(seen) >= MAX_MODES or np.isinf(full[:n_model])[image != 0].any():
                continue
            lost = 0.5 * (precision * (image**2 - mode.phi**2)).sum()
            if not lost < FAR or _is_among(folded(image), seen):
                continue
            for new in fit_fixed(model, full[:n_model], rng, 1, image)[:1]:
                if new.log_evidence > top - WORSE and not _is_among(folded(new.phi), seen):
                    seen.append(folded(new.phi))
                    found.append(new)
    return found


def _is_among(phi: np.ndarray, seen: list[np.ndarray]) -> bool:
    return any(np.abs(phi - other).max() < 1e-4 * (1.0 + np.abs(phi).max()) for other in seen)


def _transpositions(network: Network) -> Iterator[np.ndarray]:
    """Index of φ for every exchange of two hidden neurons of a layer."""
    neurons, first = network.neurons(), 0
    for width in network.sizes[1:-1]:
        for i, j in itertools.combinations(range(first, first + width), 2):
            index = np.arange(network.n_parameters)
            a, b = neurons[i].members, neurons[j].members
            index[a], index[b] = index[b], index[a]
            yield index
        first += width


def _gaussians(
    problem: Problem, model: Model, modes: list[Optimum], walls: np.ndarray, free: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Means and covariances of the free parameters at distinct modes, and their shares."""
    means: list[np.ndarray] = []
    covariances: list[np.ndarray] = []
    log_shares = []
    for mode in modes:
        posterior = GaussianPosterior.of(problem, model, mode)
        signs = np.ones(problem.n_parameters)
        if problem.network is not None:
            signs = mirror_signs(problem.network, posterior.mode, walls)
        mean = (signs * posterior.mode)[free]
        covariance = (np.outer(signs, signs) * posterior.covariance)[np.ix_(free, free)]
        away = [(mean - other) @ np.linalg.solve(covariance, mean - other) for other in means]
        if len(means) < MAX_MODES and not any(distance < SAME**2 for distance in away):
            means.append(mean)
            covariances.append(covariance)
            log_shares.append(mode.log_evidence)
    shares = np.exp(np.array(log_shares) - max(log_shares))
    return means, covariances, np.maximum(shares / shares.sum(), MIN_SHARE)


def _walls(problem: Problem, log_alpha: np.ndarray, posterior: GaussianPosterior) -> np.ndarray:
    """Walls against sign flips, if likelihood and prior are invariant under them."""
    symmetry = invariant_symmetry(problem.symmetry, problem.prior_at(log_alpha), 0)
    if problem.network is None or symmetry is None or not symmetry.flips:
        return np.zeros((0, problem.n_parameters))
    return flip_walls(problem.network, posterior.mode, posterior.covariance)
