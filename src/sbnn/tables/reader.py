"""Tables from CSV, TSV and Parquet files, each column by its type; errors name line and column."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sbnn._core.text import plural
from sbnn.tables.cells import Roles, Typed, check_spread, read_columns, text_reader
from sbnn.tables.column_types import ColumnType
from sbnn.tables.dates import times_of
from sbnn.tables.encoding import decode
from sbnn.tables.extra_lines import is_unit_row
from sbnn.tables.header import TableError, nearest, select, split, without_unnamed
from sbnn.tables.inexact import about_large_integers, about_thousands, about_vanishing_numbers
from sbnn.tables.numerals import PLAIN, Signs, find_signs
from sbnn.tables.text import Header, read_header, read_rows

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS = 5


class Table(NamedTuple):
    """What was read. The index of both frames is the line of the file, which starts at 1."""

    # Features, then targets, then others. Numbers are float (NaN: missing), dates datetime64, times
    # of day datetime.time, and text has the dtype "category".
    frame: pd.DataFrame
    types: dict[str, ColumnType]  # of the features
    whole: pd.DataFrame | None  # all columns as in the file, header too; strings if it is text
    separator: str
    decimal_comma: bool
    notes: tuple[str, ...]  # what was guessed, one line each
    signs: Signs = PLAIN  # in the numbers that were read


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
    categorical: Sequence[str] = (),
    missing: str = "impute",
    types: Mapping[str, ColumnType] | None = None,
    signs: Signs | None = None,
    optional: Sequence[str] = (),
    ignored: Sequence[str] = (),
) -> Table:
    """Read features by their types and targets as numbers; other columns may hold anything.

    Parameters
    ----------
    path : path
        CSV, TSV or Parquet. The separator (comma, semicolon, tab or bar) is found from the first
        lines. Unless it is a comma, numbers may have decimal commas.
    targets : sequence of str
        Rows without a value are left out.
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
    categorical : sequence of str
        Features that hold categories even if they look like numbers; given like `features`.
    missing : {"impute", "drop", "error"}
        Missing cells of features: leave them to the model, leave out the rows, or raise.
    types : mapping of str to ColumnType, optional
        Types of the features in a fit. Otherwise they are found from the cells; empty columns and
        identifiers are then left out.
    signs : Signs, optional
        In the numbers of a fit, for numbers that can be read in two ways.
    optional : sequence of str
        Features that the file may lack; they are then absent from the frame, which a note says.
    ignored : sequence of str
        Features whose cells count as missing if they cannot be read.

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
    >>> _ = path.write_text("id,a,y\\nx,1.5,2\\nz,,3\\n")
    >>> read(path, ["y"], exclude=["id"], min_rows=2).frame
            a    y
    line
    2     1.5  2.0
    3     NaN  3.0
    """
    from sbnn.tables import parquet

    path, others = Path(path), list(dict.fromkeys(others))
    data = _bytes(path)
    is_parquet = parquet.is_parquet(path, data)
    if is_parquet:
        found = parquet.load_columns(path, data)
        header = found.names
    else:
        text = read_header(path, decode(path, data, encoding))
        header = text.names
    others = [name for name in others if name in header or not if_present]
    absent = [name for name in optional if name not in header]
    if features is not None:
        features = [name for name in features if name not in absent] or features
    hidden = found.index_names if is_parquet and features is None else []
    excluded = [*exclude, *(name for name in hidden if name not in {*targets, *others})]
    inputs = select(path, header, targets, features, excluded, others)
    codes = _categorical(path, categorical, inputs)
    roles = Roles(
        inputs, targets, others, codes, features is not None, missing, types, signs, ignored
    )
    if is_parquet:
        table = parquet.read(path, found, roles, whole)
    else:
        table = _read_text(path, text, roles, whole)
    n = len(table.frame)
    if n < min_rows:
        needed = f"{plural(min_rows, 'row')} {'is' if min_rows == 1 else 'are'}"
        raise TableError(f"{path} has {plural(n, 'row')} of data; at least {needed} needed.")
    check_spread(path, {name: table.frame[name].to_numpy() for name in targets})
    if absent:
        names, them = ", ".join(map(repr, absent)), "it" if len(absent) == 1 else "them"
        note = f"{path} has no column {names}; the model does not use {them}."
        table = table._replace(notes=(*table.notes, note))
    return table


def _categorical(path: Path, categorical: Sequence[str], inputs: Sequence[str]) -> list[str]:
    names = split("--categorical", categorical, set(inputs))
    for name in names:
        if name not in inputs:
            close = nearest(name, inputs)
            hint = "" if close is None else f"; did you mean {close!r}?"
            raise TableError(
                f"{path}: --categorical {name!r} is not one of the inputs{hint or '.'}"
            )
    return names


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
        names = {
            p.stem if p.suffix == path.suffix else p.name: p.name
            for p in here
            if p.exists() and p.is_dir() == folders
        }
    except OSError:
        return ""
    found = nearest(path.stem, list(names)) or nearest(path.name, list(names))
    return "" if found is None else f"; did you mean {str(path.with_name(names[found]))!r}?"


def _read_text(path: Path, header: Header, roles: Roles, whole: bool) -> Table:
    lines, cells, n_empty, n_comments = read_rows(path, header)
    empty = f"{path}: {plural(n_empty, 'empty row')} at the end left out."
    notes = [empty] if n_empty else []
    if n_comments := n_comments + header.n_comments:
        notes.append(f"{path}: {plural(n_comments, 'line')} of comments (#) left out.")
    if len(cells) > 1 and is_unit_row(cells):
        units = ", ".join(cell.strip() for cell in cells.iloc[0] if cell.strip())
        shown = units if len(units) <= 40 else units[:39] + "…"
        notes.append(f"{path}, line {lines[0]}: left out, because it holds units ({shown}).")
        lines, cells = lines[1:], cells.iloc[1:].reset_index(drop=True)
    if not roles.chosen:
        inputs, note = without_unnamed(path, header.names, roles.inputs, cells[0].tolist())
        roles, notes = roles._replace(inputs=inputs), notes + ([note] if note else [])
    place = {name: k for k, name in enumerate(header.names)}
    names = [*roles.inputs, *roles.targets, *roles.others]
    text = {name: cells[place[name]].to_numpy() for name in names}
    separator = header.separator
    numbers = (text[name] for name in names if _may_be_number(name, roles))
    signs = find_signs(numbers, separator, roles.signs)
    comma, read = signs.comma, text_reader(text, signs)
    typed = read_columns(path, read, lambda name, k: text[name][k], roles, lines, signs)
    numeric = {n: text[n] for n, c in typed.columns.items() if c.type.kind == "number"}
    notes += about_thousands(path, numeric, signs, roles.signs)
    notes += typed.notes
    values = {name: typed.columns[name].values for name in numeric}
    notes += about_large_integers(path, numeric, values, lines)
    notes += about_vanishing_numbers(path, numeric, values, lines)
    frame = frame_of(typed, lines)
    types = {name: typed.columns[name].type for name in roles.inputs if name in typed.columns}
    signs = signs._replace(known=_show_signs(text, typed))
    if not whole:
        return Table(frame, types, None, separator, comma, tuple(notes), signs)
    points = any("." in cell for column in numeric.values() for cell in column)
    if not comma and not points:  # the features are whole numbers; other columns may show it
        comma = any(find_signs([cells[k]], separator).comma for k in cells)
    everything = cells.set_axis(header.cells, axis=1).set_axis(lines, axis=0)
    return Table(frame, types, everything[typed.keep], separator, comma, tuple(notes), signs)


def _may_be_number(name: str, roles: Roles) -> bool:
    known = None if roles.types is None else roles.types.get(name)
    if known is not None:
        return known.kind in ("number", "percent")
    return name not in roles.categorical


def _show_signs(text: Mapping[str, Any], typed: Typed) -> bool:
    """Whether a number of the table has a comma or a point."""
    numeric = [n for n, c in typed.columns.items() if c.type.kind in ("number", "percent")]
    return any("," in cell or "." in cell for name in numeric for cell in text[name])


def frame_of(typed: Typed, lines: Sequence[int]) -> pd.DataFrame:
    """The rows that are kept; the index is the line."""
    import pandas as pd

    make: dict[str, Callable] = {"category": pd.Categorical, "time": times_of}
    columns = {
        name: make.get(c.type.kind, np.asarray)(c.values) for name, c in typed.columns.items()
    }
    index = pd.Index(lines, name="line")
    return pd.DataFrame(columns, index=index)[typed.keep]
