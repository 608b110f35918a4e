"""Cells of a text table as numbers; errors name the first wrong cell and count the others."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from sbnn._core.text import plural
from sbnn.tables.header import TableError, exclude_options, is_number

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "#n/a"})
HINT = "; correct it, or leave the column out with --exclude"
MORE = 3
# Scores square the values, and the squares must neither overflow nor vanish.
LARGEST, SMALLEST = 1e150, 1e-150

Cells = Sequence[str] | np.ndarray  # strings


def as_numbers(
    path: Path,
    text: Mapping[str, Cells],
    lines: Sequence[int],
    separator: str,
    targets: Collection[str],
    chosen: bool,
    others: Collection[str] = (),
) -> tuple[dict[str, np.ndarray], bool]:
    """Columns of text as numbers, and whether they have decimal commas.

    Parameters
    ----------
    path : Path
        For error messages, as are `lines`, the line of each row.
    text : mapping of str to sequence of str
        The columns, targets among them.
    lines : sequence of int
    separator : str
        Between cells; if it is a comma, numbers cannot have decimal commas.
    targets : collection of str
    chosen : bool
        Whether the user named the features; if not, errors suggest excluding a column.
    others : collection of str
        Columns that are neither features nor targets.

    Returns
    -------
    values : dict of str to array
    comma : bool
    """
    values = {}
    for name, cells in text.items():
        converted = _convert(cells)
        if converted is None:
            break
        values[name] = converted
    else:  # the usual case: all numbers, no comma anywhere
        return values, False
    comma = decimal_comma(text.values(), separator)
    inputs = {n: cells for n, cells in text.items() if n not in targets and n not in others}
    if not chosen:
        check_text(path, inputs)
    check_targets(path, {name: text[name] for name in text if name in targets})
    wrong = {}
    for name, cells in text.items():
        values[name], wrong[name] = _convert_each(cells, comma)
    wrong = {name: rows for name, rows in wrong.items() if rows}
    if wrong:
        name, k = first(wrong)
        hint = HINT if not chosen and name in inputs else ""
        raise_for_cells(path, wrong, lines, fault(text[name][k], hint))
    return values, comma


def _convert(cells: Cells) -> np.ndarray | None:
    """The numbers in a column, or None if one of its cells is not a number."""
    try:
        # NumPy calls float() on each: correctly rounded, unlike pandas.to_numeric.
        values = np.asarray(cells, dtype=object).astype(float)
    except ValueError:
        return None
    if not (np.abs(values) <= LARGEST).all() or any("_" in cell for cell in cells):
        return None
    return values


def _convert_each(cells: Cells, comma: bool) -> tuple[np.ndarray, list[int]]:
    """The numbers in a column, and the rows without one."""
    values, wrong = np.empty(len(cells)), []
    for k, cell in enumerate(cells):
        try:
            values[k] = float(cell.replace(",", ".", 1) if comma else cell)
            if not abs(values[k]) <= LARGEST or "_" in cell:
                wrong.append(k)
        except ValueError:
            wrong.append(k)
    return values, wrong


def first(wrong: Mapping[str, Sequence[int]]) -> tuple[str, int]:
    """Column and row of the first of some cells, by row."""
    name = min(wrong, key=lambda n: wrong[n][0])
    return name, int(wrong[name][0])


def raise_for_cells(
    path: Path, wrong: Mapping[str, Sequence[int]], lines: Sequence[int], problem: str
) -> NoReturn:
    """Say what is wrong with the first cell; count the others and name some of them."""
    name, k = first(wrong)
    order = {name: place for place, name in enumerate(wrong)}
    cells = ((row, order[n], n) for n, rows in wrong.items() for row in rows[: MORE + 1])
    _, *others = heapq.nsmallest(MORE + 1, cells)
    n_more = sum(map(len, wrong.values())) - 1
    places = "; ".join(f"line {lines[row]}, column {n!r}" for row, _, n in others)
    raise TableError(f"{path}, line {lines[k]}, column {name!r}: {problem}{more(n_more, places)}")


def more(n: int, places: str, what: str = "cell") -> str:
    """How many more there are like the one named, and where."""
    if not n:
        return ""
    return f" And {plural(n, f'more {what}')}{':' if n <= MORE else ', such as'} {places}."


def check_spread(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Raise TableError for targets that vary so little that their squares vanish."""
    for name, values in columns.items():
        if len(values) and 0 < np.ptp(values) < SMALLEST:
            raise TableError(
                f"{path}, column {name!r} varies by only {np.ptp(values):.2g}; rescale it: squares "
                "of numbers below 1e-150 are lost."
            )


def fault(cell: str, hint: str = "") -> str:
    """What is wrong with a cell that is not a finite number."""
    text = cell.strip()
    if text.lower() in MISSING or text.lower() in ("+nan", "-nan"):
        shown = f"'{text}'" if text else "an empty cell"
        return f"{shown} is a missing value; fill it in or remove the row."
    if text.lower().lstrip("+-") in ("inf", "infinity"):
        return f"'{text}' is infinite; every value must be finite."
    if "," in text and is_number(text.replace(".", "").replace(",", "")):
        return (
            f"'{text}' has a comma; write all numbers with a decimal point and no thousands "
            "separators, or separate the cells with semicolons and write decimal commas only."
        )
    shown = text if len(text) <= 40 else text[:37] + "…"
    if is_number(text) and "_" not in text:
        return f"{shown!r} exceeds the limit of 1e150; rescale the column."
    return f"{shown!r} is not a number{hint}."


def decimal_comma(columns: Iterable[Cells], separator: str) -> bool:
    """Whether numbers are written 1,5: some have one comma, and none has a point.

    Tables separated by tabs or bars may also write a thousand as 1,234. There, at least one comma
    must not be followed by three digits. A semicolon is used where the comma is the decimal sign.
    """
    if separator == ",":
        return False
    with_comma = []
    for column in columns:
        for cell in column:
            if "," in cell:
                with_comma.append(cell.strip())
            elif "." in cell and is_number(cell):
                return False
    if not with_comma or not all(is_number(c.replace(",", ".", 1)) for c in with_comma):
        return False
    return separator == ";" or any(len(c.partition(",")[2]) != 3 for c in with_comma)


def check_text(path: Path, text: Mapping[str, Cells]) -> None:
    """Raise TableError if columns hold text instead of numbers, naming all of them."""
    words = {}
    for name, cells in text.items():
        filled = [cell for cell in cells if cell.strip().lower() not in MISSING]
        # 1,234.5 is a number written in an unusual way, not text
        number = [is_number(cell.replace(",", "").replace(".", "")) for cell in filled[:50]]
        if filled and not any(number):
            words[name] = filled[0].strip()[:20]
    if words:
        raise_for_text(path, "text instead of numbers", words)


def check_targets(path: Path, text: Mapping[str, Cells]) -> None:
    """Raise TableError if a target holds class labels instead of numbers."""
    for name, cells in text.items():
        filled = [cell.strip() for cell in cells if cell.strip().lower() not in MISSING]
        if filled and not any(any(c.isdigit() for c in cell) for cell in filled):
            raise TableError(
                f"{path}: the target {name!r} holds text (such as {filled[0][:20]!r}), not "
                "numbers; sbnn does regression and cannot predict classes."
            )


def raise_for_text(path: Path, what: str, words: Mapping[str, str], hint: bool = True) -> NoReturn:
    """Name columns without numbers, each with an example."""
    shown = [f"{n!r} (such as {w!r})" for n, w in itertools.islice(words.items(), 8)]
    rest = f" and {len(words) - 8} more" if len(words) > 8 else ""
    todo = f"; exclude columns that are not inputs: {exclude_options(list(words))}" if hint else ""
    raise TableError(
        f"{path}: {what} in {plural(len(words), 'column')}: {', '.join(shown)}{rest}{todo}"
    )
