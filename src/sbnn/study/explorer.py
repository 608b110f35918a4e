"""Evidence explorer of the study: the mixture and the data, as plain values for the page."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sbnn.evidence.mixture import GaussianMixture
from sbnn.methods.details import NsblDetails
from sbnn.reports.live.network import packed
from sbnn.study.runs import Study, details

N_DRAWS = 300  # of the posterior at the α of the sliders, the same random numbers for every α
SPAN = (-6.0, 14.0)  # of log α


def explorer_data(study: Study) -> dict[str, Any]:
    """What the explorer computes the evidence and the bands from.

    The mixture is the kernel density estimate that NSBL maximises the evidence of, with all its
    kernels. Sliders start at its optimum.

    Parameters
    ----------
    study : Study

    Returns
    -------
    dict
        The mixture (packed arrays, see `packed`; the groups of kernels are the same up to the order
        of the neurons), log α at its optimum, the positions of the
        output weights, random numbers, and the data.
    """
    nsbl = study.results["nsbl"]
    found, problem = details(nsbl, NsblDetails), nsbl.network_problem
    mixture, network = found.mixture, problem.network
    # Three neurons and known noise: the random walk that the mixture is made of does not get stuck.
    assert mixture is not None
    assert found.newton_log_alpha is not None
    names = [problem.names[k] for k in np.flatnonzero(problem.ard)]
    rng = np.random.default_rng(0)
    return {
        "nKernels": mixture.n_kernels,
        "logWeights": packed(mixture.log_weights[0]),
        "means": packed(mixture.means[0]),
        "covariances": packed(mixture.covariances),
        "orders": orders(mixture, network.sizes[1]),
        "dimension": mixture.dimension,
        "logNormaliser": mixture.log_normaliser,
        "ard": problem.ard.tolist(),
        "logAlpha": found.newton_log_alpha[-1].tolist(),
        "sliders": [k for k, name in enumerate(names) if name.startswith("W[2]")],
        "names": names,
        "span": SPAN,
        "hidden": network.sizes[1],
        "uniform": np.sort(rng.random(N_DRAWS)).tolist(),
        "normal": packed(rng.normal(size=(N_DRAWS, mixture.dimension))),
        "x": np.round(study.data.x, 5).tolist(),
        "y": np.round(study.data.y, 5).tolist(),
    }


def orders(mixture: GaussianMixture, n_neurons: int) -> list[list[int]]:
    """The order of parameters that turns the first group of kernels into each of the groups.

    Parameters
    ----------
    mixture : GaussianMixture
        Of a 1-h-1 network, the same for all orders of its neurons.
    n_neurons : int

    Returns
    -------
    list of list of int

    Raises
    ------
    ValueError
        If a group is not the first one in another order.
    """
    blocks = np.arange(3 * n_neurons).reshape(3, n_neurons)  # W[1], b[1], W[2]
    candidates = [
        [*blocks[:, list(order)].ravel().tolist(), 3 * n_neurons]
        for order in itertools.permutations(range(n_neurons))
    ]
    out = []
    for means, log_weights in zip(mixture.means, mixture.log_weights):
        same = [c for c in candidates if np.array_equal(means, mixture.means[0][:, c])]
        if not same or not np.array_equal(log_weights, mixture.log_weights[0]):
            raise ValueError("The groups of the mixture differ by more than the order of neurons.")
        out.append(same[0])
    return out
