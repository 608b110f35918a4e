"""Tables of numbers from CSV, TSV and Parquet files; errors name the line and the column."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sbnn._core.text import plural
from sbnn.tables.cells import as_numbers, check_spread, decimal_comma
from sbnn.tables.encoding import decode
from sbnn.tables.header import TableError, nearest, select, without_unnamed
from sbnn.tables.inexact import about_large_integers, about_thousands
from sbnn.tables.text import read_header, read_rows

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS = 5


class Table(NamedTuple):
    """What was read. The index of both frames is the line of the file, which starts at 1."""

    numbers: pd.DataFrame  # features, then targets, then others
    whole: pd.DataFrame | None  # all columns as in the file, header too; strings if it is text
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
    others: Sequence[str] = (),
    if_present: bool = False,
) -> Table:
    """Read features and targets as numbers; other columns may hold anything.

    Parameters
    ----------
    path : path
        CSV, TSV or Parquet. The separator (comma, semicolon, tab or bar) is found from the first
        lines. Unless it is a comma, numbers may have decimal commas.
    targets : sequence of str
    features : sequence of str, optional
        Names, or several of them as "a,b". All columns except the targets if None.
    exclude : sequence of str
        Columns to ignore, given in the same way.
    min_rows : int
        Fewer rows are an error.
    whole : bool
        Whether to return all columns unchanged as well.
    encoding : str, optional
        Of the text; UTF-8 if None.
    others : sequence of str
        Further columns of numbers, which are not features: standard errors or weights of the rows.
    if_present : bool
        Whether `others` that the file does not have are left out; otherwise they are an error.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        With one line for the user: the file, the line, the column, what is wrong, what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.csv")
    >>> _ = path.write_text("id,a,y\\nx,1.5,2\\nz,2.5,3\\n")
    >>> read(path, ["y"], exclude=["id"], min_rows=2).numbers
            a    y
    line
    2     1.5  2.0
    3     2.5  3.0
    """
    from sbnn.tables import parquet

    path, others = Path(path), list(dict.fromkeys(others))
    data = _bytes(path)
    if parquet.is_parquet(path, data):
        found = parquet.read(path, data, targets, features, exclude, others, if_present)
        table = Table(found.numbers, found.whole if whole else None, ",", False, found.notes)
    else:
        text = decode(path, data, encoding)
        table = _read_text(path, text, targets, features, exclude, whole, others, if_present)
    n = len(table.numbers)
    if n < min_rows:
        needed = f"{plural(min_rows, 'row')} {'is' if min_rows == 1 else 'are'}"
        raise TableError(f"{path} has {plural(n, 'row')} of data; at least {needed} needed.")
    check_spread(path, {name: table.numbers[name].to_numpy() for name in targets})
    return table


def columns(path: str | Path, encoding: str | None = None) -> list[str]:
    """The names of the columns of a file."""
    from sbnn.tables import parquet

    path = Path(path)
    data = _bytes(path)
    if parquet.is_parquet(path, data):
        return [str(name) for name in parquet.load(path, data).columns]
    return [name for name in read_header(path, decode(path, data, encoding)).names if name]


def _bytes(path: Path) -> bytes:
    """The content of a file, read only once because it may be a pipe."""
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
        raise TableError(f"{path} is empty; expected a header with column names, and rows.")
    return data


def near(path: Path, folders: bool = False) -> str:
    """A question that suggests the most similar name in the same folder; "" if there is none."""
    try:
        here = itertools.islice(path.parent.iterdir(), 5000)
        names = [p.name for p in here if p.exists() and p.is_dir() == folders]
    except OSError:
        return ""
    found = nearest(path.name, names)
    return "" if found is None else f"; did you mean {str(path.with_name(found))!r}?"


def _read_text(
    path: Path,
    text: str,
    targets: Sequence[str],
    features: Sequence[str] | None,
    exclude: Sequence[str],
    whole: bool,
    others: Sequence[str],
    if_present: bool,
) -> Table:
    import pandas as pd

    header = read_header(path, text)
    others = [name for name in others if name in header.names or not if_present]
    inputs = select(path, header.names, targets, features, exclude, others)
    lines, cells = read_rows(path, header)
    notes = []
    if features is None:
        inputs, note = without_unnamed(path, header.names, inputs, cells[0].tolist())
        notes += [note] if note else []
    place = {name: k for k, name in enumerate(header.names)}
    chosen = {name: cells[place[name]].to_numpy() for name in [*inputs, *targets, *others]}
    values, comma = as_numbers(
        path, chosen, lines, header.separator, set(targets), features is not None, others
    )
    if comma:
        notes.append(f"{path}: reading numbers with decimal commas (1,5 is one and a half).")
    else:
        notes += about_thousands(path, chosen, header.separator)
    notes += about_large_integers(path, chosen, values, lines)
    index = pd.Index(lines, name="line")
    numbers = pd.DataFrame(values, index=index, columns=list(chosen))
    if not whole:
        return Table(numbers, None, header.separator, comma, tuple(notes))
    points = any("." in cell for column in chosen.values() for cell in column)
    if not comma and not points:  # the features are whole numbers; other columns may show it
        comma = any(decimal_comma([cells[k]], header.separator) for k in cells)
    everything = cells.set_axis(header.cells, axis=1).set_axis(index, axis=0)
    return Table(numbers, everything, header.separator, comma, tuple(notes))
