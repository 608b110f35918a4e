"""Account: how many networks predict, how many weights they keep, and which inputs they use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sbnn.methods.posterior import Posterior

# A single optimum suffices if it loses at most this much log density per left-out row: its
# geometric mean density is then within 1 % of the mixture's.
SUFFICIENT = 0.01


@dataclass(frozen=True)
class Single:
    """One optimum that predicts left-out rows as well as all together.

    Attributes
    ----------
    optimum : int
        Its row in `optima_`.
    n_kept : int
        The weights and biases it keeps.
    loss, error : float
        Loss of log density per left-out row against the mixture, in nats, and its standard error.
    """

    optimum: int
    n_kept: int
    loss: float = 0.0
    error: float = 0.0


@dataclass(frozen=True)
class Account:
    """What the predictor consists of.

    Attributes
    ----------
    n_optima : int
        Networks whose predictions are averaged, one per optimum.
    n_kept, n_parameters : int
        Weights and biases that all of them together keep, and had before pruning.
    fewest, most : int
        The smallest and the largest number kept by one of them.
    inputs : tuple of str
        Columns that at least one of them uses.
    single : Single or None
        The sparsest one that predicts left-out rows within 1 % as well as all together: its
        geometric mean density is at most 1 % lower. None if none does, or if it is not known.
    """

    n_optima: int
    n_kept: int
    n_parameters: int
    fewest: int
    most: int
    inputs: tuple[str, ...]
    single: Single | None


def account_of(posterior: Posterior, groups: np.ndarray, names: Sequence[str]) -> Account:
    """The account of a posterior.

    Parameters
    ----------
    posterior : Posterior
    groups : ndarray of int, shape (n_encoded,)
        The column of the table that every input of the network comes from.
    names : sequence of str
        Names of the columns.

    Returns
    -------
    Account
    """
    table, (kept, total) = posterior.table(), posterior.counts
    used = np.unique(groups[posterior.inputs_used])
    return Account(
        n_optima=len(table),
        n_kept=kept,
        n_parameters=total,
        fewest=int(table["n_kept"].min()),
        most=int(table["n_kept"].max()),
        inputs=tuple(str(names[j]) for j in used),
        single=None if posterior.sampled else _single(table),
    )


def _single(table: pd.DataFrame) -> Single | None:
    if len(table) == 1:
        return Single(0, int(table["n_kept"].iloc[0]))
    enough = table[table["loss"] <= SUFFICIENT]
    if not len(enough):
        return None
    k = int(enough.sort_values(["n_kept", "loss"], kind="stable").index[0])
    row = table.loc[k]
    return Single(k, int(row["n_kept"]), float(row["loss"]), float(row["loss_error"]))
