"""The report of one fit: a verdict in words, figures and tables on one HTML page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sbnn._core.atomic import write_text
from sbnn._core.extras import require
from sbnn._core.text import (
    duration,
    explained,
    fixed,
    listed,
    log_evidence,
    names,
    number,
    percent,
    rounded,
    unbroken,
    with_error,
    words,
)
from sbnn.methods.registry import title_of
from sbnn.regressor.posteriors import LaplacePosterior
from sbnn.reports import figures
from sbnn.reports import network_graph as graphs
from sbnn.reports.cautions import cautions, noise_text
from sbnn.reports.fit import Fit
from sbnn.reports.glossary import GLOSSARY
from sbnn.reports.output_paths import REPORT

# Shares of the prediction's sensitivity, of squared slopes: an input of 1 % moves the prediction a
# tenth as much as all together do. Below the second one an input is called without influence.
IRRELEVANT = 0.01
UNUSED = 1e-3


class Sentence(NamedTuple):
    """A statement of the verdict: "good", "bad" or "plain"."""

    tone: str
    text: str


def write(fitted: Fit, folder: Path) -> Path:
    """Write the page into the folder of the fit and return its path."""
    path = folder / REPORT
    write_text(path, render(fitted))
    return path


def render(fitted: Fit) -> str:
    """The page; everything that comes from the user's table is escaped by the template."""
    require("report", "A report", "jinja2", "matplotlib")
    from jinja2 import Environment, PackageLoader, select_autoescape

    environment = Environment(
        loader=PackageLoader("sbnn.reports"), autoescape=select_autoescape(default=True)
    )
    for function in (number, names, unbroken, duration, words, with_options):
        environment.filters[function.__name__] = function
    one_input = len(fitted.features) == 1
    model = fitted.model
    return environment.get_template("fit.html").render(
        fit=fitted,
        record=fitted.record,
        method=title_of(model.method_used_),
        sentences=verdict(fitted),
        warnings=cautions(fitted),
        scores=_scores(fitted),
        curves=figures.curves(fitted) if one_input else figures.partial_dependence(fitted),
        observed=figures.observed(fitted),
        calibration=figures.calibration(fitted),
        pairs=figures.pairs(fitted),
        optimisation=figures.optimisation(fitted),
        graph=graphs.network_graph(fitted),
        relevance=_relevance(fitted),
        optima=_optima(fitted),
        log_evidence=_log_evidence(fitted),
        glossary=GLOSSARY,
        parameters=_parameters(fitted),
        mixture_size=len(model.optima_),
        sampled=not isinstance(model._posterior, LaplacePosterior),
        one_input=one_input,
        has_relevance=not np.isnan(model.relevance_).all(),
    )


def with_options(text: str):
    """The text, escaped, with options such as --hidden set as code that no line breaks."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"--[a-z][a-z-]*", r'<code class="whole">\g<0></code>', str(escape(text))))


# -------------------------------------------------------------------------------------- verdict
def verdict(fitted: Fit) -> list[Sentence]:
    """How good, how sure, what was pruned, verified or not."""
    out = [_goodness(fitted, k) for k in range(len(fitted.targets))]
    out += [_sureness(fitted, k) for k in range(len(fitted.targets))]
    out += [_sparsity(fitted), *_inputs(fitted), _verified(fitted)]
    return out


def _goodness(fitted: Fit, k: int) -> Sentence:
    r2, rmse = fitted.scores["r2"][k], fitted.scores["rmse"][k]
    name = fitted.targets[k]
    if np.isnan(r2):
        return Sentence("plain", f"“{name}” is the same in every row; there is nothing to explain.")
    error = f"its typical error is {with_error(rmse, _errors(fitted)['rmse'][k])}, where “{name}” "
    error += f"itself varies by {number(float(fitted.held_out.y[:, k].std()))}"
    if r2 < 0.05:
        how = "worse" if r2 < -0.1 else "hardly better"
        return Sentence("bad", f"In rows it did not see, the model predicts “{name}” {how} than "
                        f"the mean does: {error}.")  # fmt: skip
    degree = "nearly all" if r2 > 0.95 else "most" if r2 > 0.7 else "part" if r2 > 0.3 else "little"
    return Sentence(
        "good" if r2 > 0.7 else "plain",
        f"The model explains {degree} of “{name}” in rows it did not see ({explained(r2)} of the "
        f"variance): {error}.",
    )


def coverage_range(n: int, level: float = 0.95) -> tuple[float, float]:
    """Shares of n rows inside right intervals, central 95 % of the binomial distribution."""
    from scipy.stats import binom

    low, high = binom.ppf([0.025, 0.975], n, level) / n
    return float(low), float(high)


def _sureness(fitted: Fit, k: int) -> Sentence:
    share, n = fitted.scores["coverage_95"][k], len(fitted.held_out.rows)
    low, high = coverage_range(n)
    noise = float(np.atleast_1d(fitted.model.noise_std_)[k])
    own = float(figures.own_uncertainty(fitted)[k])
    start = f"95 % intervals for “{fitted.targets[k]}” held {percent(share, n)} of {n:,} such rows"
    known = "given as" if fitted.model.noise_std is not None else "found to be"
    end = (
        f" They contain the noise, {known} {noise_text(fitted, noise)} (standard deviation), and "
        f"the model's own uncertainty, {number(own, 2)} for a typical row."
    )
    if share < low:
        return Sentence("bad", f"{start}, too few: the model is surer than it should be.{end}")
    if share > high:
        return Sentence("plain", f"{start}: the intervals are wider than they need to be.{end}")
    allowed = f"{100 * low:.0f} to {100 * high:.0f} %"
    return Sentence("good", f"{start}, within what chance allows ({allowed}).{end}")


def _sparsity(fitted: Fit) -> Sentence:
    model = fitted.model
    total, gone = model.network_.n_parameters, int(model.summary()["pruned"].sum())
    size = "-".join(map(str, model.network_.sizes))
    if np.isnan(model.relevance_).all() or model.method_used_ == "laplace":
        return Sentence("plain", f"All {total} parameters of the {size} network are kept: this "
                        "method does not prune.")  # fmt: skip
    if (model.optima_["n_kept"] == 0).all():
        return Sentence("bad", f"All {total} parameters were pruned: the prediction is a constant.")
    several = len(model.optima_) > 1
    text = f"The best optimum, network {size}," if several else f"The {size} network"
    went, them = ("was", "it") if gone == 1 else ("were", "them")
    text += f" keeps {total - gone or 'none'} of its {total} parameters; "
    text += f"{gone} {went} pruned: the data do not ask for {them}." if gone else "none was pruned."
    if several:
        text += f" The prediction averages {len(model.optima_)} optima: fits from different starts"
        text += ", each pruned by itself."
    return Sentence("plain", text)


def _inputs(fitted: Fit) -> list[Sentence]:
    shares = fitted.model.feature_relevance_
    if len(shares) == 1:
        return []
    sure = shares >= np.maximum(IRRELEVANT, 2 * fitted.model.feature_relevance_std_)
    sure |= shares >= 0.2  # so large that it is named even where optima disagree on it
    order = np.argsort(-shares)
    named = [j for i, j in enumerate(order) if sure[j] and (i < 3 or shares[j] >= 0.1)]
    found = [f"“{fitted.features[j]}” ({_as_percent(shares[j])})" for j in named]
    text = "The prediction follows no input."
    if found:
        most = " most" if (shares >= IRRELEVANT).sum() > len(found) else ""
        text = f"The prediction follows {listed(found)}{most}."
    rest = [j for j in order if j not in named]
    weak = [j for j in rest if shares[j] >= UNUSED]
    idle = [j for j in rest if shares[j] < UNUSED]
    for title, inputs in (("Less, or less surely", weak), ("Next to no influence", idle)):
        if inputs:
            shown = [f"“{fitted.features[j]}”" for j in inputs[:6]]
            if inputs is weak:
                shown = [f"{name} ({_as_percent(shares[j])})" for name, j in zip(shown, inputs)]
            more = f" and {len(inputs) - 6} more" if len(inputs) > 6 else ""
            text += f" {title}: {', '.join(shown)}{more}."
    return [Sentence("plain", text)]


def _as_percent(value: float) -> str:
    return f"{100 * value:.0f} %" if value >= 0.01 else f"{100 * value:.1f} %"


def _verified(fitted: Fit) -> Sentence:
    run = fitted.record.get("run", {})
    value = f"log evidence {_log_evidence(fitted)}"
    if not run:
        return Sentence(
            "plain",
            f"Not verified by sampling: the {value} is Laplace's estimate at the best optimum. The "
            "scores on unseen rows do not depend on it.",
        )
    if run["verified"] is None:
        return Sentence("plain", f"Sampled directly, so there is nothing to verify: {value}.")
    gap = rounded(run["evidence_gap"], run["log_evidence_error"])
    if run["verified"] and not run["converged"]:
        return Sentence("plain", f"Verified, with a reservation: the {value} computed at the "
                        f"optimum agrees with the estimate that led there (off by {gap} nat), but "
                        "the sampler there moved slowly, so its error may be larger.")  # fmt: skip
    if run["verified"]:
        return Sentence("good", f"Verified: the {value} was computed exactly at the optimum; the "
                        f"estimate that led there was off by {gap} nat.")  # fmt: skip
    return Sentence("bad", f"Not verified: the exact and the estimated log evidence differ by "
                    f"{gap} nat; the precisions α, and what was pruned, may be wrong.")  # fmt: skip


def _log_evidence(fitted: Fit) -> str:
    return log_evidence(
        fitted.model.log_evidence_, fitted.record.get("run", {}).get("log_evidence_error")
    )


# --------------------------------------------------------------------------------------- tables
def _errors(fitted: Fit) -> dict[str, np.ndarray]:
    """Standard errors of scores that are means over rows, per output."""
    held = fitted.held_out
    squares = (held.y - held.mean) ** 2
    spread = {"nlpd": held.log_density, "crps": held.crps}
    errors = {name: v.std(axis=0) / np.sqrt(len(v)) for name, v in spread.items()}
    # of a square root: δ√m = δm / 2√m
    rmse = np.sqrt(squares.mean(axis=0))
    errors["rmse"] = squares.std(axis=0) / np.sqrt(len(squares)) / np.maximum(2 * rmse, 1e-300)
    return errors


def _scores(fitted: Fit) -> list[dict[str, str]]:
    """The scores of every target as they are shown."""
    scores, errors, n = fitted.scores, _errors(fitted), len(fitted.held_out.rows)
    out = []
    for k in range(len(fitted.targets)):
        shown = {name: with_error(scores[name][k], e[k]) for name, e in errors.items()}
        shown["width_95"] = number(scores["width_95"][k])
        r2 = scores["r2"][k]
        shown["r2"] = "–" if np.isnan(r2) else explained(r2)
        shown["coverage_95"] = percent(scores["coverage_95"][k], n)
        out.append({name: unbroken(text) for name, text in shown.items()})
    return out


def _relevance(fitted: Fit) -> list[dict[str, Any]]:
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
    """Tenths of a percent at most."""
    if max(value, error) < 0.05:
        return "below 0.1 %"
    return (with_error(value, error) if error >= 0.05 else f"{fixed(value, 1)} ± below 0.1") + " %"


def _optima(fitted: Fit) -> dict[str, Any]:
    """Columns and rows of the table of optima."""
    run = fitted.record.get("run", {})
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
    records = run["optima"] if run.get("optima") else fitted.model.optima_.to_dict("records")
    columns = [c for c in titles if records and c in records[0]]
    rows = []
    for record in records[:40]:
        cells = []
        for c in columns:
            value = record[c]
            if c == "log_evidence":
                error = record.get("log_evidence_error")
                value = fixed(value, 1) if error is None else rounded(value, error)
            elif c == "log_evidence_error":
                value = rounded(value, value)
            elif c == "gap":
                value = rounded(value, record.get("log_evidence_error"))
            elif c in ("weight", "share"):
                value = fixed(value, 2)
            elif c == "hidden_layer_sizes":
                value = "-".join(map(str, value)) or "none"
            cells.append(number(value))
        rows.append(cells)
    return {"titles": [titles[c] for c in columns], "rows": rows, "n": len(records)}


def _parameters(fitted: Fit) -> list[dict[str, Any]]:
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
    """A number JavaScript sorts; unknown values come last."""
    if np.isnan(value):
        return "-1e309"
    return "1e309" if np.isinf(value) else f"{value:.6g}"
