"""Tables of numbers from CSV, TSV and Parquet files; errors name the line and the column."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MAX_FEATURES = 2000
MIN_ROWS = 5
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "#n/a"})
TABS = (".tsv", ".tab")
HINT = "; correct it, or leave the column out with --exclude"
PARQUET = (".parquet", ".pq")
# A quoted cell may not swallow the rest of a file because of a stray quotation mark.
csv.field_size_limit(1_000_000)


class TableError(Exception):
    """Something about the file or the columns asked for; the text is one line for the user."""


class Table(NamedTuple):
    """What was read; the index of both frames is the line of the file, the header's is 1."""

    numbers: pd.DataFrame  # features, then targets
    whole: pd.DataFrame | None  # all columns as in the file; text where numbers does not have it
    decimal_comma: bool


def read(
    path: str | Path,
    targets: Sequence[str] = (),
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    min_rows: int = MIN_ROWS,
    whole: bool = False,
) -> Table:
    """Read features and targets as numbers; other columns may hold anything.

    Parameters
    ----------
    path : path
        CSV, TSV or Parquet, told apart by the name's ending. Separators , ; tab and | are found
        from the first lines. Where it is no comma, numbers may have a decimal comma.
    targets : sequence of str
    features : sequence of str, optional
        Names, or several of them as "a,b"; all columns but the targets if None.
    exclude : sequence of str
        Columns that are no features, given in the same way.
    min_rows : int
        Fewer rows are refused.
    whole : bool
        Whether to return the other columns, too.
    """
    path = Path(path)
    _check_file(path)
    reader = _read_parquet if path.suffix.lower() in PARQUET else _read_text
    table = reader(path, targets, features, exclude, whole)
    n = len(table.numbers)
    if n < min_rows:
        raise TableError(f"{path} has {n} row(s) of data; at least {min_rows} are needed.")
    return table


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise TableError(f"{path} is a folder; give a CSV, TSV or Parquet file.")
    if not path.exists():
        raise TableError(f"{path} does not exist.")
    try:
        empty = path.stat().st_size == 0
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from error
    if empty and path.is_file():
        raise TableError(f"{path} is empty; a header with column names and rows are expected.")
    if path.suffix.lower() in PARQUET:
        return
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TableError(f"{path} is UTF-16 text; save it as UTF-8 (in Excel: 'CSV UTF-8').")
    if start[:4] == b"PAR1":
        raise TableError(f"{path} is a Parquet file; give it a name that ends in .parquet.")
    if b"\0" in start or start[:2] == b"PK":
        raise TableError(f"{path} is not a text table; export it as CSV first.")


# ---------------------------------------------------------------------------------- CSV and TSV
def _read_text(path: Path, targets, features, exclude, whole: bool) -> Table:
    import pandas as pd

    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            separator = _separator(path, list(itertools.islice(file, 20)))
            file.seek(0)
            rows = csv.reader(_lines(file), delimiter=separator)
            header = [name.strip() for name in _next_row(rows)]
            _check_header(path, header)
            chosen = features is not None
            features = _select(path, header, targets, features, exclude)
            cells: list[list[str]] = []
            lines: list[int] = []
            for row in rows:
                if not row or (len(row) == 1 and not row[0].strip()):
                    continue
                if len(row) != len(header):
                    raise TableError(
                        f"{path}, line {rows.line_num}: {len(row)} cells, but the header has "
                        f"{len(header)}{_decimal_hint(row, header, separator)}."
                    )
                cells.append(row)
                lines.append(rows.line_num)
        except UnicodeDecodeError as error:
            raise TableError(
                f"{path} is not UTF-8 text (byte 0x{error.object[error.start]:02x} on or after "
                f"line {_line_of_bad_byte(path)}); save it as UTF-8 (in Excel: 'CSV UTF-8')."
            ) from error
        except csv.Error as error:
            raise TableError(f"{path}, line {rows.line_num}: {error}.") from error
    place = {name: k for k, name in enumerate(header)}
    text = {name: [row[place[name]] for row in cells] for name in [*features, *targets]}
    comma = separator != "," and _decimal_comma(text.values(), separator)
    hint = "" if chosen else HINT
    columns = {
        name: _numbers(column, lines, path, name, hint, comma) for name, column in text.items()
    }
    index = pd.Index(lines, name="line")
    numbers = pd.DataFrame(columns, index=index, columns=list(columns))
    if not whole:
        return Table(numbers, None, comma)
    everything: dict[int, Any] = {
        k: columns[name] if name in columns else [row[k] for row in cells]
        for k, name in enumerate(header)
    }
    return Table(numbers, pd.DataFrame(everything, index=index).set_axis(header, axis=1), comma)


def _decimal_comma(columns: Iterable[list[str]], separator: str) -> bool:
    """Whether numbers are written 1,5: some have one comma, and none has a point.

    Tabs and bars also separate tables with 1,234 for a thousand. There a comma must at least once
    not be followed by three digits; a semicolon is what stands where the comma is the decimal one.
    """
    with_comma = []
    for column in columns:
        for cell in column:
            if "," in cell:
                with_comma.append(cell.strip())
            elif "." in cell and _is_number(cell):
                return False
    if not with_comma or not all(_is_number(c.replace(",", ".", 1)) for c in with_comma):
        return False
    return separator == ";" or any(len(c.partition(",")[2]) != 3 for c in with_comma)


def _decimal_hint(row: list[str], header: list[str], separator: str) -> str:
    if separator == "," and len(row) == 2 * len(header):
        return "; if numbers have decimal commas, separate the cells with semicolons"
    return ""


def _lines(file: TextIO) -> Iterator[str]:
    yield from file


def _next_row(rows) -> list[str]:
    """The first row that is not blank."""
    for row in rows:
        if any(cell.strip() for cell in row):
            return row
    return []


def _separator(path: Path, lines: list[str]) -> str:
    """The separator that splits header and first row alike.

    In a tie the comma comes last: it also stands in names and numbers.
    """
    if path.suffix.lower() in TABS:
        return "\t"
    head = [line for line in lines if line.strip()][:2]

    def cells(separator: str) -> list[int]:
        try:
            return [len(row) for row in csv.reader(head, delimiter=separator)] or [0]
        except csv.Error:  # one huge cell: not the separator
            return [0]

    fits = [s for s in ";\t|," if len(set(cells(s))) == 1 and cells(s)[0] > 1]
    return max(fits or ",;\t|", key=lambda s: cells(s)[0])


def _line_of_bad_byte(path: Path) -> int:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def _numbers(
    cells: list[str], lines: list[int], path: Path, name: str, hint: str, comma: bool
) -> np.ndarray:
    values = np.empty(len(cells))
    for k, cell in enumerate(cells):
        try:
            values[k] = float(cell.replace(",", ".", 1) if comma else cell)
            fine = math.isfinite(values[k]) and "_" not in cell
        except ValueError:
            fine = False
        if not fine:
            raise TableError(f"{path}, line {lines[k]}, column {name!r}: {_fault(cell, hint)}")
    return values


def _fault(cell: str, hint: str = "") -> str:
    text = cell.strip()
    if text.lower() in MISSING:
        shown = f"'{text}'" if text else "an empty cell"
        return f"{shown} is a missing value; fill it in or remove the row."
    if text.lower().lstrip("+-") in ("inf", "infinity"):
        return f"'{text}' is infinite; every value must be finite."
    if "," in text and _is_number(text.replace(".", "").replace(",", "")):
        return (
            f"'{text}' has a comma; write all numbers with a decimal point and no thousands "
            "separators, or separate the cells with semicolons and write decimal commas only."
        )
    shown = text if len(text) <= 40 else text[:37] + "…"
    return f"{shown!r} is not a number{hint}."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# -------------------------------------------------------------------------------------- Parquet
def _read_parquet(path: Path, targets, features, exclude, whole: bool) -> Table:
    import pandas as pd

    try:
        found = pd.read_parquet(path)
    except ImportError:
        raise TableError(
            f"{path}: reading Parquet needs pyarrow; install it with 'pip install pyarrow'."
        ) from None
    except Exception as error:
        raise TableError(f"{path} is not a Parquet file that can be read: {_line(error)}") from None
    header = [str(name) for name in found.columns]
    found.columns = pd.Index(header)
    _check_header(path, header, numeric_names=True)
    features = _select(path, header, targets, features, exclude)
    # As if it had been a CSV: the first row of data is line 2.
    found.index = pd.RangeIndex(2, len(found) + 2, name="line")
    frame = found[[*features, *targets]]
    columns = {}
    for name in frame.columns:
        kind = frame[name].dtype
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind)):
            first = "" if not len(frame) else f" (line 2 holds {str(frame[name].iloc[0])[:40]!r})"
            raise TableError(f"{path}, column {name!r}: not numbers but {kind}{first}.")
        values = frame[name].to_numpy(dtype=float, na_value=np.nan)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            fault = _fault("nan" if np.isnan(values[bad[0]]) else "inf")
            raise TableError(f"{path}, line {frame.index[bad[0]]}, column {name!r}: {fault}")
        columns[name] = values
    numbers = pd.DataFrame(columns, index=frame.index, columns=frame.columns)
    return Table(numbers, found if whole else None, False)


# ----------------------------------------------------------------------------------- the header
def _check_header(path: Path, header: list[str], numeric_names: bool = False) -> None:
    if not header:
        raise TableError(f"{path} holds blank lines only; a header and rows are expected.")
    if not numeric_names and all(_is_number(name) for name in header):
        raise TableError(
            f"{path}, line 1: all numbers, so there seems to be no header; "
            "put the names of the columns on the first line."
        )
    if len(set(header)) < len(header):
        seen: set[str] = set()
        for place, name in enumerate(header, start=1):
            if name in seen and name:
                raise TableError(
                    f"{path}, line 1, column {place}: the name {name!r} is there twice."
                )
            seen.add(name)


def _select(path: Path, header: list[str], targets, features, exclude) -> list[str]:
    """The features asked for, or all columns but the targets; without those excluded."""
    known = set(header)
    chosen = None if features is None else _split("--features", features, known)
    excluded = set(_split("--exclude", exclude, known))
    for name in [*targets, *(chosen or ()), *sorted(excluded)]:
        if name not in known:
            raise TableError(f"{path} has no column {name!r}{_known(name, header)}")
    if len(set(targets)) < len(targets) or len(set(chosen or ())) < len(chosen or ()):
        raise TableError("A column was asked for twice.")
    for name in targets:
        if name in (chosen or ()):
            raise TableError(f"Column {name!r} cannot be a target and a feature.")
        if name in excluded:
            raise TableError(f"Column {name!r} cannot be a target and excluded.")
    if chosen is None:
        chosen = [name for name in header if name not in {*targets, *excluded}]
        if "" in chosen:
            place = header.index("") + 1
            raise TableError(
                f"{path}, line 1, column {place}: no name; name it, or choose columns with "
                "--features."
            )
    chosen = [name for name in chosen if name not in excluded]
    if not chosen:
        raise TableError(f"{path} has no column besides the target: nothing to predict from.")
    if len(chosen) > MAX_FEATURES:
        raise TableError(
            f"{path} has {len(chosen):,} input columns, more than the {MAX_FEATURES:,} that can "
            "be fitted; choose some with --features."
        )
    return chosen


def _split(option: str, values: Sequence[str], known: set[str]) -> list[str]:
    """Names as they are, or "a,b" → a, b; a name with a comma may stand in quotation marks."""
    out: list[str] = []
    for value in values:
        if value in known:
            out.append(value)
            continue
        names = [name.strip() for name in next(csv.reader([value], skipinitialspace=True), [])]
        if not names or "" in names:
            raise TableError(f"{option} takes names of columns, as a,b,c; got {value!r}.")
        out += names if known.intersection(names) else [value]
    return out


def _known(name: str, header: list[str]) -> str:
    """The nearest name, or all of them when they are few."""
    import difflib

    as_small = {n.lower(): n for n in reversed(header[:5000])}
    close = difflib.get_close_matches(name.lower(), as_small, n=1, cutoff=0.6)
    meant = f"; did you mean {as_small[close[0]]!r}?" if close else ""
    few = header if len(header) <= 8 else header[:5]
    if close and len(few) < len(header):
        return meant
    which = "" if len(few) == len(header) else f"{len(header):,} columns, the first "
    return f"{meant or ';'} {'It' if close else 'it'} has {which}{', '.join(map(repr, few))}."


def _line(error: BaseException) -> str:
    """The first line of an error's text."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
