"""Log ratios of normalising constants of neighbouring temperatures, from draws of both.

Let Δ = log p̃ − log q. Between temperatures b < b' of the path q^(1−b) p̃^b,

    forward   log mean exp(+δ Δ) over draws at b,            δ = b' − b
    backward  −log mean exp(−δ Δ) over draws at b'
    bridge    the c that solves Σ_b σ(δΔ − c) = Σ_b' σ(c − δΔ) (Bennett 1976), σ the logistic.

The first two use disjoint sets of draws, err in opposite directions if draws are too few or have
not mixed, and so check each other. The bridge uses both sets and has the smallest variance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp


class Ratios(NamedTuple):
    """Log ratios of normalising constants by the three estimators, for all draws or per group."""

    forward: np.ndarray
    backward: np.ndarray
    bridge: np.ndarray

    def plus(self, other: Ratios) -> Ratios:
        """Ratios of two steps in a row."""
        return Ratios(*(a + b for a, b in zip(self, other)))


def log_mean_exp(values: np.ndarray) -> float:
    """log mean exp of an array."""
    return float(logsumexp(values) - np.log(len(values)))


def bennett(before: np.ndarray, after: np.ndarray) -> float:
    """The bridge estimate from δΔ at draws of the lower and of the higher temperature.

    Parameters
    ----------
    before, after : ndarray, shape (n,)
        Equal in length.

    Returns
    -------
    float

    Examples
    --------
    N(0, 1) and exp(1 − ½(x − 1)²): log w = ½ + x, and the log ratio is 1.

    >>> x = np.random.default_rng(0).normal(size=4000)
    >>> abs(bennett(0.5 + x, 1.5 + x) - 1.0) < 0.1
    True
    """

    def excess(c: float) -> float:
        return float(expit(before - c).sum() - expit(c - after).sum())

    values = np.concatenate([before, after])
    low, high = values.min() - 1.0, values.max() + 1.0
    while excess(low) < 0:
        low -= 10.0
    while excess(high) > 0:
        high += 10.0
    return float(brentq(excess, low, high, xtol=1e-10))


def ratios(before: np.ndarray, after: np.ndarray, delta: float) -> Ratios:
    """The three estimates of one step, from Δ at draws of both temperatures."""
    low, high = delta * before, delta * after
    return Ratios(
        np.array(log_mean_exp(low)),
        np.array(-log_mean_exp(-high)),
        np.array(bennett(low, high)),
    )


def ratios_by_group(before: np.ndarray, after: np.ndarray, delta: float, n_groups: int) -> Ratios:
    """The three estimates of one step for each group of draws, shape (n_groups,)."""
    size = len(before) // n_groups
    parts = [
        ratios(before[i * size : (i + 1) * size], after[i * size : (i + 1) * size], delta)
        for i in range(n_groups)
    ]
    return Ratios(*(np.array(column) for column in zip(*parts)))
