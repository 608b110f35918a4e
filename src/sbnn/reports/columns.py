"""Columns of the table in a report: their kinds, values on an axis, and missing cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from sbnn._core.text import listed, plural
from sbnn.tables.column_types import ColumnType
from sbnn.tables.dates import parse_times
from sbnn.tables.input_column import InputColumn
from sbnn.tables.numerals import Signs

if TYPE_CHECKING:
    from sbnn.regressor.estimator import SparseBNNRegressor
    from sbnn.reports.fit import Fit, Record

KINDS = {
    "number": "numbers", "percent": "percentages", "boolean": "yes or no", "date": "dates",
    "time": "times of day", "category": "categories", "empty": "nothing",
}  # fmt: skip
DAY = np.timedelta64(1, "D")
N_LEVELS = 12


def describe(
    model: SparseBNNRegressor, features: list[str], types: dict[str, ColumnType] | None
) -> dict[str, dict[str, Any]]:
    """The columns of a fit as plain values, by name.

    Parameters
    ----------
    model : SparseBNNRegressor
    features : list of str
    types : dict of ColumnType or None
        As read from the file; those that the model found if None.

    Returns
    -------
    dict of dict
        kind, format, categories, missing (cells) and indicator.
    """
    out = {}
    for name, column in zip(features, model.encoder_.columns):
        kind, form = (types or {}).get(name, column.type)
        out[name] = {
            "kind": kind,
            "format": form,
            "categories": len(column.counts or ()),
            "missing": column.n_missing,
            "indicator": column.indicator,
        }
    return out


def types_of(columns: dict[str, dict[str, Any]]) -> dict[str, ColumnType]:
    """Types of the columns that `describe` described."""
    return {name: ColumnType(c["kind"], c["format"]) for name, c in columns.items()}


def signs_of(record: Record) -> Signs:
    """Signs in the numbers of the table of a fit; those of Python if the record has none."""
    return Signs(**record.signs)


def words_of(fitted: Fit, name: str) -> tuple[str, str] | None:
    """The words for false and true in a column of booleans, as in the table; None for others."""
    read_as = fitted.record.columns.get(name, {})
    if read_as.get("kind", column_of(fitted, name).kind) != "boolean":
        return None
    yes, slash, no = read_as.get("format", "").partition("/")
    return (no, yes) if slash else ("no", "yes")


def column_of(fitted: Fit, name: str) -> InputColumn:
    """How an input is encoded."""
    return fitted.model.encoder_.columns[fitted.features.index(name)]


class Axis(NamedTuple):
    """The values of an input on an axis."""

    values: np.ndarray  # (n,), float, without gaps
    labels: list[str]  # of the values 0, 1, …; empty for numbers and dates
    is_date: bool


def axis(fitted: Fit, name: str) -> Axis:
    """An input on an axis: dates in days since 1970, categories by number.

    Gaps are shown at the median, or at the most frequent category.
    """
    column, values = column_of(fitted, name), fitted.x[name]
    if column.kind == "empty":
        return Axis(np.zeros(len(values)), [], False)
    if column.kind == "category":
        labels = column.level_names
        place = {level: float(k) for k, level in enumerate(labels)}
        numbers = values.astype(object).map(
            lambda v: place.get(column.levels.get(v, ""), np.nan), na_action="ignore"
        )
        found = numbers.to_numpy(dtype=float, na_value=np.nan)
        usual = np.bincount(found[~np.isnan(found)].astype(int)).argmax()
        return Axis(np.where(np.isnan(found), float(usual), found), labels, False)
    found = numbers_of(values)
    return Axis(np.where(np.isnan(found), np.nanmedian(found), found), [], column.kind == "date")


def numbers_of(values: pd.Series) -> np.ndarray:
    """Numbers, dates in days since 1970, times of day in hours; NaN where a cell is missing."""
    if values.dtype.kind == "M":
        return ((values - pd.Timestamp(0)) / DAY).to_numpy(dtype=float)
    if values.dtype.kind == "O":
        return parse_times(list(values))
    return values.to_numpy(dtype=float, na_value=np.nan)


def show_axis(ax: Any, found: Axis) -> None:
    """Ticks of an axis that holds dates or categories."""
    if found.is_date:
        from matplotlib import dates

        locator = dates.AutoDateLocator(minticks=2, maxticks=5)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    elif found.labels:
        shown = [text if len(text) <= 12 else text[:11] + "…" for text in found.labels]
        turned = sum(map(len, shown)) > 26
        turn: dict[str, Any] = {"rotation": 40, "ha": "right"} if turned else {}
        ax.set_xticks(range(len(shown)), shown, fontsize=8, parse_math=False, **turn)


def levels_shown(column: InputColumn) -> list[tuple[int, str]]:
    """Positions of the most frequent levels of a category, each with one of its categories."""
    counts: dict[str, int] = {}
    example: dict[str, str] = {}
    for name, level in column.levels.items():
        counts[level] = counts.get(level, 0) + (column.counts or {})[name]
        example.setdefault(level, name)
    most = set(sorted(counts, key=lambda level: -counts[level])[:N_LEVELS])
    return [(k, example[level]) for k, level in enumerate(column.level_names) if level in most]


def numeric_inputs(fitted: Fit) -> pd.DataFrame:
    """Inputs with numbers, dates or times; gaps hold the mean."""
    out = {}
    for name in fitted.features:
        column = fitted.x[name]
        if column_of(fitted, name).kind != "category" and column.notna().any():
            values = numbers_of(column)
            out[name] = np.where(np.isnan(values), np.nanmean(values), values)
    return pd.DataFrame(out, index=fitted.x.index)


def about_missing(fitted: Fit) -> str:
    """A sentence about missing cells; "" if there are none."""
    gaps = fitted.x.isna()
    n_cells, n_rows = int(gaps.to_numpy().sum()), int(gaps.any(axis=1).sum())
    blank = [f"“{name}”" for name in fitted.features if column_of(fitted, name).has_blanks]
    empty = (
        f"Most cells of {listed(blank)} are empty; being empty counts as a category."
        if blank
        else ""
    )
    if not n_cells:
        return empty
    share = 100 * n_cells / gaps.size
    shown = f"{share:.0f}" if share >= 1 else f"{share:.1g}"
    text = f"{plural(n_cells, 'cell')} ({shown} %) in {plural(n_rows, 'row')} of "
    text += f"{len(gaps):,} {'is' if n_cells == 1 else 'are'} missing and filled from similar rows."
    own = [f"“{name}”" for name in fitted.features if column_of(fitted, name).indicator]
    if own:
        text += f" That a cell is missing says something by itself, and is used, for {listed(own)}."
    return f"{text} {empty}".strip()


def columns_table(fitted: Fit) -> list[dict[str, str]]:
    """Inputs that are not plain complete numbers, as text; empty if there are none."""
    out = []
    for name in fitted.features:
        column, read_as = column_of(fitted, name), fitted.record.columns.get(name, {})
        kind = read_as.get("kind", column.kind)
        if kind == "number" and not column.n_missing:
            continue
        currency = read_as.get("format", "") if kind == "number" else ""
        what = f"amounts in {currency}" if currency else KINDS[kind]
        if column.kind == "category":
            n, n_rare = len(column.levels), sum(v == column.other for v in column.levels.values())
            what = "1 category" if n == 1 else f"{n:,} categories"
            what += f", {n_rare:,} of them rare" if n_rare else ""
            what += " and combined" if n_rare > 1 else ""
        if column.kind == "empty":
            what = KINDS["empty"]
        elif kind == "date":
            first, last = fitted.x[name].min(), fitted.x[name].max()
            what += f" from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
        missing = "none" if not column.n_missing else f"{column.n_missing:,}"
        missing += ", an input of their own" if column.indicator else ""
        out.append({"name": name, "what": what, "missing": missing})
    return out
