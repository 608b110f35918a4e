"""Rows to choose measurements from: points that fill the range of the training data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import qmc

from sbnn._core.text import listed, plain_repr
from sbnn.tables.column_types import ColumnType, read_text
from sbnn.tables.dates import parse_times, times_of
from sbnn.tables.encoder import ColumnEncoder
from sbnn.tables.header import nearest
from sbnn.tables.input_column import InputColumn

# Candidates reach a twentieth of a range beyond its ends and are moved back to them: the best
# points often lie on the edge, which points spread over a box never touch.
BEYOND = 0.05
DIGITS = 3
# Stored training rows are rounded to this share of a standard deviation.
RESOLUTION = 2.0**-22


@dataclass(frozen=True)
class Axis:
    """The values that one column may take.

    Attributes
    ----------
    name : str or int
    column : InputColumn
    low, high : float
        Limits of a number, in days of a date, in hours of a time.
    levels : tuple of str
        Categories to choose from; empty for other columns.
    whole : bool
        Only whole numbers (whole days).
    """

    name: Any
    column: InputColumn
    low: float = 0.0
    high: float = 0.0
    levels: tuple[str, ...] = ()
    whole: bool = False

    def values(self, u: np.ndarray, edges: bool) -> Any:
        """Values at positions u in [0, 1]; with `edges`, some lie exactly at the limits."""
        kind = self.column.kind
        if kind == "empty":
            return np.full(len(u), np.nan)
        if kind == "category":
            place = np.minimum((u * len(self.levels)).astype(int), len(self.levels) - 1)
            return np.array(self.levels, dtype=object)[place]
        if self.whole:  # every whole number gets the same share
            low, high = np.ceil(self.low), np.floor(self.high)
            x = np.minimum(low + np.floor(u * (high - low + 1.0)), high)
        else:
            u = np.clip((u - 0.5) * (1 + 2 * BEYOND) + 0.5, 0.0, 1.0) if edges else u
            x = self.low + u * (self.high - self.low)
        return self.shown(np.clip(self._rounded(x), self.low, self.high))

    def _rounded(self, x: np.ndarray) -> np.ndarray:
        """To a thousandth of the range or less, which nobody minds and is easier to set."""
        if self.column.kind in ("date", "time") or self.high <= self.low:
            return x
        digits = _digits(self.low, self.high)
        return np.round(x, min(digits, 0) if self.whole else digits)

    def shown(self, x: np.ndarray) -> Any:
        """Numbers as the column of a table holds them."""
        kind = self.column.kind
        if kind == "boolean":
            return x > 0.5
        if kind == "date":
            return np.round(x * 86400.0).astype("datetime64[s]")
        if kind == "time":
            minutes = np.minimum(np.round(x * 60.0), 24 * 60 - 1)
            return times_of(x if self.low == self.high else minutes / 60.0)
        return x.astype(int) if self.whole else x

    def allows(self, series: pd.Series) -> np.ndarray:
        """Which cells of a column are inside the range; missing cells are not."""
        if self.column.kind == "empty":
            return np.ones(len(series), dtype=bool)
        if self.column.kind == "category":
            return series.isin(self.levels).to_numpy()
        kind, name = self.column.kind, self.name
        x = np.array([np.nan if pd.isna(v) else position(v, kind, name) for v in series])
        return (x >= self.low) & (x <= self.high)


def _digits(low: float, high: float) -> int:
    """Decimals that show a thousandth of a range."""
    return DIGITS - int(np.floor(np.log10(high - low))) if high > low else 300


def axes(
    names: Sequence[Any],
    encoder: ColumnEncoder,
    seen: np.ndarray,
    ranges: Mapping[Any, Any] | None = None,
) -> list[Axis]:
    """What every column may hold: the range of the training data, or a given one.

    Parameters
    ----------
    names : sequence
        Of the columns.
    encoder : ColumnEncoder
    seen : ndarray, shape (n, n_encoded)
        Encoded training rows.
    ranges : mapping, optional
        By column: (low, high), one value, or a list of categories.

    Returns
    -------
    list of Axis

    Raises
    ------
    ValueError
        If a range names no column or does not suit it.
    """
    given = dict(ranges or {})
    unknown = [name for name in given if name not in set(names)]
    if unknown:
        close = nearest(str(unknown[0]), [str(name) for name in names])
        hint = "" if close is None else f"; did you mean {close!r}?"
        raise ValueError(
            f"`ranges` names the column {unknown[0]!r}, which the model does not have{hint or '.'} "
            f"It has {listed([repr(name) for name in list(names)[:20]])}."
        )
    out = []
    for k, (name, column) in enumerate(zip(names, encoder.columns)):
        first = int(np.argmax(encoder.groups == k))
        out.append(_axis(name, column, seen[:, first], given.get(name)))
    return out


def _axis(name: Any, column: InputColumn, values: np.ndarray, given: Any) -> Axis:
    if column.kind == "empty":
        return Axis(name, column)
    if column.kind == "category":
        return Axis(name, column, levels=_levels(name, column, given))
    if column.kind == "time":
        values = values * 24.0
    inexact = np.abs(values - np.round(values))
    whole = bool((inexact <= max(RESOLUTION * float(values.std()), 1e-9)).all())
    if whole:
        values = np.round(values)
    low, high = float(values.min()), float(values.max())
    if given is not None:
        # yes and no are 1 and 0 in the table of a fit by the command line
        binary = column.kind == "number" and whole and np.isin(values, [0.0, 1.0]).all()
        low, high = _limits(name, "boolean" if binary else column.kind, given)
    elif not whole:
        # Stored rows are inexact: 2022.75 would be 2022.750008.
        low, high = (float(np.round(x, _digits(low, high) + 1)) for x in (low, high))
    if whole and np.ceil(low) > np.floor(high):
        whole = False  # no whole number in the range that was asked for
    if column.kind == "boolean":
        low, high, whole = max(low, 0.0), min(high, 1.0), True
    return Axis(name, column, low, high, whole=whole)


def _levels(name: Any, column: InputColumn, given: Any) -> tuple[str, ...]:
    """Frequent categories, and the most frequent one of those that share a level."""
    counts = column.counts or {}
    if given is None:
        most: dict[str, str] = {}
        for category, level in column.levels.items():
            if level not in most or counts[category] > counts[most[level]]:
                most[level] = category
        return tuple(most.values())
    wanted = [given] if isinstance(given, str) else [str(value) for value in given]
    new = [value for value in wanted if value not in counts]
    if new or not wanted:
        shown = ", ".join(map(repr, list(counts)[:8])) + (", …" if len(counts) > 8 else "")
        got = f"got {new[0]!r}" if new else "got none"
        raise ValueError(f"The range of {name!r} must hold categories of the fit ({shown}); {got}.")
    return tuple(dict.fromkeys(wanted))


def _limits(name: Any, kind: str, given: Any) -> tuple[float, float]:
    """Numbers (low, high) of a range; one value stands for both."""
    several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    ends = list(given) if several else [given]
    if len(ends) not in (1, 2):
        shown = plain_repr(tuple(ends))
        raise ValueError(f"The range of {name!r} must be (low, high) or one value; got {shown}.")
    low, high = position(ends[0], kind, name), position(ends[-1], kind, name)
    if kind == "boolean" and several:  # as a set
        low, high = min(low, high), max(low, high)
    if not low <= high:
        shown = plain_repr(tuple(ends))
        raise ValueError(f"The range of {name!r} must be (low, high) with low ≤ high; got {shown}.")
    return low, high


def position(value: Any, kind: str, name: Any) -> float:
    """A cell as a number: days of a date, hours of a time, otherwise itself."""
    found = np.nan
    try:
        if kind == "date":
            found = (pd.Timestamp(value) - pd.Timestamp(0)) / pd.Timedelta(days=1)
        elif kind == "time" and not isinstance(value, Real):
            found = float(parse_times([value])[0])
        elif kind == "boolean" and isinstance(value, str):
            found = float(read_text([value], ColumnType("boolean")).values[0])  # ja, nein
        else:
            found = float(value)
    except (TypeError, ValueError):
        pass
    if not np.isfinite(found):
        what = {"date": "dates", "time": "times of day", "boolean": "true or false"}.get(
            kind, "numbers"
        )
        raise ValueError(f"The range of {name!r} takes {what}; got {plain_repr(value)}.")
    return found


def spread(axes: Sequence[Axis], n: int, seed: int, edges: bool) -> pd.DataFrame:
    """At most n different rows that fill the ranges evenly (Sobol points).

    Parameters
    ----------
    axes : sequence of Axis
    n : int
        A power of two.
    seed : int
    edges : bool
        Put some of the values exactly at the limits of their ranges.

    Returns
    -------
    DataFrame
    """
    u = qmc.Sobol(len(axes), rng=np.random.default_rng(seed)).random(n)
    columns = {axis.name: axis.values(u[:, k], edges) for k, axis in enumerate(axes)}
    return pd.DataFrame(columns).drop_duplicates(ignore_index=True)
