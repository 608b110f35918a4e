"""Relevance of the inputs: what predictions of left-out rows lose if they are withheld."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from sbnn.regressor.account.left_out import LeftOut

# Columns with a correlation above this say much the same: the data hardly tell their effects
# apart, and which of them a fit uses is a matter of chance.
COLLINEAR = 0.9
# Losses below this many standard errors are reported as zero: their order would be chance.
CLEAR = 2.0
COLUMNS = ("loss", "error", "group", "alone", "alone_error")


def input_relevance(left_out: LeftOut, groups: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """Loss of log density per left-out row if a column is withheld from a fitted mixture.

    Parameters
    ----------
    left_out : LeftOut
    groups : ndarray of int, shape (n_encoded,)
        The column of the table that every input of the network comes from.
    names : sequence of str
        Names of the columns.

    Returns
    -------
    DataFrame
        One row per column. `loss` in nats per row and its standard `error` over rows, if the
        column is withheld together with its `group`, the columns collinear with it; `alone` and
        `alone_error` if only the column is withheld. A loss of less than two errors is zero.
    """
    n = len(names)
    of = [np.flatnonzero(groups == j) for j in range(n)]
    cluster = collinear(left_out, of)
    members = [np.flatnonzero(cluster == cluster[j]).tolist() for j in range(n)]
    alone = [left_out.loss_without(inputs) for inputs in of]
    joint = {
        c: left_out.loss_without(np.concatenate([of[j] for j in mine]))
        for c, mine in zip(cluster, members)
        if len(mine) > 1
    }
    found = [joint.get(c, alone[j]) for j, c in enumerate(cluster)]
    found, alone = ([_clear(*pair) for pair in pairs] for pairs in (found, alone))
    labels = [", ".join(str(names[j]) for j in mine) if len(mine) > 1 else "" for mine in members]
    return pd.DataFrame(
        {
            "loss": [loss for loss, _ in found],
            "error": [error for _, error in found],
            "group": labels,
            "alone": [loss for loss, _ in alone],
            "alone_error": [error for _, error in alone],
        },
        index=pd.Index(list(names), name="input"),
    )


def _clear(loss: float, error: float) -> tuple[float, float]:
    return (loss if loss >= CLEAR * error else 0.0), error


def collinear(left_out: LeftOut, of: Sequence[np.ndarray]) -> np.ndarray:
    """Numbers of the clusters of collinear columns, (n_columns,).

    Columns that became several inputs, such as categories, are clusters of their own.
    """
    x_t, counts = left_out.x_t, left_out.counts
    plain = np.array([len(inputs) == 1 for inputs in of])
    values = x_t[[inputs[0] for inputs, one in zip(of, plain) if one]]
    values = values - np.average(values, axis=1, weights=counts)[:, None]
    norms = np.sqrt(np.average(values**2, axis=1, weights=counts))
    values = values / np.where(norms > 0, norms, np.inf)[:, None]
    r = (values * counts) @ values.T / counts.sum()
    linked = np.zeros((len(of), len(of)), bool)
    linked[np.ix_(plain, plain)] = np.abs(r) >= COLLINEAR
    return connected_components(linked, directed=False)[1]


def unknown_relevance(names: Sequence[str]) -> pd.DataFrame:
    """The table of a method without leave-one-out densities."""
    index = pd.Index(list(names), name="input")
    return pd.DataFrame({c: "" if c == "group" else np.nan for c in COLUMNS}, index=index)
