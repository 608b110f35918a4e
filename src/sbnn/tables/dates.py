"""Dates and times of day in text: the formats that are recognised, and reading them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

ISO = "ISO8601"
DAY_FIRST, MONTH_FIRST = "%d/%m/%Y", "%m/%d/%Y"
DAYS = (
    "%Y/%m/%d", "%d.%m.%Y", DAY_FIRST, MONTH_FIRST, "%d-%m-%Y",
    "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
)  # fmt: skip
HOURS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
LIKE_ISO = re.compile(r"\d{4}-\d{1,2}(-\d{1,2}([T ]\d{1,2}(:\d{2}){0,2}([.,]\d+)?\s?\S*)?)?")
LIKE_DATE = re.compile(r"[A-Za-z0-9].*[-/. ].*\d.*")
LIKE_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?")
# Of every version of pandas: nanoseconds since 1970 fit into 64 bits.
FIRST_YEAR, LAST_YEAR = 1678, 2261
ENOUGH = 0.8  # share of the cells that must be dates for a column to hold dates
N_TRIED = 1000


def find_format(cells: Sequence[str]) -> tuple[str, bool]:
    """The format of a column of dates, and whether day and month may be exchanged.

    Parameters
    ----------
    cells : sequence of str
        Without missing ones.

    Returns
    -------
    format : str
        "" if these are not dates.
    ambiguous : bool
        01/02/2020 may be in January or February; it is then read as in February.

    Examples
    --------
    >>> find_format(["13.01.2020", "01.02.2020"])
    ('%d.%m.%Y', False)
    >>> find_format(["north", "south"])
    ('', False)
    """
    distinct, counts = np.unique(np.asarray(cells, dtype=object), return_counts=True)
    step = -(-len(distinct) // N_TRIED) or 1
    some, counts = [_with_possible_year(cell) for cell in distinct[::step]], counts[::step]
    share = lambda good: float(np.average(good, weights=counts)) if some else 0.0
    if share([LIKE_DATE.fullmatch(c) is not None for c in some]) < ENOUGH:
        return "", False
    if share([LIKE_ISO.fullmatch(c) is not None for c in some]) >= ENOUGH:
        return (ISO, False) if share(~np.isnat(parse(some, ISO))) >= ENOUGH else ("", False)
    found: dict[str, float] = {}
    for hours in HOURS:
        for day in DAYS:
            found[day + hours] = share(~np.isnat(parse(some, day + hours)))
    best = max(found, key=lambda name: found[name])
    if found[best] < ENOUGH:
        return "", False
    other = best.replace(DAY_FIRST, MONTH_FIRST)
    return best, best != other and found[other] == found[best]


def example(form: str) -> str:
    """The last day of 2023 in a format.

    Examples
    --------
    >>> example("%d.%m.%Y"), example(ISO)
    ('31.12.2023', '2023-12-31')
    """
    day = datetime.datetime(2023, 12, 31, 14, 30)
    return day.strftime(form) if form and form != ISO else str(day.date())


def _with_possible_year(cell: str) -> str:
    """A cell with a year that every version of pandas reads, for a year that is out of range."""
    year = re.search(r"\d{4}", cell)
    if year is None or FIRST_YEAR <= int(year[0]) <= LAST_YEAR:
        return cell
    return f"{cell[: year.start()]}2000{cell[year.end() :]}"  # a leap year has all days


def parse(cells: Sequence[str], form: str) -> np.ndarray:
    """Dates in a format, NaT where a cell is none; times with a zone become UTC.

    Parameters
    ----------
    cells : sequence of str
    form : str
        From `find_format`.

    Returns
    -------
    ndarray of datetime64[us], shape (n,)
    """
    series = pd.Series(list(cells), dtype=object)
    if form == ISO:
        series = series.where([LIKE_ISO.fullmatch(str(c)) is not None for c in cells])
    times = pd.to_datetime(series, format=form, errors="coerce", utc=True)
    return times.dt.tz_localize(None).to_numpy().astype("datetime64[us]")


def parse_or_iso(cells: Sequence[str], form: str) -> np.ndarray:
    """Dates in a format or as in 2023-12-31, which no format can mistake; NaT where a cell is none.

    Parameters
    ----------
    cells : sequence of str
    form : str

    Returns
    -------
    ndarray of datetime64[us], shape (n,)

    Examples
    --------
    >>> parse_or_iso(["31.12.2023", "2023-12-31"], "%d.%m.%Y").astype("datetime64[D]").tolist()
    [datetime.date(2023, 12, 31), datetime.date(2023, 12, 31)]
    """
    found = parse(cells, form)
    rest = np.flatnonzero(np.isnat(found)).tolist()
    if form != ISO and len(rest):
        found[rest] = parse([cells[k] for k in rest], ISO)
    return found


def in_range(values: np.ndarray) -> np.ndarray:
    """Whether each date is between the years `FIRST_YEAR` and `LAST_YEAR`; NaT is not.

    Parameters
    ----------
    values : ndarray of datetime64, shape (n,)

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    first, after = np.datetime64(f"{FIRST_YEAR}-01-01"), np.datetime64(f"{LAST_YEAR + 1}-01-01")
    return (values >= first) & (values < after)


def times_of(hours: np.ndarray) -> np.ndarray:
    """Times of day as objects, None where there is none; the inverse of `parse_times`.

    Parameters
    ----------
    hours : ndarray, shape (n,)

    Returns
    -------
    ndarray of datetime.time or None, shape (n,)

    Examples
    --------
    >>> times_of(np.array([14.5, np.nan])).tolist()
    [datetime.time(14, 30), None]
    """
    day = 24 * 3600 * 10**6
    out = np.full(len(hours), None, dtype=object)
    for k in np.flatnonzero(~np.isnan(hours)):
        micros = min(round(float(hours[k]) * 3600e6), day - 1)
        out[k] = (datetime.datetime.min + datetime.timedelta(microseconds=micros)).time()
    return out


def parse_times(cells: Sequence[Any]) -> np.ndarray:
    """Times of day in hours, NaN where a cell is none.

    Parameters
    ----------
    cells : sequence of str or datetime.time

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> parse_times(["14:30", "9:00:36", "noon"])
    array([14.5 ,  9.01,   nan])
    """
    out = np.full(len(cells), np.nan)
    for k, cell in enumerate(cells):
        if isinstance(cell, datetime.time):
            out[k] = cell.hour + cell.minute / 60 + (cell.second + cell.microsecond / 1e6) / 3600
        elif found := LIKE_TIME.fullmatch(str(cell).strip()):
            hours, minutes, seconds = found.groups()
            out[k] = int(hours) + int(minutes) / 60 + float(seconds or 0) / 3600
    return out
