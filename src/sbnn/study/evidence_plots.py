"""Figures of densities, evidence surfaces and Newton's ascent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sbnn.evidence.closed_form import log_evidence
from sbnn.evidence.mixture import GaussianMixture
from sbnn.priors import Hyperprior
from sbnn.reports.drawing.plots import Labels, _figure

Pairs = Sequence[tuple[int, int]]


def plot_density_surfaces(phi: np.ndarray, pairs: Pairs, labels: Labels) -> Any:
    """Plot the kernel density of pairs of parameters as 3-D surfaces.

    Parameters
    ----------
    phi : ndarray, shape (n_draws, n_parameters)
    pairs : sequence of (int, int)
        Indices of the parameters, one surface per pair.
    labels : sequence of str
        One per parameter.

    Returns
    -------
    Figure
    """
    from scipy.stats import gaussian_kde

    figure = _figure(figsize=(4.2 * len(pairs), 3.8))
    for place, (i, j) in enumerate(pairs, start=1):
        ax = figure.add_subplot(1, len(pairs), place, projection="3d")
        density = gaussian_kde(phi[:, [i, j]].T, bw_method=0.08)
        limit = 2.0 * np.median(np.abs(phi[:, [i, j]])) + 1e-9
        grid = np.linspace(-limit, limit, 60)
        a, b = np.meshgrid(grid, grid)
        values = density(np.stack([a.ravel(), b.ravel()])).reshape(a.shape)
        ax.plot_surface(a, b, values, cmap="viridis", lw=0, rcount=60, ccount=60)
        ax.set(xlabel=labels[i], ylabel=labels[j])
        ax.set_zticks([])
        ax.view_init(elev=40, azim=-60)
        ax.tick_params(labelsize=7)
    return figure


def plot_evidence_surfaces(
    mixture: GaussianMixture,
    ard: np.ndarray,
    hyperprior: Hyperprior,
    log_alpha: np.ndarray,
    pairs: Pairs,
    labels: Labels,
    span: tuple[float, float] = (-5.0, 12.0),
    n: int = 21,
) -> Any:
    """Plot log evidence, hyperprior and objective over pairs of log α, the others at the optimum.

    Parameters
    ----------
    mixture : GaussianMixture
        Surrogate of likelihood × known prior.
    ard : ndarray of bool, shape (n_parameters,)
        Which parameters have an ARD prior.
    hyperprior : Hyperprior
    log_alpha : ndarray, shape (n_alpha,)
        The optimum.
    pairs : sequence of (int, int)
        Indices into `log_alpha`, one row of plots per pair.
    labels : sequence of str
        One per ARD parameter.
    span : tuple of float
        Range of log α.
    n : int
        Grid points per axis.

    Returns
    -------
    Figure
    """
    grid = np.linspace(span[0], span[1], n)
    figure = _figure(figsize=(9.6, 3.0 * len(pairs)))
    axes = figure.subplots(len(pairs), 3, squeeze=False)
    for row, (i, j) in enumerate(pairs):
        surfaces = np.empty((3, n, n))
        for a, first in enumerate(grid):
            for b, second in enumerate(grid):
                at = log_alpha.copy()
                at[i], at[j] = first, second
                evidence = log_evidence(at, mixture, ard)
                hyper = float(hyperprior.log_density(at))
                surfaces[:, b, a] = evidence, hyper, evidence + hyper
        for column, name in enumerate(("log evidence", "log hyperprior", "objective")):
            ax = axes[row, column]
            values = surfaces[column]
            floor = values.max() - 12.0
            image = ax.contourf(grid, grid, np.maximum(values, floor), levels=24, cmap="viridis")
            ticks = np.linspace(max(values.min(), floor), values.max(), 4)
            figure.colorbar(image, ax=ax, format="%.3g", ticks=ticks)
            ax.set_xlabel(rf"$\log\alpha$ of {labels[i]}")
            ax.set_ylabel(rf"$\log\alpha$ of {labels[j]}")
            if row == 0:
                ax.set_title(name)
            if column == 2:
                ax.plot(log_alpha[i], log_alpha[j], "x", color="white", ms=11, mew=4)
                ax.plot(log_alpha[i], log_alpha[j], "x", color="#D55E00", ms=10, mew=2)
    return figure


def plot_optimisation(
    objective: Any, log_alpha: np.ndarray, relevance: np.ndarray, labels: Labels
) -> Any:
    """Plot objective, log α and γ against Newton iterations.

    Parameters
    ----------
    objective : array_like, shape (n_steps,)
    log_alpha, relevance : ndarray, shape (n_steps, n_alpha)
    labels : sequence of str
        One per ARD parameter.

    Returns
    -------
    Figure
    """
    figure = _figure(figsize=(10.5, 3.3))
    axes = figure.subplots(1, 3)
    steps = np.arange(len(objective))
    axes[0].plot(steps, objective, "o-", color="#0072B2", ms=3.5)
    axes[0].set_ylabel("objective")
    colours = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#111111"]
    lines = []
    for k, label in enumerate(labels):
        style = {"color": colours[k % len(colours)], "ls": ("-", "--", ":")[k // len(colours) % 3]}
        lines += axes[1].plot(steps, log_alpha[:, k], label=label, **style)
        axes[2].plot(steps, relevance[:, k], **style)
    axes[1].set_ylabel(r"$\log\alpha$")
    axes[2].set(ylabel=r"$\gamma$", ylim=(-0.03, 1.03))
    for ax in axes:
        ax.set_xlabel("Newton iteration")
    figure.legend(handles=lines, loc="outside right center", fontsize=9, frameon=False)
    return figure
