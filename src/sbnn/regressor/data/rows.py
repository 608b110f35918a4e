"""Rows of a table in a standard form: distinct, sorted, each with its number of repetitions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Rows(NamedTuple):
    """Distinct rows in lexicographic order.

    A fit sees the same numbers in whatever order the rows come, and whether a row is repeated or
    has a weight: rounding, which accepted and rejected steps would amplify, is the same too.
    """

    x: np.ndarray  # (n, n_in)
    y: np.ndarray  # (n, n_out)
    noise_std: np.ndarray | None  # (n, n_out), known standard deviations
    weights: np.ndarray | None  # (n,), how many times each row counts; None if once

    @classmethod
    def of(
        cls,
        x: np.ndarray,
        y: np.ndarray,
        noise_std: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> Rows:
        """The distinct rows of a table; those of weight zero are left out."""
        columns = [x, y] if noise_std is None else [x, y, noise_std]
        table = np.hstack(columns) + 0.0  # −0 becomes 0
        if weights is not None:
            table, weights = table[weights > 0], weights[weights > 0]
        distinct, place = np.unique(table, axis=0, return_inverse=True)
        counts = np.bincount(place.ravel(), weights, minlength=len(distinct)).astype(float)
        first, second = x.shape[1], x.shape[1] + y.shape[1]
        return cls(
            distinct[:, :first],
            distinct[:, first:second],
            None if noise_std is None else distinct[:, second:],
            None if (counts == 1.0).all() else counts,
        )

    @property
    def n_rows(self) -> float:
        """Number of rows, repetitions included."""
        return float(len(self.x)) if self.weights is None else float(self.weights.sum())

    def repeated(self) -> Rows:
        """The rows with repetitions written out; raises ValueError unless weights are whole."""
        if self.weights is None:
            return self
        counts = self.weights.astype(int)
        if (counts != self.weights).any():
            raise ValueError(
                "Sampling methods need whole numbers in `sample_weight`; use whole numbers or "
                "method='laplace_nsbl'."
            )
        again = lambda a: None if a is None else np.repeat(a, counts, axis=0)
        x, y = np.repeat(self.x, counts, axis=0), np.repeat(self.y, counts, axis=0)
        return Rows(x, y, again(self.noise_std), None)


# A weight says how often a row was observed. Beyond, the rounding error of sums over all rows
# exceeds the differences of log evidence that pruning relies on.
MAX_WEIGHT = 1e9
# Rows that count less than this add nothing to a fit, and squares of much smaller weights vanish.
MIN_WEIGHT = 1e-9


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights of the rows, shape (n,), or None if each counts once.

    Parameters
    ----------
    sample_weight : array_like, number or None
    n_rows : int

    Returns
    -------
    ndarray or None

    Raises
    ------
    ValueError
        If a weight is negative, above `MAX_WEIGHT`, positive but below `MIN_WEIGHT`, or not a
        number, if their number is wrong, or if fewer than two rows have a positive weight.
    """
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("`sample_weight` must hold numbers, one per row.") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"`sample_weight` must hold one number per row, {n_rows} in all; got shape "
            f"{weights.shape}."
        )
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"`sample_weight` must be finite and not negative; row {row} (counted from 0) has "
            f"{weights[row]:g}."
        )
    if weights.max() > MAX_WEIGHT:
        row = int(np.argmax(weights))
        raise ValueError(
            f"`sample_weight` says how often a row was observed, at most {MAX_WEIGHT:g} times; row "
            f"{row} (counted from 0) has {weights[row]:g}. If the weights are inverse variances, "
            "give standard deviations as `noise_std` instead."
        )
    small = (weights > 0) & (weights < MIN_WEIGHT)
    if small.any():
        row = int(np.argmax(small))
        raise ValueError(
            f"`sample_weight` must be zero or at least {MIN_WEIGHT:g}; row {row} (counted from 0) "
            f"has {weights[row]:g}. Multiply all weights by a constant."
        )
    if (weights > 0).sum() < 2:
        raise ValueError(
            "`sample_weight` must be above zero for at least two rows; it is zero for "
            f"{int((weights == 0).sum())} of {n_rows} weights."
        )
    return weights


def some_rows(rng: np.random.Generator, n: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Positions of up to 500 of n rows; with `weights`, completed copies of a row count as one."""
    if weights is None:
        return rng.permutation(n)[:500]
    return np.argsort(rng.exponential(size=n) / weights, kind="stable")[:500]


# Training inputs of longer tables are not kept with a model.
MAX_KEPT = 5000


def training(x_t: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Standardised training inputs (n_encoded, n), and how many times each counts, as last row."""
    n = x_t.shape[1]
    counts = np.ones(n) if weights is None else weights
    return np.vstack([x_t, counts])[:, : n if n <= MAX_KEPT else 0]
