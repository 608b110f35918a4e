"""Sparse Bayesian learning of a linear model: the α and β that maximise the exact evidence.

Given all other precisions, the best αᵢ has a closed form and may be infinite (Faul and Tipping,
2002). Steps of this kind, the most profitable first (Tipping and Faul, 2003), choose the features;
Newton's method on all log α and log β together finishes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from sbnn.evidence.closed_form import Evidence
from sbnn.evidence.laplace.models.precision import Precision, cholesky
from sbnn.evidence.linear.factor import Compressed
from sbnn.evidence.linear.objective import evaluate, precision, solve
from sbnn.evidence.newton import ascend

# Noise below this fraction of the root mean square of y is treated as known: the model interpolates
# the data and its evidence has no maximum.
LEAST_NOISE = 1e-6
PROFIT = 1e-6  # nats, the least gain of a step that changes one α
SETTLED = 1e-3  # nats, the change of the evidence between updates of β at which Newton takes over
MAX_ROUNDS = 100


@dataclass(frozen=True)
class LinearFit:
    """A linear model at the α and β that maximise its evidence.

    Attributes
    ----------
    mean : ndarray, shape (d,)
        Posterior mean of the weights, zero where pruned.
    log_alpha : ndarray, shape (d,)
        ∞ where pruned.
    relevance : ndarray, shape (d,)
        γ, zero where pruned.
    log_beta : float
        Log precision of the noise, times that of each row if they differ.
    log_evidence : float
    precision : Precision
        Of the weights kept.
    converged : bool
    interpolates : bool
        Whether the noise was so small that it was held at `LEAST_NOISE`.
    """

    mean: np.ndarray
    log_alpha: np.ndarray
    relevance: np.ndarray
    log_beta: float
    log_evidence: float
    precision: Precision
    converged: bool
    interpolates: bool = False

    @property
    def kept(self) -> np.ndarray:
        """Indices of the weights that are not pruned."""
        return np.flatnonzero(np.isfinite(self.log_alpha))

    @property
    def std(self) -> np.ndarray:
        """Posterior standard deviations, shape (d,); zero where pruned."""
        out = np.zeros(len(self.mean))
        root = self.precision.root
        out[self.kept] = np.sqrt(np.einsum("ij,ij->j", root, root)) * self.precision.scale
        return out

    def at(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of φᵀw for features of shape (n, d), each of shape (n,)."""
        kept = features[:, self.kept]
        return kept @ self.mean[self.kept], self.precision.variance(kept.T)

    def draws(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Draws of the weights, shape (n, d)."""
        out = np.zeros((n, len(self.mean)))
        out[:, self.kept] = self.mean[self.kept] + self.precision.draw(rng, n).T
        return out

    def covariance(self) -> np.ndarray:
        """Posterior covariance of all weights, shape (d, d); zero where pruned."""
        kept, scale = self.kept, self.precision.scale
        out = np.zeros((len(self.mean), len(self.mean)))
        block = self.precision.covariance(np.arange(len(kept)))
        out[np.ix_(kept, kept)] = block * scale[:, None] * scale
        return out


def fit_at(data: Compressed, log_alpha: np.ndarray, log_beta: float) -> LinearFit:
    """The posterior and the exact log evidence at given α and β.

    Parameters
    ----------
    data : Compressed
    log_alpha : ndarray, shape (d,)
        ∞ prunes a weight.
    log_beta : float

    Returns
    -------
    LinearFit
    """
    kept = np.flatnonzero(np.isfinite(log_alpha))
    found = solve(log_alpha[kept], log_beta, _restricted(data, kept))
    factor = precision(log_alpha[kept], found)
    mean, relevance = np.zeros(len(log_alpha)), np.zeros(len(log_alpha))
    mean[kept] = found.pull * factor.scale
    relevance[kept] = factor.relevance()
    return LinearFit(
        mean, log_alpha.copy(), relevance, log_beta, found.log_evidence, factor, converged=True
    )


def learn(
    data: Compressed,
    shared: np.ndarray,
    log_beta: float | None = None,
    start: np.ndarray | None = None,
) -> LinearFit:
    """Maximise the evidence over log α and, unless it is known, log β.

    Parameters
    ----------
    data : Compressed
    shared : ndarray of int, shape (d,)
        Group numbers of features that share one α in the dense start.
    log_beta : float, optional
        Known log β.
    start : ndarray, shape (d,), optional
        log α to start from, ∞ where pruned. By default the better of two results: from the best
        model with one α per group and all features, and from the model without features.

    Returns
    -------
    LinearFit
    """
    scaled, units, unit = data.scaled()
    shift = 2.0 * (np.log(units) - math.log(unit))
    known = None if log_beta is None else log_beta + 2.0 * math.log(unit)
    dense, noise = _dense(scaled, shared, known)
    dense[~scaled.features.any(axis=0)] = np.inf
    if start is not None:
        found = [_ascend(scaled, start - shift, noise, known)]
    else:
        # Without features, all of y is noise.
        empty, most = np.full(len(shared), np.inf), 0.0 if known is None else known
        found = [_ascend(scaled, dense, noise, known), _ascend(scaled, empty, most, known)]
    # With more features than rows the evidence of an interpolation grows without bound.
    best = max(found, key=lambda end: (not end.interpolates, end.log_evidence))
    fit = fit_at(data, best.log_alpha + shift, best.log_beta - 2.0 * math.log(unit))
    return LinearFit(
        fit.mean, fit.log_alpha, fit.relevance, fit.log_beta, fit.log_evidence, fit.precision,
        best.converged, best.interpolates,
    )  # fmt: skip


@dataclass(frozen=True)
class _End:
    """Where an ascent ended, in scaled units."""

    log_alpha: np.ndarray
    log_beta: float
    log_evidence: float
    converged: bool
    interpolates: bool


def _restricted(data: Compressed, kept: np.ndarray) -> Compressed:
    return data._replace(features=data.features[:, kept])


def _dense(data: Compressed, shared: np.ndarray, known: float | None) -> tuple[np.ndarray, float]:
    """log α and log β of the best model with one α per group of features."""
    groups, place = np.unique(shared, return_inverse=True)
    spread = np.eye(len(groups))[place]  # (d, n_groups)
    if known is None:
        spread = linalg.block_diag(spread, np.eye(1))

    def tied(z: np.ndarray) -> Evidence:
        at = evaluate(spread @ z, data, known)
        gradient, hessian = spread.T @ at.gradient, spread.T @ at.hessian @ spread
        return Evidence(at.log_evidence, at.objective, gradient, hessian, at.relevance)

    # The weights of a group explain y, of variance one, together.
    start = np.log(np.bincount(place).astype(float))
    if known is None:
        start = np.append(start, math.log(10.0))
    # Some groups have α → ∞, and exact interpolation β → ∞: a few iterations suffice.
    end = ascend(start, tied, tolerance=1e-3, max_iterations=30).log_alpha
    noise = known if known is not None else min(float(end[-1]), -2.0 * math.log(LEAST_NOISE))
    return (spread @ end)[: len(shared)], noise


def _ascend(data: Compressed, log_alpha: np.ndarray, log_beta: float, known: float | None) -> _End:
    """Alternate steps in single α, updates of β, and Newton's method until none has an effect."""
    most = -2.0 * math.log(LEAST_NOISE)
    interpolates, before = False, -np.inf
    for _ in range(MAX_ROUNDS):
        log_alpha = _steps(data, log_alpha, log_beta)
        if known is None and not interpolates:
            log_beta = min(_noise(data, log_alpha, log_beta), most)
            interpolates = log_beta == most
        value = fit_at(data, log_alpha, log_beta).log_evidence
        settled, before = abs(value - before) < SETTLED, value
        if not settled:
            continue
        fixed = log_beta if known is not None or interpolates else None
        log_alpha, log_beta, newton = _newton(data, log_alpha, log_beta, fixed)
        if log_beta > most:
            log_beta, interpolates = most, True
            continue
        if (
            _profits(*_statistics(data, log_alpha, log_beta), np.exp(log_alpha))[0].max(initial=0.0)
            < PROFIT
        ):
            value = fit_at(data, log_alpha, log_beta).log_evidence
            return _End(log_alpha, log_beta, value, newton, interpolates)
    value = fit_at(data, log_alpha, log_beta).log_evidence
    return _End(log_alpha, log_beta, value, False, interpolates)


def _noise(data: Compressed, log_alpha: np.ndarray, log_beta: float) -> float:
    """MacKay's update β = (n − Σγ) / |y − Φm|²."""
    fit = fit_at(data, log_alpha, log_beta)
    residual = data.target - data.features @ fit.mean
    left = max(data.n_rows - float(fit.relevance.sum()), 1e-3 * data.n_rows)
    return math.log(left) - math.log(max(float(residual @ residual), 1e-300))


def _newton(
    data: Compressed, log_alpha: np.ndarray, log_beta: float, known: float | None
) -> tuple[np.ndarray, float, bool]:
    """Newton's method on the features kept; log α, log β and whether it converged."""
    kept = np.flatnonzero(np.isfinite(log_alpha))
    few = _restricted(data, kept)
    start = log_alpha[kept] if known is not None else np.append(log_alpha[kept], log_beta)
    if not len(start):
        return log_alpha, log_beta, True
    end = ascend(start, lambda z: evaluate(z, few, known))
    z = _polished(end.log_alpha, few, known) if end.converged else end.log_alpha
    log_alpha = log_alpha.copy()
    log_alpha[kept] = z[: len(kept)]
    return log_alpha, log_beta if known is not None else float(z[-1]), end.converged


def _polished(z: np.ndarray, data: Compressed, known: float | None) -> np.ndarray:
    """The maximum to rounding: Newton steps while the gradient shrinks.

    A trust region stops earlier, since the evidence itself no longer changes.
    """
    at = evaluate(z, data, known)
    for _ in range(5):
        try:
            step = np.linalg.solve(at.hessian, at.gradient)
        except np.linalg.LinAlgError:
            break
        if not np.abs(step).max() < 0.1:  # some α grows without bound
            break
        there = evaluate(z - step, data, known)
        if not np.abs(there.gradient).max() < np.abs(at.gradient).max():
            break
        z, at = z - step, there
    return z


def _statistics(
    data: Compressed, log_alpha: np.ndarray, log_beta: float
) -> tuple[np.ndarray, np.ndarray]:
    """K = Φᵀ C⁻¹ Φ and k = Φᵀ C⁻¹ y, with the covariance C of y: shapes (d, d) and (d,)."""
    root = math.exp(0.5 * log_beta)
    features, target = root * data.features, root * data.target
    prior = features * np.exp(-0.5 * log_alpha)  # zero where pruned
    factor = cholesky(np.eye(len(target)) + prior @ prior.T)
    white = linalg.solve_triangular(factor, features, lower=True)
    return white.T @ white, white.T @ linalg.solve_triangular(factor, target, lower=True)


def _profits(
    k_matrix: np.ndarray, k_vector: np.ndarray, alpha: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gain of the log evidence if one α takes its best value, and 1/α at these values.

    With S = Kᵢᵢ and Q = kᵢ. A feature in the model has γ = S/α and u² = Q²/α, and its best α is
    α γ²/(u² − γ(1 − γ)), or ∞ if the denominator is not positive; for one that is not in the
    model it is S²/(Q² − S). This is Faul and Tipping's solution without their differences of
    nearly equal numbers, S/(1 − γ), for well-determined weights.
    """
    s, q2 = np.diag(k_matrix), k_vector**2
    inside = np.isfinite(alpha)
    variance = np.where(inside, 1.0 / alpha, 0.0)
    gamma = np.clip(s * variance, 0.0, 1.0)
    left, u2 = np.maximum(1.0 - gamma, 1e-15), q2 * variance
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # x = α / α', the best prior variance in units of the present one
        x = np.maximum(u2 - gamma * left, 0.0) / gamma**2
        x = np.where(gamma > 0, x, 0.0)
        best_outside = np.where(q2 > s, (q2 - s) / s**2, 0.0)
        t = np.where(inside, left + gamma * x, 1.0 + s * best_outside)
        change = np.where(inside, u2 * (x - 1.0), q2 * best_outside)
        gain = 0.5 * (change / t - np.log(t))
    best = np.where(inside, x * variance, best_outside)
    return np.nan_to_num(gain, nan=0.0, posinf=0.0, neginf=0.0), best


def _steps(data: Compressed, log_alpha: np.ndarray, log_beta: float) -> np.ndarray:
    """Change one α at a time, the most profitable first; the new log α.

    A change of 1/αᵢ by δ adds δ φφᵀ to C, a change of rank one:
    K ← K − δ/(1 + δ Kᵢᵢ) K_{:i} K_{i:}, whether it adds a feature, removes or rescales it.
    """
    d = len(log_alpha)
    variance = np.exp(-log_alpha)
    k_matrix, k_vector = _statistics(data, log_alpha, log_beta)
    for _ in range(10 * d + 10):
        with np.errstate(divide="ignore"):
            gains, best = _profits(k_matrix, k_vector, 1.0 / variance)
        i = int(np.argmax(gains)) if d else 0
        if not d or gains[i] < PROFIT:
            break
        change = best[i] - variance[i]
        column = k_matrix[:, i].copy()
        factor = change / (1.0 + change * column[i])
        k_vector -= factor * k_vector[i] * column
        k_matrix -= factor * column[:, None] * column
        variance[i] = best[i]
    with np.errstate(divide="ignore"):
        return -np.log(variance)
