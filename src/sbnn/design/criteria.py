"""Choice of measurements from joint draws of the function: less variance, or a better optimum."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Chosen(NamedTuple):
    """Candidates in the order in which they were chosen, and what each adds to those before."""

    rows: np.ndarray  # (n,), int
    gains: np.ndarray  # (n,)


def reduce_variance(draws: np.ndarray, reference: np.ndarray, noise: np.ndarray, n: int) -> Chosen:
    """Candidates that reduce the average variance at the reference points most, one by one.

    A measurement y = f(x) + ε at a candidate reduces the variance of f(r) by
    cov(f(r), f(x))² / (var f(x) + var ε). The covariances are those of the draws, so that they
    include what the optima of a mixture disagree about. After each choice, the covariance is
    conditioned on the measurement, which makes its neighbours less attractive.

    Parameters
    ----------
    draws : ndarray, shape (n_draws, m, n_targets)
        Joint draws of the function at the candidates; a measurement is of all targets.
    reference : ndarray, shape (n_draws, r, n_targets)
        The same draws at the points where predictions matter.
    noise : ndarray, shape (m, n_targets)
        Variance of the noise at the candidates.
    n : int
        Number of choices, at most m.

    Returns
    -------
    Chosen
        Gains are shares of the present average variance; they add up.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.random.default_rng(0).normal(size=(500, 1)) * np.linspace(-1, 1, 5)
    >>> found = reduce_variance(line[..., None], line[..., None], np.ones((5, 1)), 2)
    >>> sorted(found.rows.tolist())  # the slope of a line is best seen at its ends
    [0, 4]
    """
    n_draws, m, n_targets = draws.shape
    everything = np.concatenate([draws, reference], axis=1)
    # Columns with XᵀX = covariance.
    x = (everything - everything.mean(axis=0)) / np.sqrt(n_draws - 1)
    x = x.reshape(n_draws, -1)
    total = max(float((x[:, m * n_targets :] ** 2).sum()), 1e-300)
    rows: list[int] = []
    gains = []
    for _ in range(n):
        gain = _variance_gains(x, m, noise)
        gain[rows] = -np.inf
        best = int(np.argmax(gain))
        rows.append(best)
        gains.append(gain[best] / total)
        for target in range(n_targets):
            _condition(x, best * n_targets + target, noise[best, target])
    return Chosen(np.array(rows), np.array(gains))


def _variance_gains(x: np.ndarray, m: int, noise: np.ndarray) -> np.ndarray:
    """Σᵣ tr(Cᵣₓ (Cₓₓ + N)⁻¹ Cₓᵣ) for each of the first m points, shape (m,)."""
    k = noise.shape[1]
    candidates, reference = x[:, : m * k], x[:, m * k :]
    own = candidates.reshape(len(x), m, k)
    s = np.einsum("nmi,nmj->mij", own, own)
    s[:, np.arange(k), np.arange(k)] += noise + 1e-300
    cross = (candidates.T @ reference).reshape(m, k, -1)
    half = np.linalg.solve(np.linalg.cholesky(s), cross)
    return np.einsum("mkr,mkr->m", half, half)


def _condition(x: np.ndarray, column: int, noise: float) -> None:
    """Condition XᵀX on a noisy observation of one column, in place.

    With v = xₓ, c = Xᵀv and s = vᵀv + σ², the new covariance C − ccᵀ/s is that of X − b v cᵀ if
    2b − b² vᵀv = 1/s (Potter's square root).
    """
    v = x[:, column].copy()
    variance = float(v @ v)
    if variance <= 0.0:
        return
    b = (1.0 - np.sqrt(noise / (variance + noise))) / variance
    x -= np.outer(b * v, v @ x)


def improve(draws: np.ndarray, known: np.ndarray, n: int) -> Chosen:
    """Candidates that improve on the smallest known value most, one by one.

    The expected improvement E max(min f(known) − f(x), 0) is an average over joint draws; the
    values at the measured points are as uncertain as the noise makes them. Candidates chosen
    earlier count as known, so that a batch does not look for the same minimum twice.

    Parameters
    ----------
    draws : ndarray, shape (n_draws, m)
        Joint draws of the function at the candidates.
    known : ndarray, shape (n_draws, n_known)
        The same draws at measured points.
    n : int
        Number of choices, at most m.

    Returns
    -------
    Chosen
        Gains are expected improvements in the units of the draws; they add up. Where all are zero,
        candidates come in the order of their expected values.

    Examples
    --------
    >>> import numpy as np
    >>> improve(np.array([[1.0, -1.0], [1.0, -3.0]]), np.zeros((2, 1)), 1)
    Chosen(rows=array([1]), gains=array([2.]))
    """
    best = known.min(axis=1)
    rows: list[int] = []
    gains = []
    for _ in range(n):
        gain = np.maximum(best[:, None] - draws, 0.0).mean(axis=0)
        gain[rows] = -np.inf
        row = int(np.argmax(gain))
        if gain[row] <= 0.0:  # no draw is better than what is known: the best expected value
            row = int(np.argmin(np.where(np.isinf(gain), np.inf, draws.mean(axis=0))))
        rows.append(row)
        gains.append(gain[row])
        best = np.minimum(best, draws[:, row])
    return Chosen(np.array(rows), np.array(gains))
