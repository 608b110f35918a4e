"""Tables of a fit's report as text: scores, relevance of inputs, optima, parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnn._core.text import explained, fixed, number, percent, rounded, unbroken, with_error
from sbnn.regressor.noise import WORDS
from sbnn.reports import network_graph as graphs
from sbnn.reports.fit import Fit
from sbnn.reports.validation import standard_errors


def scores_table(fitted: Fit) -> list[dict[str, str]]:
    """Scores of every target, as text."""
    scores, errors = fitted.scores, standard_errors(fitted.held_out)
    n = len(fitted.held_out.rows)
    out = []
    for k in range(len(fitted.targets)):
        shown = {name: with_error(scores[name][k], e[k]) for name, e in errors.items()}
        shown["width_95"] = number(scores["width_95"][k])
        r2 = scores["r2"][k]
        shown["r2"] = "–" if np.isnan(r2) else explained(r2)
        shown["coverage_95"] = percent(scores["coverage_95"][k], n)
        out.append({name: unbroken(text) for name, text in shown.items()})
    return out


def relevance_table(fitted: Fit) -> list[dict[str, Any]]:
    shares, spread = fitted.model.feature_relevance_, fitted.model.feature_relevance_std_
    order = np.argsort(-shares, kind="stable")[:60]
    return [
        {
            "name": fitted.features[j],
            "share": float(shares[j]),
            "percent": f"{100 * min(max(float(shares[j]), 0.0), 1.0):.2f}",
            "text": unbroken(_share(100 * float(shares[j]), 100 * float(spread[j]))),
        }
        for j in order
    ]


def _share(value: float, error: float) -> str:
    """A percentage with at most one decimal."""
    if max(value, error) < 0.05:
        return "below 0.1 %"
    return (with_error(value, error) if error >= 0.05 else f"{fixed(value, 1)} ± below 0.1") + " %"


def noise_table(fitted: Fit) -> list[dict[str, str]]:
    """Kinds of noise that were compared, with the log evidence above constant Gaussian noise."""
    trials, chosen = fitted.model.noise_trials_, fitted.model.noise_used_
    if len(trials) < 2 or "constant" not in set(trials["noise"]):
        return []
    base = float(trials["log_evidence"][trials["noise"] == "constant"].iloc[0])
    return [
        {
            "name": WORDS.get(name, name) + (", chosen" if name == chosen else ""),
            "gain": fixed(value - base, 1),
        }
        for name, value in zip(trials["noise"], trials["log_evidence"])
    ]


def optima_table(fitted: Fit) -> dict[str, Any]:
    """Columns and rows of the table of optima."""
    run = fitted.record.run
    titles = {
        "hidden_layer_sizes": "hidden",
        "log_evidence": "log evidence",
        "log_evidence_error": "±",
        "weight": "weight",
        "share": "weight",
        "n_kept": "parameters kept",
        "n_parameters": "of",
        "iterations": "iterations",
        "converged": "converged",
        "origin": "found from",
        "gap": "estimate − exact",
    }
    records = run.optima if run is not None else []
    records = records or fitted.model.optima_.to_dict("records")
    columns = [c for c in titles if records and c in records[0]]
    rows = [[_optimum_cell(record, c) for c in columns] for record in records[:40]]
    return {"titles": [titles[c] for c in columns], "rows": rows, "n": len(records)}


def _optimum_cell(record: dict[str, Any], column: str) -> str:
    value, error = record[column], record.get("log_evidence_error")
    if column == "log_evidence":
        value = fixed(value, 1) if error is None else rounded(value, error)
    elif column == "log_evidence_error":
        value = rounded(value, value)
    elif column == "gap":
        value = rounded(value, error)
    elif column in ("weight", "share"):
        value = fixed(value, 2)
    elif column == "hidden_layer_sizes":
        value = "-".join(map(str, value)) or "none"
    return number(value)


def parameter_table(fitted: Fit) -> list[dict[str, Any]]:
    """Every parameter of the best network, with plain numbers to sort by."""
    ends = graphs.ends_of(fitted.model.network_)
    out = []
    for k, (name, row) in enumerate(fitted.model.summary().iterrows()):
        layer, i, j = ends[k]
        start, end = graphs.node_name(fitted, layer, i), graphs.node_name(fitted, layer + 1, j)
        cells = [float(row[c]) for c in ("median", "spread", "log_alpha", "relevance")]
        texts = graphs.as_shown(row)
        out.append(
            {
                "name": name,
                "place": k,
                "path": f"{'bias' if i < 0 else start} → {end}",
                "kept": "pruned" if row["pruned"] else "kept",
                "cells": [{"sort": _sortable(v), "text": t} for v, t in zip(cells, texts)],
            }
        )
    return out


def _sortable(value: float) -> str:
    """A sort key for JavaScript; unknown values come last."""
    if np.isnan(value):
        return "-1e309"
    return "1e309" if np.isinf(value) else f"{value:.6g}"
