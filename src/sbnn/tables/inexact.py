"""Notes about numbers that may not be what the file means: thousands, and integers beyond 2⁵³."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sbnn._core.text import plural

EXACT = 2**53  # up to here, every integer is a float64
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*")


def about_thousands(path: Path, text: Mapping[str, Any], separator: str) -> list[str]:
    """A sentence if all points of a table separated by semicolons may mark thousands.

    Such tables come from places where the comma is the decimal sign and 1.234 may be above a
    thousand. One number such as 1.5 or 0.250 anywhere shows that points are decimal.

    Parameters
    ----------
    path : Path
    text : mapping of str to sequence of str
        The columns that were read as numbers.
    separator : str

    Returns
    -------
    list of str

    Examples
    --------
    >>> about_thousands(Path("t.csv"), {"a": ["1.234", "12"], "b": ["1.5", "2"]}, ";")
    []
    >>> len(about_thousands(Path("t.csv"), {"a": ["1.234", "12"]}, ";"))
    1
    """
    if separator != ";":
        return []
    found: dict[str, str] = {}
    for name, cells in text.items():
        for cell in cells:
            if "." in cell:
                if not THOUSANDS.fullmatch(cell):
                    return []
                found.setdefault(name, cell.strip())
    if not found:
        return []
    name, cell = next(iter(found.items()))
    others = f" (and {plural(len(found) - 1, 'more column')})" if len(found) > 1 else ""
    return [
        f"{path}, column {name!r}{others}: {cell} is read with a decimal point, as a number below "
        "a thousand; if the points mark thousands, remove them."
    ]


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


def _whole(cell: Any) -> int | None:
    """The integer that a cell holds, or None."""
    if isinstance(cell, str):
        text = cell.strip()
        found = re.fullmatch(r"([+-]?)0*(\d{1,400})", text)  # Python limits the digits of int()
        return None if found is None else int(found[1] + found[2])
    return int(cell) if isinstance(cell, int | np.integer) else None
