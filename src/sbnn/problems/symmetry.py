"""Symmetry group of a network, folding into one cell, and the subgroup a prior shares."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnn._core.keys import as_key
from sbnn.priors import Custom, JointPrior, Normal, Uniform
from sbnn.problems.activations import ACTIVATIONS
from sbnn.problems.network import Network


@dataclass(frozen=True)
class Symmetry:
    """The group that leaves a network's output unchanged.

    The hidden neurons of a layer can be permuted, and for odd activations their signs flipped. An
    element is a signed permutation of φ: (index, sign), acting as φ ↦ sign · φ[index].

    Parameters
    ----------
    network : Network
    n_extra : int
        Number of parameters after the network's own (inferred noise levels), left unchanged.
    permute, flip : bool
        Parts of the group to keep: a prior may be invariant under one and not the other.

    Examples
    --------
    >>> Symmetry(Network((1, 3, 1))).order
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
        return self.flip and ACTIVATIONS[self.network.activation].odd

    @property
    def order(self) -> int:
        """Number of elements: ∏ h!·2ʰ over the hidden layers (h! where signs cannot flip)."""
        return math.prod(
            (math.factorial(h) if self.permute else 1) * (2**h if self.flips else 1)
            for h in self.network.sizes[1:-1]
        )

    def _join(
        self, layers: Sequence[tuple[np.ndarray, np.ndarray]], extra: np.ndarray
    ) -> np.ndarray:
        """Flatten the layers and append the extra entries."""
        flat = self.network.flatten(layers)
        tail = np.broadcast_to(extra, (*flat.shape[:-1], self.n_extra))
        return np.concatenate([flat, tail], axis=-1)

    @property
    def _tail(self) -> np.ndarray:
        return self.network.n_parameters + np.arange(self.n_extra)

    def _element(
        self, permutations: Sequence[Sequence[int]], signs: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
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
        """Every group element, the identity first.

        Raises
        ------
        ValueError
            If the group has more than `limit` elements.
        """
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
        """Map every row of φ (n, n_parameters) to a uniformly chosen point of its orbit."""
        index, sign = self.random(rng, len(phi))
        return np.take_along_axis(phi, index, axis=1) * sign

    def fold(self, phi: np.ndarray) -> np.ndarray:
        """The representative of each row's orbit in one fundamental cell.

        From the last hidden layer to the first: for odd activations, signs are chosen so that the
        outgoing weights of a neuron have a positive sum. Then neurons are sorted by their first
        incoming weight or, after the first hidden layer, by their bias, because incoming weights
        still depend on the order of the previous layer.
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


def invariant_symmetry(symmetry: Symmetry | None, prior: JointPrior, key: Any) -> Symmetry | None:
    """The subgroup that also leaves the prior unchanged.

    Decided by comparing the kinds and numbers of the priors, which detects even a slightly
    asymmetric box; custom densities are compared at draws from them.

    Parameters
    ----------
    symmetry : Symmetry or None
    prior : JointPrior
    key : PRNG key
        For draws from custom priors.

    Returns
    -------
    Symmetry or None
        None if only the identity is left.
    """
    if symmetry is None or symmetry.order == 1:
        return None
    marginals = prior.marginals()
    even = np.array([_is_even(kind, numbers, key) for kind, numbers in marginals])
    rng = np.random.default_rng(0)

    def holds(part: Symmetry) -> bool:
        return all(
            all(marginals[i] == marginals[j] for i, j in enumerate(index))
            and bool(even[sign < 0].all())
            for index, sign in zip(*part.random(rng, 64))
        )

    permute = holds(Symmetry(symmetry.network, symmetry.n_extra, flip=False))
    flip = holds(Symmetry(symmetry.network, symmetry.n_extra, permute=False))
    if not (permute or flip):
        return None
    return Symmetry(symmetry.network, symmetry.n_extra, permute, flip)


def _is_even(kind: Any, numbers: tuple[float, ...], key: Any) -> bool:
    """Whether a density is the same at x and −x."""
    if kind is Uniform:
        return numbers[0] == -numbers[1]
    if kind is Normal:
        return numbers[0] == 0
    if isinstance(kind, Custom):
        draws = kind.sampler(as_key(key), (64, 1))
        return bool(np.allclose(kind.density(draws), kind.density(-draws), rtol=1e-5, atol=1e-5))
    return False


# Distance of a neuron's mode from zero, in posterior standard deviations, below which it is zero.
AT_ZERO = 0.1


def flip_walls(network: Network, mode: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Half-spaces a · φ > 0 that contain the mode and one point of each orbit of sign flips.

    Flipping the signs of all weights of a neuron changes nothing if the activation is odd. A wall
    a acts on a neuron's incoming weights, its bias and, in the last hidden layer, its outgoing
    weights. In the first layer its side changes with the flip of its own neuron only, and so it
    does in later layers once the layers before are fixed: exactly one of the images of a point
    lies inside all walls. a = C⁻¹m, with the covariance C of the neuron's weights, separates
    N(m, C) best from its image.

    Parameters
    ----------
    network : Network
    mode : ndarray, shape (n,)
        Zero where pruned; entries after the network's parameters are ignored.
    covariance : ndarray, shape (n, n)
        Zero where pruned.

    Returns
    -------
    ndarray, shape (n_neurons, n)
        Zero rows for neurons without such a symmetry, and for those that are pruned or whose mode
        is at zero, around which N(m, C) holds both images.
    """
    neurons = network.neurons()
    walls = np.zeros((len(neurons), len(mode)))
    if not ACTIVATIONS[network.activation].odd:
        return walls
    first_of_last = len(neurons) - (network.sizes[-2] if neurons else 0)
    for number, neuron in enumerate(neurons):
        members = np.append(neuron.incoming, neuron.bias)
        if number >= first_of_last:
            members = np.append(members, neuron.outgoing)
        live = members[np.diag(covariance)[members] > 0]
        wall = np.linalg.solve(covariance[np.ix_(live, live)], mode[live])
        if wall @ mode[live] > AT_ZERO**2:
            walls[number, live] = wall
    return walls


def mirror_signs(network: Network, phi: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """The flips that bring φ (…, n) inside the walls of `flip_walls`, as ±1 for each parameter."""
    signs = np.ones(phi.shape)
    for neuron, wall in zip(network.neurons(), walls):  # from the first layer to the last
        outside = (signs * phi) @ wall < 0
        signs[..., neuron.members] *= np.where(outside, -1.0, 1.0)[..., None]
    return signs
