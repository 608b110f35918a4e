"""Warnings about the table a regressor is fitted to, as the command line gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sbnn._core.data_warning import DataWarning
from sbnn._core.messages import Message
from sbnn.tables.column_checks import (
    about_alike_categories,
    about_constant_columns,
    about_duplicate_rows,
    about_few_rows,
    about_repeated_columns,
    about_similar_columns,
    about_two_values,
)
from sbnn.tables.encoder import ColumnEncoder, Encoded


@dataclass(frozen=True)
class TableCaution(Message, code="table_caution"):
    """A sentence about the table; the command line words its own."""

    text: str

    def __str__(self) -> str:
        return self.text

    def for_command_line(self) -> None:
        return None

    @property
    def category(self) -> type[Warning]:
        return DataWarning


def about_table(
    encoder: ColumnEncoder, encoded: Encoded, y: np.ndarray, names: Sequence[str]
) -> list[TableCaution]:
    """Reasons to distrust a fit to a table: few or repeated rows, columns that say the same.

    Parameters
    ----------
    encoder : ColumnEncoder
    encoded : Encoded
    y : ndarray, shape (n,) or (n, n_outputs)
    names : sequence of str
        Names of the columns.

    Returns
    -------
    list of TableCaution
    """
    targets = y.reshape(len(y), -1)
    starts = np.searchsorted(encoder.groups, np.arange(len(names)))
    plain = [j for j, column in enumerate(encoder.columns) if len(column.names) == 1]
    plain = [j for j in plain if encoder.columns[j].kind not in ("category", "empty")]
    frame = pd.DataFrame({names[j]: encoded.values[:, starts[j]] for j in plain})
    frame = frame.fillna(frame.mean())
    both = np.column_stack([np.nan_to_num(encoded.values), encoded.missing, targets])
    texts = [
        *about_constant_columns(frame),
        *about_alike_categories({n: c.counts or {} for n, c in zip(names, encoder.columns)}),
        *about_repeated_columns(frame),
        *about_similar_columns(frame),
        *about_few_rows(len(targets)),
        *about_duplicate_rows(len(both) - len(np.unique(both, axis=0))),
    ]
    for k, values in enumerate(targets.T):
        texts += about_two_values("y" if y.ndim == 1 else f"y{k}", values)
    return [TableCaution(text) for text in texts]
