"""Figures of the study, numbered as in the publication."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sbnn.methods.details import HierarchicalDetails, LaplaceDetails, NsblDetails
from sbnn.methods.registry import colour_of
from sbnn.methods.result import Result
from sbnn.priors import Hyperprior
from sbnn.reports.drawing.plots import (
    BEFORE,
    _figure,
    plot_data,
    plot_network,
    plot_pairs,
    plot_predictions,
)
from sbnn.study.evidence_plots import (
    plot_density_surfaces,
    plot_evidence_surfaces,
    plot_optimisation,
)
from sbnn.study.runs import Study, details
from sbnn.study.tables import arrangement

LAYER_1, LAYER_2 = np.arange(6), np.arange(6, 10)
MOST = 10_000  # points of a figure
PAIRS = [(6, 7), (6, 8), (7, 8)]  # output weights


class StudyFigure(NamedTuple):
    """A figure of the report."""

    name: str
    title: str
    caption: str
    figure: Any


Figures = Iterator[StudyFigure]


def figures(study: Study) -> Figures:
    """Yield the figures in order.

    Parameters
    ----------
    study : Study

    Yields
    ------
    StudyFigure
    """
    yield from _data_and_networks(study)
    yield from _standard(study)
    yield from _evidence(study)
    yield from _before_and_after(study)
    yield from _hierarchical(study)
    yield from _predictions(study)


def _labels(study: Study) -> np.ndarray:
    return np.array(study.results["nsbl"].labels)


def _data_and_networks(study: Study) -> Figures:
    data = study.data
    figure = _figure(figsize=(6, 3.4))
    plot_data(data.x, data.y, data.truth, ax=figure.add_subplot())
    text = "50 noisy observations of the boxcar function."
    yield StudyFigure("fig01_data", "The data", text, figure)

    figure = _figure(figsize=(11, 3.6))
    networks = (r.network_problem.network for r in (study.small, study.results["nsbl"]))
    for place, net in enumerate(networks, start=1):
        ax = figure.add_subplot(1, 2, place)
        plot_network(net, ax=ax)
        ax.set_title("-".join(map(str, net.sizes)))
    text = "1-2-1 is enough; 1-3-1 has one neuron too many."
    yield StudyFigure("fig02_networks", "The two networks", text, figure)


def _standard(study: Study) -> Figures:
    orbit, colours = study.orbit, [colour_of("standard")]
    small = _whole_orbit(study.small)
    figure = plot_pairs([small], study.small.labels, colours=colours, marks=orbit.images)
    text = (
        f"Standard Bayes, 1-2-1; draws with all their symmetric images. Crosses: the "
        f"{len(orbit.images)} symmetric modes."
    )
    yield StudyFigure("fig03_pairs_121", "Pairwise posterior of the 1-2-1 net", text, figure)

    standard, labels = _whole_orbit(study.results["standard"]), _labels(study)
    for number, layer, name in ((4, LAYER_1, "input to hidden"), (5, LAYER_2, "hidden to output")):
        figure = plot_pairs([standard[:, layer]], labels[layer], colours=colours)
        title = f"Pairwise posterior of the 1-3-1 net, {name}"
        text = "Standard Bayes under uniform priors; draws with all their symmetric images."
        yield StudyFigure(f"fig{number:02d}_pairs_131", title, text, figure)

    figure = plot_density_surfaces(standard, PAIRS, labels)
    text = (
        "Kernel density of pairs of output weights, of draws with all their symmetric images: "
        "modes that are images of one another have equal heights."
    )
    yield StudyFigure("fig06_surfaces", "Posterior of the output weights", text, figure)


def _whole_orbit(result: Result) -> np.ndarray:
    """Draws with all their images under permutations and sign flips, about `MOST` in all."""
    symmetry = result.network_problem.symmetry
    n = max(1, min(len(result.phi), MOST // symmetry.order))
    return symmetry.expand(result.phi[:n]).reshape(-1, result.phi.shape[1])


def _evidence(study: Study) -> Figures:
    nsbl, labels = study.results["nsbl"], _labels(study)
    found = details(nsbl, NsblDetails)
    assert found.newton_log_alpha is not None
    assert found.newton_relevance is not None
    assert found.mixture is not None
    # Neurons in the order of the tables: the least relevant one second.
    path = found.newton_log_alpha, found.newton_relevance
    index = arrangement(nsbl.network_problem.network, path[1][-1])
    log_alpha, gamma = path[0][:, index], path[1][:, index]
    figure = plot_evidence_surfaces(
        found.mixture,
        nsbl.network_problem.ard,
        hyperprior_of(nsbl),
        log_alpha[-1],
        PAIRS,
        labels,
    )
    text = "The mixture's log evidence, the hyperprior and their sum; the cross is the optimum."
    yield StudyFigure("fig07_evidence", "Evidence over pairs of log α", text, figure)

    figure = plot_optimisation(nsbl.history["newton"]["objective"], log_alpha, gamma, labels)
    text = "Objective, log α and γ of the best start."
    yield StudyFigure("fig08_newton", "Newton iterations", text, figure)


def _before_and_after(study: Study) -> Figures:
    nsbl, sparse, labels = study.results["nsbl"], study.results["laplace_nsbl"], _labels(study)
    network, standard = nsbl.network_problem.network, study.results["standard"].phi
    after = details(nsbl, NsblDetails).best_phi[:, arrangement(network, nsbl.relevance)]
    for number, layer in ((9, LAYER_1), (10, LAYER_2)):
        figure = plot_pairs(
            [standard[:, layer], after[:, layer]], labels[layer], ("before", "after"),
            (BEFORE, colour_of("nsbl")),
        )  # fmt: skip
        text = "Before: uniform priors. After: the exact posterior at the optimal log α."
        title = "Posterior before and after NSBL"
        yield StudyFigure(f"fig{number:02d}_nsbl", title, text, figure)

    index = arrangement(network, sparse.relevance)
    after = sparse.phi[:, index]
    before = _nearest_image(study.results["laplace"], details(sparse, LaplaceDetails).mode[index])
    for number, layer in ((11, LAYER_1), (12, LAYER_2)):
        spread = after[:, layer].std(axis=0)
        centre = after[:, layer].mean(axis=0)
        limits = np.stack([centre - 8 * spread - 1, centre + 8 * spread + 1], axis=1)
        figure = plot_pairs(
            [before[:, layer], after[:, layer]], labels[layer], ("Laplace", "Laplace with NSBL"),
            (colour_of("laplace"), colour_of("laplace_nsbl")), limits=limits,
        )  # fmt: skip
        text = "One Gaussian each; the axes follow the sparse one, the other is far wider."
        yield StudyFigure(f"fig{number:02d}_laplace", "Laplace before and after", text, figure)


def _hierarchical(study: Study) -> Figures:
    hierarchical, labels = study.results["hierarchical"], _labels(study)
    colours = [colour_of("hierarchical")]
    for number, layer in ((13, LAYER_2), (14, LAYER_1)):
        phi = hierarchical.phi[:, layer]
        # Weights of an unneeded neuron are free: their tails would hide all others.
        low, high = np.quantile(phi, [0.05, 0.95], axis=0)
        limits = np.stack([low, high], axis=1) + 0.35 * np.outer(high - low, [-1.0, 1.0])
        figure = plot_pairs([phi], labels[layer], colours=colours, limits=limits)
        text, title = "Parameters, averaged over the hyperparameters.", "parameters"
        name = f"fig{number:02d}_hierarchical"
        yield StudyFigure(name, f"Hierarchical Bayes: {title}", text, figure)
    draws = details(hierarchical, HierarchicalDetails).log_alpha_draws
    for number, layer in ((15, LAYER_2), (16, LAYER_1)):
        names = [rf"$\log\alpha$ {label}" for label in labels[layer]]
        figure = plot_pairs([draws[:, layer]], names, colours=colours)
        text = "Hyperparameters: wide, and multimodal where a neuron may be pruned or not."
        title = "Hierarchical Bayes: hyperparameters"
        yield StudyFigure(f"fig{number:02d}_hyper", title, text, figure)


def _predictions(study: Study) -> Figures:
    data, nsbl = study.data, study.results["nsbl"]
    figure = _figure(figsize=(15, 3.9))
    axes = figure.subplots(1, 5, sharey=True)
    grid = np.linspace(-6, 6, 241)
    for ax, name in zip(axes, study.results):
        plot_predictions(study.results[name], grid, data.truth, (data.x, data.y), ax=ax)
        ax.set_ylim(-5, 9)
    axes[0].set_ylabel("$y$")
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    text = "1,000 push-forward draws each, on the same axes: draws, mean and 95 % band."
    yield StudyFigure("fig17_predictions", "Predictions of the five methods", text, figure)

    figure = _figure(figsize=(6.5, 3.6))
    network = nsbl.network_problem.network
    assert nsbl.relevance is not None
    index = arrangement(network, nsbl.relevance)
    plot_network(network, nsbl.relevance[index], ax=figure.add_subplot())
    text = "Line width is relevance; weights that NSBL prunes are dashed."
    yield StudyFigure("fig18_pruned", "The network after pruning", text, figure)


def _nearest_image(result: Result, mode: np.ndarray) -> np.ndarray:
    """The draws of one Laplace result, mapped to the image of its mode nearest to another mode."""
    symmetry, own = result.network_problem.symmetry, details(result, LaplaceDetails).mode
    index, sign = min(
        symmetry.elements(),
        key=lambda e: float(((e[1] * own[e[0]] - mode) ** 2).sum()),
    )
    return sign * result.phi[:, index]


def hyperprior_of(result: Result) -> Hyperprior:
    return Hyperprior(*result.settings["hyperprior"])
