"""Mirror images of draws: one point of each orbit of the symmetry group, close to the others."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from sbnn.problems.network import Network
from sbnn.problems.symmetry import Symmetry

MAX_ROUNDS = 20


def counted_once(symmetry: Symmetry, phi: np.ndarray) -> np.ndarray:
    """Draws of φ, each replaced by the mirror image that is closest to the median of all.

    Mirror images (the same function with neurons exchanged or signs flipped) would otherwise be
    averaged: means near zero and standard deviations of the distance between images. Draws are
    folded into one cell; then images and median are found in turn, as in k-means with one cluster.
    Distances are in units that mirror images share: the root mean square of a weight over neurons
    and draws.

    Parameters
    ----------
    symmetry : Symmetry
    phi : ndarray, shape (n_draws, n_parameters)

    Returns
    -------
    ndarray, shape (n_draws, n_parameters)

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.problems.mirror_images import counted_once
    >>> from sbnn.problems.network import Network
    >>> from sbnn.problems.symmetry import Symmetry
    >>> draws = np.array([[2.0, 0.5, 1.0, 0.1], [-2.0, -0.5, -1.0, 0.1]])  # the same function twice
    >>> counted_once(Symmetry(Network((1, 1, 1))), draws)
    array([[2. , 0.5, 1. , 0.1],
           [2. , 0.5, 1. , 0.1]])
    """
    network = symmetry.network
    out = symmetry.fold(phi)
    units = _units(network, out)
    for _ in range(MAX_ROUNDS):
        before = out
        pivot = np.median(out, axis=0)[: network.n_parameters]
        for layer in reversed(range(1, len(network.sizes) - 1)):
            out = _nearest(symmetry, out, pivot, units, layer)
        if np.array_equal(out, before):
            break
    return out


def _units(network: Network, phi: np.ndarray) -> np.ndarray:
    """Scale of each parameter, the same for all it can be exchanged with, (n_parameters,)."""
    squares = (phi[:, : network.n_parameters] ** 2).mean(axis=0)
    last = len(network.sizes) - 2
    layers = []
    for k, (weights, biases) in enumerate(network.unflatten(squares)):
        axes = tuple(axis for axis in (0, 1) if (axis == 0 and k < last) or (axis == 1 and k > 0))
        if axes:
            weights = np.broadcast_to(weights.mean(axis=axes, keepdims=True), weights.shape)
        if k < last:
            biases = np.full_like(biases, biases.mean())
        layers.append((weights, biases))
    return np.sqrt(network.flatten(layers)) + 1e-300


def _nearest(
    symmetry: Symmetry, phi: np.ndarray, pivot: np.ndarray, units: np.ndarray, layer: int
) -> np.ndarray:
    """Draws with the neurons of one hidden layer in the order and with the signs nearest to φ⁰.

    Neuron i of a draw is a vector v_i of its incoming weights, bias and outgoing weights. As
    neuron j of φ⁰, with its better sign, it is at the distance |v_i|² + |v_j⁰|² − 2|v_i·v_j⁰|.
    """
    network = symmetry.network
    width = network.sizes[layer]
    members = [n.members for n in network.neurons()]
    start = sum(network.sizes[1:layer])
    index = np.array(members[start : start + width])  # (width, n_members)
    own, target = phi[:, index] / units[index], pivot[index] / units[index]
    product = np.einsum("nim,jm->nij", own, target)
    sign = np.where(product < 0, -1.0, 1.0) if symmetry.flips else np.ones_like(product)
    closeness = sign * product
    rows = np.tile(np.arange(width), (len(phi), 1))
    if symmetry.permute:
        natural = (closeness.argmax(axis=1) == np.arange(width)).all(axis=1)
        for n in np.flatnonzero(~natural):
            neuron, place = linear_sum_assignment(-closeness[n])
            rows[n, place] = neuron
    values = np.take_along_axis(phi[:, index], rows[:, :, None], axis=1)
    chosen = np.take_along_axis(sign, rows[:, None, :], axis=1)[:, 0]
    out = phi.copy()
    out[:, index] = values * chosen[:, :, None]
    return out
