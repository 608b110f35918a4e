"""Predictions of rows with unknown inputs: mixtures over several ways to fill the gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sbnn.scores import Predictive

CRPS_LEVELS = 99


@dataclass(frozen=True, eq=False)
class Completed:
    """A mixture with equal weights over the completed copies of each row.

    p(y | known inputs) = (1/M) Σⱼ p(y | known inputs, fill j). Implements
    `sbnn.scores.Predictive`.

    Attributes
    ----------
    parts : Predictive
        Points are the completed copies, shape (n_copies, …).
    starts : ndarray of int, shape (n_rows,)
        The first copy of each row; copies of a row are next to each other.
    """

    parts: Predictive
    starts: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Number of copies of each row, shape (n_rows,)."""
        return np.diff(self.starts, append=self.parts.shape[0])

    @property
    def owner(self) -> np.ndarray:
        """The row of each copy, shape (n_copies,)."""
        return np.repeat(np.arange(len(self.starts)), self.counts)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the points."""
        return (len(self.starts), *self.parts.shape[1:])

    def __getitem__(self, points: Any) -> Completed:
        """Some of the rows, or (..., k) for one of the outputs."""
        if isinstance(points, tuple):
            rows, *rest = points
            out = self if rows is Ellipsis else self[rows]
            inner = (Ellipsis, *rest) if rows is Ellipsis else (slice(None), *rest)
            return replace(out, parts=out.parts[inner])
        rows = np.atleast_1d(np.arange(len(self.starts))[points])
        counts = self.counts[rows]
        copies = np.concatenate([np.arange(s, s + c) for s, c in zip(self.starts[rows], counts)])
        return Completed(self.parts[copies], np.cumsum(counts) - counts)

    def average(self, values: np.ndarray) -> np.ndarray:
        """Mean over the copies of each row, (n_copies, …) → (n_rows, …)."""
        sums = np.add.reduceat(values, self.starts, axis=0)
        return sums / self.counts.reshape(-1, *(1,) * (values.ndim - 1))

    def mean(self) -> np.ndarray:
        """Mean of each row."""
        return self.average(self.parts.mean())

    def std(self) -> np.ndarray:
        """Standard deviation of each row: within the copies, and between them."""
        mean = self.parts.mean()
        centre = self.average(mean)
        return np.sqrt(self.average(self.parts.std() ** 2 + (mean - centre[self.owner]) ** 2))

    def _copies(self, y: ArrayLike) -> np.ndarray:
        return np.broadcast_to(np.asarray(y, dtype=float), self.shape)[self.owner]

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """P(Y ≤ y)."""
        return self.average(self.parts.cdf(self._copies(y)))

    def log_density(self, y: ArrayLike) -> np.ndarray:
        """Log density at y."""
        return self._log_average(self.parts.log_density(self._copies(y)))

    def component_log_density(self, y: ArrayLike) -> np.ndarray:
        """Log density at y under each component, (n_components, …)."""
        inside = self.parts.component_log_density(self._copies(y))
        return np.stack([self._log_average(of_component) for of_component in inside])

    def _log_average(self, values: np.ndarray) -> np.ndarray:
        counts = self.counts.reshape(-1, *(1,) * (values.ndim - 1))
        return np.logaddexp.reduceat(values, self.starts, axis=0) - np.log(counts)

    def quantiles(self, levels: Sequence[float]) -> np.ndarray:
        """Quantiles, shape (n_levels, …), by bisection between those of the copies."""
        inside = self.parts.quantiles(levels)  # (n_levels, n_copies, …)
        out = np.stack([np.asarray(values)[self.starts] for values in inside])
        several = self.counts > 1
        if not several.any():
            return out
        some = self[several]
        rows = np.isin(self.owner, np.flatnonzero(several))
        for k, level in enumerate(levels):
            low = np.minimum.reduceat(inside[k][rows], some.starts, axis=0)
            high = np.maximum.reduceat(inside[k][rows], some.starts, axis=0)
            for _ in range(45):  # 2⁻⁴⁵ of the distance between the copies
                middle = 0.5 * (low + high)
                below = some.cdf(middle) < level
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            out[k][several] = 0.5 * (low + high)
        return out

    def crps(self, y: ArrayLike) -> np.ndarray:
        """Continuous ranked probability score ∫ (F(z) − 1{z ≥ y})² dz, by the trapezoidal rule."""
        y = np.broadcast_to(np.asarray(y, dtype=float), self.shape)
        out = np.asarray(self.parts.crps(self._copies(y)))[self.starts].copy()
        several = self.counts > 1
        if not several.any():
            return out
        some, y = self[several], y[several]
        centre, spread = some.mean(), some.std()
        low = np.minimum(centre - 8 * spread, y)
        high = np.maximum(centre + 8 * spread, y)
        total = np.zeros_like(y)
        for start, end in ((low, y), (y, high)):
            step = (end - start) / CRPS_LEVELS
            for j in range(CRPS_LEVELS + 1):
                z = start + j * step
                weight = step * (0.5 if j in (0, CRPS_LEVELS) else 1.0)
                inside = some.cdf(z) - (start is y)
                total += weight * inside**2
        out[several] = total
        return out

    def reweighted(self, weights: ArrayLike) -> Completed:
        """The same components with other weights, broadcastable to (n_components, n_rows, …)."""
        weights = np.asarray(weights)
        return replace(self, parts=self.parts.reweighted(weights[:, self.owner]))

    def rescaled(self, scale: ArrayLike, shift: ArrayLike = 0.0) -> Completed:
        """The distribution of scale · y + shift; both broadcast to the last axes."""
        return replace(self, parts=self.parts.rescaled(scale, shift))
