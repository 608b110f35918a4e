"""Dates and times of day as numbers: the time that has passed, and points on circles."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

# Periods of the circles in days, by part of a date.
PERIODS = {"season": 365.2425, "week": 7.0, "day": 1.0}


def days_of(moments: np.ndarray) -> np.ndarray:
    """Dates in days since 1970, NaN where there is none."""
    days = moments.astype("datetime64[us]").astype(np.int64) / 86_400e6
    return np.where(np.isnat(moments), np.nan, days)


def covered_parts(days: np.ndarray) -> tuple[str, ...]:
    """Parts of dates that a table covers: a year of seasons, two weeks, hours of the day."""
    span = float(np.ptp(days)) if len(days) else 0.0
    covered = {
        "season": span >= PERIODS["season"],
        "week": span >= 14 and len(np.unique(np.floor(days) % 7)) > 2,
        "day": len(days) > 0 and np.ptp(days % 1.0) > 0,
    }
    return ("elapsed", *(part for part, enough in covered.items() if enough))


def encode_parts(days: np.ndarray, parts: Iterable[str]) -> np.ndarray:
    """The columns of some parts, shape (n, n_columns): a circle takes two."""
    columns = []
    for part in parts:
        if part == "elapsed":
            columns.append(days)
        else:
            angle = 2 * np.pi * days / PERIODS[part]
            columns += [np.sin(angle), np.cos(angle)]
    return np.column_stack(columns)
