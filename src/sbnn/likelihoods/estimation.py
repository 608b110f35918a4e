"""Numerical defaults for any likelihood: slopes, Newton updates, and predictions by quadrature."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from sbnn._core.float64 import float64
from sbnn.likelihoods.base import Likelihood
from sbnn.priors import JointPrior

NODES_TO_PREDICT = 16


@functools.partial(jax.jit, static_argnums=0)
def _score(likelihood: Likelihood, y: Any, f: Any, theta: Any) -> Any:
    return jax.grad(lambda f: likelihood.log_density(y, f, theta).sum())(f)


@float64
def score(likelihood: Likelihood, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """∂ log p / ∂f by automatic differentiation, shape (…, p)."""
    return np.asarray(_score(likelihood, y, np.asarray(f, dtype=float), theta))


@functools.partial(jax.jit, static_argnums=0)
def positive_hessian(likelihood: Likelihood, y: Any, f: Any, theta: Any) -> Any:
    """−∂² Σ log p / ∂θ² with negative eigenvalues set to zero, (q, q)."""
    hessian = -jax.hessian(lambda t: likelihood.log_density(y, f, t).sum())(theta)
    values, vectors = jnp.linalg.eigh(0.5 * (hessian + hessian.T))
    return (vectors * jnp.maximum(values, 0.0)) @ vectors.T


@functools.cache
def _rule(n_nodes: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (J, p) and weights (J,) of the product rule for independent standard normals."""
    z, w = np.polynomial.hermite_e.hermegauss(n_nodes)
    nodes = np.array(list(itertools.product(z, repeat=n_outputs)))
    weights = np.array([np.prod(c) for c in itertools.product(w, repeat=n_outputs)])
    return nodes, weights / weights.sum()


@functools.partial(jax.jit, static_argnums=0)
def _information_slope(likelihood: Likelihood, f: Any, theta: Any, factor: Any) -> Any:
    return jax.grad(lambda f: (factor * likelihood.information(f, theta)).sum())(f)


@float64
def information_slope(
    likelihood: Likelihood, f: np.ndarray, theta: np.ndarray, factor: np.ndarray
) -> np.ndarray:
    """∂ Σ factor · information / ∂f by automatic differentiation, shape (…, p)."""
    return np.asarray(_information_slope(likelihood, np.asarray(f, dtype=float), theta, factor))


@functools.partial(jax.jit, static_argnums=0)
def _loss(
    likelihood: Likelihood, theta: Any, prior: JointPrior, y: Any, f: Any, variance: Any, rows: Any
) -> Any:
    def loss(theta: Any) -> Any:
        each = likelihood.log_density(y, f, theta)
        each = each - 0.5 * (variance * likelihood.information(f, theta)).sum(axis=-1)
        return -(rows * each).sum() - prior.log_density(theta)

    return jax.grad(loss)(theta), jax.hessian(loss)(theta)


@float64
def newton_update(
    likelihood: Likelihood,
    y: np.ndarray,
    f: np.ndarray,
    theta: np.ndarray,
    variance: np.ndarray,
    weights: np.ndarray | None,
) -> np.ndarray:
    """One Newton step on −Σ (log p(y | f, θ) − ½ v W) − log p(θ); see `Likelihood.update`."""
    if not len(theta):
        return theta
    prior = JointPrior.of(likelihood.priors(y))
    rows = np.ones(len(y)) if weights is None else weights
    gradient, hessian = _loss(likelihood, theta, prior, y, f, variance, rows)
    values, vectors = np.linalg.eigh(np.asarray(hessian))
    # |eigenvalues| make it a descent step even where the loss is not convex.
    step = -vectors @ ((vectors.T @ np.asarray(gradient)) / np.maximum(np.abs(values), 1e-6))
    return theta + np.clip(step, -1.0, 1.0)


@dataclass(frozen=True)
class IntegratedPredictive:
    """Predictive distribution that integrates over the outputs f by Gauss–Hermite quadrature.

    A mixture of K normals of f becomes a mixture of K × J likelihoods with fixed f and weights of
    shape (K J, …). Implements `sbnn.scores.Predictive`.
    """

    likelihood: Likelihood
    weights: np.ndarray
    f: np.ndarray
    theta: np.ndarray
    scale: np.ndarray | float = 1.0
    shift: np.ndarray | float = 0.0

    @classmethod
    def of(
        cls,
        likelihood: Likelihood,
        weights: np.ndarray,
        f: np.ndarray,
        variance: np.ndarray,
        theta: np.ndarray,
    ) -> IntegratedPredictive:
        # If f has no variance, one node is exact.
        nodes, node_weights = _rule(NODES_TO_PREDICT if variance.any() else 1, f.shape[-1])
        at = nodes.reshape(len(nodes), *(1,) * (f.ndim - 1), -1)
        n = len(nodes) * len(f)  # explicit: a likelihood without parameters has arrays of size 0
        moved = (f + at * np.sqrt(variance)).reshape(n, *f.shape[1:])
        weights = np.broadcast_to(weights, f.shape[:-1])
        shares = node_weights.reshape(-1, *(1,) * weights.ndim) * weights
        theta = np.broadcast_to(theta, (*f.shape[:-1], theta.shape[-1]))
        repeated = np.broadcast_to(theta, (len(nodes), *theta.shape)).reshape(n, *theta.shape[1:])
        return cls(likelihood, shares.reshape(n, *weights.shape[1:]), moved, repeated)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the points."""
        return self.weights.shape[1:]

    def __getitem__(self, points: Any) -> IntegratedPredictive:
        """The distribution at some of the points."""
        index = (slice(None), *points) if isinstance(points, tuple) else (slice(None), points)
        inner = (*index, slice(None))  # f and θ have one more axis
        pick = lambda a: np.broadcast_to(a, self.shape)[points]
        return replace(
            self,
            weights=self.weights[index],
            f=self.f[inner],
            theta=self.theta[inner],
            scale=pick(self.scale),
            shift=pick(self.shift),
        )

    def _flat(self) -> IntegratedPredictive:
        """The same points in one axis."""
        n, m = len(self.weights), int(np.prod(self.shape))
        line = lambda a: np.broadcast_to(a, self.shape).reshape(m)
        return IntegratedPredictive(
            self.likelihood,
            self.weights.reshape(n, m),
            self.f.reshape(n, m, self.f.shape[-1]),
            self.theta.reshape(n, m, self.theta.shape[-1]),
            line(self.scale),
            line(self.shift),
        )

    def reweighted(self, weights: ArrayLike) -> IntegratedPredictive:
        """The same components with other weights, broadcastable to (n_components, …)."""
        return replace(self, weights=np.broadcast_to(np.asarray(weights), self.f.shape[:-1]))

    def rescaled(self, scale: ArrayLike, shift: ArrayLike = 0.0) -> IntegratedPredictive:
        """The distribution of scale · y + shift."""
        factor, offset = np.asarray(scale, dtype=float), np.asarray(shift, dtype=float)
        return replace(self, scale=self.scale * factor, shift=self.shift * factor + offset)

    def _standard(self, y: ArrayLike) -> np.ndarray:
        return (np.asarray(y, dtype=float) - self.shift) / self.scale

    def mean(self) -> np.ndarray:
        """Expected value of y."""
        centre = self.likelihood.centre(self.f, self.theta)
        return (self.weights * centre).sum(axis=0) * self.scale + self.shift

    def std(self) -> np.ndarray:
        """Standard deviation of y."""
        centre = self.likelihood.centre(self.f, self.theta)
        mean = (self.weights * centre).sum(axis=0)
        spread = self.likelihood.std(self.f, self.theta) ** 2 + (centre - mean) ** 2
        return np.sqrt((self.weights * spread).sum(axis=0)) * np.abs(self.scale)

    def component_log_density(self, y: ArrayLike) -> np.ndarray:
        """Log density at y under each component, (n_components, …)."""
        values = self.likelihood.log_density(self._standard(y), self.f, self.theta)
        return values - np.log(np.abs(self.scale))

    def log_density(self, y: ArrayLike) -> np.ndarray:
        """Log density at y."""
        return logsumexp(self.component_log_density(y), b=self.weights, axis=0)

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """P(Y ≤ y), the probability integral transform of y."""
        below = self.likelihood.cdf(self._standard(y), self.f, self.theta)
        return (self.weights * below).sum(axis=0)

    def quantiles(self, levels: Sequence[float]) -> np.ndarray:
        """Quantiles, shape (n_levels, …)."""
        from scipy.optimize import elementwise

        flat = self._flat()
        # Heavy tails may have no standard deviation; the information always gives a scale.
        mean, centre = flat.mean(), flat.likelihood.centre(flat.f, flat.theta) * flat.scale
        noise = np.abs(flat.scale) / np.sqrt(
            flat.likelihood.information(flat.f, flat.theta)[..., 0]
        )
        spread = (flat.weights * (noise**2 + (centre + flat.shift - mean) ** 2)).sum(axis=0)
        std, points = np.sqrt(spread), np.arange(len(mean))
        out = []
        for level in levels:
            # SciPy drops points that have converged; `at` holds those that are left.
            excess = lambda y, at, level=level: flat[at].cdf(y) - level
            start = elementwise.bracket_root(excess, mean - std, mean + std, args=(points,))
            out.append(elementwise.find_root(excess, start.bracket, args=(points,)).x)
        return np.array(out).reshape(len(levels), *self.shape)

    def crps(self, y: ArrayLike, n_levels: int = 199) -> np.ndarray:
        """Continuous ranked probability score: twice the mean pinball loss over all levels."""
        levels = (np.arange(n_levels) + 0.5) / n_levels
        quantiles = self.quantiles(levels.tolist())
        y = np.asarray(y, dtype=float)
        below = y < quantiles
        tau = levels.reshape(-1, *(1,) * (quantiles.ndim - 1))
        return 2.0 * ((below - tau) * (quantiles - y)).mean(axis=0)
