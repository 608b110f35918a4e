"""What a report says about the predictor: networks, weights, relevance of inputs, a formula."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sbnn._core.text import fixed, listed, unbroken, with_error
from sbnn.regressor.account.formula import SMALL

if TYPE_CHECKING:
    from sbnn.regressor.estimator import SparseBNNRegressor
    from sbnn.reports.fit import Fit

# A loss is named if it is at least this many nats per row: errors 0.5 % larger.
CLEAR = 0.005
# Shares of the total effects, for methods without losses: an input of 1 % changes the prediction
# a tenth as much as all inputs together. Below the second share it has almost no influence.
IRRELEVANT = 0.01
UNUSED = 1e-3
N_SHOWN = 6


def described(model: SparseBNNRegressor, targets: list[str]) -> dict[str, Any]:
    """The account of the predictor as plain values, for fit.json.

    Parameters
    ----------
    model : SparseBNNRegressor
    targets : list of str

    Returns
    -------
    dict
        The fields of `Account`; `formula` is that of the single network, "" if it is not small.
    """
    return {**asdict(model.account_), "formula": formula(model, targets)}


def formula(model: SparseBNNRegressor, targets: list[str], digits: int = 12) -> str:
    """The formula of the single network that suffices; "" if there is none or it is not small."""
    single = model.account_.single
    if single is None or single.n_kept > SMALL or not hasattr(model.posterior_, "alone"):
        return ""
    one = model if model.account_.n_optima == 1 else model.compact(single=True)
    return one.formula(digits, targets)


def about_weights(fitted: Fit) -> tuple[str, str]:
    """Tone and text of the sentence on networks and weights."""
    model, account = fitted.model, fitted.model.account_
    size = "-".join(map(str, model.network_.sizes))
    total, kept = account.n_parameters, account.n_kept
    several = account.n_optima > 1
    together = f"The prediction averages {account.n_optima} networks"
    if np.isnan(model.relevance_).all() or model.method_used_ == "laplace":
        start = f"{together} with" if several else f"The {size} network keeps"
        return "plain", f"{start} all {total:,} parameters: this method does not prune."
    if not account.inputs:
        return "bad", "The prediction is a constant: the weights of all inputs were pruned."
    if model.posterior_.sampled:
        text = f"The data support {kept} of the {total} parameters of the {size} network"
        return "plain", f"{text}; the others stay near zero." if kept < total else f"{text}."
    if not several:
        gone = total - kept
        text = f"The {size} network keeps {kept} of its {total} parameters; "
        went, them = ("was", "it") if gone == 1 else ("were", "them")
        end = (
            f"{gone} {went} pruned: the data do not support {them}." if gone else "none was pruned."
        )
        return "plain", text + end
    same, fewest = account.fewest == account.most, f"{account.fewest} to "
    text = f"{together}, which together keep {kept:,} of {total:,} parameters, "
    text += f"{'' if same else fewest}{account.most} each; the data do not support the others."
    if account.single is not None:
        one = model.optima_["hidden_layer_sizes"].iloc[account.single.optimum]
        size = "-".join(map(str, (model.network_.sizes[0], *one, model.network_.sizes[-1])))
        text += f" One of them, a {size} network with {account.single.n_kept} parameters, predicts "
        text += "left-out rows as well, to within 1 %: compact(single=True) in Python."
    return "plain", text


def about_formula(fitted: Fit) -> str:
    """A sentence with the formula of a small network; "" if there is none."""
    text = formula(fitted.model, fitted.targets, digits=4)
    if not text or not fitted.model.account_.inputs:
        return ""
    whose = "its formula" if fitted.model.account_.n_optima == 1 else "the formula of that network"
    return f"To four digits, {whose} is: {'; '.join(text.splitlines())}."


def about_inputs(fitted: Fit) -> str:
    """What the prediction depends on, as text; "" for a single input."""
    if len(fitted.features) == 1:
        return ""
    table = fitted.model.input_relevance_
    if table["loss"].isna().any():
        return _by_shares(fitted)
    rows = ranked(table)
    clear = [row for row in rows if row["loss"] >= CLEAR]
    used = set(fitted.model.account_.inputs)
    names = {row["name"]: set(row["members"]) & used for row in rows}
    weak = [row for row in rows if row not in clear and names[row["name"]]]
    idle = [name for name in fitted.features if name not in used]
    text = "The prediction depends on no input clearly."
    if clear:
        shown = [
            f"{_quoted(row['members'])} ({with_error(row['loss'], row['error'])})"
            for row in clear[:N_SHOWN]
        ]
        text = f"The prediction depends on {listed([*shown, *_more(len(clear))])}; in brackets, "
        text += "what left-out rows lose in log density without that input, in nats per row (0.1: "
        text += "errors about 10 % larger)."
        if any(len(row["members"]) > 1 for row in clear[:N_SHOWN]):
            text += " Inputs joined by “or” say much the same and count as one."
    if weak:
        shown = [_quoted(row["members"]) for row in weak[:N_SHOWN]]
        text += f" Used, without a clear effect: {', '.join([*shown, *_more(len(weak))])}."
    if idle:
        shown = [f"“{name}”" for name in idle[:N_SHOWN]]
        text += f" Not used: {', '.join([*shown, *_more(len(idle))])}."
    return text


def ranked(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Inputs by falling loss; a group of collinear inputs is one, named by its members."""
    out: dict[str, dict[str, Any]] = {}
    for name, row in table.iterrows():
        key = str(row["group"] or name)
        mine = out.setdefault(key, {"name": key, "members": [], **row[["loss", "error"]]})
        mine["members"].append(str(name))
    # An input that is not used has neither a loss nor an error, and comes after all that are.
    return sorted(out.values(), key=lambda row: (-row["loss"], -row["error"]))


def order_of_inputs(model: SparseBNNRegressor) -> np.ndarray:
    """Positions of the columns, the most relevant first."""
    losses = model.input_relevance_["loss"].to_numpy()
    if np.isnan(losses).any():
        return np.argsort(-model.feature_relevance_, kind="stable")
    return np.lexsort((-model.feature_relevance_, -losses))


def relevance_table(fitted: Fit, n_shown: int = 60) -> dict[str, Any]:
    """Bars of the relevance of the inputs, with their standard errors, as percentages of the axis.

    Parameters
    ----------
    fitted : Fit
    n_shown : int

    Returns
    -------
    dict
        Whether the bars are losses or shares, and the rows.
    """
    table = fitted.model.input_relevance_
    losses = not table["loss"].isna().any()
    if losses:
        found = ranked(table)
    else:
        both = fitted.model.feature_relevance_, fitted.model.feature_relevance_std_
        found = [
            {"name": fitted.features[j], "loss": both[0][j], "error": both[1][j]}
            for j in np.argsort(-both[0], kind="stable")
        ]
    longest = max((row["loss"] + row["error"] for row in found), default=0.0) if losses else 1.0
    scale = 100.0 / max(longest, 1e-12)
    place = lambda value: f"{min(max(scale * value, 0.0), 100.0):.2f}"
    rows = [
        {
            "name": row["name"],
            "percent": place(row["loss"]),
            "low": place(row["loss"] - row["error"]),
            "high": place(row["loss"] + row["error"]),
            "text": unbroken(
                _loss(row) if losses else _share(100 * row["loss"], 100 * row["error"])
            ),
        }
        for row in found[:n_shown]
    ]
    return {"losses": losses, "rows": rows, "n": len(found)}


def _loss(row: dict[str, Any]) -> str:
    return "not used" if row["loss"] == row["error"] == 0 else with_error(row["loss"], row["error"])


def _share(value: float, error: float) -> str:
    """A percentage with at most one decimal."""
    if max(value, error) < 0.05:
        return "below 0.1 %"
    return (with_error(value, error) if error >= 0.05 else f"{fixed(value, 1)} ± below 0.1") + " %"


def _quoted(members: list[str]) -> str:
    return " or ".join(f"“{name}”" for name in members[:N_SHOWN])


def _more(n: int) -> list[str]:
    return [f"{n - N_SHOWN} more"] if n > N_SHOWN else []


def _by_shares(fitted: Fit) -> str:
    """The inputs by their shares in the total effects on the prediction."""
    shares = fitted.model.feature_relevance_
    sure = shares >= np.maximum(IRRELEVANT, 2 * fitted.model.feature_relevance_std_)
    sure |= shares >= 0.2  # large enough to be named even if the draws disagree on it
    order = np.argsort(-shares)
    named = [j for i, j in enumerate(order) if sure[j] and (i < 3 or shares[j] >= 0.1)]
    found = [f"“{fitted.features[j]}” ({_as_percent(shares[j])})" for j in named]
    text = "The prediction depends on no input."
    if found:
        most = " mainly" if (shares >= IRRELEVANT).sum() > len(found) else ""
        text = f"The prediction depends{most} on {listed(found)}."
    rest = [j for j in order if j not in named]
    weak = [j for j in rest if shares[j] >= UNUSED]
    idle = [j for j in rest if shares[j] < UNUSED]
    for title, inputs in (("Weaker or less certain", weak), ("Almost no influence", idle)):
        if inputs:
            shown = [f"“{fitted.features[j]}”" for j in inputs[:6]]
            if inputs is weak:
                shown = [f"{name} ({_as_percent(shares[j])})" for name, j in zip(shown, inputs)]
            more = f" and {len(inputs) - 6} more" if len(inputs) > 6 else ""
            text += f" {title}: {', '.join(shown)}{more}."
    return text


def _as_percent(value: float) -> str:
    return f"{100 * value:.0f} %" if value >= 0.01 else f"{100 * value:.1f} %"
