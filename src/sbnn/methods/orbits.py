"""Orbits of the symmetry group: modes of a posterior, and draws without their mirror images."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from scipy.optimize import minimize

from sbnn._core.float64 import float64
from sbnn.methods.result import Result
from sbnn.problems.mirror_images import counted_once
from sbnn.problems.problem import Problem
from sbnn.problems.symmetry import invariant_symmetry
from sbnn.problems.target import Target


class Orbit(NamedTuple):
    """A mode and its images under the network's symmetries."""

    phi: np.ndarray  # the representative, shape (d,)
    log_posterior: float
    images: np.ndarray  # distinct points of the orbit, shape (n_images, d)
    masses: np.ndarray  # fraction of the posterior draws nearest to each image


@jax.jit
def _value_and_grad(target: Target, phi: jax.Array) -> tuple[jax.Array, jax.Array]:
    def log_posterior(theta: jax.Array) -> jax.Array:
        return target.evaluate(theta[None])[0] + target.prior.log_density(theta)

    return jax.value_and_grad(log_posterior)(phi)


@float64
def find_orbits(result: Result, n_starts: int) -> list[Orbit]:
    """Climb from the best draws to local maxima; merge those of one orbit; assign draws to images.

    Maxima on the edge of a uniform box are kept. See `Result.modes`.
    """
    problem: Problem = result.problem  # type: ignore[assignment]
    if problem.black_box:
        raise ValueError(
            "`modes` needs gradients, and this log-likelihood is a black box. Write it "
            "with jax.numpy, or use `result.draws()`."
        )
    target = problem.target()
    symmetry = problem.symmetry
    fold = symmetry.fold if symmetry is not None else np.atleast_2d
    phi = result.phi
    log_posterior = result.log_likelihood + np.asarray(target.prior.log_density(phi))
    starts = phi[np.argsort(-log_posterior)[:n_starts]]
    scale = phi.std(axis=0) + 1e-12
    found: list[tuple[float, np.ndarray]] = []
    for start in starts:
        value, mode = _climb(problem, target, start)
        mode = fold(mode)[0]
        same = (abs(value - v) < 1e-2 and np.max(np.abs(mode - m) / scale) < 0.2 for v, m in found)
        if not any(same):
            found.append((value, mode))
    found.sort(key=lambda pair: -pair[0])
    images = [_distinct(symmetry.expand(m) if symmetry is not None else m[None]) for _, m in found]
    if not images:
        return []
    # Every draw belongs to the nearest image of any orbit, distances in units of the draws' std.
    everything = np.concatenate(images) / scale
    nearest = np.array([np.argmin(((row / scale - everything) ** 2).sum(axis=1)) for row in phi])
    counts = np.bincount(nearest, minlength=len(everything)) / len(phi)
    orbits, start_at = [], 0
    for (value, mode), points in zip(found, images):
        masses = counts[start_at : start_at + len(points)]
        start_at += len(points)
        orbits.append(Orbit(mode, value, points, masses))
    return orbits


def without_mirror_images(result: Result) -> np.ndarray:
    """The draws of a result, each replaced by one of its images under symmetries of the posterior.

    These are the symmetries of the network that the prior has too: with learned α, neurons of
    different α cannot be exchanged.
    """
    problem = result.problem
    if problem is None or problem.symmetry is None:
        return result.phi
    prior = problem.known_prior()
    if result.log_alpha is not None:
        prior = problem.prior_at(result.log_alpha[problem.ard])
    symmetry = invariant_symmetry(problem.symmetry, prior, 0)
    return result.phi if symmetry is None else counted_once(symmetry, result.phi)


def _climb(problem: Problem, target: Target, start: np.ndarray) -> tuple[float, np.ndarray]:
    support = [p.support for p in problem.priors]

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _value_and_grad(target, theta)
        if not np.isfinite(value):
            return 1e300, np.zeros_like(theta)
        return -float(value), -np.asarray(gradient)

    answer = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=support, options={"maxiter": 2000}
    )
    return -float(answer.fun), answer.x


def _distinct(points: np.ndarray, tolerance: float = 1e-6) -> np.ndarray:
    """Rows that differ by more than rounding (a mode may be its own image)."""
    scale = np.abs(points).max() + 1e-300
    _, first = np.unique(np.round(points / scale / tolerance), axis=0, return_index=True)
    return points[np.sort(first)]
