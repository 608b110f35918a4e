"""method="layer_wise": networks that grow a hidden layer at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sbnn.evidence.laplace.fit import fit
from sbnn.evidence.laplace.layer_wise import grow
from sbnn.evidence.laplace.mixture import SparseMixture, Trial
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import log_evidence
from sbnn.likelihoods import Likelihood

if TYPE_CHECKING:
    from sbnn.regressor.training import Task


def network_model(task: Task, widths: tuple[int, ...], likelihood: Likelihood) -> NetworkModel:
    """The network of a task with the given hidden widths and kind of noise."""
    x_t, y_t = task.scaling.training(task.rows.x, task.rows.y)
    noise = task.log_known()
    if noise is not None:
        noise = noise[:, None] if noise.ndim == 1 else np.ascontiguousarray(noise.T)[..., None]
    return NetworkModel(
        x_t=x_t,
        y_t=y_t,
        sizes=(len(x_t), *widths, len(y_t) * len(likelihood.outputs)),
        activation=task.activation,
        likelihood=likelihood,
        noise=noise,
        weights=task.rows.weights,
    )


def noise_choice(task: Task, kinds: Mapping[str, Likelihood]) -> Mapping[str, Likelihood] | None:
    """The kinds of noise that the Laplace engine chooses between; None if there is no choice."""
    return None if task.known is not None or list(kinds) == ["constant"] else kinds


def train_layer_wise(task: Task, columns: np.ndarray | None = None) -> SparseMixture:
    """Fit one hidden layer from many starts, then add layers while the evidence rises.

    Parameters
    ----------
    task : Task
        Its one architecture holds the widths; their number is the largest depth.
    columns : array of int, optional
        Inputs to use; default: all.

    Returns
    -------
    SparseMixture
        Of one optimum; its trials are the depths that were compared.
    """
    rng = np.random.default_rng(task.seed)
    widths = task.architectures[0][0]
    first = network_model(task, widths[:1], next(iter(task.kinds.values())))
    first = replace(first, columns=columns)
    options = replace(task.options, weighting="evidence")
    mixture = fit([[first]], rng, options, noise_choice(task, task.kinds))
    if len(mixture.optima[0].sizes) == 2:  # a constant
        return replace(mixture, optima=mixture.optima[:1], weights=np.ones(1))
    if task.known is None:
        first = first.with_likelihood(mixture.likelihood)
    growth = grow(first, mixture.optima[0], widths, rng, options)
    best = growth.optimum
    best.log_evidence, best.precision = log_evidence(growth.model, best)
    trials = tuple(Trial((sizes,), value) for sizes, value in growth.tried)
    return replace(mixture, optima=(best,), weights=np.ones(1), trials=trials)
