"""Rows of a linear model, compressed to the triangular factor of their Gram matrix.

R with RᵀR = Σ ω [φ, 1, y]ᵀ[φ, 1, y] holds all that a Gaussian likelihood needs of any number of
rows. It is computed by QR decompositions of blocks, not from the Gram matrix itself, which would
square the condition number: residuals that are 10⁸ times smaller than y would drown in rounding.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import linalg

LOG_2PI = math.log(2.0 * math.pi)
_LWORK = 64  # columns that LAPACK's QR handles at a time


class Factor(NamedTuple):
    """Triangular factor of weighted rows [Φ, Y].

    Attributes
    ----------
    triangle : ndarray, shape (m, m)
        R, for m features and targets in all.
    n_targets : int
    n_rows : float
        Number of rows, each as often as it counts.
    log_precision : float
        ½ Σ log ωᵢ/cᵢ over rows that count cᵢ times, each with the known precision ωᵢ/cᵢ.
    """

    triangle: np.ndarray
    n_targets: int
    n_rows: float
    log_precision: float

    @classmethod
    def empty(cls, n_features: int, n_targets: int) -> Factor:
        """The factor of no rows."""
        size = n_features + n_targets
        return cls(np.zeros((size, size)), n_targets, 0.0, 0.0)

    def added(
        self, rows: np.ndarray, counts: np.ndarray | None, precision: np.ndarray | None
    ) -> Factor:
        """The factor with more rows.

        Parameters
        ----------
        rows : ndarray, shape (n, m)
            Features and targets.
        counts : ndarray, shape (n,), or None
            How many times every row counts; once if None.
        precision : ndarray, shape (n,), or None
            Known precision of every row, up to a common factor; one if None.

        Returns
        -------
        Factor
        """
        weights = np.ones(1)
        n_rows, log_precision = float(len(rows)), 0.0
        if counts is not None:
            weights, n_rows = weights * counts, float(counts.sum())
        if precision is not None:
            weights = weights * precision
            each = 1.0 if counts is None else counts
            log_precision = 0.5 * float((each * np.log(precision)).sum())
        size = len(self.triangle)
        stacked = np.empty((size + len(rows), size), order="F")
        stacked[:size] = self.triangle
        np.multiply(rows, np.sqrt(weights)[:, None], out=stacked[size:])
        return self._replace(
            triangle=triangular(stacked),
            n_rows=self.n_rows + n_rows,
            log_precision=self.log_precision + log_precision,
        )

    def merged(self, other: Factor) -> Factor:
        """The factor of the rows of both."""
        stacked = np.asfortranarray(np.vstack([self.triangle, other.triangle]))
        return self._replace(
            triangle=triangular(stacked),
            n_rows=self.n_rows + other.n_rows,
            log_precision=self.log_precision + other.log_precision,
        )

    def models(self) -> list[Compressed]:
        """The linear model of every target."""
        n_features = len(self.triangle) - self.n_targets
        features = np.ascontiguousarray(self.triangle[:, :n_features])
        return [
            Compressed(features, target.copy(), self.n_rows, self.log_precision)
            for target in self.triangle[:, n_features:].T
        ]


def triangular(stacked: np.ndarray) -> np.ndarray:
    """R of a QR decomposition, shape (m, m); overwrites `stacked`, (≥ m, m) in Fortran order."""
    size = stacked.shape[1]
    if not stacked.size:
        return np.zeros((size, size))
    found, _, _, info = linalg.lapack.dgeqrf(stacked, lwork=_LWORK * size, overwrite_a=1)
    if info:
        raise ValueError(f"LAPACK's QR decomposition failed with code {info}.")
    return np.triu(found[:size])


class Compressed(NamedTuple):
    """y = Φw + noise of precision β, with any number of rows replaced by at most m others.

    Attributes
    ----------
    features : ndarray, shape (m, d)
    target : ndarray, shape (m,)
    n_rows, log_precision : float
        See `Factor`.
    """

    features: np.ndarray
    target: np.ndarray
    n_rows: float
    log_precision: float

    @property
    def constant(self) -> float:
        """Terms of the log evidence that depend neither on α nor on β."""
        return self.log_precision - 0.5 * self.n_rows * LOG_2PI

    def scaled(self) -> tuple[Compressed, np.ndarray, float]:
        """Features and target of root mean square one, and their former units.

        Weights w of the original model are w' · unit_of_y / unit_of_feature, and the evidence
        is smaller by a factor unit_of_y per row. Columns of zeros keep their unit.
        """
        norms = np.append(np.linalg.norm(self.features, axis=0), np.linalg.norm(self.target))
        units = norms / math.sqrt(max(self.n_rows, 1.0))
        units[units <= 0] = 1.0
        return (
            self._replace(features=self.features / units[:-1], target=self.target / units[-1]),
            units[:-1],
            float(units[-1]),
        )
