"""Predictive distributions and their scores: moments, quantiles, log density, PIT, CRPS, coverage.

`NormalMixture` is the prediction of the Gaussian likelihood; `Predictive` is the protocol of all
predictive distributions. The functions score point predictions, intervals and plain draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise
from scipy.special import logsumexp, ndtr, ndtri

# The CRPS of K components costs K² terms per point; 200 components give it to about 1 %.
CRPS_COMPONENTS = 200


class Predictive(Protocol):
    """A predictive distribution of one number at each of several points.

    `shape` is that of the points and of all results; quantiles have one more axis in front.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, points: Any) -> Predictive: ...

    def mean(self) -> np.ndarray: ...

    def std(self) -> np.ndarray: ...

    def quantiles(self, levels: Sequence[float]) -> np.ndarray: ...

    def log_density(self, y: ArrayLike) -> np.ndarray: ...

    def component_log_density(self, y: ArrayLike) -> np.ndarray: ...

    def cdf(self, y: ArrayLike) -> np.ndarray: ...

    def crps(self, y: ArrayLike) -> np.ndarray: ...

    def reweighted(self, weights: ArrayLike) -> Predictive: ...

    def rescaled(self, scale: ArrayLike, shift: ArrayLike = 0.0) -> Predictive: ...


@dataclass(frozen=True, eq=False)
class NormalMixture:
    """Mixtures of normal distributions, Σₖ wₖ N(mₖ, sₖ²), one mixture per point.

    Parameters
    ----------
    weights : array_like, shape (n_components,) or broadcastable to that of `means`
        Non-negative; they sum to one over the components.
    means : array_like, shape (n_components, ...)
        Components first, then the points.
    stds : array_like, broadcastable to the shape of `means`

    Examples
    --------
    >>> mixture = NormalMixture([0.5, 0.5], [[-1.0], [1.0]], 1.0)
    >>> low, high = mixture.quantiles([0.025, 0.975])
    >>> mixture.cdf(high).round(6)
    array([0.975])
    """

    weights: np.ndarray
    means: np.ndarray
    stds: np.ndarray

    def __post_init__(self) -> None:
        means = np.asarray(self.means, dtype=float)
        weights = np.asarray(self.weights, dtype=float)
        if weights.ndim == 1:
            weights = weights.reshape(-1, *(1,) * (means.ndim - 1))
        wrong = len(weights) != len(means) or not (weights >= 0).all()
        if wrong or not np.allclose(weights.sum(axis=0), 1.0, rtol=0.0, atol=1e-6):
            raise ValueError(
                f"`weights` must be {len(means)} non-negative numbers that sum to one, or one such "
                f"set per point; got shape {weights.shape} with sums {weights.sum(axis=0)}."
            )
        object.__setattr__(self, "weights", np.broadcast_to(weights, means.shape))
        object.__setattr__(self, "means", means)
        stds = np.broadcast_to(np.asarray(self.stds, dtype=float), means.shape)
        object.__setattr__(self, "stds", stds)

    @classmethod
    def of_draws(cls, means: ArrayLike, stds: ArrayLike) -> NormalMixture:
        """Equally weighted components: draws of a function, with the noise of each.

        Parameters
        ----------
        means : array_like, shape (n_draws, ...)
        stds : array_like, broadcastable to the shape of `means`
        """
        n = len(np.asarray(means))
        return cls(np.full(n, 1.0 / n), np.asarray(means), np.asarray(stds))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the points."""
        return self.means.shape[1:]

    def __getitem__(self, points: Any) -> NormalMixture:
        """The mixtures at some of the points, as NumPy indexes them."""
        at = (slice(None), *(points if isinstance(points, tuple) else (points,)))
        return NormalMixture(self.weights[at], self.means[at], self.stds[at])

    def mean(self) -> np.ndarray:
        """Mean of each mixture.

        Returns
        -------
        ndarray, shape of the points
        """
        return (self.weights * self.means).sum(axis=0)

    def std(self) -> np.ndarray:
        """Standard deviation of each mixture.

        Returns
        -------
        ndarray, shape of the points
        """
        squares = self.stds**2 + (self.means - self.mean()) ** 2
        return np.sqrt((self.weights * squares).sum(axis=0))

    def quantiles(self, levels: Sequence[float]) -> np.ndarray:
        """Quantiles of each mixture, to about 1e-15 of the width of the search interval.

        Parameters
        ----------
        levels : sequence of float
            Probabilities strictly between 0 and 1.

        Returns
        -------
        ndarray, shape (n_levels, ...)
        """
        for level in levels:
            if not 0 < level < 1:
                raise ValueError(f"`levels` must lie strictly between 0 and 1; got {level}.")
        return np.array([self._quantile(level) for level in levels])

    def _quantile(self, level: float) -> np.ndarray:
        flat = (len(self.means), -1)
        weights, means = self.weights.reshape(flat), self.means.reshape(flat)
        stds = self.stds.reshape(flat) + 1e-300  # a component without spread is a step
        # A quantile of a mixture lies between those of its components, low and high. The search
        # is for u in x = low + u (high − low): one tolerance then suits every point.
        ends = means + ndtri(level) * stds
        low, width = ends.min(axis=0), np.ptp(ends, axis=0)

        def excess(u: np.ndarray, at: np.ndarray) -> np.ndarray:
            z = (low[at] + u * width[at] - means[:, at]) / stds[:, at]
            return (weights[:, at] * ndtr(z)).sum(axis=0) - level

        points = np.arange(means.shape[1])
        bracket = np.zeros(len(points)), np.ones(len(points))
        found = elementwise.find_root(
            excess, bracket, args=(points,), tolerances={"xatol": 1e-15, "xrtol": 0.0}
        )
        # Rounding can give both ends the same sign when the quantile is one of them.
        nearest = np.argmin(np.abs(found.f_bracket), axis=0)
        u = np.where(found.success, found.x, nearest)
        return (low + u * width).reshape(self.shape)

    def component_log_density(self, y: ArrayLike) -> np.ndarray:
        """Log density log N(y | mₖ, sₖ²) under each component.

        Parameters
        ----------
        y : array_like, broadcastable to the points

        Returns
        -------
        ndarray, shape (n_components, ...)
        """
        z = (np.asarray(y, dtype=float) - self.means) / self.stds
        return -0.5 * z**2 - np.log(self.stds) - 0.5 * np.log(2 * np.pi)

    def log_density(self, y: ArrayLike) -> np.ndarray:
        """Log density log Σₖ wₖ N(y | mₖ, sₖ²), without underflow.

        Parameters
        ----------
        y : array_like, broadcastable to the points

        Returns
        -------
        ndarray, shape of the points
        """
        return logsumexp(self.component_log_density(y), b=self.weights, axis=0)

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """Probability of a value up to y; at observations, the PIT (uniform when calibrated).

        Parameters
        ----------
        y : array_like, broadcastable to the points

        Returns
        -------
        ndarray, shape of the points
        """
        z = (np.asarray(y, dtype=float) - self.means) / self.stds
        return (self.weights * ndtr(z)).sum(axis=0)

    def crps(self, y: ArrayLike, max_components: int = CRPS_COMPONENTS) -> np.ndarray:
        """Continuous ranked probability score E|X − y| − ½ E|X − X'|, in closed form.

        Grimit et al. (2006). Lower is better; in the units of y.

        Parameters
        ----------
        y : array_like, broadcastable to the points
        max_components : int
            Larger mixtures are reduced to this many components, at even steps of the weights.

        Returns
        -------
        ndarray, shape of the points
        """
        few = self._thinned(max_components)
        y = np.asarray(y, dtype=float)
        first = (few.weights * _absolute_mean(y - few.means, few.stds)).sum(axis=0)
        second = np.zeros_like(first)
        for w, m, s in zip(few.weights, few.means, few.stds):  # one by one, to save memory
            apart = _absolute_mean(m - few.means, np.hypot(s, few.stds))
            second += w * (few.weights * apart).sum(axis=0)
        return first - 0.5 * second

    def _thinned(self, n: int) -> NormalMixture:
        """At most n equally weighted components, taken at even steps of the weights."""
        if len(self.means) <= n:
            return self
        steps = (np.arange(n) + 0.5) / n
        cumulated = np.cumsum(self.weights, axis=0).reshape(len(self.means), -1)
        rows = np.stack([np.searchsorted(c / c[-1], steps) for c in cumulated.T], axis=1)
        rows = rows.reshape(n, *self.shape)
        means, stds = (np.take_along_axis(a, rows, axis=0) for a in (self.means, self.stds))
        return NormalMixture.of_draws(means, stds)

    def reweighted(self, weights: ArrayLike) -> NormalMixture:
        """The same components with other weights.

        Parameters
        ----------
        weights : array_like, broadcastable to the shape of the means
        """
        return NormalMixture(np.asarray(weights), self.means, self.stds)

    def rescaled(self, scale: ArrayLike, shift: ArrayLike = 0.0) -> NormalMixture:
        """Distribution of scale · X + shift.

        Parameters
        ----------
        scale, shift : array_like, broadcastable to the points
        """
        scale, shift = np.asarray(scale, dtype=float), np.asarray(shift, dtype=float)
        return NormalMixture(self.weights, self.means * scale + shift, self.stds * np.abs(scale))


def _absolute_mean(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """E|Z| for Z ~ N(mean, std²)."""
    z = mean / std
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return mean * (2 * ndtr(z) - 1) + 2 * std * density


# ------------------------------------------------------- points, intervals, equally weighted draws
def rmse(y: ArrayLike, mean: ArrayLike) -> float:
    """Root mean squared error of a point prediction.

    Parameters
    ----------
    y, mean : array_like, shape (m,)

    Returns
    -------
    float

    Examples
    --------
    >>> rmse([1.0, 2.0], [1.0, 4.0]) == 2.0**0.5
    True
    """
    return float(np.sqrt(np.mean((np.asarray(y) - np.asarray(mean)) ** 2)))


def nlpd(y: ArrayLike, predictive: Predictive) -> float:
    """Mean negative log predictive density.

    Parameters
    ----------
    y : array_like, broadcastable to the points of `predictive`
    predictive : Predictive
        For draws of a function and normal noise, `NormalMixture.of_draws(draws, noise_std)`: the
        average over the noise is then exact.

    Returns
    -------
    float

    Examples
    --------
    >>> round(nlpd([0.0], NormalMixture([1.0], [[0.0]], 1.0)), 4)
    0.9189
    """
    return float(-np.mean(predictive.log_density(y)))


def crps_draws(y: ArrayLike, draws: ArrayLike) -> float:
    """Mean CRPS of equally weighted draws: E|X − y| − ½ E|X − X'|, in O(n log n).

    Parameters
    ----------
    y : array_like, shape (m,)
    draws : array_like, shape (n_draws, m)

    Returns
    -------
    float

    Examples
    --------
    >>> crps_draws([0.0], [[-1.0], [1.0]])
    0.0
    """
    draws = np.sort(np.asarray(draws), axis=0)
    n = len(draws)
    # Σᵢⱼ |xᵢ − xⱼ| = 2 Σᵢ (2i − n − 1) x₍ᵢ₎; the divisor n(n−1) makes the estimate unbiased.
    rank = (2.0 * np.arange(1, n + 1) - n - 1)[:, None]
    spread = (rank * draws).sum(axis=0) / (n * (n - 1))
    return float(np.mean(np.abs(draws - np.asarray(y)).mean(axis=0) - spread))


def pit_draws(y: ArrayLike, draws: ArrayLike) -> np.ndarray:
    """Fraction of draws at or below each observation: the PIT.

    Parameters
    ----------
    y : array_like, shape (m,)
    draws : array_like, shape (n_draws, m)

    Returns
    -------
    ndarray, shape (m,)

    Examples
    --------
    >>> pit_draws([0.5], [[0.0], [1.0]])
    array([0.5])
    """
    return (np.asarray(draws) <= np.asarray(y)).mean(axis=0)


def coverage(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """Fraction of observations inside their intervals.

    Parameters
    ----------
    y, lower, upper : array_like, shape (m,)

    Returns
    -------
    float

    Examples
    --------
    >>> coverage([0.0, 2.0], [-1.0, -1.0], [1.0, 1.0])
    0.5
    """
    y = np.asarray(y)
    return float(np.mean((y >= np.asarray(lower)) & (y <= np.asarray(upper))))


def interval_width(lower: ArrayLike, upper: ArrayLike) -> float:
    """Mean width of intervals.

    Parameters
    ----------
    lower, upper : array_like, shape (m,)

    Returns
    -------
    float

    Examples
    --------
    >>> interval_width([0.0, 1.0], [1.0, 4.0])
    2.0
    """
    return float(np.mean(np.asarray(upper) - np.asarray(lower)))
