"""Rows that the model did not see: their values and predictions, and the worst of them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from sbnn._core.text import number, rounded
from sbnn._core.web_pages import visible
from sbnn.reports.account import order_of_inputs
from sbnn.reports.columns import words_of
from sbnn.reports.fit import Fit
from sbnn.reports.live.inputs import settings
from sbnn.reports.noise import outlying

MAX_ROWS = 1500  # more would make the page large and slow, and show nothing new
N_WORST = 10
N_VALUES = 4


def row_data(fitted: Fit) -> dict[str, Any]:
    """Unseen rows for the page's script, by target and by input; a random part of long tables.

    Parameters
    ----------
    fitted : Fit

    Returns
    -------
    dict
        line, total (number of unseen rows), inputs (see `settings`), and y, mean, std, lower,
        upper and far (whether a row does not fit the rest) of every target.
    """
    held = fitted.held_out
    shown = np.sort(np.random.default_rng(0).permutation(len(held.rows))[:MAX_ROWS])
    parts = {name: getattr(held, name)[shown].T for name in ("y", "mean", "std", "lower", "upper")}
    rows = held.rows[shown]
    return {
        "line": [int(line) for line in fitted.data.index[rows]],
        "total": len(held.rows),
        "far": [outlying(fitted, k)[rows].tolist() for k in range(len(fitted.targets))],
        "inputs": [[shorter(v) for v in column] for column in settings(fitted, rows)],
        **{name: [[shorter(v) for v in column] for column in p] for name, p in parts.items()},
    }


def shorter(value: float | None, digits: int = 8) -> float | None:
    """A number with few digits, to keep pages small.

    Examples
    --------
    >>> shorter(1 / 3), shorter(None)
    (0.33333333, None)
    """
    return None if value is None or not np.isfinite(value) else float(f"{value:.{digits}g}")


def worst_rows(fitted: Fit, n: int = N_WORST) -> dict[str, Any]:
    """The unseen rows farthest from their prediction, in predicted standard deviations.

    Parameters
    ----------
    fitted : Fit
    n : int

    Returns
    -------
    dict
        inputs (names of the most relevant ones that the model uses) and rows: line, target,
        observed, predicted, interval, stds (the distance, with sign) and values of the inputs, as
        text.
    """
    held = fitted.held_out
    stds = (held.y - held.mean) / np.maximum(held.std, 1e-300)
    order = np.argsort(-np.abs(stds), axis=None, kind="stable")[:n]
    used = fitted.model.feature_relevance_ > 0
    top = [j for j in order_of_inputs(fitted.model) if used[j]][:N_VALUES]
    words = {j: words_of(fitted, fitted.features[j]) for j in top}
    rows = []
    for row, k in zip(*np.unravel_index(order, stds.shape)):
        cells = fitted.x.iloc[held.rows[row]]
        error = float(held.std[row, k]) / 10  # two digits of the standard deviation
        shown = lambda values, at=(row, k), error=error: rounded(float(values[at]), error)
        rows.append(
            {
                "line": int(fitted.data.index[held.rows[row]]),
                "target": fitted.targets[k],
                "observed": shown(held.y),
                "predicted": shown(held.mean),
                "interval": f"{shown(held.lower)} to {shown(held.upper)}",
                "stds": f"{stds[row, k]:+.1f}".replace("-", "−"),
                "outside": not held.inside[row, k],
                "cells": [_cell(cells.iloc[j], words[j]) for j in top],
            }
        )
    return {"inputs": [fitted.features[j] for j in top], "rows": rows}


def _cell(value: Any, words: tuple[str, str] | None) -> str:
    if value is None or value != value:  # NaN and NaT
        return "missing"
    if words is not None:
        return words[int(value)]
    if isinstance(value, datetime.time):
        return f"{value:%H:%M}"
    if hasattr(value, "strftime"):
        return f"{value:%Y-%m-%d}"
    return number(float(value)) if isinstance(value, int | float | np.number) else visible(value)
