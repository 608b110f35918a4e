"""Change of the noise model during a fit: the mean stays, and the noise starts at its level."""

from __future__ import annotations

import numpy as np

from sbnn.evidence.laplace.layout import Array, Layout
from sbnn.evidence.laplace.models import NetworkModel
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.evidence.laplace.terms import per_row
from sbnn.problems.network import layer_slices

PRIOR = 0.1  # variance of new weights into log σ


def adapted(
    opt: Optimum, old: NetworkModel, new: NetworkModel, rng: np.random.Generator
) -> Optimum:
    """The optimum as a start of a model that differs only in its likelihood.

    Hidden layers, and outputs and parameters that both likelihoods have, are kept. An
    output log σ that is new starts at a regression of the residuals, other noise at its level.

    Parameters
    ----------
    opt : Optimum
    old, new : NetworkModel
    rng : numpy.random.Generator

    Returns
    -------
    Optimum
    """
    phi, log_alpha, noise = new.start(rng)
    place = _places(old, new)
    copied = place >= 0
    phi[place[copied]], log_alpha[place[copied]] = opt.phi[copied], opt.log_alpha[copied]
    active = np.ones(len(phi), bool)
    active[place[copied]] = False
    active[place[opt.active[copied[opt.active]]]] = True
    before, after = old.likelihood, new.likelihood
    for q, name in enumerate(after.parameters):
        if name in before.parameters:
            noise[:, q] = opt.noise[:, before.parameters.index(name)]
        elif name == "log_sigma":
            noise[:, q] = _log_level(opt, old)
    if "log_sigma" in after.outputs and "log_sigma" not in before.outputs:
        of_sigma = _sigma_weights(new)
        phi[of_sigma], log_alpha[of_sigma[:, :-1]] = _log_sigma_start(opt, old), -np.log(PRIOR)
    phi[~active], log_alpha[~active] = 0.0, np.inf
    layout = Layout(new.sizes, np.flatnonzero(active))
    return Optimum(
        phi, log_alpha, noise, layout, opt.activation, iterations=opt.iterations,
        history=list(opt.history),
    )  # fmt: skip


def _places(old: NetworkModel, new: NetworkModel) -> Array:
    """Position in the new φ of every parameter of the old one, −1 if it has none."""
    s, m, e = layer_slices(old.sizes)[-1]
    start, middle, _ = layer_slices(new.sizes)[-1]
    place = np.full(e, -1)
    place[:s] = np.arange(s)
    width, before, after = old.sizes[-2], old.likelihood.outputs, new.likelihood.outputs
    for target in range(len(old.y_t)):
        for name in set(before) & set(after):
            a = target * len(before) + before.index(name)
            b = target * len(after) + after.index(name)
            place[s + a * width : s + (a + 1) * width] = start + b * width + np.arange(width)
            place[m + a] = middle + b
    return place


def _sigma_weights(model: NetworkModel) -> Array:
    """Positions of the weights into the output log σ of each target, and of its bias last."""
    (s, m, _), width = layer_slices(model.sizes)[-1], model.sizes[-2]
    outputs = model.likelihood.outputs
    rows = np.arange(len(model.y_t)) * len(outputs) + outputs.index("log_sigma")
    return np.column_stack([s + rows[:, None] * width + np.arange(width), m + rows])


def _log_sigma_start(opt: Optimum, model: NetworkModel) -> Array:
    """Weights and bias of log σ for each target by ridge regression, (K, width + 1).

    log|r| of normal residuals r is log σ − 0.635 with variance π²/8. It is regressed on the last
    hidden layer, with weights of variance `PRIOR`; dead neurons have none.
    """
    done = model.evaluate(opt.phi, opt.layout)
    residual = np.abs(model.y_t - model.split(done.output)[..., 0])
    level = np.log(residual + 0.05 * np.median(residual, axis=1, keepdims=True) + 1e-300) + 0.635
    features = done.layers[-1][1].astype(float)
    centre = features.mean(axis=1, keepdims=True)
    moved = features - centre
    gram = moved @ moved.T + np.pi**2 / 8 / PRIOR * np.eye(len(moved))
    out = np.zeros((len(level), model.sizes[-2] + 1))
    for k, target in enumerate(level):
        weights = np.linalg.solve(gram, moved @ (target - target.mean()))
        out[k, opt.layout.alive[-2]] = weights
        fitted = weights @ moved
        # The bias gives the residuals, in units of σ, a mean square of one.
        scale = 0.5 * np.log(np.mean(residual[k] ** 2 * np.exp(-2 * fitted)) + 1e-300)
        out[k, -1] = scale - weights @ centre[:, 0]
    return out


def _log_level(opt: Optimum, model: NetworkModel) -> Array:
    """Logarithm of the typical noise of each target, (K,)."""
    f = model.split(model.evaluate(opt.phi, opt.layout).output)
    information = model.likelihood.information(f, per_row(opt.noise))[..., 0]
    return -0.5 * np.log(np.broadcast_to(information, f.shape[:-1])).mean(axis=1)
