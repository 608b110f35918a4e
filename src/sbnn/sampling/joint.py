"""The joint problem over (φ, log α): hierarchical Bayes in non-centred coordinates."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.keys import generator
from sbnn.priors import Custom, Hyperprior, JointPrior, Normal
from sbnn.problems.problem import Problem
from sbnn.problems.symmetry import Symmetry
from sbnn.problems.target import Target

# log α is truncated to this range, over which the default hyperprior is flat up to the cut-off by
# its rate: an untruncated Gamma with shape e⁻¹⁰ puts nearly all of its mass at log α < −1000.
LOG_ALPHA_RANGE = (-14.0, 14.0)


@functools.lru_cache(maxsize=32)
def log_alpha_prior(hyperprior: Hyperprior) -> Custom:
    """The hyperprior as a normalised density of log α on `LOG_ALPHA_RANGE`, with a sampler."""
    low, high = LOG_ALPHA_RANGE
    grid = np.linspace(low, high, 20_001)
    log_values = hyperprior.shape * grid - hyperprior.rate * np.exp(grid)
    values = np.exp(log_values - log_values.max())
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (values[1:] + values[:-1]))])
    cumulative *= grid[1] - grid[0]
    log_mass = float(np.log(cumulative[-1]) + log_values.max())
    quantiles = cumulative / cumulative[-1]

    def density(z: jax.Array) -> jax.Array:
        inside = (z >= low) & (z <= high)
        value = hyperprior.shape * z - hyperprior.rate * jnp.exp(jnp.clip(z, low, high)) - log_mass
        return jnp.where(inside, value, -jnp.inf)

    def sampler(key: Any, shape: tuple[int, ...]) -> np.ndarray:
        return np.interp(generator(key).uniform(size=shape), quantiles, grid)

    return Custom(density, sampler, support=(low, high))


def to_parameters(joint: Any, ard: np.ndarray) -> jax.Array:
    """(…, d + n_α) → φ of shape (…, d): φ = z exp(−½ log α) where ARD (non-centred).

    Parameters
    ----------
    joint : array, shape (..., d + n_α)
        (z, log α).
    ard : ndarray of bool, shape (d,)

    Returns
    -------
    Array, shape (..., d)
    """
    d = len(ard)
    positions = np.full(d, 0)
    positions[ard] = d + np.arange(int(ard.sum()))
    log_alpha = jnp.where(ard, joint[..., positions], 0.0)
    return joint[..., :d] * jnp.exp(-0.5 * log_alpha)


def join_log_alpha(
    rng: np.random.Generator,
    problem: Problem,
    phi: np.ndarray,
    hyperprior: Hyperprior,
    low: float | np.ndarray = LOG_ALPHA_RANGE[0],
) -> np.ndarray:
    """(z, log α) with log α drawn from p(log α|φ), truncated to the range, or from `low` on.

    Parameters
    ----------
    rng : numpy.random.Generator
    problem : Problem
    phi : ndarray, shape (n, d)
    hyperprior : Hyperprior
    low : float or ndarray, shape (n_α,)
        Lower bounds of log α.

    Returns
    -------
    ndarray, shape (n, d + n_α)
    """
    high = LOG_ALPHA_RANGE[1]
    log_alpha = _draw_log_alpha(rng, phi[:, problem.ard], hyperprior)
    return _join(problem, phi, np.clip(log_alpha, low + 1e-3, high - 1e-3))


def redraw_log_alpha(
    rng: np.random.Generator,
    problem: Problem,
    joint: np.ndarray,
    hyperprior: Hyperprior,
    low: float | np.ndarray = LOG_ALPHA_RANGE[0],
) -> np.ndarray:
    """(z, log α) with log α redrawn from p(log α|φ) at the same φ.

    A draw outside the range is rejected and the old value stays, which leaves the truncated density
    invariant.
    """
    high = LOG_ALPHA_RANGE[1]
    phi = np.asarray(to_parameters(joint, problem.ard))
    log_alpha = _draw_log_alpha(rng, phi[:, problem.ard], hyperprior)
    inside = (log_alpha > low) & (log_alpha < high)
    return _join(problem, phi, np.where(inside, log_alpha, joint[:, problem.n_parameters :]))


def _draw_log_alpha(
    rng: np.random.Generator, values: np.ndarray, hyperprior: Hyperprior
) -> np.ndarray:
    """α|φ ~ Gamma(s + ½, r + ½φ²)."""
    alpha = rng.gamma(hyperprior.shape + 0.5, 1.0, size=values.shape)
    alpha /= hyperprior.rate + 0.5 * values**2
    return np.log(np.maximum(alpha, 1e-300))


def _join(problem: Problem, phi: np.ndarray, log_alpha: np.ndarray) -> np.ndarray:
    z = phi.copy()
    z[:, problem.ard] *= np.exp(0.5 * log_alpha)
    return np.concatenate([z, log_alpha], axis=1)


@functools.lru_cache(maxsize=64)
def _joint_log_likelihood(log_likelihood: Callable, ard: tuple[bool, ...]) -> Callable:
    mask = np.array(ard)
    return lambda data, joint: log_likelihood(data, to_parameters(joint, mask))


def joint_target(problem: Problem, hyperprior: Hyperprior) -> Target:
    """Prior N(0, 1) on z, the known priors, and the hyperprior on log α; likelihood at φ(z, log α).

    Non-centred: a funnel in (φ, log α) is a plain product in (z, log α) wherever the data say
    little, which is where the centred form cannot be sampled.

    Parameters
    ----------
    problem : Problem
    hyperprior : Hyperprior

    Returns
    -------
    Target
    """
    hyper = log_alpha_prior(hyperprior)
    priors = [Normal(0.0, 1.0) if a else p for p, a in zip(problem.priors, problem.ard)]
    joint = JointPrior.of([*priors, *([hyper] * int(problem.ard.sum()))])
    joint = _merge_custom(joint, hyper)
    base = problem.target()
    ard = tuple(problem.ard.tolist())
    likelihood = _joint_log_likelihood(base.log_likelihood, ard)
    rapid = None if base.rapid is None else _joint_log_likelihood(base.rapid, ard)
    return Target(base.data, joint, likelihood, rapid)


def joint_evaluator(problem: Problem, evaluate: Callable | None) -> Callable | None:
    """`evaluate` as a function of (z, log α); None if it is None.

    Parameters
    ----------
    problem : Problem
    evaluate : callable or None
        Log-likelihood of (n, d) on the host.

    Returns
    -------
    callable or None
    """
    if evaluate is None:
        return None
    return lambda joint: evaluate(np.asarray(to_parameters(joint, problem.ard)))


def _merge_custom(joint: JointPrior, hyper: Custom) -> JointPrior:
    """All log α in one group: one vector operation instead of one per parameter."""
    where = np.concatenate([at for kind, at, _ in joint.groups if kind is hyper])
    rest = [group for group in joint.groups if group[0] is not hyper]
    return JointPrior([*rest, (hyper, where, ())], joint.n)


class JointSymmetry:
    """The network's group acting on (z, log α) together: precisions follow their parameters."""

    def __init__(self, symmetry: Symmetry, ard: np.ndarray):
        self.symmetry, self.ard = symmetry, ard

    def apply_random(self, rng: np.random.Generator, joint: np.ndarray) -> np.ndarray:
        d = len(self.ard)
        index, sign = self.symmetry.random(rng, len(joint))
        phi = np.take_along_axis(joint[:, :d], index, axis=1) * sign
        log_alpha = np.zeros((len(joint), d))
        log_alpha[:, self.ard] = joint[:, d:]
        log_alpha = np.take_along_axis(log_alpha, index, axis=1)[:, self.ard]
        return np.concatenate([phi, log_alpha], axis=1)


def joint_symmetry(problem: Problem) -> JointSymmetry | None:
    """The group, if every parameter that it moves is ARD and so exchangeable; else None."""
    symmetry = problem.symmetry
    if symmetry is None or symmetry.order == 1:
        return None
    weights = problem.ard[: symmetry.network.n_parameters]
    last = symmetry.network.slices[-1][1]
    hidden = np.ones(len(weights), dtype=bool)
    hidden[last] = False  # no element moves output biases
    if not weights[hidden].all():
        return None
    return JointSymmetry(symmetry, problem.ard)
