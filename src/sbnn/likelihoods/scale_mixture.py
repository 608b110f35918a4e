"""Predictions of noise with an uncertain scale, as mixtures of normal distributions.

A normal f plus Student-t noise is a mixture of normals over the scale of the noise, and so is a
normal f plus normal noise with an uncertain log σ. Both integrate f in closed form, whatever the
ratio of its variance to that of the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from sbnn.likelihoods.student_t import log_density
from sbnn.scores import NormalMixture

SIGMA_NODES = 5  # Gauss–Hermite nodes for log σ
PRECISION_NODES = 24  # trapezoidal nodes for log λ of Student's t = z / √λ
BEYOND = 1e-7  # probability of λ on either side of the nodes


def uncertain_sigma(
    weights: np.ndarray, log_sigma: np.ndarray, variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of log σ ~ N(log_sigma, variance) and their weights, each (J K, …)."""
    if not variance.any():
        return np.broadcast_to(weights, log_sigma.shape), log_sigma
    z, w = np.polynomial.hermite_e.hermegauss(SIGMA_NODES)
    z, w = (a.reshape(-1, *(1,) * log_sigma.ndim) for a in (z, w / w.sum()))
    nodes = log_sigma + z * np.sqrt(variance)
    return _merge(w * np.broadcast_to(weights, log_sigma.shape)), _merge(nodes)


def _merge(values: np.ndarray) -> np.ndarray:
    """(J, K, …) → (J K, …)."""
    return values.reshape(-1, *values.shape[2:])


def precision_nodes(nu: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and weights of λ ~ Gamma(ν/2, rate ν/2), (J, …), and the λ below which none lies.

    The trapezoidal rule in log λ converges exponentially.
    """
    shape = 0.5 * nu
    low = np.log(np.maximum(special.gammaincinv(shape, BEYOND), 1e-300) / shape)
    high = np.log(special.gammainccinv(shape, BEYOND) / shape)
    steps = np.arange(PRECISION_NODES).reshape(-1, *(1,) * np.ndim(nu))
    width = (high - low) / (PRECISION_NODES - 1)
    log_nodes = low + steps * width
    log_weights = shape * log_nodes - shape * np.exp(log_nodes)  # up to a constant
    weights = np.exp(log_weights - log_weights.max(axis=0))
    return np.exp(log_nodes), weights / weights.sum(axis=0), np.exp(low - 0.5 * width)


@dataclass(frozen=True, eq=False)
class FarTails:
    """The part of Student-t densities with λ below `cut`, which decides far from the centre.

    All arrays have the shape (n_components, …).
    """

    weights: np.ndarray
    means: np.ndarray
    variance: np.ndarray  # of f
    sigma: np.ndarray
    nu: np.ndarray
    cut: np.ndarray

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """log Σₖ wₖ t(y) P(λ < cut | y), shape of the points.

        Given λ, y has the variance (σ² + λ v)/λ; λ v is small there, and λ takes its mean given y.
        """
        nu, squares = self.nu, (y - self.means) ** 2
        typical = np.minimum(self.cut, (nu + 1) / (nu + squares / self.sigma**2))
        scale = self.sigma**2 + typical * self.variance
        z2 = squares / scale
        log_t = log_density(y - self.means, 0.5 * np.log(scale), nu)
        share = self.weights * special.gammainc(0.5 * (nu + 1), 0.5 * self.cut * (nu + z2))
        return special.logsumexp(log_t, b=share, axis=0)

    def total_variance(self) -> np.ndarray:
        """Variance of the whole components."""
        return self.variance + self.sigma**2 * self.nu / (self.nu - 2.0)

    def each(self, change: Callable[[np.ndarray], np.ndarray]) -> FarTails:
        """The same change in every array."""
        return FarTails(
            *(change(np.broadcast_to(v, self.means.shape)) for v in vars(self).values())
        )

    def rescaled(self, scale: np.ndarray, shift: np.ndarray) -> FarTails:
        """The tails of scale · y + shift."""
        return replace(
            self,
            means=self.means * scale + shift,
            variance=self.variance * scale**2,
            sigma=self.sigma * np.abs(scale),
        )


@dataclass(frozen=True, eq=False)
class StudentMixture(NormalMixture):
    """Normal mixtures with the exact far tails and standard deviation of Student-t noise."""

    tails: FarTails

    def std(self) -> np.ndarray:
        tails = self.tails
        squares = tails.total_variance() + (tails.means - self.mean()) ** 2
        return np.sqrt((tails.weights * squares).sum(axis=0))

    def log_density(self, y: ArrayLike) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        return np.logaddexp(super().log_density(y), self.tails.log_density(y))

    def __getitem__(self, points: Any) -> StudentMixture:
        at = (slice(None), *(points if isinstance(points, tuple) else (points,)))
        near = super().__getitem__(points)
        tails = self.tails.each(lambda values: values[at])
        return StudentMixture(near.weights, near.means, near.stds, tails)

    def reweighted(self, weights: ArrayLike) -> NormalMixture:
        raise TypeError("The components of Student-t predictions cannot be reweighted.")

    def rescaled(self, scale: ArrayLike, shift: ArrayLike = 0.0) -> StudentMixture:
        near = super().rescaled(scale, shift)
        tails = self.tails.rescaled(np.asarray(scale, dtype=float), np.asarray(shift, dtype=float))
        return StudentMixture(near.weights, near.means, near.stds, tails)


def student_mixture(
    weights: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    log_sigma: np.ndarray,
    sigma_variance: np.ndarray,
    nu: np.ndarray,
) -> StudentMixture:
    """Distribution of f + σ t_ν for f ~ N(mean, variance) and log σ ~ N(log_sigma, sigma_variance).

    Parameters
    ----------
    weights : ndarray, shape (K, …)
        Weights of the K components.
    mean, variance, log_sigma, sigma_variance, nu : ndarray, broadcastable to (K, …)

    Returns
    -------
    StudentMixture
    """
    shape = mean.shape
    log_sigma = np.broadcast_to(log_sigma, shape)
    shares, nodes = uncertain_sigma(weights, log_sigma, np.broadcast_to(sigma_variance, shape))
    n = len(nodes) // len(mean)
    repeat = lambda a: np.tile(np.broadcast_to(a, shape), (n, *(1,) * (len(shape) - 1)))
    means, spread, nu = repeat(mean), repeat(variance), repeat(nu)
    lam, w, cut = precision_nodes(nu)
    sigma2 = np.exp(2.0 * nodes)
    near_weights, stds = _merge(w * shares), _merge(np.sqrt(spread + sigma2 / lam))
    many = np.tile(means, (len(lam), *(1,) * (means.ndim - 1)))
    tails = FarTails(shares, means, spread, np.exp(nodes), nu, cut)
    return StudentMixture(near_weights, many, stds, tails)
