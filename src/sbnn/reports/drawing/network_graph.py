"""The network of a report as a graph in SVG coordinates: nodes, edges, tooltips."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sbnn._core.text import fixed, number, rounded
from sbnn.problems.network import Network
from sbnn.reports.fit import Fit

MAX_PRUNED, MAX_EDGES, MAX_NODES = 150, 1200, 40
Node = tuple[int, int]  # layer and position in it; −1 is the bias
Place = tuple[float, float]


class Edge(NamedTuple):
    """A parameter of the network as a line."""

    start: Place
    end: Place
    pruned: bool
    bias: bool
    width: float
    tip: str


def network_graph(fitted: Fit) -> dict[str, Any]:
    """Nodes and edges of the best network in the coordinates of an SVG picture.

    Parameters
    ----------
    fitted : Fit

    Returns
    -------
    dict
        Data for the template.
    """
    network, summary = fitted.model.network_, fitted.model.summary()
    gone = summary["pruned"].to_numpy()
    ends, drawn = ends_of(network), _drawn_parameters(fitted, gone)
    layers = _drawn_nodes(network.sizes, [ends[k] for k in drawn])
    place, width, height = _places(fitted, layers)
    edges = _edges(fitted, summary, drawn, place)
    starts = {edge.start for edge in edges}
    nodes = {
        at: {
            "x": at[0],
            "y": at[1],
            "kind": _kind(network.sizes, layer, j),
            "name": _column_name(fitted, j)
            if layer == 0 and j >= 0
            else node_name(fitted, layer, j),
        }
        for (layer, j), at in place.items()
        if j >= 0 or at in starts
    }
    return {
        "width": width,
        "height": height,
        "edges": edges,
        "nodes": list(nodes.values()),
        "n_drawn": len(edges),
        "n_kept": int((~gone).sum()),
        "n_parameters": len(gone),
        "all_drawn": len(drawn) == len(gone),
        "sizes": "-".join(map(str, network.sizes)),
    }


def _drawn_parameters(fitted: Fit, gone: np.ndarray) -> list[int]:
    """All parameters of a small network; for a large one, the kept ones, most relevant first."""
    if len(gone) <= MAX_PRUNED:
        return list(range(len(gone)))
    gamma = np.nan_to_num(fitted.model.relevance_, nan=1.0)
    return sorted(np.flatnonzero(~gone).tolist(), key=lambda k: -gamma[k])[:MAX_EDGES]


def _places(fitted: Fit, layers: list[list[int]]) -> tuple[dict[Node, Place], float, float]:
    """Coordinates of every node, width and height of the picture."""
    # Spread over the available room: names of inputs need 22 units.
    groups = fitted.model.encoder_.groups
    inputs = list(dict.fromkeys(int(groups[j]) for j in layers[0]))
    tallest = max(len(inputs), *(len(layer) for layer in layers[1:]))
    step, gap = 34.0 if tallest <= 20 else 22.0, 190.0
    height = max(tallest * step, 90.0) + 64
    left = _room(fitted.features[g] for g in inputs)
    right = _room(output_name(fitted, j) for j in layers[-1])
    place: dict[Node, Place] = {}
    for layer, shown in enumerate(layers):
        # Inputs that come from one column of the table share a node.
        rows = [inputs.index(groups[j]) for j in shown] if layer == 0 else list(range(len(shown)))
        top = 56 + (height - 64 - step * max(rows)) / 2 - 4
        for row, j in zip(rows, shown):
            place[layer, j] = (left + gap * layer, top + step * row)
    for layer in range(len(layers) - 1):
        place[layer, -1] = (left + gap * layer + 0.42 * gap, 24.0)
    return place, left + gap * (len(layers) - 1) + right, height


def _edges(
    fitted: Fit, summary: pd.DataFrame, drawn: list[int], place: dict[Node, Place]
) -> list[Edge]:
    """Lines between the nodes shown, pruned ones first, so that the most relevant lie on top."""
    gamma = np.nan_to_num(fitted.model.relevance_, nan=1.0)
    gone, ends = summary["pruned"].to_numpy(), ends_of(fitted.model.network_)
    thick = 4.0 if len(drawn) <= 60 else 2.0
    edges = []
    for k in sorted(drawn, key=lambda k: (not gone[k], gamma[k])):
        layer, i, j = ends[k]
        if (layer, i) not in place or (layer + 1, j) not in place:
            continue
        centre, spread, log_alpha, relevance = as_shown(summary.iloc[k])
        path = f"{node_name(fitted, layer, i)} → {node_name(fitted, layer + 1, j)}"
        tip = (
            f"{summary.index[k]}: {path}\n"
            f"γ = {relevance}, log α = {log_alpha}{', pruned' if gone[k] else ''}\n"
            f"value {centre} ± {spread}"
        )
        width = 1.0 if gone[k] else 0.6 + thick * float(gamma[k])
        ends_at = place[layer, i], place[layer + 1, j]
        edges.append(Edge(*ends_at, bool(gone[k]), i < 0, width, tip))
    return edges


def output_name(fitted: Fit, j: int) -> str:
    """The target of an output of the network, or its noise if that is an output too."""
    target, part = divmod(j, fitted.model.network_.sizes[-1] // len(fitted.targets))
    return f"{'log noise of ' * bool(part)}{fitted.targets[target]}"


def _room(names: Iterable[str]) -> float:
    """Space beside a layer for its names, which are truncated to 24 letters."""
    return 35.0 + 7.5 * max(min(len(name), 24) for name in names)


def _kind(sizes: Sequence[int], layer: int, j: int) -> str:
    if j < 0:
        return "bias"
    return {0: "input", len(sizes) - 1: "output"}.get(layer, "hidden")


def ends_of(network: Network) -> list[tuple[int, int, int]]:
    """(layer, from, to) of every parameter, counted from 0; a bias comes from −1."""
    return [(layer - 1, i - 1, j - 1) for _, layer, j, i in network.entries]


def _drawn_nodes(sizes: Sequence[int], ends: Iterable[tuple[int, int, int]]) -> list[list[int]]:
    """The nodes shown in each layer: those with edges, or one if there is none; all outputs."""
    counts: dict[Node, int] = {}
    for layer, i, j in ends:
        for node in ((layer, i), (layer + 1, j)):
            counts[node] = counts.get(node, 0) + 1
    out = []
    for layer, size in enumerate(sizes):
        nodes = list(range(size))
        if layer < len(sizes) - 1:
            nodes = [j for j in nodes if (layer, j) in counts] or nodes[:1]
        most = sorted(nodes, key=lambda j: -counts.get((layer, j), 0))[:MAX_NODES]
        out.append(sorted(most))
    return out


def _column_name(fitted: Fit, j: int) -> str:
    """The column of the table that an input of the network comes from."""
    return fitted.features[fitted.model.encoder_.groups[j]]


def node_name(fitted: Fit, layer: int, j: int, network: Network | None = None) -> str:
    """Name of a node of `network_` or another network of the fit; −1 is the bias."""
    last = len((network or fitted.model.network_).sizes) - 1
    if j < 0:
        return "1"
    if layer == 0:
        return fitted.model.encoder_.names(fitted.features)[j]
    if layer == last:
        return output_name(fitted, j)
    return f"neuron {j + 1}" if last == 2 else f"neuron {j + 1} of layer {layer}"


def as_shown(row: pd.Series) -> list[str]:
    """Median, spread, log α and γ of a parameter, formatted for the page."""
    log_alpha, gamma = float(row["log_alpha"]), float(row["relevance"])
    return [
        rounded(row["median"], row["spread"]),
        rounded(row["spread"], row["spread"]),
        number(log_alpha, 2) if not np.isfinite(log_alpha) else fixed(log_alpha, 1),
        number(gamma) if np.isnan(gamma) else fixed(gamma, 2),
    ]
