"""How one column of a table becomes inputs of a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from sklearn.preprocessing import OneHotEncoder

from sbnn.tables.column_types import Column, ColumnType
from sbnn.tables.date_parts import covered_parts, days_of, encode_parts

# More categories than this, and those with few rows, share the column "other".
MAX_CATEGORIES = 30
FEW_ROWS = 5
OTHER = "other categories"
# Whole numbers in a row, and rows of the rarest one, for which there are hat functions.
FEW_VALUES, ROWS_PER_VALUE = 8, 10
# If more than this share of the cells is missing, the empty cell is a category of its own: it most
# likely means something, such as "no remark".
MOSTLY_MISSING = 0.5
BLANK = "(blank)"
MISSING_NAME = "missing"


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
    knots : tuple of float
        The values of a number that has hat functions.
    """

    kind: str = "number"
    format: str = ""
    counts: Mapping[str, int] | None = None
    parts: tuple[str, ...] = ()
    n_missing: int = 0
    indicator: bool = False
    only: float | None = None
    knots: tuple[float, ...] = ()

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
        return replace(out, only=only_value(out.encode(column)[0][:, 0]))

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
            out = ["", *(f"near {knot:.6g}" for knot in self.knots[1:-1])]
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
            return self.encode_numbers(column.values.astype(float), column.missing), unseen
        out[column.missing] = np.nan
        return self._with_indicator(out, column.missing), unseen

    def encode_numbers(self, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """Encoded numbers (n, n_columns), NaN where the cell is missing."""
        values = np.where(missing, np.nan, values)
        hats = [np.interp(values, self.knots, hat) for hat in np.eye(len(self.knots))[1:-1]]
        return self._with_indicator(np.column_stack([values, *hats]), missing)

    def _with_indicator(self, out: np.ndarray, missing: np.ndarray) -> np.ndarray:
        return np.column_stack([out, missing.astype(float)]) if self.indicator else out


def knots_of(values: np.ndarray) -> tuple[float, ...]:
    """The values of a number if they are a few whole numbers in a row, each in enough rows.

    Such numbers may be codes. Few values of a measured quantity are no reason for hat functions:
    on the yacht data, whose hulls have 5 to 10 values of each coefficient, unseen rows lost 0.26
    nats. On tables with codes they gained 0.02 to 0.35, with counts they lost up to 0.01.
    """
    values = values[~np.isnan(values)]
    if len(np.unique(values[: ROWS_PER_VALUE * FEW_VALUES])) > FEW_VALUES:
        return ()
    found, counts = np.unique(values, return_counts=True)
    in_a_row = len(found) and np.array_equal(found, np.round(found[0]) + np.arange(len(found)))
    if not in_a_row or not 3 <= len(found) <= FEW_VALUES or counts.min() < ROWS_PER_VALUE:
        return ()
    return tuple(found.tolist())


def only_value(values: np.ndarray) -> float | None:
    """The number that all known values are equal to, if there is one."""
    known = values[~np.isnan(values)]
    return float(known[0]) if len(known) and (known == known[0]).all() else None


def _with_blanks(column: Column) -> Column:
    """Categories with the empty cell as one of them."""
    values = np.where(column.missing, BLANK, column.values)
    return column._replace(values=values, missing=np.zeros_like(column.missing))
