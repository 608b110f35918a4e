"""Validation: predictions of rows a model was not fitted to, and their scores."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.model_selection import KFold

from sbnn._core.extras import require
from sbnn._core.messages import caught as message_of
from sbnn._core.parallel import run_all
from sbnn.regressor.estimator import SparseBNNRegressor
from sbnn.scores import Predictive

# Above this many rows one held-out fifth is enough for the scores, at a fifth of the cost.
FEW_ROWS, FOLDS = 2000, 5
QUICK_ROWS = 100  # their coverage by correct 95 % intervals is between 90 and 99 %
LEVEL = 0.95


@dataclass(frozen=True)
class PerRow:
    """What is known about every row of a table beside features and targets."""

    noise_std: np.ndarray | None = None  # (n, n_outputs), standard errors of the targets
    weights: np.ndarray | None = None  # (n,), how many times each row counts

    def at(self, rows: np.ndarray) -> PerRow:
        """The same for some of the rows."""
        some = lambda values: None if values is None else values[rows]
        return PerRow(some(self.noise_std), some(self.weights))

    def to_fit(self) -> dict[str, Any]:
        """Arguments of `SparseBNNRegressor.fit`."""
        given = {**self.to_predict(), "sample_weight": self.weights}
        return {name: values for name, values in given.items() if values is not None}

    def to_predict(self) -> dict[str, Any]:
        """Arguments of `SparseBNNRegressor.predict` and `predictive`."""
        return {} if self.noise_std is None else {"noise_std": self.noise_std}


NOTHING_KNOWN = PerRow()


@dataclass(frozen=True)
class HeldOut:
    """Predictions for held-out rows; arrays have shape (n_rows, n_outputs).

    The standard deviation `std` has two parts: std² = noise_std² + function_std².
    """

    how: str
    rows: np.ndarray  # (n_rows,), positions in the training table
    y: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    pit: np.ndarray
    log_density: np.ndarray
    crps: np.ndarray
    noise_std: np.ndarray
    function_std: np.ndarray
    weights: np.ndarray | None = None  # (n_rows,), how many times each row counts in the scores

    def scores(self) -> dict[str, list[float]]:
        """RMSE, R², NLPD, CRPS, and coverage and width of the 95 % intervals, per output.

        Returns
        -------
        dict of list of float
            R² is NaN where y is constant.
        """
        how: dict[str, Any] = {"multioutput": "raw_values", "sample_weight": self.weights}
        mean = lambda values: np.average(values, axis=0, weights=self.weights).tolist()
        varies = np.ptp(self.y, axis=0) > 0
        r2 = np.where(varies, r2_score(self.y, self.mean, **how), np.nan)
        return {
            "rmse": root_mean_squared_error(self.y, self.mean, **how).tolist(),
            "r2": r2.tolist(),
            "nlpd": mean(-self.log_density),
            "crps": mean(self.crps),
            "coverage_95": mean(self.inside),
            "width_95": mean(self.upper - self.lower),
        }

    def of_target(self, k: int, rows: np.ndarray | None = None) -> dict[str, float]:
        """Scores of one target, for all rows or some of them."""
        some = self if rows is None else self.at(rows)
        return {name: values[k] for name, values in some.scores().items()}

    def at(self, rows: np.ndarray) -> HeldOut:
        """Some of the rows."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "how"}
        return replace(self, **{name: a[rows] for name, a in arrays.items() if a is not None})

    @property
    def inside(self) -> np.ndarray:
        """Whether each observation lies in its 95 % interval."""
        return (self.y >= self.lower) & (self.y <= self.upper)

    def coverage(self, k: int, rows: np.ndarray | slice = slice(None)) -> tuple[float, int]:
        """Share of some rows in the interval of output k, and how many equal rows say as much.

        The number is (Σ w)² / Σ w² for weights w: the variance of the share is that of this number
        of rows that count the same.
        """
        inside = self.inside[rows, k]
        weights = np.ones(len(inside)) if self.weights is None else self.weights[rows]
        share = float(np.average(inside, weights=weights))
        return share, max(1, round(float(weights.sum() ** 2 / (weights**2).sum())))


def standard_errors(held: HeldOut) -> dict[str, np.ndarray]:
    """Standard errors of the scores that are means over rows: NLPD, CRPS, RMSE.

    Parameters
    ----------
    held : HeldOut

    Returns
    -------
    dict of ndarray, shape (n_outputs,)
    """
    squares = (held.y - held.mean) ** 2
    weights = np.ones(len(squares)) if held.weights is None else held.weights
    mean = lambda values: np.average(values, axis=0, weights=weights)
    # of Σ wᵢ vᵢ / Σ w with independent rows: √(Σ wᵢ² (vᵢ − v̄)²) / Σ w
    error = lambda v: np.sqrt(weights**2 @ (v - mean(v)) ** 2) / weights.sum()
    # of a square root: δ√m = δm / 2√m
    rmse = error(squares) / np.maximum(2 * np.sqrt(mean(squares)), 1e-300)
    return {"nlpd": error(held.log_density), "crps": error(held.crps), "rmse": rmse}


@dataclass(frozen=True)
class _Fold:
    """One fold: rows to fit, and rows to predict."""

    make: Callable[[], Any]
    x: Any
    y: np.ndarray
    per_row: PerRow
    rest: np.ndarray
    part: np.ndarray

    def run(self) -> dict[str, np.ndarray]:
        """The arrays of `HeldOut` for the rows to predict."""
        rest, part, known = self.rest, self.part, self.per_row.at(self.part)
        given = self.per_row.at(rest).to_fit()
        model = self.make().fit(self.x.iloc[rest], as_fitted(self.y[rest]), **given)
        predictive = model.predictive(self.x.iloc[part], **known.to_predict())
        return _score(self.y[part], predictive, noise_std(model, self.x.iloc[part], known))


def cross_validate(
    make: Callable[[], Any],
    x: Any,
    y: np.ndarray,
    folds: int = 5,
    seed: int = 0,
    on_fold: Callable[[int, int], None] | None = None,
    n_run: int | None = None,
    per_row: PerRow = NOTHING_KNOWN,
) -> HeldOut:
    """Predict every fold of the rows by a fit to the others.

    With a joblib backend or a Dask client, the folds run there; the numbers are the same.

    Parameters
    ----------
    make : function
        Returns an unfitted estimator: `SparseBNNRegressor` or `Baseline`.
    x : DataFrame, shape (n, n_features)
    y : ndarray, shape (n, n_outputs)
    folds : int
        From 2 to n; n leaves out one row at a time.
    seed : int
        Chooses the rows of each fold.
    on_fold : function of (folds finished, folds in total), optional
    n_run : int, optional
        Run only this many of the folds; 1 is a single held-out part.
    per_row : PerRow
        Known standard errors and weights of the rows.

    Returns
    -------
    HeldOut
    """
    if not 2 <= folds <= len(y):
        raise ValueError(f"`folds` must be from 2 to the number of rows, {len(y)}; got {folds}.")
    n_run = folds if n_run is None else min(n_run, folds)
    # Shuffled here rather than by KFold: the documented scores use these folds.
    order = np.random.default_rng([seed, 7]).permutation(len(y))
    splits = list(KFold(folds).split(order))[:n_run]
    tasks = [
        _Fold(make, x, y, per_row, np.sort(order[train]), np.sort(order[test]))
        for train, test in splits
    ]
    count = itertools.count(1)

    def tell(_: object = None) -> None:
        if on_fold is not None:
            on_fold(next(count), n_run)

    if on_fold is not None:
        on_fold(0, n_run)
    scored = run_all(_Fold.run, tasks, on_done=tell)
    parts = [task.part for task in tasks]
    n_rows = sum(map(len, parts))
    if n_run == folds:
        how = f"{folds}-fold cross-validation: every row predicted by a fit that did not see it"
    elif n_run == 1:
        how = f"{n_rows:,} held-out rows, predicted by a fit that did not see them"
    else:
        how = f"{n_rows:,} held-out rows, each predicted by a fit that did not see it"
    rows = np.concatenate(parts)
    place = np.argsort(rows)
    arrays = {name: np.concatenate([s[name] for s in scored])[place] for name in scored[0]}
    return HeldOut(how, rows[place], **arrays, weights=per_row.at(rows[place]).weights)


def leave_one_out(
    model: SparseBNNRegressor, x: Any, y: np.ndarray, per_row: PerRow = NOTHING_KNOWN
) -> HeldOut:
    """Leave-one-out predictions of posterior draws, by Pareto-smoothed importance sampling.

    Row i is left out by weighting draw s with 1 / p(yᵢ|φₛ). If α was learned (`nsbl`), it stays
    as learned from all rows.

    Parameters
    ----------
    model : SparseBNNRegressor
        Fitted by a sampling method.
    x : DataFrame, shape (n, n_features)
    y : ndarray, shape (n, n_outputs)
    per_row : PerRow

    Returns
    -------
    HeldOut
    """
    require("report", "Leave-one-out validation", "arviz_stats")
    from arviz_stats.base import array_stats

    predictive = model.predictive(x, **per_row.to_predict())
    log_likelihood = predictive.component_log_density(y.reshape(predictive.shape))
    several = log_likelihood.ndim == 3
    of_rows = log_likelihood.sum(axis=2) if several else log_likelihood
    if per_row.weights is not None:
        of_rows = of_rows * per_row.weights
    # psislw turns log likelihoods into log weights −log p itself.
    log_weights, tails = array_stats.psislw(of_rows, axis=0)
    smoothed = np.exp(np.moveaxis(np.asarray(log_weights), -1, 0))  # draws are the last axis
    smoothed /= smoothed.sum(axis=0)
    how = "leave-one-out: each row predicted by posterior draws reweighted to exclude it"
    if getattr(model, "method_used_", None) == "nsbl":
        how += "; pruning is based on all rows"
    bad = int((np.asarray(tails) > 0.7).sum())
    if bad:
        how += f" (unreliable for {bad} of {len(y)} rows with strong influence)"
    left_out = predictive.reweighted(smoothed[:, :, None] if several else smoothed)
    scored = _score(y, left_out, noise_std(model, x, per_row))
    return HeldOut(how, np.arange(len(y)), **scored, weights=per_row.weights)


def held_out(
    model: SparseBNNRegressor,
    make: Callable[[], SparseBNNRegressor],
    x: Any,
    y: np.ndarray,
    seed: int,
    on_fold: Callable[[int, int], None] | None = None,
    per_row: PerRow = NOTHING_KNOWN,
    n_run: int | None = None,
) -> HeldOut:
    """Predict unseen rows for a report: leave-one-out if there are draws, otherwise by refits.

    Parameters
    ----------
    model : SparseBNNRegressor
        Fitted to all rows.
    make, x, y, seed, on_fold, per_row, n_run
        See `cross_validate`; `n_run` is that of `n_refits` if None.

    Returns
    -------
    HeldOut
    """
    if model.posterior_.sampled:
        return leave_one_out(model, x, y, per_row)
    n_run = n_refits(len(y)) if n_run is None else n_run
    return cross_validate(make, x, y, FOLDS, seed, on_fold, n_run, per_row)


def n_refits(n_rows: int, quick: bool = False) -> int:
    """Number of fits that `held_out` makes without draws: a fold each, of a fifth of the rows.

    All folds are run, or one in long tables. If `quick`, as many as leave out `QUICK_ROWS` rows.

    Examples
    --------
    >>> [n_refits(n, quick=True) for n in (60, 300, 500, 10_000)]
    [5, 2, 1, 1]
    """
    if n_rows > FEW_ROWS:
        return 1
    return min(FOLDS, math.ceil(FOLDS * QUICK_ROWS / n_rows)) if quick else FOLDS


def for_users(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Unique texts for the command line, without deprecation and resource warnings."""
    others = DeprecationWarning | PendingDeprecationWarning | ResourceWarning
    texts = []
    for warning in caught:
        if not issubclass(warning.category, others):
            ours = message_of(warning.message)
            texts.append(str(warning.message) if ours is None else ours.for_command_line())
    return list(dict.fromkeys(text for text in texts if text is not None))


def as_fitted(y: np.ndarray) -> np.ndarray:
    """Targets (n, n_outputs) as `fit` takes them: (n,) if there is one."""
    return y[:, 0] if y.shape[1] == 1 else y


def noise_std(model: Any, x: Any, per_row: PerRow) -> np.ndarray:
    """Standard deviation of the noise of every row, shape (n_rows, n_outputs)."""
    known = per_row.noise_std
    return model.noise_std_at(x).reshape(len(x), -1) if known is None else known


def _score(y: np.ndarray, predictive: Predictive, noise: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of `HeldOut`, each of the shape of y, (n_rows, n_outputs)."""
    observed, tail = y.reshape(predictive.shape), 0.5 * (1 - LEVEL)
    lower, upper = predictive.quantiles((tail, 1 - tail))
    std = predictive.std().reshape(y.shape)
    arrays = {
        "y": observed,
        "mean": predictive.mean(),
        "std": std,
        "lower": lower,
        "upper": upper,
        "pit": predictive.cdf(observed),
        "log_density": predictive.log_density(observed),
        "crps": predictive.crps(observed),
        "noise_std": noise,
        "function_std": np.sqrt(np.maximum(std**2 - noise**2, 0.0)),
    }
    return {name: values.reshape(y.shape) for name, values in arrays.items()}
