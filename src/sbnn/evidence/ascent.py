"""The exact evidence: computed at a given α, and climbed with particles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from sbnn._core.float64 import float64
from sbnn._core.keys import as_key, derive_key, generator
from sbnn.priors import Hyperprior, JointPrior
from sbnn.problems.problem import Problem, prunable_units
from sbnn.problems.symmetry import Symmetry, invariant_symmetry
from sbnn.sampling.checkpoints import NO_CHECKPOINT, Checkpoint
from sbnn.sampling.moves import Evaluate, Particles, mutate, prior_log_density
from sbnn.sampling.tmcmc import STUCK, TmcmcResult, split_factors, systematic_resample, tmcmc


@float64
def exact_evidence(
    problem: Problem,
    log_alpha: np.ndarray,
    key,
    *,
    n_particles: int = 2000,
    move: str = "auto",
    max_moves: int = 400,
    evaluate: Evaluate | None = None,
    on_stage=None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> TmcmcResult:
    """log p(D|α) and particles of p(φ|D, α), by TMCMC from the ARD prior at α.

    Nothing is approximated but by the number of particles: this is what a surrogate is judged by.
    """
    prior = problem.prior_at(log_alpha)
    symmetry = invariant_symmetry(problem.symmetry, prior, 0)
    return tmcmc(
        problem.target(prior),
        key,
        n_particles=n_particles,
        move=move,
        max_moves=max_moves,
        symmetry=symmetry,
        evaluate=evaluate,
        on_stage=on_stage,
        checkpoint=checkpoint,
    )


def relabel(
    rng: np.random.Generator,
    phi: np.ndarray,
    prior: JointPrior,
    symmetry: Symmetry | None,
    n_proposals: int = 20,
) -> np.ndarray:
    """Metropolis moves that permute hidden neurons: the likelihood stays, only the prior decides.

    Under an ARD prior with unequal precisions the permuted images of a mode have unequal masses,
    and no local move leads from one to another. Left to resampling alone, the share of particles in
    each drifts; α follows the drift, and the evidence carried along comes out too high, by up to
    the log of the number of images.
    """
    if symmetry is None or symmetry.order == 1:
        return phi
    permutations = Symmetry(symmetry.network, symmetry.n_extra, flip=False)
    log_prior = np.asarray(prior_log_density(prior, phi))
    for _ in range(n_proposals):
        index, _ = permutations.random(rng, len(phi))
        proposal = np.take_along_axis(phi, index, axis=1)
        new = np.asarray(prior_log_density(prior, proposal))
        accept = np.log(rng.random(len(phi))) < new - log_prior
        phi = np.where(accept[:, None], proposal, phi)
        log_prior = np.where(accept, new, log_prior)
    return phi


class AscentStep(NamedTuple):
    """One step of the particle ascent."""

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


def particle_derivatives(
    phi: np.ndarray, log_alpha: np.ndarray, hyperprior: Hyperprior
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradient, its standard error, and Hessian of the exact objective from posterior particles.

    ∇ᵢ = ½ − ½ αᵢ E[φᵢ²] + s − r αᵢ,
    Hᵢⱼ = ¼ αᵢαⱼ Cov(φᵢ², φⱼ²) − δᵢⱼ (½ αᵢ E[φᵢ²] + r αᵢ),  φ of shape (N, n_alpha).
    """
    alpha = np.exp(log_alpha)
    half_square = 0.5 * alpha * phi**2
    mean = half_square.mean(axis=0)
    centred = half_square - mean
    gradient = 0.5 - mean + hyperprior.shape - hyperprior.rate * alpha
    hessian = centred.T @ centred / len(phi) - np.diag(mean + hyperprior.rate * alpha)
    error = half_square.std(axis=0) / np.sqrt(len(phi))
    return gradient, error, hessian


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


class _Carrier:
    """Particles of p(φ|D, α) carried along as α changes, with the evidence gained on the way."""

    def __init__(
        self, problem, log_alpha, start: TmcmcResult, key, move, max_moves, evaluate, checkpoint
    ):
        self.checkpoint: Checkpoint = checkpoint
        self.problem, self.evaluate, self.max_moves = problem, evaluate, max_moves
        self.move = "random_walk" if move == "auto" else move
        self.automatic = move == "auto" and evaluate is None
        self.key = as_key(key)
        self.log_alpha = np.asarray(log_alpha, dtype=float).copy()
        self.particles, self.log_evidence = start.particles, start.log_evidence
        d = self.particles.phi.shape[1]
        self.scale = 2.38 / np.sqrt(d) if self.move == "random_walk" else 0.3
        self.n_evaluations = self.n_steps = 0

    @property
    def phi(self) -> np.ndarray:
        return self.particles.phi[:, self.problem.ard]

    @property
    def state(self) -> tuple[np.ndarray, Particles, float]:
        """Where it is: what has to be put back to undo steps."""
        return self.log_alpha, self.particles, self.log_evidence

    @state.setter
    def state(self, state: tuple[np.ndarray, Particles, float]) -> None:
        self.log_alpha, self.particles, self.log_evidence = state

    def step(self, step: np.ndarray) -> float:
        """Go along `step`, shortened to keep the ESS; return the fraction of it that was gone."""
        fraction, log_weights = _shorten(self.phi, self.log_alpha, step)
        self.log_evidence += float(logsumexp(log_weights) - np.log(len(log_weights)))
        self.log_alpha = self.log_alpha + fraction * step
        weights = np.exp(log_weights - logsumexp(log_weights))
        prior = self.problem.prior_at(self.log_alpha)
        rng = generator(self.key, 1, self.n_steps)
        factor = split_factors(self.particles.phi, weights)
        chosen = systematic_resample(rng, weights)
        phi = self.particles.phi[chosen]
        symmetry = invariant_symmetry(self.problem.symmetry, prior, 0)
        if symmetry is not None:
            phi = symmetry.apply_random(rng, phi)
        phi = relabel(rng, phi, prior, self.problem.symmetry)
        start = Particles(phi, self.particles.log_likelihood[chosen], chosen)
        self.particles, info = self.checkpoint.part(f"step-{self.n_steps + 1}").moves(
            lambda: mutate(
                self.problem.target(prior),
                derive_key(self.key, 0, self.n_steps),
                start,
                1.0,
                factor,
                self.scale,
                move=self.move,
                max_moves=self.max_moves,
                evaluate=self.evaluate,
            )
        )
        self.scale = info.scale
        if self.automatic and info.correlation > STUCK:
            # As in TMCMC: where the walk is too slow, gradients carry the next steps.
            self.move, self.scale, self.automatic = "hmc", 0.3, False
            self.max_moves = max(2, self.max_moves // 5)
        self.n_evaluations += info.n_evaluations
        self.n_steps += 1
        return fraction


def _shorten(phi, log_alpha, step):
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


@float64
def ascend(
    problem: Problem,
    log_alpha: np.ndarray,
    start: TmcmcResult,
    hyperprior: Hyperprior,
    key,
    *,
    move: str = "auto",
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
    zero are noise and are not followed. Ends when the step promises less than `tolerance` twice
    in a row.

    With `sparsify` above zero, what the evidence can do without is then pruned: the neuron (or,
    without a network, parameter) whose removal promises to be cheapest, by its posterior density at
    zero (Savage–Dickey), is led to the pruned end of its log α, where α is set by the hyperprior,
    and the rest climbs again. If `sparsify` nats in total pay for it, it stays pruned and the next
    one is tried; if not, all is as before. Differences below one nat are not worth more than a bare
    mention (Kass & Raftery 1995): of two α that the data cannot tell apart, the sparser one is the
    answer. What an earlier ascent has `pruned` keeps its α.
    """
    carrier = _Carrier(problem, log_alpha, start, key, move, max_moves, evaluate, checkpoint)
    steps: list[AscentStep] = []
    converged = _climb(carrier, hyperprior, steps, max_steps, tolerance, pruned)
    if sparsify > 0:
        best = carrier.log_evidence
        tried = list(pruned)
        while (unit := _dispensable(carrier, hyperprior, tried, best, sparsify)) is not None:
            tried += unit.tolist()
            before = carrier.state
            held = (*pruned, *unit.tolist())
            trial: list[AscentStep] = []
            _lead(carrier, hyperprior, unit, trial)
            converged = _climb(carrier, hyperprior, trial, max_steps, tolerance, held)
            if carrier.log_evidence < best - sparsify:
                carrier.state = before
                continue
            pruned = held
            steps += trial
    reason = (
        f"the next step promises less than {tolerance} nat"
        if converged
        else f"stopped after {max_steps} steps"
    )
    return Ascent(
        carrier.log_alpha,
        carrier.log_evidence,
        carrier.particles,
        tuple(steps),
        carrier.n_evaluations,
        converged,
        reason,
        pruned,
    )


def _climb(carrier: _Carrier, hyperprior, steps, max_steps, tolerance, held) -> bool:
    """Newton steps until nothing is gained; parameters in `held` (pruned ones) stay."""
    quiet = 0
    held = np.array(held, dtype=int)
    for _ in range(max_steps):
        gradient, error, hessian = particle_derivatives(carrier.phi, carrier.log_alpha, hyperprior)
        significant = np.abs(gradient) > 2 * error
        significant[held] = False
        followed = np.where(significant, gradient, 0.0)
        step = newton_step(followed, hessian, radius=4.0)
        step[held] = 0.0
        gain = float(followed @ step + 0.5 * step @ hessian @ step)
        quiet = quiet + 1 if gain < tolerance else 0
        if quiet == 2:
            return True
        fraction = carrier.step(step)
        steps.append(_record(carrier, hyperprior, gain, fraction, int(significant.sum())))
    return False


def _record(carrier: _Carrier, hyperprior, gain, fraction, n_significant) -> AscentStep:
    objective = carrier.log_evidence + float(hyperprior.log_density(carrier.log_alpha))
    return AscentStep(
        carrier.log_evidence, objective, gain, fraction, n_significant, carrier.log_alpha.copy()
    )


def _lead(carrier: _Carrier, hyperprior, unit: np.ndarray, steps) -> None:
    """Raise the precisions of one unit to their pruned values, as fast as particles can follow."""
    goal = carrier.log_alpha.copy()
    goal[unit] = np.maximum(goal[unit], _pruned_level(carrier, hyperprior)[unit])
    for _ in range(40):
        step = goal - carrier.log_alpha
        if np.abs(step).max() < 1e-9:
            break
        fraction = carrier.step(step)
        steps.append(_record(carrier, hyperprior, 0.0, fraction, 0))


def _pruned_level(carrier: _Carrier, hyperprior: Hyperprior) -> np.ndarray:
    """Where log α of an irrelevant parameter comes to rest: ½ γ = r α with γ ≈ Λ/α, zero mean.

    Λ, the precision that the likelihood adds, is at most the parameter's posterior precision; that
    bound is taken, so that what is pruned is pruned for certain.
    """
    precision = 1.0 / carrier.phi.var(axis=0)
    rate = max(hyperprior.rate, np.exp(-30.0))
    return 0.5 * (np.log(precision) - np.log(2 * rate))


def savage_dickey(phi: np.ndarray, log_alpha: np.ndarray) -> np.ndarray:
    """log p(D|αᵢ → ∞) − log p(D|α) for each i: posterior over prior density of φᵢ at zero.

    The posterior density is a Gaussian KDE over the particles and their mirror images.
    """
    n = len(phi)
    width = 0.9 * np.minimum(phi.std(axis=0), np.abs(phi).mean(axis=0) * 1.25) * n**-0.2
    width = np.maximum(width, 1e-300)
    log_posterior = logsumexp(-0.5 * (phi / width) ** 2, axis=0) - np.log(n) - np.log(width)
    return log_posterior - 0.5 * log_alpha


# How much the others may win back, in nats, when they climb again after a removal: one that
# promises to cost more than the budget and this is not tried.
WON_BACK = 2.0


def _dispensable(carrier, hyperprior, tried, best, budget) -> np.ndarray | None:
    """The unit (positions among the ARD parameters) cheapest to remove, if it is worth a trial."""
    left = budget - max(0.0, best - carrier.log_evidence)
    ratios = savage_dickey(carrier.phi, carrier.log_alpha)
    level = _pruned_level(carrier, hyperprior)
    best_unit, best_ratio = None, -left - WON_BACK
    for gate, unit in prunable_units(carrier.problem):
        if np.isin(unit, tried).any() or (carrier.log_alpha[gate] >= level[gate] - 0.5).all():
            continue
        ratio = float(ratios[gate].sum())
        if ratio > best_ratio:
            best_unit, best_ratio = unit, ratio
    return best_unit
