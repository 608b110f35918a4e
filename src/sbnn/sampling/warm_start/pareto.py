"""Shape of the tail of importance weights."""

from __future__ import annotations

import numpy as np


def pareto_k(log_weights: np.ndarray) -> float:
    """Shape k̂ of a generalised Pareto distribution fitted to the largest weights.

    Below 0.5 the weights have a finite variance; above 0.7 importance sampling with them is
    unreliable (Vehtari et al. 2024). The fit is the approximate Bayesian estimate of Zhang and
    Stephens (2009) with the weak prior of Vehtari et al., here in NumPy because the library does
    without the package that has it, arviz-stats; a test compares the two.

    Parameters
    ----------
    log_weights : ndarray, shape (n,)

    Returns
    -------
    float
        Infinity if fewer than 5 weights are positive.

    Examples
    --------
    >>> u = (np.arange(4000) + 0.5) / 4000
    >>> round(pareto_k(-0.8 * np.log(u)), 1)  # weights u^(−0.8)
    0.8
    """
    log_weights = np.sort(log_weights[np.isfinite(log_weights)])
    n = len(log_weights)
    n_tail = int(np.ceil(min(0.2 * n, 3.0 * np.sqrt(n))))
    if n_tail < 5:
        return float(np.inf)
    weights = np.exp(log_weights - log_weights[-1])
    tail = weights[-n_tail:] - weights[-n_tail - 1]
    if tail[-1] <= 1e-8:  # all weights are equal, up to rounding
        return float(-np.inf)
    tail = np.maximum(tail, 1e-300)
    # A grid of b = −k/σ around the quartile, each weighted by its profile likelihood.
    m = 30 + int(np.sqrt(n_tail))
    quartile = tail[int(n_tail / 4 + 0.5) - 1]
    b = 1.0 / tail[-1] + (1.0 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (3.0 * quartile)
    k = np.log1p(-b[:, None] * tail).mean(axis=1)
    log_likelihood = n_tail * (np.log(-b / k) - k - 1.0)
    weight = 1.0 / np.exp(log_likelihood - log_likelihood[:, None]).sum(axis=1)
    b_mean = (b * weight).sum() / weight.sum()
    estimate = np.log1p(-b_mean * tail).mean()
    return float((n_tail * estimate + 5.0) / (n_tail + 10.0))  # weak prior: 10 values of k = 0.5
