"""Calibration with few rows: how far left-out rows are from their predictions.

The same rows decide about α, the noise and the weights that are pruned, and the maximum of the
evidence neglects how uncertain they are. With few rows, that makes predictions too sure. Therefore
every optimum is fitted again without a part of the rows, α, noise and pruning included, and
predicts them. c² is the mean square of their errors in units of the predicted standard deviation.
By theory, as the noise is estimated from n rows with k well-determined weights, errors of new rows
have about Student's distribution with n − k degrees of freedom. The larger of both factors counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.layout import Array, jacobian
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.models.terms import per_row
from sbnn.evidence.laplace.optimum import Optimum, log_evidence
from sbnn.evidence.laplace.options import Options
from sbnn.evidence.laplace.pruning import evolve_with
from sbnn.scores import Predictive

FEW_ROWS = 60  # with more rows, the inflation is within a few per cent of one
N_FOLDS = 10
AGAIN = 6  # iterations without the left-out rows
LEAST = 2.0  # degrees of freedom
LEVEL = 0.975  # at which the normal and Student's distribution agree after the inflation


def inflation(pairs: Sequence[tuple[Model, Optimum]], weights: Array, options: Options) -> float:
    """The factor by which predicted standard deviations are too small, at least one.

    Parameters
    ----------
    pairs : sequence of (Model, Optimum)
        Networks on the same rows.
    weights : array, shape (K,)
        Of the optima.
    options : Options

    Returns
    -------
    float
        One with more than `FEW_ROWS` rows, or if the noise is known.
    """
    n = pairs[0][0].shape[1]
    models = [m for m, _ in pairs if isinstance(m, NetworkModel)]
    if n > FEW_ROWS or n < 3 or len(models) < len(pairs) or models[0].noise is not None:
        return 1.0
    folds = np.random.default_rng(0).permutation(n) % min(n, N_FOLDS)
    squares = []
    for fold in range(folds.max() + 1):
        out = np.flatnonzero(folds == fold)
        found = [_left_out(m, opt, out, options) for m, (_, opt) in zip(models, pairs)]
        means = np.array([predictive.mean() for predictive in found])  # (K, T, m)
        variances = np.array([predictive.std() ** 2 for predictive in found])
        w = weights[:, None, None]
        mean = (w * means).sum(axis=0)
        variance = (w * (variances + (means - mean) ** 2)).sum(axis=0)
        squares.append(((models[0].y_t[:, out] - mean) ** 2 / variance).ravel())
    measured = float(np.sqrt(np.concatenate(squares).mean()))
    used = float(weights @ [log_evidence(m, opt)[1].relevance().sum() for m, opt in pairs])
    # The product of both would count the few degrees of freedom twice: six rows then have intervals
    # that hold 99 % of the new ones.
    return max(measured, float(special.stdtrit(max(n - used, LEAST), LEVEL) / special.ndtri(LEVEL)))


def _left_out(model: NetworkModel, opt: Optimum, out: Array, options: Options) -> Predictive:
    """Predictive distribution of left-out observations, points (T, m)."""
    rows = np.setdiff1d(np.arange(model.shape[1]), out)
    part, new, noise = model.rows(rows), model.rows(out), opt.noise
    if noise.ndim == 3:
        noise = noise[:, rows]
    start = replace(opt.copy(), noise=noise, variance=None)
    again = evolve_with(part, start, AGAIN, options)
    _, precision = log_evidence(part, again)
    f, jac = jacobian(again.phi, new.x_t, again.layout, again.activation)
    found = precision.variance(jac.reshape(len(again.active), f.size))
    outputs, variance = new.split(f), new.split(found.reshape(f.shape))
    theta = per_row(again.noise if noise.ndim == 2 else opt.noise[:, out])
    one = np.ones((1, *outputs.shape[:-1]))
    return model.likelihood.predictive(one, outputs[None], variance[None], theta[None])
