"""Random walk with a separate covariance for every particle."""

from __future__ import annotations

import numpy as np

from sbnn.sampling.moves.base import BlockInfo, Kernel, Random, Tempered, moved
from sbnn.sampling.state import Particles


class ShapedWalk:
    """Random walk of the first k coordinates, with factors of shape (n, k, k).

    The factors must not depend on the coordinates that move, or the proposal is not symmetric.
    """

    name = "shaped_walk"
    needs_gradients = False
    block = 1
    evaluations_per_move = 1
    target_acceptance = 0.25  # as for any random walk

    def initial_scale(self, n_parameters: int) -> float:
        """Small enough for factors that are only approximate."""
        return 0.3

    def kernel(self, density: Tempered, factor: np.ndarray, key: Random) -> Kernel:
        """One move per call; `factor` has shape (n, k, k)."""
        rng = np.random.default_rng(key)
        n, k = factor.shape[:2]

        def run(particles: Particles, scale: float) -> tuple[Particles, BlockInfo]:
            here = density.here(particles)
            step = np.zeros_like(here.phi)
            step[:, :k] = np.einsum("nij,nj->ni", factor, rng.standard_normal((n, k)))
            now, info = density.metropolis(rng, here, here.phi + scale * step)
            return moved(particles, now), info

        return run
