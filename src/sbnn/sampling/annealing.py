"""Draws of φ and log α: a population at an optimum, heated and cooled again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sbnn._core.keys import generator
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem
from sbnn.sampling.chunks import evaluate_all
from sbnn.sampling.joint import (
    LOG_ALPHA_RANGE,
    join_log_alpha,
    joint_evaluator,
    joint_symmetry,
    joint_target,
    redraw_log_alpha,
    to_parameters,
)
from sbnn.sampling.moves import Rescale, ShapedWalk, Tempered
from sbnn.sampling.state import AnnealingStage, AnnealingState, Evaluate, Particles
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint
from sbnn.sampling.tempering import (
    covariance_factor,
    next_beta,
    normalise,
    systematic_resample,
    temper,
)

# At this β a pruned neuron returns, and is pruned again, within a few blocks of moves.
HOT = 0.05
# A block is `WALKS` steps of φ at fixed α and `RESCALINGS` changes of log α at fixed z.
WALKS, RESCALINGS = 5, 15
HOT_BLOCKS, COOLING_BLOCKS, LAST_BLOCKS = 15, 8, 10


def heat_and_cool(
    problem: Problem,
    hyperprior: Hyperprior,
    phi: np.ndarray,
    key: Any,
    evaluate: Evaluate | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Turn draws φ of the posterior at an optimum α* into draws of p(φ, log α|D).

    Local moves at β = 1 take very long to bring a pruned neuron back. So the population is moved
    at β = `HOT`, where that is easy, and brought back to β = 1 by tempering with resampling, as in
    TMCMC. A block of moves has three parts, each of which keeps p(φ, log α) p(D|φ)^β:

    - log α from p(log α|φ), without an evaluation;
    - random walks of φ at fixed α, shaped by the precision βH + diag(α), where H is the
      precision the data contribute at the optimum;
    - log α of a few parameters up or down by the same amount, φ = z α^(−½) following at fixed z
      (`sbnn.sampling.moves.Rescale`).

    No prior is wider than the box in which the likelihood was sampled: log α starts at −2 log of
    its half-width. Otherwise, a neuron whose step lies between or beyond the data may have any
    weight, and a single draw in thousands decides mean and standard deviation of a prediction.

    Parameters
    ----------
    problem : Problem
    hyperprior : Hyperprior
    phi : ndarray, shape (n, d)
    key : int or JAX key
    evaluate : callable, optional
        Log-likelihood of (n, d) on the host, for black-box problems.
    checkpoint : Checkpoint
        Where the state is stored after every stage, and from which the run continues.

    Returns
    -------
    joint : ndarray, shape (n, d + n_α)
        (z, log α).
    log_likelihood : ndarray, shape (n,)
    n_evaluations : int
    """
    symmetry = None if joint_symmetry(problem) is None else problem.symmetry
    flips = None if symmetry is None else replace(symmetry, permute=False)
    folded = phi if flips is None else flips.fold(phi)
    model = JointModel.of(problem, hyperprior, folded, evaluate)
    saved = checkpoint.read()
    state = init(key, model, folded) if saved is None else AnnealingState.unpacked(saved)
    while state.stage == 0 or state.beta < 1.0:
        state, _ = step(key, state, model)
        checkpoint.write(*state.packed())
    joint, log_likelihood, _ = state.particles
    n_evaluations = state.n_evaluations
    if flips is not None:
        d = problem.n_parameters
        signed = flips.apply_random(generator(key, 2), joint[:, :d])
        joint = np.concatenate([signed, joint[:, d:]], axis=1)
    if evaluate is None:  # the walks may have used a fast, rounded likelihood
        log_likelihood = problem.log_likelihood(np.asarray(to_parameters(joint, problem.ard)))
        n_evaluations += len(joint)
    return joint, log_likelihood, n_evaluations


@dataclass(frozen=True, kw_only=True)
class _Bounded(Tempered):
    """The tempered joint density, with log α above its lower bounds (the last coordinates)."""

    low: np.ndarray

    def log_prior(self, phi: np.ndarray) -> np.ndarray:
        inside = (phi[:, -len(self.low) :] > self.low).all(axis=1)
        return np.where(inside, super().log_prior(phi), -np.inf)


@dataclass(frozen=True)
class JointModel:
    """The joint posterior of φ and log α, with the shape that its random walks need."""

    problem: Problem
    hyperprior: Hyperprior
    hottest: Tempered
    information: np.ndarray  # (d, d), precision the data add to the prior's
    low: np.ndarray  # lower bounds of log α

    @classmethod
    def of(
        cls,
        problem: Problem,
        hyperprior: Hyperprior,
        phi: np.ndarray,
        evaluate: Evaluate | None = None,
    ) -> JointModel:
        """The model around draws φ of the posterior at an optimum."""
        low = lowest_log_alpha(problem)
        target, on_host = joint_target(problem, hyperprior), joint_evaluator(problem, evaluate)
        density = _Bounded(target, HOT, on_host, low=low)
        return cls(problem, hyperprior, density, _data_information(phi, problem.ard), low)

    def at(self, beta: float) -> Tempered:
        """The joint density at a temperature."""
        return replace(self.hottest, beta=beta)

    def walk_factor(self, joint: np.ndarray, beta: float) -> np.ndarray:
        """(n, d, d): W with W Wᵀ the inverse of βH + diag(α), in the coordinates z."""
        d, ard = self.problem.n_parameters, self.problem.ard
        unit = np.ones((len(joint), d))
        unit[:, ard] = np.exp(-0.5 * joint[:, d:])  # φ per z
        precision = beta * self.information * unit[:, :, None] * unit[:, None, :]
        precision[:, ard, ard] += 1.0
        return np.linalg.inv(np.linalg.cholesky(precision)).transpose(0, 2, 1)


def init(key: Any, model: JointModel, phi: np.ndarray) -> AnnealingState:
    """The hot population: draws φ at an optimum, each with log α from p(log α|φ)."""
    joint = join_log_alpha(generator(key, 0), model.problem, phi, model.hyperprior, model.low)
    log_likelihood = evaluate_all(model.hottest.target, joint, model.hottest.evaluate)
    particles = Particles(joint, log_likelihood, np.arange(len(phi)))
    scale = ShapedWalk().initial_scale(phi.shape[1])
    return AnnealingState(particles, HOT, stage=0, scale=scale, n_evaluations=len(phi))


def step(
    key: Any, state: AnnealingState, model: JointModel
) -> tuple[AnnealingState, AnnealingStage]:
    """One stage: cool (except in the first), resample, and move in blocks.

    Parameters
    ----------
    key : int or JAX key
        Key of the whole run; each stage derives its own key from it.
    state : AnnealingState
    model : JointModel

    Returns
    -------
    AnnealingState
    AnnealingStage
    """
    rng = generator(key, 1, state.stage)
    n_blocks, acceptance = HOT_BLOCKS, 0.0
    if state.stage > 0:
        state = _cool(rng, state)
        n_blocks = COOLING_BLOCKS if state.beta < 1.0 else LAST_BLOCKS
    for _ in range(n_blocks):
        state, acceptance = _block(rng, state, model)
    state = state._replace(stage=state.stage + 1)
    return state, AnnealingStage(state.beta, acceptance, n_blocks)


def _cool(rng: np.random.Generator, state: AnnealingState) -> AnnealingState:
    """Resample to the next β, at which the effective sample size is half the population."""
    joint, log_likelihood, _ = state.particles
    beta = next_beta(log_likelihood, state.beta)
    chosen = systematic_resample(rng, normalise(temper(log_likelihood, beta - state.beta)))
    particles = Particles(joint[chosen], log_likelihood[chosen], chosen)
    return state._replace(particles=particles, beta=beta)


def _block(
    rng: np.random.Generator, state: AnnealingState, model: JointModel
) -> tuple[AnnealingState, float]:
    """One block of moves; the state, and the acceptance of its random walks."""
    joint = redraw_log_alpha(rng, model.problem, state.particles.phi, model.hyperprior, model.low)
    particles = state.particles._replace(phi=joint)  # at the same φ: the likelihood stays
    density, n = model.at(state.beta), len(joint)
    factor = model.walk_factor(joint, state.beta)
    walk, rescale = ShapedWalk(), Rescale(len(model.low), RESCALINGS)

    run = walk.kernel(density, factor, rng)
    acceptance = 0.0
    for _ in range(WALKS):
        particles, info = run(particles, state.scale)
        acceptance += info.n_accepted / n / WALKS
    scale = float(state.scale * np.exp(acceptance - walk.target_acceptance))

    run = rescale.kernel(density, factor, rng)
    particles, _ = run(particles, rescale.initial_scale(joint.shape[1]))
    n_moves = WALKS * walk.evaluations_per_move + rescale.block * rescale.evaluations_per_move
    return state._replace(
        particles=particles, scale=scale, n_evaluations=state.n_evaluations + n_moves * n
    ), acceptance


def lowest_log_alpha(problem: Problem) -> np.ndarray:
    """Per ARD parameter: the log precision of a prior as wide as the half-width of its box."""
    boxes = [p for p, a in zip(problem.priors, problem.ard) if a]
    half = np.array([0.5 * (p.high - p.low) for p in boxes])  # type: ignore[union-attr]
    return np.maximum(LOG_ALPHA_RANGE[0], -2 * np.log(half))


def _data_information(phi: np.ndarray, ard: np.ndarray) -> np.ndarray:
    """H: inverse covariance of the draws minus the prior precision; at an optimum αE[φ²] = 1."""
    factor = covariance_factor(phi, np.full(len(phi), 1.0 / len(phi)))
    precision = np.linalg.inv(factor @ factor.T)
    prior = np.where(ard, 1.0 / np.maximum((phi**2).mean(axis=0), 1e-300), 0.0)
    spread = 1.0 / np.sqrt(np.diag(precision))
    scaled = (precision - np.diag(prior)) * np.outer(spread, spread)
    values, vectors = np.linalg.eigh(scaled)
    scaled = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    return scaled / np.outer(spread, spread)
