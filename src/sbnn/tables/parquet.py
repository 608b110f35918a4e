"""Columns of a Parquet file as numbers, checked like the cells of a text table."""

from __future__ import annotations

import io
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from sbnn.tables.cells import LARGEST, fault, first, raise_for_cells, raise_for_text
from sbnn.tables.header import TableError, check_header, select, without_unnamed
from sbnn.tables.inexact import about_large_integers

SUFFIXES = (".parquet", ".pq")


class ParquetTable(NamedTuple):
    """Numbers and the whole file; in both, the index is the line a CSV file would have."""

    numbers: pd.DataFrame
    whole: pd.DataFrame
    notes: tuple[str, ...]


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


def read(
    path: Path,
    data: bytes,
    targets: Sequence[str],
    features: Sequence[str] | None,
    exclude: Sequence[str],
    others: Sequence[str] = (),
    if_present: bool = False,
) -> ParquetTable:
    """Read features and targets as numbers; `sbnn.tables.reader.read` describes the arguments."""
    found = load(path, data)
    # pandas stores a named index as a column. It is a feature only if the user asks for it.
    index = [str(name) for name in found.index.names if name is not None]
    found = found.reset_index() if index else found
    header = [str(name) for name in found.columns]
    if not header:
        raise TableError(f"{path} has no columns.")
    found.columns = pd.Index(header)
    check_header(path, header, numeric_names=True)
    others = [name for name in others if name in header or not if_present]
    if features is None:
        used = {*targets, *others}
        exclude = [*exclude, *(name for name in index if name not in used)]
    inputs = select(path, header, targets, features, exclude, others)
    if features is None:
        inputs, _ = without_unnamed(path, header, inputs)
    # As in a CSV file, the first row of data is on line 2.
    found.index = pd.RangeIndex(2, len(found) + 2, name="line")
    chosen = [*inputs, *targets, *others]
    numbers = pd.DataFrame(
        _numbers(path, found, chosen, asked=chosen if features else [*targets, *others]),
        index=found.index,
        columns=chosen,
    )
    ignored = [name for name in index if features is None and name not in numbers]
    note = f"{path}: the index {', '.join(map(repr, ignored))} is ignored; use it with --features."
    notes = [note] if ignored else []
    cells = {name: found[name].to_numpy() for name in chosen}
    values = {name: numbers[name].to_numpy() for name in chosen}
    notes += about_large_integers(path, cells, values, list(found.index))
    return ParquetTable(numbers, found, tuple(notes))


def _numbers(
    path: Path, table: pd.DataFrame, chosen: Sequence[str], asked: Sequence[str]
) -> dict[str, np.ndarray]:
    """The chosen columns as numbers; no hint to exclude a column that the user `asked` for."""
    values, words = {}, {}
    for name in chosen:
        column = table[name]
        filled = column.dropna()
        numeric = pd.api.types.is_numeric_dtype(column.dtype)
        if numeric or (len(filled) and filled.map(lambda v: isinstance(v, Decimal)).all()):
            values[name] = column.to_numpy(dtype=float, na_value=np.nan)
        else:
            words[name] = str(filled.iloc[0])[:20] if len(filled) else "nothing"
    if words:
        raise_for_text(
            path, "values that are not numbers", words, hint=words.keys().isdisjoint(asked)
        )
    wrong = {n: np.flatnonzero(~(np.abs(v) <= LARGEST)).tolist() for n, v in values.items()}
    wrong = {n: rows for n, rows in wrong.items() if rows}
    if wrong:
        name, k = first(wrong)
        raise_for_cells(path, wrong, list(table.index), fault(str(values[name][k])))
    return values
