"""Training rows with gaps: completed copies of each, weighted so that a row counts once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sbnn.methods.registry import SAMPLING
from sbnn.regressor.data.gaps import (
    MAX_DONORS,
    N_FILLS,
    N_TRAINING,
    fill,
    informative,
    resample,
)
from sbnn.regressor.data.rows import Rows
from sbnn.regressor.training import Task, quick_posterior
from sbnn.tables.encoder import ColumnEncoder, Encoded

# With fewer rows without gaps than this, gaps are first filled with means, which weakens effects,
# and EM takes more steps (250 rows, 12 inputs, 18 % missing, noise 0.3: the estimate of the noise
# is 0.57 to 0.72 after one step, 0.35 to 0.41 after four; three seeds).
FEW_ROWS, STEPS_FROM_MEANS = 30, 4


class Table(NamedTuple):
    """A table to learn from, as it was given."""

    encoded: Encoded
    y: np.ndarray  # (n, n_outputs)
    noise_std: np.ndarray | None  # (n, n_outputs)
    weights: np.ndarray | None  # (n,)

    def at(self, rows: np.ndarray) -> Table:
        """Some of the rows."""
        some = lambda values: None if values is None else values[rows]
        encoded = Encoded(*(values[rows] for values in self.encoded))
        return Table(encoded, self.y[rows], some(self.noise_std), some(self.weights))

    def rows(self) -> Rows:
        """The distinct rows of a table without gaps."""
        return Rows.of(self.encoded.values, self.y, self.noise_std, self.weights)


def complete(
    table: Table, encoder: ColumnEncoder, make_task: Callable[[Rows], Task]
) -> tuple[ColumnEncoder, Rows]:
    """Rows without gaps to train with, and the encoder with indicators of missing cells.

    A first fit, to the rows without gaps, says how probable each target is with each candidate for
    a gap. Candidates are drawn in proportion: a step of Monte Carlo EM, from
    p(x | known inputs) to p(x | known inputs, y).

    Parameters
    ----------
    table : Table
    encoder : ColumnEncoder
    make_task : function of Rows
        What to fit to some rows, and how.

    Returns
    -------
    encoder : ColumnEncoder
    rows : Rows
    """
    if not table.encoded.gaps.any():
        return encoder, table.rows()
    chosen = informative(table.encoded, encoder, table.y, table.weights)
    encoder = encoder.with_indicators(chosen)
    table = table._replace(encoded=with_indicators(table.encoded, encoder))
    gaps = table.encoded.gaps
    few = (~gaps).sum() < max(FEW_ROWS, 2 * len(encoder.groups))
    whole = table._replace(encoded=_with_means(table.encoded)) if few else table.at(~gaps)
    rows = whole.rows()
    for _ in range(STEPS_FROM_MEANS if few else 1):
        task = make_task(rows)
        with task.options.watch.preparing("filling missing cells"):
            rows = _filled(table, encoder, task)
    return encoder, rows


def _filled(table: Table, encoder: ColumnEncoder, task: Task) -> Rows:
    """Complete rows, and those with gaps filled from them; `task` is a fit to complete rows."""
    gaps = table.encoded.gaps
    posterior, scaling = quick_posterior(task), task.scaling
    donors = scaling.training(task.rows.x, task.rows.y)[0]
    donors = donors[:, np.random.default_rng(task.seed).permutation(donors.shape[1])[:MAX_DONORS]]
    some = table.at(gaps)
    x, _ = fill(some.encoded, encoder, scaling, donors)
    known = None if some.noise_std is None else some.noise_std / scaling.y_scale
    if known is None and task.known is not None:
        known = np.broadcast_to(task.known / scaling.y_scale, some.y.shape)
    log_density = np.empty((len(some.y), N_FILLS))
    y = (some.y - scaling.y_centre) / scaling.y_scale
    for j in range(N_FILLS):
        predictive = posterior.predictive(scaling.inputs(x[j::N_FILLS]), noise_std=known)
        log_density[:, j] = predictive.log_density(y).sum(axis=1)
    n = 1 if task.method in SAMPLING else N_TRAINING
    picked = resample(log_density, n)
    copies = x.reshape(len(some.y), N_FILLS, -1)[np.arange(len(picked))[:, None], picked]
    whole = table.at(~gaps)
    stack = lambda a, b: None if a is None or b is None else np.concatenate([a, b])
    repeat = lambda a: None if a is None else np.repeat(a, n, axis=0)
    weights = np.ones(len(gaps)) if table.weights is None else table.weights
    return Rows.of(
        np.concatenate([whole.encoded.values, copies.reshape(-1, copies.shape[2])]),
        np.concatenate([whole.y, np.repeat(some.y, n, axis=0)]),
        stack(whole.noise_std, repeat(some.noise_std)),
        np.concatenate([weights[~gaps], np.repeat(weights[gaps] / n, n)]),
    )


def with_indicators(encoded: Encoded, encoder: ColumnEncoder) -> Encoded:
    """Add the indicators of an encoder to rows encoded without them."""
    ends = np.cumsum([len(c.names) - c.indicator for c in encoder.columns])
    parts = []
    for j, (column, end) in enumerate(zip(encoder.columns, ends)):
        start = end - len(column.names) + column.indicator
        parts.append(encoded.values[:, start:end])
        if column.indicator:
            parts.append(encoded.missing[:, [j]].astype(float))
    return encoded._replace(values=np.column_stack(parts))


def _with_means(encoded: Encoded) -> Encoded:
    """Gaps filled with the means of the columns."""
    known = ~np.isnan(encoded.values)
    largest = np.maximum(np.nanmax(np.abs(encoded.values), axis=0), 1e-300)
    means = np.nanmean(encoded.values / largest, axis=0) * largest
    nothing = np.zeros_like(encoded.missing)
    return Encoded(np.where(known, encoded.values, means), nothing, nothing)
