"""Notes about numbers that may not be what the file means.

Thousands, integers beyond 2⁵³, and numbers too small for float64.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sbnn._core.text import plural
from sbnn.tables.numerals import OTHER, THOUSANDS, Signs, bare

EXACT = 2**53  # up to here, every integer is a float64
# An integer with zeros after its decimal sign, or with a sign between its thousands.
PLAIN = re.compile(r"([+-]?)0*(\d{1,400})([.,]0*)?")  # Python limits the digits of int()
GROUPED = re.compile(r"[+-]?\d{1,3}([ '’\u00a0\u202f.,])\d{3}(\1\d{3})+")


def about_thousands(
    path: Path, text: Mapping[str, Any], signs: Signs, fit: Signs | None = None
) -> list[str]:
    """Sentences about the signs in the numbers of a table, where they may be mistaken.

    Tables separated by semicolons come from places where the comma is the decimal sign and 1.234
    may be above a thousand, or from programs that write 1,234 for a thousand. If all signs may mark
    thousands, a sentence says how they are read. One number such as 1.5 or 0.250 anywhere shows
    that points are decimal.

    Parameters
    ----------
    path : Path
    text : mapping of str to sequence of str
        The columns that were read as numbers.
    signs : Signs
    fit : Signs, optional
        Those of the table of the fit, for new rows.

    Returns
    -------
    list of str

    Examples
    --------
    >>> columns = {"a": ["1.234", "12"], "b": ["1.5", "2"]}
    >>> about_thousands(Path("t.csv"), columns, Signs(";"))
    []
    >>> len(about_thousands(Path("t.csv"), {"a": ["1.234", "12"]}, Signs(";")))
    1
    """
    words = {",": "comma", ".": "point"}
    decimal, mark = signs.decimal, OTHER[signs.decimal]
    shown = {sign for sign in words for cells in text.values() for c in cells if sign in c}
    unlike = fit is not None and fit.known and fit.comma != signs.comma and bool(shown)
    if signs.separator == "," and not (signs.comma or unlike):
        return []
    marked = signs.thousands and mark in shown
    out = []
    if unlike or marked or (signs.comma and (shown or not signs.known)):
        also = f"; {words[mark]}s mark thousands (1{mark}234 is above a thousand)" if marked else ""
        half = f"1{decimal}5 is one and a half"
        like = f", unlike those of the fit, which have decimal {words[mark]}s" if unlike else ""
        like = ", as in the fit" if signs.known else like
        out = [f"{path}: reading numbers with decimal {words[decimal]}s ({half}){also}{like}."]
    doubtful = {} if marked or signs.known else _all_like_thousands(text, decimal)
    if not doubtful:
        return out
    name, cell = next(iter(doubtful.items()))
    others = f" (and {plural(len(doubtful) - 1, 'more column')})" if len(doubtful) > 1 else ""
    return [
        *out,
        f"{path}, column {name!r}{others}: {cell} is read with a decimal {words[decimal]}, as a "
        f"number below a thousand; if the {words[decimal]}s mark thousands, remove them.",
    ]


def _all_like_thousands(text: Mapping[str, Any], sign: str) -> dict[str, str]:
    """The first cell with a sign, by column; none if one of them cannot mark thousands."""
    found: dict[str, str] = {}
    for name, cells in text.items():
        for cell in cells:
            if sign in cell:
                if not THOUSANDS[sign].fullmatch(bare(cell.strip())):
                    return {}
                found.setdefault(name, cell.strip())
    return found


def about_large_integers(
    path: Path, cells: Mapping[str, Any], values: Mapping[str, np.ndarray], lines: Sequence[int]
) -> list[str]:
    """A sentence for each column with integers that change when they become float64.

    Parameters
    ----------
    path : Path
    cells : mapping of str to sequence
        The columns as in the file: text, integers or other numbers.
    values : mapping of str to array
        The same columns as float64.
    lines : sequence of int
        The line of each row.

    Returns
    -------
    list of str

    Examples
    --------
    >>> cells = {"id": ["1", "9007199254740993"]}
    >>> about_large_integers(Path("t.csv"), cells, {"id": np.array([1.0, 2.0**53])}, [2, 3])[0]
    "t.csv, line 3, column 'id': 9007199254740993 is read as 9007199254740992; ..."
    """
    out = []
    for name, column in values.items():
        large = np.flatnonzero(np.abs(column) >= EXACT)
        # int(): NumPy would round the integer before it compares.
        changed = [k for k in large if _whole(cells[name][k]) not in (None, int(column[k]))]
        if not changed:
            continue
        k, n_more = int(changed[0]), len(changed) - 1
        more = f" ({plural(n_more, 'more cell')} like it)" if n_more else ""
        out.append(
            f"{path}, line {lines[k]}, column {name!r}: {_whole(cells[name][k])} is read as "
            f"{int(column[k])}; integers beyond 2^53 lose digits{more}. Subtract a constant from "
            "the column, or exclude it if it only identifies rows."
        )
    return out


def about_vanishing_numbers(
    path: Path, cells: Mapping[str, Any], values: Mapping[str, np.ndarray], lines: Sequence[int]
) -> list[str]:
    """A sentence for each column with numbers so small that they become zero.

    Parameters
    ----------
    path, cells, values, lines
        See `about_large_integers`; cells are text.

    Returns
    -------
    list of str

    Examples
    --------
    >>> about_vanishing_numbers(Path("t.csv"), {"p": ["1e-400"]}, {"p": np.zeros(1)}, [2])
    ["t.csv, line 2, column 'p': 1e-400 is read as 0; numbers below 5e-324 are lost."]
    """
    out = []
    for name, column in values.items():
        for k in np.flatnonzero(column == 0.0).tolist():
            cell = cells[name][k].strip()
            if re.search("[1-9]", re.split("[eE]", cell)[0]):
                out.append(
                    f"{path}, line {lines[int(k)]}, column {name!r}: {cell} is read as 0; numbers "
                    "below 5e-324 are lost."
                )
                break
    return out


def _whole(cell: Any) -> int | None:
    """The integer that a cell holds, or None."""
    if isinstance(cell, str):
        text = cell.strip()
        grouped = GROUPED.fullmatch(text)
        found = PLAIN.fullmatch(text.replace(grouped[1], "") if grouped else text)
        return None if found is None else int(found[1] + found[2])
    return int(cell) if isinstance(cell, int | np.integer) else None
