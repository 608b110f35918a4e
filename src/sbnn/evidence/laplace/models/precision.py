"""Factored Gauss–Newton precisions H = J̃ᵀJ̃ + diag(α)."""

from __future__ import annotations

import functools

import numpy as np
from scipy.linalg import LinAlgError, lapack

Array = np.ndarray
PRIMAL = 1.3  # weights per observation up to which their matrix is factored

# LAPACK is called directly: most matrices have a few dozen rows, and the checks of SciPy
# take longer than a factorisation.


def cholesky(b: Array) -> Array:
    """Lower Cholesky factor of a matrix that is positive definite up to rounding.

    B = I + … has no eigenvalue below one. Only entries above 1e15 can swamp the identity; then the
    smallest relative jitter that works is added.
    """
    if not len(b):
        return b
    jitter = 0.0
    while True:
        matrix = b + np.diag(jitter * np.diag(b)) if jitter else b
        # The transpose is in LAPACK's order, so that it is copied once instead of rearranged.
        factor, failed = lapack.dpotrf(matrix.T, lower=1, clean=1)
        if not failed:
            return factor
        if not np.isfinite(b).all():
            raise LinAlgError("The matrix has entries that are not finite.")
        jitter = max(10.0 * jitter, 1e-15)


def solve_factor(factor: Array, v: Array, transposed: bool = False) -> Array:
    """L⁻¹v, or L⁻ᵀv, for a lower triangular L, in the precision of v."""
    if not len(factor) or not v.size:
        return v.copy()
    solve = lapack.strtrs if v.dtype == np.float32 else lapack.dtrtrs
    found, failed = solve(factor, v, lower=1, trans=int(transposed))
    if failed:
        raise LinAlgError("The triangular matrix is singular.")
    return found


def solve_both(factor: Array, v: Array) -> Array:
    """(LLᵀ)⁻¹v."""
    return lapack.dpotrs(factor, v, lower=1)[0] if len(factor) and v.size else v.copy()


def is_primal(d: int, n: int) -> bool:
    """Whether to factor the matrix of the d weights, not that of the n observations.

    J̃ᵀJ̃ is formed once and serves several factorisations, J̃A⁻¹J̃ᵀ is formed for each of them: so the
    former takes less time even with somewhat more weights than observations.
    """
    return d <= PRIMAL * n


class Precision:
    """Factored H = J̃ᵀJ̃ + A with J̃ = J/σ, scaled as H = A^½ B A^½, B = I + A^-½ J̃ᵀJ̃ A^-½.

    B is bounded below by I, so it stays well conditioned for pruned (α → ∞) and for free (α → 0)
    weights. With far fewer rows than weights (`is_primal`) the n×n matrix I + J̃A⁻¹J̃ᵀ (same
    determinant, Woodbury inverse) is factored instead, so that the cost is O(min(n, d)² max(n, d)).

    Parameters
    ----------
    jac_t : array, shape (d, n)
        J̃ᵀ; only its shape is used when `gram` is given.
    alpha : array, shape (d,)
    gram : array, shape (d, d), optional
        J̃ᵀJ̃, if it has been computed (`is_primal` only).
    """

    def __init__(self, jac_t: Array, alpha: Array, gram: Array | None = None):
        d, n = jac_t.shape
        self.scale = 1.0 / np.sqrt(alpha)
        self.primal = is_primal(d, n)
        if self.primal:
            b = (jac_t @ jac_t.T if gram is None else gram) * self.scale
            b *= self.scale[:, None]
        else:
            self.jac_t = jac_t * self.scale[:, None]
            b = self.jac_t.T @ self.jac_t
        b.flat[:: len(b) + 1] += 1.0
        self.chol = cholesky(b)
        self.log_det = 2.0 * np.log(self.chol.diagonal()).sum()  # log|B| = log|H| − Σ log α

    @classmethod
    def from_factor(cls, chol: Array, scale: Array) -> Precision:
        """The primal form from its stored factor L of B and A^-½."""
        self = cls.__new__(cls)
        self.scale, self.primal, self.chol = scale, True, chol
        self.log_det = 2.0 * np.log(chol.diagonal()).sum()
        return self

    def _half(self, v: Array) -> Array:
        return solve_factor(self.chol, v)

    def solve(self, g: Array) -> Array:
        """H⁻¹ g for g of shape (d,)."""
        g = self.scale * g
        if self.primal:
            return self.scale * solve_both(self.chol, g)
        inner = solve_both(self.chol, self.jac_t.T @ g)
        return self.scale * (g - self.jac_t @ inner)

    @functools.cached_property
    def root(self) -> Array:
        """M with B⁻¹ = MᵀM (primal) or B⁻¹ = I − MᵀM."""
        if self.primal:
            if not len(self.chol):
                return self.chol
            return lapack.dtrtri(self.chol, lower=1)[0]
        return self._half(self.jac_t.T)

    def relevance(self) -> Array:
        """γᵢ = 1 − αᵢ(H⁻¹)ᵢᵢ = 1 − (B⁻¹)ᵢᵢ in [0, 1]."""
        squares = np.einsum("ij,ij->j", self.root, self.root)
        return np.clip(1.0 - squares if self.primal else squares, 0.0, 1.0)

    def covariance(self, index: Array, others: Array | None = None) -> Array:
        """The block of B⁻¹ (posterior covariance in units of the prior's), rows `index`.

        Its columns are `index` too, or `others`, which must have no index in common.
        """
        columns = index if others is None else others
        block = self.root[:, index].T @ self.root[:, columns]
        if self.primal:
            return block
        return np.eye(len(index)) - block if others is None else -block

    def variance(self, jac_t: Array) -> Array:
        """diag(J* H⁻¹ J*ᵀ) for `jac_t` = J*ᵀ of shape (d, m), in the precision of `jac_t`."""
        v = jac_t * self.scale[:, None].astype(jac_t.dtype)
        h = self._half(v if self.primal else self.jac_t.astype(jac_t.dtype, copy=False).T @ v)
        out = np.einsum("ij,ij->j", h, h)
        return out if self.primal else np.maximum(np.einsum("ij,ij->j", v, v) - out, 0.0)

    def draw(self, rng: np.random.Generator, n_draws: int) -> Array:
        """Draws of N(0, H⁻¹), shape (d, n_draws)."""
        z = rng.standard_normal((len(self.scale), n_draws))
        if self.primal:  # A^-½ L⁻ᵀ z
            z = solve_factor(self.chol, z, transposed=True)
        else:  # z − K(Kᵀz + e) with z, e ~ N(0, I) has covariance (I + KKᵀ)⁻¹
            e = rng.standard_normal((self.chol.shape[0], n_draws))
            z -= self.jac_t @ solve_both(self.chol, self.jac_t.T @ z + e)
        return self.scale[:, None] * z

    def as_primal(self) -> Precision:
        """The same precision with a d×d factor that needs no data, the form stored in files."""
        if self.primal:
            return self
        b = self.jac_t @ self.jac_t.T
        b.flat[:: len(b) + 1] += 1.0
        return Precision.from_factor(cholesky(b), self.scale)
