"""Densities between the reference and the posterior, and Hamiltonian moves that keep them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from sbnn._core.arrays import Array
from sbnn._core.keys import derive_key
from sbnn.problems.target import Target
from sbnn.sampling.chunks import chunked
from sbnn.sampling.warm_start.reference import Reference, Whitened
from sbnn.sampling.warm_start.shear import Shear, straight

# Particles per compiled call. The arrays of 64 networks with 20 neurons and 1,000 rows fit into
# the cache: a gradient takes 40 µs there, and 160 µs with 256 networks per call.
CHUNK = 64
JITTER = 0.2  # of the step size, as a standard deviation of its logarithm


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["target", "whitened", "centre", "factor", "walls", "shear"],
    meta_fields=[],
)
@dataclass(frozen=True)
class Path:
    """The densities q(z)^(1−b) p̃(z)^b on the support, for u = centre + factor z and φ = bend(u).

    p̃ is likelihood × prior. The support is where p̃ is positive and, for each row a of `walls`,
    a · φ ≥ 0: a fundamental domain of the sign flips of a network. A row of zeros is no wall.
    """

    target: Target
    whitened: Whitened
    centre: Array  # (d,)
    factor: Array  # (d, d)
    walls: Array  # (n_walls, d)
    shear: Shear | None = None

    @classmethod
    def between(
        cls, reference: Reference, target: Target, walls: np.ndarray, shear: Shear | None = None
    ) -> Path:
        """The path from a reference, over u, to the posterior of a target."""
        centre, factor = reference.frame()
        return cls(target, reference.whitened(), centre, factor, walls, shear)

    def phi(self, z: Array) -> Array:
        """z → φ, (n, d)."""
        u = self.centre + z @ self.factor.T
        return u if self.shear is None else self.shear.bend(u)

    def draws(self, z: np.ndarray) -> np.ndarray:
        """z → φ, (n, d), outside a compiled program."""
        return np.asarray(_bent(self, z))

    def coordinates(self, phi: np.ndarray) -> np.ndarray:
        """φ → z, (n, d)."""
        return self.whiten(straight(self.shear, phi))

    def whiten(self, u: np.ndarray) -> np.ndarray:
        """u → z, (n, d)."""
        return solve_triangular(self.factor, (u - self.centre).T, lower=True).T

    def inside(self, phi: Array) -> Array:
        """Whether each φ is on the right side of all walls, (n,)."""
        return (phi @ self.walls.T >= 0).all(axis=-1)

    def log_likelihood_and_excess(self, z: Array) -> tuple[Array, Array]:
        """log p(D|φ), and Δ = log p̃ − log q, −inf outside the support; each (n,)."""
        phi = self.phi(z)
        log_likelihood = self.target.evaluate(phi)
        volume = jnp.log(jnp.abs(jnp.diagonal(self.factor))).sum()
        value = log_likelihood + self.target.prior.log_density(phi) + volume
        value = jnp.where(jnp.isnan(value) | ~self.inside(phi), -jnp.inf, value)
        return log_likelihood, value - self.whitened.log_density(z)

    def slope(self, z: Array, beta: Array) -> Array:
        """Gradient of log q(z)^(1−b) p̃(z)^b in z, (n, d)."""
        phi, pull_back = jax.vjp(self.phi, z)
        prior = jax.grad(lambda point: self.target.prior.log_density(point).sum())(phi)
        own = jax.grad(lambda point: self.whitened.log_density(point).sum())(z)
        (slope,) = pull_back(self.target.slope(phi) + prior)
        return (1.0 - beta) * own + beta * slope


# Compiled as a whole: a single operation of a shear may contain a loop.
_bent = jax.jit(Path.phi)


@jax.jit
def _evaluate(path: Path, z: Array) -> tuple[Array, Array]:
    return path.log_likelihood_and_excess(z)


def evaluate(path: Path, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood and Δ of every particle, each (n,)."""
    log_likelihood, excess = chunked(_evaluate, z, (), (path,), size=CHUNK)
    return log_likelihood, excess


def hamiltonian_move(
    path: Path,
    key: jax.Array,
    beta: float,
    shape: np.ndarray,
    step_size: float,
    n_steps: int,
    z: np.ndarray,
    log_likelihood: np.ndarray,
    excess: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """One trajectory of Hamiltonian Monte Carlo for every particle.

    Written here rather than taken from BlackJAX because the gradient may be rounded to single
    precision while the energies at both ends are not: the leapfrog map of a rounded gradient is
    still reversible and keeps volumes, so the move is exact and takes half the time.

    Parameters
    ----------
    path : Path
    key : JAX key
    beta : float
    shape : ndarray, shape (d, d)
        Factor of the covariance of z that sets the scale of the steps.
    step_size : float
        In units of `shape`; jittered for each particle.
    n_steps : int
    z : ndarray, shape (n, d)
    log_likelihood, excess : ndarray, shape (n,)

    Returns
    -------
    z, log_likelihood, excess, acceptance
        Acceptance is NaN where a trajectory ended behind a wall.
    """
    numbers = (np.float64(beta), shape, np.float64(step_size), np.int64(n_steps))
    parts = chunked(
        _trajectory, z, (log_likelihood, excess), (path, *numbers),
        lambda i: derive_key(key, i), size=CHUNK,
    )  # fmt: skip
    return parts[0], parts[1], parts[2], parts[3]


@jax.jit
def _trajectory(
    path: Path,
    beta: Array,
    shape: Array,
    step_size: Array,
    n_steps: Array,
    z: Array,
    log_likelihood: Array,
    excess: Array,
    key: Array,
) -> tuple[Array, Array, Array, Array]:
    key_momentum, key_jitter, key_accept = jax.random.split(key, 3)
    momentum = jax.random.normal(key_momentum, z.shape)
    jitter = jnp.exp(JITTER * jax.random.normal(key_jitter, (len(z), 1)))
    step = step_size * jitter

    def leap(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        # Kick and drift; the first kick is half, and so is the last, after which nothing drifts.
        # One gradient in the program: three of them take three times as long to compile.
        z, momentum = state
        kick = jnp.where((i == 0) | (i == n_steps), 0.5, 1.0)
        momentum = momentum + kick * step * (path.slope(z, beta) @ shape)
        drift = jnp.where(i == n_steps, 0.0, 1.0)
        return z + drift * step * (momentum @ shape.T), momentum

    end, last = jax.lax.fori_loop(0, n_steps + 1, leap, (z, momentum))
    new_likelihood, new_excess = path.log_likelihood_and_excess(end)

    def energy(z: Array, momentum: Array, excess: Array) -> Array:
        log_density = path.whitened.log_density(z) + beta * excess
        return 0.5 * (momentum**2).sum(axis=-1) - log_density

    gain = energy(z, momentum, excess) - energy(end, last, new_excess)
    chance = jnp.where(new_excess > -jnp.inf, jnp.minimum(jnp.exp(gain), 1.0), 0.0)
    chance = jnp.where(jnp.isnan(chance), 0.0, chance)
    accepted = jax.random.uniform(key_accept, chance.shape) < chance
    # Shorter steps do not keep a trajectory from crossing a wall, so these do not count.
    chance = jnp.where(path.inside(path.phi(end)), chance, jnp.nan)
    return (
        jnp.where(accepted[:, None], end, z),
        jnp.where(accepted, new_likelihood, log_likelihood),
        jnp.where(accepted, new_excess, excess),
        chance,
    )
