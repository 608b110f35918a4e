"""The move of hierarchical Bayes: precisions drawn and rescaled between moves of everything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem
from sbnn.sampling.joint import redraw_log_alpha
from sbnn.sampling.moves import BlockInfo, Kernel, Move, Rescale, Tempered
from sbnn.sampling.moves.base import Random
from sbnn.sampling.state import Particles


@dataclass(frozen=True)
class JointMove:
    """Moves of (z, log α), each block preceded by moves of log α alone.

    - log α from p(log α|φ), which needs no evaluation;
    - log α of a few parameters up or down, φ following at fixed z (`sbnn.sampling.moves.Rescale`);
    - a block of another move.

    With the last alone, log α hardly mixes where β is small: its range spans seven powers of e,
    over which the scale of φ, and the steps that suit it, change a thousandfold.
    """

    problem: Problem
    hyperprior: Hyperprior
    inner: Move

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def needs_gradients(self) -> bool:
        return self.inner.needs_gradients

    @property
    def block(self) -> int:
        return self.inner.block

    @property
    def evaluations_per_move(self) -> int:
        return self.inner.evaluations_per_move + -(-self._rescale.block // self.block)

    @property
    def target_acceptance(self) -> float | None:
        return self.inner.target_acceptance

    @property
    def _rescale(self) -> Rescale:
        return Rescale(int(self.problem.ard.sum()))

    def initial_scale(self, n_parameters: int) -> float:
        """That of the inner move."""
        return self.inner.initial_scale(n_parameters)

    def kernel(self, density: Tempered, factor: np.ndarray, key: Random) -> Kernel:
        """Blocks of all three."""
        rng = np.random.default_rng(key)
        rescale = self._rescale.kernel(density, factor, rng)
        inner = self.inner.kernel(density, factor, rng)

        def run(particles: Particles, scale: float) -> tuple[Particles, BlockInfo]:
            joint = redraw_log_alpha(rng, self.problem, particles.phi, self.hyperprior)
            particles = particles._replace(phi=joint)  # at the same φ: the likelihood stays
            particles, first = rescale(particles, 4.0)
            particles, info = inner(particles, scale)
            return particles, BlockInfo(info.n_accepted, first.n_failed + info.n_failed)

        return run
