"""What users give as rows, checked and made a `Source`: arrays, iterables, Dask collections."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnn._core.arrays import as_real
from sbnn._core.extras import require
from sbnn.evidence.linear.blocks import Block, DaskSource, LocalSource, Source


@dataclass(frozen=True)
class Observations:
    """A source, and what is known of it before it is read.

    Attributes
    ----------
    source : Source
    repeatable : bool
        Whether the rows can be read more than once.
    names : tuple of str or None
        Names of the columns.
    one_dimensional : bool or None
        Whether y has one axis; None if that is not known before it is read.
    """

    source: Source
    repeatable: bool
    names: tuple[str, ...] | None
    one_dimensional: bool | None


def observations(rows: Any, y: Any, counts: Any, precision: Any) -> Observations:
    """The source of rows and targets.

    Parameters
    ----------
    rows : array, DataFrame, iterable of pairs, or Dask collection
        Shape (n, p). If `y` is None, an iterable of blocks (rows, y).
    y : array or Dask collection, shape (n,) or (n, n_targets), or None
    counts : ndarray, shape (n,), or None
        How many times every row counts.
    precision : ndarray, shape (n,) or (n, n_targets), or None
        Known precision of every row.

    Returns
    -------
    Observations

    Raises
    ------
    TypeError, ValueError
        If something is missing, of the wrong kind or shape, or not finite.
    """
    if y is None:
        return _stream(rows, counts, precision)
    if is_dask(rows):
        return _from_dask(rows, y, counts, precision)
    names = _names(rows)
    if hasattr(rows, "to_numpy"):
        rows = rows.to_numpy()
    if not isinstance(rows, np.ndarray):
        rows = as_real("`features`", rows)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise ValueError(
            f"Rows must be an array of numbers of shape (n, n_columns); got shape {rows.shape} of "
            f"type {rows.dtype}."
        )
    target = check_target(y.compute() if is_dask(y) else y)
    if len(target) != len(rows):
        raise ValueError(f"There are {len(rows)} rows and {len(target)} values of y.")
    _check_length("sample_weight", counts, len(rows))
    _check_length("noise_std", precision, len(rows))
    block = Block(rows, target, counts, precision)
    return Observations(LocalSource((block,)), True, names, target.ndim == 1)


def is_dask(values: Any) -> bool:
    """Whether `values` is a Dask array, DataFrame or Series; nothing is imported."""
    return type(values).__module__.split(".")[0] in ("dask", "dask_expr")


def check_target(y: Any, offset: int = 0) -> np.ndarray:
    """y as an array of finite numbers with one or two axes."""
    target = as_real("y", y)
    if target.ndim not in (1, 2) or (target.ndim == 2 and not target.shape[1]):
        raise ValueError(f"y must have the shape (n,) or (n, n_targets); got {target.shape}.")
    wrong = ~np.isfinite(target[:, None] if target.ndim == 1 else target).all(axis=1)
    if wrong.any():
        row = offset + int(np.argmax(wrong))
        raise ValueError(f"y must be finite; row {row} (counted from 0) is not.")
    return target


def _names(rows: Any) -> tuple[str, ...] | None:
    columns = getattr(rows, "columns", None)
    return None if columns is None else tuple(map(str, columns))


def _check_length(name: str, values: np.ndarray | None, n: int) -> None:
    if values is not None and len(values) != n:
        raise ValueError(f"`{name}` must hold one value per row, {n} in all; got {len(values)}.")


@dataclass(frozen=True)
class _Stream:
    """Blocks out of pairs (rows, y), with the weights of all rows cut to match."""

    pairs: Iterable[Any]
    counts: np.ndarray | None
    precision: np.ndarray | None

    def __iter__(self) -> Iterator[Block]:
        start = 0
        for item in self.pairs:
            if not isinstance(item, tuple) or len(item) != 2:
                raise TypeError(
                    "Blocks must be pairs (features, y), or (rows, y) for a feature function; "
                    f"got {type(item).__name__}."
                )
            rows, y = item
            rows = rows.to_numpy() if hasattr(rows, "to_numpy") else np.asarray(rows)
            if rows.ndim != 2 or len(rows) != len(y):
                raise ValueError(
                    f"A block has rows of shape {rows.shape} and {len(y)} values of y; the rows "
                    "must have two axes, and one value of y each."
                )
            cut = slice(start, start + len(rows))
            counts, precision = (
                None if v is None else v[cut] for v in (self.counts, self.precision)
            )
            for name, part in (("sample_weight", counts), ("noise_std", precision)):
                if part is not None and len(part) < len(rows):
                    raise ValueError(f"`{name}` holds fewer values than there are rows.")
            yield Block(rows, check_target(y, start), counts, precision, start)
            start += len(rows)
        for name, values in (("sample_weight", self.counts), ("noise_std", self.precision)):
            _check_length(name, values, start)


def _stream(pairs: Any, counts: Any, precision: Any) -> Observations:
    if isinstance(pairs, np.ndarray) or is_dask(pairs) or not isinstance(pairs, Iterable):
        raise TypeError(
            "`y` is missing. Give it, or an iterable of blocks (features, y) instead of "
            f"{type(pairs).__name__}."
        )
    repeatable = iter(pairs) is not pairs  # a generator is its own iterator
    return Observations(LocalSource(_Stream(pairs, counts, precision)), repeatable, None, None)


def _from_dask(rows: Any, y: Any, counts: Any, precision: Any) -> Observations:
    """One block per chunk of rows; y, if it is a Dask collection too, stays distributed."""
    require("distributed", "A Dask collection", "dask")
    names = _names(rows)
    rows = _dask_array(rows)
    if rows.ndim != 2:
        raise ValueError(f"Rows must have the shape (n, n_columns); got {rows.shape}.")
    rows = rows.rechunk({1: -1})
    lengths = [int(n) for n in rows.chunks[0]]
    edges = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    if is_dask(y):
        y = _dask_array(y)
        shape, one_dimensional = y.shape, y.ndim == 1
        if shape[0] == edges[-1]:
            chunks = {0: tuple(lengths)} | ({} if one_dimensional else {1: -1})
            targets = list(y.rechunk(chunks).to_delayed().ravel())
    else:
        whole = check_target(y)
        shape, one_dimensional = whole.shape, whole.ndim == 1
        targets = [whole[a:b] for a, b in itertools.pairwise(edges)]
    if shape[0] != edges[-1]:
        raise ValueError(f"There are {edges[-1]} rows and {shape[0]} values of y.")
    _check_length("sample_weight", counts, edges[-1])
    _check_length("noise_std", precision, edges[-1])
    cut = lambda v, i: None if v is None else v[edges[i] : edges[i + 1]]
    blocks = [
        Block(chunk, targets[i], cut(counts, i), cut(precision, i), int(edges[i]))
        for i, chunk in enumerate(rows.to_delayed().ravel())
    ]
    return Observations(DaskSource(blocks, lengths), True, names, one_dimensional)


def _dask_array(values: Any) -> Any:
    """A Dask array with known chunks; those of DataFrames are counted."""
    if hasattr(values, "to_dask_array"):
        return values.to_dask_array(lengths=True)
    if np.isnan(values.shape[0]):
        values.compute_chunk_sizes()
    return values
