"""`sbnn compare`: methods side by side, as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sbnn import __version__
from sbnn.estimator import SAMPLING
from sbnn.folder import dumps, whole_folder, write_text
from sbnn.tables import TableError

FILES = frozenset({"compare.csv", "compare.json"})
COLUMNS = {
    "method": "method",
    "rmse": "RMSE",
    "nlpd": "NLPD",
    "crps": "CRPS",
    "coverage_95": "in 95 %",
    "width_95": "width",
    "log_evidence": "log evidence",
    "n_parameters_kept": "kept",
    "n_parameters": "of",
    "seconds": "seconds",
}
NOTES = (
    "Scores: rows left out of the fit that predicts them, the same folds for all methods; lower is",
    "better. Log evidence: of all rows; Laplace's estimate of the best optimum for laplace and",
    "laplace_nsbl, at its maximum over α for nsbl, so it does not rank these against one another.",
)


def choose(
    wanted: Sequence[str] | None, reasons: dict[str, str], folds: int = 5
) -> tuple[list[str], dict[str, str]]:
    """The methods to compare, and the ones left out with the reason.

    Asking for one that is not feasible is an error. Methods that sample have to be asked for: they
    run once for all rows and once per fold, at a minute or more each.
    """
    for method in wanted or ():
        if method not in reasons:
            raise TableError(f"--method must be one of {', '.join(reasons)}; got {method!r}.")
        if reasons[method]:
            raise TableError(f"{method} {reasons[method]}; give a smaller --hidden.")
    if wanted:
        return list(dict.fromkeys(wanted)), {}
    slow = f"samples: {folds + 1} runs of a minute or more; ask for it with --method"
    left_out = {m: why or slow for m, why in reasons.items() if why or m in SAMPLING}
    return [m for m in reasons if m not in left_out], left_out


def summary(records, left_out, data, targets, inputs, options, folds, n_rows) -> dict[str, Any]:
    """Everything that is printed or written."""
    return {
        "version": __version__,
        "data": Path(data).name,
        "rows": n_rows,
        "targets": list(targets),
        "features": list(inputs),
        "options": {k: v for k, v in options.items() if k != "method"},
        "folds": folds,
        "methods": sorted(records, key=lambda r: r["nlpd"]),
        "left_out": left_out,
    }


def lines(found: dict[str, Any]) -> list[str]:
    """The table as aligned text, best NLPD first."""
    rows = [list(COLUMNS.values())]
    rows += [[_cell(name, record[name]) for name in COLUMNS] for record in found["methods"]]
    widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
    out = [
        "  ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths)))
        for row in rows
    ]
    for why in dict.fromkeys(found["left_out"].values()):
        names = [method for method, reason in found["left_out"].items() if reason == why]
        out.append(f"left out: {', '.join(names)} ({why})")
    if len(found["targets"]) > 1:
        out.append("Scores are means over the targets; --json has them one by one.")
    return [*out, *NOTES]


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if name == "coverage_95":
        return f"{100 * value:.1f} %"
    if name in ("n_parameters", "n_parameters_kept"):
        return f"{value:.0f}"
    return f"{value:.2f}" if name in ("log_evidence", "seconds") else f"{value:.4g}"


def write(found: dict[str, Any], out: Path) -> None:
    """compare.csv and compare.json, whole or not at all."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows([record[name] for name in COLUMNS] for record in found["methods"])
    with whole_folder(out) as temporary:
        write_text(temporary / "compare.csv", text.getvalue())
        write_text(temporary / "compare.json", dumps(found) + "\n")
