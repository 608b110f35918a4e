"""Estimates from posterior particles: derivatives of the evidence and costs of removal."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from sbnn.priors import Hyperprior


def particle_derivatives(
    phi: np.ndarray, log_alpha: np.ndarray, hyperprior: Hyperprior
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradient, its standard error, and Hessian of the exact objective from posterior particles.

    ∇ᵢ = ½ − ½ αᵢ E[φᵢ²] + s − r αᵢ,
    Hᵢⱼ = ¼ αᵢαⱼ Cov(φᵢ², φⱼ²) − δᵢⱼ (½ αᵢ E[φᵢ²] + r αᵢ),  φ of shape (N, n_alpha).
    """
    alpha = np.exp(log_alpha)
    half_square = 0.5 * alpha * phi**2
    mean = half_square.mean(axis=0)
    centred = half_square - mean
    gradient = 0.5 - mean + hyperprior.shape - hyperprior.rate * alpha
    hessian = centred.T @ centred / len(phi) - np.diag(mean + hyperprior.rate * alpha)
    error = half_square.std(axis=0) / np.sqrt(len(phi))
    return gradient, error, hessian


def savage_dickey(phi: np.ndarray, log_alpha: np.ndarray) -> np.ndarray:
    """log p(D|αᵢ → ∞) − log p(D|α) for each i: posterior over prior density of φᵢ at zero.

    The posterior density is a Gaussian KDE over the particles and their mirror images.
    """
    n = len(phi)
    width = 0.9 * np.minimum(phi.std(axis=0), np.abs(phi).mean(axis=0) * 1.25) * n**-0.2
    width = np.maximum(width, 1e-300)
    log_posterior = logsumexp(-0.5 * (phi / width) ** 2, axis=0) - np.log(n) - np.log(width)
    return log_posterior - 0.5 * log_alpha
