"""Cells of a table by the type of their column; errors name the first wrong cell, count others."""

from __future__ import annotations

import heapq
import itertools
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from sbnn._core.text import plural
from sbnn.tables import dates
from sbnn.tables.column_types import MISSING, MISSING_TEXT, Column, ColumnType
from sbnn.tables.header import TableError, exclude_options, is_number
from sbnn.tables.numerals import LARGEST, PLAIN, SMALLEST, Cells, Signs, currency_of

MORE = 3
CHOICES = ("impute", "drop", "error")  # what to do about missing cells
# Categories with fewer rows than this on average do not describe rows but name them.
ROWS_PER_CATEGORY = 2


class Roles(NamedTuple):
    """Which columns are what, and how the user wants them read."""

    inputs: Sequence[str]
    targets: Sequence[str] = ()
    others: Sequence[str] = ()  # standard errors or weights of the rows
    categorical: Collection[str] = ()
    chosen: bool = False  # the user named the inputs
    missing: str = "impute"
    types: Mapping[str, ColumnType] | None = None  # of the inputs, from a fit
    signs: Signs | None = None  # in its numbers
    ignored: Collection[str] = ()  # inputs whose cells are missing if they cannot be read


class Typed(NamedTuple):
    """Columns by type, without those that say nothing, and the rows that are kept."""

    columns: dict[str, Column]
    keep: np.ndarray  # (n,), bool
    notes: list[str]  # what was left out, one line each


Read = Callable[[str, ColumnType | None, bool], Column]


def read_columns(
    path: Path,
    read: Read,
    show: Callable[[str, int], str],
    roles: Roles,
    lines: Sequence[int],
    signs: Signs = PLAIN,
) -> Typed:
    """Read all columns, raise TableError for wrong cells, and decide what is left out.

    Parameters
    ----------
    path : Path
        For messages, as are `lines`, the line of each row.
    read : function of (name, known type, whether categorical)
        Reads one column.
    show : function of (name, row)
        A cell as text, for messages.
    roles : Roles
    lines : sequence of int
    signs : Signs
        In the numbers of the table, for messages.

    Returns
    -------
    Typed
    """
    number, notes = ColumnType("number"), []
    found: dict[str, Column] = {}
    for name in roles.inputs:
        known = None if roles.types is None else roles.types[name]
        column = read(name, known, name in roles.categorical)
        found[name] = _without_wrong(column) if name in roles.ignored else column
    targets = {name: read(name, None, False) for name in roles.targets}
    if roles.types is None:
        notes += _leave_out(path, found, roles, _with_targets(targets.values(), len(lines)))
        notes += [
            f"{path}, column {name!r}: dates are read as day/month/year; if the month comes first, "
            "write them as 2020-12-31."
            for name, column in found.items()
            if column.ambiguous
        ]
    found |= targets | {name: read(name, number, False) for name in roles.others}
    check_targets(path, found, roles.targets, show)
    wrong = {}
    for name, column in found.items():
        bad = column.wrong
        strict = roles.missing == "error" or (roles.missing == "impute" and name in roles.others)
        wrong[name] = np.flatnonzero(bad | column.missing if strict else bad).tolist()
    wrong = {name: rows for name, rows in wrong.items() if rows}
    if wrong:
        name, k = first(wrong)
        hint = _hint(name, roles)
        kind, form = found[name].type
        fitted = (roles.types or {}).get(name)
        problem = fault(show(name, k), kind, hint, signs, form, bool(fitted and fitted.format))
        raise_for_cells(path, wrong, lines, problem)
    return Typed(found, *_rows_kept(path, found, roles, lines, notes))


def _without_wrong(column: Column) -> Column:
    """The column with its wrong cells missing."""
    values, wrong = column.values.copy(), column.wrong
    values[wrong] = np.datetime64("NaT") if values.dtype.kind == "M" else np.nan
    return column._replace(
        values=values, missing=column.missing | wrong, wrong=np.zeros_like(wrong)
    )


def _hint(name: str, roles: Roles) -> str:
    if name in roles.targets:
        return "; correct it, or empty the cell to leave out the row"
    if roles.types is not None or name not in roles.inputs:
        return ""
    option = f"read the column as categories with --categorical {shlex.quote(name)}"
    if roles.chosen:
        return f"; correct it, or {option}"
    return f"; correct it, leave the column out with --exclude, or {option}"


def is_identifier(n_categories: int, n_rows: int) -> bool:
    """Whether texts name rows rather than describe them: nearly as many texts as rows."""
    return n_categories > 1 and n_categories * ROWS_PER_CATEGORY > n_rows


def _with_targets(targets: Iterable[Column], n_rows: int) -> np.ndarray:
    """Whether each row has a value of every target."""
    out = np.ones(n_rows, dtype=bool)
    for column in targets:
        out &= ~column.missing
    return out


def _leave_out(path: Path, found: dict[str, Column], roles: Roles, kept: np.ndarray) -> list[str]:
    """Remove empty columns and identifiers; raise if the user asked for one of them.

    Only the rows `kept` count.
    """
    notes = []
    for name, column in list(found.items()):
        missing, values = column.missing[kept], column.values[kept]
        n, filled = len(missing), int((~missing).sum())
        different = len(set(values[~missing])) if column.type.kind == "category" else 0
        if not filled and n:
            why, todo = "is empty", ""
        elif is_identifier(different, filled) and name not in roles.categorical:
            why = f"holds {different:,} different texts in {plural(filled, 'row')}"
            todo = ", such as names or identifiers, from which nothing can be learned"
        else:
            continue
        if roles.chosen:
            raise TableError(f"{path}: column {name!r} {why}{todo}; leave it out of --features.")
        del found[name]
        notes.append(f"{path}: ignoring column {name!r}, which {why}{todo}.")
    if not found:
        raise TableError(f"{path}: no column is left to predict from. {' '.join(notes)}")
    return notes


def _rows_kept(
    path: Path,
    found: Mapping[str, Column],
    roles: Roles,
    lines: Sequence[int],
    notes: list[str],
) -> tuple[np.ndarray, list[str]]:
    keep = _with_targets([found[name] for name in roles.targets], len(lines))
    if not keep.all():
        text = f"{plural(int((~keep).sum()), 'row')} without a value of the target"
        notes = [*notes, f"{path}: {text} left out."]
    if roles.missing == "drop":
        complete = keep.copy()
        for column in found.values():
            complete &= ~column.missing
        if not complete.all():
            dropped = int(keep.sum() - complete.sum())
            notes = [*notes, f"{path}: {plural(dropped, 'row')} with missing cells left out."]
        keep = complete
    return keep, notes


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


def fault(
    cell: str,
    kind: str = "number",
    hint: str = "",
    signs: Signs = PLAIN,
    form: str = "",
    of_fit: bool = False,
) -> str:
    """What is wrong with a cell; `kind` and `form` are those of the column, see `ColumnType`.

    `of_fit` says that `form` is that of a fit, and the cell that of a new row.
    """
    text, whose = cell.strip(), "the fit" if signs.known else "this table"
    if text.lower() in (MISSING_TEXT if kind == "category" else MISSING):
        shown = f"'{text}'" if text else "an empty cell"
        return f"{shown} is a missing value; fill it in or remove the row."
    shown = repr(text if len(text) <= 40 else text[:37] + "…")
    if kind == "date":
        year = re.search(r"\d{4}", text)
        if year is not None and not dates.FIRST_YEAR <= int(year[0]) <= dates.LAST_YEAR:
            first, last = dates.FIRST_YEAR, dates.LAST_YEAR
            return f"{shown} is outside the years {first} to {last}{hint or '; correct it'}."
        like = dates.example(form)
        return f"{shown} is not a date like the others in the column, such as {like}{hint}."
    if kind == "time":
        return f"{shown} is not a time of day such as 14:30{hint}."
    if kind == "boolean":
        return f"{shown} is neither true nor false{hint}."
    if text.lower().lstrip("+-") in ("inf", "infinity"):
        return f"'{text}' is infinite; every value must be finite."
    if form and (currency := currency_of(text)) not in ("", form):
        held = f"the fit had amounts in {form} there" if of_fit else f"the column is in {form}"
        return f"{shown} is an amount in {currency}, but {held}{hint or '; convert it'}."
    if kind == "percent" and is_number(text.replace(",", "")):
        remedy = hint or f"; write {text} % if it is one"
        return f"{shown} has no percent sign, but the column holds percentages{remedy}."
    if kind == "number" and text.endswith("%") and is_number(text[:-1].replace(",", "")):
        return f"{shown} has a percent sign, but the column does not hold percentages{hint}."
    if signs.comma and is_number(text.replace(",", "")):
        if "." in text:
            return f"{shown} has a point, but the numbers of {whose} have decimal commas{hint}."
    elif is_number(digits := text.replace(".", "").replace(",", "")):
        if "," in text and text.rfind(",") > text.rfind(".") >= 0:
            return (
                f"'{text}' has a decimal comma, but other numbers of this table do not; write all "
                "numbers with the same decimal sign."
            )
        if text.count(".") > 1:
            return f"'{text}' has {text.count('.')} points; write {digits} if they mark thousands."
        if "," in text:
            rule = (
                f"The numbers of {whose} have decimal points."
                if signs.known
                else "Decimal commas are read if semicolons separate the cells and no number has a "
                "decimal point."
            )
            return (
                f"'{text}' has a comma; write {text.replace(',', '')} if it separates thousands, "
                f"or a decimal point if it separates decimals. {rule}"
            )
    if is_number(text) and "_" not in text and abs(float(text)) > LARGEST:
        return f"{shown} exceeds the limit of 1e150; rescale the column."
    return f"{shown} is not a number{hint}."


def check_targets(
    path: Path,
    found: Mapping[str, Column],
    targets: Collection[str],
    show: Callable[[str, int], str],
) -> None:
    """Raise TableError if a target holds class labels or dates instead of numbers."""
    for name in targets:
        column = found[name]
        if column.type.kind in ("number", "percent"):
            continue
        if column.type.kind == "empty":
            raise TableError(f"{path}: the target {name!r} is empty; there is nothing to predict.")
        k = int(np.argmin(column.missing))
        what = {"date": "dates", "time": "times of day"}.get(column.type.kind, "text")
        classes = "" if what != "text" else "; sbnn does regression and cannot predict classes"
        raise TableError(
            f"{path}: the target {name!r} holds {what} (such as {show(name, k).strip()[:20]!r}), "
            f"not numbers{classes}."
        )


def raise_for_text(path: Path, what: str, words: Mapping[str, str], hint: bool) -> NoReturn:
    """Name columns that cannot be used, each with an example; `hint` suggests to exclude them."""
    shown = [f"{n!r} (such as {w!r})" for n, w in itertools.islice(words.items(), 8)]
    rest = f" and {len(words) - 8} more" if len(words) > 8 else ""
    todo = f"; exclude columns that are not inputs: {exclude_options(list(words))}" if hint else ""
    raise TableError(
        f"{path}: {what} in {plural(len(words), 'column')}: {', '.join(shown)}{rest}{todo}"
    )


def text_reader(text: Mapping[str, Cells], signs: Signs) -> Read:
    """A `Read` for the columns of a text table."""
    from sbnn.tables.column_types import read_text

    return lambda name, known, categorical: read_text(text[name], known, categorical, signs)
