"""Gaussian mixtures that approximate likelihood × known prior, fitted to particles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from sbnn.problems.symmetry import Symmetry

_LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """exp(log Z₀) Σ a N(φ | μ, Σ), with kernels grouped by shared covariance.

    Attributes
    ----------
    log_weights : ndarray, shape (G, K)
        log a, with Σ a = 1 over all kernels.
    means : ndarray, shape (G, K, d)
    covariances : ndarray, shape (G, d, d)
        One per group: KDE gives one group of many kernels, EM many groups of one kernel.
    log_normaliser : float
        log Z₀ = log ∫ likelihood × known prior, the scale of the normalised mixture.
    """

    log_weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    log_normaliser: float = 0.0

    def __post_init__(self) -> None:
        groups, kernels = self.log_weights.shape
        d = self.means.shape[-1]
        if self.means.shape != (groups, kernels, d) or self.covariances.shape != (groups, d, d):
            raise ValueError(
                f"Mixture shapes do not fit: log_weights {self.log_weights.shape}, "
                f"means {self.means.shape}, covariances {self.covariances.shape}."
            )
        if not np.isfinite(self.means).all() or not np.isfinite(self.covariances).all():
            raise ValueError("Means and covariances of a mixture must be finite.")
        if not np.isfinite(logsumexp(self.log_weights)):
            raise ValueError("At least one kernel of a mixture needs a weight above zero.")
        try:
            np.linalg.cholesky(self.covariances)
        except np.linalg.LinAlgError:
            worst = float(np.linalg.eigvalsh(self.covariances).min())
            raise ValueError(
                f"Every covariance must be positive definite; the smallest eigenvalue is "
                f"{worst:.3g}."
            ) from None

    @property
    def n_kernels(self) -> int:
        return self.log_weights.size

    @property
    def dimension(self) -> int:
        return self.means.shape[-1]

    def log_density(self, phi: np.ndarray) -> np.ndarray:
        """log Z₀ + log Σ a N(φ | μ, Σ) for φ of shape (n, d)."""
        phi = np.atleast_2d(phi)
        factors = np.linalg.cholesky(self.covariances)
        out = np.full(len(phi), -np.inf)
        for g, factor in enumerate(factors):
            log_det = np.log(np.diag(factor)).sum()
            # |a − b|² = |a|² − 2ab + |b|² cancels far from the origin, so centre first.
            middle = self.means[g].mean(axis=0)
            white = np.linalg.solve(factor, (phi - middle).T).T
            centres = np.linalg.solve(factor, (self.means[g] - middle).T).T
            distance = (
                (white**2).sum(1)[:, None] - 2 * white @ centres.T + (centres**2).sum(1)[None]
            )
            terms = self.log_weights[g] - 0.5 * np.maximum(distance, 0)
            log_kernel = logsumexp(terms, axis=1) - log_det - 0.5 * self.dimension * _LOG_2PI
            out = np.logaddexp(out, log_kernel)
        return self.log_normaliser + out

    def draws(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """n independent draws, shape (n, d)."""
        weights = np.exp(self.log_weights - logsumexp(self.log_weights))
        chosen = rng.choice(weights.size, size=n, p=weights.ravel())
        group, kernel = np.unravel_index(chosen, weights.shape)
        factors = np.linalg.cholesky(self.covariances)
        noise = rng.normal(size=(n, self.dimension))
        return self.means[group, kernel] + np.einsum("nij,nj->ni", factors[group], noise)

    def expand(self, symmetry: Symmetry | None) -> GaussianMixture:
        """The mixture averaged over all images under the symmetry group."""
        if symmetry is None or symmetry.order == 1:
            return self
        elements = list(symmetry.elements())
        log_weights = np.concatenate([self.log_weights - math.log(len(elements))] * len(elements))
        means = np.concatenate([sign * self.means[..., index] for index, sign in elements])
        covariances = np.concatenate(
            [
                np.outer(sign, sign) * self.covariances[:, index][:, :, index]
                for index, sign in elements
            ]
        )
        return GaussianMixture(log_weights, means, covariances, self.log_normaliser)


def kernel_density(
    particles: np.ndarray,
    log_normaliser: float = 0.0,
    bandwidth: float = 0.1,
    weights: np.ndarray | None = None,
) -> GaussianMixture:
    """Kernel density estimate: kernels with covariance bandwidth² × that of the particles.

    Fold the particles of a network into one cell first (`Symmetry.fold`); otherwise the covariance
    includes the spread between symmetric modes.

    Parameters
    ----------
    particles : ndarray, shape (n, d)
    log_normaliser : float
    bandwidth : float
    weights : ndarray, shape (n,), optional
        Equal by default.

    Returns
    -------
    GaussianMixture

    Raises
    ------
    ValueError
        If `bandwidth` is not positive, or the particles are not finite or constant in a coordinate.
    """
    particles = np.asarray(particles, dtype=float)
    if not (np.isfinite(bandwidth) and bandwidth > 0):
        raise ValueError(f"`bandwidth` must be a finite number above zero; got {bandwidth}.")
    n = len(particles)
    weights = np.full(n, 1.0 / n) if weights is None else np.asarray(weights) / np.sum(weights)
    _require_finite(particles)
    covariance = bandwidth**2 * _floored_covariance(particles, weights)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    return GaussianMixture(log_weights[None], particles[None], covariance[None], log_normaliser)


def expectation_maximisation(
    particles: np.ndarray,
    n_components: int | Sequence[int],
    log_normaliser: float = 0.0,
    seed: int = 0,
    floor: float = 1e-3,
) -> GaussianMixture:
    """Full-covariance mixture by scikit-learn's EM, with the number of components chosen by BIC.

    Parameters
    ----------
    particles : ndarray, shape (n, d)
        Scaled to unit variance internally.
    n_components : int or sequence of int
        Number of components, or several numbers for BIC to choose from.
    log_normaliser : float
    seed : int
    floor : float
        Variance added to every kernel in every scaled coordinate, so that no kernel collapses.

    Returns
    -------
    GaussianMixture

    Raises
    ------
    ValueError
        If the particles are not finite, or `n_components` exceeds the number of distinct ones.
    """
    from sklearn.mixture import GaussianMixture as SklearnMixture

    particles = np.asarray(particles, dtype=float)
    _require_finite(particles)
    sizes = [n_components] if isinstance(n_components, int | np.integer) else list(n_components)
    distinct = len(np.unique(particles, axis=0))
    for size in sizes:
        if size < 1 or size > distinct:
            raise ValueError(
                f"`n_components`={size} must lie between 1 and the {distinct} distinct samples; "
                "lower it or draw more samples."
            )
    scale = particles.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    fits = []
    for size in sizes:
        fit = SklearnMixture(int(size), reg_covar=floor, random_state=seed, max_iter=200)
        fit.fit(particles / scale)
        fits.append((fit.bic(particles / scale) if len(sizes) > 1 else 0.0, fit))
    fit = min(fits, key=lambda pair: pair[0])[1]
    return GaussianMixture(
        np.log(fit.weights_)[:, None],
        (fit.means_ * scale)[:, None, :],
        fit.covariances_ * np.outer(scale, scale),
        log_normaliser,
    )


def _require_finite(particles: np.ndarray) -> None:
    if not np.isfinite(particles).all():
        raise ValueError("The particles must be finite.")


def _floored_covariance(particles: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted covariance, with 1e-6 of each coordinate's variance added to the diagonal."""
    centred = particles - weights @ particles
    covariance = (centred * weights[:, None]).T @ centred
    variance = np.diag(covariance)
    if (variance <= 0).any():
        raise ValueError(
            "The particles are constant in a coordinate; draw more particles or move them further."
        )
    return covariance + 1e-6 * np.diag(variance)
