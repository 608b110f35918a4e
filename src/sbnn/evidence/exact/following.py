"""Particles of p(φ|D, α) that follow a change of α: resampled, and moved at the new α."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from sbnn._core.float64 import float64
from sbnn.priors import JointPrior
from sbnn.problems.problem import Problem
from sbnn.problems.symmetry import flip_walls, invariant_symmetry, mirror_signs
from sbnn.problems.target import restricted
from sbnn.sampling.moves import DECORRELATED, MoveChoice, Tempered, mutate, relabel
from sbnn.sampling.state import Evaluate, MoveInfo, Particles, Tuning
from sbnn.sampling.tempering import split_factors, systematic_resample
from sbnn.sampling.warm_start import Reference, Shear, straight
from sbnn.sampling.warm_start.moving import Moved, move
from sbnn.sampling.warm_start.moving import Tuning as Steps
from sbnn.sampling.warm_start.path import Path, evaluate

MAX_TRAJECTORIES = 20  # per change of α


class Follower(Protocol):
    """How particles follow α."""

    n_errors: ClassVar[float]
    """Standard errors beyond which a component of the gradient is followed."""

    def start(self, n_parameters: int) -> Tuning:
        """Tuning of the first moves."""

    def follow(
        self,
        key: Any,
        rng: np.random.Generator,
        prior: JointPrior,
        before: Particles,
        weights: np.ndarray,
        tuning: Tuning,
    ) -> tuple[Particles, MoveInfo, Tuning]:
        """Particles under the new prior, from those under the old one and their weights."""


@dataclass(frozen=True)
class FollowEverywhere:
    """Particles of all symmetric images, moved as in TMCMC."""

    problem: Problem
    choice: MoveChoice
    max_moves: int
    evaluate: Evaluate | None = None

    n_errors: ClassVar[float] = 2.0

    def start(self, n_parameters: int) -> Tuning:
        """Tuning of the first moves."""
        return self.choice.start(n_parameters, self.max_moves)

    def follow(
        self,
        key: Any,
        rng: np.random.Generator,
        prior: JointPrior,
        before: Particles,
        weights: np.ndarray,
        tuning: Tuning,
    ) -> tuple[Particles, MoveInfo, Tuning]:
        """Resample, map to random symmetric images, and move."""
        factor = split_factors(before.phi, weights)
        chosen = systematic_resample(rng, weights)
        phi = before.phi[chosen]
        symmetry = invariant_symmetry(self.problem.symmetry, prior, 0)
        if symmetry is not None:
            phi = symmetry.apply_random(rng, phi)
        phi = relabel(rng, phi, prior, self.problem.symmetry)
        particles, info = mutate(
            Tempered(self.problem.target(prior), 1.0, self.evaluate),
            key,
            Particles(phi, before.log_likelihood[chosen], chosen),
            factor,
            tuning.scale,
            move=self.choice.current(tuning),
            max_moves=tuning.max_moves,
        )
        return particles, info, self.choice.after(tuning, info, phi.shape[1])


@dataclass(frozen=True)
class FollowModes:
    """Particles near modes, folded to one image under sign flips, moved along trajectories.

    Attributes
    ----------
    problem : Problem
    shear : Shear, optional
        To coordinates of φ in which the posterior bends less.
    """

    problem: Problem
    shear: Shear | None = None

    # The particles that choose a step also estimate its gain. With 300 of them and 13 precisions,
    # steps along components beyond 2 errors, of which one in twenty is noise, added 5 nats in 120
    # steps that were not there.
    n_errors: ClassVar[float] = 4.0

    def start(self, n_parameters: int) -> Tuning:
        """Tuning of the first moves."""
        return first_trajectories(n_parameters)

    def follow(
        self,
        key: Any,
        rng: np.random.Generator,
        prior: JointPrior,
        before: Particles,
        weights: np.ndarray,
        tuning: Tuning,
    ) -> tuple[Particles, MoveInfo, Tuning]:
        """Resample, fold and move."""
        chosen = systematic_resample(rng, weights)
        phi = self._fold(prior, relabel(rng, before.phi[chosen], prior, self.problem.symmetry))
        return along(self._path(prior, phi), key, phi, chosen, tuning)

    def _fold(self, prior: JointPrior, phi: np.ndarray) -> np.ndarray:
        """The images of φ on the side of zero on which the population is."""
        symmetry = invariant_symmetry(self.problem.symmetry, prior, 0)
        if self.problem.network is None or symmetry is None or not symmetry.flips:
            return phi
        walls = flip_walls(self.problem.network, phi.mean(axis=0), np.cov(phi.T))
        return phi * mirror_signs(self.problem.network, phi, walls)

    def _path(self, prior: JointPrior, phi: np.ndarray) -> Path:
        """The posterior, in coordinates that whiten the population.

        Without walls: the posterior is the same on both sides.
        """
        d, network = phi.shape[1], self.problem.network
        walls = np.zeros((0 if network is None else len(network.neurons()), d))
        u = straight(self.shear, phi)
        reference = Reference.of(u.mean(axis=0)[None], np.atleast_2d(np.cov(u.T))[None])
        # As for a run around modes, with which it then shares the compiled program.
        target = restricted(self.problem.smooth_target(), prior, np.zeros(d), np.arange(d))
        return Path.between(reference, target, walls, self.shear)


def first_trajectories(n_parameters: int) -> Tuning:
    """Tuning of the first moves along trajectories."""
    return Tuning("trajectories", Steps.start(n_parameters).step_size, MAX_TRAJECTORIES)


@float64
def along(
    path: Path, key: Any, phi: np.ndarray, chosen: np.ndarray, tuning: Tuning
) -> tuple[Particles, MoveInfo, Tuning]:
    """Resampled particles after moves along trajectories under the posterior of a path."""
    z = path.coordinates(phi)
    log_likelihood, excess = evaluate(path, z)
    now, steps = move(
        path, key, 1.0, Moved(z, log_likelihood, excess), Steps(tuning.scale), tuning.max_moves
    )
    info = MoveInfo(
        steps.acceptance, steps.step_size, steps.n_moves, steps.n_evaluations, 0,
        steps.correlation, steps.correlation <= DECORRELATED,
    )  # fmt: skip
    particles = Particles(path.draws(now.z), now.log_likelihood, chosen)
    return particles, info, tuning._replace(scale=steps.step_size)
