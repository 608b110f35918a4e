"""Networks with pruned weights in plain NumPy: outputs, Jacobians, effects of inputs.

NumPy on purpose: shapes shrink as weights are pruned, and JAX would have to recompile for each.
Data have one column per row of the table, so J Jᵀ is a single `syrk` on contiguous memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnn.problems.activations import ACTIVATIONS
from sbnn.problems.network import layer_slices

Array = np.ndarray
# Pairs of rows per input in `exchange`: with many inputs and neurons, as many as this work (inputs
# × neurons × pairs, a second or two) allows, but not fewer than these.
MAX_WORK, FEWEST_PAIRS = 30_000_000, 50
FEW_ROWS = 400  # with more, products of single neurons, which need no copies, are faster


def n_parameters(sizes: tuple[int, ...]) -> int:
    """Number of weights and biases of a network with layer sizes (n_in, hidden…, n_out)."""
    return layer_slices(sizes)[-1][2]


def layer_groups(sizes: tuple[int, ...], outputs_per_target: int = 1) -> Array:
    """Group numbers, one per weight matrix and one per bias vector, shape (d,).

    In the last layer, each of the kinds of outputs (mean, log σ) has its own groups.
    """
    slices = layer_slices(sizes)
    lengths = [n for s, m, e in slices for n in (m - s, e - m)]
    groups = np.repeat(np.arange(len(lengths)), lengths)
    s, m, e = slices[-1]
    kind = len(lengths) * (np.arange(sizes[-1]) % outputs_per_target)
    groups[s:m] += np.repeat(kind, sizes[-2])
    groups[m:e] += kind
    return groups


class _Block(NamedTuple):
    """Active weights into one live neuron: rows of J, the neuron, and its live inputs.

    `inputs` is a full slice if all are active, which avoids a copy.
    """

    rows: slice
    output: int
    inputs: Array | slice


class _LayerIndex(NamedTuple):
    """Positions of the active parameters of a layer.

    With few rows, all weights are handled at once by `rows`, `outputs` and `inputs`: rows of J,
    and the neurons that each weight connects.
    """

    blocks: list[_Block]
    rows: Array | slice
    outputs: Array
    inputs: Array
    bias_rows: Array
    bias_outputs: Array


class Layout:
    """The active parameters of a network and the neurons they keep alive.

    A neuron without an active path to the output is neither evaluated nor differentiated: the
    Jacobian of its weights is zero.

    Parameters
    ----------
    sizes : tuple of int
    active : array of int, optional
        Sorted indices into φ; None means all parameters.
    """

    def __init__(self, sizes: tuple[int, ...], active: Array | None = None):
        self.sizes = tuple(sizes)
        self.active = np.arange(n_parameters(self.sizes)) if active is None else active
        mask = np.zeros(n_parameters(self.sizes), bool)
        mask[self.active] = True
        slices = layer_slices(self.sizes)
        self.alive = [np.arange(sizes[-1])]
        for k in range(len(slices) - 1, -1, -1):
            s, m, _ = slices[k]
            ways = mask[s:m].reshape(sizes[k + 1], sizes[k])[self.alive[0]].any(axis=0)
            self.alive.insert(0, np.flatnonzero(ways))
        self.index = [self._layer(k, *slices[k]) for k in range(len(slices))]
        self.unseen = np.ones(len(self.active), bool)
        for layer in self.index:
            self.unseen[layer.bias_rows] = False
            for block in layer.blocks:
                self.unseen[block.rows] = False

    def _layer(self, k: int, s: int, m: int, e: int) -> _LayerIndex:
        lo, mid, hi = np.searchsorted(self.active, (s, m, e))
        n_in = self.sizes[k]
        columns = (self.active[lo:mid] - s) % n_in
        bounds = lo + np.searchsorted(
            self.active[lo:mid], s + n_in * np.arange(self.sizes[k + 1] + 1)
        )
        place_out = np.full(self.sizes[k + 1], -1)
        place_out[self.alive[k + 1]] = np.arange(len(self.alive[k + 1]))
        place_in = np.full(n_in, -1)
        place_in[self.alive[k]] = np.arange(len(self.alive[k]))
        blocks = []
        for i in self.alive[k + 1]:
            start, stop = int(bounds[i]), int(bounds[i + 1])
            inputs = place_in[columns[start - lo : stop - lo]]
            full = len(inputs) == len(self.alive[k])
            if start < stop:
                where = slice(None) if full else inputs
                blocks.append(_Block(slice(start, stop), int(place_out[i]), where))
        bias = place_out[self.active[mid:hi] - m]
        outputs = place_out[(self.active[lo:mid] - s) // n_in]
        seen = outputs >= 0
        rows = slice(lo, mid) if seen.all() else np.arange(lo, mid)[seen]
        return _LayerIndex(
            blocks, rows, outputs[seen], place_in[columns[seen]],
            np.arange(mid, hi)[bias >= 0], bias[bias >= 0],
        )  # fmt: skip

    def restricted(self, active: Array) -> Layout:
        """The layout of the same network with other active parameters."""
        return Layout(self.sizes, active)

    def weights(self, phi: Array, k: int) -> tuple[Array, Array]:
        """W and b of layer k, live neurons only."""
        s, m, e = layer_slices(self.sizes)[k]
        n_out, n_in = self.sizes[k + 1], self.sizes[k]
        matrix, out = phi[s:m].reshape(n_out, n_in), self.alive[k + 1]
        if len(out) == n_out and len(self.alive[k]) == n_in:
            return matrix, phi[m:e]
        return matrix[out[:, None], self.alive[k]], phi[m:e][out]


class FlatLayout:
    """The active parameters of a model that is not a network; all of them have an effect."""

    sizes: tuple[int, ...] = ()

    def __init__(self, active: Array):
        self.active = active
        self.unseen = np.zeros(len(active), bool)

    def restricted(self, active: Array) -> FlatLayout:
        """The same model with other active parameters."""
        return FlatLayout(active)


class Pass(NamedTuple):
    """A forward pass: outputs, (z, a) of every layer and the weight matrices used."""

    output: Array  # (n_out, n)
    layers: list[tuple[Array, Array]]
    matrices: list[Array]


def forward_pass(phi: Array, x_t: Array, layout: Layout, activation: str) -> Pass:
    """Outputs and all layers at inputs `x_t` of shape (n_in, n), in the precision of `x_t`."""
    g = ACTIVATIONS[activation].value
    phi = phi.astype(x_t.dtype, copy=False)
    a = x_t if len(layout.alive[0]) == len(x_t) else x_t[layout.alive[0]]
    z, layers, matrices = a, [(a, a)], []
    for k in range(len(layout.sizes) - 1):
        w, b = layout.weights(phi, k)
        matrices.append(w)
        z = w @ a
        z += b[:, None]
        if k < len(layout.sizes) - 2:
            a = g(z)
            layers.append((z, a))
    return Pass(z, layers, matrices)


def forward(phi: Array, x_t: Array, layout: Layout, activation: str) -> Array:
    """Network outputs, shape (n_out, n), at inputs `x_t` of shape (n_in, n)."""
    return forward_pass(phi, x_t, layout, activation).output


def backward_pass(done: Pass, layout: Layout, activation: str) -> Array:
    """∂f/∂φ of the active parameters, shape (d_active, n_out, n).

    Sensitivities S[l] = ∂f/∂z[l] are propagated backwards, S[l−1] = (W[l]ᵀ S[l]) ∘ g'(z[l−1]); then
    ∂f/∂W[l][i, j] = S[l][i] a[l−1][j] and ∂f/∂b[l][i] = S[l][i].
    """
    f, layers, matrices = done
    slope = ACTIVATIONS[activation].slope
    slopes = [slope(*layer) for layer in layers[1:]]
    n_out, n = f.shape
    jac = np.empty((len(layout.active), n_out, n), dtype=f.dtype)
    jac[layout.unseen] = 0.0
    for o in range(n_out):
        sens = np.zeros((n_out, n), dtype=f.dtype)
        sens[o] = 1.0
        for k in range(len(layout.sizes) - 2, -1, -1):
            index, a = layout.index[k], layers[k][1]
            if n <= FEW_ROWS:
                jac[index.rows, o] = a[index.inputs] * sens[index.outputs]
            else:
                for rows, output, inputs in index.blocks:
                    np.multiply(a[inputs], sens[output], out=jac[rows, o])
            jac[index.bias_rows, o] = sens[index.bias_outputs]
            if k:
                sens = matrices[k].T @ sens
                sens *= slopes[k - 1]
    return jac


def jacobian(phi: Array, x_t: Array, layout: Layout, activation: str) -> tuple[Array, Array]:
    """Outputs (n_out, n) and their derivatives in the active parameters (d_active, n_out, n)."""
    done = forward_pass(phi, x_t, layout, activation)
    return done.output, backward_pass(done, layout, activation)


def input_gradient(phi: Array, x_t: Array, layout: Layout, activation: str) -> Array:
    """∂f/∂x at every point, shape (n_in, n_out, n); zero for inputs without an active weight."""
    f, layers, matrices = forward_pass(phi, x_t, layout, activation)
    slope = ACTIVATIONS[activation].slope
    n_out, n = f.shape
    out = np.zeros((len(x_t), n_out, n))
    for o in range(n_out):
        sens = np.zeros((n_out, n))
        sens[o] = 1.0
        for k in range(len(layout.sizes) - 2, -1, -1):
            sens = matrices[k].T @ sens
            if k:
                sens = sens * slope(*layers[k])
        out[layout.alive[0], o] = sens
    return out


def exchange(
    phi: Array, x_t: Array, layout: Layout, activation: str, groups: Array | None = None
) -> Array:
    """Change of the outputs if an input is exchanged with that of another row.

    Unlike a derivative, it is right for inputs with few values, such as one-hot columns. Only the
    first layer is updated for each input, and inputs without an active weight cost nothing.

    Parameters
    ----------
    phi : ndarray, shape (n_parameters,)
    x_t : ndarray, shape (n_in, n)
    layout : Layout
    activation : str
    groups : ndarray of int, shape (n_in,), optional
        Inputs with the same number are exchanged together.

    Returns
    -------
    ndarray, shape (n_groups, n_out, m)
        f(x') − f(x) for m ≥ n pairs of rows, the same pairs with every call; zero for inputs
        without an active weight. In wide tables some of the pairs stand for all.
    """
    groups = np.arange(len(x_t)) if groups is None else groups
    g = ACTIVATIONS[activation].value
    row, other = _pairs(x_t.shape[1])
    weights = [layout.weights(phi, k) for k in range(len(layout.sizes) - 1)]

    def outputs(z: Array) -> Array:
        for w, b in weights[1:]:
            z = w @ g(z) + b[:, None]
        return z

    (w, b), live = weights[0], layout.alive[0]
    z = w @ x_t[live] + b[:, None]
    f, z = outputs(z)[:, row], z[:, row]
    out = np.zeros((int(groups.max(initial=-1)) + 1, *f.shape))
    live_groups = np.unique(groups[live])
    n_neurons = sum(len(alive) for alive in layout.alive[1:])
    limit = max(FEWEST_PAIRS, MAX_WORK // max(len(live_groups) * n_neurons, 1))
    for j in live_groups:
        mine = groups[live] == j
        x = x_t[live[mine]]
        step = x[:, other] - x[:, row]
        pairs = np.flatnonzero(step.any(axis=0))
        # Some of the pairs that differ, scaled such that the mean square is that of all pairs.
        n_differ, pairs = len(pairs), pairs[:limit]
        change = outputs(z[:, pairs] + w[:, mine] @ step[:, pairs]) - f[:, pairs]
        out[j][:, pairs] = change * np.sqrt(n_differ / max(len(pairs), 1))
    return out


def _pairs(n: int, enough: int = 500) -> tuple[Array, Array]:
    """Pairs of different rows: each with the next ones in a fixed random order."""
    order, n_shifts = np.random.default_rng(0).permutation(n), min(-(-enough // n), max(n - 1, 1))
    return np.tile(order, n_shifts), np.concatenate(
        [np.roll(order, -shift) for shift in range(1, n_shifts + 1)]
    )
