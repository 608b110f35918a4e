"""The inputs of a fit as controls of a page: their range, levels, encoding and start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sbnn._core.web_pages import visible
from sbnn.reports.columns import column_of, numbers_of, words_of
from sbnn.reports.fit import Fit
from sbnn.tables.date_parts import PERIODS
from sbnn.tables.input_column import OTHER, InputColumn


def input_data(fitted: Fit) -> list[dict[str, Any]]:
    """What the page's script needs to show and encode every input.

    Parameters
    ----------
    fitted : Fit

    Returns
    -------
    list of dict
        name, kind, used (whether the prediction depends on it), start (the median, or the most
        frequent category), and either low, high and marks (quantiles of the data) or levels with
        their encoding. Dates are in days since 1970.
    """
    used = (fitted.model.feature_relevance_ > 0).tolist()
    return [{**_input(fitted, name), "used": u} for name, u in zip(fitted.features, used)]


def _input(fitted: Fit, name: str) -> dict[str, Any]:
    column, words = column_of(fitted, name), words_of(fitted, name)
    out: dict[str, Any] = {
        "name": visible(name),
        "kind": column.kind if words is None else "boolean",
        "indicator": column.indicator,
    }
    if words is not None:
        out["words"] = list(words)
    if column.kind == "category":
        return out | _levels(column)
    if column.kind == "empty":
        return out | {"start": 0.0, "low": 0.0, "high": 0.0, "marks": [0.0]}
    values = numbers_of(fitted.x[name])
    values = values[~np.isnan(values)]
    start = float(np.quantile(values, 0.5, method="nearest"))
    out |= {
        "start": start,
        "low": float(values.min()),
        "high": float(values.max()),
        "marks": np.quantile(values, np.linspace(0, 1, 21), method="nearest").tolist(),
        "whole": bool((values == np.round(values)).all()),
        "knots": list(column.knots),
    }
    if column.parts:
        periods = [PERIODS.get(part) for part in column.parts]  # None is the time that has passed
        out |= {"periods": periods, "days": 24.0 if column.kind == "time" else 1.0}
    return out


def _levels(column: InputColumn) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for name, level in column.levels.items():
        counts[level] = counts.get(level, 0) + (column.counts or {})[name]
    levels = [
        {"name": visible(level), "code": code.tolist(), "rows": counts[level]}
        for level, code in zip(column.level_names, column.level_codes())
    ]
    return {"levels": levels, "start": int(np.argmax([level["rows"] for level in levels]))}


def settings(fitted: Fit, rows: np.ndarray) -> list[list[float | None]]:
    """Values of every input in some rows: numbers, days, or positions of levels; None if missing.

    Parameters
    ----------
    fitted : Fit
    rows : ndarray of int

    Returns
    -------
    list of list
        One list per input.
    """
    return [_settings(fitted, name, fitted.x[name].iloc[rows]) for name in fitted.features]


def _settings(fitted: Fit, name: str, cells: pd.Series) -> list[float | None]:
    column = column_of(fitted, name)
    if column.kind == "category":
        place = {level: float(k) for k, level in enumerate(column.level_names)}
        return [
            None if pd.isna(cell) else place.get(column.levels.get(cell, OTHER)) for cell in cells
        ]
    return [None if np.isnan(v) else float(v) for v in numbers_of(cells)]
