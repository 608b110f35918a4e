"""Predictions as new columns of the user's table, and rows that extrapolate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd


def outside_range(seen: pd.DataFrame, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Rows of each input outside its range in the fit.

    Parameters
    ----------
    seen : DataFrame
        Inputs of the fit.
    frame : DataFrame
        New rows, with the same columns.

    Returns
    -------
    dict of ndarray of bool, shape (n_rows,)
        By input; only inputs with rows outside.
    """
    out = {}
    for name in frame:
        # A missing cell is not outside.
        values = frame[name].fillna(seen[name].min())
        rows = ((values < seen[name].min()) | (values > seen[name].max())).to_numpy()
        if rows.any():
            out[str(name)] = rows
    return out


def by_row(outside: dict[str, np.ndarray], n: int) -> list[list[str]]:
    """Names of the inputs outside the range of the fit, one list for each of n rows.

    Parameters
    ----------
    outside : dict of ndarray of bool
        See `outside_range`.
    n : int

    Returns
    -------
    list of list of str
    """
    return [[name for name, rows in outside.items() if rows[k]] for k in range(n)]


def with_columns(
    table: pd.DataFrame,
    predicted: dict[str, dict[str, list[float]]],
    flags: dict[str, list[list[str]]],
) -> pd.DataFrame:
    """The user's table with columns for the predictions and for inputs to be careful about.

    Predictions are rounded to a thousandth of their standard deviation: further digits are
    meaningless. If the table already has a column y_mean, the new one is y_predicted_mean.

    Parameters
    ----------
    table : DataFrame
        The user's table, unchanged.
    predicted : dict of dict of list
        By target: mean, std, lower, upper, noise_std and function_std.
    flags : dict of list of list of str
        By name of the column, such as extrapolates: names of inputs, one list per row.

    Returns
    -------
    DataFrame
    """
    taken: set[str] = {name.strip() for name in table.columns}
    added: dict[str, list[Any]] = {}
    for target, parts in predicted.items():
        parts = _to_thousandths(parts)
        start = target
        while any(f"{start}_{part}" in taken for part in parts):
            start += "_predicted"
        added |= {f"{start}_{part}": values for part, values in parts.items()}
        taken |= set(added)
    for name, of_rows in flags.items():
        while name in taken:
            name += "_predicted"
        added[name] = ["; ".join(names) for names in of_rows]
    return pd.concat([table, pd.DataFrame(added, index=table.index)], axis=1)


def _to_thousandths(parts: dict[str, list[float]]) -> dict[str, list[float]]:
    """Each row rounded to the decimal below a thousandth of its standard deviation."""
    decimals = [3 - math.floor(math.log10(std)) if std > 0 else 15 for std in parts["std"]]
    return {name: [round(v, d) for v, d in zip(vs, decimals)] for name, vs in parts.items()}
