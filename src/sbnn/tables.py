"""Tables of numbers from CSV, TSV and Parquet files; errors name the line and the column."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from sbnn.columns import TableError, check_header, exclude_options, is_number, select
from sbnn.formats import plural

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS = 5
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "#n/a"})
TABS = (".tsv", ".tab")
HINT = "; correct it, or leave the column out with --exclude"
PARQUET = (".parquet", ".pq")
# A quoted cell may not swallow the rest of a file because of a stray quotation mark.
csv.field_size_limit(1_000_000)


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


def columns(path: str | Path) -> list[str]:
    """The names of the columns of a file."""
    path = Path(path)
    _check_file(path)
    if path.suffix.lower() in PARQUET:
        return [str(name) for name in _parquet(path).columns]
    with path.open(encoding="utf-8-sig", newline="", errors="replace") as file:
        separator = _separator(path, list(itertools.islice(file, 20)))
        file.seek(0)
        header = [name.strip() for name in _next_row(csv.reader(file, delimiter=separator))]
    check_header(path, header)
    return header


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
            check_header(path, header)
            chosen = features is not None
            features = select(path, header, targets, features, exclude)
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
    if not chosen:
        _check_text(path, {name: text[name] for name in features})
    hints = dict.fromkeys([] if chosen else features, HINT)
    found = {
        name: _numbers(column, lines, path, name, hints.get(name, ""), comma)
        for name, column in text.items()
    }
    index = pd.Index(lines, name="line")
    numbers = pd.DataFrame(found, index=index, columns=list(found))
    if not whole:
        return Table(numbers, None, comma)
    everything: dict[int, Any] = {
        k: found[name] if name in found else [row[k] for row in cells]
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
            elif "." in cell and is_number(cell):
                return False
    if not with_comma or not all(is_number(c.replace(",", ".", 1)) for c in with_comma):
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


def _check_text(path: Path, text: dict[str, list[str]]) -> None:
    """Columns nobody asked for that hold text instead of numbers are named, all of them at once."""
    words = {}
    for name, cells in text.items():
        filled = [cell for cell in cells if cell.strip().lower() not in MISSING]
        # 1,234.5 is a number that is written in a way of its own, and not text
        number = [is_number(cell.replace(",", "").replace(".", "")) for cell in filled[:50]]
        if filled and not any(number):
            words[name] = filled[0].strip()[:20]
    if not words:
        return
    shown = [f"{name!r} (such as {word!r})" for name, word in itertools.islice(words.items(), 8)]
    more = f" and {len(words) - 8} more" if len(words) > 8 else ""
    raise TableError(
        f"{path}: text, not numbers, in {plural(len(words), 'column')}: {', '.join(shown)}{more}; "
        f"leave out what is no input with {exclude_options(list(words))}"
    )


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
    if "," in text and is_number(text.replace(".", "").replace(",", "")):
        return (
            f"'{text}' has a comma; write all numbers with a decimal point and no thousands "
            "separators, or separate the cells with semicolons and write decimal commas only."
        )
    shown = text if len(text) <= 40 else text[:37] + "…"
    return f"{shown!r} is not a number{hint}."


# -------------------------------------------------------------------------------------- Parquet
def _parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError:
        raise TableError(
            f"{path}: reading Parquet needs pyarrow; install it with 'pip install pyarrow'."
        ) from None
    except Exception as error:
        raise TableError(f"{path} is not a Parquet file that can be read: {_line(error)}") from None


def _read_parquet(path: Path, targets, features, exclude, whole: bool) -> Table:
    import pandas as pd

    found = _parquet(path)
    header = [str(name) for name in found.columns]
    found.columns = pd.Index(header)
    check_header(path, header, numeric_names=True)
    chosen = features is not None
    features = select(path, header, targets, features, exclude)
    # As if it had been a CSV: the first row of data is line 2.
    found.index = pd.RangeIndex(2, len(found) + 2, name="line")
    frame = found[[*features, *targets]]
    kinds = frame.dtypes
    words = [n for n in frame if not pd.api.types.is_numeric_dtype(kinds[n])]
    if words:
        shown = [f"{name!r} ({kinds[name]})" for name in words[:8]]
        more = f" and {len(words) - 8} more" if len(words) > 8 else ""
        asked = chosen or set(words) & set(targets)
        hint = "" if asked else f"; leave out what is no input with {exclude_options(words)}"
        raise TableError(
            f"{path}: not numbers in {plural(len(words), 'column')}: {', '.join(shown)}{more}{hint}"
        )
    columns = {}
    for name in frame.columns:
        values = frame[name].to_numpy(dtype=float, na_value=np.nan)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            fault = _fault("nan" if np.isnan(values[bad[0]]) else "inf")
            raise TableError(f"{path}, line {frame.index[bad[0]]}, column {name!r}: {fault}")
        columns[name] = values
    numbers = pd.DataFrame(columns, index=frame.index, columns=frame.columns)
    return Table(numbers, found if whole else None, False)


def _line(error: BaseException) -> str:
    """The first line of an error's text."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
