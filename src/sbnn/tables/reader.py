"""Tables of numbers from CSV, TSV and Parquet files; errors name the line and the column."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sbnn._core.text import plural
from sbnn.tables.cells import (
    LARGEST,
    MORE,
    check_spread,
    check_targets,
    check_text,
    decimal_comma,
    fault,
    first,
    more,
    numbers,
    refuse,
    refuse_text,
)
from sbnn.tables.encoding import codec_of
from sbnn.tables.header import TableError, check_header, nearest, select, without_unnamed

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS = 5
TABS = (".tsv", ".tab")
PARQUET = (".parquet", ".pq")
# A quoted cell may not swallow the rest of a file because of a stray quotation mark.
csv.field_size_limit(1_000_000)


class Table(NamedTuple):
    """What was read; the index of both frames is the line of the file, the header's is 1."""

    numbers: pd.DataFrame  # features, then targets
    whole: pd.DataFrame | None  # all columns as in the file, header too: text, if it is CSV
    separator: str
    decimal_comma: bool
    notes: tuple[str, ...]  # what was guessed, one line each


def read(
    path: str | Path,
    targets: Sequence[str] = (),
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    min_rows: int = MIN_ROWS,
    whole: bool = False,
    encoding: str | None = None,
) -> Table:
    """Read features and targets as numbers; other columns may hold anything.

    Parameters
    ----------
    path : path
        CSV, TSV or Parquet. Separators , ; tab and | are found
        from the first lines. Where it is no comma, numbers may have a decimal comma.
    targets : sequence of str
    features : sequence of str, optional
        Names, or several of them as "a,b"; all columns but the targets if None.
    exclude : sequence of str
        Columns that are no features, given in the same way.
    min_rows : int
        Fewer rows are refused.
    whole : bool
        Whether to return all columns as they are, too.
    encoding : str, optional
        Of the text; UTF-8 if None.
    """
    path = Path(path)
    data = _bytes(path)
    reader = _read_parquet if _is_parquet(path, data) else _read_text
    table = reader(path, data, targets, features, exclude, whole, encoding)
    n = len(table.numbers)
    if n < min_rows:
        needed = f"{plural(min_rows, 'row')} {'is' if min_rows == 1 else 'are'}"
        raise TableError(f"{path} has {plural(n, 'row')} of data; at least {needed} needed.")
    check_spread(path, {name: table.numbers[name].to_numpy() for name in targets})
    return table


def columns(path: str | Path, encoding: str | None = None) -> list[str]:
    """The names of the columns of a file."""
    path = Path(path)
    data = _bytes(path)
    if _is_parquet(path, data):
        return [str(name) for name in _parquet(path, data).columns]
    return [name for name in _open(path, data, codec_of(path, data, encoding)).names if name]


def _bytes(path: Path) -> bytes:
    """What a file holds; read once, for it may be a pipe."""
    try:
        if path.is_dir():
            raise TableError(f"{path} is a folder; give a CSV, TSV or Parquet file.")
        if path.is_char_device() or path.is_block_device():
            raise TableError(f"{path} is a device; give a CSV, TSV or Parquet file.")
        if path.is_symlink() and not path.exists():
            raise TableError(f"{path} is a link to a file that does not exist.")
        if not path.exists():
            raise TableError(f"{path} does not exist{near(path) or '.'}")
        data = path.read_bytes()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from error
    if not data:
        raise TableError(f"{path} is empty; a header with column names and rows are expected.")
    return data


def near(path: Path, folders: bool = False) -> str:
    """A question that names what is called nearly so in the same folder; "" without any."""
    try:
        here = itertools.islice(path.parent.iterdir(), 5000)
        names = [p.name for p in here if p.exists() and p.is_dir() == folders]
    except OSError:
        return ""
    found = nearest(path.name, names)
    return "" if found is None else f"; did you mean {str(path.with_name(found))!r}?"


def is_tsv(path: Path) -> bool:
    return path.suffix.lower() in TABS


def _is_parquet(path: Path, data: bytes) -> bool:
    return path.suffix.lower() in PARQUET or data[:4] == b"PAR1"


# ---------------------------------------------------------------------------------- CSV and TSV
class _Text(NamedTuple):
    separator: str
    rows: Any  # a csv.reader behind the header
    header: list[str]  # as it is in the file
    names: list[str]


def _open(path: Path, data: bytes, codec: str) -> _Text:
    lines = lambda: io.TextIOWrapper(io.BytesIO(data), encoding=codec, newline="")
    separator = _separator(path, list(itertools.islice(lines(), 20)))
    rows = csv.reader(lines(), delimiter=separator)
    with _csv_errors(path, rows):
        header = next((row for row in rows if any(cell.strip() for cell in row)), [])
    names = [name.strip() for name in header]
    check_header(path, names, line=rows.line_num)
    return _Text(separator, rows, header, names)


@contextlib.contextmanager
def _csv_errors(path: Path, rows) -> Iterator[None]:
    try:
        yield
    except csv.Error as error:
        raise TableError(f"{path}, line {rows.line_num}: {error}.") from error


def _read_text(
    path: Path, data: bytes, targets, features, exclude, whole: bool, encoding: str | None
) -> Table:
    import pandas as pd

    text = _open(path, data, codec_of(path, data, encoding))
    names, separator = text.names, text.separator
    inputs = select(path, names, targets, features, exclude)
    lines, cells = _cells(path, text)
    notes = []
    if features is None:
        inputs, note = without_unnamed(path, names, inputs, [row[0] for row in cells])
        notes += [note] if note else []
    place = {name: k for k, name in enumerate(names)}
    wanted = {name: [row[place[name]] for row in cells] for name in [*inputs, *targets]}
    comma = decimal_comma(wanted.values(), separator)
    if comma:
        notes.append(f"{path}: numbers are read with a decimal comma (1,5 is one and a half).")
    if features is None:
        check_text(path, {name: wanted[name] for name in inputs})
    check_targets(path, {name: wanted[name] for name in targets})
    optional = inputs if features is None else ()
    index = pd.Index(lines, name="line")
    found = pd.DataFrame(
        numbers(path, wanted, lines, comma, optional), index=index, columns=list(wanted)
    )
    everything = None
    if whole:
        everything = pd.DataFrame(cells, index=index, columns=text.header, dtype=object)
        points = any("." in cell for column in wanted.values() for cell in column)
        if not comma and not points:  # whole numbers, in a table where others may tell
            comma = any(decimal_comma([list(column)], separator) for column in zip(*cells))
    return Table(found, everything, separator, comma, tuple(notes))


def _cells(path: Path, text: _Text) -> tuple[list[int], list[list[str]]]:
    """Rows with anything in them, and the lines they end on; all as long as the header."""
    lines: list[int] = []
    cells: list[list[str]] = []
    wrong: list[tuple[int, list[str]]] = []
    width = len(text.names)
    with _csv_errors(path, text.rows):
        for row in text.rows:
            if not any(map(str.strip, row)):
                continue
            if len(row) != width:
                wrong.append((text.rows.line_num, row))
            else:
                cells.append(row)
                lines.append(text.rows.line_num)
    if wrong:
        line, row = wrong[0]
        hint = ""
        if text.separator == "," and len(row) == 2 * width:
            hint = "; if numbers have decimal commas, separate the cells with semicolons"
        elif not cells and len({len(row) for _, row in wrong}) == 1:
            hint = ", and so in every row: has every column a name?"
        others = ", ".join(f"line {line}" for line, _ in wrong[1 : MORE + 1])
        raise TableError(
            f"{path}, line {line}: {plural(len(row), 'cell')}, but the header has {width}{hint}."
            f"{more(len(wrong) - 1, others, 'row')}"
        )
    return lines, cells


def _separator(path: Path, lines: list[str]) -> str:
    """The separator that splits header and first row alike.

    In a tie the comma comes last: it also stands in names and numbers.
    """
    if is_tsv(path):
        return "\t"

    def cells(separator: str) -> list[int]:
        rows = (row for row in csv.reader(lines, delimiter=separator) if any(map(str.strip, row)))
        try:
            return [len(row) for row in itertools.islice(rows, 2)] or [0]
        except csv.Error:  # one huge cell: not the separator
            return [0]

    found = {separator: cells(separator) for separator in ";\t|,"}
    fits = [s for s, widths in found.items() if len(set(widths)) == 1 and widths[0] > 1]
    return max(fits or ",;\t|", key=lambda s: found[s][0])


# -------------------------------------------------------------------------------------- Parquet
def _parquet(path: Path, data: bytes) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(io.BytesIO(data))
    except ImportError:
        raise TableError(
            f"{path}: reading Parquet needs pyarrow; install it with 'pip install pyarrow'."
        ) from None
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise TableError(f"{path} is not a Parquet file that can be read: {lines[0]}") from None


def _read_parquet(
    path: Path, data: bytes, targets, features, exclude, whole: bool, encoding
) -> Table:
    import pandas as pd

    found = _parquet(path, data)
    # A named index of pandas is a column of the file, but none to predict from unless asked for.
    index = [str(name) for name in found.index.names if name is not None]
    found = found.reset_index() if index else found
    header = [str(name) for name in found.columns]
    if not header:
        raise TableError(f"{path} has no columns.")
    found.columns = pd.Index(header)
    check_header(path, header, numeric_names=True)
    exclude = [*exclude, *(name for name in index if features is None and name not in targets)]
    inputs = select(path, header, targets, features, exclude)
    if features is None:
        inputs, _ = without_unnamed(path, header, inputs)
    # As if it had been a CSV: the first row of data is line 2.
    found.index = pd.RangeIndex(2, len(found) + 2, name="line")
    values, words = {}, {}
    for name in [*inputs, *targets]:
        column = found[name]
        filled = column.dropna()
        numeric = pd.api.types.is_numeric_dtype(column.dtype)
        if numeric or (len(filled) and filled.map(lambda v: isinstance(v, Decimal)).all()):
            values[name] = column.to_numpy(dtype=float, na_value=np.nan)
        else:
            words[name] = str(filled.iloc[0])[:20] if len(filled) else "nothing"
    if words:
        asked = features is not None or bool(set(words) & set(targets))
        refuse_text(path, "text or others, not numbers,", words, hint=not asked)
    wrong = {n: np.flatnonzero(~(np.abs(v) <= LARGEST)).tolist() for n, v in values.items()}
    wrong = {n: rows for n, rows in wrong.items() if rows}
    if wrong:
        name, k = first(wrong)
        refuse(path, wrong, list(found.index), fault(str(values[name][k])))
    frame = pd.DataFrame(values, index=found.index, columns=[*inputs, *targets])
    left = [name for name in index if features is None and name not in frame]
    note = f"{path}: the index {', '.join(map(repr, left))} is left out; --features can ask for it."
    return Table(frame, found if whole else None, ",", False, (note,) if left else ())
