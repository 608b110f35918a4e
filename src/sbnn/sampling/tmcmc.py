"""Transitional MCMC: particles and log evidence of any problem, from prior to posterior."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import numpy as np
from scipy.special import logsumexp

from sbnn._core.float64 import float64
from sbnn._core.keys import as_key, derive_key, generator
from sbnn.problems.target import Target
from sbnn.sampling.checkpoints import NO_CHECKPOINT, Checkpoint
from sbnn.sampling.moves import Evaluate, Particles, chunked, mutate

# Correlation of the log-likelihood, after all moves of a stage, above which a walk is stuck: on a
# 2-2-1 net with inferred noise it stayed near 0.8 and the log evidence was off by 30 nats.
STUCK = 0.5


class RandomElement(Protocol):
    """Anything that sends particles to random points of their orbits."""

    def apply_random(self, rng: np.random.Generator, phi: np.ndarray) -> np.ndarray: ...


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


class TmcmcResult(NamedTuple):
    """Equally weighted posterior particles, the log evidence and how they came about."""

    particles: Particles
    log_evidence: float
    log_evidence_error: float
    stages: tuple[Stage, ...]
    n_evaluations: int
    n_rejected: int
    converged: bool
    reason: str


@float64
def tmcmc(
    target: Target,
    key,
    *,
    n_particles: int = 2000,
    move: str = "auto",
    max_moves: int = 400,
    symmetry: RandomElement | None = None,
    evaluate: Evaluate | None = None,
    on_stage: Callable[[Stage], None] | None = None,
    max_stages: int = 200,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> TmcmcResult:
    """Sample p(φ) p(D|φ) and estimate the log evidence by tempering β from 0 to 1.

    Each stage chooses the next β so that the weights p(D|φ)^Δβ have a coefficient of variation
    of 1 (an effective sample size of half the population), adds log mean(weights) to the log
    evidence, resamples, and moves the particles at the *new* β until they have decorrelated
    (`sbnn.moves.mutate`). The last stage moves them at β = 1.

    The reported error is √(Σ over stages of the variance of log mean(weights)), each variance
    taken over *families* of particles that share an ancestor in the stage before:
    Σ_families (Σ_i (w_i/w̄ − 1))² / N². Where moves forget the ancestor this is the usual CoV²/N;
    where they do not, siblings carry like weights and the error grows accordingly.

    Parameters
    ----------
    target : Target
    key : int or JAX key
    n_particles : int
    move : {"auto", "random_walk", "hmc"}
        "auto" is the random walk, which reaches a given error of the log evidence sooner on the
        problems measured (benchmarks/moves.py), until it gets stuck: when a stage ends at the cap
        with a correlation above one half, HMC takes over, where there are gradients.
    max_moves : int
        Cap of moves per stage.
    symmetry : Symmetry, optional
        Group that leaves prior and likelihood unchanged: after each resampling every particle is
        sent to a random point of its orbit, so that symmetric modes carry equal mass.
    evaluate : callable, optional
        Log-likelihood of (n, d) on the host, for black-box problems.
    on_stage : callable, optional
        Called with every finished Stage.
    checkpoint : Checkpoint
        Where every finished stage is kept, and from which the run continues. All randomness comes
        from `key` and the number of the stage, so no generator needs to be kept.
    """
    check_options(n_particles, move, max_moves, evaluate)
    automatic = move == "auto" and evaluate is None
    move = "random_walk" if move == "auto" else move
    key = as_key(key)
    key_start, key_moves = derive_key(key, 0), derive_key(key, 1)

    saved = checkpoint.read()
    if saved is None:
        particles = _prior_particles(target, key_start, n_particles, evaluate)
    else:
        particles, loop = Particles(**saved[0]), saved[1]
    n_evaluations = n_particles
    n_rejected = int((particles.log_likelihood == -np.inf).sum())
    beta, log_evidence, variance, converged = 0.0, 0.0, 0.0, True
    unit = 2.38 / np.sqrt(particles.phi.shape[1])
    scale = unit if move == "random_walk" else 0.3
    stages: list[Stage] = []
    if saved is not None:
        stages = [Stage(*values) for values in loop["stages"]]
        beta, log_evidence, variance, converged = loop["sums"]
        n_evaluations, n_rejected, scale, move, max_moves = loop["moves"]
    while beta < 1.0 or not stages:
        if len(stages) == max_stages:
            converged = False
            break
        new_beta = next_beta(particles.log_likelihood, beta)
        log_weights = temper(particles.log_likelihood, new_beta - beta)
        log_evidence += float(logsumexp(log_weights) - np.log(n_particles))
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        stage_variance = _family_variance(weights, particles.ancestor)
        variance += stage_variance

        rng = generator(key, 2, len(stages))
        factor = split_factors(particles.phi, weights)
        chosen = systematic_resample(rng, weights)
        phi, log_likelihood = particles.phi[chosen], particles.log_likelihood[chosen]
        if symmetry is not None:
            phi = symmetry.apply_random(rng, phi)
        particles, info = mutate(
            target,
            derive_key(key_moves, len(stages)),
            Particles(phi, log_likelihood, chosen),
            new_beta,
            factor,
            scale,
            move=move,
            max_moves=max_moves,
            evaluate=evaluate,
        )
        if automatic and move == "random_walk" and info.correlation > STUCK:
            # The walk is too slow for this posterior; gradients carry this stage and the rest on.
            move, scale, max_moves = "hmc", 0.3, max(2, max_moves // 5)
            particles, more = mutate(
                target,
                derive_key(key_moves, max_stages + len(stages)),
                particles,
                new_beta,
                factor,
                scale,
                move=move,
                max_moves=max_moves,
            )
            info = more._replace(
                n_moves=info.n_moves + more.n_moves,
                n_evaluations=info.n_evaluations + more.n_evaluations,
                n_rejected=info.n_rejected + more.n_rejected,
            )
        beta, scale = new_beta, info.scale
        converged &= info.decorrelated
        n_evaluations += info.n_evaluations
        n_rejected += info.n_rejected
        stages.append(
            Stage(
                beta,
                float(1.0 / (weights**2).sum()),
                info.acceptance,
                info.scale / unit,
                info.n_moves,
                info.n_evaluations,
                info.correlation,
                log_evidence,
                stage_variance,
            )
        )
        loop = {
            "stages": stages,
            "sums": [beta, log_evidence, variance, converged],
            "moves": [n_evaluations, n_rejected, scale, move, max_moves],
        }
        checkpoint.write(particles._asdict(), loop)
        if on_stage is not None:
            on_stage(stages[-1])
    if beta < 1.0:
        reason = f"stopped at β = {beta:.3g} after {max_stages} stages"
    elif converged:
        reason = "reached β = 1; particles decorrelated in every stage"
    else:
        slow = sum(s.correlation > 0.2 for s in stages)
        worst = max(s.correlation for s in stages)
        reason = (
            f"reached β = 1, but particles had not decorrelated after all moves of {slow} "
            f"stage{'' if slow == 1 else 's'} (correlation up to {worst:.2f})"
        )
    return TmcmcResult(
        particles,
        log_evidence,
        float(np.sqrt(variance)),
        tuple(stages),
        n_evaluations,
        n_rejected,
        converged,
        reason,
    )


def _prior_particles(target: Target, key, n_particles: int, evaluate) -> Particles:
    phi = target.prior.sample(key, n_particles)
    log_likelihood = evaluate_all(target, phi, evaluate)
    if (log_likelihood == -np.inf).all():
        raise ValueError(
            "The log-likelihood is NaN or −inf at every one of the "
            f"{n_particles} prior draws; check the function, or narrow the priors."
        )
    return Particles(phi, log_likelihood, np.arange(n_particles))


def check_options(n_particles: int, move: str, max_moves: int, evaluate) -> None:
    """Refuse settings that cannot work, before anything runs."""
    whole = isinstance(n_particles, int | np.integer) and not isinstance(n_particles, bool)
    if not whole or n_particles < 50:
        raise ValueError(f"`n_particles` must be a whole number of at least 50; got {n_particles}.")
    if move not in ("auto", "random_walk", "hmc"):
        raise ValueError(f"`move` must be 'auto', 'random_walk' or 'hmc'; got {move!r}.")
    if move == "hmc" and evaluate is not None:
        raise ValueError("`move`='hmc' needs gradients; a black-box likelihood has none.")
    if max_moves < 1:
        raise ValueError(f"`max_moves` must be at least 1; got {max_moves}.")


def evaluate_all(target: Target, phi: np.ndarray, evaluate: Evaluate | None) -> np.ndarray:
    """Log-likelihood of every row."""
    if evaluate is not None:
        return evaluate(phi)
    (values,) = chunked(_evaluate_chunk, phi, (), (target,))
    return values


@jax.jit
def _evaluate_chunk(target, phi):
    return (target.evaluate_rapidly(phi),)


def temper(log_likelihood: np.ndarray, delta: float) -> np.ndarray:
    """Δβ · log p(D|φ), with −inf kept at Δβ = 0: where the likelihood is zero, it stays zero."""
    possible = log_likelihood > -np.inf
    if possible.all():
        return delta * log_likelihood
    out = np.full_like(log_likelihood, -np.inf)
    out[possible] = delta * log_likelihood[possible]
    return out


def next_beta(log_likelihood: np.ndarray, beta: float, target_cov: float = 1.0) -> float:
    """The largest β' ≤ 1 at which the weights p(D|φ)^(β'−β) have a CoV of at most `target_cov`.

    If more than half of the particles have zero likelihood, no β' > β does; then β' = β, and the
    stage only removes them.
    """

    def cov(new):
        log_weights = temper(log_likelihood, new - beta)
        weights = np.exp(log_weights - log_weights.max())
        mean = weights.mean()
        return np.sqrt(((weights - mean) ** 2).mean()) / mean

    if cov(1.0) <= target_cov:
        return 1.0
    if cov(beta) >= target_cov:
        return beta
    low, high = beta, 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if cov(middle) > target_cov:
            high = middle
        else:
            low = middle
    # A step of zero would never end: the smallest representable one is taken instead.
    return low if low > beta else high


def systematic_resample(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    """Indices drawn by systematic resampling: row i appears ⌊N wᵢ⌋ or ⌈N wᵢ⌉ times."""
    n = len(weights)
    points = (rng.uniform() + np.arange(n)) / n
    return np.minimum(np.searchsorted(np.cumsum(weights), points), n - 1)


def split_factors(phi: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Proposal factors (2, d, d) for the two halves of the population, each from the other half.

    A covariance estimated from the very particles that it then moves biases the log evidence by
    O(d²/N): +0.34 for 1,000 particles in 30 dimensions, where its error is 0.14. From the other
    half it does not. Populations too small for two estimates share one.
    """
    n, d = phi.shape
    first = np.arange(n) < (n + 1) // 2
    parts = [weights * ~first, weights * first]
    if n < 8 * d or any(p.sum() ** 2 <= 2 * d * (p**2).sum() for p in parts):
        parts = [weights, weights]  # fewer than 2d effective particles in one of the halves
    return np.stack([covariance_factor(phi, p / p.sum()) for p in parts])


def covariance_factor(phi: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Cholesky factor of the weighted covariance, made positive definite on each axis's scale."""
    mean = weights @ phi
    centred = phi - mean
    covariance = (centred * weights[:, None]).T @ centred
    spread = np.sqrt(np.diag(covariance))
    spread = np.where(spread > 0, spread, np.maximum(1e-8, 1e-8 * np.abs(mean)))
    correlation = covariance / np.outer(spread, spread)
    for jitter in (1e-10, 1e-6, 1e-2, 1.0):
        try:
            factor = np.linalg.cholesky(correlation + jitter * np.eye(len(spread)))
            return spread[:, None] * factor
        except np.linalg.LinAlgError:
            continue
    return np.diag(spread)


def _family_variance(weights: np.ndarray, ancestor: np.ndarray) -> float:
    """Variance of log mean(w), taking particles of one ancestor as one observation."""
    sums = np.bincount(ancestor, weights=weights - 1.0 / len(weights), minlength=len(weights))
    return float((sums**2).sum())
