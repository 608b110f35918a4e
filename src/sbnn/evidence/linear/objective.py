"""Exact log evidence of a linear model in log α and log β, with gradient and Hessian."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from sbnn.evidence.closed_form import Evidence
from sbnn.evidence.laplace.models.precision import Precision
from sbnn.evidence.linear.factor import Compressed, triangular


class Solution(NamedTuple):
    """The posterior of the weights at one (α, β), scaled by the prior: A^½ w.

    Attributes
    ----------
    root : ndarray, shape (d, d)
        Upper triangular T with TᵀT = B = I + β A^-½ ΦᵀΦ A^-½.
    pull : ndarray, shape (d,)
        u = A^½ m, with the posterior mean m.
    quadratic : float
        yᵀC⁻¹y = β |y − Φm|² + |u|², where C is the covariance of y.
    log_evidence : float
    """

    root: np.ndarray
    pull: np.ndarray
    quadratic: float
    log_evidence: float


def solve(log_alpha: np.ndarray, log_beta: float, data: Compressed) -> Solution:
    """Posterior and exact log evidence, log N(y | 0, β⁻¹I + Φ A⁻¹ Φᵀ).

    A QR decomposition of [β^½ Φ A^-½, β^½ y; I, 0] gives B, the mean and yᵀC⁻¹y without forming
    ΦᵀΦ and without differences of large numbers.

    Parameters
    ----------
    log_alpha : ndarray, shape (d,)
    log_beta : float
    data : Compressed

    Returns
    -------
    Solution
    """
    m, d = data.features.shape
    stacked = np.zeros((m + d, d + 1), order="F")
    np.multiply(data.features, np.exp(0.5 * (log_beta - log_alpha)), out=stacked[:m, :d])
    stacked[:m, d] = np.exp(0.5 * log_beta) * data.target
    stacked[m:, :d] = np.eye(d)
    if m == 0:  # no rows: QR needs at least as many rows as columns
        stacked = np.asfortranarray(np.vstack([stacked, np.zeros((1, d + 1))]))
    r = triangular(stacked)
    root, rest = r[:d, :d], r[:d, d]
    pull = linalg.solve_triangular(root, rest) if d else np.zeros(0)
    # |y|²β = |rest|² + ρ², and the minimum of β|y − Φw|² + wᵀAw is ρ².
    quadratic = float(r[d, d] ** 2)
    value = (
        data.constant
        + 0.5 * data.n_rows * log_beta
        - float(np.log(np.abs(np.diag(root))).sum())
        - 0.5 * quadratic
    )
    return Solution(root, pull, quadratic, value)


def covariance(root: np.ndarray) -> np.ndarray:
    """D = B⁻¹, the posterior covariance in units of the prior's, shape (d, d)."""
    if not len(root):
        return root
    half = linalg.lapack.dtrtri(root, lower=0)[0]
    return half @ half.T


def evaluate(z: np.ndarray, data: Compressed, log_beta: float | None = None) -> Evidence:
    """The log evidence with its derivatives in z = (log α, log β), or log α if β is known.

    With D = B⁻¹, γᵢ = 1 − Dᵢᵢ and u = A^½ m:
    ∂/∂log αᵢ = ½ (γᵢ − uᵢ²),  ∂/∂log β = ½ (n − β|y − Φm|² − Σγ),
    ∂²/∂log αᵢ ∂log αⱼ = ½ Dᵢⱼ² + uᵢ Dᵢⱼ uⱼ − ½ δᵢⱼ (Dᵢᵢ + uᵢ²),
    ∂²/∂log αᵢ ∂log β = ½ (Dᵢᵢ − (D²)ᵢᵢ) − uᵢ (Du)ᵢ,
    ∂²/∂(log β)² = −½ (β|y − Φm|² − 2 uᵀDu + tr D − tr D²).

    Parameters
    ----------
    z : ndarray, shape (d + 1,) or (d,)
    data : Compressed
    log_beta : float, optional
        Known log β.

    Returns
    -------
    Evidence
        Without a hyperprior: the objective is the log evidence.
    """
    d = data.features.shape[1]
    found = solve(z[:d], float(z[d]) if log_beta is None else log_beta, data)
    u, cov = found.pull, covariance(found.root)
    diagonal = np.diag(cov).copy()
    gamma = np.clip(1.0 - diagonal, 0.0, 1.0)
    gradient = 0.5 * (1.0 - diagonal - u**2)
    hessian = 0.5 * cov**2 + u[:, None] * cov * u
    hessian[np.diag_indices(d)] -= 0.5 * (diagonal + u**2)
    if log_beta is None:
        squares, through = np.einsum("ij,ij->i", cov, cov), cov @ u
        misfit = found.quadratic - float(u @ u)
        slope = 0.5 * (data.n_rows - misfit - d + float(diagonal.sum()))
        mixed = 0.5 * (diagonal - squares) - u * through
        own = -0.5 * (misfit - 2 * float(u @ through) + float(diagonal.sum() - squares.sum()))
        gradient = np.append(gradient, slope)
        hessian = np.block([[hessian, mixed[:, None]], [mixed[None], np.array([[own]])]])
    return Evidence(found.log_evidence, found.log_evidence, gradient, hessian, gamma)


def precision(log_alpha: np.ndarray, found: Solution) -> Precision:
    """The factored posterior precision."""
    signs = np.sign(np.diag(found.root))
    return Precision.from_factor((signs[:, None] * found.root).T, np.exp(-0.5 * log_alpha))
