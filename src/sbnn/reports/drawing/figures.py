"""Figures of a fit's report: the curve of one input, calibration, pairs, evidence."""

from __future__ import annotations

import base64
import io
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binom

from sbnn.methods.registry import colour_of
from sbnn.reports.columns import numbers_of
from sbnn.reports.drawing.plots import BEFORE, DATA, TRUTH, _figure, plot_pairs
from sbnn.reports.fit import Fit

N_PAIRS = 5
# Ends of the central 95 % of a distribution.
BAND = (0.025, 0.975)
# A drop of the log evidence in one iteration, in nats, larger than any regular step makes.
FALL = 5.0


class Shown(NamedTuple):
    """A figure of the page."""

    title: str
    caption: str
    source: str  # a data: URL


def short(name: str, length: int = 28) -> str:
    """A column name on one line, shortened to fit into a figure."""
    name = " ".join(str(name).split())
    return name if len(name) <= length else name[: length - 1] + "…"


def colour(fitted: Fit) -> str:
    return colour_of(fitted.model.method_used_)


def embed(figure: Any, title: str, caption: str, dpi: int = 110) -> Shown:
    """The figure as a PNG inside the page."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # column names may contain glyphs that the font lacks
        figure.savefig(buffer, format="png", dpi=dpi)
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    return Shown(title, caption, source)


def label(ax: Any, **texts: str) -> None:
    """Show labels literally: a $ in a column name does not start a formula."""
    for place, text in texts.items():
        getattr(ax, f"set_{place}")(short(text), parse_math=False)


# ---------------------------------------------------------------------------------- predictions
def curves(fitted: Fit) -> list[Shown]:
    """One input: the function and new observations, slightly beyond the range of the data."""
    name = fitted.features[0]
    x = numbers_of(fitted.x[name])
    y = fitted.y[~np.isnan(x)]
    x = x[~np.isnan(x)]
    pad = 0.15 * (np.ptp(x) or 1.0)
    grid = np.linspace(x.min() - pad, x.max() + pad, 300)
    frame = pd.DataFrame({name: grid})
    mean, interval = fitted.model.predict(frame, return_interval=0.95)
    band = fitted.model.predictive(frame, noise=False).quantiles(BAND)
    band = band.reshape(2, len(grid), -1)
    mean, out = mean.reshape(len(grid), -1), []
    interval = interval[:, None, :] if interval.ndim == 2 else interval
    for k, target in enumerate(fitted.targets):
        figure = _figure(figsize=(7.6, 4.2))
        ax = figure.add_subplot()
        tone = colour(fitted)
        ax.fill_between(grid, *interval[:, k].T, color=tone, alpha=0.16, lw=0,
                        label="95 % of new observations")  # fmt: skip
        ax.fill_between(grid, *band[..., k], color=tone, alpha=0.38, lw=0,
                        label="95 % band of the function")  # fmt: skip
        ax.plot(grid, mean[:, k], color=tone, lw=1.9, label="mean")
        ax.plot(x, y[:, k], "o", color=DATA, ms=3.5, mfc="none", label="data")
        for edge in (x.min(), x.max()):
            ax.axvline(edge, color=BEFORE, lw=0.8, ls=":")
        label(ax, xlabel=name, ylabel=target)
        ax.legend(frameon=False, fontsize=9)
        text = (
            "Mean; the inner band holds the function with 95 % probability (the model's own "
            "uncertainty), the outer one new observations: function and noise together. Dotted "
            "lines: limits of the data."
        )
        out.append(embed(figure, f"{target} as a function of {name}", text))
    return out


# ---------------------------------------------------------------------------------- calibration
def calibration(fitted: Fit) -> list[Shown]:
    """PIT histogram, and observed against nominal coverage of central intervals."""
    held, out = fitted.held_out, []
    levels = np.linspace(0.02, 0.98, 49)
    for k, target in enumerate(fitted.targets):
        pit = held.pit[:, k]
        n = len(pit)
        figure = _figure(figsize=(9, 3.5))
        figure.get_layout_engine().set(wspace=0.08)
        left, right = figure.subplots(1, 2)
        bins = int(np.clip(n // 8, 4, 20))
        left.axhspan(*binom.ppf(BAND, n, 1 / bins), color=BEFORE, alpha=0.3, lw=0, zorder=0)
        left.hist(pit, bins=np.linspace(0, 1, bins + 1), color=colour(fitted), alpha=0.6, ec="w")
        left.axhline(n / bins, color=TRUTH, lw=1, ls="--")
        left.margins(y=0.06)
        left.set(xlabel="PIT: where the observation falls, 0 to 1", ylabel="number of rows",
                 xlim=(0, 1))  # fmt: skip
        inside = [(np.abs(pit - 0.5) <= level / 2).mean() for level in levels]
        low, high = (binom.ppf(q, n, levels) / n for q in BAND)
        right.fill_between(levels, low, high, color=BEFORE, alpha=0.3, lw=0)
        right.plot([0, 1], [0, 1], color=TRUTH, lw=1, ls="--")
        right.plot(levels, inside, color=colour(fitted), lw=2)
        right.set(xlabel="probability claimed", ylabel="share of rows inside", xlim=(0, 1),
                  ylim=(0, 1))  # fmt: skip
        text = (
            "Left: flat, apart from chance, when the predicted distributions are right; a hump in "
            "the middle means too wide, peaks at the ends too narrow. Right: on the diagonal when "
            "intervals have nominal coverage. The grey bands hold each bar, and each point of the "
            "curve, with at least 95 % probability if the predictions are right: up to one in "
            "twenty may lie outside by chance. Unseen rows only."
        )
        out.append(embed(figure, f"Calibration of {target}", text))
    return out


# ------------------------------------------------------------------------- posterior, evidence
def pairs(fitted: Fit) -> Shown | None:
    """Pairwise posterior of the most relevant parameters of the best optimum."""
    model = fitted.model
    posterior = model.posterior_
    gamma = np.nan_to_num(model.relevance_, nan=0.0)
    phi = posterior.parameter_draws(6000, np.random.default_rng(0))
    varied = np.flatnonzero((phi.std(axis=0) > 0) & ~posterior.pruned)
    top = np.sort(varied[np.argsort(-gamma[varied], kind="stable")][:N_PAIRS])
    if len(top) < 2:
        return None
    figure = plot_pairs([phi[:, top]], [model.network_.labels[k] for k in top],
                        colours=[colour(fitted)])  # fmt: skip
    text = (
        "Marginals and pairs of draws, in standardised units. Along thin ridges, combinations of "
        "weights fit the data equally well."
    )
    if posterior.sampled and model.network_.activation == "tanh":
        text += (
            " Mirror images (the same function with neurons exchanged or signs flipped) are shown "
            "once; the axes omit the outermost 1 % on either side."
        )
    known = not np.isnan(model.relevance_).all()
    which = "the most relevant parameters" if known else "the first parameters"
    return embed(figure, f"Posterior of {which}", text)


def optimisation(fitted: Fit) -> Shown | None:
    """How the best optimum was reached."""
    if fitted.model.posterior_.sampled:
        run = fitted.record.run
        history = np.array([s["log_evidence"] for s in ([] if run is None else run.refine)])
        text = (
            "Running estimate from the particles, which drifts upwards. Downward steps are trial "
            "removals of parameters, or fresh draws. Dashed: the exact evidence at the optimum, "
            "which decides."
        )
        what = "Evidence over the steps of the refinement"
    else:
        # In the units of y, as on the rest of the page.
        history = fitted.model.log_evidence_ + fitted.model.posterior_.evidence_history
        text = (
            "It steps up where weights get individual instead of shared precisions. A slow decline "
            "is not an error: the update of α may pass through lower evidence before it rises "
            "again. Dashed: the fit that was kept, with the highest evidence, or close to it with "
            "fewer weights."
        )
        what = "Evidence over the iterations of the best optimum"
    if len(history) < 2:
        return None
    figure, notes = _evidence_figure(history, fitted)
    return embed(figure, what, " ".join([*notes[:1], text, *notes[1:]]).strip())


def _evidence_figure(history: np.ndarray, fitted: Fit) -> tuple[Any, list[str]]:
    """Plot the curve; return the sentences of the caption before and after the text."""
    # The first iterations of Laplace climb from a random start, far below all others.
    usual, high = np.quantile(history, 0.1), history.max()
    first = 0 if fitted.model.posterior_.sampled else int(np.argmax(history >= usual))
    low = max(history[first:].min(), usual - 2 * (high - usual))
    figure = _figure(figsize=(7, 3))
    ax = figure.add_subplot()
    steps = np.arange(1, len(history) + 1)
    changes = falls(history)
    changes = changes[changes > first]
    for part in np.split(np.arange(first, len(history)), changes - first):
        ax.plot(steps[part], history[part], "-", color=colour(fitted), lw=1.6)
    for k in changes:
        ax.axvline(steps[k] - 0.5, color=TRUTH, lw=1, ls=":")
    ax.axhline(fitted.model.log_evidence_, color=BEFORE, lw=1, ls="--", zorder=0)
    ax.set(xlabel="iteration", ylabel="log evidence in nats")
    margin = 0.06 * (high - low) + 1e-9
    ax.set_ylim(low - margin, high + margin)
    notes = [f"The first {first} iterations, from a random start, are omitted." if first else ""]
    if len(changes):
        notes.append(
            "Dotted: the fit itself was changed, usually by removing a neuron. The evidence drops "
            "at once and recovers as the other neurons adapt; such a trial is kept only if it "
            "ends no lower than it began."
        )
    if history[first:].min() < low:
        notes.append("The deepest drops are cut off.")
    return figure, notes


def falls(history: np.ndarray) -> np.ndarray:
    """Iterations at which the fit itself was changed: the evidence dropped sharply.

    The first iterations, from a random start, are ignored: the evidence may drop there.
    """
    places = np.flatnonzero(np.diff(history) < -FALL) + 1
    return places[places > 10]
