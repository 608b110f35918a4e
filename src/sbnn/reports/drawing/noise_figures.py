"""Figures of the noise: its level against the variable it depends on, and coverage by fifths."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from sbnn._core.text import number
from sbnn.reports.columns import axis, show_axis
from sbnn.reports.drawing.figures import Shown, colour, embed, label, short
from sbnn.reports.drawing.plots import BEFORE, DATA, TRUTH, _figure
from sbnn.reports.fit import Fit
from sbnn.reports.noise import (
    FALSE_ALARM,
    FIFTHS,
    PREDICTED,
    Driver,
    has_heavy_tails,
    is_improbable,
    noise_driver,
    quantile_groups,
    typical_levels,
)
from sbnn.reports.validation import LEVEL

MISSED = "#D55E00"
N_COLUMNS = 3
WITHIN = 0.6827  # of a normal distribution is within one standard deviation


def levels(fitted: Fit) -> list[Shown]:
    """The level of the noise, for each target whose noise varies; none if errors are known."""
    if fitted.record.noise_columns:
        return []
    found, out = typical_levels(fitted), []
    for k, target in enumerate(fitted.targets):
        driver = noise_driver(fitted, found[:, k], k)
        if driver is None:
            continue
        figure = _level_figure(fitted, driver, found[:, k], k)
        which = "the predicted value" if driver.name == PREDICTED else f"“{driver.name}”"
        what, summary = _words(fitted)
        text = (
            f"Line: median of the {what} at the rows of the table, against {which}, which explains "
            f"{100 * driver.explained:.0f} % of its variation (of the logarithm), more than any "
            "other variable. Band: 80 % of the rows. Dots: absolute errors of unseen rows; "
            f"circles: {summary}, which also contains the uncertainty of the function, without "
            "rows that do not fit the rest."
        )
        out.append(embed(figure, f"Noise of {target}", text))
    return out


def _words(fitted: Fit) -> tuple[str, str]:
    """What the line and the circles show: 68 % quantiles, or moments of Gaussian noise."""
    if has_heavy_tails(fitted):
        return "typical noise (68 % is within)", "the distance within which 68 % of them lie"
    return "standard deviation of the noise", "their root mean square"


def _level_figure(fitted: Fit, driver: Driver, level: np.ndarray, k: int) -> Any:
    held, tone = fitted.held_out, colour(fitted)
    by_prediction = driver.name == PREDICTED
    known = np.full(len(level), True) if by_prediction else fitted.x[driver.name].notna().to_numpy()
    values, level = driver.values[known], level[known]
    groups = quantile_groups(values, int(np.clip(len(level) // 8, 2, 25)))
    places = np.array([np.median(values[rows]) for rows in groups])
    low, middle, high = np.array([np.quantile(level[rows], [0.1, 0.5, 0.9]) for rows in groups]).T
    figure = _figure(figsize=(7.6, 3.8))
    ax = figure.add_subplot()
    x = (held.mean[:, k] if by_prediction else driver.values[held.rows])[known[held.rows]]
    error = np.abs(held.y[:, k] - held.mean[:, k])[known[held.rows]]
    shown = np.random.default_rng(0).permutation(len(x))[:1500]
    ax.plot(x[shown], error[shown], ".", color=DATA, ms=4, alpha=0.45, label="absolute errors")
    wrong = {r["line"] for r in fitted.record.outliers if r["target"] == fitted.targets[k]}
    fits = ~np.isin(fitted.data.index[held.rows[known[held.rows]]], list(wrong))
    x, error = x[fits], error[fits]
    bins = quantile_groups(x, int(np.clip(len(x) // 20, 2, 10)))
    (line, circles), heavy = _words(fitted), has_heavy_tails(fitted)
    of_bin = [np.quantile(e, WITHIN) if heavy else np.sqrt((e**2).mean())
              for e in (error[rows] for rows in bins)]  # fmt: skip
    ax.plot([np.median(x[rows]) for rows in bins], of_bin, "o", color=TRUTH, ms=6, mfc="none",
            mew=1.3, label=circles)  # fmt: skip
    ax.fill_between(places, low, high, color=tone, alpha=0.25, lw=0)
    ax.plot(places, middle, color=tone, lw=2.2, label=line)
    # A few outliers would compress everything else.
    top = 1.1 * max(float(np.quantile(error, 0.99)), float(high.max()), *of_bin[:-1])
    ax.set_ylim(0, top)
    if not by_prediction:
        show_axis(ax, axis(fitted, driver.name))
    name = f"predicted {fitted.targets[k]}" if by_prediction else driver.name
    label(ax, xlabel=name, ylabel=f"noise of {fitted.targets[k]}")
    ax.legend(frameon=False, fontsize=9)
    return figure


def coverage(fitted: Fit) -> list[Shown]:
    """Coverage by fifths of the predicted value and of each important input, by target."""
    out, n_fifths = [], len(fitted.record.coverage_by_fifths)
    for target, of_target in groupby(fitted.record.coverage_by_fifths, lambda f: f["target"]):
        panels = [list(fifths) for _, fifths in groupby(of_target, lambda f: f["by"])]
        lowest = min(min(f["allowed_low"], f["coverage"]) for fifths in panels for f in fifths)
        n_lines, bottom = -(-len(panels) // N_COLUMNS), 100 * lowest - 3
        figure = _figure(figsize=(3.1 * min(len(panels), N_COLUMNS) + 0.5, 2.5 * n_lines))
        axes = figure.subplots(n_lines, min(len(panels), N_COLUMNS), squeeze=False, sharey=True)
        for ax in axes.flat[len(panels) :]:
            ax.set_axis_off()
        for ax, fifths in zip(axes.flat, panels):
            _coverage_panel(ax, fifths, colour(fitted))
            ax.set_ylim(bottom, 102)
            by = fifths[0]["by"]
            label(ax, xlabel=f"predicted {target}" if by == PREDICTED else by)
        for ax in axes[:, 0]:
            ax.set_ylabel("inside, %")
        text = (
            "Share of unseen rows inside their 95 % interval, from the lowest to the highest fifth "
            "of the predicted value and of each important input (for categories, in the most "
            "frequent ones); the numbers below are medians. "
            "Grey: what chance allows if the intervals are right: with a probability of "
            f"{100 * (1 - FALSE_ALARM):.0f} %, all {n_fifths} fifths are within it (binomial "
            f"distribution, {100 * FALSE_ALARM:.0f} % divided by {n_fifths}). Crosses: outside."
        )
        out.append(embed(figure, f"Coverage of {target} by fifths", text))
    return out


def _tick(fifth: dict[str, Any]) -> str:
    """The middle of a fifth, or the name of a category."""
    if fifth["kind"] == "category":
        return short(fifth["fifth"], 12)
    if fifth["kind"] == "date":
        return str(np.datetime64(int(fifth["middle"]), "D"))
    return number(fifth["middle"], 2)


def _coverage_panel(ax: Any, fifths: list[dict[str, Any]], tone: str) -> None:
    places = np.arange(len(fifths))
    low, high, share = (
        np.array([100 * f[name] for f in fifths])
        for name in ("allowed_low", "allowed_high", "coverage")
    )
    ax.bar(places, high - low, 0.7, low, color=BEFORE, alpha=0.3, lw=0)
    ax.axhline(100 * LEVEL, color=TRUTH, lw=1, ls="--")
    bad = np.array([is_improbable(f) for f in fifths])
    ax.plot(places[~bad], share[~bad], "o", color=tone, ms=6)
    ax.plot(places[bad], share[bad], "X", color=MISSED, ms=8)
    names = [_tick(f) for f in fifths]
    turned = max(map(len, names)) > 7
    ax.set_xticks(
        places, names, fontsize=8, parse_math=False,
        **({"rotation": 30, "ha": "right"} if turned else {}),
    )  # fmt: skip
    middle, half = (len(fifths) - 1) / 2, max(len(fifths), len(FIFTHS)) / 2
    ax.set_xlim(middle - half - 0.1, middle + half + 0.1)
