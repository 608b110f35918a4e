"""The data term of a regression at one point: residuals, Jacobian and weighted Gram matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sbnn.evidence.laplace.models.layout import Array
from sbnn.evidence.laplace.models.precision import is_primal

if TYPE_CHECKING:
    from sbnn.evidence.laplace.models.regression import RegressionModel


BLOCK = 1024  # observations of one product in `gram_matrix`


def per_row(noise: Array) -> Array:
    """(K, q) → (K, 1, q); (K, n, q) is returned unchanged."""
    return noise[:, None] if noise.ndim == 2 else noise


def gram_matrix(jac: Array, root: Array | None = None) -> Array:
    """J̃ᵀJ̃ for J̃ᵀ = `jac` of shape (d, n), its columns scaled by `root`, in double precision.

    Rows in single precision are multiplied in blocks whose sums are added in double precision:
    the error is then that of a short sum, and no second matrix of the size of J is needed.
    """
    d, n = jac.shape
    if n <= BLOCK:
        scaled = jac if root is None else jac * root
        return (scaled @ scaled.T).astype(float, copy=False)
    out = np.zeros((d, d))
    for start in range(0, n, BLOCK):
        part = slice(start, start + BLOCK)
        scaled = jac[:, part] if root is None else jac[:, part] * root[part]
        out += scaled @ scaled.T
    return out


class RegressionTerm:
    """Residuals and Jacobian at a point, with Gram matrices reused when the noise changes."""

    def __init__(self, model: RegressionModel, f_t: Array, jac: Array):
        self.model, self.f_t, self.jac = model, f_t, jac
        self.f = model.split(f_t)
        d, n_out, n = jac.shape
        self.primal = is_primal(d, n_out * n)
        self._grams: tuple[Array, list[Array]] | None = None
        self._weighted: tuple[Array, tuple[Array, Array | None]] | None = None

    def misfit(self, noise: Array) -> float:
        return self.model.misfit_of(self.f, noise)

    def correction(self, noise: Array, variance: Array | None) -> float:
        return self.model.correction_of(self.f, noise, variance)

    def gradient(self, noise: Array, variance: Array | None = None) -> Array:
        model, theta = self.model, per_row(noise)
        score = model.likelihood.score(model.y_t, self.f, theta)
        if variance is not None and not model.likelihood.constant_information:
            score = score - 0.5 * model.likelihood.information_slope(self.f, theta, variance)
        if model.weights is not None:
            score = model.weights[:, None] * score
        score_t = score.transpose(0, 2, 1).reshape(self.f_t.shape)
        return self.flat @ score_t.astype(self.jac.dtype, copy=False).ravel()

    @property
    def without_effect(self) -> Array:
        return np.asarray(~self.jac.any(axis=(1, 2)))

    @property
    def flat(self) -> Array:
        """Jᵀ with outputs and observations in one axis, (d, K p n)."""
        d, n_out, n = self.jac.shape
        return self.jac.reshape(d, n_out * n)

    def weighted(self, noise: Array) -> tuple[Array, Array | None]:
        """J̃ᵀ and J̃ᵀJ̃; J̃ᵀ is formed only if needed."""
        if self._weighted is None or self._weighted[0] is not noise:
            self._weighted = (noise, self._weigh(noise))
        return self._weighted[1]

    def _weigh(self, noise: Array) -> tuple[Array, Array | None]:
        if self.primal and self.model.likelihood.separable_information:
            return self.flat, self._gram(noise)
        roots = np.sqrt(self._information(noise, self.f)).astype(self.jac.dtype)
        scaled = (self.jac * roots).reshape(self.flat.shape)
        return scaled, gram_matrix(scaled) if self.primal else None

    def _gram(self, noise: Array) -> Array:
        """J̃ᵀJ̃ from the Gram matrix of every output, which only changes by a factor with θ."""
        if self._grams is None:
            roots = np.sqrt(self._information(noise, self.f)).astype(self.jac.dtype)
            self._grams = noise, [self._gram_of(o, root) for o, root in enumerate(roots)]
        before, grams = self._grams
        if before is noise or self.model.noise is not None:
            return grams[0] if len(grams) == 1 else np.sum(grams, axis=0)
        now, then = (self._information(theta, self.f[:, :1])[:, 0] for theta in (noise, before))
        ratio = now / then
        return ratio[0] * grams[0] if len(grams) == 1 else np.tensordot(ratio, grams, axes=1)

    def _gram_of(self, output: int, root: Array) -> Array:
        """The Gram matrix of one output, from the parameters that affect it.

        That of a further output such as log σ is formed in single precision: its information is
        of order one per row, while that of the mean may be many orders of magnitude larger.
        """
        jac, p = self.jac[:, output], len(self.model.likelihood.outputs)
        if output % p == 0:
            if len(root) == 1 or (root == root[0]).all():
                return gram_matrix(jac) * float(root[0]) ** 2
            return gram_matrix(jac, root)
        rows = np.flatnonzero((jac != 0.0).any(axis=1))
        scaled = np.multiply(jac[rows], root, dtype=np.float32, casting="same_kind")
        out = np.zeros((len(jac), len(jac)))
        out[np.ix_(rows, rows)] = scaled @ scaled.T
        return out

    def _information(self, noise: Array, f: Array) -> Array:
        """Information of outputs (K, n, p) times the weights of the rows, as (K p, n).

        Or as (K p, 1), if it is the same for all rows.
        """
        likelihood, theta, weights = self.model.likelihood, per_row(noise), self.model.weights
        if likelihood.constant_information and theta.shape[1] == 1 and weights is None:
            f = f[:, :1]
        found = likelihood.information(f, theta)
        found = found if found.shape == f.shape else np.broadcast_to(found, f.shape)
        if weights is not None:
            found = found * weights[: f.shape[1], None]
        return found.transpose(0, 2, 1).reshape(len(self.f_t), -1)
