"""Scores of predictive distributions: log density, CRPS, PIT, coverage, quantiles."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

# Predictive distributions come as equally weighted draws (n_draws, m) or as Gaussian
# mixtures with means and stds of shape (n_components, m) and optional weights, (n_components,) or,
# where they differ from point to point, (n_components, m).


def rmse(y: np.ndarray, mean: np.ndarray) -> float:
    """Root mean squared error of a point prediction."""
    return float(np.sqrt(np.mean((np.asarray(y) - np.asarray(mean)) ** 2)))


def mixture_log_density(y, means, stds, weights=None) -> np.ndarray:
    """log Σₖ wₖ N(y | mₖ, sₖ²) for each of the m points."""
    means, stds = np.atleast_2d(means), np.atleast_2d(stds)
    log_weights = _log_weights(weights, len(means))
    z = (y - means) / stds
    log_densities = -0.5 * z**2 - np.log(np.sqrt(2 * np.pi) * stds)
    return logsumexp(log_weights + log_densities, axis=0)


def nlpd(y, means, stds, weights=None) -> float:
    """Mean negative log predictive density under a Gaussian mixture.

    With draws of a network and Gaussian noise this is the exact average over the draws:
    means = push-forward draws, stds = noise.
    """
    return float(-np.mean(mixture_log_density(y, means, stds, weights)))


def crps_draws(y: np.ndarray, draws: np.ndarray) -> float:
    """Mean CRPS of equally weighted draws: E|X − y| − ½ E|X − X'|, in O(n log n)."""
    draws = np.sort(np.asarray(draws), axis=0)
    n = len(draws)
    # Σᵢⱼ |xᵢ − xⱼ| = 2 Σᵢ (2i − n − 1) x₍ᵢ₎; the divisor n(n−1) makes the estimate unbiased.
    rank = (2.0 * np.arange(1, n + 1) - n - 1)[:, None]
    spread = (rank * draws).sum(axis=0) / (n * (n - 1))
    return float(np.mean(np.abs(draws - y).mean(axis=0) - spread))


def crps_mixture(y, means, stds, weights=None) -> float:
    """Mean CRPS of a Gaussian mixture in closed form (Grimit et al. 2006)."""
    means, stds = np.atleast_2d(means), np.atleast_2d(stds)
    w = np.exp(_log_weights(weights, len(means)))
    first = (w * _absolute_mean(y - means, stds)).sum(axis=0)
    second = np.zeros(means.shape[1])
    for k in range(len(means)):  # one row at a time: memory stays (K, m)
        spread = np.sqrt(stds[k] ** 2 + stds**2)
        second += w[k] * (w * _absolute_mean(means[k] - means, spread)).sum(axis=0)
    return float(np.mean(first - 0.5 * second))


def _absolute_mean(mean, std):
    """E|Z| for Z ~ N(mean, std²)."""
    z = mean / std
    return mean * (2 * ndtr(z) - 1) + 2 * std * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


def coverage(y: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Fraction of observations inside their intervals."""
    y = np.asarray(y)
    return float(np.mean((y >= lower) & (y <= upper)))


def interval_width(lower: np.ndarray, upper: np.ndarray) -> float:
    """Mean width of intervals."""
    return float(np.mean(np.asarray(upper) - np.asarray(lower)))


def pit_mixture(y, means, stds, weights=None) -> np.ndarray:
    """Probability integral transform F(y) under a Gaussian mixture; uniform when calibrated."""
    means, stds = np.atleast_2d(means), np.atleast_2d(stds)
    w = np.exp(_log_weights(weights, len(means)))
    return (w * ndtr((y - means) / stds)).sum(axis=0)


def pit_draws(y: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Fraction of draws at or below each observation."""
    return (np.asarray(draws) <= np.asarray(y)).mean(axis=0)


def mixture_quantile(q: float, means, stds, weights=None) -> np.ndarray:
    """Quantile of a Gaussian mixture at every point, by bisection to 1e-12 of its width."""
    means, stds = np.atleast_2d(means), np.atleast_2d(stds)
    if not 0 < q < 1:
        raise ValueError(f"`q` must lie strictly between 0 and 1; got {q}.")
    z = ndtri(q)
    low, high = (means + z * stds).min(axis=0), (means + z * stds).max(axis=0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = pit_mixture(middle, means, stds, weights) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def _log_weights(weights, n: int) -> np.ndarray:
    """Normalised log weights, shape (n, 1), or (n, m) where they differ from point to point."""
    if weights is None:
        return np.full((n, 1), -np.log(n))
    weights = np.asarray(weights, dtype=float)
    if weights.ndim == 1:
        weights = weights[:, None]
    if len(weights) != n or (weights < 0).any() or (weights.sum(axis=0) <= 0).any():
        raise ValueError(f"`weights` must be {n} non-negative numbers, not all zero.")
    with np.errstate(divide="ignore"):
        return np.log(weights / weights.sum(axis=0))
