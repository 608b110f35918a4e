"""Cells of a text table as numbers; those that are none are counted, and the first is named."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from sbnn._core.text import plural
from sbnn.tables.header import TableError, exclude_options, is_number

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "#n/a"})
HINT = "; correct it, or leave the column out with --exclude"
MORE = 3
# Scores are made of squares, and these must neither be infinite nor vanish.
LARGEST, SMALLEST = 1e150, 1e-150


def numbers(
    path: Path,
    text: Mapping[str, list[str]],
    lines: Sequence[int],
    comma: bool,
    optional: Iterable[str] = (),
) -> dict[str, np.ndarray]:
    """Columns of text as numbers; `optional` are those that need not be there."""
    found = {}
    wrong: dict[str, list[int]] = {}
    for name, cells in text.items():
        found[name] = values = np.empty(len(cells))
        bad = []
        for k, cell in enumerate(cells):
            try:
                values[k] = float(cell.replace(",", ".", 1) if comma else cell)
                if not abs(values[k]) <= LARGEST or "_" in cell:
                    bad.append(k)
            except ValueError:
                bad.append(k)
        if bad:
            wrong[name] = bad
    if wrong:
        name, k = first(wrong)
        told = fault(text[name][k], HINT if name in set(optional) else "")
        refuse(path, wrong, lines, told)
    return found


def first(wrong: Mapping[str, Sequence[int]]) -> tuple[str, int]:
    """Column and row of the first of some cells, by row."""
    name = min(wrong, key=lambda n: wrong[n][0])
    return name, int(wrong[name][0])


def refuse(path: Path, wrong: Mapping[str, Sequence[int]], lines: Sequence[int], told: str) -> None:
    """Name the first cell that is no number and what it is; count the others, and name some."""
    name, k = first(wrong)
    order = {name: place for place, name in enumerate(wrong)}
    cells = ((row, order[n], n) for n, rows in wrong.items() for row in rows[: MORE + 1])
    _, *others = heapq.nsmallest(MORE + 1, cells)
    n_more = sum(map(len, wrong.values())) - 1
    places = "; ".join(f"line {lines[row]}, column {n!r}" for row, _, n in others)
    raise TableError(f"{path}, line {lines[k]}, column {name!r}: {told}{more(n_more, places)}")


def more(n: int, places: str, what: str = "cell") -> str:
    """How many more there are like one that was named, and where."""
    if not n:
        return ""
    return (
        f" And {n:,} more {what if n == 1 else what + 's'}{':' if n <= MORE else ', as'} {places}."
    )


def check_spread(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Refuse targets that vary so little that the squares vanish."""
    for name, values in columns.items():
        if len(values) and 0 < np.ptp(values) < SMALLEST:
            raise TableError(
                f"{path}, column {name!r} varies by {np.ptp(values):.2g} only; give it in another "
                "unit: squares of numbers below 1e-150 are lost."
            )


def fault(cell: str, hint: str = "") -> str:
    """What is wrong with a cell that is no finite number."""
    text = cell.strip()
    if text.lower() in MISSING:
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
        return f"{shown!r} is too large, as all above 1e150; give the column in another unit."
    return f"{shown!r} is not a number{hint}."


def decimal_comma(columns: Iterable[list[str]], separator: str) -> bool:
    """Whether numbers are written 1,5: some have one comma, and none has a point.

    Tabs and bars also separate tables with 1,234 for a thousand. There a comma must at least once
    not be followed by three digits; a semicolon is what stands where the comma is the decimal one.
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


def check_text(path: Path, text: Mapping[str, list[str]]) -> None:
    """Columns nobody asked for that hold text instead of numbers are named, all of them at once."""
    words = {}
    for name, cells in text.items():
        filled = [cell for cell in cells if cell.strip().lower() not in MISSING]
        # 1,234.5 is a number that is written in a way of its own, and not text
        number = [is_number(cell.replace(",", "").replace(".", "")) for cell in filled[:50]]
        if filled and not any(number):
            words[name] = filled[0].strip()[:20]
    if words:
        refuse_text(path, "text, not numbers,", words)


def check_targets(path: Path, text: Mapping[str, list[str]]) -> None:
    """Targets that hold classes instead of numbers."""
    for name, cells in text.items():
        filled = [cell.strip() for cell in cells if cell.strip().lower() not in MISSING]
        if filled and not any(any(c.isdigit() for c in cell) for cell in filled):
            raise TableError(
                f"{path}: the target {name!r} holds text (such as {filled[0][:20]!r}), not "
                "numbers; classes cannot be predicted."
            )


def refuse_text(path: Path, what: str, words: Mapping[str, str], hint: bool = True) -> None:
    """Name columns that hold no numbers, each with an example."""
    shown = [f"{n!r} (such as {w!r})" for n, w in itertools.islice(words.items(), 8)]
    rest = f" and {len(words) - 8} more" if len(words) > 8 else ""
    todo = f"; leave out what is no input with {exclude_options(list(words))}" if hint else ""
    raise TableError(
        f"{path}: {what} in {plural(len(words), 'column')}: {', '.join(shown)}{rest}{todo}"
    )
