"""Cells as the table of a fit has them: decimal signs, percent signs, words and dates."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sbnn.cli.terminal import UsageError, printable

if TYPE_CHECKING:
    import pandas as pd

    from sbnn.reports.fit import Record

PAIR = re.compile(r"(0|[1-9]\d*),(0|[1-9]\d*)")  # two whole numbers, or one number
EXACT = 15  # digits of a number that was written in decimals
WORDS = {"date": "a date", "time": "a time of day", "boolean": "true or false"}


def written(found: pd.DataFrame, record: Record, digits: int) -> pd.DataFrame:
    """A table of numbers, dates and text as text.

    Parameters
    ----------
    found : DataFrame
        Inputs of the fit, and other columns.
    record : Record
        Of the fit.
    digits : int
        Significant digits of numbers that are not inputs; all digits before the decimal sign are
        shown. Inputs are not rounded: they are to be set as they are shown.

    Returns
    -------
    DataFrame
        Strings; missing cells are empty.
    """
    import pandas as pd

    from sbnn.reports.columns import signs_of

    decimal = signs_of(record).decimal
    types = {name: (c["kind"], c["format"]) for name, c in record.columns.items()}
    return pd.DataFrame(
        {
            name: [
                _cell(
                    value, *types.get(name, ("", "")), decimal, EXACT if name in types else digits
                )
                for value in column
            ]
            for name, column in found.items()
        },
        index=found.index,
    )


def _cell(value: Any, kind: str, form: str, decimal: str, digits: int) -> str:
    import pandas as pd

    from sbnn.tables import dates

    if value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return ""
    if kind == "boolean" and "/" in form:
        return form.split("/")[0 if value else 1]
    if isinstance(value, pd.Timestamp):
        if form and form != dates.ISO:
            return value.strftime(form)
        return str(value.date() if value == value.normalize() else value)
    if isinstance(value, float):
        text = plain_number(value, digits).replace(".", decimal)
        return f"{text} %" if kind == "percent" else text
    return f"{value} %" if kind == "percent" else str(value)


def plain_number(value: float, digits: int) -> str:
    """A number without thousands, and without an exponent unless it is very large or small.

    Examples
    --------
    >>> plain_number(54321.7, 4), plain_number(3.50001, 4), plain_number(1.2e-9, 4)
    ('54322', '3.5', '1.2e-09')
    """
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    places = digits if not value else digits - 1 - math.floor(math.log10(abs(value)))
    text = f"{value:.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def read_limits(name: str, texts: list[str], record: Record) -> tuple[Any, ...]:
    """The ends of a range, written as in the table of the fit or as Python writes numbers.

    Parameters
    ----------
    name : str
        Of an input that does not hold categories.
    texts : list of str
    record : Record

    Returns
    -------
    tuple

    Raises
    ------
    UsageError
        If one of them cannot be read.
    """
    from sbnn.reports.columns import signs_of, types_of
    from sbnn.tables.column_types import ColumnType, read_text
    from sbnn.tables.numerals import PLAIN, THOUSANDS, currency_of

    found, signs, out = types_of(record.columns)[name], signs_of(record), []
    number = found.kind in ("number", "percent", "empty")
    kind = ColumnType("number", found.format) if number else found
    for text in texts:
        cell = text.strip().removesuffix("%").rstrip() if number else text
        column = read_text([cell], kind, signs=signs)
        if column.wrong[0] and not (signs.comma and THOUSANDS["."].fullmatch(cell)):
            column = read_text([cell], kind, signs=PLAIN)
        if column.wrong[0] or column.missing[0]:
            what = WORDS.get(found.kind, f"a number{f' in {kind.format}' if kind.format else ''}")
            low, comma, high = text.partition(",")
            hint = ""
            if comma and currency_of(text) in ("", found.format):
                hint = f"; for a range, write {name}={low.strip()}:{high.strip()}"
            raise UsageError(
                f"--range: {printable(text)!r} is not {what} as in the column {name!r} of the "
                f"fit{printable(hint)}."
            )
        out.append(column.values[0])
    return tuple(out)


def check_comma(name: str, text: str, value: float, seen: Sequence[float]) -> None:
    """Raise UsageError for one value with a comma, such as 10,20, that may be meant as a range.

    Parameters
    ----------
    name : str
    text : str
        The value as it was written.
    value : float
        The number that it is read as, with a decimal comma or with thousands.
    seen : sequence of float
        The column in the fit. If the value is in its range and the second number is not, the value
        is meant.
    """
    ends = PAIR.fullmatch(text.strip().removesuffix("%").rstrip())
    if ends is None or int(ends[1]) >= int(ends[2]):
        return
    if len(seen):
        low, high = min(seen), max(seen)
        if low <= value <= high and not low <= int(ends[2]) <= high:
            return
    raise UsageError(
        f"--range: {text} may be one value or a range; write {name}={ends[1]}:{ends[2]} for the "
        f"range, or {name}={text}:{text} for the value."
    )
