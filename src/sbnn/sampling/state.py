"""Immutable states of the samplers, as stored in checkpoints, and records of their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sbnn.sampling.storage import Saved

Evaluate = Callable[[np.ndarray], np.ndarray]
"""Log-likelihood of (n, d) on the host: (n,)."""


FEWEST = 50  # particles, for the spread of groups of them to be an error


class Particles(NamedTuple):
    """A population of particles."""

    phi: np.ndarray  # (n, d)
    log_likelihood: np.ndarray  # (n,)
    ancestor: np.ndarray  # (n,), index in the population before the last resampling


class MoveInfo(NamedTuple):
    """Summary of a sequence of moves."""

    acceptance: float
    scale: float
    n_moves: int
    n_evaluations: int
    n_rejected: int  # proposals at which the log-likelihood was NaN, +inf or −inf
    correlation: float  # of the log-likelihood with its value before the moves
    decorrelated: bool

    def after(self, earlier: MoveInfo) -> MoveInfo:
        """These moves as a continuation of `earlier` ones: counts are added."""
        return self._replace(
            n_moves=earlier.n_moves + self.n_moves,
            n_evaluations=earlier.n_evaluations + self.n_evaluations,
            n_rejected=earlier.n_rejected + self.n_rejected,
        )


class Tuning(NamedTuple):
    """Settings of the next moves."""

    move: str  # name of the move
    scale: float
    max_moves: int


class Stage(NamedTuple):
    """Record of one tempering stage."""

    beta: float
    ess: float  # effective sample size of the weights that led to this β
    acceptance: float
    scale: float  # of the proposal, relative to 2.38/√d × the population's covariance
    n_moves: int
    n_evaluations: int
    correlation: float  # of the log-likelihood with its value before the moves
    log_evidence: float  # accumulated up to this β
    log_evidence_variance: float  # contributed by this stage


class TmcmcState(NamedTuple):
    """A TMCMC run between two stages."""

    particles: Particles
    beta: float
    log_evidence: float
    log_evidence_variance: float
    converged: bool  # particles decorrelated in every stage so far
    n_evaluations: int
    n_rejected: int
    tuning: Tuning
    stages: tuple[Stage, ...]

    def packed(self) -> Saved:
        """Arrays and plain values for a checkpoint."""
        values = self._asdict()
        arrays = values.pop("particles")._asdict()
        values["tuning"] = self.tuning._asdict()
        values["stages"] = [stage._asdict() for stage in self.stages]
        return arrays, values

    @classmethod
    def unpacked(cls, saved: Saved) -> TmcmcState:
        """The state from what `packed` returned."""
        arrays, values = saved
        return cls(
            **{
                **values,
                "particles": Particles(**arrays),
                "tuning": Tuning(**values["tuning"]),
                "stages": tuple(Stage(**stage) for stage in values["stages"]),
            }
        )


class AnnealingState(NamedTuple):
    """A population of (z, log α) between two stages of heating and cooling."""

    particles: Particles  # φ holds (z, log α)
    beta: float
    stage: int  # number of finished stages
    scale: float  # of the random walks
    n_evaluations: int

    def packed(self) -> Saved:
        """Arrays and plain values for a checkpoint."""
        values = self._asdict()
        arrays = values.pop("particles")._asdict()
        return arrays, values

    @classmethod
    def unpacked(cls, saved: Saved) -> AnnealingState:
        """The state from what `packed` returned."""
        arrays, values = saved
        return cls(particles=Particles(**arrays), **values)


class AnnealingStage(NamedTuple):
    """Record of one stage of heating or cooling."""

    beta: float
    acceptance: float  # of the random walks in the last block
    n_blocks: int


def check_n_particles(n_particles: int) -> None:
    """Raise a ValueError unless there are enough particles for means and errors."""
    whole = isinstance(n_particles, int | np.integer) and not isinstance(n_particles, bool)
    if not whole or n_particles < FEWEST:
        raise ValueError(
            f"`n_particles` must be a whole number of at least {FEWEST}; got {n_particles}."
        )
