"""The Gaussian, or mixture of Gaussians, from which a warm-start run begins."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from sbnn._core.arrays import Array

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Reference:
    """A mixture of Gaussians over φ, usually the Laplace approximation at one or more modes.

    Attributes
    ----------
    weights : ndarray, shape (K,)
        Their sum is one.
    means : ndarray, shape (K, d)
    factors : ndarray, shape (K, d, d)
        Lower triangular; the covariances are F Fᵀ.
    """

    weights: np.ndarray
    means: np.ndarray
    factors: np.ndarray

    @classmethod
    def of(
        cls, means: np.ndarray, covariances: np.ndarray, weights: np.ndarray | None = None
    ) -> Reference:
        """From means (K, d) and covariances (K, d, d); equal weights by default.

        Raises
        ------
        ValueError
            If a covariance is not positive definite.
        """
        means, covariances = np.asarray(means, float), np.asarray(covariances, float)
        n = len(means)
        shares = np.full(n, 1.0 / n) if weights is None else np.asarray(weights, float)
        return cls(shares / shares.sum(), means, np.stack([_factor(c) for c in covariances]))

    @property
    def dimension(self) -> int:
        return self.means.shape[1]

    def frame(self) -> tuple[np.ndarray, np.ndarray]:
        """Centre and factor of the coordinates z, φ = centre + factor z, that whiten it."""
        if len(self.means) == 1:
            return self.means[0], self.factors[0]
        centre = self.weights @ self.means
        away = self.means - centre
        inner = np.einsum("k,kij,klj->il", self.weights, self.factors, self.factors)
        return centre, _factor(inner + np.einsum("k,ki,kj->ij", self.weights, away, away))

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """n draws of φ, shape (n, d)."""
        which = rng.choice(len(self.weights), size=n, p=self.weights)
        z = rng.standard_normal((n, self.dimension))
        return self.means[which] + np.einsum("nij,nj->ni", self.factors[which], z)

    def whitened(self) -> Whitened:
        """Its density in the coordinates z of `frame`."""
        centre, factor = self.frame()
        means = solve_triangular(factor, (self.means - centre).T, lower=True).T
        own = np.stack([solve_triangular(f, factor, lower=True) for f in self.factors])
        log_det = np.log(np.abs(np.diagonal(own, axis1=1, axis2=2))).sum(axis=1)
        constants = np.log(self.weights) + log_det - 0.5 * self.dimension * LOG_2PI
        return Whitened(constants, means, own)


def _factor(covariance: np.ndarray) -> np.ndarray:
    """Lower Cholesky factor, computed on the scale of the correlations."""
    scale = np.sqrt(np.diag(covariance))
    if not (np.isfinite(covariance).all() and (scale > 0).all()):
        raise ValueError("The reference needs finite, positive variances.")
    correlation = covariance / np.outer(scale, scale)
    for jitter in (0.0, 1e-12, 1e-9, 1e-6):
        try:
            factor = np.linalg.cholesky(correlation + jitter * np.eye(len(scale)))
            return scale[:, None] * factor
        except np.linalg.LinAlgError:
            continue
    raise ValueError("A covariance of the reference is not positive definite.")


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["constants", "means", "whiten"], meta_fields=[]
)
@dataclass(frozen=True)
class Whitened:
    """log q(z) = log Σ_k exp(c_k − ½ |A_k (z − m_k)|²)."""

    constants: Array  # (K,)
    means: Array  # (K, d)
    whiten: Array  # (K, d, d)

    def log_density(self, z: Array) -> Array:
        """(n, d) → (n,)."""
        away = jnp.einsum("kij,nkj->nki", self.whiten, z[:, None] - self.means)
        return jax.scipy.special.logsumexp(self.constants - 0.5 * (away**2).sum(axis=-1), axis=-1)
