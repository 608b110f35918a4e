"""Standardisation of tables, the same for any units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Standardised training data are rounded to this grid (2.4e-7 of a standard deviation). Another
# choice of units changes standardised values in the last bits only, and an iteration of accepted
# and refused steps would amplify these; on the grid it sees the same numbers.
GRID = 2.0**-22


class Scaling(NamedTuple):
    """Centres and scales of inputs and outputs."""

    x_centre: np.ndarray
    x_scale: np.ndarray
    y_centre: np.ndarray
    y_scale: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> Scaling:
        return cls(*_centre_and_scale(x), *_centre_and_scale(y))

    def training(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, n_in), (n, n_out) → (n_in, n), (n_out, n), standardised and on the grid."""
        outputs = ((y - self.y_centre) / self.y_scale).T
        return tuple(
            np.ascontiguousarray(np.round(v / GRID) * GRID) for v in (self.inputs(x), outputs)
        )  # type: ignore[return-value]

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """(m, n_in) → standardised (n_in, m)."""
        return np.ascontiguousarray(((x - self.x_centre) / self.x_scale).T)

    def outputs(self, values: np.ndarray, shift: bool = True) -> np.ndarray:
        """Standardised (n_out, m) → (m, n_out) in original units; `shift` adds the centre."""
        return values.T * self.y_scale + (self.y_centre if shift else 0.0)


def _centre_and_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation per column; a constant column keeps its scale.

    Worked out relative to the largest entry, so that values near the limits of float64 do not
    overflow; a spread of less than 1e-12 of it is rounding error.
    """
    largest = np.abs(values).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    relative = values / unit
    centre, spread = relative.mean(axis=0), relative.std(axis=0)
    scale = np.where(spread > 1e-12, spread, 1.0)
    return centre * unit, scale * unit
