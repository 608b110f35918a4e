"""The report of one fit: a verdict in words, figures and tables on one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sbnn import report_figures as figures
from sbnn import report_network as graphs
from sbnn.fitted import LaplacePosterior
from sbnn.folder import REPORT, Fit, write_text
from sbnn.glossary import GLOSSARY, for_the_command_line
from sbnn.plots import TITLES

# Inputs below this share of the prediction's sensitivity are called irrelevant.
IRRELEVANT = 0.01
UNUSED = 1e-4


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
    from jinja2 import Environment, PackageLoader, select_autoescape

    environment = Environment(
        loader=PackageLoader("sbnn"), autoescape=select_autoescape(default=True)
    )
    environment.filters["number"] = number
    one_input = len(fitted.features) == 1
    model = fitted.model
    return environment.get_template("fit.html").render(
        fit=fitted,
        record=fitted.record,
        method=TITLES.get(model.method_used_, model.method_used_),
        sentences=verdict(fitted),
        warnings=cautions(fitted),
        scores=fitted.scores,
        curves=figures.curves(fitted) if one_input else figures.partial_dependence(fitted),
        observed=figures.observed(fitted),
        calibration=figures.calibration(fitted),
        pairs=figures.pairs(fitted),
        optimisation=figures.optimisation(fitted),
        graph=graphs.network_graph(fitted),
        relevance=_relevance(fitted),
        optima=_optima(fitted),
        unsettled=unsettled(fitted),
        glossary=GLOSSARY,
        parameters=_parameters(fitted),
        mixture_size=len(model.optima_),
        sampled=not isinstance(model._posterior, LaplacePosterior),
        one_input=one_input,
        has_relevance=not np.isnan(model.relevance_).all(),
    )


def number(value: Any, digits: int = 3) -> str:
    """A number for people: three digits, a true minus, – for what is unknown."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float | np.floating):
        value = float(value)
        if np.isinf(value):
            return "∞" if value > 0 else "−∞"
        text = f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.{digits}g}"
        return text.replace("-", "−")
    return str(value)


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
    error = f"its typical error is {number(rmse)}, where “{name}” itself varies by "
    error += f"{number(float(fitted.held_out.y[:, k].std()))}"
    if r2 < 0.05:
        return Sentence("bad", f"In rows it did not see, the model predicts “{name}” hardly better "
                        f"than the mean does: {error}.")  # fmt: skip
    degree = "nearly all" if r2 > 0.95 else "most" if r2 > 0.7 else "part" if r2 > 0.3 else "little"
    return Sentence(
        "good" if r2 > 0.7 else "plain",
        f"The model explains {degree} of “{name}” in rows it did not see ({100 * r2:.1f} % of the "
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
    start = f"95 % intervals for “{fitted.targets[k]}” held {100 * share:.1f} % of {n:,} such rows"
    known = "given as" if fitted.model.noise_std is not None else "found to be"
    end = (
        f" They contain the noise, {known} {number(noise)} (standard deviation), and the model's "
        f"own uncertainty, {number(own)} for a typical row."
    )
    if share < low:
        return Sentence("bad", f"{start}, too few: the model is surer than it should be.{end}")
    if share > high:
        return Sentence("plain", f"{start}: the intervals are wider than they need to be.{end}")
    allowed = f"{100 * low:.0f} to {100 * high:.0f} %"
    return Sentence("good", f"{start}, within what chance allows ({allowed}).{end}")


def _sparsity(fitted: Fit) -> Sentence:
    model = fitted.model
    total, gone = model.network_.n_parameters, int(graphs.pruned(fitted).sum())
    size = "-".join(map(str, model.network_.sizes))
    if np.isnan(model.relevance_).all() or model.method_used_ == "laplace":
        return Sentence("plain", f"All {total} parameters of the {size} network are kept: this "
                        "method does not prune.")  # fmt: skip
    if gone == total:
        return Sentence("bad", f"All {total} parameters were pruned: the prediction is a constant.")
    several = len(model.optima_) > 1
    text = f"The best optimum, network {size}," if several else f"The {size} network"
    text += f" keeps {total - gone} of its {total} parameters; {gone} were pruned: the data do not "
    text += "ask for them."
    if several:
        text += (
            f" The prediction averages {len(model.optima_)} optima (fits from different starts), "
            f"which keep {model.n_parameters_kept_:.0f} of {model.n_parameters_:.0f} on average."
        )
    return Sentence("plain", text)


def _inputs(fitted: Fit) -> list[Sentence]:
    shares = fitted.model.feature_relevance_
    if len(shares) == 1:
        return []
    sure = shares >= np.maximum(IRRELEVANT, 2 * fitted.model.feature_relevance_std_)
    sure |= shares >= 0.2  # so large that it is named even where optima disagree on it
    order = np.argsort(-shares)
    named = [j for i, j in enumerate(order) if sure[j] and (i < 3 or shares[j] >= 0.1)]
    names = [f"“{fitted.features[j]}” ({100 * shares[j]:.0f} %)" for j in named]
    text = "The prediction follows no input."
    if names:
        most = " most" if (shares >= IRRELEVANT).sum() > len(names) else ""
        text = f"The prediction follows {_list(names)}{most}."
    # Shares are of squared slopes: an input of 1 % moves the prediction a tenth as much as all do.
    weak = [j for j in order if UNUSED <= shares[j] < IRRELEVANT]
    idle = [j for j in order if shares[j] < UNUSED]
    for title, inputs in (("Weak, but used", weak), ("Next to no influence", idle)):
        if inputs:
            shown = [f"“{fitted.features[j]}”" for j in sorted(inputs)[:6]]
            more = f" and {len(inputs) - 6} more" if len(inputs) > 6 else ""
            text += f" {title}: {', '.join(shown)}{more}."
    return [Sentence("plain", text)]


def _verified(fitted: Fit) -> Sentence:
    run = fitted.record.get("run", {})
    value = f"log evidence {number(fitted.model.log_evidence_, 5)}"
    if not run:
        return Sentence(
            "plain",
            f"Not verified by sampling: the {value} is Laplace's estimate at the best optimum"
            f"{_unconverged(fitted)}. The scores on unseen rows do not depend on it.",
        )
    value += f" ± {number(run['log_evidence_error'], 2)}"
    if run["verified"] is None:
        return Sentence("plain", f"Sampled directly, so there is nothing to verify: {value}.")
    gap = number(run["evidence_gap"], 2)
    if run["verified"] and not run["converged"]:
        return Sentence("plain", f"The {value} computed at the optimum agrees with the estimate "
                        f"that led there (off by {gap}), but the particles had not forgotten their "
                        "start in every stage, so both may be off together.")  # fmt: skip
    if run["verified"]:
        return Sentence("good", f"Verified: the {value} was computed exactly at the optimum; the "
                        f"estimate that led there was off by {gap}.")  # fmt: skip
    return Sentence("bad", f"Not verified: the exact and the estimated log evidence differ by "
                    f"{gap}; the precisions α, and what was pruned, may be wrong.")  # fmt: skip


def _unconverged(fitted: Fit) -> str:
    if "converged" not in fitted.model.optima_:
        return ""
    done = fitted.model.optima_["converged"]
    return "" if done.all() else f"; {(~done).sum()} of {len(done)} optima had not converged"


def _list(items: list[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def cautions(fitted: Fit) -> list[str]:
    """What a careful reader should know before trusting the numbers."""
    out, data, n = [], fitted.data, len(fitted.data)
    constant = [name for name in fitted.features if np.ptp(data[name].to_numpy()) == 0]
    if constant:
        out.append(f"The same value in every row: {', '.join(f'“{c}”' for c in constant[:8])}.")
    if n < 30:
        out.append(f"Only {n} rows: the scores on unseen rows are rough.")
    repeated = int(data.duplicated().sum())
    if repeated:
        out.append(
            f"{repeated} rows repeat another one exactly; scores on unseen rows may look too good."
        )
    noise = np.atleast_1d(fitted.model.noise_std_)
    residual = np.sqrt(((fitted.held_out.y - fitted.held_out.mean) ** 2).mean(axis=0))
    for k, name in enumerate(fitted.targets):
        if noise[k] > 1.5 * residual[k] > 0:
            out.append(
                f"The noise of “{name}” ({number(float(noise[k]))}) is far above the errors on "
                f"unseen rows ({number(float(residual[k]))}): the intervals are too wide."
            )
    if _growth(fitted)[1] > 1:
        out.append(unsettled(fitted))
    run = fitted.record.get("run", {})
    # A method both warns and keeps the message in its result, with the reason inside.
    told = list(dict.fromkeys([*run.get("messages", []), *fitted.record.get("warnings", [])]))
    if run and not run["converged"] and not any(run["reason"] in text for text in told):
        out.append(f"The sampler says: {run['reason']}.")
    return [*out, *(for_the_command_line(text) for text in told)]


def _growth(fitted: Fit) -> tuple[int, float]:
    """Optima stopped by the limit of iterations, and how far their evidence moved in ten more."""
    posterior = fitted.model._posterior
    if not isinstance(posterior, LaplacePosterior):
        return 0, 0.0
    moving = [o for o in posterior.mixture.optima if not o.converged and len(o.history) > 10]
    return len(moving), max((abs(o.history[-1] - o.history[-11]) for o in moving), default=0.0)


def unsettled(fitted: Fit) -> str:
    """Whether the evidence of the optima was still changing when the iterations ended."""
    moving, growth = _growth(fitted)
    if not moving:
        return ""
    rough = " Evidence and pruning are rough." if growth > 1 else ""
    return (
        f"{moving} of {len(fitted.model.optima_)} optima reached the limit of iterations before "
        f"they had converged; in the last ten the log evidence still changed by up to "
        f"{number(float(growth), 2)} nat.{rough} The scores on unseen rows hold as they are."
    )


# --------------------------------------------------------------------------------------- tables
def _relevance(fitted: Fit) -> list[dict[str, Any]]:
    shares, spread = fitted.model.feature_relevance_, fitted.model.feature_relevance_std_
    order = np.argsort(-shares, kind="stable")[:60]
    return [
        {
            "name": fitted.features[j],
            "share": float(shares[j]),
            "percent": f"{100 * min(max(float(shares[j]), 0.0), 1.0):.2f}",
            "text": f"{100 * shares[j]:.1f} ± {100 * spread[j]:.1f} %",
        }
        for j in order
    ]


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
    shift = fitted.model.log_evidence_ - records[0].get("log_evidence", fitted.model.log_evidence_)
    rows = []
    for record in records[:40]:
        cells = []
        for c in columns:
            value = record[c]
            if c == "log_evidence":  # in the units of y, as everywhere else
                value = f"{value + shift:.2f}".replace("-", "−")
            elif c == "hidden_layer_sizes":
                value = "-".join(map(str, value)) or "none"
            cells.append(number(value))
        rows.append(cells)
    return {"titles": [titles[c] for c in columns], "rows": rows, "n": len(records)}


def _parameters(fitted: Fit) -> list[dict[str, Any]]:
    """Every parameter of the best network, with plain numbers to sort by."""
    table, gone = fitted.model.summary(), graphs.pruned(fitted)
    ends = graphs.ends_of(fitted.model.network_)
    out = []
    for k, (name, row) in enumerate(table.iterrows()):
        layer, i, j = ends[k]
        start, end = graphs.node_name(fitted, layer, i), graphs.node_name(fitted, layer + 1, j)
        cells = [float(row[c]) for c in ("mean", "std", "log_alpha", "relevance")]
        out.append(
            {
                "name": name,
                "place": k,
                "path": f"{'bias' if i < 0 else start} → {end}",
                "kept": "pruned" if gone[k] else "kept",
                "cells": [{"sort": _sortable(v), "text": number(v)} for v in cells],
            }
        )
    return out


def _sortable(value: float) -> str:
    """A number JavaScript sorts; unknown values come last."""
    if np.isnan(value):
        return "-1e309"
    return "1e309" if np.isinf(value) else f"{value:.6g}"
