"""Targets of `SparseBNNRegressor`: errors for text, dates and missing values."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from sbnn._core.text import plural


def check_target(y: Any) -> None:
    """Raise a ValueError if y does not hold numbers; scikit-learn checks its shape.

    Parameters
    ----------
    y : array_like, shape (n,) or (n, n_outputs)

    Raises
    ------
    ValueError
        What y holds instead, and what to do.

    Examples
    --------
    >>> check_target(["low", "high"])
    Traceback (most recent call last):
    ...
    ValueError: `y` holds text (such as 'low'), not numbers. sbnn does regression ...
    """
    try:
        values = np.asarray(y)
    except ValueError:  # rows of different lengths
        return
    if values.dtype.kind in "mM":
        _raise_for_dates(values.flat[0] if values.size else "NaT")
    if values.dtype.kind == "f" and np.isnan(values).any():
        rows = np.flatnonzero(np.isnan(values).reshape(len(values), -1).any(axis=1))
        row = (y.index if hasattr(y, "iloc") else range(len(values)))[rows[0]]
        more = f" and {plural(len(rows) - 1, 'more row')}" if len(rows) > 1 else ""
        them = "it" if len(rows) == 1 else "them"
        raise ValueError(f"Input y contains NaN in row {row!r}{more}; leave {them} out.")
    if values.dtype.kind not in "OUS" or y is None:
        return
    cells = values.ravel().tolist()
    gaps = sum(cell is None for cell in cells)
    if cells and gaps:
        raise ValueError(
            f"`y` has {plural(gaps, 'missing value')} (None) among {len(cells):,}; leave these "
            "rows out."
        )
    for cell in cells:
        if isinstance(cell, datetime.date | datetime.time | np.datetime64):
            _raise_for_dates(cell)
        if isinstance(cell, str | bytes) and not _is_number(cell):
            shown = cell if len(cell) <= 20 else cell[:20]
            raise ValueError(
                f"`y` holds text (such as {shown!r}), not numbers. sbnn does regression and cannot "
                "predict classes: convert numbers that are text with pandas.to_numeric, ordered "
                "levels to numbers, or use a classifier."
            )


def _raise_for_dates(cell: Any) -> None:
    raise ValueError(
        f"`y` holds dates or times (such as {str(cell)[:20]!r}), not numbers; convert them, for "
        "example to days since a date."
    )


def _is_number(cell: str | bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
