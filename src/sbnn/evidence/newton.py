"""Multistart trust-region Newton ascent of the evidence over log α."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from sbnn.evidence.closed_form import Evidence, evaluate
from sbnn.evidence.exact.permutations import permutations
from sbnn.evidence.mixture import GaussianMixture
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem
from sbnn.problems.symmetry import Symmetry


class Step(NamedTuple):
    """One Newton iteration."""

    objective: float
    log_alpha: np.ndarray
    relevance: np.ndarray


class Optimum(NamedTuple):
    """A local maximum of log p̂(D|α) + log p(log α)."""

    log_alpha: np.ndarray
    objective: float
    log_evidence: float
    gradient_norm: float
    n_iterations: int
    converged: bool
    reason: str
    history: tuple[Step, ...]


def maximise(
    start: np.ndarray,
    mixture: GaussianMixture,
    ard: np.ndarray,
    hyperprior: Hyperprior,
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 300,
) -> Optimum:
    """Maximise from one start with SciPy's `trust-exact` and the closed-form derivatives.

    Parameters
    ----------
    start : ndarray, shape (n_alpha,)
    mixture, ard, hyperprior
        As for `sbnn.evidence.closed_form.evaluate`.
    tolerance : float
        Gradient norm at which SciPy stops.
    max_iterations : int

    Returns
    -------
    Optimum
    """
    return ascend(
        start,
        lambda log_alpha: evaluate(log_alpha, mixture, ard, hyperprior),
        tolerance=tolerance,
        max_iterations=max_iterations,
    )


def ascend(
    start: np.ndarray,
    objective: Callable[[np.ndarray], Evidence],
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 300,
) -> Optimum:
    """Maximise any `Evidence` with derivatives from one start; see `maximise`.

    Parameters
    ----------
    start : ndarray, shape (n,)
    objective : callable
        Maps a point to its `Evidence`.
    tolerance, max_iterations
        As for `maximise`.

    Returns
    -------
    Optimum
    """
    memo: dict[bytes, Evidence] = {}

    def at(log_alpha: np.ndarray) -> Evidence:
        name = log_alpha.tobytes()
        if name not in memo:
            memo.clear()  # SciPy requests value, gradient and Hessian at the same point
            memo[name] = objective(log_alpha)
        return memo[name]

    steps: list[Step] = []

    def record(log_alpha: np.ndarray) -> None:
        here = at(log_alpha)
        steps.append(Step(here.objective, log_alpha.copy(), here.relevance))

    record(np.asarray(start, dtype=float))
    answer = minimize(
        lambda z: -at(z).objective,
        start,
        jac=lambda z: -at(z).gradient,
        hess=lambda z: -at(z).hessian,
        method="trust-exact",
        callback=lambda z: record(np.asarray(z)),
        options={
            "gtol": tolerance,
            "maxiter": max_iterations,
            "initial_trust_radius": 1.0,
            "max_trust_radius": 8.0,
        },
    )
    final = at(answer.x)
    norm = float(np.abs(final.gradient).max())
    converged = norm <= 1e-6
    if converged:
        reason = "gradient below 1e-6"
    elif answer.nit >= max_iterations:
        reason = f"stopped after {max_iterations} iterations; raise `max_iterations`"
    else:
        reason = f"no further progress at gradient {norm:.1e}"
    return Optimum(
        answer.x,
        final.objective,
        final.log_evidence,
        norm,
        int(answer.nit),
        converged,
        reason,
        tuple(steps),
    )


def starting_points(
    rng: np.random.Generator, particles: np.ndarray, ard: np.ndarray, n: int
) -> np.ndarray:
    """Starts for log α: zero, and α = 1/φ² at random particles.

    A particle is one explanation of the data; the precisions that match it lie in the basin of
    the corresponding optimum.

    Parameters
    ----------
    rng : numpy.random.Generator
    particles : ndarray, shape (n_particles, d)
    ard : ndarray of bool, shape (d,)
    n : int

    Returns
    -------
    ndarray, shape (n, n_alpha)
    """
    values = particles[rng.choice(len(particles), size=n, replace=n > len(particles))][:, ard]
    starts = -np.log(values**2 + 1e-3)
    starts[0] = 0.0
    return starts


def multistart(
    starts: np.ndarray,
    mixture: GaussianMixture,
    ard: np.ndarray,
    hyperprior: Hyperprior,
    symmetry: Symmetry | None = None,
    **options: Any,
) -> list[Optimum]:
    """All distinct optima reached from the starts, best objective first.

    Parameters
    ----------
    starts : ndarray, shape (n, n_alpha)
    mixture, ard, hyperprior
        As for `maximise`.
    symmetry : Symmetry, optional
        Optima that are images of each other count once.
    **options
        For `maximise`.

    Returns
    -------
    list of Optimum
    """
    found = [maximise(start, mixture, ard, hyperprior, **options) for start in starts]
    found.sort(key=lambda o: -o.objective)
    distinct: list[Optimum] = []
    for optimum in found:
        near = (
            abs(optimum.objective - other.objective) < 1e-3
            and same_optimum(optimum.log_alpha, other.log_alpha, ard, symmetry)
            for other in distinct
        )
        if not any(near):
            distinct.append(optimum)
    return distinct


def same_optimum(
    a: np.ndarray, b: np.ndarray, ard: np.ndarray, symmetry: Symmetry | None, tolerance: float = 0.5
) -> bool:
    """Whether two log α agree up to a permutation of hidden neurons.

    The precisions of pruned parameters are flat directions, so log α is compared only up to 6.
    """
    if symmetry is None or not symmetry.permute:
        return bool(np.abs(np.minimum(a, 6) - np.minimum(b, 6)).max() <= tolerance)
    first, second = canonical(a, ard, symmetry), canonical(b, ard, symmetry)
    return bool(np.abs(np.minimum(first, 6) - np.minimum(second, 6)).max() <= tolerance)


def canonical(log_alpha: np.ndarray, ard: np.ndarray, symmetry: Symmetry) -> np.ndarray:
    """log α with hidden neurons sorted by their outgoing precision."""
    full = np.zeros(len(ard))
    full[ard] = log_alpha
    network = symmetry.network
    layers = [(w.copy(), b.copy()) for w, b in network.unflatten(full[: network.n_parameters])]
    for hidden in range(len(network.sizes) - 2, 0, -1):
        (w_in, b_in), (w_out, b_out) = layers[hidden - 1], layers[hidden]
        order = np.lexsort((b_in, w_in.sum(axis=1), w_out.sum(axis=0)))
        layers[hidden - 1] = (w_in[order], b_in[order])
        layers[hidden] = (w_out[:, order], b_out)
    full[: network.n_parameters] = network.flatten(layers)
    return full[ard]


def surrogate_optima(
    problem: Problem,
    particles: np.ndarray,
    mixture: GaussianMixture,
    hyperprior: Hyperprior,
    rng: np.random.Generator,
    n_starts: int,
) -> list[Optimum]:
    """Distinct optima of the closed-form evidence from `n_starts` starts, best first."""
    starts = starting_points(rng, particles, problem.ard, n_starts)
    symmetry = permutations(problem)
    return multistart(starts, mixture, problem.ard, hyperprior, symmetry)
