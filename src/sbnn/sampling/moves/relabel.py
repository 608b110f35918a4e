"""Relabelling: permutations of hidden neurons, which only the prior distinguishes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sbnn.priors import JointPrior
from sbnn.problems.symmetry import Symmetry
from sbnn.sampling.moves.base import (
    BlockInfo,
    Kernel,
    Point,
    Random,
    Tempered,
    metropolis,
    moved,
    prior_log_density,
)
from sbnn.sampling.state import Particles


class Relabel:
    """Permute the hidden neurons of each particle at random; the likelihood stays the same.

    Under an ARD prior with unequal precisions the permuted images of a mode have unequal masses,
    and no local move leads from one to another. With resampling alone, the share of particles in
    each drifts; α follows the drift, and the running evidence becomes too high, by up to the log
    of the number of images.

    Parameters
    ----------
    symmetry : Symmetry
        Group of the network; its permutations are used.
    block : int
        Number of proposals.
    """

    name = "relabel"
    needs_gradients = False
    evaluations_per_move = 0
    target_acceptance = None

    def __init__(self, symmetry: Symmetry, block: int = 20) -> None:
        self.permutations = Symmetry(symmetry.network, symmetry.n_extra, flip=False)
        self.block = block

    def initial_scale(self, n_parameters: int) -> float:
        """Not used."""
        return 1.0

    def kernel(self, density: Tempered, factor: np.ndarray, key: Random) -> Kernel:
        """Blocks of proposals; neither scale nor factor is used."""
        rng = np.random.default_rng(key)

        def run(particles: Particles, scale: float) -> tuple[Particles, BlockInfo]:
            now, n_accepted = self.permute(rng, density.here(particles), density.log_prior)
            return moved(particles, now), BlockInfo(n_accepted, 0)

        return run

    def permute(
        self, rng: np.random.Generator, here: Point, log_prior: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[Point, int]:
        """Run one block from `here`; the new positions, and the number of accepted proposals."""
        n, n_accepted = len(here.phi), 0
        for _ in range(self.block):
            index, _ = self.permutations.random(rng, n)
            proposal = np.take_along_axis(here.phi, index, axis=1)
            there = Point(proposal, here.log_likelihood, log_prior(proposal))
            here, accepted = metropolis(np.log(rng.random(n)), 1.0, here, there)
            n_accepted += int(accepted.sum())
        return here, n_accepted


def relabel(
    rng: np.random.Generator,
    phi: np.ndarray,
    prior: JointPrior,
    symmetry: Symmetry | None,
    n_proposals: int = 20,
) -> np.ndarray:
    """Draws (n, d) with their neurons permuted by the move `Relabel` under a given prior.

    Parameters
    ----------
    rng : numpy.random.Generator
    phi : ndarray, shape (n, d)
    prior : JointPrior
    symmetry : Symmetry or None
        If None, or if the group has one element, φ is returned unchanged.
    n_proposals : int

    Returns
    -------
    ndarray, shape (n, d)
    """
    if symmetry is None or symmetry.order == 1:
        return phi
    here = Point(phi, np.zeros(len(phi)), prior_log_density(prior, phi))
    now, _ = Relabel(symmetry, n_proposals).permute(
        rng, here, lambda proposal: prior_log_density(prior, proposal)
    )
    return now.phi
