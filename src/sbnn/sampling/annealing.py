"""Draws that know how uncertain log α is: a population at an optimum, heated and cooled again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sbnn._core.keys import generator
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem
from sbnn.sampling.checkpoints import NO_CHECKPOINT, Checkpoint
from sbnn.sampling.joint import (
    LOG_ALPHA_RANGE,
    join_log_alpha,
    joint_evaluator,
    joint_symmetry,
    joint_target,
    redraw_log_alpha,
    to_parameters,
)
from sbnn.sampling.moves import Evaluate, prior_log_density
from sbnn.sampling.tmcmc import (
    covariance_factor,
    evaluate_all,
    next_beta,
    systematic_resample,
    temper,
)

# At this β a neuron that was pruned comes back, and leaves again, within a few blocks of moves.
HOT = 0.05
# A block is `WALKS` steps of φ at fixed α and `RESCALINGS` changes of log α at fixed z.
WALKS, RESCALINGS = 5, 15
HOT_BLOCKS, COOLING_BLOCKS, LAST_BLOCKS = 15, 8, 10
RESCALED, RESCALING = 4, 4.0  # at most so many precisions at a time, log α by so much (std)
ACCEPTANCE = 0.25


def heat_and_cool(
    problem: Problem,
    hyperprior: Hyperprior,
    phi: np.ndarray,
    key,
    evaluate: Evaluate | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> tuple[np.ndarray, np.ndarray, int]:
    """From draws φ of the posterior at an optimum α* to draws of p(φ, log α|D).

    Local moves at β = 1 take very long to bring a pruned neuron back. So the population is moved
    at β = `HOT`, where that is easy, and brought back to β = 1 by tempering with resampling, as in
    TMCMC. A block of moves has three parts, each of which keeps p(φ, log α) p(D|φ)^β:

    - log α from p(log α|φ), without an evaluation;
    - random walks of φ at fixed α, shaped by the precision βH + diag(α), where H is what the data
      add at the optimum;
    - log α of a few parameters up or down by the same amount, φ = z α^(−½) following at fixed z.
      One such step prunes a parameter or brings it back, and moves along the ridges on which
      weights grow and shrink together.

    No prior is wider than the box in which the likelihood was sampled: log α starts at −2 log of
    its half-width. Without that, a neuron whose step lies between or beyond the data may have any
    weight, and a single draw in thousands decides mean and standard deviation of a prediction.

    Returns (z, log α) of shape (n, d + n_α), the log-likelihood, and the number of evaluations.
    """
    symmetry = None if joint_symmetry(problem) is None else problem.symmetry
    flips = None if symmetry is None else replace(symmetry, permute=False)
    folded = phi if flips is None else flips.fold(phi)
    population = _Population(problem, hyperprior, folded, evaluate)
    stage, beta = 0, HOT
    saved = checkpoint.read()
    if saved is None:
        population.start(generator(key, 0), folded)
    else:
        stage, beta = population.restore(saved)
    while stage == 0 or beta < 1.0:
        rng = generator(key, 1, stage)
        if stage > 0:
            beta = population.cool(rng, beta)
        n_blocks = HOT_BLOCKS if stage == 0 else COOLING_BLOCKS if beta < 1.0 else LAST_BLOCKS
        for _ in range(n_blocks):
            population.block(rng, beta)
        stage += 1
        checkpoint.write(*population.state(stage, beta))
    joint = population.joint
    if flips is not None:
        d = problem.n_parameters
        signed = flips.apply_random(generator(key, 2), joint[:, :d])
        joint = np.concatenate([signed, joint[:, d:]], axis=1)
    log_likelihood, n_evaluations = population.log_likelihood, population.n_evaluations
    if evaluate is None:  # the walks may have used a rapid, rounded likelihood
        log_likelihood = problem.log_likelihood(np.asarray(to_parameters(joint, problem.ard)))
        n_evaluations += len(joint)
    return joint, log_likelihood, n_evaluations


class _Population:
    """Particles (z, log α), their log-likelihoods, and the moves."""

    def __init__(self, problem: Problem, hyperprior: Hyperprior, phi, evaluate):
        self.problem, self.hyperprior = problem, hyperprior
        self.target = joint_target(problem, hyperprior)
        self.evaluate = joint_evaluator(problem, evaluate)
        self.information = _data_information(phi, problem.ard)
        self.low = lowest_log_alpha(problem)
        self.scale, self.n_evaluations = 0.3, 0

    def start(self, rng, phi) -> None:
        self.joint = join_log_alpha(rng, self.problem, phi, self.hyperprior, self.low)
        self.log_likelihood = evaluate_all(self.target, self.joint, self.evaluate)
        self.n_evaluations += len(phi)

    def state(self, stage: int, beta: float):
        arrays = {"joint": self.joint, "log_likelihood": self.log_likelihood}
        return arrays, {"loop": [stage, beta, self.scale, self.n_evaluations]}

    def restore(self, saved) -> tuple[int, float]:
        arrays, values = saved
        self.joint, self.log_likelihood = arrays["joint"], arrays["log_likelihood"]
        stage, beta, self.scale, self.n_evaluations = values["loop"]
        return stage, beta

    def cool(self, rng, beta: float) -> float:
        """The next β, as far as half of the population still counts; resampled to it."""
        new = next_beta(self.log_likelihood, beta)
        log_weights = temper(self.log_likelihood, new - beta)
        weights = np.exp(log_weights - log_weights.max())
        chosen = systematic_resample(rng, weights / weights.sum())
        self.joint, self.log_likelihood = self.joint[chosen], self.log_likelihood[chosen]
        return new

    def block(self, rng, beta: float) -> None:
        d, ard = self.problem.n_parameters, self.problem.ard
        self.joint = redraw_log_alpha(rng, self.problem, self.joint, self.hyperprior, self.low)
        self.log_prior = np.asarray(prior_log_density(self.target.prior, self.joint))
        n, n_alpha = len(self.joint), int(ard.sum())
        factor = self._walk_factor(beta)
        accepted = 0.0
        for _ in range(WALKS):
            step = np.zeros_like(self.joint)
            step[:, :d] = np.einsum("nij,nj->ni", factor, rng.standard_normal((n, d)))
            accepted += self._metropolis(rng, beta, self.joint + self.scale * step) / WALKS
        self.scale = float(self.scale * np.exp(accepted - ACCEPTANCE))
        for _ in range(RESCALINGS):
            step = np.zeros_like(self.joint)
            sign = rng.choice([-1.0, 1.0], (n, RESCALED))
            which = rng.integers(n_alpha, size=(n, RESCALED))
            used = np.arange(RESCALED) < rng.integers(1, RESCALED + 1, size=(n, 1))
            np.put_along_axis(step[:, d:], which, np.where(used, sign, 0.0), axis=1)
            step *= RESCALING * rng.standard_normal((n, 1))
            self._metropolis(rng, beta, self.joint + step)

    def _walk_factor(self, beta: float) -> np.ndarray:
        """(n, d, d): W with W Wᵀ the inverse of βH + diag(α), in the coordinates z."""
        d, ard = self.problem.n_parameters, self.problem.ard
        unit = np.ones((len(self.joint), d))
        unit[:, ard] = np.exp(-0.5 * self.joint[:, d:])  # φ per z
        precision = beta * self.information * unit[:, :, None] * unit[:, None, :]
        precision[:, ard, ard] += 1.0
        return np.linalg.inv(np.linalg.cholesky(precision)).transpose(0, 2, 1)

    def _metropolis(self, rng, beta: float, proposal: np.ndarray) -> float:
        """Accept or not each row of a symmetric proposal; returns the accepted share."""
        new_prior = np.asarray(prior_log_density(self.target.prior, proposal))
        inside = (new_prior > -np.inf) & (proposal[:, self.problem.n_parameters :] > self.low).all(
            1
        )
        if self.evaluate is None:
            new = evaluate_all(self.target, proposal, None)
        else:
            new = np.full(len(proposal), -np.inf)
            new[inside] = self.evaluate(proposal[inside])  # outside the prior nothing needs a run
        possible = inside & (new > -np.inf)
        gain = np.where(possible, new, 0.0) - self.log_likelihood
        ratio = beta * gain + np.where(inside, new_prior, 0.0) - self.log_prior
        accept = possible & (np.log(rng.random(len(proposal))) < ratio)
        self.joint = np.where(accept[:, None], proposal, self.joint)
        self.log_likelihood = np.where(accept, new, self.log_likelihood)
        self.log_prior = np.where(accept, new_prior, self.log_prior)
        self.n_evaluations += len(proposal)
        return float(accept.mean())


def lowest_log_alpha(problem: Problem) -> np.ndarray:
    """Per ARD parameter: the log precision of a prior as wide as the half-width of its box."""
    boxes = [p for p, a in zip(problem.priors, problem.ard) if a]
    half = np.array([0.5 * (p.high - p.low) for p in boxes])  # type: ignore[union-attr]
    return np.maximum(LOG_ALPHA_RANGE[0], -2 * np.log(half))


def _data_information(phi: np.ndarray, ard: np.ndarray) -> np.ndarray:
    """H: inverse covariance of the draws less the prior's share; at an optimum αE[φ²] = 1."""
    factor = covariance_factor(phi, np.full(len(phi), 1.0 / len(phi)))
    precision = np.linalg.inv(factor @ factor.T)
    prior = np.where(ard, 1.0 / np.maximum((phi**2).mean(axis=0), 1e-300), 0.0)
    spread = 1.0 / np.sqrt(np.diag(precision))
    scaled = (precision - np.diag(prior)) * np.outer(spread, spread)
    values, vectors = np.linalg.eigh(scaled)
    scaled = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    return scaled / np.outer(spread, spread)
