"""Standardisation of tables, independent of units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Standardised training data are rounded to this grid (2.4e-7 of a standard deviation). Another
# choice of units changes standardised values in the last bits only, and an iteration of accepted
# and rejected steps would amplify these; on the grid it sees the same numbers.
GRID = 2.0**-22
# Ratio of the standard deviation to that of the middle half of the values from which the latter is
# used; about 1 for normal and 2 for strongly skewed (log-normal) values.
OUTLIERS = 3.0


class Scaling(NamedTuple):
    """Centres and scales of inputs and outputs."""

    x_centre: np.ndarray
    x_scale: np.ndarray
    y_centre: np.ndarray
    y_scale: np.ndarray

    @property
    def n_inputs(self) -> int:
        return len(self.x_centre)

    @property
    def n_outputs(self) -> int:
        return len(self.y_centre)

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> Scaling:
        """The scaling of x (n, n_in) and y (n, n_out), whose rows count `weights` times."""
        return cls(*_centre_and_scale(x, weights), *_robust(y, weights))

    def training(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, n_in), (n, n_out) → (n_in, n), (n_out, n), standardised and on the grid."""
        outputs = ((y - self.y_centre) / self.y_scale).T
        return _on_grid(self.inputs(x)), _on_grid(outputs)

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """(m, n_in) → standardised (n_in, m)."""
        return np.ascontiguousarray(((x - self.x_centre) / self.x_scale).T)

    def outputs(self, values: np.ndarray, shift: bool = True) -> np.ndarray:
        """Standardised (m, n_out) → (m, n_out) in original units; `shift` adds the centre."""
        return values * self.y_scale + (self.y_centre if shift else 0.0)


def _on_grid(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.round(values / GRID) * GRID)


def _robust(values: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """As `_centre_and_scale`, but by median and quartiles for a column with outliers.

    A few values far from all others would otherwise set the scale on which the rest is learned.
    """
    centre, scale = _centre_and_scale(values, weights)
    low, middle, high = _quantiles(values, weights, (0.25, 0.5, 0.75))
    typical = (high - low) / 1.349  # the standard deviation of normal values
    far = (typical > 0) & (scale > OUTLIERS * typical)
    return np.where(far, middle, centre), np.where(far, typical, scale)


def _quantiles(
    values: np.ndarray, weights: np.ndarray | None, levels: tuple[float, ...]
) -> list[np.ndarray]:
    """Quantiles of each column, of rows that count `weights` times."""
    order = np.argsort(values, axis=0, kind="stable")
    share = np.ones(len(values)) if weights is None else weights
    below = np.cumsum(share[order], axis=0) / share.sum()
    ranked = np.take_along_axis(values, order, axis=0)
    columns = np.arange(values.shape[1])
    return [ranked[(below < level - 1e-12).sum(axis=0), columns] for level in levels]


def _centre_and_scale(
    values: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation per column; a constant column keeps its scale.

    Computed relative to the largest entry, so that values near the limits of float64 do not
    overflow; a spread of less than 1e-12 of it is rounding error.
    """
    largest = np.abs(values).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    relative = values / unit
    centre = np.average(relative, axis=0, weights=weights)
    spread = np.sqrt(np.average((relative - centre) ** 2, axis=0, weights=weights))
    scale = np.where(spread > 1e-12, spread, 1.0)
    return centre * unit, scale * unit
