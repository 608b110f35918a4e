"""The table of `sbnn compare`: methods side by side, as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sbnn import __version__
from sbnn._core.files.atomic import whole_folder, write_text
from sbnn._core.json_text import dumps
from sbnn._core.text import fixed, number, percent, rounded, with_error
from sbnn.methods.registry import COMPARED, SAMPLING
from sbnn.reports.baselines import BASELINES
from sbnn.tables.header import TableError

COLUMNS = {
    "method": "method",
    "nlpd": "NLPD",
    "nlpd_above_best": "above best",
    "nlpd_above_best_error": "±",
    "rmse": "RMSE",
    "crps": "CRPS",
    "coverage_95": "in 95 %",
    "width_95": "width",
    "log_evidence": "log evidence",
    "n_parameters_kept": "kept",
    "n_parameters": "of",
    "seconds": "seconds",
}
NOTHING = "–"
NOTES = (
    "Scores are for held-out rows, the same for all methods. NLPD: mean negative log predictive",
    "density in nats; lower is better, as for RMSE, CRPS and width. in 95 %: share of rows inside",
    "their 95 % interval. kept, of: parameters kept and in total, of all networks that the",
    "prediction averages. seconds: time of one fit to all rows. Log evidence is for all rows, in",
    "nats. It does not rank methods: for laplace and laplace_nsbl it is an estimate at",
    "the best optimum, for nsbl the maximum over α. Baselines (mean, bayesian_ridge,",
    "gaussian_process) are scikit-learn's; a network that is not clearly better than they are is",
    "not worth its complexity.",
)
# Differences above this many standard errors are called clear; chance exceeds it once in twenty.
CLEAR = 2.0


def choose(
    requested: Sequence[str] | None, reasons: dict[str, str], folds: int = 5
) -> tuple[list[str], dict[str, str]]:
    """The methods to compare, baselines included, and those skipped with the reason.

    A requested method that is not feasible is an error. Methods that sample must be requested: they
    run once for all rows and once per fold, a minute or more each.
    """
    known = (*reasons, *BASELINES)
    for method in requested or ():
        if method not in known:
            raise TableError(f"--method must be one of {', '.join(known)}; got {method!r}.")
        if reasons.get(method):
            raise TableError(f"{method} {reasons[method]}; give a smaller --hidden.")
    if requested:
        return list(dict.fromkeys(requested)), {}
    slow = f"sampling takes {folds + 1} runs of a minute or more; request it with --method"
    skipped = {
        m: why or (slow if m in SAMPLING else "request it with --method")
        for m, why in reasons.items()
        if why or m not in COMPARED
    }
    chosen = [m for m in reasons if m in COMPARED and m not in skipped]
    return [*chosen, *BASELINES], skipped


def against_best(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records by NLPD, best first, with the difference from the best and its standard error.

    dᵢ = log p_best(yᵢ) − log p(yᵢ) over the rows i: mean d, and its standard error std(d)/√n. Rows
    differ far more than methods do, so the pairing matters. Weights count rows several times.
    """
    ranked = sorted(records, key=lambda r: r["nlpd"])
    out = []
    for record in ranked:
        kept = {name: v for name, v in record.items() if name not in ("log_density", "weights")}
        difference = np.asarray(ranked[0]["log_density"]) - np.asarray(record["log_density"])
        n, weights = len(difference), record.get("weights")
        weights = np.ones(n) if weights is None else weights
        mean = np.average(difference, weights=weights)
        squares = (weights**2 * (difference - mean) ** 2).sum() * n / (n - 1) if n > 1 else np.nan
        kept["nlpd_above_best"] = float(mean)
        kept["nlpd_above_best_error"] = float(np.sqrt(squares) / weights.sum())
        out.append(kept)
    return out


def verdict(methods: Sequence[dict[str, Any]]) -> list[str]:
    """Which method is best on held-out rows, and whether the differences exceed chance."""
    if len(methods) < 2:
        return []
    best = methods[0]["method"]
    clear = [m for m in methods[1:] if m["nlpd_above_best"] > CLEAR * m["nlpd_above_best_error"]]
    alike = [m["method"] for m in methods[1:] if m not in clear]
    out = [f"Best on held-out rows by NLPD: {best}."]
    for m in clear:
        worse = with_error(m["nlpd_above_best"], m["nlpd_above_best_error"])
        out.append(f"{m['method']} is worse by {worse} nat per row, more than chance explains.")
    if alike:
        out.append(
            f"No clear difference from {best}: {', '.join(alike)} (within {CLEAR:.0f} standard "
            "errors)."
        )
    return out


def cost(chosen: Sequence[str], folds: int) -> str:
    """A line about the time that methods which sample will take; "" without them."""
    slow = [method for method in chosen if method in SAMPLING]
    if not slow:
        return ""
    return (
        f"{', '.join(slow)}: {len(slow) * (folds + 1)} runs of a sampler, a minute or more each; "
        "reduce it with --folds 2, or choose methods with --method NAME"
    )


def summary(
    records: Sequence[dict[str, Any]],
    skipped: dict[str, str],
    data: str | Path,
    targets: Sequence[str],
    inputs: Sequence[str],
    options: dict[str, Any],
    folds: int,
    n_rows: int,
) -> dict[str, Any]:
    """Everything that is printed or written."""
    methods = against_best(records)
    return {
        "version": __version__,
        "data": Path(data).name,
        "rows": n_rows,
        "targets": list(targets),
        "features": list(inputs),
        "options": {k: v for k, v in options.items() if k != "method"},
        "folds": folds,
        "methods": methods,
        "verdict": verdict(methods),
        "left_out": skipped,
    }


def lines(found: dict[str, Any]) -> list[str]:
    """The table as aligned text, best NLPD first, with conclusions and explanations."""
    rows = [list(COLUMNS.values())]
    decimals = {name: _decimals([m[name] for m in found["methods"]]) for name in COLUMNS}
    rows += [
        [_cell(name, record, found["rows"], decimals[name]) for name in COLUMNS]
        for record in found["methods"]
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
    out = [
        "  ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths)))
        for row in rows
    ]
    out += found["verdict"]
    for record in found["methods"]:
        messages = record.get("warnings", [])
        more = f" (and {len(messages) - 1} more, see --json)" if len(messages) > 1 else ""
        out += [f"! {record['method']}: {messages[0]}{more}"] if messages else []
    for why in dict.fromkeys(found["left_out"].values()):
        names = [method for method, reason in found["left_out"].items() if reason == why]
        out.append(f"skipped: {', '.join(names)} ({why})")
    if len(found["targets"]) > 1:
        out.append("Scores are averaged over the targets; --json has them separately.")
    return [*out, *NOTES]


def _decimals(values: Sequence[Any]) -> int | None:
    """Decimals that show the largest number with three digits; None for extreme numbers."""
    largest = max((abs(v) for v in values if isinstance(v, int | float)), default=0.0)
    return 2 - math.floor(math.log10(largest)) if 0.01 <= largest < 1000 else None


def _cell(name: str, record: dict[str, Any], n_rows: int, decimals: int | None) -> str:
    value = record[name]
    if isinstance(value, str):
        return value
    if value is None:
        return NOTHING
    if name == "coverage_95":
        return percent(value, n_rows)
    if name in ("n_parameters", "n_parameters_kept"):
        return f"{value:.0f}"
    if name.startswith("nlpd_above_best"):
        return rounded(value, record["nlpd_above_best_error"])
    if name == "log_evidence":
        return fixed(value, 1)
    if name == "nlpd":
        return fixed(value, 2)
    if name == "seconds":
        return fixed(value, 1)
    return number(value) if decimals is None else fixed(value, decimals)


def write(found: dict[str, Any], out: Path, replaceable: Collection[str] = ()) -> None:
    """Write compare.csv and compare.json, both or none.

    Parameters
    ----------
    found : dict
        From `summary`.
    out : Path
    replaceable : collection of str
        Files that may be replaced.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows([record[name] for name in COLUMNS] for record in found["methods"])
    with whole_folder(out, replaceable) as temporary:
        write_text(temporary / "compare.csv", text.getvalue())
        write_text(temporary / "compare.json", dumps(found) + "\n")
