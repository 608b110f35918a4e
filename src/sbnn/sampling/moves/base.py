"""The `Move` protocol, the density that moves leave invariant, and the Metropolis rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np

from sbnn._core.keys import key_data
from sbnn.priors import JointPrior
from sbnn.problems.target import Target
from sbnn.sampling.chunks import evaluate_all
from sbnn.sampling.state import Evaluate, Particles

Random = np.ndarray | np.random.Generator
"""A key of two 32-bit words, or a generator; `np.random.default_rng` accepts both."""


class BlockInfo(NamedTuple):
    """Summary of one block of moves."""

    n_accepted: int
    n_failed: int  # proposals inside the prior's support at which the likelihood was zero or NaN


Kernel = Callable[[Particles, float], tuple[Particles, BlockInfo]]
"""One block of moves: (particles, scale) → (particles, info)."""


@runtime_checkable
class Move(Protocol):
    """A Markov move of a whole population that leaves p(φ) p(D|φ)^β invariant.

    `tmcmc(move=...)` and `sbnn.standard(move=...)` accept any object with these members.
    """

    @property
    def name(self) -> str:
        """Recorded with the results and in checkpoints."""

    @property
    def needs_gradients(self) -> bool:
        """Whether the log-likelihood must be written in JAX."""

    @property
    def block(self) -> int:
        """Moves per call of the kernel; the scale is adapted and decorrelation checked between."""

    @property
    def evaluations_per_move(self) -> int:
        """Likelihood evaluations of one move of one particle."""

    @property
    def target_acceptance(self) -> float | None:
        """Acceptance rate that the scale is adapted to; None keeps the scale."""

    def initial_scale(self, n_parameters: int) -> float:
        """Scale to start from."""

    def kernel(self, density: Tempered, factor: np.ndarray, key: Random) -> Kernel:
        """The move at one temperature.

        Parameters
        ----------
        density : Tempered
            To be left invariant.
        factor : ndarray, shape (2, d, d)
            Cholesky factors of the population's covariance; a particle uses the one that
            `halves` selects, which was estimated without its ancestor.
        key : ndarray or numpy.random.Generator
            Source of all random numbers of the kernel.

        Returns
        -------
        callable
            (particles, scale) → (particles, BlockInfo); runs `block` moves.
        """


class Point(NamedTuple):
    """Positions of particles with their densities; NumPy or JAX arrays."""

    phi: Any  # (n, d)
    log_likelihood: Any  # (n,)
    log_prior: Any  # (n,)


def metropolis(
    log_u: Any, beta: Any, here: Point, there: Point, log_correction: Any = None
) -> tuple[Point, Any]:
    """The Metropolis(–Hastings) rule under p(φ) p(D|φ)^β, for NumPy and JAX arrays alike.

    A proposal is accepted if log u < β Δ log p(D|φ) + Δ log p(φ) + log q(φ|φ')/q(φ'|φ). At β = 0
    the support of the likelihood still counts.

    Parameters
    ----------
    log_u : array, shape (n,)
        Logarithms of uniform random numbers.
    beta : float
    here, there : Point
        The particles and the proposals.
    log_correction : array, shape (n,), optional
        log q(φ|φ')/q(φ'|φ); not needed for a symmetric proposal.

    Returns
    -------
    Point
        The new positions of the particles.
    accepted : array of bool, shape (n,)

    Examples
    --------
    >>> here = Point(np.zeros((2, 1)), np.zeros(2), np.zeros(2))
    >>> there = Point(np.ones((2, 1)), np.array([0.5, -np.inf]), np.zeros(2))
    >>> metropolis(np.log([0.9, 0.1]), 1.0, here, there)[1]
    array([ True, False])
    """
    xp = there.log_likelihood.__array_namespace__()
    possible = (there.log_likelihood > -np.inf) & (there.log_prior > -np.inf)
    with np.errstate(invalid="ignore"):  # 0 · (−inf) and similar: zero density, never accepted
        ratio = beta * (there.log_likelihood - here.log_likelihood) + there.log_prior
        ratio = ratio - here.log_prior
        if log_correction is not None:
            ratio = ratio + log_correction
        accepted = possible & (log_u < ratio)
    return Point(
        xp.where(accepted[:, None], there.phi, here.phi),
        xp.where(accepted, there.log_likelihood, here.log_likelihood),
        xp.where(accepted, there.log_prior, here.log_prior),
    ), accepted


def failures(there: Point) -> Any:
    """Which proposals inside the prior's support have no likelihood, shape (n,)."""
    return (there.log_prior > -np.inf) & (there.log_likelihood == -np.inf)


@dataclass(frozen=True)
class Tempered:
    """The density p(φ) p(D|φ)^β, evaluated on the host for whole populations.

    Moves that compile their own loop use `target` and `beta`; the others need only the methods.
    """

    target: Target
    beta: float = 1.0
    evaluate: Evaluate | None = None  # of a black-box likelihood

    def log_prior(self, phi: np.ndarray) -> np.ndarray:
        """log p(φ) of each row."""
        return prior_log_density(self.target.prior, phi)

    def here(self, particles: Particles) -> Point:
        """The particles, whose likelihood is known, with their prior density."""
        return Point(particles.phi, particles.log_likelihood, self.log_prior(particles.phi))

    def there(self, phi: np.ndarray) -> Point:
        """New positions with their likelihood and prior density."""
        log_prior = self.log_prior(phi)
        if self.evaluate is None:
            return Point(phi, evaluate_all(self.target, phi, None), log_prior)
        log_likelihood = np.full(len(phi), -np.inf)
        inside = log_prior > -np.inf
        log_likelihood[inside] = self.evaluate(phi[inside])  # elsewhere no evaluation is needed
        return Point(phi, log_likelihood, log_prior)

    def metropolis(
        self,
        rng: np.random.Generator,
        here: Point,
        proposal: np.ndarray,
        log_correction: np.ndarray | None = None,
    ) -> tuple[Point, BlockInfo]:
        """Evaluate proposals (n, d) and accept or reject each by the rule `metropolis`."""
        there = self.there(proposal)
        log_u = np.log(rng.random(len(proposal)))
        now, accepted = metropolis(log_u, self.beta, here, there, log_correction)
        return now, BlockInfo(int(accepted.sum()), int(failures(there).sum()))


def moved(particles: Particles, now: Point) -> Particles:
    """The same particles at their new positions."""
    return particles._replace(phi=now.phi, log_likelihood=now.log_likelihood)


def halves(particles: Particles) -> np.ndarray:
    """Which of two factors each particle uses: 0 if its ancestor was in the first half, else 1."""
    return (2 * particles.ancestor >= len(particles.ancestor)).astype(np.int32)


def words_of(key: Random) -> np.ndarray:
    """The two words of a key, or two words from a generator."""
    if isinstance(key, np.random.Generator):
        return key.integers(2**32, size=2, dtype=np.uint32)
    return key_data(key)


def prior_log_density(prior: JointPrior, phi: np.ndarray) -> np.ndarray:
    """log p(φ) of each row, compiled."""
    return np.asarray(_prior_log_density(prior, phi))


@jax.jit
def _prior_log_density(prior: JointPrior, phi: jax.Array) -> jax.Array:
    return prior.log_density(phi)
