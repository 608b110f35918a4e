"""Columns of a Parquet file, typed and checked like those of a text table."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from sbnn.tables.cells import Roles, raise_for_text, read_columns
from sbnn.tables.column_types import Column, ColumnType, read_series
from sbnn.tables.header import TableError, check_header, without_unnamed
from sbnn.tables.inexact import about_large_integers
from sbnn.tables.numerals import LARGEST

if TYPE_CHECKING:
    from sbnn.tables.reader import Table

SUFFIXES = (".parquet", ".pq")


class ParquetFile(NamedTuple):
    """The columns of a file; the index is the line a CSV file would have."""

    frame: pd.DataFrame
    names: list[str]
    index_names: list[str]  # pandas stores a named index as a column; an input only if asked for


def is_parquet(path: Path, data: bytes) -> bool:
    """Whether a file is Parquet, judged by its name or its first bytes."""
    return path.suffix.lower() in SUFFIXES or data[:4] == b"PAR1"


def load(path: Path, data: bytes) -> pd.DataFrame:
    """The file as a DataFrame; raise TableError if it cannot be read."""
    try:
        return pd.read_parquet(io.BytesIO(data))
    except ImportError:
        raise TableError(
            f'{path}: reading Parquet needs pyarrow; install it with: pip install "sbnn[parquet]"'
        ) from None
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise TableError(f"{path} is not a readable Parquet file: {lines[0]}") from None


def load_columns(path: Path, data: bytes) -> ParquetFile:
    """The columns of a file, with their names checked."""
    found = load(path, data)
    index = [str(name) for name in found.index.names if name is not None]
    found = found.reset_index() if index else found
    header = [str(name) for name in found.columns]
    if not header:
        raise TableError(f"{path} has no columns.")
    found.columns = pd.Index(header)
    check_header(path, header, numeric_names=True)
    # As in a CSV file, the first row of data is on line 2.
    found.index = pd.RangeIndex(2, len(found) + 2, name="line")
    return ParquetFile(found, header, index)


def read(path: Path, found: ParquetFile, roles: Roles, whole: bool) -> Table:
    """Read features and targets; `sbnn.tables.reader.read` describes the arguments."""
    from sbnn.tables.reader import Table, frame_of

    frame = found.frame
    if not roles.chosen:
        inputs, _ = without_unnamed(path, found.names, list(roles.inputs))
        roles = roles._replace(inputs=inputs)
    names, lines = [*roles.inputs, *roles.targets, *roles.others], list(frame.index)
    words = {}
    for name in names:
        try:
            read_series(frame[name].head(1000))
        except TypeError:
            words[name] = str(frame[name].dropna().iloc[0])[:20]
    if words:
        raise_for_text(path, "neither numbers nor text nor dates", words, hint=not roles.chosen)

    def column_of(name: str, known: ColumnType | None, categorical: bool) -> Column:
        column = read_series(frame[name], known, categorical)
        if column.values.dtype.kind != "f":
            return column
        return column._replace(wrong=column.wrong | (np.abs(column.values) > LARGEST))

    show = lambda name, k: "" if pd.isna(frame[name].iloc[k]) else str(frame[name].iloc[k])
    typed = read_columns(path, column_of, show, roles, lines)
    ignored = [name for name in found.index_names if not roles.chosen and name not in typed.columns]
    note = f"{path}: the index {', '.join(map(repr, ignored))} is ignored; use it with --features."
    values = {n: c.values for n, c in typed.columns.items() if c.type.kind == "number"}
    cells = {name: frame[name].to_numpy() for name in values}
    notes = [*([note] if ignored else []), *typed.notes]
    notes += about_large_integers(path, cells, values, lines)
    types = {name: typed.columns[name].type for name in roles.inputs if name in typed.columns}
    kept = frame[typed.keep] if whole else None
    return Table(frame_of(typed, lines), types, kept, ",", False, tuple(notes))
