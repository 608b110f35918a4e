"""The exact evidence: computed at a given α, and climbed with particles."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from scipy.special import logsumexp

from sbnn._float64 import as_key, float64
from sbnn.moves import Evaluate, Particles, mutate
from sbnn.priors import Hyperprior
from sbnn.problem import Problem, invariant_symmetry
from sbnn.tmcmc import TmcmcResult, covariance_factor, systematic_resample, tmcmc


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
) -> TmcmcResult:
    """log p(D|α) and particles of p(φ|D, α), by TMCMC from the ARD prior at α.

    Nothing is approximated but by the number of particles: this is what a surrogate is judged by.
    """
    prior = problem.prior_at(log_alpha)
    symmetry = invariant_symmetry(problem.symmetry, prior, jax.random.key(0))
    return tmcmc(
        problem.target(prior),
        key,
        n_particles=n_particles,
        move=move,
        max_moves=max_moves,
        symmetry=symmetry,
        evaluate=evaluate,
        on_stage=on_stage,
    )


class AscentStep(NamedTuple):
    """One step of the particle ascent."""

    log_evidence: float
    objective: float
    predicted_gain: float
    ess: float
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
    evaluate: Evaluate | None = None,
) -> Ascent:
    """Climb log p(D|α) + log p(log α) itself, carrying particles of p(φ|D, α) along.

    Each trust-region Newton step is shortened until the importance weights from α to α' keep an
    effective sample size of half the particles; these are reweighted, resampled and moved, and
    log mean(weights) is the evidence gained. Gradient components within two standard errors of
    zero are noise and are not followed. Ends when the step promises less than `tolerance` twice
    in a row.
    """
    key = as_key(key)
    seed = np.asarray(jax.random.key_data(key)).tolist()
    move = "random_walk" if move == "auto" else move
    log_alpha = np.asarray(log_alpha, dtype=float).copy()
    particles, log_evidence = start.particles, start.log_evidence
    ard = problem.ard
    scale = 2.38 / np.sqrt(particles.phi.shape[1]) if move == "random_walk" else 0.3
    steps: list[AscentStep] = []
    evaluations, quiet, radius = 0, 0, 4.0
    for index in range(max_steps):
        phi = particles.phi[:, ard]
        gradient, error, hessian = particle_derivatives(phi, log_alpha, hyperprior)
        significant = np.abs(gradient) > 2 * error
        followed = np.where(significant, gradient, 0.0)
        step = newton_step(followed, hessian, radius)
        gain = float(followed @ step + 0.5 * step @ hessian @ step)
        quiet = quiet + 1 if gain < tolerance else 0
        if quiet == 2:
            break
        step, log_weights = _shorten(phi, log_alpha, step)
        gained = float(logsumexp(log_weights) - np.log(len(phi)))
        log_evidence += gained
        log_alpha = log_alpha + step
        weights = np.exp(log_weights - logsumexp(log_weights))
        particles, info = _move(
            problem, log_alpha, particles, weights, scale, index, key, seed, move, max_moves,
            evaluate,
        )  # fmt: skip
        scale = info.scale
        evaluations += info.n_evaluations
        objective = log_evidence + float(hyperprior.log_density(log_alpha))
        ess = float(1.0 / (weights**2).sum())
        steps.append(
            AscentStep(log_evidence, objective, gain, ess, int(significant.sum()), log_alpha.copy())
        )
    converged = quiet == 2
    reason = (
        f"the next step promises less than {tolerance} nat"
        if converged
        else f"stopped after {max_steps} steps"
    )
    return Ascent(
        log_alpha, log_evidence, particles, tuple(steps), evaluations, converged, reason
    )


def _shorten(phi, log_alpha, step):
    """Halve the step until the weights p(φ|α')/p(φ|α) keep an ESS of N/2."""
    for _ in range(30):
        new = log_alpha + step
        # log w = Σᵢ ½ (λ' − λ) − ½ (α' − α) φ²
        change = np.exp(new) - np.exp(log_alpha)
        log_weights = 0.5 * step.sum() - 0.5 * (phi**2) @ change
        weights = np.exp(log_weights - log_weights.max())
        if weights.sum() ** 2 / (weights**2).sum() >= 0.5 * len(phi):
            break
        step = 0.5 * step
    return step, log_weights


def _move(
    problem, log_alpha, particles, weights, scale, index, key, seed, move, max_moves, evaluate
):
    prior = problem.prior_at(log_alpha)
    rng = np.random.default_rng([*seed, index])
    factor = covariance_factor(particles.phi, weights)
    chosen = systematic_resample(rng, weights)
    phi = particles.phi[chosen]
    symmetry = invariant_symmetry(problem.symmetry, prior, jax.random.key(0))
    if symmetry is not None:
        phi = symmetry.apply_random(rng, phi)
    return mutate(
        problem.target(prior),
        jax.random.fold_in(key, index),
        Particles(phi, particles.log_likelihood[chosen], chosen),
        1.0,
        factor,
        scale,
        move=move,
        max_moves=max_moves,
        evaluate=evaluate,
    )
