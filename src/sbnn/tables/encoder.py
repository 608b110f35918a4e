"""ColumnEncoder: the columns of a table as inputs of a network, and back to one name per column.

Categories become one-hot columns, one for each but the most frequent, by scikit-learn's
OneHotEncoder; dates become the time that has passed and, where the table covers enough of it, the
season, the weekday and the time of day as points on circles. All columns that come from one column
of the table form a group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder

from sbnn.tables.column_types import Column, ColumnType
from sbnn.tables.date_parts import covered_parts, days_of, encode_parts

# More categories than this, and those with few rows, share the column "other".
MAX_CATEGORIES = 30
FEW_ROWS = 5
OTHER = "other categories"
# If more than this share of the cells is missing, the empty cell is a category of its own: it most
# likely means something, such as "no remark".
MOSTLY_MISSING = 0.5
BLANK = "(blank)"
MISSING_NAME = "missing"


class Encoded(NamedTuple):
    """Rows as the network sees them, before gaps are filled."""

    values: np.ndarray  # (n, n_encoded), NaN in every column of an input that is not known
    missing: np.ndarray  # (n, n_inputs), bool: the cell is missing
    unseen: np.ndarray  # (n, n_inputs), bool: a category that the fit did not have

    @property
    def gaps(self) -> np.ndarray:
        """Whether each row has an input that is not known, shape (n,)."""
        return (self.missing | self.unseen).any(axis=1)


@dataclass(frozen=True)
class InputColumn:
    """How one column of the table is encoded.

    Attributes
    ----------
    kind, format : str
        See `ColumnType`.
    counts : dict of str to int
        Rows of every category in the fit.
    parts : tuple of str
        Parts of a date or time.
    n_missing : int
        Missing cells in the fit.
    indicator : bool
        Whether an additional column says if the cell is missing.
    only : float, optional
        If all cells in the fit hold the same number: that number, as it is encoded first.
    """

    kind: str = "number"
    format: str = ""
    counts: Mapping[str, int] | None = None
    parts: tuple[str, ...] = ()
    n_missing: int = 0
    indicator: bool = False
    only: float | None = None

    @classmethod
    def of(cls, column: Column) -> InputColumn:
        """Learn the encoding of a column."""
        kind, values = column.type.kind, column.values[~column.missing]
        n_missing = int(column.missing.sum())
        if not len(values):
            return cls("empty", n_missing=n_missing)
        if kind == "category":
            if n_missing > MOSTLY_MISSING * len(column.missing):
                values, n_missing = _with_blanks(column).values, 0
            counts = dict(sorted(Counter(values.tolist()).items()))
            return cls(kind, counts=counts, n_missing=n_missing)
        parts: tuple[str, ...] = ()
        if kind == "date":
            parts = covered_parts(days_of(values))
        if kind == "time":
            parts = ("elapsed", "day")
        out = cls(kind, column.type.format, parts=parts, n_missing=n_missing)
        return replace(out, only=_only(out.encode(column)[0][:, 0]))

    @property
    def type(self) -> ColumnType:
        return ColumnType(self.kind, self.format)

    @property
    def has_blanks(self) -> bool:
        """Whether the empty cell is a category."""
        return BLANK in (self.counts or {})

    @cached_property
    def one_hot(self) -> OneHotEncoder:
        """The encoder of a category; it follows from the counts, so that files need no more."""
        reference = self.reference
        return self._encoder(None if reference is None else np.array([reference], dtype=object))

    def _encoder(self, drop: np.ndarray | None) -> OneHotEncoder:
        counts = self.counts or {}
        encoder = OneHotEncoder(
            min_frequency=self._few_rows,
            max_categories=MAX_CATEGORIES,
            handle_unknown="infrequent_if_exist",
            drop=drop,
            sparse_output=False,
        )
        rows = np.repeat(np.array(list(counts), dtype=object), list(counts.values()))
        return encoder.fit(rows[:, None])

    @cached_property
    def _rare(self) -> frozenset[str]:
        """Categories that share one column; of equally frequent ones, scikit-learn chooses."""
        found = self._encoder(None).infrequent_categories_[0] if self.counts else None
        return frozenset() if found is None else frozenset(found)

    @property
    def _few_rows(self) -> int:
        """Categories with fewer rows are rare; with few rows in all, categories are small too."""
        n = sum((self.counts or {}).values())
        return min(FEW_ROWS, max(2, n // 20))

    @property
    def reference(self) -> str | None:
        """The most frequent category, which has no column of its own; None if it is alone.

        With a column for every level, the sum of all would be a constant, and an irrelevant input
        could act as a bias and look relevant.
        """
        counts = self.counts or {}
        frequent = [name for name in counts if name not in self._rare]
        if len(counts) < 2 or not frequent:
            return None
        return max(frequent, key=lambda name: counts[name])

    @cached_property
    def levels(self) -> dict[str, str]:
        """The level of every category: itself, or `other` for infrequent ones."""
        return {name: self.other if name in self._rare else name for name in self.counts or {}}

    @property
    def other(self) -> str:
        """The level of infrequent categories: `OTHER`, unless a category has that name."""
        name = OTHER
        while name in (self.counts or {}):
            name = f"all {name}"
        return name

    def level_codes(self) -> np.ndarray:
        """The encoded columns of every level, (n_levels, n_columns); `other` is the last one."""
        first = {level: name for name, level in reversed(list(self.levels.items()))}
        names = [first[level] for level in self.level_names]
        return self.one_hot.transform(np.array(names, dtype=object)[:, None])

    @property
    def level_names(self) -> list[str]:
        """Levels in alphabetical order, `other` last."""
        frequent = [name for name in self.levels if name not in self._rare]
        return [*frequent, *([self.other] if self._rare else [])]

    @property
    def names(self) -> list[str]:
        """What each encoded column holds; "" for a number."""
        if self.kind == "category":
            out = [level for level in self.level_names if level != self.reference]
        elif self.parts:
            out = [p for part in self.parts for p in ((part,) if part == "elapsed" else (
                f"{part} (sin)", f"{part} (cos)"))]  # fmt: skip
        else:
            out = [""]
        return [*out, *([MISSING_NAME] if self.indicator else [])]

    def encode(self, column: Column) -> tuple[np.ndarray, np.ndarray]:
        """Encoded columns (n, n_columns), NaN where the cell is not known, and unseen cells."""
        unseen = np.zeros(len(column.missing), dtype=bool)
        if self.kind == "empty":  # the same in every row, so that nothing is learned from it
            return np.zeros((len(unseen), 1)), unseen
        if self.kind == "category":
            column = _with_blanks(column) if self.has_blanks else column
            known = np.array([v in self.levels for v in column.values], dtype=bool)
            unseen = ~known & ~column.missing
            width = len(self.names) - self.indicator
            out = np.full((len(known), width), np.nan)
            if known.any():
                out[known] = self.one_hot.transform(column.values[known][:, None])
        elif self.kind == "date":
            out = encode_parts(days_of(column.values), self.parts)
        elif self.kind == "time":
            out = encode_parts(column.values / 24.0, self.parts)
        else:
            out = column.values[:, None].astype(float)
        out[column.missing] = np.nan
        if self.indicator:
            out = np.column_stack([out, column.missing.astype(float)])
        return out, unseen


def _only(values: np.ndarray) -> float | None:
    """The number that all known values are equal to, if there is one."""
    known = values[~np.isnan(values)]
    return float(known[0]) if len(known) and (known == known[0]).all() else None


def _with_blanks(column: Column) -> Column:
    """Categories with the empty cell as one of them."""
    values = np.where(column.missing, BLANK, column.values)
    return column._replace(values=values, missing=np.zeros_like(column.missing))


@dataclass(frozen=True)
class ColumnEncoder:
    """Encodes all columns of a table; fitted by `of`, stored as JSON."""

    columns: tuple[InputColumn, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> ColumnEncoder:
        """Learn the encoding of a table.

        Parameters
        ----------
        columns : sequence of Column

        Returns
        -------
        ColumnEncoder
        """
        return cls(tuple(InputColumn.of(column) for column in columns))

    @classmethod
    def of_numbers(cls, values: np.ndarray) -> ColumnEncoder:
        """The encoding of an array of numbers (n, n_inputs), NaN where a cell is missing."""
        missing = np.isnan(values)
        kinds = np.where(missing.all(axis=0), "empty", "number").tolist()
        counts = missing.sum(axis=0).tolist()
        each = zip(kinds, counts, map(_only, values.T))
        return cls(tuple(InputColumn(kind, n_missing=n, only=only) for kind, n, only in each))

    @cached_property
    def groups(self) -> np.ndarray:
        """The column of the table that each encoded column comes from, shape (n_encoded,)."""
        return np.repeat(np.arange(len(self.columns)), [len(c.names) for c in self.columns])

    @cached_property
    def is_indicator(self) -> np.ndarray:
        """Which encoded columns say whether a cell is missing, shape (n_encoded,)."""
        ends = [[False] * (len(c.names) - c.indicator) + [True] * c.indicator for c in self.columns]
        return np.array([end for of_column in ends for end in of_column], dtype=bool)

    @cached_property
    def empty(self) -> np.ndarray:
        """Which columns of the table had no value in the fit, shape (n_inputs,)."""
        return np.array([column.kind == "empty" for column in self.columns], dtype=bool)

    @cached_property
    def never_missing(self) -> np.ndarray:
        """Which columns have no missing cells: empty ones, and those with a blank category."""
        return self.empty | np.array([column.has_blanks for column in self.columns], dtype=bool)

    @cached_property
    def constant(self) -> np.ndarray:
        """Which columns had one value in the fit, whose effect is unknown, shape (n_inputs,)."""
        one = [c.only is not None or len(c.counts or ()) == 1 for c in self.columns]
        return np.array(one, dtype=bool)

    def new_values(self, encoded: Encoded) -> np.ndarray:
        """Cells that differ from the only value of their column in the fit, (n, n_inputs), bool."""
        first = encoded.values[:, np.searchsorted(self.groups, np.arange(len(self.columns)))]
        only = np.array([np.nan if c.only is None else c.only for c in self.columns])
        return ~np.isnan(first) & ~np.isnan(only) & (first != only)

    @property
    def plain(self) -> bool:
        """Whether every column is encoded as one number."""
        return len(self.groups) == len(self.columns)

    def names(self, features: Sequence[str]) -> list[str]:
        """Names of the encoded columns, such as "city = Rome".

        Parameters
        ----------
        features : sequence of str
            Names of the columns of the table.

        Returns
        -------
        list of str
        """
        out = []
        for name, column in zip(features, self.columns):
            sign = " = " if column.kind == "category" else ", "
            out += [f"{name}{sign}{part}" if part else str(name) for part in column.names]
        return out

    def encode(self, columns: Sequence[Column]) -> Encoded:
        """Encode the rows of a table.

        Parameters
        ----------
        columns : sequence of Column
            Read with the types of the fit.

        Returns
        -------
        Encoded
        """
        found = [mine.encode(column) for mine, column in zip(self.columns, columns)]
        return Encoded(
            np.column_stack([values for values, _ in found]),
            np.column_stack([column.missing for column in columns]) & ~self.never_missing,
            np.column_stack([unseen for _, unseen in found]),
        )

    def encode_numbers(self, values: np.ndarray) -> Encoded:
        """Encode an array of numbers (n, n_inputs), NaN where a cell is missing."""
        missing = np.isnan(values) & ~self.empty
        if self.empty.any():
            values = np.where(self.empty, 0.0, values)
        if not self.plain:
            parts = [
                np.column_stack([v, m]) if c.indicator else v[:, None]
                for c, v, m in zip(self.columns, values.T, missing.T)
            ]
            values = np.column_stack(parts)
        return Encoded(values, missing, np.zeros_like(missing))

    def with_blanks(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns of a table, with the name of the blank category in its empty cells."""
        names = [name for name, c in zip(frame, self.columns) if c.has_blanks]
        return frame.assign(
            **{name: frame[name].astype(object).fillna(BLANK).astype("category") for name in names}
        )

    def with_indicators(self, chosen: np.ndarray) -> ColumnEncoder:
        """The same with indicators of missing cells for some of the columns (n_inputs,)."""
        both = zip(self.columns, chosen)
        return ColumnEncoder(tuple(replace(c, indicator=bool(yes)) for c, yes in both))

    def as_json(self) -> list[dict[str, Any]]:
        """Plain values for a file."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_json(cls, found: Sequence[Mapping[str, Any]]) -> ColumnEncoder:
        """The inverse of `as_json`."""
        return cls(
            tuple(InputColumn(**{**column, "parts": tuple(column["parts"])}) for column in found)
        )


def table(encoder: ColumnEncoder, features: Sequence[str]) -> pd.DataFrame:
    """What is known about the columns, one row each.

    Parameters
    ----------
    encoder : ColumnEncoder
    features : sequence of str

    Returns
    -------
    DataFrame
        kind, number of categories (0 if there are none), missing cells, whether these are an input
        of their own, and number of encoded columns.
    """
    columns = encoder.columns
    return pd.DataFrame(
        {
            "kind": [c.kind for c in columns],
            "n_categories": [len(c.counts or ()) for c in columns],
            "n_missing": [c.n_missing for c in columns],
            "indicator": [c.indicator for c in columns],
            "n_encoded": [len(c.names) for c in columns],
        },
        index=pd.Index(list(features), name="column"),
    )
