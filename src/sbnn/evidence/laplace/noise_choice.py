"""Change of the noise model during a fit: the mean stays, and the noise starts at its level."""

from __future__ import annotations

import numpy as np

from sbnn.evidence.laplace.layout import Array, Layout
from sbnn.evidence.laplace.models import NetworkModel
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.evidence.laplace.terms import per_row
from sbnn.problems.network import layer_slices


def adapted(
    opt: Optimum, old: NetworkModel, new: NetworkModel, rng: np.random.Generator
) -> Optimum:
    """The optimum as a start of a model that differs only in its likelihood.

    Hidden layers, and outputs and parameters that both likelihoods have, are kept. Other outputs
    start close to constants, and the noise starts at its present level.

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
        biases = layer_slices(new.sizes)[-1][1] + np.arange(new.sizes[-1])
        of_sigma = biases.reshape(len(new.y_t), -1)[:, after.outputs.index("log_sigma")]
        phi[of_sigma] = _log_level(opt, old)
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


def _log_level(opt: Optimum, model: NetworkModel) -> Array:
    """Logarithm of the typical noise of each target, (K,)."""
    f = model.split(model.evaluate(opt.phi, opt.layout).output)
    information = model.likelihood.information(f, per_row(opt.noise))[..., 0]
    return -0.5 * np.log(np.broadcast_to(information, f.shape[:-1])).mean(axis=1)
