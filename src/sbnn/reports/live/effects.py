"""Partial dependence: the average prediction when one input is set, its band, and single rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from sbnn.reports.account import order_of_inputs
from sbnn.reports.columns import column_of, levels_shown, numbers_of, words_of
from sbnn.reports.fit import Fit
from sbnn.reports.live.rows import shorter

N_INPUTS = 12  # the most relevant ones
N_BASE = 60  # rows that the average is taken over
N_SINGLE = 20  # rows that are shown one by one
N_DRAWS = 150
BAND = (0.025, 0.975)


def effect_data(fitted: Fit, n_grid: int = 25) -> list[dict[str, Any]]:
    """Partial dependence on the most relevant inputs that the model uses, for the page's script.

    Parameters
    ----------
    fitted : Fit
    n_grid : int
        Values that a number is set to; dates are set to twice as many.

    Returns
    -------
    list of dict
        input (its position), places (values on the axis, or positions of levels) and, for every
        target, mean, low and high (95 % band of the average, without noise) and rows (the
        predictions of single rows).
    """
    order = order_of_inputs(fitted.model)
    used = order[fitted.model.feature_relevance_[order] > 0]
    order = (used if len(used) else order)[:N_INPUTS]
    whole = fitted.x.dropna()
    base = whole if len(whole) >= N_BASE else fitted.x
    base = base.iloc[np.random.default_rng(0).permutation(len(base))[:N_BASE]]
    return [_effect(fitted, int(j), base, n_grid) for j in order]


def _effect(fitted: Fit, j: int, base: pd.DataFrame, n_grid: int) -> dict[str, Any]:
    name = fitted.features[j]
    places, values = grid(fitted, name, n_grid)
    frame = with_values(base, name, values)
    shape = (len(values), len(base), len(fitted.targets))
    mean = np.asarray(fitted.model.predict(frame)).reshape(shape)
    draws = fitted.model.sample_y(frame, N_DRAWS, random_state=0, noise=False)
    averages = draws.reshape(*shape, N_DRAWS).mean(axis=1)  # (n_grid, n_targets, n_draws)
    # The band comes from draws, its centre from the exact mean.
    spread = np.quantile(averages, BAND, axis=2) - averages.mean(axis=2)
    centre = mean.mean(axis=1)
    short = lambda values: [shorter(v, 5) for v in values]
    return {
        "input": j,
        "places": [shorter(p) for p in places],
        "targets": [
            {
                "mean": short(centre[:, k]),
                "low": short(centre[:, k] + spread[0, :, k]),
                "high": short(centre[:, k] + spread[1, :, k]),
                "rows": [short(mean[:, i, k]) for i in range(min(N_SINGLE, len(base)))],
            }
            for k in range(len(fitted.targets))
        ],
    }


def grid(fitted: Fit, name: str, n: int) -> tuple[list[float], list[Any]]:
    """Places on the axis of an input, and the values to set it to."""
    column = column_of(fitted, name)
    if column.kind == "category":
        shown = levels_shown(column)
        return [float(k) for k, _ in shown], [category for _, category in shown]
    found = numbers_of(fitted.x[name])
    low, high = np.nanquantile(found, [0.01, 0.99]) if column.kind != "empty" else (0.0, 0.0)
    if words_of(fitted, name) is not None:
        return [0.0, 1.0], [0.0, 1.0]
    if column.kind == "date":
        places = _dates(low, high, 2 * n, column.parts)  # several seasons may lie between the ends
        return places, list(pd.Timestamp(0) + pd.to_timedelta(places, unit="D"))
    places = np.linspace(low, high, n).tolist()
    return places, places


def _dates(low: float, high: float, n: int, parts: Sequence[str]) -> list[float]:
    """About n days from low to high, all on one weekday and hour if they are too few to show these.

    Otherwise, the effect of the weekday would look like a random wiggle.
    """
    step = max((high - low) / (n - 1), 1e-9)
    for part, period in (("week", 7.0), ("day", 1.0)):
        if part in parts and 2 * step > period:
            step = period * max(round(step / period), 1)
            break
    return np.arange(low, high + 0.5 * step, step).tolist()


def with_values(base: pd.DataFrame, name: str, values: list[Any]) -> pd.DataFrame:
    """The rows once for each value of an input."""
    out = pd.concat([base] * len(values), ignore_index=True)
    out[name] = np.repeat(np.array(values, dtype=object), len(base))
    return out.astype({name: "datetime64[us]"}) if isinstance(values[0], pd.Timestamp) else out
