"""Predictions of rows a model did not learn from, and their scores."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from sbnn._core.extras import require
from sbnn._core.messages import caught as message_of
from sbnn._core.text import duration
from sbnn.evidence.laplace.layout import n_parameters
from sbnn.evidence.laplace.mixture import moments, quantiles
from sbnn.methods.registry import METHODS, SAMPLING
from sbnn.regressor.architectures import families
from sbnn.regressor.estimator import MAX_SAMPLED, SparseBNNRegressor

# Above this many rows one held-out fifth tells the scores well enough, at a fifth of the cost.
FEW_ROWS = 2000
LEVEL = 0.95
N_COMPONENTS = 200


@dataclass(frozen=True)
class HeldOut:
    """Predictions for rows that were left out, every array of shape (n_rows, n_outputs)."""

    how: str
    rows: np.ndarray  # (n_rows,), places in the training table
    y: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    pit: np.ndarray
    log_density: np.ndarray
    crps: np.ndarray

    def scores(self) -> dict[str, list[float]]:
        """RMSE, R², NLPD, CRPS, and coverage and width of the 95 % intervals, per output."""
        error = self.y - self.mean
        spread = ((self.y - self.y.mean(axis=0)) ** 2).mean(axis=0)
        safe = np.where(spread > 0, spread, np.nan)
        inside = (self.lower <= self.y) & (self.y <= self.upper)
        table = {
            "rmse": np.sqrt((error**2).mean(axis=0)),
            "r2": 1.0 - (error**2).mean(axis=0) / safe,
            "nlpd": -self.log_density.mean(axis=0),
            "crps": self.crps.mean(axis=0),
            "coverage_95": inside.mean(axis=0),
            "width_95": (self.upper - self.lower).mean(axis=0),
        }
        return {name: values.tolist() for name, values in table.items()}


def cross_validate(
    make: Callable[[], SparseBNNRegressor],
    x: Any,
    y: np.ndarray,
    folds: int = 5,
    seed: int = 0,
    on_fold: Callable[[int, int], None] | None = None,
    n_run: int | None = None,
) -> HeldOut:
    """Fit without each fold and predict it.

    Parameters
    ----------
    make : function
        Returns an unfitted estimator.
    x : DataFrame, shape (n, n_features)
    y : ndarray, shape (n, n_outputs)
    folds : int
        From 2 to n, which leaves out one row at a time.
    on_fold : function of (folds finished, folds in total), optional
    n_run : int, optional
        Run only so many of the folds; 1 is a single held-out part.
    """
    if not 2 <= folds <= len(y):
        raise ValueError(f"`folds` must be from 2 to the number of rows, {len(y)}; got {folds}.")
    n_run = folds if n_run is None else min(n_run, folds)
    order = np.random.default_rng([seed, 7]).permutation(len(y))
    parts = [np.sort(part) for part in np.array_split(order, folds)][:n_run]
    mixtures = []
    for k, part in enumerate(parts):
        if on_fold is not None:
            on_fold(k, n_run)
        rest = np.setdiff1d(np.arange(len(y)), part)
        model = make().fit(x.iloc[rest], _targets(y[rest]))
        mixtures.append(_three_axes(model.predictive_mixture(x.iloc[part])))
    if on_fold is not None:
        on_fold(n_run, n_run)
    if n_run == folds:
        how = f"{folds}-fold cross-validation: every row predicted by a fit that did not see it"
    else:
        how = f"{sum(map(len, parts)):,} held-out rows, predicted by a fit that did not see them"
    scored = [_score(y[part], *mixture) for part, mixture in zip(parts, mixtures)]
    rows = np.concatenate(parts)
    place = np.argsort(rows)
    arrays = {name: np.concatenate([s[name] for s in scored])[place] for name in scored[0]}
    return HeldOut(how, rows[place], **arrays)


def leave_one_out(model: SparseBNNRegressor, x: Any, y: np.ndarray) -> HeldOut:
    """Leave-one-out predictions of posterior draws, by Pareto-smoothed importance sampling.

    Row i is left out by weighting draw s with 1 / p(yᵢ|φₛ). Where α was learned (`nsbl`) it stays
    as all rows chose it.
    """
    require("report", "Leave-one-out validation", "arviz_stats")
    from arviz_stats.base import array_stats

    weights, means, stds = _three_axes(model.predictive_mixture(x))
    log_likelihood = _log_normal(y, means, stds).sum(axis=2)
    # psislw turns log likelihoods into log weights −log p itself.
    log_weights, tails = array_stats.psislw(log_likelihood, axis=0)
    smoothed = np.exp(np.moveaxis(np.asarray(log_weights), -1, 0))  # the draws come back last
    smoothed /= smoothed.sum(axis=0)
    weights = np.broadcast_to(smoothed[:, :, None], means.shape)
    how = "leave-one-out: each row predicted by posterior draws reweighted as if it were not there"
    if getattr(model, "method_used_", None) == "nsbl":
        how += "; what is pruned stays as all rows chose it"
    bad = int((np.asarray(tails) > 0.7).sum())
    if bad:
        how += f" (unreliable for {bad} of {len(y)} rows, which move the posterior too far)"
    return HeldOut(how, np.arange(len(y)), **_score(y, weights, means, stds))


def held_out(
    model: SparseBNNRegressor,
    make: Callable[[], SparseBNNRegressor],
    x: Any,
    y: np.ndarray,
    seed: int,
    on_fold: Callable[[int, int], None] | None = None,
) -> HeldOut:
    """What a report says of unseen rows: leave-one-out where there are draws, else refits."""
    if model.method_used_ in SAMPLING:
        return leave_one_out(model, x, y)
    n_run = None if len(y) <= FEW_ROWS else 1
    return cross_validate(make, x, y, seed=seed, on_fold=on_fold, n_run=n_run)


# ------------------------------------------------------------------------------ several methods
def sampled_size(hidden: Any, n_in: int, n_out: int) -> int:
    """Parameters of the one network that a sampling method would take."""
    (widths,) = families(hidden, 0, sampled=True)[0]
    return n_parameters((n_in, *widths, n_out))


def feasible(hidden: Any, n_in: int, n_out: int) -> dict[str, str]:
    """Every method, with the reason why it is left out; "" where it is not."""
    size = sampled_size(hidden, n_in, n_out)
    why = f"samples, and {size} parameters are more than {MAX_SAMPLED}"
    return {
        name: why if method.samples and size > MAX_SAMPLED else ""
        for name, method in METHODS.items()
    }


def compare_methods(
    methods: Sequence[str],
    options: dict[str, Any],
    x: Any,
    y: np.ndarray,
    folds: int,
    step: Callable[[str], None] = lambda text: None,
    on_fold: Callable[[int, int], None] | None = None,
    on_stage: Callable[[Any], None] | None = None,
) -> list[dict[str, Any]]:
    """Evidence on all rows and cross-validated scores on the same folds, one record per method.

    The `log_density` of a record has one entry per row, the same rows for all methods.
    """
    out = []
    for place, method in enumerate(methods, start=1):
        mine = {**options, "method": method}
        if method in SAMPLING and on_stage is not None:
            mine["method_options"] = {"progress": on_stage}
        make = lambda mine=mine: SparseBNNRegressor(**mine)
        step(f"method {place} of {len(methods)}, {method}: all {len(y):,} rows")
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = make().fit(x, _targets(y))
            seconds = time.perf_counter() - started
            step(
                f"{method}: fitted in {duration(seconds)}; {folds} folds to come, about "
                f"{duration(folds * seconds)}"
            )
            held = cross_validate(make, x, y, folds, options["random_state"] or 0, on_fold)
        scores = {name: float(np.mean(values)) for name, values in held.scores().items()}
        result = getattr(model, "result_", None)
        out.append(
            {
                "method": method,
                **scores,
                "log_evidence": model.log_evidence_,
                "verified": None if result is None else result.verified,
                "n_parameters": model.n_parameters_,
                "n_parameters_kept": model.n_parameters_kept_,
                "seconds": seconds,
                "scores_per_target": held.scores(),
                "log_density": held.log_density.mean(axis=1),
                "warnings": for_users(caught),
            }
        )
    return out


def for_users(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Unique texts for the command line, without deprecation and resource warnings."""
    others = DeprecationWarning | PendingDeprecationWarning | ResourceWarning
    texts = []
    for warning in caught:
        if not issubclass(warning.category, others):
            ours = message_of(warning.message)
            texts.append(str(warning.message) if ours is None else ours.for_command_line())
    return list(dict.fromkeys(text for text in texts if text is not None))


def _targets(y: np.ndarray) -> np.ndarray:
    return y[:, 0] if y.shape[1] == 1 else y


def _three_axes(mixture) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, means and stds as (n_components, m, n_outputs)."""
    weights, means, stds = (a[..., None] if a.ndim == 2 else a for a in mixture)
    return np.asarray(weights), np.asarray(means), np.asarray(stds)


def _log_normal(y, means, stds):
    return -0.5 * ((y - means) / stds) ** 2 - np.log(stds) - 0.5 * np.log(2 * np.pi)


def _score(y, weights, means, stds) -> dict[str, np.ndarray]:
    """The arrays of `HeldOut` for Gaussian mixtures, components first."""
    mean, std = moments(weights, means, stds)
    tail = 0.5 * (1 - LEVEL)
    lower, upper = quantiles(weights, means, stds, (tail, 1 - tail))
    return {
        "y": y,
        "mean": mean,
        "std": std,
        "lower": lower,
        "upper": upper,
        "pit": (weights * special.ndtr((y - means) / stds)).sum(axis=0),
        "log_density": special.logsumexp(_log_normal(y, means, stds), b=weights, axis=0),
        "crps": _crps(y, *_thin(weights, means, stds)),
    }


def _crps(y, weights, means, stds) -> np.ndarray:
    """Closed form for Gaussian mixtures whose weights differ from point to point."""
    first = (weights * _absolute(y - means, stds)).sum(axis=0)
    second = np.zeros_like(first)
    for w, m, s in zip(weights, means, stds):
        second += w * (weights * _absolute(m - means, np.hypot(s, stds))).sum(axis=0)
    return first - 0.5 * second


def _absolute(mean, std):
    """E|Z| for Z ~ N(mean, std²)."""
    z = mean / std
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return mean * (2 * special.ndtr(z) - 1) + 2 * std * density


def _thin(weights, means, stds):
    """At most `N_COMPONENTS` equally weighted components, taken at even steps of the weights."""
    if len(means) <= N_COMPONENTS:
        return weights, means, stds
    steps = (np.arange(N_COMPONENTS) + 0.5) / N_COMPONENTS
    cumulated = np.cumsum(weights, axis=0)
    flat = cumulated.reshape(len(means), -1)
    rows = np.stack([np.searchsorted(c / c[-1], steps) for c in flat.T], axis=1)
    rows = rows.reshape(N_COMPONENTS, *means.shape[1:])
    take = lambda a: np.take_along_axis(np.broadcast_to(a, means.shape), rows, axis=0)
    return np.full(rows.shape, 1.0 / N_COMPONENTS), take(means), take(stds)
