"""Transitional MCMC: particles and log evidence of any problem, from prior to posterior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import logsumexp

from sbnn._core.float64 import float64
from sbnn._core.keys import as_key, derive_key, generator
from sbnn._core.messages import Message, SamplingFinished, SamplingSlow, SamplingStopped
from sbnn.problems.target import Target
from sbnn.sampling.chunks import evaluate_all
from sbnn.sampling.moves import DECORRELATED, STUCK, Move, RandomWalk, Tempered, choose, mutate
from sbnn.sampling.state import (
    Evaluate,
    MoveInfo,
    Particles,
    Stage,
    TmcmcState,
    Tuning,
    check_n_particles,
)
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint
from sbnn.sampling.tempering import (
    family_variance,
    next_beta,
    normalise,
    split_factors,
    systematic_resample,
    temper,
)

MAX_STAGES = 200


class RandomElement(Protocol):
    """An object that maps particles to random points of their orbits."""

    def apply_random(self, rng: np.random.Generator, phi: np.ndarray) -> np.ndarray:
        """Each row mapped to a random point of its orbit."""


class TmcmcResult(NamedTuple):
    """Equally weighted posterior particles, the log evidence, and how the run went."""

    particles: Particles
    log_evidence: float
    log_evidence_error: float
    stages: tuple[Stage, ...]
    n_evaluations: int
    n_rejected: int
    converged: bool

    @property
    def agreeing(self) -> bool:
        """True: there is no second estimate to disagree with."""
        return True

    @property
    def beta(self) -> float:
        """The temperature reached; 1 is the posterior."""
        return self.stages[-1].beta if self.stages else 0.0

    @property
    def n_slow_stages(self) -> int:
        """Stages whose particles had not decorrelated after all moves."""
        return sum(stage.correlation > DECORRELATED for stage in self.stages)

    @property
    def worst_correlation(self) -> float:
        """Largest correlation left by the moves of any stage."""
        return max((stage.correlation for stage in self.stages), default=0.0)

    @property
    def reason(self) -> Message:
        """How the run ended."""
        if self.beta < 1.0:
            return SamplingStopped(self.beta, len(self.stages))
        if self.converged:
            return SamplingFinished()
        return SamplingSlow(self.n_slow_stages, self.worst_correlation)

    @property
    def stuck(self) -> bool:
        """Whether a stage's moves left so much correlation that the log evidence may be far off."""
        return self.worst_correlation > STUCK


@float64
def tmcmc(
    target: Target,
    key: Any,
    *,
    n_particles: int = 2000,
    move: str | Move = "auto",
    max_moves: int = 400,
    symmetry: RandomElement | None = None,
    evaluate: Evaluate | None = None,
    on_stage: Callable[[Stage], None] | None = None,
    max_stages: int = MAX_STAGES,
    give_up: bool = False,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> TmcmcResult:
    """Sample p(φ) p(D|φ) and estimate the log evidence by tempering β from 0 to 1.

    Each stage (`step`) chooses the next β so that the weights p(D|φ)^Δβ have a coefficient of
    variation of 1 (an effective sample size of half the population), adds log mean(weights) to the
    log evidence, resamples, and moves the particles at the *new* β until they have decorrelated
    (`sbnn.sampling.moves.mutate`). The last stage moves them at β = 1.

    The reported error is √(Σ over stages of the variance of log mean(weights)), each variance
    taken over *families* of particles that share an ancestor in the stage before:
    Σ_families (Σ_i (w_i/w̄ − 1))² / N². Where moves forget the ancestor this is the usual CoV²/N;
    where they do not, siblings have similar weights and the error grows accordingly.

    Parameters
    ----------
    target : Target
    key : int or JAX key
    n_particles : int
    move : {"auto", "random_walk", "hmc"} or Move
        "auto" is the random walk, which reaches a given error of the log evidence sooner on the
        problems measured (benchmarks/moves.py), until it gets stuck: when a stage ends at the cap
        with a correlation above one half, HMC takes over if there are gradients.
    max_moves : int
        Cap of moves per stage.
    symmetry : Symmetry, optional
        Group that leaves prior and likelihood unchanged: after each resampling every particle is
        mapped to a random point of its orbit, so that symmetric modes carry equal mass.
    evaluate : callable, optional
        Log-likelihood of (n, d) on the host, for black-box problems.
    on_stage : callable, optional
        Called with every finished Stage.
    max_stages : int
        Cap of stages.
    give_up : bool
        Stop at the first stage that gets stuck.
    checkpoint : Checkpoint
        Where the state is stored after every stage, and from which the run continues. All
        randomness comes from `key` and the number of the stage, so no generator is stored.

    Returns
    -------
    TmcmcResult

    Examples
    --------
    >>> import sbnn
    >>> problem = sbnn.Problem(lambda theta: -0.5 * (theta[0] / 0.1) ** 2, ["a"],
    ...                        {"a": sbnn.priors.Uniform(-1, 1)})
    >>> run = tmcmc(problem.target(), 0, n_particles=500)
    >>> truth = np.log(0.05 * np.sqrt(2 * np.pi))
    >>> bool(abs(run.log_evidence - truth) < 4 * run.log_evidence_error)
    True
    """
    check_options(n_particles, move, max_moves, evaluate)
    saved = checkpoint.read()
    if saved is None:
        state = init(
            key, target, n_particles=n_particles, move=move, max_moves=max_moves, evaluate=evaluate
        )
    else:
        state = TmcmcState.unpacked(saved)
    while (state.beta < 1.0 or not state.stages) and len(state.stages) < max_stages:
        if give_up and state.stages and state.stages[-1].correlation > STUCK:
            break
        state, stage = step(key, state, target, move=move, symmetry=symmetry, evaluate=evaluate)
        checkpoint.write(*state.packed())
        if on_stage is not None:
            on_stage(stage)
    return _result(state)


@float64
def init(
    key: Any,
    target: Target,
    *,
    n_particles: int = 2000,
    move: str | Move = "auto",
    max_moves: int = 400,
    evaluate: Evaluate | None = None,
) -> TmcmcState:
    """The state at β = 0: particles drawn from the prior.

    Parameters
    ----------
    key : int or JAX key
        Key of the whole run.
    target, n_particles, move, max_moves, evaluate
        As for `tmcmc`.

    Returns
    -------
    TmcmcState

    Raises
    ------
    ValueError
        If the likelihood is zero at every particle.
    """
    phi = target.prior.sample(derive_key(as_key(key), 0), n_particles)
    log_likelihood = evaluate_all(target, phi, evaluate)
    n_impossible = int((log_likelihood == -np.inf).sum())
    if n_impossible == n_particles:
        raise ValueError(
            "The log-likelihood is NaN or −inf at every one of the "
            f"{n_particles} prior draws; check the function or narrow the priors."
        )
    return TmcmcState(
        particles=Particles(phi, log_likelihood, np.arange(n_particles)),
        beta=0.0,
        log_evidence=0.0,
        log_evidence_variance=0.0,
        converged=True,
        n_evaluations=n_particles,
        n_rejected=n_impossible,
        tuning=choose(move, evaluate).start(phi.shape[1], max_moves),
        stages=(),
    )


@float64
def step(
    key: Any,
    state: TmcmcState,
    target: Target,
    *,
    move: str | Move = "auto",
    symmetry: RandomElement | None = None,
    evaluate: Evaluate | None = None,
) -> tuple[TmcmcState, Stage]:
    """One stage: the next β, weights, resampling, moves.

    Parameters
    ----------
    key : int or JAX key
        Key of the whole run; each stage derives its own key from it.
    state : TmcmcState
    target, move, symmetry, evaluate
        As for `tmcmc`.

    Returns
    -------
    TmcmcState
    Stage
    """
    before = state.particles
    beta = next_beta(before.log_likelihood, state.beta)
    log_weights = temper(before.log_likelihood, beta - state.beta)
    gained = float(logsumexp(log_weights) - np.log(len(log_weights)))
    weights = normalise(log_weights)
    variance = family_variance(weights, before.ancestor)

    rng = generator(as_key(key), 2, len(state.stages))
    factor = split_factors(before.phi, weights)
    chosen = systematic_resample(rng, weights)
    phi = before.phi[chosen]
    if symmetry is not None:
        phi = symmetry.apply_random(rng, phi)
    particles, info, tuning = _move(
        key, state, Particles(phi, before.log_likelihood[chosen], chosen),
        Tempered(target, beta, evaluate), factor, move,
    )  # fmt: skip
    stage = Stage(
        beta=beta,
        ess=float(1.0 / (weights**2).sum()),
        acceptance=info.acceptance,
        scale=info.scale / RandomWalk().initial_scale(phi.shape[1]),
        n_moves=info.n_moves,
        n_evaluations=info.n_evaluations,
        correlation=info.correlation,
        log_evidence=state.log_evidence + gained,
        log_evidence_variance=variance,
    )
    return TmcmcState(
        particles=particles,
        beta=beta,
        log_evidence=stage.log_evidence,
        log_evidence_variance=state.log_evidence_variance + variance,
        converged=state.converged and info.decorrelated,
        n_evaluations=state.n_evaluations + info.n_evaluations,
        n_rejected=state.n_rejected + info.n_rejected,
        tuning=tuning,
        stages=(*state.stages, stage),
    ), stage


def _move(
    key: Any,
    state: TmcmcState,
    particles: Particles,
    density: Tempered,
    factor: np.ndarray,
    move: str | Move,
) -> tuple[Particles, MoveInfo, Tuning]:
    """Moves of one stage; if they get stuck, the fallback, if any, continues the stage."""
    choice = choose(move, density.evaluate)
    key_moves, number = derive_key(as_key(key), 1), len(state.stages)
    n_parameters = factor.shape[-1]
    tuning = state.tuning
    particles, info = mutate(
        density, derive_key(key_moves, number), particles, factor, tuning.scale,
        move=choice.current(tuning), max_moves=tuning.max_moves,
    )  # fmt: skip
    tuning = choice.after(tuning, info, n_parameters)
    if tuning.move != state.tuning.move:
        particles, more = mutate(
            density, derive_key(key_moves, MAX_STAGES + number), particles, factor, tuning.scale,
            move=choice.current(tuning), max_moves=tuning.max_moves,
        )  # fmt: skip
        info = more.after(info)
        tuning = choice.after(tuning, info, n_parameters)
    return particles, info, tuning


def _result(state: TmcmcState) -> TmcmcResult:
    return TmcmcResult(
        particles=state.particles,
        log_evidence=state.log_evidence,
        log_evidence_error=float(np.sqrt(state.log_evidence_variance)),
        stages=state.stages,
        n_evaluations=state.n_evaluations,
        n_rejected=state.n_rejected,
        converged=state.converged and state.beta >= 1.0,
    )


def check_options(
    n_particles: int, move: str | Move, max_moves: int, evaluate: Evaluate | None
) -> None:
    """Check the settings before anything runs.

    Parameters
    ----------
    n_particles, max_moves, move, evaluate
        As for `tmcmc`.

    Raises
    ------
    ValueError, TypeError
        If a setting is invalid.
    """
    check_n_particles(n_particles)
    choose(move, evaluate)
    if max_moves < 1:
        raise ValueError(f"`max_moves` must be at least 1; got {max_moves}.")
