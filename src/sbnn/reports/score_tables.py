"""Tables of a fit's report as text: scores, noise, optima, parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnn._core.text import (
    explained,
    fixed,
    number,
    percent,
    plural,
    rounded,
    unbroken,
    with_error,
)
from sbnn.methods.posterior import Posterior, summary
from sbnn.regressor.noise import WORDS
from sbnn.regressor.posteriors.laplace_posterior import LaplacePosterior
from sbnn.reports.baselines import NAMES
from sbnn.reports.drawing import network_graph as graphs
from sbnn.reports.fit import Fit
from sbnn.reports.noise import outlying
from sbnn.reports.validation import standard_errors


def scores_table(fitted: Fit) -> list[dict[str, Any]]:
    """Blocks of the table of scores, for every target: title, own scores, simple models.

    A target with outliers has two blocks: without them, and for all rows.
    """
    out = []
    for k, name in enumerate(fitted.targets):
        far = outlying(fitted, k)[fitted.held_out.rows]
        if far.any():
            title = f"{name}, without {plural(int(far.sum()), 'row')} that do not fit the rest"
            if far.sum() == 1:
                title = f"{name}, without the row that does not fit the rest"
            out.append(_block(fitted, k, title, ~far, "without_outliers"))
        title = f"{name}, all rows" if far.any() else name
        out.append(_block(fitted, k, title, np.full(len(far), True), "scores"))
    return out


def _block(fitted: Fit, k: int, title: str, rows: np.ndarray, which: str) -> dict[str, Any]:
    """Scores of the network and of simple models for one target and some rows, as text."""
    held = fitted.held_out.at(rows)
    errors = {name: e[k] for name, e in standard_errors(held).items()}
    own = _shown(held.of_target(k), len(held.rows), errors)
    simple = [
        {"name": NAMES[found["name"]], **_shown(found[which][k], len(held.rows), {})}
        for found in fitted.record.baselines
        if which in found
    ]
    return {"title": title, "own": own, "simple": simple}


def _shown(scores: dict[str, Any], n: int, errors: dict[str, float]) -> dict[str, str]:
    """Scores of n rows as text."""
    r2 = scores["r2"]
    shown = {
        name: with_error(scores[name], errors[name]) if name in errors else number(scores[name])
        for name in ("rmse", "nlpd", "crps", "width_95")
    }
    shown["r2"] = "–" if r2 is None or np.isnan(r2) else explained(r2)
    shown["coverage_95"] = percent(scores["coverage_95"], n)
    return {name: unbroken(text) for name, text in shown.items()}


def about_baselines(fitted: Fit) -> str:
    """What a reader should know about the simple models in the table of scores."""
    found = fitted.record.baselines
    if not found:
        return ""
    text = "Simple models, in grey, say what a score is worth; they are fitted to the same columns."
    if fitted.model.posterior_.sampled:
        text += " Their scores are for five-fold cross-validation."
    for one in found:
        text += "".join(f" {NAMES[one['name']]}: {note}." for note in one["notes"])
    return text


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
        "loss": "loss alone",
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
    elif column == "loss":
        value = rounded(value, record["loss_error"])
    elif column in ("weight", "share"):
        value = fixed(value, 2)
    elif column == "hidden_layer_sizes":
        value = "-".join(map(str, value)) or "none"
    return number(value)


def parameter_table(fitted: Fit) -> list[dict[str, Any]]:
    """Every parameter of the network, with plain numbers to sort by.

    If the prediction averages several networks: the parameters that each of them keeps.
    """
    networks, out = _networks(fitted), list[dict[str, Any]]()
    several = len(networks) > 1
    for number_of, one in enumerate(networks, start=1):
        ends = graphs.ends_of(one.network)
        for k, (name, row) in enumerate(summary(one).iterrows()):
            if several and row["pruned"]:
                continue
            layer, i, j = ends[k]
            start = graphs.node_name(fitted, layer, i, one.network)
            end = graphs.node_name(fitted, layer + 1, j, one.network)
            cells = [float(row[c]) for c in ("median", "spread", "log_alpha", "relevance")]
            texts = graphs.as_shown(row)
            out.append(
                {
                    "name": f"{number_of}: {name}" if several else name,
                    "place": len(out),
                    "path": f"{'bias' if i < 0 else start} → {end}",
                    "kept": "pruned" if row["pruned"] else "kept",
                    "cells": [{"sort": _sortable(v), "text": t} for v, t in zip(cells, texts)],
                }
            )
    return out


def _networks(fitted: Fit) -> list[Posterior]:
    """The posterior at each of the optima that predict."""
    posterior = fitted.model.posterior_
    if not isinstance(posterior, LaplacePosterior):
        return [posterior]
    inputs = fitted.model.fitted_state().inputs
    return [posterior.alone(k, inputs) for k in range(len(posterior.mixture.optima))]


def _sortable(value: float) -> str:
    """A sort key for JavaScript; unknown values come last."""
    if np.isnan(value):
        return "-1e309"
    return "1e309" if np.isinf(value) else f"{value:.6g}"
