"""Gaussian noise with a constant standard deviation σ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from sbnn._core.arrays import Array, namespace
from sbnn.likelihoods.base import Likelihood

if TYPE_CHECKING:
    from sbnn.priors import KnownPrior
    from sbnn.scores import Predictive

LOG_2PI = math.log(2.0 * math.pi)
# Relative to the variance of y; without it, exact interpolation would drive σ² to zero.
VARIANCE_FLOOR = 1e-10


def spread_of(y: np.ndarray) -> float:
    """Standard deviation of y, or 1 if y is constant."""
    moved = np.subtract(y, y.mean(), dtype=float)
    spread = math.sqrt(float(moved.ravel() @ moved.ravel()) / max(y.size, 1))
    return spread if spread > 0 else 1.0


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """y ~ N(f, σ²), θ = log σ.

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.likelihoods import Gaussian
    >>> float(Gaussian().log_density(np.zeros(()), np.zeros(1), np.zeros(1)).round(4))
    -0.9189
    """

    outputs = ("mean",)
    parameters = ("log_sigma",)
    constant_information = True
    separable_information = True
    needs_row_variances = False

    def log_density(self, y: Array, f: Array, theta: Array) -> Array:
        log_sigma = theta[..., 0]
        xp = namespace(y, f, theta)
        return -0.5 * ((y - f[..., 0]) * xp.exp(-log_sigma)) ** 2 - log_sigma - 0.5 * LOG_2PI

    def log_likelihood(self, y: Array, f: Array, theta: Array) -> Array:
        """−½ Σ r² − Σ log σ − ½ n log 2π with r = (y − f) / σ."""
        xp = namespace(y, f, theta)
        log_sigma = theta[..., 0]
        residual = (y - f[..., 0]) / xp.exp(log_sigma)
        if log_sigma.ndim < y.ndim:  # one σ per target
            n_targets = y.size // y.shape[0]
            repeats = n_targets // max(log_sigma.size, 1)
            constant = y.shape[0] * (repeats * log_sigma.sum() + 0.5 * n_targets * LOG_2PI)
        else:
            constant = xp.broadcast_to(log_sigma, y.shape).sum() + 0.5 * y.size * LOG_2PI
        return -0.5 * (residual**2).sum() - constant

    def information(self, f: Array, theta: Array) -> Array:
        xp = namespace(f, theta)
        found = xp.exp(-2.0 * theta)
        return found if found.shape == f.shape else xp.broadcast_to(found, f.shape)

    def misfit(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> float:
        """½ Σ r², summed in float64 for residuals of any precision."""
        residual = (y - f[..., 0]).astype(float, copy=False)
        if theta.shape[-2] > 1:  # σ differs from row to row
            return 0.5 * float(((residual * np.exp(-theta[..., 0])) ** 2).sum())
        squares = np.einsum("...i,...i->...", residual, residual)
        return 0.5 * float((squares * np.exp(-2.0 * theta[..., 0, 0])).sum())

    def normaliser(self, theta: np.ndarray, n_rows: int) -> float:
        """Σ log σ + ½ n log 2π over all observations."""
        log_sigma = theta[..., 0]
        total = log_sigma.sum() if log_sigma.ndim > 1 else n_rows * log_sigma.sum()
        return float(total + 0.5 * n_rows * len(log_sigma) * LOG_2PI)

    def score(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return (y[..., None] - f) * np.exp(-2.0 * theta)

    def parameter_information(self, y: Array, f: Array, theta: Array) -> Array:
        """−E ∂² log p / ∂(log σ)² = 2 per observation."""
        return namespace(y, f, theta).full((1, 1), 2.0 * y.shape[0])

    def sensitivity(self, theta: np.ndarray) -> float:
        return float(np.exp(-theta).max())

    def fast_setup(self, theta: Array, precision: str) -> Array:
        return namespace(theta).exp(-theta[..., 0]).astype(precision)

    def fast_row(self, y: Array, f: Array, setup: Array) -> Array:
        """Squared residuals, summed in float64 even if the network runs in single precision."""
        return (((y[:, None] - f[..., 0]) * setup).astype(float) ** 2).sum(axis=0)

    def fast_total(self, total: Array, theta: Array, n_rows: int) -> Array:
        log_sigma = theta[..., 0]
        constant = n_rows * (log_sigma.sum(axis=0) + 0.5 * log_sigma.shape[0] * LOG_2PI)
        return -0.5 * total - constant

    def std(self, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.exp(theta[..., 0]), f.shape[:-1])

    def sample(self, rng: np.random.Generator, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return f[..., 0] + np.exp(theta[..., 0]) * rng.normal(size=f.shape[:-1])

    def cdf(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return special.ndtr((y - f[..., 0]) * np.exp(-theta[..., 0]))

    def priors(self, y: np.ndarray) -> tuple[KnownPrior, ...]:
        """log σ normal around log(std(y) / 3) with std 1.5: σ/std(y) in [0.018, 6.3] (95 %)."""
        from sbnn.priors import Normal

        spread = np.maximum(y.std(), 1e-12 * (1 + np.abs(y).max()))
        return (Normal(float(np.log(spread / 3)), 1.5),)

    def start(self, y: np.ndarray) -> np.ndarray:
        """σ² a tenth of the variance of y."""
        return np.array([0.5 * math.log(0.1 * spread_of(y) ** 2)])

    def update(
        self,
        y: np.ndarray,
        f: np.ndarray,
        theta: np.ndarray,
        variance: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """MacKay's update σ² = Σ r² / (n − Σ variance / σ²)."""
        squares, spread, total = (y - f[..., 0]) ** 2, variance[..., 0], float(len(y))
        if weights is not None:
            squares, spread, total = weights * squares, weights * spread, float(weights.sum())
        used = float(spread.sum()) * math.exp(-2.0 * theta[0])
        floor = VARIANCE_FLOOR * spread_of(y) ** 2
        return np.array([0.5 * math.log(float(squares.sum()) / max(total - used, 1.0) + floor)])

    def predictive(
        self, weights: np.ndarray, f: np.ndarray, variance: np.ndarray, theta: np.ndarray
    ) -> Predictive:
        from sbnn.scores import NormalMixture

        std = np.sqrt(variance[..., 0] + np.exp(2.0 * theta[..., 0]))
        return NormalMixture(weights, f[..., 0], std)
