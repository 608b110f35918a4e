"""Comparison of methods and baselines on the same folds of a table."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sbnn._core.text import duration
from sbnn.methods.registry import SAMPLING
from sbnn.regressor.estimator import SparseBNNRegressor
from sbnn.reports.baselines import BASELINES, Baseline
from sbnn.reports.validation import (
    NOTHING_KNOWN,
    HeldOut,
    PerRow,
    as_fitted,
    cross_validate,
    for_users,
)


def compare_methods(
    methods: Sequence[str],
    options: dict[str, Any],
    x: Any,
    y: np.ndarray,
    folds: int,
    step: Callable[[str], None] = lambda text: None,
    on_fold: Callable[[int, int], None] | None = None,
    on_stage: Callable[[Any], None] | None = None,
    per_row: PerRow = NOTHING_KNOWN,
) -> list[dict[str, Any]]:
    """Fit and cross-validate several methods on the same folds.

    Parameters
    ----------
    methods : sequence of str
        Methods and baselines.
    options : dict
        Constructor parameters of `SparseBNNRegressor`; the method is replaced.
    x, y, folds, per_row
        See `cross_validate`.
    step, on_fold, on_stage : function, optional
        Progress callbacks: the current step; folds finished and in total; sampler stages.

    Returns
    -------
    list of dict
        One record per method: scores, log evidence on all rows, size, seconds, warnings, and
        `log_density` and `weights` with one entry per row, the same rows for all methods. Baselines
        have None where they have no such number.
    """
    out = []
    for place, method in enumerate(methods, start=1):
        mine = {**options, "method": method}
        if method in SAMPLING and on_stage is not None:
            mine["method_options"] = {"progress": on_stage}
        make = lambda mine=mine: SparseBNNRegressor(**mine)
        if method in BASELINES:
            out.append(_baseline(method, options, x, y, folds, step, on_fold, per_row))
            continue
        step(f"method {place} of {len(methods)}, {method}: all {len(y):,} rows")
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = make().fit(x, as_fitted(y), **per_row.to_fit())
            seconds = time.perf_counter() - started
            step(
                f"{method}: fitted in {duration(seconds)}; {folds} folds to come, about "
                f"{duration(folds * seconds)}"
            )
            seed = options["random_state"] or 0
            held = cross_validate(make, x, y, folds, seed, on_fold, per_row=per_row)
        result = getattr(model, "result_", None)
        out.append(
            {
                "method": method,
                **_scored(held),
                "noise": model.noise_used_,
                "log_evidence": model.log_evidence_,
                "verified": None if result is None else result.verified,
                "n_parameters": model.n_parameters_,
                "n_parameters_kept": model.n_parameters_kept_,
                "seconds": seconds,
                "warnings": for_users(caught),
            }
        )
    return out


def _scored(held: HeldOut) -> dict[str, Any]:
    """Scores, averaged over the targets and for each, and log densities of the rows."""
    scores = held.scores()
    return {
        **{name: float(np.mean(values)) for name, values in scores.items()},
        "scores_per_target": scores,
        "log_density": held.log_density.mean(axis=1),
        "weights": held.weights,
    }


def _baseline(
    name: str,
    options: dict[str, Any],
    x: Any,
    y: np.ndarray,
    folds: int,
    step: Callable[[str], None],
    on_fold: Callable[[int, int], None] | None,
    per_row: PerRow,
) -> dict[str, Any]:
    """The record of a baseline, which has neither evidence nor weights."""
    step(f"baseline {name}")
    seed = options["random_state"] or 0
    started = time.perf_counter()
    model = Baseline(name, seed).fit(x, as_fitted(y), **per_row.to_fit())
    seconds = time.perf_counter() - started
    make = lambda: Baseline(name, seed)
    held = cross_validate(make, x, y, folds, seed, on_fold, per_row=per_row)
    nothing = ("log_evidence", "verified", "n_parameters", "n_parameters_kept")
    return {
        "method": name,
        **_scored(held),
        "noise": "constant",
        **dict.fromkeys(nothing),
        "seconds": seconds,
        "warnings": model.about(len(y)),
    }
