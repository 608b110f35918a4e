"""Rescaling: log α of a few parameters up or down, φ = z α^(−½) following at fixed z."""

from __future__ import annotations

import numpy as np

from sbnn.sampling.moves.base import BlockInfo, Kernel, Random, Tempered, moved
from sbnn.sampling.state import Particles

RESCALED = 4  # largest number of precisions changed at a time


class Rescale:
    """Change log α of a few parameters by the same amount, in coordinates (z, log α).

    One such step prunes a parameter or brings it back, and moves along the ridges on which
    weights grow and shrink together.

    Parameters
    ----------
    n_alpha : int
        Number of precisions: the last coordinates.
    block : int
        Moves per call of the kernel.
    """

    name = "rescale"
    needs_gradients = False
    evaluations_per_move = 1
    target_acceptance = None

    def __init__(self, n_alpha: int, block: int = 15) -> None:
        self.n_alpha, self.block = n_alpha, block

    def initial_scale(self, n_parameters: int) -> float:
        """Standard deviation of the change of log α."""
        return 4.0

    def kernel(self, density: Tempered, factor: np.ndarray, key: Random) -> Kernel:
        """Blocks of proposals; the factor is not used."""
        rng = np.random.default_rng(key)

        def run(particles: Particles, scale: float) -> tuple[Particles, BlockInfo]:
            here, n_accepted, n_failed = density.here(particles), 0, 0
            for _ in range(self.block):
                proposal = here.phi + self._step(rng, here.phi.shape, scale)
                here, info = density.metropolis(rng, here, proposal)
                n_accepted += info.n_accepted
                n_failed += info.n_failed
            return moved(particles, here), BlockInfo(n_accepted, n_failed)

        return run

    def _step(self, rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> np.ndarray:
        n = shape[0]
        step = np.zeros(shape)
        sign = rng.choice([-1.0, 1.0], (n, RESCALED))
        which = rng.integers(self.n_alpha, size=(n, RESCALED))
        used = np.arange(RESCALED) < rng.integers(1, RESCALED + 1, size=(n, 1))
        np.put_along_axis(step[:, -self.n_alpha :], which, np.where(used, sign, 0.0), axis=1)
        step *= scale * rng.standard_normal((n, 1))
        return step
