"""Tables of numbers from CSV, TSV and Parquet files; errors name the line and the column."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MAX_FEATURES = 2000
MIN_ROWS = 5
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "#n/a"})
TABS = (".tsv", ".tab")
HINT = "; correct it, or leave the column out with --features"
PARQUET = (".parquet", ".pq")
# A quoted cell may not swallow the rest of a file because of a stray quotation mark.
csv.field_size_limit(1_000_000)


class TableError(Exception):
    """Something about the file or the columns asked for; the text is one line for the user."""


def read(
    path: str | Path,
    targets: Sequence[str] = (),
    features: Sequence[str] | None = None,
    min_rows: int = MIN_ROWS,
) -> pd.DataFrame:
    """Features and then targets as numbers; the index is the line of the file, the header's is 1.

    Parameters
    ----------
    path : path
        CSV, TSV or Parquet, told apart by the name's ending. Separators , ; tab and | are found
        from the header.
    targets : sequence of str
    features : sequence of str, optional
        All columns but the targets if None.
    min_rows : int
        Fewer rows are refused.
    """
    path = Path(path)
    _check_file(path)
    if path.suffix.lower() in PARQUET:
        frame = _read_parquet(path, targets, features)
    else:
        frame = _read_text(path, targets, features)
    if len(frame) < min_rows:
        raise TableError(f"{path} has {len(frame)} row(s) of data; at least {min_rows} are needed.")
    return frame


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
def _read_text(path: Path, targets, features) -> pd.DataFrame:
    import pandas as pd

    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            header_line = file.readline()
            file.seek(0)
            rows = csv.reader(_lines(file), delimiter=_separator(path, header_line))
            header = [name.strip() for name in _next_row(rows)]
            _check_header(path, header)
            chosen = features is not None
            features = _select(path, header, targets, features)
            names = [*features, *targets]
            places = [header.index(name) for name in names]
            cells: list[list[str]] = []
            lines: list[int] = []
            for row in rows:
                if not row or (len(row) == 1 and not row[0].strip()):
                    continue
                if len(row) != len(header):
                    raise TableError(
                        f"{path}, line {rows.line_num}: {len(row)} cells, but the header has "
                        f"{len(header)}."
                    )
                cells.append([row[i] for i in places])
                lines.append(rows.line_num)
        except UnicodeDecodeError as error:
            raise TableError(
                f"{path} is not UTF-8 text (byte 0x{error.object[error.start]:02x} on or after "
                f"line {_line_of_bad_byte(path)}); save it as UTF-8."
            ) from error
        except csv.Error as error:
            raise TableError(f"{path}, line {rows.line_num}: {error}.") from error
    hint = "" if chosen else HINT
    columns = {
        name: _numbers([row[k] for row in cells], lines, path, name, hint)
        for k, name in enumerate(names)
    }
    return pd.DataFrame(columns, index=pd.Index(lines, name="line"), columns=names)


def _lines(file: TextIO) -> Iterator[str]:
    yield from file


def _next_row(rows) -> list[str]:
    """The first row that is not blank."""
    for row in rows:
        if any(cell.strip() for cell in row):
            return row
    return []


def _separator(path: Path, header: str) -> str:
    if path.suffix.lower() in TABS:
        return "\t"
    # A comma wins a tie: it is what the ending says.
    return max(",;\t|", key=header.count)


def _line_of_bad_byte(path: Path) -> int:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def _numbers(cells: list[str], lines: list[int], path: Path, name: str, hint: str) -> np.ndarray:
    values = np.empty(len(cells))
    for k, cell in enumerate(cells):
        try:
            values[k] = float(cell)
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
    if "," in text and _is_number(text.replace(",", ".", 1)):
        return f"'{text}' has a decimal comma; write it with a point."
    shown = text if len(text) <= 40 else text[:37] + "…"
    return f"{shown!r} is not a number{hint}."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# -------------------------------------------------------------------------------------- Parquet
def _read_parquet(path: Path, targets, features) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise TableError(
            f"{path}: reading Parquet needs pyarrow; install it with 'pip install pyarrow'."
        ) from None
    except Exception as error:
        raise TableError(f"{path} is not a Parquet file that can be read: {_line(error)}") from None
    header = [str(name) for name in frame.columns]
    frame.columns = pd.Index(header)
    _check_header(path, header, numeric_names=True)
    features = _select(path, header, targets, features)
    # As if it had been a CSV: the first row of data is line 2.
    frame = frame[[*features, *targets]]
    frame.index = pd.RangeIndex(2, len(frame) + 2, name="line")
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
    return pd.DataFrame(columns, index=frame.index, columns=frame.columns)


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


def _select(path: Path, header: list[str], targets, features) -> list[str]:
    """The features asked for, or all columns but the targets."""
    known = set(header)
    for name in [*targets, *(features or ())]:
        if name not in known:
            raise TableError(f"{path} has no column {name!r}{_known(name, header)}.")
    if len(set(targets)) < len(targets) or len(set(features or ())) < len(features or ()):
        raise TableError("A column was asked for twice.")
    both = [name for name in features or () if name in set(targets)]
    if both:
        raise TableError(f"Column {both[0]!r} cannot be a target and a feature.")
    if features is None:
        wanted = set(targets)
        features = [name for name in header if name not in wanted]
        if "" in features:
            place = header.index("") + 1
            raise TableError(
                f"{path}, line 1, column {place}: no name; name it, or choose columns with "
                "--features."
            )
    if not features:
        raise TableError(f"{path} has no column besides the target: nothing to predict from.")
    if len(features) > MAX_FEATURES:
        raise TableError(
            f"{path} has {len(features):,} input columns, more than the {MAX_FEATURES:,} that can "
            "be fitted; choose some with --features."
        )
    return list(features)


def _known(name: str, header: list[str]) -> str:
    """The nearest names, or all of them when they are few."""
    import difflib

    if len(header) <= 8:
        return "; it has " + ", ".join(repr(n) for n in header)
    close = difflib.get_close_matches(name, header[:5000], n=3, cutoff=0.5)
    return (
        f"; did you mean {' or '.join(repr(n) for n in close)}?"
        if close
        else (
            f"; it has {len(header):,} columns, the first {', '.join(repr(n) for n in header[:5])}"
        )
    )


def _line(error: BaseException) -> str:
    """The first line of an error's text."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
