"""Closed-form evidence of a mixture under the ARD prior: value, derivatives, relevance."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from sbnn.evidence.mixture import GaussianMixture
from sbnn.priors import Hyperprior

_LOG_2PI = math.log(2 * math.pi)


class Kernels(NamedTuple):
    """Per-kernel quantities at one α, for G groups of K kernels with a shared covariance.

    With q = exp(½ log α) and a kernel's posterior covariance P and mean m:
    C = I − QPQ on the ARD block (γᵢ = Cᵢᵢ) and u = q∘m (αᵢ mᵢ² = uᵢ²).
    """

    log_weights: np.ndarray  # log w̃, shape (G, K)
    coupling: np.ndarray  # C, shape (G, n_alpha, n_alpha)
    pull: np.ndarray  # u, shape (G, K, n_alpha)


class Evidence(NamedTuple):
    """Objective log p̂(D|α) + log p(log α), with derivatives in log α."""

    log_evidence: float
    objective: float
    gradient: np.ndarray
    hessian: np.ndarray
    relevance: np.ndarray  # γ = Σ w diag C, weighted over the kernels


def kernels(log_alpha: np.ndarray, mixture: GaussianMixture, ard: np.ndarray) -> Kernels:
    """log w̃, C and u of every kernel; Eqs. (6) to (8) of the study for a mixture.

    Parameters
    ----------
    log_alpha : ndarray, shape (n_alpha,)
    mixture : GaussianMixture
    ard : ndarray of bool, shape (d,)

    Returns
    -------
    Kernels

    Raises
    ------
    ValueError
        If the shapes do not match.
    """
    log_alpha = np.asarray(log_alpha, dtype=float)
    ard = np.asarray(ard, dtype=bool)
    if ard.shape != (mixture.dimension,) or log_alpha.shape != (int(ard.sum()),):
        raise ValueError(
            f"`log_alpha` has shape {log_alpha.shape} and `ard` {ard.shape}; expected "
            f"({int(ard.sum())},) and ({mixture.dimension},)."
        )
    q = np.exp(0.5 * log_alpha)
    n_alpha = len(q)
    sigma = mixture.covariances[:, ard][:, :, ard]
    # B̃ = I + QΣQ instead of Σ + A⁻¹: bounded below by I, so it stays well conditioned both for
    # pruned (α → ∞) and for free (α → 0) parameters.
    b = np.eye(n_alpha) + q[:, None] * sigma * q
    factor = np.linalg.cholesky(b)
    half = np.linalg.solve(factor, np.broadcast_to(np.eye(n_alpha), b.shape))
    coupling = np.swapaxes(half, 1, 2) @ half  # C = B̃⁻¹
    white = (q * mixture.means[:, :, ard]) @ np.swapaxes(half, 1, 2)  # L⁻¹ (q∘μ)
    log_det = 2 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    # log w̃ = log a − ½ log|B̃| + ½ Σ λ − ½ |L⁻¹(q∘μ)|² − ½ n_α log 2π
    with np.errstate(over="ignore"):  # a kernel too far away gets zero weight
        distance = (white**2).sum(axis=2)
    log_weights = (
        mixture.log_weights
        - 0.5 * log_det[:, None]
        + 0.5 * log_alpha.sum()
        - 0.5 * distance
        - 0.5 * n_alpha * _LOG_2PI
        + mixture.log_normaliser
    )
    return Kernels(log_weights, coupling, white @ half)


def log_evidence(log_alpha: np.ndarray, mixture: GaussianMixture, ard: np.ndarray) -> float:
    """log p̂(D|α) = log Z₀ + log Σₖ aₖ N(μₖ | 0, Σₖ + A⁻¹), A = diag(α).

    Parameters
    ----------
    log_alpha : ndarray, shape (n_alpha,)
    mixture : GaussianMixture
        Surrogate of likelihood × known prior.
    ard : ndarray of bool, shape (d,)
        Which parameters have an ARD prior.

    Returns
    -------
    float

    Examples
    --------
    N(1 | 0, 1 + 1), for one kernel N(1, 1) and α = 1:

    >>> mixture = GaussianMixture(np.zeros((1, 1)), np.ones((1, 1, 1)), np.ones((1, 1, 1)))
    >>> round(log_evidence(np.zeros(1), mixture, np.array([True])), 4)
    -1.5155
    """
    return float(logsumexp(kernels(log_alpha, mixture, ard).log_weights))


def evaluate(
    log_alpha: np.ndarray, mixture: GaussianMixture, ard: np.ndarray, hyperprior: Hyperprior
) -> Evidence:
    """The objective of Eq. (9) with its gradient and Hessian in log α.

    vᵢ = ½ (Cᵢᵢ − uᵢ²),  ∇ᵢ = v̄ᵢ + s − r αᵢ,
    Hᵢⱼ = Σ w [½ Cᵢⱼ² − uᵢuⱼCᵢⱼ + vᵢvⱼ] − v̄ᵢv̄ⱼ − δᵢⱼ (v̄ᵢ + r αᵢ).

    Parameters
    ----------
    log_alpha, mixture, ard
        As for `log_evidence`.
    hyperprior : Hyperprior

    Returns
    -------
    Evidence

    Raises
    ------
    ValueError
        If the evidence is zero or infinite.
    """
    log_alpha = np.asarray(log_alpha, dtype=float)
    at = kernels(log_alpha, mixture, ard)
    total = float(logsumexp(at.log_weights))
    if not np.isfinite(total):
        raise ValueError("The mixture's evidence is zero or infinite at this log α.")
    w = np.exp(at.log_weights - total)  # (G, K)
    c, u = at.coupling, at.pull
    diagonal = np.diagonal(c, axis1=1, axis2=2)
    v = 0.5 * (diagonal[:, None, :] - u**2)
    v_mean = np.einsum("gk,gki->i", w, v)
    weighted_u, weighted_v = w[..., None] * u, w[..., None] * v
    uu = np.einsum("gki,gkj->gij", weighted_u, u)
    alpha = np.exp(log_alpha)
    hessian = np.einsum("g,gij->ij", w.sum(axis=1), 0.5 * c**2)
    hessian += -(uu * c).sum(axis=0) + np.einsum("gki,gkj->ij", weighted_v, v)
    hessian += -np.outer(v_mean, v_mean) - np.diag(v_mean + hyperprior.rate * alpha)
    gradient = v_mean + hyperprior.shape - hyperprior.rate * alpha
    hyper = float((hyperprior.shape * log_alpha - hyperprior.rate * alpha).sum())
    gamma = np.clip(w.sum(axis=1) @ np.clip(diagonal, 0.0, 1.0), 0.0, 1.0)
    return Evidence(total, total + hyper, gradient, hessian, gamma)


class Posterior(NamedTuple):
    """Posterior of the mixture at one α: weights, means and covariances over all of φ."""

    weights: np.ndarray  # (G, K)
    means: np.ndarray  # (G, K, d)
    covariances: np.ndarray  # (G, d, d)

    def draws(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """n independent draws, shape (n, d)."""
        shape = self.weights.shape
        chosen = rng.choice(self.weights.size, size=n, p=self.weights.ravel() / self.weights.sum())
        group, kernel = np.unravel_index(chosen, shape)
        values, vectors = np.linalg.eigh(self.covariances)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        noise = rng.normal(size=(n, self.means.shape[-1]))
        return self.means[group, kernel] + np.einsum("nij,nj->ni", root[group], noise)


def posterior(log_alpha: np.ndarray, mixture: GaussianMixture, ard: np.ndarray) -> Posterior:
    """P = Σ − (Σ_{:α}q) C (Σ_{:α}q)ᵀ and m = μ − (Σ_{:α}q) u over all of φ, also for hybrid priors.

    Parameters
    ----------
    log_alpha, mixture, ard
        As for `log_evidence`.

    Returns
    -------
    Posterior
    """
    at = kernels(log_alpha, mixture, ard)
    weights = np.exp(at.log_weights - logsumexp(at.log_weights))
    q = np.exp(0.5 * np.asarray(log_alpha, dtype=float))
    cross = mixture.covariances[:, :, np.asarray(ard, bool)] * q  # Σ_{:α} q
    covariances = mixture.covariances - cross @ at.coupling @ cross.mT
    means = mixture.means - at.pull @ cross.mT
    return Posterior(weights, means, covariances)


class Relevance(NamedTuple):
    """γ per ARD parameter."""

    weighted: np.ndarray  # Σ w γ, weighted by the posterior mixture
    rms: np.ndarray  # the study's unweighted root mean square over kernels


def relevance(log_alpha: np.ndarray, mixture: GaussianMixture, ard: np.ndarray) -> Relevance:
    """γᵢ = 1 − αᵢ Pᵢᵢ = Cᵢᵢ in [0, 1]: 0 is prior only, 1 is data only.

    Parameters
    ----------
    log_alpha, mixture, ard
        As for `log_evidence`.

    Returns
    -------
    Relevance
    """
    at = kernels(log_alpha, mixture, ard)
    w = np.exp(at.log_weights - logsumexp(at.log_weights)).sum(axis=1)
    gamma = np.clip(np.diagonal(at.coupling, axis1=1, axis2=2), 0.0, 1.0)
    # The weights sum to one only up to rounding.
    return Relevance(np.clip(w @ gamma, 0.0, 1.0), np.sqrt((gamma**2).mean(axis=0)))
