"""Deep networks layer by layer: growth while the evidence rises, and sweeps over the layers.

One layer at a time is learned with all others fixed. Its inputs are then data and the layers above
a fixed function, so that Jacobian, curvature and pruning concern the weights of one layer only; for
the output layer, which is linear, its evidence is exact. The evidence of the whole network, by
which depths are compared, is the Laplace evidence of all weights kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sbnn.evidence.laplace.fit import fit
from sbnn.evidence.laplace.models.layout import Array, Layout, forward_pass, n_parameters
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import Optimum, log_evidence
from sbnn.evidence.laplace.options import Options
from sbnn.evidence.laplace.pruning import evolve
from sbnn.problems.network import layer_slices

VISIT = 6  # iterations in one layer before the next
MAX_SWEEPS = 30
# A sweep ends with iterations on all layers together if at most this many weights are kept. Layers
# fixed in turn approach the optimum slowly where they depend on each other.
FEW_TOGETHER = 600
# Networks of at most this many weights are also trained from random starts, all layers together:
# features learned for one hidden layer may not be those that a second one needs.
FROM_SCRATCH = 1000
# Nats that another layer must add: Laplace's evidence of such networks is off by 0 to 18, half of
# them by more than 3 (benchmarks/exact.py).
LAYER = 10.0


class LayerLayout(Layout):
    """The parameters of the first layer of a network whose other layers are fixed.

    Parameters
    ----------
    sizes : tuple of int
    active : array of int
        Sorted indices of the parameters of the first layer that are kept.
    fixed : array of int
        Sorted indices of the parameters of the other layers that are not zero.
    """

    def __init__(self, sizes: tuple[int, ...], active: Array, fixed: Array):
        super().__init__(sizes, np.concatenate([active, fixed]))
        self.fixed = fixed
        self.active = active
        nothing = np.zeros(0, int)
        empty = type(self.index[0])([], *(nothing,) * 5)
        self.index = [self.index[0], *(empty for _ in self.index[1:])]
        self.unseen = self.unseen[: len(active)]

    def restricted(self, active: Array) -> LayerLayout:
        return LayerLayout(self.sizes, active, self.fixed)


def activations(model: NetworkModel, opt: Optimum, k: int) -> Array:
    """Inputs of layer k (counted from 0) at all rows, shape (width, n); zero for dead neurons."""
    if k == 0:
        return model.x_t
    layers = forward_pass(opt.phi, model.x_t, opt.layout, model.activation).layers
    out = np.zeros((opt.sizes[k], model.x_t.shape[1]))
    out[opt.layout.alive[k]] = layers[k][1]
    return out


def layer_problem(model: NetworkModel, opt: Optimum, k: int) -> tuple[NetworkModel, Optimum]:
    """Layer k and those above as a network of their own, of which only layer k is learned.

    Parameters
    ----------
    model : NetworkModel
    opt : Optimum
    k : int
        Counted from 0.

    Returns
    -------
    model, optimum
        Of the smaller network.
    """
    start, _, end = layer_slices(opt.sizes)[k]
    sizes = opt.sizes[k:]
    part = replace(model, x_t=activations(model, opt, k), sizes=sizes, x_scale=None, columns=None)
    inside = opt.active[opt.active >= start] - start
    own = inside < end - start
    new = replace(
        opt.copy(),
        phi=opt.phi[start:].copy(),
        log_alpha=opt.log_alpha[start:].copy(),
        layout=LayerLayout(sizes, inside[own], inside[~own]),
        variance=None,
        converged=False,
        history=[],
        damping=1e-2,
    )
    return part, new


def with_layer(opt: Optimum, learned: Optimum, k: int) -> Optimum:
    """The network with another layer k."""
    start, _, end = layer_slices(opt.sizes)[k]
    new = opt.copy()
    new.phi[start:end] = learned.phi[: end - start]
    new.log_alpha[start:end] = learned.log_alpha[: end - start]
    others = opt.active[(opt.active < start) | (opt.active >= end)]
    new.layout = Layout(opt.sizes, np.union1d(others, learned.active + start))
    new.noise, new.variance = learned.noise.copy(), None
    new.iterations += learned.iterations - opt.iterations
    return new


def sweep(model: NetworkModel, opt: Optimum, options: Options) -> Optimum:
    """Learn and prune one layer after the other until the evidence of the whole has converged.

    Parameters
    ----------
    model : NetworkModel
    opt : Optimum
        Not modified.
    options : Options

    Returns
    -------
    Optimum
        The best network visited.
    """
    opt = opt.copy()
    opt.log_evidence, _ = log_evidence(model, opt)
    best = opt
    for _ in range(MAX_SWEEPS):
        if options.watch.over:
            break
        for k in reversed(range(len(opt.sizes) - 1)):
            part, mine = layer_problem(model, opt, k)
            if len(mine.active):
                learned = evolve(part, mine, VISIT, None, options.step, options.tol)
                opt = with_layer(opt, learned, k)
        if len(opt.active) <= FEW_TOGETHER:
            opt = evolve(model, opt, VISIT, None, options.step, options.tol)
        opt.log_evidence, _ = log_evidence(model, opt)
        opt.history.append(opt.log_evidence)
        gain = opt.log_evidence - best.log_evidence
        fewer = len(opt.active) < len(best.active) and gain > -options.tol
        if gain > 0 or fewer:
            best = opt
        if gain < options.tol and not fewer:
            best = best.copy()
            best.converged, best.history = True, list(opt.history)
            break
    return best


@dataclass(frozen=True)
class Growth:
    """A network of the depth that the evidence prefers, and the depths that were tried.

    Attributes
    ----------
    model : NetworkModel
    optimum : Optimum
    tried : list of (tuple of int, float)
        Hidden widths and log evidence of every depth.
    """

    model: NetworkModel
    optimum: Optimum
    tried: list[tuple[tuple[int, ...], float]]


def added_layer(
    model: NetworkModel, opt: Optimum, width: int, rng: np.random.Generator, options: Options
) -> tuple[NetworkModel, Optimum]:
    """The network with one more hidden layer before the output, learned on fixed layers below."""
    depth = len(opt.sizes) - 2
    alive = opt.layout.alive[depth]
    inputs = np.ascontiguousarray(activations(model, opt, depth)[alive])
    spread = inputs.std(axis=1)
    part = replace(
        model,
        x_t=inputs,
        sizes=(len(alive), width, opt.sizes[-1]),
        x_scale=np.where(spread > 1e-6, spread, 1.0),
        columns=None,
    )
    top = fit([[part]], rng, replace(options, weighting="evidence")).optima[0]
    sizes = (*opt.sizes[:-1], width, opt.sizes[-1])
    kept = layer_slices(opt.sizes)[-1][0]  # parameters below the output layer
    phi, log_alpha = np.zeros(n_parameters(sizes)), np.full(n_parameters(sizes), np.inf)
    phi[:kept], log_alpha[:kept] = opt.phi[:kept], opt.log_alpha[:kept]
    # W of the new layer has columns for all neurons below, of which some are dead.
    old, new = layer_slices(part.sizes), layer_slices(sizes)[-2:]
    place = np.concatenate(
        [
            new[0][0] + (np.arange(width)[:, None] * opt.sizes[depth] + alive).ravel(),
            np.arange(new[0][1], new[1][2]),
        ]
    )
    assert len(place) == old[-1][2]
    phi[place], log_alpha[place] = top.phi, top.log_alpha
    active = np.union1d(opt.active[opt.active < kept], place[top.active])
    grown = replace(
        top, phi=phi, log_alpha=log_alpha, layout=Layout(sizes, active), precision=None,
        variance=None, iterations=opt.iterations + top.iterations, history=list(opt.history),
    )  # fmt: skip
    return replace(model, sizes=sizes), grown


def folded(model: NetworkModel, opt: Optimum, k: int) -> tuple[NetworkModel, Optimum]:
    """The network without hidden layer k, whose neurons are replaced by straight lines.

    The lines are fitted at all rows. Neurons that the data use in their linear range only, such as
    those of a layer too many, are lost without a loss.

    Parameters
    ----------
    model : NetworkModel
    opt : Optimum
    k : int
        Counted from 1; at least one hidden layer remains.

    Returns
    -------
    model, optimum
    """
    done = forward_pass(opt.phi, model.x_t, opt.layout, model.activation)
    z, a = done.layers[k]
    centred = z - z.mean(axis=1, keepdims=True)
    spread = np.maximum((centred**2).sum(axis=1), 1e-300)
    slope = (centred * a).sum(axis=1) / spread
    offset = a.mean(axis=1) - slope * z.mean(axis=1)
    below, shift = opt.layout.weights(opt.phi, k - 1)
    above, bias = opt.layout.weights(opt.phi, k)
    matrix = np.zeros((opt.sizes[k + 1], opt.sizes[k - 1]))
    vector = np.zeros(opt.sizes[k + 1])
    out = opt.layout.alive[k + 1]
    matrix[np.ix_(out, opt.layout.alive[k - 1])] = (above * slope) @ below
    vector[out] = above @ (slope * shift + offset) + bias
    own = np.concatenate([matrix.ravel(), vector])
    own_alpha = np.where(own == 0.0, np.inf, -2.0 * np.log(np.abs(own) + 1e-300))
    slices = layer_slices(opt.sizes)
    first, last = slices[k - 1][0], slices[k][2]
    sizes = (*opt.sizes[:k], *opt.sizes[k + 1 :])
    phi = np.concatenate([opt.phi[:first], own, opt.phi[last:]])
    log_alpha = np.concatenate([opt.log_alpha[:first], own_alpha, opt.log_alpha[last:]])
    shifted = opt.active[opt.active >= last] - last + first + len(own)
    active = np.concatenate([opt.active[opt.active < first], first + np.flatnonzero(own), shifted])
    new = replace(
        opt.copy(), phi=phi, log_alpha=log_alpha, layout=Layout(sizes, active), variance=None,
        damping=1e-2, converged=False,
    )  # fmt: skip
    return replace(model, sizes=sizes), new


def grow(
    model: NetworkModel,
    opt: Optimum,
    widths: Sequence[int],
    rng: np.random.Generator,
    options: Options,
) -> Growth:
    """Add hidden layers while the evidence of the whole network rises.

    Parameters
    ----------
    model : NetworkModel
        With one hidden layer.
    opt : Optimum
        Its best optimum.
    widths : sequence of int
        Widths of all hidden layers, the first included; their number is the largest depth.
    rng : numpy.random.Generator
    options : Options

    Returns
    -------
    Growth
    """
    options = replace(options, constant=False)  # of the layers below
    opt = sweep(model, opt, options)
    tried = [(opt.sizes[1:-1], opt.log_evidence)]
    for width in widths[1:]:
        constant = any(len(neurons) == 0 for neurons in opt.layout.alive[1:-1])
        if constant or options.watch.over:
            break
        deeper, new = _deeper(model, opt, width, rng, options)
        tried.append((new.sizes[1:-1], new.log_evidence))
        if new.log_evidence < opt.log_evidence + LAYER:
            break
        fewer, shallow = _shallower(deeper, new, options)
        if shallow.log_evidence > max(opt.log_evidence, new.log_evidence - LAYER):
            tried[-2] = (shallow.sizes[1:-1], shallow.log_evidence)
            model, opt = fewer, shallow
            break
        model, opt = deeper, new
    return Growth(model, opt, tried)


def _deeper(
    model: NetworkModel, opt: Optimum, width: int, rng: np.random.Generator, options: Options
) -> tuple[NetworkModel, Optimum]:
    """The best network with one more hidden layer."""
    deeper, start = added_layer(model, opt, width, rng, options)
    starts = [start]
    if n_parameters(deeper.sizes) <= FROM_SCRATCH:
        starts.append(fit([[deeper]], rng, options).optima[0])
    found = [sweep(deeper, start, options) for start in starts]
    return deeper, max(found, key=lambda opt: opt.log_evidence)


def _shallower(model: NetworkModel, opt: Optimum, options: Options) -> tuple[NetworkModel, Optimum]:
    """The best network without one of the hidden layers."""
    starts = [folded(model, opt, k) for k in range(1, len(opt.sizes) - 1)]
    found = [(fewer, sweep(fewer, start, options)) for fewer, start in starts]
    return max(found, key=lambda pair: pair[1].log_evidence)
