"""The study's figures and its report: one HTML page that opens from disk."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pandas as pd

from sbnn import __version__
from sbnn._core.atomic import whole_file, write_bytes, write_text
from sbnn._core.extras import require
from sbnn.methods.details import HierarchicalDetails, LaplaceDetails, NsblDetails
from sbnn.methods.registry import METHODS, title_of
from sbnn.reports.plots import (
    BEFORE,
    _figure,
    plot_data,
    plot_density_surfaces,
    plot_evidence_surfaces,
    plot_network,
    plot_optimisation,
    plot_pairs,
    plot_predictions,
)
from sbnn.study import study as paper

LAYER_1, LAYER_2 = np.arange(6), np.arange(6, 10)


def figures(study: paper.Study):
    """Yield (name, title, caption, figure), numbered as in the study."""
    data, results = study.data, study.results
    nsbl, hierarchical = results["nsbl"], results["hierarchical"]
    labels = np.array(nsbl.labels)
    network = nsbl.network_problem.network
    colour = {name: method.colour for name, method in METHODS.items()}
    found = paper.details(nsbl, NsblDetails)

    figure = _figure(figsize=(6, 3.4))
    plot_data(data.x, data.y, data.truth, ax=figure.add_subplot())
    yield "fig01_data", "The data", "50 noisy observations of the boxcar function.", figure

    figure = _figure(figsize=(11, 3.6))
    for place, net in enumerate((study.small.network_problem.network, network), start=1):
        ax = figure.add_subplot(1, 2, place)
        plot_network(net, ax=ax)
        ax.set_title("-".join(map(str, net.sizes)))
    yield (
        "fig02_networks",
        "The two networks",
        "1-2-1 is enough; 1-3-1 has a neuron too many.",
        figure,
    )

    orbit = study.orbit
    figure = plot_pairs(
        [study.small.phi], study.small.labels, colours=[colour["standard"]], marks=orbit.images
    )
    text = f"Standard Bayes, 1-2-1. Crosses: the {len(orbit.images)} symmetric modes."
    yield "fig03_pairs_121", "Pairwise posterior of the 1-2-1 net", text, figure

    standard = results["standard"].phi
    for number, layer, name in ((4, LAYER_1, "input to hidden"), (5, LAYER_2, "hidden to output")):
        figure = plot_pairs([standard[:, layer]], labels[layer], colours=[colour["standard"]])
        title = f"Pairwise posterior of the 1-3-1 net, {name}"
        yield f"fig{number:02d}_pairs_131", title, "Standard Bayes under uniform priors.", figure

    pairs = [(6, 7), (6, 8), (7, 8)]
    figure = plot_density_surfaces(standard, pairs, labels)
    text = "Kernel density of pairs of output weights. Symmetric modes have equal heights here."
    yield "fig06_surfaces", "Posterior of the output weights", text, figure

    ard = nsbl.network_problem.ard
    mixture, hyperprior = found.mixture, paper.hyperprior_of(nsbl)
    # Neurons in the order of the tables, everywhere: the least relevant one second.
    path = found.newton_log_alpha, found.newton_relevance
    index = paper.arrangement(network, path[1][-1])
    log_alpha, gamma = path[0][:, index], path[1][:, index]
    figure = plot_evidence_surfaces(mixture, ard, hyperprior, log_alpha[-1], pairs, labels)
    text = "The mixture's log evidence, the hyperprior and their sum; the cross is the optimum."
    yield "fig07_evidence", "Evidence over pairs of log α", text, figure

    figure = plot_optimisation(nsbl.history["newton"]["objective"], log_alpha, gamma, labels)
    yield "fig08_newton", "Newton iterations", "Objective, log α and γ of the best start.", figure

    after = found.best_phi[:, paper.arrangement(network, nsbl.relevance)]
    for number, layer in ((9, LAYER_1), (10, LAYER_2)):
        figure = plot_pairs(
            [standard[:, layer], after[:, layer]], labels[layer], ("before", "after"),
            (BEFORE, colour["nsbl"]),
        )  # fmt: skip
        text = "Before: uniform priors. After: the exact posterior at the optimal log α."
        yield f"fig{number:02d}_nsbl", "Posterior before and after NSBL", text, figure

    sparse = results["laplace_nsbl"]
    index = paper.arrangement(network, sparse.relevance)
    after = sparse.phi[:, index]
    before = _nearest_image(results["laplace"], paper.details(sparse, LaplaceDetails).mode[index])
    for number, layer in ((11, LAYER_1), (12, LAYER_2)):
        spread = after[:, layer].std(axis=0)
        centre = after[:, layer].mean(axis=0)
        limits = np.stack([centre - 8 * spread - 1, centre + 8 * spread + 1], axis=1)
        figure = plot_pairs(
            [before[:, layer], after[:, layer]], labels[layer], ("Laplace", "Laplace with NSBL"),
            (colour["laplace"], colour["laplace_nsbl"]), limits=limits,
        )  # fmt: skip
        text = "One Gaussian each; the axes follow the sparse one, the other is far wider."
        yield f"fig{number:02d}_laplace", "Laplace before and after", text, figure

    for number, layer in ((13, LAYER_2), (14, LAYER_1)):
        phi = hierarchical.phi[:, layer]
        # Weights of a neuron that is not needed are free: their tails would hide all others.
        low, high = np.quantile(phi, [0.05, 0.95], axis=0)
        limits = np.stack([low, high], axis=1) + 0.35 * np.outer(high - low, [-1.0, 1.0])
        figure = plot_pairs([phi], labels[layer], colours=[colour["hierarchical"]], limits=limits)
        text = "Parameters, averaged over the hyperparameters."
        yield f"fig{number:02d}_hierarchical", "Hierarchical Bayes: parameters", text, figure
    draws = paper.details(hierarchical, HierarchicalDetails).log_alpha_draws
    for number, layer in ((15, LAYER_2), (16, LAYER_1)):
        names = [rf"$\log\alpha$ {label}" for label in labels[layer]]
        figure = plot_pairs([draws[:, layer]], names, colours=[colour["hierarchical"]])
        text = "Hyperparameters: wide, and multimodal where a neuron may be pruned or not."
        yield f"fig{number:02d}_hyper", "Hierarchical Bayes: hyperparameters", text, figure

    figure = _figure(figsize=(15, 3.9))
    axes = figure.subplots(1, 5, sharey=True)
    grid = np.linspace(-6, 6, 241)
    for ax, result in zip(axes, results.values()):
        plot_predictions(result, grid, data.truth, (data.x, data.y), ax=ax)
        ax.set_ylim(-5, 9)
    axes[0].set_ylabel("$y$")
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    text = "1,000 push-forward draws each, on the same axes: draws, mean and 95 % band."
    yield "fig17_predictions", "Predictions of the five methods", text, figure

    figure = _figure(figsize=(6.5, 3.6))
    index = paper.arrangement(network, nsbl.relevance)
    assert nsbl.relevance is not None
    plot_network(network, nsbl.relevance[index], ax=figure.add_subplot())
    text = "Line width is relevance; what NSBL prunes is dashed."
    yield "fig18_pruned", "The network after pruning", text, figure


def _nearest_image(result, mode: np.ndarray) -> np.ndarray:
    """The draws of one Laplace result, sent to the image of its mode nearest to another mode."""
    symmetry = result.network_problem.symmetry
    own = paper.details(result, LaplaceDetails).mode
    index, sign = min(
        symmetry.elements(), key=lambda e: float(((e[1] * own[e[0]] - mode) ** 2).sum())
    )
    return sign * result.phi[:, index]


def write_report(study: paper.Study, out: Path) -> tuple[Path, list[paper.Claim]]:
    """Tables, figures (PNG and PDF) and report.html; returns the report's path and the claims."""
    require("report", "A report", "jinja2", "matplotlib")
    from jinja2 import Environment, PackageLoader, select_autoescape

    claims = paper.claims(study)
    tables = paper.write_tables(study, out, claims)
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    shown = []
    for name, title, caption, figure in figures(study):
        with whole_file(folder / f"{name}.pdf") as temporary:
            figure.savefig(temporary, format="pdf", metadata={"CreationDate": None})
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
        write_bytes(folder / f"{name}.png", buffer.getvalue())
        number = int(name[3:5])
        source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
        shown.append(
            {"id": name, "number": number, "title": title, "caption": caption, "source": source}
        )
    environment = Environment(
        loader=PackageLoader("sbnn.study"), autoescape=select_autoescape(default=True)
    )
    nsbl = study.results["nsbl"]
    page = environment.get_template("study.html").render(
        figures={f["id"]: f for f in shown},
        tables={name: _html(table) for name, table in tables.items()},
        claims=claims,
        n_hold=sum(c.holds for c in claims),
        settings=study.settings,
        version=__version__,
        nsbl=nsbl,
        seconds={title_of(name): result.seconds for name, result in study.results.items()},
        widths={title_of(name): paper.widths(result) for name, result in study.results.items()},
    )
    report = out / "report.html"
    write_text(report, page)
    return report, claims


def _html(table: pd.DataFrame) -> str:
    """A table as HTML; pandas escapes every cell."""

    def number(value):
        if isinstance(value, float):
            return "–" if np.isnan(value) else f"{value:.3f}"
        return f"{value:,}" if isinstance(value, int | np.integer) else str(value)

    return table.reset_index().to_html(
        index=False, border=0, escape=True, formatters=dict.fromkeys(table.columns, number)
    )
