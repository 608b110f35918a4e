"""Laplace: modes and curvature of a problem, and the sparse optimum of its Laplace evidence."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.float64 import float64
from sbnn.evidence.mixture import InformationMixture
from sbnn.evidence.newton import maximise
from sbnn.likelihoods.gaussian import GaussianLikelihood
from sbnn.priors import Hyperprior
from sbnn.problems.network import Network
from sbnn.problems.network_regression import NetworkProblem
from sbnn.problems.problem import Problem, prunable_units
from sbnn.problems.target import Target

PRUNED = 8.0  # log α tried for a neuron that is to go; the optimiser then finds its own


class Mode(NamedTuple):
    """A maximum of p(D|φ) p(φ|α) with the curvature there."""

    phi: np.ndarray
    log_alpha: np.ndarray
    log_likelihood: float  # times the known prior
    precision: np.ndarray  # Λ, of likelihood × known prior
    log_evidence: float  # Laplace, of this one mode
    converged: bool


@float64
def curvatures(problem: Problem, phi: np.ndarray) -> np.ndarray:
    """Λ = −∂² log(likelihood × known prior) at each φ (n, d), positive semi-definite: (n, d, d).

    Gauss–Newton for networks and for models with Gaussian noise; for other problems the Hessian
    with negative eigenvalues set to zero, which no maximum has.
    """
    target = problem.target()
    phi = np.atleast_2d(phi)
    if isinstance(problem, NetworkProblem):
        d, n = problem.n_parameters, problem.network.n_parameters
        noise = np.arange(n, d)
        blocks = np.zeros((len(phi), d, d))
        blocks[:, :n, :n] = _gauss_newton(problem.network, phi, problem.x, problem.noise_of(phi))
        blocks[:, noise, noise] = 2.0 * len(problem.x)  # −E ∂² log p(D|φ) / ∂(log σ)²
    elif isinstance(problem.function, GaussianLikelihood):
        blocks = _information(problem.function, problem.data, phi)
    else:
        blocks = _positive_hessians(target.log_likelihood, target.data, phi)
    free = ~problem.ard
    if free.any():
        prior = np.asarray(_prior_curvatures(target.prior, phi))
        prior = np.where(np.isfinite(prior), np.maximum(prior, 0.0), 0.0)
        blocks = blocks + np.where(np.outer(free, free), prior, 0.0)
    return np.asarray(blocks)


@jax.jit
def _prior_curvatures(prior, phi):
    return -jax.vmap(jax.hessian(prior.log_density))(phi)


@functools.partial(jax.jit, static_argnames="network")
def _gauss_newton(network: Network, phi, x, sigma):
    def one(theta, s):
        jacobian = network.jacobian(theta[: network.n_parameters], x) / s[:, None]
        return jnp.einsum("nki,nkj->ij", jacobian, jacobian)

    return jax.lax.map(lambda pair: one(*pair), (phi, sigma))


@functools.partial(jax.jit, static_argnums=0)
def _information(likelihood: GaussianLikelihood, data, phi):
    return jax.lax.map(lambda theta: likelihood.information(theta, data), phi)


@functools.partial(jax.jit, static_argnums=0)
def _positive_hessians(log_likelihood, data, phi):
    def one(theta):
        hessian = -jax.hessian(lambda t: log_likelihood(data, t[None])[0])(theta)
        values, vectors = jnp.linalg.eigh(0.5 * (hessian + hessian.T))
        return (vectors * jnp.maximum(values, 0.0)) @ vectors.T

    return jax.lax.map(one, phi)


@jax.jit
def _value_and_grad(target: Target, known, phi):
    def value(theta):
        # The uniform box of ARD parameters is no part of the likelihood × known prior.
        inside = jnp.where(known, theta, 0.0)
        return target.evaluate(theta[None])[0] + jnp.where(
            known.any(), target.prior.log_density(inside), 0.0
        )

    return jax.value_and_grad(value)(phi)


def _log_known(problem: Problem, target: Target, phi: np.ndarray) -> tuple[float, np.ndarray]:
    value, gradient = _value_and_grad(target, ~problem.ard, phi)
    # At φ_ARD = 0 the box adds its constant log density; take it out again.
    constant = -problem.log_box_volume() if (~problem.ard).any() else 0.0
    return float(value) - constant, np.asarray(gradient)


def climb(problem: Problem, log_alpha: np.ndarray, start: np.ndarray, max_steps: int = 200) -> Mode:
    """Levenberg–Marquardt to a maximum of log p(D|φ) + log p(φ|α), and the Laplace evidence there.

    log p(D|α) ≈ log p(D|φ*) − ½ φ*ᵀAφ* + ½ Σ log α − ½ log|Λ + A|, with (2π)^½ for each
    parameter without ARD, and the known prior's density counted with the likelihood.
    """
    ard = problem.ard
    target = problem.target()
    prior = np.zeros(problem.n_parameters)
    prior[ard] = np.exp(log_alpha)

    def at(phi):
        value, gradient = _log_known(problem, target, phi)
        return value, value - 0.5 * (prior * phi**2).sum(), gradient - prior * phi

    phi = np.asarray(start, dtype=float).copy()
    likelihood, value, gradient = at(phi)
    if not np.isfinite(value):
        raise ValueError("The log-likelihood is not finite at the start of the climb.")
    precision = curvatures(problem, phi)[0]
    damping, converged = 1e-3, False
    for _ in range(max_steps):
        full = precision + np.diag(prior)
        diagonal = np.maximum(np.diag(full), 1e-12)
        if np.linalg.slogdet(full)[0] <= 0:
            break  # nothing holds a parameter; said below
        step = np.linalg.solve(full + damping * np.diag(diagonal), gradient)
        if float(gradient @ step) < 1e-7:
            # So near, the undamped step is exact to second order (and at once for linear models).
            new = phi + np.linalg.solve(full, gradient)
            new_likelihood, new_value, _ = at(new)
            if new_value >= value:
                phi, likelihood, value = new, new_likelihood, new_value
                precision = curvatures(problem, phi)[0]
            converged = True
            break
        new = phi + step
        new_likelihood, new_value, new_gradient = at(new)
        if np.isfinite(new_value) and new_value > value:
            phi, likelihood, value, gradient = new, new_likelihood, new_value, new_gradient
            precision = curvatures(problem, phi)[0]
            damping = max(damping / 5.0, 1e-12)
        else:
            damping *= 4.0
            if damping > 1e12:
                break
    sign, log_det = np.linalg.slogdet(precision + np.diag(prior))
    evidence = (
        value
        + 0.5 * np.sum(log_alpha)
        - 0.5 * log_det
        + 0.5 * (problem.n_parameters - len(log_alpha)) * math.log(2 * math.pi)
    )
    if sign <= 0:
        raise ValueError(
            "The posterior precision is singular; a parameter without ARD has neither data nor a "
            "curved prior to hold it."
        )
    return Mode(
        phi, np.asarray(log_alpha, float), likelihood, precision, float(evidence), converged
    )


@float64
def polish(problem: Problem, mode: Mode, max_steps: int = 50) -> Mode:
    """The mode to more digits: undamped steps while they shrink.

    So near a maximum the value changes by no more than its rounding error. The decrement
    gᵀ(Λ + A)⁻¹g, the square of the next step in standard deviations, still tells better from worse.
    """
    target = problem.target()
    prior = np.zeros(problem.n_parameters)
    prior[problem.ard] = np.exp(mode.log_alpha)

    def at(phi):
        likelihood, gradient = _log_known(problem, target, phi)
        precision = curvatures(problem, phi)[0]
        step = np.linalg.solve(precision + np.diag(prior), gradient - prior * phi)
        return phi, likelihood, precision, step, float((gradient - prior * phi) @ step)

    here = at(mode.phi)
    for _ in range(max_steps):
        new = at(here[0] + here[3])
        if not (np.isfinite(new[1]) and 0 <= new[4] < here[4]):
            break
        here = new
    return mode._replace(phi=here[0], log_likelihood=here[1], precision=here[2])


def random_start(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Weights of unit size for networks (1/√inputs), a draw of the priors otherwise."""
    if isinstance(problem, NetworkProblem):
        network = problem.network
        spread = np.maximum(problem.x.std(axis=0), 1e-12)
        phi = rng.normal(size=problem.n_parameters)
        for layer, (weights, _) in enumerate(network.slices):
            phi[weights] /= math.sqrt(network.sizes[layer])
        first = network.slices[0][0]
        phi[first] = (phi[first].reshape(-1, network.n_inputs) * 3.0 / spread).ravel()
        phi[network.slices[0][1]] *= 3.0
        if problem.noise_std is None:
            phi[network.n_parameters :] = np.log(problem.y.std(axis=0) / 2 + 1e-12)
        return phi
    key = int(rng.integers(2**31))
    return problem.known_prior().sample(key, 1)[0] * np.where(problem.ard, 0.25, 1.0)


def box_log_alpha(problem: Problem) -> np.ndarray:
    """log α of the Gaussian with the variance of each ARD parameter's uniform box, width²/12."""
    widths = [p.high - p.low for p, a in zip(problem.priors, problem.ard) if a]  # type: ignore[union-attr]
    return math.log(12.0) - 2.0 * np.log(np.array(widths))


@float64
def find_modes(
    problem: Problem, log_alpha: np.ndarray, rng: np.random.Generator, n_starts: int
) -> list[Mode]:
    """Modes from random starts, best Laplace evidence first, each once.

    Two of the same evidence are one mode, found twice or as its mirror image.
    """
    modes = []
    for _ in range(n_starts):
        start = random_start(problem, rng)
        if np.isfinite(problem.log_likelihood(start)):
            modes.append(climb(problem, log_alpha, start))
    if not modes:
        raise ValueError("No start had a finite log-likelihood; check the function and the priors.")
    modes.sort(key=lambda m: -m.log_evidence)
    evidences = np.array([m.log_evidence for m in modes])
    distinct = np.append(True, -np.diff(evidences) > 1e-5)
    return [m for m, kept in zip(modes, distinct) if kept]


class SparseMode(NamedTuple):
    """A local optimum of the Laplace evidence over log α, with its path."""

    mode: Mode
    objective: float
    history: tuple[tuple[float, np.ndarray], ...]  # (objective, log α) per iteration
    converged: bool


def relinearise(
    problem: Problem, mode: Mode, hyperprior: Hyperprior, max_iterations: int = 60
) -> SparseMode:
    """Climb the Laplace evidence over log α, re-linearised at the mode that each α moves.

    At fixed linearisation the best α is found in closed form (one information kernel). The step
    towards it is taken only as far as the evidence *at the new mode* rises: the plain iteration
    oscillates between two optima.
    """

    def objective(m: Mode) -> float:
        return m.log_evidence + float(
            (hyperprior.shape * m.log_alpha - hyperprior.rate * np.exp(m.log_alpha)).sum()
        )

    value = objective(mode)
    history = [(value, mode.log_alpha)]
    converged = False
    for _ in range(max_iterations):
        kernel = information_kernel(problem, mode)
        goal = maximise(mode.log_alpha, kernel, problem.ard, hyperprior, tolerance=1e-7).log_alpha
        step = np.clip(goal - mode.log_alpha, -4.0, 4.0)
        for _ in range(8):
            new = climb(problem, mode.log_alpha + step, mode.phi)
            if objective(new) > value:
                break
            step = 0.5 * step
        else:
            converged = True
            break
        gain = objective(new) - value
        mode, value = new, objective(new)
        history.append((value, mode.log_alpha))
        if gain < 1e-4:
            converged = True
            break
    return SparseMode(mode, value, tuple(history), converged)


def information_kernel(problem: Problem, mode: Mode) -> InformationMixture:
    """The likelihood × known prior around a mode as one quadratic kernel.

    At a mode under the prior the gradient of the likelihood is g = Aφ*, not zero, so
    log p ≈ log p(φ*) + gᵀ(φ − φ*) − ½ (φ − φ*)ᵀΛ(φ − φ*): shift η = Λφ* + g.
    """
    gradient = np.zeros(problem.n_parameters)
    gradient[problem.ard] = np.exp(mode.log_alpha) * mode.phi[problem.ard]
    shift = mode.precision @ mode.phi + gradient
    constant = mode.log_likelihood - gradient @ mode.phi
    constant -= 0.5 * mode.phi @ mode.precision @ mode.phi
    return InformationMixture(np.array([constant]), shift[None], mode.precision[None])


@float64
def sparse_modes(
    problem: Problem, hyperprior: Hyperprior, rng: np.random.Generator, n_starts: int
) -> list[SparseMode]:
    """Optima of the Laplace evidence from several modes, neurons tried away, best first."""
    flat = np.full(int(problem.ard.sum()), -2.0)
    found = [relinearise(problem, m, hyperprior) for m in find_modes(problem, flat, rng, n_starts)]
    found.sort(key=lambda s: -s.objective)
    best = found[0]
    improved = True
    while improved:
        improved = False
        for _, unit in prunable_units(problem):
            log_alpha = best.mode.log_alpha.copy()
            if (log_alpha[unit] >= PRUNED).all():
                continue
            log_alpha[unit] = np.maximum(log_alpha[unit], PRUNED)
            start = best.mode.phi.copy()
            start[np.flatnonzero(problem.ard)[unit]] = 0.0
            trial = relinearise(problem, climb(problem, log_alpha, start), hyperprior)
            if trial.objective > best.objective + 1e-3:
                best, improved = trial, True
    best = best._replace(mode=_settle(problem, best.mode, hyperprior))
    return [best, *found[1:]] if best.mode.phi is found[0].mode.phi else [best, *found]


def _settle(problem: Problem, mode: Mode, hyperprior: Hyperprior) -> Mode:
    """Give pruned parameters the precision at which one of unit variance would come to rest.

    A dead neuron has no curvature and zero mean: its Laplace evidence is flat in α, and any α is
    as good. Left at α = 1 its weights would be drawn from N(0, 1) and the draws would overfit
    what the mode does not. ½/(1 + α) = r α is the study's own choice (12.1534 for rate e⁻²⁵).
    """
    prior = np.exp(mode.log_alpha)
    full = mode.precision.copy()
    at = np.flatnonzero(problem.ard)
    full[at, at] += prior
    gamma = 1.0 - prior * np.diag(np.linalg.inv(full))[at]
    dead = (gamma < 1e-3) & (prior * mode.phi[at] ** 2 < 1e-3)
    if not dead.any() or hyperprior.rate <= 0:
        return mode
    rest = 0.5 * (np.sqrt(1.0 + 2.0 / hyperprior.rate) - 1.0)  # α (1 + α) = 1/(2 r)
    log_alpha = np.where(dead, np.maximum(mode.log_alpha, np.log(rest)), mode.log_alpha)
    phi = mode.phi.copy()
    phi[at[dead]] = 0.0
    return climb(problem, log_alpha, phi)
