"""The next measurements, as a table of the report."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd

from sbnn._core.text import number
from sbnn.reports.columns import words_of
from sbnn.reports.fit import Fit

N_SUGGESTED = 5
N_INPUTS = 8  # columns of the table; more do not fit on a page


def next_measurements(fitted: Fit) -> dict[str, Any] | None:
    """Rows that `suggest` proposes for accuracy, as text.

    Parameters
    ----------
    fitted : Fit

    Returns
    -------
    dict or None
        titles, rows, the share of the average variance they remove together, whether all inputs
        are shown, and whether rows are repeated. None if there is nothing to suggest.
    """
    model, features = fitted.model, list(fitted.features)
    try:
        found = model.suggest(N_SUGGESTED)
    except ValueError:  # fewer different rows than suggestions, such as one input with two values
        return None
    if not np.isfinite(found["gain"]).all() or found["gain"].sum() <= 0:
        return None  # a constant: no measurement changes it
    used = set(model.account_.inputs) or set(features)
    shown = [k for k, name in enumerate(features) if name in used][:N_INPUTS]
    means = [column for column in found if str(column).startswith("predicted_mean")]
    rows = [
        [
            *(_cell(found.iloc[i, k], words_of(fitted, features[k])) for k in shown),
            *(number(found[mean].iloc[i]) for mean in means),
            f"{100 * found['gain'].iloc[i]:.1f} %",
        ]
        for i in range(len(found))
    ]
    titles = [*(features[k] for k in shown), *fitted.targets, "variance removed"]
    total = f"{100 * float(found['gain'].sum()):.0f} %"
    inputs = [tuple(row[: len(shown)]) for row in rows]
    return {
        "titles": titles,
        "rows": rows,
        "total": total,
        "all": len(shown) == len(features),
        "repeated": len(set(inputs)) < len(inputs),
    }


def _cell(value: Any, words: tuple[str, str] | None) -> str:
    """The value of an input."""
    if words is not None:
        return words[int(value)]
    if isinstance(value, pd.Timestamp):
        return str(value.date())
    if isinstance(value, datetime.time):
        return f"{value:%H:%M}"
    if isinstance(value, float | int | np.number) and not isinstance(value, bool):
        return number(float(value))
    return str(value)
