"""Multilayer perceptrons as functions of one flat parameter vector φ."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

ACTIVATIONS: dict[str, Callable] = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "sin": jnp.sin,
    "identity": lambda z: z,
}
# f(−z) = −f(z): flipping the signs of a neuron's inputs, bias and outputs changes nothing.
ODD_ACTIVATIONS = frozenset({"tanh", "sin", "identity"})


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
        """For each layer, where its weights and its biases stand in φ."""
        out, start = [], 0
        for n_in, n_out in itertools.pairwise(self.sizes):
            middle, end = start + n_in * n_out, start + n_in * n_out + n_out
            out.append((slice(start, middle), slice(middle, end)))
            start = end
        return tuple(out)

    @property
    def n_parameters(self) -> int:
        return self.slices[-1][1].stop

    @functools.cached_property
    def _entries(self) -> tuple[tuple[str, int, int, int], ...]:
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
            for kind, layer, j, i in self._entries
        )

    @property
    def labels(self) -> tuple[str, ...]:
        r"""LaTeX labels in the study's notation: $W^{[1]}_{21}$, $b^{[1]}_{2}$, …"""

        def subscript(j, i):
            return f"{j}{i}" if max(j, i) < 10 else f"{j},{i}"

        return tuple(
            f"$W^{{[{layer}]}}_{{{subscript(j, i)}}}$"
            if kind == "W"
            else f"$b^{{[{layer}]}}_{{{j}}}$"
            for kind, layer, j, i in self._entries
        )

    def layer_indices(self, layer: int) -> np.ndarray:
        """Positions in φ of the weights and biases of one layer, counted from 1."""
        weights, biases = self.slices[layer - 1]
        return np.arange(weights.start, biases.stop)

    def unflatten(self, phi) -> list[tuple]:
        """φ of shape (…, n_parameters) → [(W[1], b[1]), …] with W[l] of shape (…, n_out, n_in)."""
        shapes = itertools.pairwise(self.sizes)
        return [
            (phi[..., w].reshape(*phi.shape[:-1], n_out, n_in), phi[..., b])
            for (n_in, n_out), (w, b) in zip(shapes, self.slices)
        ]

    def flatten(self, layers) -> np.ndarray:
        """[(W[1], b[1]), …] → φ, the inverse of `unflatten`."""
        parts = []
        for weights, biases in layers:
            weights, biases = np.asarray(weights), np.asarray(biases)
            parts += [weights.reshape(*biases.shape[:-1], -1), biases]
        return np.concatenate(parts, axis=-1)

    def forward(self, phi, x):
        """Outputs for one parameter vector: (n_parameters,), (n, n_inputs) → (n, n_outputs)."""
        activation = ACTIVATIONS[self.activation]
        hidden = x.T
        *inner, (last_weights, last_biases) = self.unflatten(phi)
        for weights, biases in inner:
            hidden = activation(_affine(weights, hidden, biases))
        return _affine(last_weights, hidden, last_biases).T

    def forward_row(self, columns, inputs):
        """Outputs at one row of data for many φ: (n_parameters, n), (n_inputs,) → (n_outputs, n).

        The parameter vectors are the fast axis, which a CPU's vector units like best.
        """
        activation = ACTIVATIONS[self.activation]
        out = inputs[:, None]
        for number, (n_in, n_out) in enumerate(itertools.pairwise(self.sizes), start=1):
            where_weights, where_biases = self.slices[number - 1]
            weights = columns[where_weights].reshape(n_out, n_in, -1)
            out = (weights * out).sum(axis=1) + columns[where_biases]
            if number < self.n_layers:
                out = activation(out)
        return out

    def jacobian(self, phi, x):
        """Per-sample Jacobian ∂f/∂φ in closed form: shape (n, n_outputs, n_parameters).

        With h[l] = f(z[l]) and δ[l] = ∂y/∂z[l], ∂y/∂W[l] = δ[l] h[l−1]ᵀ and ∂y/∂b[l] = δ[l].
        """
        activation = ACTIVATIONS[self.activation]
        layers = self.unflatten(phi)
        hidden, slopes = [x], []
        for weights, biases in layers[:-1]:
            z = hidden[-1] @ weights.T + biases
            value, slope = jax.jvp(activation, (z,), (jnp.ones_like(z),))
            hidden.append(value)
            slopes.append(slope)
        n = x.shape[0]
        delta = jnp.broadcast_to(jnp.eye(self.n_outputs), (n, self.n_outputs, self.n_outputs))
        columns: list = []
        for layer in reversed(range(self.n_layers)):
            weight_part = delta[:, :, :, None] * hidden[layer][:, None, None, :]
            columns = [weight_part.reshape(n, self.n_outputs, -1), delta, *columns]
            if layer:
                delta = (delta @ layers[layer][0]) * slopes[layer - 1][:, None, :]
        return jnp.concatenate(columns, axis=-1)

    @property
    def symmetry(self) -> Symmetry:
        return Symmetry(self)


def _affine(weights, hidden, biases):
    # A matrix product over a handful of neurons is slower than a fused sum on a CPU, and its
    # rounding depends on the batch; from eight inputs on the product wins.
    if weights.shape[-1] < 8:
        terms = [weights[:, i, None] * hidden[i] for i in range(weights.shape[-1])]
        return functools.reduce(jnp.add, terms) + biases[:, None]
    return weights @ hidden + biases[:, None]


@dataclass(frozen=True)
class Symmetry:
    """The group that leaves a network's output unchanged.

    Hidden neurons of one layer may be permuted, and for odd activations their signs flipped. An
    element is a signed permutation of φ: (index, sign), acting as φ ↦ sign · φ[index].

    Parameters
    ----------
    network : Network
    n_extra : int
        Parameters behind the network's own (inferred noise levels); they stay where they are.
    permute, flip : bool
        Which parts of the group to keep: a prior may be invariant under one and not the other.

    Examples
    --------
    >>> Network((1, 3, 1)).symmetry.order
    48
    """

    network: Network
    n_extra: int = 0
    permute: bool = True
    flip: bool = True

    @property
    def _hidden(self) -> range:
        return range(1, len(self.network.sizes) - 1)

    @property
    def flips(self) -> bool:
        return self.flip and self.network.activation in ODD_ACTIVATIONS

    @property
    def order(self) -> int:
        """Number of elements: ∏ h!·2ʰ over the hidden layers (h! where signs cannot flip)."""
        return math.prod(
            (math.factorial(h) if self.permute else 1) * (2**h if self.flips else 1)
            for h in self.network.sizes[1:-1]
        )

    def _join(self, layers, extra) -> np.ndarray:
        """Flatten the layers and put the untouched trailing entries behind them."""
        flat = self.network.flatten(layers)
        tail = np.broadcast_to(extra, (*flat.shape[:-1], self.n_extra))
        return np.concatenate([flat, tail], axis=-1)

    @property
    def _tail(self) -> np.ndarray:
        return self.network.n_parameters + np.arange(self.n_extra)

    def _element(self, permutations, signs) -> tuple[np.ndarray, np.ndarray]:
        """(index, sign) over φ from one permutation and sign vector per layer of neurons."""
        network = self.network
        position = network.unflatten(np.arange(network.n_parameters))
        index, sign = [], []
        for layer, (weights, biases) in enumerate(position, start=1):
            p_in, p_out = permutations[layer - 1], permutations[layer]
            s_in, s_out = signs[layer - 1], signs[layer]
            index.append((weights[np.ix_(p_out, p_in)], biases[p_out]))
            sign.append((np.outer(s_out, s_in), s_out))
        return self._join(index, self._tail).astype(int), self._join(sign, np.ones(self.n_extra))

    def elements(self, limit: int = 5_000) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Every group element, the identity first. Refuses groups of more than `limit` elements."""
        if self.order > limit:
            raise ValueError(
                f"The symmetry group has {self.order} elements, more than `limit`={limit}; "
                "use `random` for a sample of it."
            )
        sizes = self.network.sizes
        choices = []
        for layer, width in enumerate(sizes):
            if layer in self._hidden:
                sign_sets = (
                    list(itertools.product([1.0, -1.0], repeat=width))
                    if self.flips
                    else [(1.0,) * width]
                )
                choices.append(
                    [
                        (list(p), np.array(s))
                        for p in (
                            itertools.permutations(range(width))
                            if self.permute
                            else [tuple(range(width))]
                        )
                        for s in sign_sets
                    ]
                )
            else:
                choices.append([(list(range(width)), np.ones(width))])
        for combination in itertools.product(*choices):
            yield self._element([c[0] for c in combination], [c[1] for c in combination])

    def expand(self, phi: np.ndarray, limit: int = 5_000) -> np.ndarray:
        """The orbit of each φ: (…, n_parameters) → (order, …, n_parameters)."""
        phi = np.asarray(phi)
        return np.stack([sign * phi[..., index] for index, sign in self.elements(limit)])

    def random(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """n independent uniform group elements: (index, sign), each of shape (n, n_parameters)."""
        sizes = self.network.sizes
        permutations, signs = [], []
        for layer, width in enumerate(sizes):
            hidden = layer in self._hidden
            draws = np.tile(np.arange(width), (n, 1))
            move = hidden and self.permute
            permutations.append(rng.permuted(draws, axis=1) if move else draws)
            flip = hidden and self.flips
            signs.append(rng.choice([-1.0, 1.0], (n, width)) if flip else np.ones((n, width)))
        position = self.network.unflatten(np.arange(self.network.n_parameters))
        index, sign = [], []
        for layer, (weights, biases) in enumerate(position, start=1):
            p_in, p_out = permutations[layer - 1], permutations[layer]
            s_in, s_out = signs[layer - 1], signs[layer]
            index.append((weights[p_out[:, :, None], p_in[:, None, :]], biases[p_out]))
            sign.append((s_out[:, :, None] * s_in[:, None, :], s_out))
        return self._join(index, self._tail).astype(int), self._join(sign, np.ones(self.n_extra))

    def apply_random(self, rng: np.random.Generator, phi: np.ndarray) -> np.ndarray:
        """Send every row of φ (n, n_parameters) to a uniformly chosen point of its orbit."""
        index, sign = self.random(rng, len(phi))
        return np.take_along_axis(phi, index, axis=1) * sign

    def fold(self, phi: np.ndarray) -> np.ndarray:
        """The representative of each row's orbit in one fundamental cell.

        From the last hidden layer to the first: signs so that a neuron's outgoing weights sum to
        a positive number (for even activations signs stay), then neurons in increasing order of
        their first incoming weight, or of their bias behind the first hidden layer, where incoming
        weights still depend on the order of the layer before.
        """
        phi = np.atleast_2d(np.asarray(phi, dtype=float))
        extra = phi[:, self.network.n_parameters :]
        layers = [(w.copy(), b.copy()) for w, b in self.network.unflatten(phi)]
        for hidden in reversed(self._hidden):
            (w_in, b_in), (w_out, b_out) = layers[hidden - 1], layers[hidden]
            if self.flips:
                sign = np.where(w_out.sum(axis=1) < 0, -1.0, 1.0)
                w_in, b_in = w_in * sign[:, :, None], b_in * sign
                w_out = w_out * sign[:, None, :]
            if not self.permute:
                layers[hidden - 1], layers[hidden] = (w_in, b_in), (w_out, b_out)
                continue
            order = np.argsort(w_in[:, :, 0] if hidden == 1 else b_in, axis=1, kind="stable")
            w_in = np.take_along_axis(w_in, order[:, :, None], axis=1)
            b_in = np.take_along_axis(b_in, order, axis=1)
            w_out = np.take_along_axis(w_out, order[:, None, :], axis=2)
            layers[hidden - 1], layers[hidden] = (w_in, b_in), (w_out, b_out)
        return self._join(layers, extra)
