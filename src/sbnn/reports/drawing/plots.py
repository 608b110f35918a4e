"""Figures: data, predictions, networks as graphs, pairwise posteriors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sbnn._core.extras import require
from sbnn.methods.registry import colour_of, title_of
from sbnn.problems.network import Network

Labels = Sequence[str] | np.ndarray
Point = tuple[float, float]
Truth = Callable[[np.ndarray], np.ndarray]
TRUTH, DATA, BEFORE = "#111111", "#555555", "#999999"


def _figure(*args: Any, **kwargs: Any) -> Any:
    """A figure outside pyplot's global list: nothing to close, no display needed."""
    require("report", "A plot", "matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(*args, **{"layout": "constrained", **kwargs})
    FigureCanvasAgg(figure)
    return figure


def _axes(ax: Any, figsize: tuple[float, float] = (5.0, 3.4)) -> Any:
    if ax is not None:
        return ax
    return _figure(figsize=figsize).add_subplot()


def plot_data(x: np.ndarray, y: np.ndarray, truth: Truth | None = None, ax: Any = None) -> Any:
    """Plot observations, and the truth as a line.

    Parameters
    ----------
    x, y : ndarray, shape (n,)
    truth : callable, optional
        The true function.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = _axes(ax)
    if truth is not None:
        grid = np.linspace(np.min(x), np.max(x), 400)
        ax.plot(grid, truth(grid), color=TRUTH, label="truth")
    ax.plot(x, y, "o", color=DATA, ms=4, mfc="none", label="data")
    ax.set(xlabel="$x$", ylabel="$y$")
    ax.legend(frameon=False)
    return ax


def plot_predictions(
    result: Any,
    x: np.ndarray,
    truth: Truth | None = None,
    data: tuple[np.ndarray, np.ndarray] | None = None,
    n: int = 1000,
    colour: str | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Plot push-forward draws, their mean and 95 % band, with truth and data.

    Parameters
    ----------
    result : Result
        Of a network with one input and one output.
    x : ndarray, shape (m,)
        Inputs to predict at.
    truth : callable, optional
        The true function.
    data : tuple of two ndarray, optional
        Observations (x, y).
    n : int
        Number of draws.
    colour : str, optional
        By default, the colour of the method.
    ax : Axes, optional
    title : str, optional
        By default, the title of the method.

    Returns
    -------
    Axes
    """
    ax = _axes(ax)
    colour = colour or colour_of(result.method)
    draws = result.push_forward(x, n)
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    for row in draws[:: max(1, len(draws) // 150)]:
        ax.plot(x, row, color=colour, alpha=0.06, lw=0.6)
    ax.fill_between(x, low, high, color=colour, alpha=0.25, lw=0, label="95 % band")
    ax.plot(x, draws.mean(axis=0), color=colour, lw=1.8, label="mean")
    if truth is not None:
        ax.plot(x, truth(x), color=TRUTH, lw=1.2, ls="--", label="truth")
    if data is not None:
        ax.plot(*data, "o", color=DATA, ms=2.5, mfc="none", label="data")
    ax.set(xlabel="$x$", title=title or title_of(result.method))
    return ax


def plot_network(
    network: Network,
    relevance: np.ndarray | None = None,
    threshold: float = 0.1,
    labels: bool = True,
    ax: Any = None,
) -> Any:
    """Plot the network as a graph; with `relevance`, line width is γ and pruned edges are dashed.

    Parameters
    ----------
    network : Network
    relevance : ndarray, shape (n_parameters,), optional
        γ of every parameter.
    threshold : float
        Edges with γ below it are dashed.
    labels : bool
        Label the edges, if there are at most 16.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    width = 1.9 * (len(network.sizes) + 0.3)
    ax = _axes(ax, figsize=(width, 0.8 * max(network.sizes) + 1.2))
    place = {
        (layer, j): (2.0 * layer, 0.5 * (size - 1) - j)
        for layer, size in enumerate(network.sizes)
        for j in range(size)
    }
    gamma = np.ones(network.n_parameters) if relevance is None else np.nan_to_num(relevance, nan=1)
    texts = network.labels
    at = network.unflatten(np.arange(network.n_parameters))
    bias_y = 0.5 * max(network.sizes) + 0.35
    for layer, (weights, biases) in enumerate(at):
        bias = (2.0 * layer + 0.55, bias_y)
        for j, row in enumerate(weights):
            end = place[layer + 1, j]
            for i, k in enumerate(row):
                _edge(ax, place[layer, i], end, gamma[k], threshold, relevance is not None)
                if labels and network.n_parameters <= 16:
                    _edge_label(ax, place[layer, i], end, texts[k], gamma[k] < threshold)
            k = biases[j]
            _edge(ax, bias, end, gamma[k], threshold, relevance is not None, colour="#8A6D3B")
            if labels and network.n_parameters <= 16:
                _edge_label(ax, bias, end, texts[k], gamma[k] < threshold, fraction=0.3)
        ax.plot(*bias, "s", ms=13, mfc="white", mec="#8A6D3B", zorder=3)
        ax.text(*bias, "1", ha="center", va="center", fontsize=8, zorder=4)
    names = {0: "x", len(network.sizes) - 1: "y"}
    for (layer, j), (px, py) in place.items():
        ax.plot(px, py, "o", ms=22, mfc="white", mec="#333333", zorder=3)
        text = f"${names[layer]}$" if layer in names else "$\\sigma$"
        if layer in names and network.sizes[layer] > 1:
            text = f"${names[layer]}_{{{j + 1}}}$"
        ax.text(px, py, text, ha="center", va="center", fontsize=10, zorder=4)
    ax.set_axis_off()
    ax.set_xlim(-0.5, 2.0 * (len(network.sizes) - 1) + 0.5)
    ax.set_ylim(-0.5 * max(network.sizes) - 0.1, bias_y + 0.4)
    return ax


def _edge(
    ax: Any,
    start: Point,
    end: Point,
    gamma: float,
    threshold: float,
    learned: bool,
    colour: str = "#0072B2",
) -> None:
    pruned = learned and gamma < threshold
    ax.plot(
        [start[0], end[0]],
        [start[1], end[1]],
        ls=(0, (4, 3)) if pruned else "-",
        color="#999999" if pruned else colour,
        lw=1.0 if pruned or not learned else 0.6 + 3.0 * gamma,
        zorder=1,
    )


def _edge_label(
    ax: Any, start: Point, end: Point, text: str, pruned: bool, fraction: float = 0.42
) -> None:
    x = start[0] + fraction * (end[0] - start[0])
    y = start[1] + fraction * (end[1] - start[1])
    box = {"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.85}
    colour = "#999999" if pruned else "#111111"
    ax.text(x, y, text, fontsize=8, ha="center", va="center", bbox=box, color=colour, zorder=2)


def plot_pairs(
    samples: Sequence[np.ndarray],
    labels: Labels,
    names: Sequence[str] = ("",),
    colours: Sequence[str] = ("#0072B2",),
    marks: np.ndarray | None = None,
    limits: np.ndarray | None = None,
    n: int = 600,
) -> Any:
    """Plot marginals on the diagonal and pairs of draws below it.

    Parameters
    ----------
    samples : sequence of ndarray, shape (n_draws, d)
        One or several sets of draws.
    labels : sequence of str
        One per parameter.
    names, colours : sequence of str
        One per set of draws.
    marks : ndarray, shape (n_marks, d), optional
        Points drawn as crosses.
    limits : ndarray, shape (d, 2), optional
        Axis limits.
    n : int
        Draws shown of each set.

    Returns
    -------
    Figure
    """
    d = len(labels)
    width, height = 1.35 * d + 0.8, 1.35 * d + 0.6
    # A fixed grid, lower triangle only: an automatic layout of many axes takes most of the time.
    figure = _figure(figsize=(width, height), layout=None)
    cells = figure.add_gridspec(
        d, d, left=0.75 / width, right=1 - 0.08 / width, bottom=0.55 / height,
        top=1 - 0.08 / height, wspace=0.08, hspace=0.08,
    )  # fmt: skip
    if limits is None:
        limits = _pair_limits(samples)
    rng = np.random.default_rng(0)
    styles = ["--" if k == 0 and len(samples) > 1 else "-" for k in range(len(samples))]
    for i in range(d):
        for j in range(i + 1):
            ax = figure.add_subplot(cells[i, j])
            ax.tick_params(labelsize=7)
            ax.set_xlim(*limits[j])
            ax.set_xticks(*_inner_ticks(*limits[j]))
            if i == j:
                for draws, colour, style in zip(samples, colours, styles):
                    _marginal(ax, draws[:, i], limits[i], colour, style)
                ax.set_ylim(0, 1.15)
                ax.set_yticks([])
            else:
                for draws, colour in zip(samples, colours):
                    rows = rng.choice(len(draws), size=min(n, len(draws)), replace=False)
                    ax.plot(draws[rows, j], draws[rows, i], ".", color=colour, ms=1.6, alpha=0.4,
                            rasterized=True)  # fmt: skip
                ax.set_ylim(*limits[i])
                ax.set_yticks(*_inner_ticks(*limits[i]))
                if marks is not None:
                    ax.plot(marks[:, j], marks[:, i], "x", color=TRUTH, ms=5, mew=1.3)
            _label_outer(ax, labels, i, j)
    if len(samples) > 1:
        handles = [
            figure.axes[0].plot([], [], color=c, ls=style, label=name)[0]
            for c, style, name in zip(colours, styles, names)
        ]
        figure.legend(handles=handles, loc="upper right", fontsize=10, frameon=False)
    return figure


def _pair_limits(samples: Sequence[np.ndarray]) -> np.ndarray:
    """Axis limits (d, 2) without heavy tails, whose few draws would compress all others."""
    low, high = np.quantile(np.concatenate(samples), [0.01, 0.99], axis=0)
    pad = 0.12 * (high - low) + 1e-9
    return np.stack([low - pad, high + pad], axis=1)


def _marginal(ax: Any, draws: np.ndarray, limits: np.ndarray, colour: str, style: str) -> None:
    """Kernel density of the draws inside the limits, scaled to height one."""
    from scipy.stats import gaussian_kde

    inside = draws[(draws >= limits[0]) & (draws <= limits[1])]
    if len(inside) > 1 and np.std(inside) > 0:
        grid = np.linspace(limits[0], limits[1], 200)
        width = 0.02 * np.ptp(limits) / np.std(inside)
        density = gaussian_kde(inside, bw_method=width)(grid)
        ax.plot(grid, density / density.max(), color=colour, ls=style, lw=1.2)


def _label_outer(ax: Any, labels: Labels, i: int, j: int) -> None:
    """Label only the lower and left edge of the triangle."""
    if i == len(labels) - 1:
        ax.set_xlabel(labels[j], fontsize=10)
    else:
        ax.set_xticklabels([])
    if j == 0 and i > 0:
        ax.set_ylabel(labels[i], fontsize=10)
    elif j > 0:
        ax.set_yticklabels([])


def _inner_ticks(low: float, high: float) -> tuple[np.ndarray, list[str]]:
    """One or two round ticks and their labels, which do not touch each other or their neighbours.

    Examples
    --------
    >>> _inner_ticks(-1.0, 1.2)[1], _inner_ticks(0.0001, 0.0021)[1]
    (['−0.6', '0.6'], ['0.0015'])
    """
    from matplotlib.ticker import MaxNLocator

    margin = 0.16 * (high - low)
    ticks = np.asarray(MaxNLocator(4).tick_values(low, high))
    inner = ticks[(ticks > low + margin) & (ticks < high - margin)]
    inner = inner if len(inner) <= 2 else inner[::2]
    shown = [f"{tick:.4g}".replace("-", "−") for tick in inner]
    if sum(map(len, shown)) > 9:
        middle = int(np.argmin(np.abs(inner - 0.5 * (low + high))))
        return inner[[middle]], [shown[middle]]
    return inner, shown
