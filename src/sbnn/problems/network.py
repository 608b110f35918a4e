"""Multilayer perceptrons as functions of one flat parameter vector φ."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from sbnn._core.arrays import Array
from sbnn._core.float64 import float64
from sbnn.problems.activations import ACTIVATIONS


@functools.lru_cache(maxsize=256)
def layer_slices(sizes: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Per layer (start of W, start of b, end) in the flat vector W[1], b[1], W[2], b[2], …"""
    slices, start = [], 0
    for n_in, n_out in itertools.pairwise(sizes):
        slices.append((start, start + n_in * n_out, start + (n_in + 1) * n_out))
        start = slices[-1][2]
    return tuple(slices)


class Neuron(NamedTuple):
    """Positions in φ of a hidden neuron's incoming weights, bias and outgoing weights."""

    incoming: np.ndarray
    bias: int
    outgoing: np.ndarray

    @property
    def members(self) -> np.ndarray:
        """Positions of all its parameters."""
        return np.r_[self.incoming, self.bias, self.outgoing]


@dataclass(frozen=True)
class Network:
    """A fully connected network with a linear output layer.

    The flat vector φ holds ``W[1], b[1], W[2], b[2], …``, each matrix row by row; ``W[l][j,i]``
    leads from neuron i of layer l − 1 to neuron j of layer l, as in the study.

    Parameters
    ----------
    sizes : tuple of int
        Number of inputs, hidden widths, number of outputs: (1, 3, 1) is the study's 1-3-1 net.
    activation : str
        One of tanh, relu, sigmoid, softplus, sin, identity.

    Examples
    --------
    >>> net = Network((1, 3, 1))
    >>> net.n_parameters
    10
    >>> net.names[:4]
    ('W[1][1,1]', 'W[1][2,1]', 'W[1][3,1]', 'b[1][1]')
    """

    sizes: tuple[int, ...]
    activation: str = "tanh"

    def __post_init__(self) -> None:
        sizes = tuple(int(s) for s in self.sizes)
        if len(sizes) < 2 or any(s < 1 for s in sizes) or sizes != tuple(self.sizes):
            raise ValueError(
                "`sizes` needs at least an input and an output layer, all widths whole and ≥ 1; "
                f"got {tuple(self.sizes)}."
            )
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"Unknown activation {self.activation!r}; choose one of {', '.join(ACTIVATIONS)}."
            )
        object.__setattr__(self, "sizes", sizes)

    @property
    def n_inputs(self) -> int:
        return self.sizes[0]

    @property
    def n_outputs(self) -> int:
        return self.sizes[-1]

    @property
    def n_layers(self) -> int:
        """Number of weight matrices."""
        return len(self.sizes) - 1

    @functools.cached_property
    def slices(self) -> tuple[tuple[slice, slice], ...]:
        """For each layer, the slices of φ that hold its weights and its biases."""
        return tuple((slice(s, m), slice(m, e)) for s, m, e in layer_slices(self.sizes))

    @property
    def n_parameters(self) -> int:
        return self.slices[-1][1].stop

    @functools.cached_property
    def entries(self) -> tuple[tuple[str, int, int, int], ...]:
        """(kind, layer, row, column) of every parameter, all counted from 1."""
        entries: list[tuple[str, int, int, int]] = []
        for layer, (n_in, n_out) in enumerate(itertools.pairwise(self.sizes), start=1):
            entries += [("W", layer, j, i) for j in range(1, n_out + 1) for i in range(1, n_in + 1)]
            entries += [("b", layer, j, 0) for j in range(1, n_out + 1)]
        return tuple(entries)

    @property
    def names(self) -> tuple[str, ...]:
        """Plain names: ``W[1][2,1]``, ``b[1][2]``, …"""
        return tuple(
            f"W[{layer}][{j},{i}]" if kind == "W" else f"b[{layer}][{j}]"
            for kind, layer, j, i in self.entries
        )

    @property
    def labels(self) -> tuple[str, ...]:
        r"""LaTeX labels in the study's notation: $W^{[1]}_{21}$, $b^{[1]}_{2}$, …"""

        def subscript(j: int, i: int) -> str:
            return f"{j}{i}" if max(j, i) < 10 else f"{j},{i}"

        return tuple(
            f"$W^{{[{layer}]}}_{{{subscript(j, i)}}}$"
            if kind == "W"
            else f"$b^{{[{layer}]}}_{{{j}}}$"
            for kind, layer, j, i in self.entries
        )

    def unflatten(self, phi: Array) -> list[tuple[Array, Array]]:
        """φ of shape (…, n_parameters) → [(W[1], b[1]), …] with W[l] of shape (…, n_out, n_in)."""
        shapes = itertools.pairwise(self.sizes)
        return [
            (phi[..., w].reshape(*phi.shape[:-1], n_out, n_in), phi[..., b])
            for (n_in, n_out), (w, b) in zip(shapes, self.slices)
        ]

    def flatten(self, layers: Sequence[tuple[Array, Array]]) -> np.ndarray:
        """[(W[1], b[1]), …] → φ, the inverse of `unflatten`."""
        parts = []
        for weights, biases in layers:
            weights, biases = np.asarray(weights), np.asarray(biases)
            parts += [weights.reshape(*biases.shape[:-1], -1), biases]
        return np.concatenate(parts, axis=-1)

    def forward(self, phi: Array, x: Array) -> Array:
        """Outputs for one parameter vector: (n_parameters,), (n, n_inputs) → (n, n_outputs)."""
        activation = ACTIVATIONS[self.activation].value
        hidden = x.T
        *inner, (last_weights, last_biases) = self.unflatten(phi)
        for weights, biases in inner:
            hidden = activation(_affine(weights, hidden, biases))
        return _affine(last_weights, hidden, last_biases).T

    def forward_row(self, columns: Array, inputs: Array) -> Array:
        """Outputs at one row of data for many φ: (n_parameters, n), (n_inputs,) → (n_outputs, n).

        The last axis runs over parameter vectors, which suits the vector units of a CPU.
        """
        activation = ACTIVATIONS[self.activation].value
        out = inputs[:, None]
        for number, (n_in, n_out) in enumerate(itertools.pairwise(self.sizes), start=1):
            where_weights, where_biases = self.slices[number - 1]
            weights = columns[where_weights].reshape(n_out, n_in, -1)
            out = (weights * out).sum(axis=1) + columns[where_biases]
            if number < self.n_layers:
                out = activation(out)
        return out

    def neurons(self) -> list[Neuron]:
        """The hidden neurons, layer by layer."""
        position = self.unflatten(np.arange(self.n_parameters))
        return [
            Neuron(w_in[j], int(b_in[j]), w_out[:, j])
            for (w_in, b_in), (w_out, _) in itertools.pairwise(position)
            for j in range(len(b_in))
        ]


def _affine(weights: Array, hidden: Array, biases: Array) -> Array:
    # On a CPU, a matrix product over a few neurons is slower than a fused sum, and its rounding
    # depends on the batch; from eight inputs on, the product is faster.
    if weights.shape[-1] < 8:
        terms = [weights[:, i, None] * hidden[i] for i in range(weights.shape[-1])]
        return functools.reduce(jnp.add, terms) + biases[:, None]
    return weights @ hidden + biases[:, None]


@functools.partial(jax.jit, static_argnames="network")
def _forward_all(network: Network, phi: Array, x: Array) -> Array:
    return jax.lax.map(lambda p: network.forward(p, x), phi, batch_size=64)


@float64
def push_forward(network: Network, phi: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Network outputs for every draw; parameter uncertainty only, without noise.

    Parameters
    ----------
    network : Network
    phi : ndarray, shape (n, d)
        Draws; entries after the network's parameters are ignored.
    x : ndarray, shape (m, n_inputs)

    Returns
    -------
    ndarray, shape (n, m, n_outputs)
    """
    return np.asarray(_forward_all(network, phi[:, : network.n_parameters], x))


def check_inputs(network: Network, x: ArrayLike) -> np.ndarray:
    """Return x with shape (m, n_inputs).

    Parameters
    ----------
    network : Network
    x : array-like
        A scalar, a vector or a matrix. A vector is one row, or one column for a single input.

    Returns
    -------
    ndarray, shape (m, n_inputs)

    Raises
    ------
    ValueError
        If x has the wrong number of columns, no rows, or values that are not finite.
    """
    x = np.asarray(x, dtype=float)
    if x.ndim == 0:
        x = x[None]
    if x.ndim == 1:
        x = x[:, None] if network.n_inputs == 1 else x[None, :]
    if x.ndim != 2 or x.shape[1] != network.n_inputs:
        raise ValueError(
            f"x must have {network.n_inputs} column(s) like the training data; got shape {x.shape}."
        )
    if not len(x):
        raise ValueError("x has no rows; give at least one.")
    if not np.isfinite(x).all():
        raise ValueError("x contains NaN or infinite values.")
    return x
