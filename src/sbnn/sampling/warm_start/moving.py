"""Hamiltonian moves of a population until it has decorrelated, tuned on the way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sbnn._core.keys import derive_key, generator
from sbnn.sampling.moves import DECORRELATED
from sbnn.sampling.warm_start.path import Path, hamiltonian_move

TARGET_ACCEPTANCE = 0.8  # near the optimum, 0.65–0.85 (Beskos et al. 2013)
LENGTH = 1.6  # of a trajectory in units of the population's spread, a quarter of a period
PATIENCE = 5  # moves after which trajectories become longer
MAX_STEPS = 256
NARROW = 0.25  # quantile of the variances that covariances are shrunk towards
FLAT = 1e-4  # nats; a Δ that varies less decides nothing, and is mostly rounding error
SLOW = 0.9  # quantile of the coordinates whose correlation counts as slow


class Moved(NamedTuple):
    """The particles of a stage."""

    z: np.ndarray  # (n, d)
    log_likelihood: np.ndarray  # (n,)
    excess: np.ndarray  # (n,), Δ


class Tuning(NamedTuple):
    """Step size for the next moves, and what the last stage's moves did."""

    step_size: float
    acceptance: float = 0.0
    n_moves: int = 0
    n_evaluations: int = 0
    correlation: float = 1.0

    @classmethod
    def start(cls, dimension: int) -> Tuning:
        """A step size that suits a Gaussian of this dimension."""
        return cls(0.5 / dimension**0.25)


def move(
    path: Path, key: Any, beta: float, particles: Moved, tuning: Tuning, max_moves: int
) -> tuple[Moved, Tuning]:
    """Move all particles at temperature b until Δ and their coordinates have decorrelated.

    Each half of the population is scaled by the covariance of the other half, one after the other:
    the second half follows the first where it is now. Moved at the same time, the halves would
    depend on one another, and so would not keep the density: log evidences in 300 dimensions came
    out 0.2 nats too low. The number of steps follows from the step size, which follows the
    acceptance; the lengths of trajectories vary by ±30 % against periodic orbits.

    Parameters
    ----------
    path : Path
    key : JAX key
    beta : float
    particles : Moved
    tuning : Tuning
    max_moves : int

    Returns
    -------
    Moved
    Tuning
    """
    n, half = len(particles.z), len(particles.z) // 2
    start, step_size, rng = particles, tuning.step_size, generator(key, 0)
    n_moves = n_evaluations = n_calm = 0
    acceptance, correlation = 0.0, 1.0
    # Particles do not change between separate modes, however many moves they make.
    one_mode = len(path.whitened.constants) == 1
    straight = np.linalg.inv(_shape(start.z)).T
    halves = [Moved(*(array[:half] for array in start)), Moved(*(array[half:] for array in start))]
    while n_moves < max_moves and n_calm < 2:
        length = LENGTH * (1 + n_moves // PATIENCE) * rng.uniform(0.7, 1.3)
        n_steps = int(np.clip(round(length / step_size), 1, MAX_STEPS))
        chances = []
        for i in range(2):
            *moved, chance = hamiltonian_move(
                path, derive_key(key, 1 + n_moves, i), beta, _shape(halves[1 - i].z),
                step_size, n_steps, *halves[i],
            )  # fmt: skip
            halves[i] = Moved(*moved)
            chances.append(chance)
        particles = Moved(*(np.concatenate(pair) for pair in zip(*halves)))
        chance = np.concatenate(chances)
        n_moves += 1
        n_evaluations += n * (n_steps + 1)
        inside = ~np.isnan(chance)
        acceptance = float(chance[inside].mean()) if inside.any() else 0.0
        step_size = float(step_size * np.exp(0.8 * (acceptance - TARGET_ACCEPTANCE)))
        correlation = -1.0
        if start.excess.std() > FLAT:
            correlation = _correlation(start.excess[:, None], particles.excess[:, None])
        if one_mode:
            correlation = max(correlation, _correlation(start.z @ straight, particles.z @ straight))
        n_calm = n_calm + 1 if correlation <= DECORRELATED else 0
    return particles, Tuning(step_size, acceptance, n_moves, n_evaluations, correlation)


def _shape(z: np.ndarray) -> np.ndarray:
    """Factor of the covariance, shrunk by (d/(n + d))² towards a narrow multiple of the identity.

    Narrow, because the largest stable step is that of the direction whose scale is overestimated
    most: shrinking the correlations instead widened stiff combinations of wide coordinates and
    cost a factor of five in step size. For the same reason little: d/(n + d) itself, without the
    square, doubled the cost on a network of 40 weights, whose particles then mixed too slowly.
    """
    n, d = z.shape
    covariance = np.atleast_2d(np.cov(z.T))
    narrow = max(float(np.quantile(np.diag(covariance), NARROW)), 1e-12)
    share = (d / (n + d)) ** 2
    shrunk = (1.0 - share) * covariance + share * narrow * np.eye(d)
    return np.linalg.cholesky(shrunk)


def _correlation(before: np.ndarray, after: np.ndarray) -> float:
    """Correlation of the slowest columns of (n, k) with their values before the moves."""
    return float(np.quantile((_standard(before) * _standard(after)).mean(axis=0), SLOW))


def _standard(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
