"""Rows that come in blocks: arrays in memory or on disk, iterables, and Dask collections."""

from __future__ import annotations

import contextlib
import functools
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from sbnn.evidence.linear.factor import Factor

T = TypeVar("T")
BLOCK_VALUES = 2**21  # numbers in a block of features, 16 MiB
FAN_IN = 8  # factors that one task on a cluster merges


@dataclass(frozen=True)
class Reader:
    """Turns rows into features.

    Attributes
    ----------
    function : callable or None
        Maps rows (n, p) to features (n, d); None if the rows are the features.
    intercept : bool
        Append a feature that is one in all rows.
    block_rows : int or None
        Rows read at a time; by default as many as `BLOCK_VALUES` numbers hold.
    """

    function: Callable[[Any], Any] | None
    intercept: bool
    block_rows: int | None

    def features(self, rows: Any, offset: int = 0) -> np.ndarray:
        """Features of rows, shape (n, d), the constant included.

        Parameters
        ----------
        rows : array, shape (n, p)
        offset : int
            Number of the first row, for error messages.

        Returns
        -------
        ndarray

        Raises
        ------
        ValueError
            If the features are not a finite number per row and feature.
        """
        found = plain(_call(self.function, rows)) if self.function is not None else plain(rows)
        if found.ndim != 2 or len(found) != len(rows):
            raise ValueError(
                f"The features of {len(rows)} rows must have the shape ({len(rows)}, n_features); "
                f"got {found.shape}."
            )
        wrong = ~np.isfinite(found).all(axis=1)
        if wrong.any():
            row = offset + int(np.argmax(wrong))
            raise ValueError(f"The features of row {row} (counted from 0) are not finite.")
        return np.column_stack([found, np.ones(len(found))]) if self.intercept else found

    def parts(self, rows: Any) -> Iterator[slice]:
        """Slices of at most `block_rows` rows."""
        n = len(rows)
        width = rows.shape[1]
        start, size = 0, self.block_rows
        while start < n:
            if size is None:
                # The number of features is known after the first rows.
                few = self.features(plain(rows[:1])) if self.function else None
                width = width if few is None else max(width, few.shape[1])
                size = max(BLOCK_VALUES // max(width, 1), 4 * width, 1)
            yield slice(start, min(start + size, n))
            start += size


def plain(values: Any) -> np.ndarray:
    """A NumPy array of float64 from arrays of NumPy, JAX, PyTorch or pandas."""
    if hasattr(values, "detach"):  # PyTorch
        values = values.detach().cpu().numpy()
    if hasattr(values, "to_numpy"):  # pandas
        values = values.to_numpy()
    return np.asarray(values, dtype=float)


def _call(function: Callable[[Any], Any], rows: Any) -> Any:
    """function(rows): JAX functions in double precision, PyTorch modules with tensors."""
    rows = plain(rows)
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(function, torch.nn.Module):
        with torch.no_grad():
            kind = next((p.dtype for p in function.parameters()), torch.float64)
            return function(torch.as_tensor(rows, dtype=kind))
    with contextlib.nullcontext() if jax is None else jax.enable_x64(True):
        return function(rows)


@dataclass(frozen=True)
class Block:
    """Consecutive rows.

    Attributes
    ----------
    rows : array, shape (n, p)
    y : array, shape (n, n_targets)
    counts : array, shape (n,), or None
        How many times every row counts.
    precision : array, shape (n,) or (n, n_targets), or None
        Known precision of every row, up to a common factor.
    offset : int
        Number of the first row.
    """

    rows: Any
    y: Any
    counts: Any = None
    precision: Any = None
    offset: int = 0


def factors(block: Block, reader: Reader) -> list[Factor]:
    """Factors of the block: one for all targets or, if their precisions differ, one for each."""
    y = _targets(block)
    found: list[Factor] = []
    precision = None if block.precision is None else np.asarray(block.precision, dtype=float)
    counts = None if block.counts is None else np.asarray(block.counts, dtype=float)
    for part in reader.parts(block.rows):
        features = reader.features(block.rows[part], block.offset + part.start)
        targets = [y[part]] if precision is None or precision.ndim == 1 else list(y[part].T)
        found = found or [Factor.empty(features.shape[1], _width(t)) for t in targets]
        own = None if counts is None else counts[part]
        for k, target in enumerate(targets):
            weight = None if precision is None else precision[part]
            weight = weight[:, k] if weight is not None and weight.ndim == 2 else weight
            found[k] = found[k].added(np.column_stack([features, target]), own, weight)
        _release(block.rows)
    return found


def _targets(block: Block) -> np.ndarray:
    """y as an array of finite numbers, shape (n, n_targets)."""
    y = plain(block.y)
    y = y[:, None] if y.ndim == 1 else y
    wrong = ~np.isfinite(y).all(axis=1)
    if wrong.any():
        row = block.offset + int(np.argmax(wrong))
        raise ValueError(f"y must be finite; row {row} (counted from 0) is not.")
    return y


def _width(target: np.ndarray) -> int:
    return 1 if target.ndim == 1 else target.shape[1]


def merge(one: list[Factor], other: list[Factor]) -> list[Factor]:
    """The factors of the rows of both."""
    if not one or not other:
        return one or other
    shapes = [
        (len(found[0].triangle) - found[0].n_targets, found[0].n_targets * len(found))
        for found in (one, other)
    ]
    if shapes[0] != shapes[1]:
        raise ValueError(
            "All blocks must have the same number of features and targets; some have {} and {}, "
            "others {} and {} (a constant feature included).".format(*shapes[0], *shapes[1])
        )
    return [a.merged(b) for a, b in zip(one, other, strict=True)]


def _merge_all(many: Sequence[list[Factor]]) -> list[Factor]:
    return functools.reduce(merge, many)


def per_row(
    block: Block, reader: Reader, function: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """function(features, y) of all rows of the block, an array with one entry per row."""
    y = _targets(block)
    out = []
    for part in reader.parts(block.rows):
        out.append(function(reader.features(block.rows[part], part.start), y[part]))
        _release(block.rows)
    return np.concatenate(out) if out else np.zeros((0, y.shape[1]))


def _release(rows: Any) -> None:
    """Let the system drop the pages of a memory-mapped file that have been read.

    They would count as memory of this process until it ends. Only for mappings shared with the
    file: private changes (mode "c") would be lost.
    """
    mapping: Any = getattr(rows, "_mmap", None)
    if getattr(rows, "mode", None) in ("r", "r+") and hasattr(mapping, "madvise"):
        import mmap

        with contextlib.suppress(OSError, ValueError):
            mapping.madvise(mmap.MADV_DONTNEED)


class Source(ABC):
    """Blocks of rows, read as often as needed."""

    @abstractmethod
    def factors(self, reader: Reader, precision: np.ndarray | None = None) -> list[Factor]:
        """Factors of all rows, with other precisions (n,) or (n, n_targets) if given."""

    @abstractmethod
    def per_row(
        self, reader: Reader, function: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """function(features, y) of all rows, with one entry per row."""


@dataclass(frozen=True)
class LocalSource(Source):
    """Blocks in this process: one array, or an iterable of blocks."""

    blocks: Iterable[Block]

    def factors(self, reader: Reader, precision: np.ndarray | None = None) -> list[Factor]:
        found: list[Factor] = []
        for block in self.blocks:
            found = merge(found, factors(_with_precision(block, precision), reader))
        return found

    def per_row(
        self, reader: Reader, function: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        return np.concatenate([per_row(block, reader, function) for block in self.blocks])


@dataclass(frozen=True)
class DaskSource(Source):
    """Blocks of a Dask collection: each is read where the scheduler puts it.

    The parts of `blocks` are Dask's delayed objects, and their lengths are known. Factors are
    merged in a fixed tree, so that the numbers do not depend on the workers, nor on how often
    one of them was lost and its tasks were repeated.
    """

    blocks: Sequence[Block]
    lengths: Sequence[int]

    def factors(self, reader: Reader, precision: np.ndarray | None = None) -> list[Factor]:
        import dask

        blocks = [
            _with_precision(block, precision, n) for block, n in zip(self.blocks, self.lengths)
        ]
        level = [dask.delayed(_delayed_factors)(*_fields(b), reader) for b in blocks]
        while len(level) > 1:
            level = [
                dask.delayed(_merge_all)(level[i : i + FAN_IN])
                for i in range(0, len(level), FAN_IN)
            ]
        return dask.compute(level[0])[0]

    def per_row(
        self, reader: Reader, function: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        import dask

        tasks = [dask.delayed(_delayed_rows)(*_fields(b), reader, function) for b in self.blocks]
        return np.concatenate(dask.compute(*tasks))


def _fields(block: Block) -> tuple[Any, ...]:
    # Dask replaces delayed objects in arguments, not inside dataclasses of ours.
    return block.rows, block.y, block.counts, block.precision, block.offset


def _delayed_factors(*arguments: Any) -> list[Factor]:
    *fields, reader = arguments
    with threadpool_limits(limits=1, user_api="blas"):  # as many workers as cores
        return factors(Block(*fields), reader)


def _delayed_rows(*arguments: Any) -> np.ndarray:
    *fields, reader, function = arguments
    with threadpool_limits(limits=1, user_api="blas"):
        return per_row(Block(*fields), reader, function)


def _with_precision(block: Block, precision: np.ndarray | None, length: int | None = None) -> Block:
    if precision is None:
        return block
    n = len(block.rows) if length is None else length
    rows = slice(block.offset, block.offset + n)
    return Block(block.rows, block.y, block.counts, precision[rows], block.offset)
