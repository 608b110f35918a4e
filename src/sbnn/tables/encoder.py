"""ColumnEncoder: the columns of a table as inputs of a network, and back to one name per column.

Categories become one-hot columns, one for each but the most frequent, by scikit-learn's
OneHotEncoder; dates become the time that has passed and, where the table covers enough of it, the
season, the weekday and the time of day as points on circles. A few whole numbers in a row, which
may be codes, also become hat functions, one for each but the smallest and the largest, as a smooth
network needs many neurons for a function that jumps between them. All columns that come from one
column of the table form a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sbnn.tables.column_types import Column
from sbnn.tables.input_column import BLANK, InputColumn, knots_of, only_value

# Inputs of the network up to which hat functions join.
MAX_INPUTS = 40


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
        each = zip(kinds, counts, map(only_value, values.T))
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

    def _first(self, encoded: Encoded) -> np.ndarray:
        """The first encoded column of every column of the table, (n, n_inputs)."""
        return encoded.values[:, np.searchsorted(self.groups, np.arange(len(self.columns)))]

    def new_values(self, encoded: Encoded) -> np.ndarray:
        """Cells that differ from the only value of their column in the fit, (n, n_inputs), bool."""
        first = self._first(encoded)
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
            each = zip(self.columns, values.T, missing.T)
            values = np.column_stack([column.encode_numbers(v, m) for column, v, m in each])
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

    def with_hats(self, encoded: Encoded) -> ColumnEncoder:
        """The same with hat functions of the numbers that may be codes.

        Without them, if the network would have more than `MAX_INPUTS` inputs.

        Parameters
        ----------
        encoded : Encoded
            The rows of the fit.

        Returns
        -------
        ColumnEncoder
        """
        both = zip(self.columns, self._first(encoded).T)
        new = ColumnEncoder(
            tuple(replace(c, knots=knots_of(v)) if c.kind == "number" else c for c, v in both)
        )
        return new if len(new.groups) <= MAX_INPUTS else self

    def as_json(self) -> list[dict[str, Any]]:
        """Plain values for a file."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_json(cls, found: Sequence[Mapping[str, Any]]) -> ColumnEncoder:
        """The inverse of `as_json`."""
        return cls(
            tuple(
                InputColumn(**{**c, "parts": tuple(c["parts"]), "knots": tuple(c.get("knots", ()))})
                for c in found
            )
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
