"""What a column holds: numbers, percentages, yes or no, dates, times of day, or categories.

A column whose cells are mostly numbers holds numbers, and any other word in it is an error rather
than a category; in the same way, a column of dates has no other words.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sbnn.tables import dates
from sbnn.tables.numerals import (
    PLAIN,
    Cells,
    Signs,
    bare,
    convert_each,
    convert_plain,
    is_written_number,
    most_frequent_currency,
)

MISSING = frozenset({"", "na", "n/a", "nan", "+nan", "-nan", "null", "none", "?", "-", "#n/a"})
MISSING_TEXT = MISSING - {"none"}  # a category that people use
# In English, German, French, Spanish, Italian and Portuguese.
BOOLEANS = (
    ("true", "false"), ("yes", "no"), ("on", "off"), ("t", "f"), ("y", "n"), ("ja", "nein"),
    ("wahr", "falsch"), ("oui", "non"), ("vrai", "faux"), ("sí", "no"), ("si", "no"), ("sì", "no"),
    ("vero", "falso"), ("verdadero", "falso"), ("sim", "não"),
)  # fmt: skip
WORDS = {word: 1.0 - k for pair in BOOLEANS for k, word in enumerate(pair)}
# A column holds numbers if more than this share of its cells are numbers.
MOSTLY = 0.5
WHOLE = re.compile(r"([+-]?\d+)\.0+")  # the integer 3 after a program has written it as 3.0


class ColumnType(NamedTuple):
    """The type of a column.

    `kind` is "number", "percent", "boolean", "date", "time", "category", or "empty" if no cell
    says what it is; `format` is that of dates in text, the words of booleans (yes/no), or the
    currency of amounts, such as €.
    """

    kind: str
    format: str = ""


class Column(NamedTuple):
    """The cells of a column, read by type."""

    type: ColumnType
    values: np.ndarray  # (n,), float, datetime64 or, for categories, strings
    missing: np.ndarray  # (n,), bool
    wrong: np.ndarray  # (n,), bool: neither missing nor of the type
    ambiguous: bool = False  # dates whose day and month may be exchanged


def read_text(
    cells: Cells,
    known: ColumnType | None = None,
    categorical: bool = False,
    signs: Signs = PLAIN,
) -> Column:
    """Read the cells of a text column, by a known type or by what most of them look like.

    Parameters
    ----------
    cells : sequence of str
    known : ColumnType, optional
        The type that was found before; found from the cells if None.
    categorical : bool
        Whether to read categories, whatever the cells look like.
    signs : Signs

    Returns
    -------
    Column

    Examples
    --------
    >>> read_text(["1.5", "", "2"]).values
    array([1.5, nan, 2. ])
    >>> read_text(["north", "south", "n/a"]).type.kind
    'category'
    """
    kind = "category" if categorical else "" if known is None else known.kind
    if kind in ("", "number") and (quick := convert_plain(cells, signs)) is not None:
        nothing = np.zeros(len(quick), dtype=bool)
        return Column(known or ColumnType("number"), quick, nothing, nothing)
    texts = np.array([cell.strip() for cell in cells], dtype=object)
    lower = [text.lower() for text in texts]
    missing = np.array([word in MISSING for word in lower], dtype=bool)
    form = "" if known is None else known.format
    ambiguous = False
    if not kind:
        kind, form, ambiguous = _kind(texts[~missing], signs)
    if kind in ("number", "percent"):
        form = form or most_frequent_currency(texts)
        values, percent = convert_each(texts, signs, form)
        wrong = np.isnan(values) | (~percent if kind == "percent" else percent)
    elif kind == "boolean":
        values = np.array([WORDS.get(word, np.nan) for word in lower])
        plain = convert_each(texts, signs)[0]  # 0 and 1, as programs write them
        values = np.where(np.isin(plain, [0.0, 1.0]), plain, values)
        wrong = np.isnan(values)
    elif kind == "date":
        values = dates.parse_or_iso(texts.tolist(), form or dates.ISO)
        wrong = ~dates.in_range(values)
    elif kind == "time":
        values = dates.parse_times(texts.tolist())
        wrong = np.isnan(values)
    else:
        missing = np.array([word in MISSING_TEXT for word in lower], dtype=bool)
        if kind == "empty":
            missing = np.ones(len(texts), dtype=bool)
        values = np.array([label(text) for text in texts], dtype=object)
        wrong = np.zeros(len(texts), dtype=bool)
        values[missing] = None
    return Column(ColumnType(kind, form), values, missing, wrong & ~missing, ambiguous)


def _kind(filled: np.ndarray, signs: Signs) -> tuple[str, str, bool]:
    """Kind and format of a column, and whether the format is ambiguous."""
    if not len(filled):
        return "empty", "", False
    numbers, percent = convert_each(filled, signs)
    if (~np.isnan(numbers)).mean() > MOSTLY:
        return ("percent" if percent.sum() > len(filled) / 2 else "number"), "", False
    words = {text.lower() for text in filled}
    for pair in BOOLEANS:
        if words <= set(pair):
            spelled = {text.lower(): text for text in filled}
            return "boolean", "/".join(spelled.get(word, word) for word in pair), False
    form, ambiguous = dates.find_format(filled.tolist())
    if form:
        return "date", form, ambiguous
    if (~np.isnan(dates.parse_times(filled.tolist()))).mean() >= dates.ENOUGH:
        return "time", "", False
    if np.mean([is_written_number(bare(text)) for text in filled]) > MOSTLY:
        return "number", "", False  # numbers that cannot be read: 1,5 or 1e999
    return "category", "", False


def label(value: Any) -> str:
    """The name of a category: text as it is, a whole number without decimals.

    Examples
    --------
    >>> label(3.0), label(" 3.0 "), label("007"), label(True)
    ('3', '3', '007', 'True')
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    text = str(value).strip()
    whole = WHOLE.fullmatch(text)
    return whole.group(1) if whole else text


def read_series(
    column: pd.Series, known: ColumnType | None = None, categorical: bool = False
) -> Column:
    """Read a column of a DataFrame, by its dtype; text is read as in a file.

    Parameters
    ----------
    column : Series
    known, categorical
        See `read_text`.

    Returns
    -------
    Column

    Raises
    ------
    TypeError
        If the cells are lists or other objects.
    """
    missing = column.isna().to_numpy(dtype=bool).copy()
    nothing = np.zeros(len(column), dtype=bool)
    as_category = categorical or isinstance(column.dtype, pd.CategoricalDtype)
    if as_category or (known is not None and known.kind == "category"):
        values = np.array(
            [None if gap else label(v) for v, gap in zip(column, missing)], dtype=object
        )
        missing |= np.array([v is not None and v.lower() in MISSING_TEXT for v in values])
        values[missing] = None
        return Column(ColumnType("category"), values, missing, nothing)
    if column.dtype.kind in "mM" or isinstance(column.dtype, pd.PeriodDtype | pd.DatetimeTZDtype):
        return _times(column, missing, nothing)
    if pd.api.types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        kind = "boolean" if pd.api.types.is_bool_dtype(column.dtype) else "number"
        if known is not None and known.kind in ("number", "percent", "boolean", "time"):
            kind = known.kind
        return _numbers(ColumnType(kind), values, missing)
    return _objects(column, missing, known)


def _numbers(found: ColumnType, values: np.ndarray, missing: np.ndarray) -> Column:
    """Numbers; in a column of true or false, only 0 and 1 are right."""
    wrong = np.zeros(len(values), dtype=bool)
    if found.kind == "boolean":
        wrong = ~missing & ~np.isin(values, [0.0, 1.0])
    return Column(found, values, missing, wrong)


def _times(column: pd.Series, missing: np.ndarray, nothing: np.ndarray) -> Column:
    if column.dtype.kind == "m":  # a duration, in days
        values = (column / pd.Timedelta(days=1)).to_numpy(dtype=float)
        return Column(ColumnType("number"), values, missing, nothing)
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    values = column.to_numpy().astype("datetime64[us]")
    wrong = ~dates.in_range(values) & ~missing
    return Column(ColumnType("date", dates.ISO), values, missing, wrong)


def _objects(column: pd.Series, missing: np.ndarray, known: ColumnType | None) -> Column:
    """A column of Python objects: text, numbers, dates."""
    filled: Sequence[Any] = [v for v, gap in zip(column, missing) if not gap]
    nothing = np.zeros(len(column), dtype=bool)
    is_all = lambda *kinds: bool(filled) and all(isinstance(v, kinds) for v in filled)
    if is_all(bool, np.bool_):
        values = np.array([np.nan if gap else float(v) for v, gap in zip(column, missing)])
        return Column(ColumnType("boolean"), values, missing, nothing)
    if is_all(int, float, np.number, Decimal):
        values = np.array([np.nan if gap else float(v) for v, gap in zip(column, missing)])
        return _numbers(known or ColumnType("number"), values, missing)
    if is_all(datetime.date, np.datetime64):  # a datetime is a date
        return _times(pd.to_datetime(column, utc=True), missing, nothing)
    if is_all(datetime.time):
        return Column(ColumnType("time"), dates.parse_times(list(column)), missing, nothing)
    for value in filled:
        if not isinstance(value, str | int | float | bool | np.generic | Decimal):
            raise TypeError(
                f"column {column.name!r} holds {type(value).__name__} objects (such as "
                f"{str(value)[:20]!r}); numbers, text, dates or times are expected."
            )
    cells = ["" if gap else str(v) for v, gap in zip(column, missing)]
    return read_text(cells, known)
