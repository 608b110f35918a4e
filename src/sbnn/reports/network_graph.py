"""The network of a fit's report as a graph: what was pruned, and what is left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sbnn._core.text import fixed, number, rounded
from sbnn.reports.fit import Fit

MAX_PRUNED, MAX_EDGES, MAX_NODES = 150, 1200, 40


def network_graph(fitted: Fit) -> dict[str, Any]:
    """Nodes and edges of the best network in the coordinates of an SVG picture."""
    model, sizes = fitted.model, fitted.model.network_.sizes
    gamma = np.nan_to_num(model.relevance_, nan=1.0)
    names, summary = model.network_.names, model.summary()
    gone = summary["pruned"].to_numpy()
    ends = ends_of(model.network_)
    kept = [k for k in range(len(names)) if not gone[k]]
    kept = sorted(kept, key=lambda k: -gamma[k])[:MAX_EDGES]
    drawn = list(range(len(names))) if len(names) <= MAX_PRUNED else kept
    layers = _drawn_nodes(sizes, [ends[k] for k in drawn])
    # As far apart as there is room for: names of inputs need 22 units.
    tallest = max(len(layer) for layer in layers)
    step = 34.0 if tallest <= 20 else 22.0
    height = max(tallest * step, 90.0) + 64
    gap = 190.0
    left = _room(fitted.features[j] for j in layers[0])
    right = _room(fitted.targets[j] for j in layers[-1])
    place: dict[tuple[int, int], tuple[float, float]] = {}
    for layer, shown in enumerate(layers):
        top = 56 + (height - 64 - step * (len(shown) - 1)) / 2 - 4
        for row, j in enumerate(shown):
            place[layer, j] = (left + gap * layer, top + step * row)
    for layer in range(len(sizes) - 1):
        place[layer, -1] = (left + gap * layer + 0.42 * gap, 24.0)
    thick = 4.0 if len(drawn) <= 60 else 2.0
    edges = []
    for k in sorted(drawn, key=lambda k: (not gone[k], gamma[k])):
        layer, i, j = ends[k]
        if (layer, i) not in place or (layer + 1, j) not in place:
            continue
        row = summary.iloc[k]
        centre, spread, log_alpha, relevance = as_shown(row)
        path = f"{node_name(fitted, layer, i)} → {node_name(fitted, layer + 1, j)}"
        edges.append(
            {
                "from": place[layer, i],
                "to": place[layer + 1, j],
                "pruned": bool(gone[k]),
                "bias": i < 0,
                "width": 1.0 if gone[k] else 0.6 + thick * float(gamma[k]),
                "tip": f"{names[k]}: {path}\n"
                f"γ = {relevance}, log α = {log_alpha}"
                f"{', pruned' if gone[k] else ''}\n"
                f"value {centre} ± {spread}",
            }
        )
    starts = {edge["from"] for edge in edges}
    nodes = [
        {
            "x": at[0],
            "y": at[1],
            "kind": _kind(sizes, layer, j),
            "name": node_name(fitted, layer, j),
        }
        for (layer, j), at in place.items()
        if j >= 0 or at in starts
    ]
    return {
        "width": left + gap * (len(sizes) - 1) + right,
        "height": height,
        "edges": edges,
        "nodes": nodes,
        "n_drawn": len(edges),
        "n_kept": int((~gone).sum()),
        "n_parameters": len(names),
        "all_drawn": len(drawn) == len(names),
        "sizes": "-".join(map(str, sizes)),
    }


def _room(names: Iterable[str]) -> float:
    """Space beside a layer for its names, which are cut at 24 letters."""
    return 35.0 + 7.5 * max(min(len(name), 24) for name in names)


def _kind(sizes, layer: int, j: int) -> str:
    if j < 0:
        return "bias"
    return {0: "input", len(sizes) - 1: "output"}.get(layer, "hidden")


def ends_of(network) -> list[tuple[int, int, int]]:
    """(layer, from, to) of every parameter, counted from 0; a bias comes from −1."""
    out: list[tuple[int, int, int]] = []
    for layer, (n_in, n_out) in enumerate(zip(network.sizes, network.sizes[1:])):
        out += [(layer, i, j) for j in range(n_out) for i in range(n_in)]
        out += [(layer, -1, j) for j in range(n_out)]
    return out


def _drawn_nodes(sizes, ends) -> list[list[int]]:
    """Per layer the nodes that are shown: all of them while few, else those with edges."""
    counts: dict[tuple[int, int], int] = {}
    for layer, i, j in ends:
        for node in ((layer, i), (layer + 1, j)):
            counts[node] = counts.get(node, 0) + 1
    out = []
    for layer, size in enumerate(sizes):
        nodes = list(range(size))
        if size > 12:
            nodes = [j for j in nodes if (layer, j) in counts] or nodes[:1]
            nodes = sorted(sorted(nodes, key=lambda j: -counts.get((layer, j), 0))[:MAX_NODES])
        out.append(nodes)
    return out


def node_name(fitted: Fit, layer: int, j: int) -> str:
    last = len(fitted.model.network_.sizes) - 1
    if j < 0:
        return "1"
    if layer == 0:
        return fitted.features[j]
    if layer == last:
        return fitted.targets[j]
    return f"neuron {j + 1}" if last == 2 else f"neuron {j + 1} of layer {layer}"


def as_shown(row) -> list[str]:
    """Median, spread, log α and γ of a parameter as the page writes them."""
    log_alpha, gamma = float(row["log_alpha"]), float(row["relevance"])
    return [
        rounded(row["median"], row["spread"]),
        rounded(row["spread"], row["spread"]),
        number(log_alpha, 2) if not np.isfinite(log_alpha) else fixed(log_alpha, 1),
        number(gamma) if np.isnan(gamma) else fixed(gamma, 2),
    ]
