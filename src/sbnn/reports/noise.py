"""Noise of a fit: its gain and level, coverage by fifths, and rows that do not fit the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import binom, t

from sbnn._core.text import number, plural
from sbnn.regressor.estimator import SparseBNNRegressor
from sbnn.reports.columns import Axis, axis, words_of
from sbnn.reports.validation import LEVEL, noise_std

if TYPE_CHECKING:
    from sbnn.reports.fit import Fit

PREDICTED = "predicted value"
FIFTHS = ("lowest", "second", "middle", "fourth", "highest")
# An input is important with at least this share of the total effects; the first few are shown.
IMPORTANT, MAX_INPUTS = 0.05, 5
# Below 5 rows per fifth, no coverage is improbable.
FEW_ROWS = 25
# Probability that correct intervals lead to a warning about any fifth.
FALSE_ALARM = 0.05
# An outlier is so far from its prediction that Gaussian noise puts a row there in less than one
# in a hundred tables.
RARE = 0.01
# Noise varies if its largest standard deviation exceeds the smallest by this factor.
VARIES = 1.1
BINS = 20


def gain_over_constant(model: SparseBNNRegressor) -> float | None:
    """Log evidence above that of constant Gaussian noise; None if they were not compared."""
    trials = dict(zip(model.noise_trials_["noise"], model.noise_trials_["log_evidence"]))
    if model.noise_used_ not in trials or "constant" not in trials:
        return None
    return float(trials[model.noise_used_] - trials["constant"])


def is_noise_known(fitted: Fit) -> bool:
    """Whether the standard deviation of the noise was given rather than estimated."""
    return fitted.model.noise_std is not None or bool(fitted.record.noise_columns)


def noise_levels(fitted: Fit) -> np.ndarray:
    """Standard deviation of the noise of every row of the table, shape (n_rows, n_outputs)."""
    return noise_std(fitted.model, fitted.x, fitted.per_row)


def has_heavy_tails(fitted: Fit) -> bool:
    """Whether the standard deviation of the noise says little about most of it."""
    return not is_noise_known(fitted) and fitted.model.noise_used_ not in ("constant", "varying")


def typical_levels(fitted: Fit) -> np.ndarray:
    """Distance within which 68.3 % of the noise of every row lies, shape (n_rows, n_outputs).

    For Gaussian noise, this is the standard deviation.
    """
    if not has_heavy_tails(fitted):
        return noise_levels(fitted)
    return fitted.model.typical_noise_at(fitted.x).reshape(len(fitted.x), -1)


def about_size(fitted: Fit) -> list[str]:
    """A sentence on the size of heavy-tailed noise for each target; none for other noise."""
    if not has_heavy_tails(fitted):
        return []
    typical, std = typical_levels(fitted), noise_levels(fitted)
    out = []
    for k, name in enumerate(fitted.targets):
        both = [number(float(np.median(levels[:, k])), 2) for levels in (typical, std)]
        row = " in a typical row" if varies(typical[:, k]) else ""
        out.append(
            f"Typical noise of “{name}”{row}: {both[0]}; 68 % of the noise is within this "
            "distance, as within one standard deviation of Gaussian noise. With its tails, its own "
            f"standard deviation is {both[1]}."
        )
    return out


def varies(level: np.ndarray) -> bool:
    """Whether the noise level differs between rows by more than the optima of a fit do."""
    return bool(level.max() > VARIES * level.min())


class Driver(NamedTuple):
    """The variable on which the noise depends most."""

    name: str  # of an input, or `PREDICTED`
    values: np.ndarray  # (n_rows,)
    explained: float  # share of the variance of log σ, from 0 to 1


def noise_driver(fitted: Fit, level: np.ndarray, k: int) -> Driver | None:
    """The variable that explains most of the variation of the noise level.

    Parameters
    ----------
    fitted : Fit
    level : ndarray, shape (n_rows,)
        Noise level of the rows of the table.
    k : int
        Which target.

    Returns
    -------
    Driver or None
        None if the noise does not vary.
    """
    if not varies(level):
        return None
    mean = fitted.model.predict(fitted.x).reshape(len(level), -1)[:, k]
    found = [(PREDICTED, mean), *((n, axis(fitted, n).values) for n in fitted.features)]
    drivers = [Driver(name, values, _explained(values, np.log(level))) for name, values in found]
    return max(drivers, key=lambda driver: driver.explained)


def _explained(values: np.ndarray, response: np.ndarray) -> float:
    """Share of the variance of the response that lies between quantile bins of the values."""
    groups = quantile_groups(values, min(BINS, max(len(values) // 10, 2)))
    means = np.array([response[rows].mean() for rows in groups])
    sizes = np.array([len(rows) for rows in groups])
    between = float((sizes * (means - response.mean()) ** 2).sum())
    return between / max(float(((response - response.mean()) ** 2).sum()), 1e-300)


def quantile_groups(values: np.ndarray, n_groups: int) -> list[np.ndarray]:
    """Rows in groups of about equal size from small to large; equal values stay together.

    Parameters
    ----------
    values : ndarray, shape (n,)
    n_groups : int
        Fewer groups are returned if many values are equal.

    Returns
    -------
    list of ndarray
        Rows of each group.

    Examples
    --------
    >>> [rows.tolist() for rows in quantile_groups(np.array([3.0, 1.0, 2.0, 4.0]), 2)]
    [[1, 2], [0, 3]]
    """
    edges = np.quantile(values, np.linspace(0, 1, n_groups + 1)[1:-1])
    group = np.searchsorted(edges, values, side="left")
    return [np.flatnonzero(group == g) for g in np.unique(group)]


def coverage_by_fifths(fitted: Fit) -> list[dict[str, Any]]:
    """Coverage of the 95 % intervals by fifths of the prediction and of each important input.

    Parameters
    ----------
    fitted : Fit

    Returns
    -------
    list of dict
        One entry per fifth, or per frequent category: target, by, fifth, the kind of the
        variable, its low, middle and high value (dates in days since 1970), rows, the number of
        equal rows that say as much (fewer if weights differ), coverage with the weights of the
        rows, and the range that chance allows. If the intervals are right, all fifths together are
        within it with a probability of 95 %: each with 1 − 0.05 / (number of fifths), by the
        binomial distribution.
    """
    held, shares = fitted.held_out, fitted.model.feature_relevance_
    if len(held.rows) < FEW_ROWS:
        return []
    order = np.argsort(-shares, kind="stable")[:MAX_INPUTS]
    inputs = [fitted.features[j] for j in order if shares[j] >= IMPORTANT]
    out = []
    for k, target in enumerate(fitted.targets):
        variables = {name: axis(fitted, name) for name in inputs}
        for name in (PREDICTED, *inputs):
            mine = variables.get(name)
            values = held.mean[:, k] if mine is None else mine.values[held.rows]
            labels = [] if mine is None else mine.labels or list(words_of(fitted, name) or ())
            if labels:
                values = values if mine and mine.labels else (values > 0.5).astype(float)
                groups = _levels(values)
                names = [labels[int(values[rows[0]])] for rows in groups]
            else:
                groups = quantile_groups(values, len(FIFTHS))
                names = _names(len(groups))
            for fifth, rows in zip(names, groups):
                share, n = held.coverage(k, rows)
                out.append(
                    {
                        "target": target,
                        "by": name,
                        "fifth": fifth,
                        "kind": "category" if labels else _axis_kind(mine),
                        "low": float(values[rows].min()),
                        "middle": float(np.median(values[rows])),
                        "high": float(values[rows].max()),
                        "rows": len(rows),
                        "effective_rows": n,
                        "coverage": share,
                    }
                )
    tail = 0.5 * FALSE_ALARM / max(len(out), 1)
    for found in out:
        n = found["effective_rows"]
        low, high = binom.ppf([tail, 1 - tail], n, LEVEL) / n
        found |= {"allowed_low": float(low), "allowed_high": float(high)}
    return out


def _levels(values: np.ndarray) -> list[np.ndarray]:
    """Rows of the most frequent levels of a category."""
    levels, counts = np.unique(values, return_counts=True)
    most = levels[np.argsort(-counts, kind="stable")[: len(FIFTHS)]]
    return [np.flatnonzero(values == level) for level in np.sort(most)]


def _axis_kind(found: Axis | None) -> str:
    return "date" if found is not None and found.is_date else "number"


def _names(n_groups: int) -> list[str]:
    """Names of the fifths; numbered parts if equal values leave fewer than five."""
    if n_groups == len(FIFTHS):
        return list(FIFTHS)
    return [f"part {k} of {n_groups}" for k in range(1, n_groups + 1)]


def is_improbable(fifth: dict[str, Any]) -> bool:
    """Whether the coverage of a fifth leaves what chance allows."""
    return not fifth["allowed_low"] <= fifth["coverage"] <= fifth["allowed_high"]


def about_fifths(fifths: list[dict[str, Any]], n_shown: int = 3) -> list[str]:
    """A warning for each fifth whose coverage leaves what chance allows."""
    bad = sorted(filter(is_improbable, fifths), key=lambda f: abs(f["coverage"] - LEVEL))[::-1]
    out = []
    for f in bad[:n_shown]:
        how = "narrow" if f["coverage"] < LEVEL else "wide"
        part = f"{f['fifth']} fifth" if f["fifth"] in FIFTHS else f["fifth"]
        by = f"the {PREDICTED}" if f["by"] == PREDICTED else f"“{f['by']}”"
        where = f"in the {part} of {by}"
        if f.get("kind") == "category":
            where = f"where {by} is “{f['fifth']}”"
        out.append(
            f"95 % intervals for “{f['target']}” are too {how} {where}: they cover "
            f"{100 * f['coverage']:.0f} % of {f['rows']:,} unseen rows{weighted(f)}, where chance "
            f"allows {100 * f['allowed_low']:.0f} to {100 * f['allowed_high']:.0f} %."
        )
    if len(bad) > n_shown:
        out.append(
            f"And {plural(len(bad) - n_shown, 'more such fifth')}; the report shows them under "
            "Calibration."
        )
    return out


def weighted(fifth: dict[str, Any]) -> str:
    """A remark if the rows of a fifth do not count the same."""
    return "" if fifth["effective_rows"] == fifth["rows"] else " with their weights"


def outliers(fitted: Fit) -> list[dict[str, Any]]:
    """Rows that do not fit the rest, by their distance from the prediction.

    One noise scale of row i is √((c σᵢ)² + τᵢ²) with the standard deviations σᵢ of the noise and τᵢ
    of the function, and c such that 68 % of the rows have |y − ŷ| ≤ c σᵢ. Unlike a standard
    deviation, it does not grow with the outliers. Rows beyond `outlier_limit` noise scales are
    outliers. Predictions are for unseen rows; in long tables, of which only a part was left out,
    those of the other rows are by the fit itself.

    Parameters
    ----------
    fitted : Fit

    Returns
    -------
    list of dict
        line, target, observed, predicted and scales (the distance), the farthest first.
    """
    mean, function_std = _predictions(fitted)
    levels = noise_levels(fitted)
    limit, out = outlier_limit(mean.size), []
    for k, target in enumerate(fitted.targets):
        error = np.abs(fitted.y[:, k] - mean[:, k])
        bulk = float(np.quantile(error / np.maximum(levels[:, k], 1e-300), 0.6827))
        scale = np.hypot(bulk * levels[:, k], function_std[:, k])
        scales = error / np.maximum(scale, 1e-300)
        for row in np.flatnonzero(scales > limit):
            out.append(
                {
                    "line": int(fitted.data.index[row]),
                    "target": target,
                    "observed": float(fitted.y[row, k]),
                    "predicted": float(mean[row, k]),
                    "scales": float(scales[row]),
                }
            )
    return sorted(out, key=lambda found: -found["scales"])


def outlying(fitted: Fit, k: int) -> np.ndarray:
    """Which rows of the table are outliers of target k by the record, shape (n_rows,)."""
    name = fitted.targets[k]
    lines = [row["line"] for row in fitted.record.outliers if row["target"] == name]
    return np.isin(fitted.data.index, lines)


def outlier_limit(n: int) -> float:
    """Distance, in noise scales, that Gaussian noise exceeds in one of 100 tables of n numbers.

    The scale is estimated with a relative error of about 1/√n, that of n/2 degrees of freedom.

    Examples
    --------
    >>> round(outlier_limit(150), 1), round(outlier_limit(10_000), 1)
    (4.2, 4.9)
    """
    return float(t.isf(0.5 * RARE / n, max(0.5 * n, 2.0)))


def _predictions(fitted: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Mean and std of the function at every row, by a fit that did not see it if there is one."""
    held, shape = fitted.held_out, fitted.y.shape
    mean, function_std = np.empty(shape), np.empty(shape)
    if len(held.rows) < shape[0]:
        mean, std = (v.reshape(shape) for v in fitted.model.predict(fitted.x, return_std=True))
        noise = fitted.model.noise_std_at(fitted.x).reshape(shape)
        function_std = np.sqrt(np.maximum(std**2 - noise**2, 0.0))
    mean[held.rows], function_std[held.rows] = held.mean, held.function_std
    return mean, function_std
