"""Ascent of the exact evidence over log α, by particles that are carried along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from sbnn._core.float64 import float64
from sbnn._core.keys import as_key, derive_key, generator
from sbnn.evidence.particle_estimates import particle_derivatives, savage_dickey
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem, prunable_units
from sbnn.problems.symmetry import invariant_symmetry
from sbnn.sampling.moves import Move, MoveChoice, Tempered, choose, mutate, relabel
from sbnn.sampling.state import Evaluate, Particles, Tuning
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint, Saved, kept
from sbnn.sampling.tempering import split_factors, systematic_resample
from sbnn.sampling.tmcmc import TmcmcResult

# How much the others may win back, in nats, when they climb again after a removal: one that
# promises to cost more than the budget and this is not tried.
WON_BACK = 2.0


class AscentStep(NamedTuple):
    """Record of one step of the particle ascent."""

    log_evidence: float
    objective: float
    predicted_gain: float
    fraction: float  # of the step that kept the effective sample size
    n_significant: int  # gradient components beyond two standard errors
    log_alpha: np.ndarray


class Ascent(NamedTuple):
    """Where the exact evidence led."""

    log_alpha: np.ndarray
    log_evidence: float  # that of the start plus the tracked ratio
    particles: Particles
    steps: tuple[AscentStep, ...]
    n_evaluations: int
    converged: bool
    reason: str
    pruned: tuple[int, ...] = ()  # positions among the ARD parameters


class AscentState(NamedTuple):
    """Particles of p(φ|D, α) at the current α, with the evidence gained on the way."""

    log_alpha: np.ndarray
    particles: Particles
    log_evidence: float
    fraction: float  # of the last step that kept the effective sample size
    n_evaluations: int
    n_steps: int
    tuning: Tuning

    def undone(self, before: AscentState) -> AscentState:
        """Back to an earlier α, particles and evidence; what was spent and tuned stays."""
        return self._replace(
            log_alpha=before.log_alpha,
            particles=before.particles,
            log_evidence=before.log_evidence,
        )

    def packed(self) -> Saved:
        """Arrays and plain values for a checkpoint."""
        values = self._asdict()
        arrays = {**values.pop("particles")._asdict(), "log_alpha": values.pop("log_alpha")}
        return arrays, {**values, "tuning": self.tuning._asdict()}

    @classmethod
    def unpacked(cls, saved: Saved) -> AscentState:
        """The state from what `packed` returned."""
        arrays, values = dict(saved[0]), dict(saved[1])
        log_alpha, tuning = arrays.pop("log_alpha"), Tuning(**values.pop("tuning"))
        return cls(log_alpha=log_alpha, particles=Particles(**arrays), tuning=tuning, **values)


@dataclass(frozen=True)
class _Climber:
    """What stays the same during an ascent."""

    problem: Problem
    hyperprior: Hyperprior
    key: Any
    choice: MoveChoice
    evaluate: Evaluate | None
    checkpoint: Checkpoint
    max_steps: int
    tolerance: float

    def phi(self, state: AscentState) -> np.ndarray:
        """The ARD parameters of the particles, (N, n_alpha)."""
        return state.particles.phi[:, self.problem.ard]

    def record(self, state: AscentState, gain: float, n_significant: int) -> AscentStep:
        """The record of the step that led to `state`."""
        objective = state.log_evidence + float(self.hyperprior.log_density(state.log_alpha))
        return AscentStep(
            state.log_evidence, objective, gain, state.fraction, n_significant, state.log_alpha
        )


def newton_step(gradient: np.ndarray, hessian: np.ndarray, radius: float) -> np.ndarray:
    """Maximiser of gᵀs + ½ sᵀHs over |s| ≤ radius, by the eigenvectors of H."""
    values, vectors = np.linalg.eigh(-hessian)
    projected = vectors.T @ gradient

    def step(shift: float) -> np.ndarray:
        return vectors @ (projected / (values + shift))

    if values[0] > 1e-12 and np.linalg.norm(step(0.0)) <= radius:
        return step(0.0)
    low = max(0.0, -values[0]) + 1e-12
    high = low + np.linalg.norm(gradient) / radius + 1e-12
    for _ in range(100):  # |s(shift)| falls with the shift
        middle = 0.5 * (low + high)
        if np.linalg.norm(step(middle)) > radius:
            low = middle
        else:
            high = middle
    return step(high)


@float64
def ascend(
    problem: Problem,
    log_alpha: np.ndarray,
    start: TmcmcResult,
    hyperprior: Hyperprior,
    key: Any,
    *,
    move: str | Move = "auto",
    max_moves: int = 200,
    max_steps: int = 60,
    tolerance: float = 0.02,
    sparsify: float = 0.0,
    pruned: tuple[int, ...] = (),
    evaluate: Evaluate | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Ascent:
    """Climb log p(D|α) + log p(log α) itself, carrying particles of p(φ|D, α) along.

    Each trust-region Newton step is shortened until the importance weights from α to α' keep an
    effective sample size of half the particles; these are reweighted, resampled and moved, and
    log mean(weights) is the evidence gained. Gradient components within two standard errors of
    zero are noise and are not followed. The ascent ends when the step promises less than
    `tolerance` twice in a row.

    With `sparsify` above zero, what the evidence can do without is then pruned: the neuron (or,
    without a network, parameter) whose removal promises to be cheapest, by its posterior density at
    zero (Savage–Dickey), is led to the pruned end of its log α, where α is set by the hyperprior,
    and the rest climbs again. If that costs at most `sparsify` nats in total, it stays pruned and
    the next one is tried; otherwise the removal is undone. Differences below one nat are not worth
    more than a bare mention (Kass & Raftery 1995): of two α that the data cannot tell apart, the
    sparser one is the answer.

    Parameters
    ----------
    problem : Problem
    log_alpha : ndarray, shape (n_alpha,)
        Where the ascent starts.
    start : TmcmcResult
        Particles and evidence at that α (`sbnn.evidence.exact.exact_evidence`).
    hyperprior : Hyperprior
    key : int or JAX key
    move : {"auto", "random_walk", "hmc"} or Move
    max_moves : int
        Cap of moves per step.
    max_steps : int
        Cap of steps of one climb.
    tolerance : float
        Gain, in nats, that is not worth a step.
    sparsify : float
        Evidence, in nats, that may be given up for a sparser α.
    pruned : tuple of int
        Positions, among the ARD parameters, that an earlier ascent has pruned: they keep their α.
    evaluate : callable, optional
        Log-likelihood of (n, d) on the host, for black-box problems.
    checkpoint : Checkpoint
        Where the state is stored after every step, and from which the ascent continues.

    Returns
    -------
    Ascent
    """
    climber = _Climber(
        problem, hyperprior, as_key(key), choose(move, evaluate), evaluate, checkpoint,
        max_steps, tolerance,
    )  # fmt: skip
    state = AscentState(
        log_alpha=np.asarray(log_alpha, dtype=float).copy(),
        particles=start.particles,
        log_evidence=start.log_evidence,
        fraction=1.0,
        n_evaluations=0,
        n_steps=0,
        tuning=climber.choice.start(start.particles.phi.shape[1], max_moves),
    )
    state, steps, converged = _climb(climber, state, pruned)
    if sparsify > 0:
        state, more, pruned, converged = _prune(climber, state, pruned, sparsify, converged)
        steps = (*steps, *more)
    reason = (
        f"the next step promises less than {tolerance} nat"
        if converged
        else f"stopped after {max_steps} steps"
    )
    return Ascent(
        state.log_alpha,
        state.log_evidence,
        state.particles,
        steps,
        state.n_evaluations,
        converged,
        reason,
        pruned,
    )


def _climb(
    climber: _Climber, state: AscentState, held: tuple[int, ...]
) -> tuple[AscentState, tuple[AscentStep, ...], bool]:
    """Newton steps until nothing is gained; parameters in `held` (pruned ones) stay."""
    steps: tuple[AscentStep, ...] = ()
    quiet, fixed = 0, np.array(held, dtype=int)
    for _ in range(climber.max_steps):
        gradient, error, hessian = particle_derivatives(
            climber.phi(state), state.log_alpha, climber.hyperprior
        )
        significant = np.abs(gradient) > 2 * error
        significant[fixed] = False
        followed = np.where(significant, gradient, 0.0)
        step = newton_step(followed, hessian, radius=4.0)
        step[fixed] = 0.0
        gain = float(followed @ step + 0.5 * step @ hessian @ step)
        quiet = quiet + 1 if gain < climber.tolerance else 0
        if quiet == 2:
            return state, steps, True
        state = _advance(climber, state, step)
        steps = (*steps, climber.record(state, gain, int(significant.sum())))
    return state, steps, False


def _advance(climber: _Climber, state: AscentState, step: np.ndarray) -> AscentState:
    """The state after a step, shortened to keep the ESS; read from the checkpoint if stored."""
    checkpoint = climber.checkpoint.part(f"step-{state.n_steps + 1}")
    return kept(checkpoint, AscentState, lambda: _carry(climber, state, step))


def _carry(climber: _Climber, state: AscentState, step: np.ndarray) -> AscentState:
    """Reweight, resample and move the particles along a step."""
    before, problem = state.particles, climber.problem
    fraction, log_weights = _shorten(climber.phi(state), state.log_alpha, step)
    gained = float(logsumexp(log_weights) - np.log(len(log_weights)))
    log_alpha = state.log_alpha + fraction * step
    weights = np.exp(log_weights - logsumexp(log_weights))
    prior = problem.prior_at(log_alpha)
    rng = generator(climber.key, 1, state.n_steps)
    factor = split_factors(before.phi, weights)
    chosen = systematic_resample(rng, weights)
    phi = before.phi[chosen]
    symmetry = invariant_symmetry(problem.symmetry, prior, 0)
    if symmetry is not None:
        phi = symmetry.apply_random(rng, phi)
    phi = relabel(rng, phi, prior, problem.symmetry)
    particles, info = mutate(
        Tempered(problem.target(prior), 1.0, climber.evaluate),
        derive_key(climber.key, 0, state.n_steps),
        Particles(phi, before.log_likelihood[chosen], chosen),
        factor,
        state.tuning.scale,
        move=climber.choice.current(state.tuning),
        max_moves=state.tuning.max_moves,
    )
    return AscentState(
        log_alpha=log_alpha,
        particles=particles,
        log_evidence=state.log_evidence + gained,
        fraction=fraction,
        n_evaluations=state.n_evaluations + info.n_evaluations,
        n_steps=state.n_steps + 1,
        tuning=climber.choice.after(state.tuning, info, phi.shape[1]),
    )


def _shorten(phi: np.ndarray, log_alpha: np.ndarray, step: np.ndarray) -> tuple[float, np.ndarray]:
    """Halve the step until the weights p(φ|α')/p(φ|α) keep an ESS of N/2."""
    fraction = 1.0
    for _ in range(30):
        part = fraction * step
        # log w = Σᵢ ½ (λ' − λ) − ½ (α' − α) φ²
        change = np.exp(log_alpha + part) - np.exp(log_alpha)
        log_weights = 0.5 * part.sum() - 0.5 * (phi**2) @ change
        weights = np.exp(log_weights - log_weights.max())
        if weights.sum() ** 2 / (weights**2).sum() >= 0.5 * len(phi):
            break
        fraction *= 0.5
    return fraction, log_weights


def _prune(
    climber: _Climber,
    state: AscentState,
    pruned: tuple[int, ...],
    sparsify: float,
    converged: bool,
) -> tuple[AscentState, tuple[AscentStep, ...], tuple[int, ...], bool]:
    """Trial removals, cheapest first, while they cost at most `sparsify` nats in total."""
    best, tried = state.log_evidence, pruned
    steps: tuple[AscentStep, ...] = ()
    while (unit := _dispensable(climber, state, tried, best, sparsify)) is not None:
        tried, held = (*tried, *unit), (*pruned, *unit)
        trial, leading = _lead(climber, state, unit)
        trial, climbing, converged = _climb(climber, trial, held)
        if trial.log_evidence < best - sparsify:
            state = trial.undone(state)
            continue
        state, pruned = trial, held
        steps = (*steps, *leading, *climbing)
    return state, steps, pruned, converged


def _lead(
    climber: _Climber, state: AscentState, unit: tuple[int, ...]
) -> tuple[AscentState, tuple[AscentStep, ...]]:
    """Raise the precisions of one unit to their pruned values, as fast as particles can follow."""
    steps: tuple[AscentStep, ...] = ()
    members = list(unit)
    goal = state.log_alpha.copy()
    goal[members] = np.maximum(goal[members], _pruned_level(climber, state)[members])
    for _ in range(40):
        step = goal - state.log_alpha
        if np.abs(step).max() < 1e-9:
            break
        state = _advance(climber, state, step)
        steps = (*steps, climber.record(state, 0.0, 0))
    return state, steps


def _pruned_level(climber: _Climber, state: AscentState) -> np.ndarray:
    """Where log α of an irrelevant parameter comes to rest: ½ γ = r α with γ ≈ Λ/α, zero mean.

    Λ, the precision that the likelihood adds, is at most the parameter's posterior precision; that
    bound is taken, so that what is pruned is pruned for certain.
    """
    precision = 1.0 / climber.phi(state).var(axis=0)
    rate = max(climber.hyperprior.rate, np.exp(-30.0))
    return 0.5 * (np.log(precision) - np.log(2 * rate))


def _dispensable(
    climber: _Climber, state: AscentState, tried: tuple[int, ...], best: float, budget: float
) -> tuple[int, ...] | None:
    """The unit (positions among the ARD parameters) cheapest to remove, if it is worth a trial."""
    left = budget - max(0.0, best - state.log_evidence)
    ratios = savage_dickey(climber.phi(state), state.log_alpha)
    level = _pruned_level(climber, state)
    best_unit, best_ratio = None, -left - WON_BACK
    for gate, unit in prunable_units(climber.problem):
        if np.isin(unit, tried).any() or (state.log_alpha[gate] >= level[gate] - 0.5).all():
            continue
        ratio = float(ratios[gate].sum())
        if ratio > best_ratio:
            best_unit, best_ratio = tuple(unit.tolist()), ratio
    return best_unit
