"""Lines of a text table that are no rows: comments, and units below the header."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sbnn.tables.column_types import MISSING
from sbnn.tables.numerals import bare, is_written_number

if TYPE_CHECKING:
    import pandas as pd

COMMENT = "#"
# Cells that say whether a column holds numbers, and the share of them that must be numbers.
N_LOOKED_AT, NUMERIC = 50, 0.9


def is_comment(line: str) -> bool:
    """Whether a line or a cell begins as comments do."""
    return line.lstrip("\ufeff \t").startswith(COMMENT)


def count_comments(lines: Sequence[str], separator: str) -> int:
    """How many of the first lines are comments: those with # and other cells than the table has.

    A line such as #,a,b or # a,b above rows of as many cells is the header.

    Parameters
    ----------
    lines : sequence of str
    separator : str

    Returns
    -------
    int

    Examples
    --------
    >>> count_comments(["# made by x", "#", "a,b", "1,2"], ","), count_comments(["#,b", "1,2"], ",")
    (2, 0)
    """
    n = 0
    while n < len(lines) and (is_comment(lines[n]) or not lines[n].strip()):
        n += 1
    if n == len(lines):
        return 0
    width = _width(lines[n], separator)
    while n and (not lines[n - 1].strip() or _width(lines[n - 1], separator) == width):
        n -= 1
    return n


def _width(line: str, separator: str) -> int:
    try:
        return len(next(csv.reader([line], delimiter=separator), []))
    except csv.Error:
        return 1


def is_unit_row(cells: pd.DataFrame) -> bool:
    """Whether the first row holds units: no number in any of the columns of numbers.

    At least half of two or more such columns have a text there; otherwise it may be a row of its
    own with a wrong cell.

    Parameters
    ----------
    cells : DataFrame
        Strings.

    Returns
    -------
    bool
    """
    n_numeric = n_texts = 0
    for k in cells:
        first, *rest = cells[k].iloc[: N_LOOKED_AT + 1]
        filled = [c for c in rest if c.strip().lower() not in MISSING]
        if sum(map(_is_number, filled)) <= NUMERIC * len(filled):
            continue
        if _is_number(first):
            return False
        n_numeric += 1
        n_texts += first.strip().lower() not in MISSING
    return n_numeric > 1 and 2 * n_texts >= n_numeric


def _is_number(cell: str) -> bool:
    return is_written_number(bare(cell.strip().removesuffix("%")))
