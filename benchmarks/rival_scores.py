"""Scores of predictions in the comparison: RMSE, log-likelihood, CRPS, coverage, width.

A method without a density has no log-likelihood; its CRPS comes from quantiles or draws.
"""

from __future__ import annotations

import numpy as np
from prediction import LEVELS, Prediction

from sbnn.scores import (
    NormalMixture,
    Predictive,
    coverage,
    crps_draws,
    interval_width,
    nlpd,
    rmse,
)

ENDS = (0.025, 0.975)


def scores(y: np.ndarray, found: Predictive) -> dict[str, float]:
    """Scores of predictive distributions."""
    return {
        "rmse": rmse(y, found.mean()),
        "log_likelihood": -nlpd(y, found),
        "crps": float(found.crps(y).mean()),
        **_interval(y, *found.quantiles(ENDS)),
    }


def scores_of(y: np.ndarray, found: Prediction) -> dict[str, float]:
    """Scores of whatever a method returned."""
    if found.predictive is not None:
        return scores(y, found.predictive)
    if found.mixture is not None:
        return scores(y, NormalMixture(*found.mixture))
    row = {"rmse": rmse(y, found.mean)}
    if found.quantiles is not None:
        ends = [int(np.argmin(np.abs(LEVELS - end))) for end in ENDS]
        row["crps"] = crps_quantiles(y, found.quantiles)
        row |= _interval(y, *found.quantiles[ends])
    elif found.draws is not None:
        row["crps"] = crps_draws(y, found.draws)
        row |= _interval(y, *np.quantile(found.draws, ENDS, axis=0))
    return row


def crps_quantiles(y: np.ndarray, quantiles: np.ndarray) -> float:
    """Mean CRPS from quantiles at `LEVELS`.

    CRPS = 2 ∫ ρ_τ(y − q_τ) dτ over the levels τ from 0 to 1, with ρ_τ(u) = u (τ − [u < 0]), by the
    midpoint rule.

    Parameters
    ----------
    y : ndarray, shape (m,)
    quantiles : ndarray, shape (100, m)

    Returns
    -------
    float
    """
    error = np.asarray(y) - quantiles
    return float(2 * np.mean(error * (LEVELS[:, None] - (error < 0))))


def _interval(y: np.ndarray, low: np.ndarray, high: np.ndarray) -> dict[str, float]:
    return {"coverage": coverage(y, low, high), "width": interval_width(low, high)}
