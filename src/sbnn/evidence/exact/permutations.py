"""Permutations of hidden neurons, which change the precisions but not the likelihood."""

from __future__ import annotations

import numpy as np

from sbnn.evidence.mixture import GaussianMixture
from sbnn.problems.problem import Problem
from sbnn.problems.symmetry import Symmetry


def permutations(problem: Problem) -> Symmetry | None:
    """Symmetries that change the precisions: permutations of neurons, if any weight is ARD."""
    symmetry = problem.symmetry
    if symmetry is None or not problem.ard[: symmetry.network.n_parameters].any():
        return None
    return Symmetry(symmetry.network, symmetry.n_extra, flip=False)


def expand_permutations(problem: Problem, mixture: GaussianMixture) -> GaussianMixture:
    """The folded mixture expanded over all permutations of neurons, if there are few enough.

    Sign flips are omitted: the ARD prior is even, so each image has the same evidence.
    """
    symmetry = permutations(problem)
    if symmetry is None or symmetry.order > 24 or symmetry.order * len(mixture.means) > 5000:
        return mixture
    return mixture.expand(symmetry)


def alike(problem: Problem, a: np.ndarray, b: np.ndarray, tolerance: float = 0.3) -> bool:
    """Whether the relevances of two optima agree up to a permutation of neurons."""
    symmetry = permutations(problem)
    if symmetry is None:  # no two parameters can be exchanged
        return bool(np.abs(a - b).max() <= tolerance)
    if symmetry.order > 5000:
        return bool(np.abs(np.sort(a) - np.sort(b)).max() <= tolerance)
    full = np.ones(problem.n_parameters)
    full[problem.ard] = a
    images = symmetry.expand(full)[:, problem.ard]
    return bool(np.abs(images - b).max(axis=1).min() <= tolerance)


def multiplicity(problem: Problem, gamma: np.ndarray) -> int:
    """Number of distinct images of an optimum under permutations of neurons."""
    symmetry = permutations(problem)
    if symmetry is None or symmetry.order > 5000:
        return 1
    full = np.ones(problem.n_parameters)
    full[problem.ard] = np.round(gamma)
    return len(np.unique(symmetry.expand(full), axis=0))
