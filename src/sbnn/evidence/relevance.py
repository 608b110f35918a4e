"""Relevance of parameters and neurons at the exact posterior, and pruning by relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from sbnn._core.float64 import float64
from sbnn._core.text import plural
from sbnn.evidence.curvature import curvatures
from sbnn.problems.activations import ACTIVATIONS
from sbnn.problems.network import Network
from sbnn.problems.network_regression import NetworkProblem
from sbnn.problems.problem import Problem


@float64
def relevance_from_particles(
    problem: Problem, phi: np.ndarray, log_alpha: np.ndarray, n_used: int = 256
) -> np.ndarray:
    """γᵢ = 1 − αᵢ Pᵢᵢ per ARD parameter, averaged over posterior particles.

    At each particle P = (Λ + A)⁻¹ with the local curvature Λ of likelihood × known prior:
    Gauss–Newton for networks, the positive part of the Hessian for other differentiable problems.
    This is the limit of kernels with zero bandwidth, so γ depends on no bandwidth; it is exact for
    models linear in their parameters. Without gradients, P is the covariance of the particles.

    Parameters
    ----------
    problem : Problem
    phi : ndarray, shape (n, n_parameters)
    log_alpha : ndarray, shape (n_alpha,)
    n_used : int
        Maximum number of particles to use.

    Returns
    -------
    ndarray, shape (n_alpha,)
    """
    rng = np.random.default_rng(0)
    rows = rng.choice(len(phi), size=min(n_used, len(phi)), replace=False)
    if problem.black_box:
        gamma = 1.0 - np.exp(log_alpha) * phi[:, problem.ard].var(axis=0)
        return np.clip(gamma, 0.0, 1.0)
    precisions = curvatures(problem, phi[rows])
    prior = np.zeros(problem.n_parameters)
    prior[problem.ard] = np.exp(log_alpha)
    scale = np.sqrt(np.maximum(np.diagonal(precisions, axis1=1, axis2=2) + prior, 1e-300))
    scaled = (precisions + np.diag(prior)) / (scale[:, :, None] * scale[:, None, :])
    inverse = np.linalg.inv(scaled + 1e-13 * np.eye(len(prior)))
    variances = np.diagonal(inverse, axis1=1, axis2=2) / scale**2
    return np.clip(1.0 - prior * variances, 0.0, 1.0)[:, problem.ard].mean(axis=0)


def neuron_relevance(network: Network, relevance: np.ndarray) -> list[np.ndarray]:
    """Relevance of the hidden neurons, one array per hidden layer.

    A neuron needs both inputs and outputs: its relevance is the smaller of the largest incoming
    and the largest outgoing γ. Parameters with a known prior (NaN) count as relevant.

    Parameters
    ----------
    network : Network
    relevance : ndarray, shape (n_parameters,)

    Returns
    -------
    list of ndarray
    """
    gamma = np.where(np.isnan(relevance), 1.0, relevance)[: network.n_parameters]
    layers = network.unflatten(gamma)
    return [
        np.minimum(layers[hidden][0].max(axis=1), layers[hidden + 1][0].max(axis=0))
        for hidden in range(len(network.sizes) - 2)
    ]


# Between these values of γ, data and prior have about the same weight.
BORDERLINE = 0.3, 0.7


class Pruned(NamedTuple):
    """Result of pruning; `print` it to see which parameters are kept, removed and borderline.

    Attributes
    ----------
    names : tuple of str
        Parameters that were removed, that is set to zero.
    neurons : tuple of (int, int)
        Removed neurons as (layer, neuron), counted from 1.
    phi : ndarray, shape (n, n_parameters)
        Draws with pruned parameters set to zero.
    network : Network or None
        The smaller network.
    problem : Problem
        The problem for the smaller network; for other models, the original problem.
    small_phi : ndarray
        The draws as parameters of the smaller network, with the same predictions.
    kept : tuple of str
        All other parameters.
    borderline : dict of str to float
        γ of parameters for which it lies between 0.3 and 0.7, kept or not: the data hardly decide.
        Compare the evidence with and without them.
    """

    names: tuple[str, ...]
    neurons: tuple[tuple[int, int], ...]
    phi: np.ndarray
    network: Network | None
    problem: Problem
    small_phi: np.ndarray
    kept: tuple[str, ...] = ()
    borderline: Mapping[str, float] = MappingProxyType({})

    def __repr__(self) -> str:
        unsure = [f"{name} (γ = {gamma:.2f})" for name, gamma in self.borderline.items()]
        lines = [
            f"<sbnn pruned: {len(self.names)} of {self.phi.shape[1]} parameters removed",
            f"  removed: {_some(self.names)}",
            f"  kept: {_some(self.kept)}",
        ]
        if unsure:
            lines.append(
                f"  borderline: {_some(unsure)}; the data hardly decide, so compare the evidence "
                "with and without"
            )
        if self.network is not None:
            sizes = "-".join(map(str, self.network.sizes))
            lines.append(f"  network: {sizes}, {plural(len(self.neurons), 'neuron')} removed")
        return "\n".join(lines) + ">"


def _some(names: Sequence[str], n_shown: int = 8) -> str:
    more = [f"… ({len(names) - n_shown} more)"] if len(names) > n_shown else []
    return ", ".join([*names[:n_shown], *more]) or "none"


def prune(problem: Problem, phi: np.ndarray, relevance: np.ndarray, threshold: float) -> Pruned:
    """Set irrelevant parameters (γ < threshold) to zero and drop neurons without effect.

    Parameters
    ----------
    problem : Problem
    phi : ndarray, shape (n, n_parameters)
    relevance : ndarray, shape (n_parameters,)
        NaN for parameters with a known prior, which are kept.
    threshold : float
        Strictly between 0 and 1.

    Returns
    -------
    Pruned

    Raises
    ------
    ValueError
        If `threshold` is out of range.
    """
    if not 0 < threshold < 1:
        raise ValueError(f"`threshold` must lie strictly between 0 and 1; got {threshold}.")
    irrelevant = np.where(np.isnan(relevance), 1.0, relevance) < threshold
    phi = np.where(irrelevant, 0.0, phi)
    names = tuple(n for n, i in zip(problem.names, irrelevant) if i)
    kept = tuple(n for n, i in zip(problem.names, irrelevant) if not i)
    low, high = BORDERLINE
    unsure = {n: float(g) for n, g in zip(problem.names, relevance) if low <= g <= high}
    if not isinstance(problem, NetworkProblem):
        return Pruned(names, (), phi, None, problem, phi, kept, unsure)
    network, small_phi, gone = drop_dead_neurons(problem.network, phi)
    extra = phi[:, problem.network.n_parameters :]
    if network.sizes[1:-1] == problem.network.sizes[1:-1]:
        small = problem
    else:
        small = _smaller_problem(problem, network, gone)
    small_phi = np.concatenate([small_phi, extra], axis=1)
    return Pruned(names, gone, phi, network, small, small_phi, kept, unsure)


def _smaller_problem(
    problem: NetworkProblem, network: Network, gone: tuple[tuple[int, int], ...]
) -> NetworkProblem:
    """The problem for the smaller network; the remaining parameters keep their priors."""
    old = problem.network
    kept = [np.arange(old.n_inputs)]
    for layer, size in enumerate(old.sizes[1:-1], start=1):
        kept.append(np.array([j for j in range(size) if (layer, j + 1) not in gone], dtype=int))
    kept.append(np.arange(old.n_outputs))
    position = old.unflatten(np.arange(old.n_parameters))
    if network.n_layers == old.n_layers:
        left = network.flatten(
            [(w[np.ix_(k, i)], b[k]) for (w, b), i, k in zip(position, kept, kept[1:])]
        )
        origin = dict(zip(network.names, left.tolist()))
    else:  # a constant: only the output biases are left; the weights are new
        origin = dict(zip(network.names[-old.n_outputs :], position[-1][1].tolist()))
    for k in range(old.n_parameters, problem.n_parameters):
        origin[problem.names[k]] = k
    known = {name: problem.priors[k] for name, k in origin.items() if not problem.ard[k]}
    boxes = {name: problem.priors[k] for name, k in origin.items() if problem.ard[k]}
    ard = [n for n in network.names if n not in known]
    return NetworkProblem(
        network, problem.x, problem.y, problem.likelihood, problem.noise_std,
        {**boxes, **known}, ard, problem.bound, None,
    )  # fmt: skip


@float64
def drop_dead_neurons(
    network: Network, phi: np.ndarray
) -> tuple[Network, np.ndarray, tuple[tuple[int, int], ...]]:
    """The smaller network with the same outputs, for draws φ (n, d) whose pruned entries are zero.

    A neuron is dead if its outgoing or its incoming weights are zero in all draws. In the second
    case it is the constant f(b), which is added to the next layer's biases. Removing one neuron
    may disconnect others, so this is repeated until nothing changes.
    """
    activation = ACTIVATIONS[network.activation].value
    layers = [(w.copy(), b.copy()) for w, b in network.unflatten(phi)]
    alive = [list(range(1, size + 1)) for size in network.sizes[1:-1]]
    gone: list[tuple[int, int]] = []
    changed = True
    while changed:
        changed = False
        for hidden in range(len(layers) - 1):
            (w_in, b_in), (w_out, b_out) = layers[hidden], layers[hidden + 1]
            dead_out = (w_out == 0).all(axis=(0, 1))
            dead_in = (w_in == 0).all(axis=(0, 2))
            dead = dead_out | dead_in
            if not dead.any():
                continue
            constant = np.asarray(activation(b_in[:, dead]))
            b_out = b_out + np.einsum("nij,nj->ni", w_out[:, :, dead], constant)
            layers[hidden] = (w_in[:, ~dead], b_in[:, ~dead])
            layers[hidden + 1] = (w_out[:, :, ~dead], b_out)
            gone += [(hidden + 1, alive[hidden][j]) for j in np.flatnonzero(dead)]
            alive[hidden] = [j for j, d in zip(alive[hidden], dead) if not d]
            changed = True
    if any(len(a) == 0 for a in alive):  # no path from input to output is left: a constant
        n, n_out = len(phi), network.n_outputs
        layers = [(np.zeros((n, n_out, network.n_inputs)), layers[-1][1])]
        small = Network((network.n_inputs, n_out), network.activation)
    else:
        sizes = (network.n_inputs, *(len(a) for a in alive), network.n_outputs)
        small = Network(sizes, network.activation)
    return small, small.flatten(layers), tuple(sorted(gone))
