"""Ascent of the exact evidence over log α with posterior particles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import logsumexp

from sbnn._core.float64 import float64
from sbnn._core.keys import as_key, derive_key, generator
from sbnn.evidence.exact.cold import ExactRun
from sbnn.evidence.exact.following import Follower, FollowEverywhere
from sbnn.evidence.exact.particle_estimates import particle_derivatives, savage_dickey
from sbnn.priors import Hyperprior, JointPrior
from sbnn.problems.problem import Problem, prunable_units
from sbnn.sampling.moves import Move, choose
from sbnn.sampling.state import Evaluate, Particles, Tuning
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint, Saved, kept

# Evidence, in nats, that the ascent after a removal may recover. A removal whose predicted cost
# exceeds the budget by more than this is not tried.
WON_BACK = 2.0


class Climbable(Protocol):
    """What an ascent needs of parts of a problem; it may be given instead of a `Problem`."""

    @property
    def ard(self) -> np.ndarray:
        """Which parameters have an ARD prior, bool (d,)."""

    def prior_at(self, log_alpha: np.ndarray) -> JointPrior:
        """p(φ|α)."""

    def prunable_units(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """As `sbnn.problems.problem.prunable_units`."""


class AscentStep(NamedTuple):
    """Record of one step of the particle ascent."""

    log_evidence: float
    objective: float
    predicted_gain: float
    fraction: float  # of the step that kept the effective sample size
    n_significant: int  # gradient components that are followed
    log_alpha: np.ndarray


class Ascent(NamedTuple):
    """Result of an ascent of the exact evidence."""

    log_alpha: np.ndarray
    log_evidence: float  # at the start, plus the tracked log ratio
    particles: Particles
    steps: tuple[AscentStep, ...]
    n_evaluations: int
    converged: bool
    reason: str
    pruned: tuple[int, ...] = ()  # positions among the ARD parameters


class AscentState(NamedTuple):
    """Particles of p(φ|D, α) at the current α, and the log evidence tracked so far."""

    log_alpha: np.ndarray
    particles: Particles
    log_evidence: float
    fraction: float  # of the last step that kept the effective sample size
    n_evaluations: int
    n_steps: int
    tuning: Tuning

    def undone(self, before: AscentState) -> AscentState:
        """Restore an earlier α, particles and evidence; keep the counters and the tuning."""
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
        """The inverse of `packed`."""
        arrays, values = dict(saved[0]), dict(saved[1])
        log_alpha, tuning = arrays.pop("log_alpha"), Tuning(**values.pop("tuning"))
        return cls(log_alpha=log_alpha, particles=Particles(**arrays), tuning=tuning, **values)


@dataclass(frozen=True)
class _Climber:
    """Settings that stay fixed during an ascent."""

    problem: Problem | Climbable
    hyperprior: Hyperprior
    key: Any
    follower: Follower
    checkpoint: Checkpoint
    max_steps: int
    tolerance: float

    def phi(self, state: AscentState) -> np.ndarray:
        """The ARD parameters of the particles, (N, n_alpha)."""
        return state.particles.phi[:, self.problem.ard]

    def record(self, state: AscentState, gain: float, n_significant: int) -> AscentStep:
        """Record of the step that led to `state`."""
        objective = state.log_evidence + float(self.hyperprior.log_density(state.log_alpha))
        return AscentStep(
            state.log_evidence, objective, gain, state.fraction, n_significant, state.log_alpha
        )


def newton_step(gradient: np.ndarray, hessian: np.ndarray, radius: float) -> np.ndarray:
    """Maximiser of gᵀs + ½ sᵀHs over |s| ≤ radius, from the eigenvectors of H."""
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
    problem: Problem | Climbable,
    log_alpha: np.ndarray,
    start: ExactRun,
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
    follower: Follower | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Ascent:
    """Maximise log p(D|α) + log p(log α) with particles that track p(φ|D, α).

    Each trust-region Newton step is shortened until the importance weights from α to α' keep an
    effective sample size of half the particles. The particles are reweighted, resampled and moved,
    and log mean(weights) is the evidence gained. Gradient components within two standard errors of
    zero (four, with `FollowModes`) are treated as noise. The ascent stops when the predicted gain
    is below `tolerance` twice in a row.

    If `sparsify` is positive, units are then pruned by trial. The neuron (or, without a network,
    the parameter) whose removal is predicted to cost least, by its posterior density at zero
    (Savage–Dickey), has its log α raised to the value that the hyperprior sets for pruned
    parameters, and the ascent continues for the rest. If that costs at most `sparsify` nats in
    total, the unit stays pruned and the next one is tried; otherwise the removal is undone.
    Differences below one nat are not worth more than a bare mention (Kass & Raftery 1995), so of
    two α that the data cannot distinguish, the sparser one is preferred.

    Parameters
    ----------
    problem : Problem or Climbable
        The latter with a `follower`.
    log_alpha : ndarray, shape (n_alpha,)
        Starting point.
    start : ExactRun
        Particles and evidence at that α (`sbnn.evidence.exact.cold.cold_evidence`).
    hyperprior : Hyperprior
    key : int or JAX key
    move : {"auto", "random_walk", "hmc"} or Move
    max_moves : int
        Maximum number of moves per step.
    max_steps : int
        Maximum number of steps of one ascent.
    tolerance : float
        Predicted gain, in nats, below which the ascent stops.
    sparsify : float
        Evidence, in nats, that may be given up for a sparser α.
    pruned : tuple of int
        Positions, among the ARD parameters, pruned by an earlier ascent; their α stays fixed.
    evaluate : callable, optional
        Log-likelihood of (n, d) on the host, for black-box problems.
    follower : Follower, optional
        How the particles follow α; by default with `move` and `max_moves`, over all symmetric
        images.
    checkpoint : Checkpoint
        Stores the state after every step; an interrupted ascent resumes from it.

    Returns
    -------
    Ascent
    """
    if follower is None:
        assert isinstance(problem, Problem)
        follower = FollowEverywhere(problem, choose(move, evaluate), max_moves, evaluate)
    climber = _Climber(problem, hyperprior, as_key(key), follower, checkpoint, max_steps, tolerance)
    state = AscentState(
        log_alpha=np.asarray(log_alpha, dtype=float).copy(),
        particles=start.particles,
        log_evidence=start.log_evidence,
        fraction=1.0,
        n_evaluations=0,
        n_steps=0,
        tuning=follower.start(start.particles.phi.shape[1]),
    )
    state, steps, converged = _climb(climber, state, pruned)
    if sparsify > 0:
        state, more, pruned, converged = _prune(climber, state, pruned, sparsify, converged)
        steps = (*steps, *more)
    reason = (
        f"the predicted gain of the next step is below {tolerance} nat"
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
    """Newton steps until no gain is predicted; the α of parameters in `held` stay fixed."""
    steps: tuple[AscentStep, ...] = ()
    quiet, fixed = 0, np.array(held, dtype=int)
    for _ in range(climber.max_steps):
        gradient, error, hessian = particle_derivatives(
            climber.phi(state), state.log_alpha, climber.hyperprior
        )
        significant = np.abs(gradient) > climber.follower.n_errors * error
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
    before = state.particles
    fraction, log_weights = _shorten(climber.phi(state), state.log_alpha, step)
    gained = float(logsumexp(log_weights) - np.log(len(log_weights)))
    log_alpha = state.log_alpha + fraction * step
    weights = np.exp(log_weights - logsumexp(log_weights))
    particles, info, tuning = climber.follower.follow(
        derive_key(climber.key, 0, state.n_steps),
        generator(climber.key, 1, state.n_steps),
        climber.problem.prior_at(log_alpha),
        before,
        weights,
        state.tuning,
    )
    return AscentState(
        log_alpha=log_alpha,
        particles=particles,
        log_evidence=state.log_evidence + gained,
        fraction=fraction,
        n_evaluations=state.n_evaluations + info.n_evaluations,
        n_steps=state.n_steps + 1,
        tuning=tuning,
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
    """Raise the precisions of one unit to their pruned values in steps the particles can follow."""
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
    """Stationary log α of an irrelevant parameter: ½ γ = r α with γ ≈ Λ/α and zero mean.

    Λ, the precision added by the likelihood, is at most the posterior precision of the parameter.
    That bound is used, so a pruned parameter is certainly pruned.
    """
    precision = 1.0 / climber.phi(state).var(axis=0)
    rate = max(climber.hyperprior.rate, np.exp(-30.0))
    return 0.5 * (np.log(precision) - np.log(2 * rate))


def _dispensable(
    climber: _Climber, state: AscentState, tried: tuple[int, ...], best: float, budget: float
) -> tuple[int, ...] | None:
    """The unit (positions among the ARD parameters) cheapest to remove, or None if too costly."""
    left = budget - max(0.0, best - state.log_evidence)
    ratios = savage_dickey(climber.phi(state), state.log_alpha)
    level = _pruned_level(climber, state)
    best_unit, best_ratio = None, -left - WON_BACK
    problem = climber.problem
    units = prunable_units(problem) if isinstance(problem, Problem) else problem.prunable_units()
    for gate, unit in units:
        if np.isin(unit, tried).any() or (state.log_alpha[gate] >= level[gate] - 0.5).all():
            continue
        ratio = float(ratios[gate].sum())
        if ratio > best_ratio:
            best_unit, best_ratio = tuple(unit.tolist()), ratio
    return best_unit
