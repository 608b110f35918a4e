"""Models with observations and a likelihood: misfit, leave-one-out densities, noise updates."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.layout import Array
from sbnn.evidence.laplace.models.precision import Precision
from sbnn.evidence.laplace.models.terms import RegressionTerm, per_row
from sbnn.likelihoods import Gaussian, Likelihood


@dataclass(frozen=True, kw_only=True)
class RegressionModel(Model):
    """Observations and a likelihood; subclasses add the predictions.

    Attributes
    ----------
    y_t : array, shape (K, n)
    likelihood : Likelihood
    noise : array or None
        Known parameters of the likelihood, (K, q) or (K, n, q); None infers them by the evidence.
    weights : array, shape (n,), or None
        How many times every observation counts; None counts each once.
    """

    y_t: Array
    likelihood: Likelihood = field(default_factory=Gaussian)  # type: ignore[misc]
    noise: Array | None = None
    weights: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.y_t.shape  # type: ignore[return-value]

    def split(self, f_t: Array) -> Array:
        """(K p, n) → (K, n, p), the shape that the likelihood takes."""
        k, n = self.y_t.shape
        return f_t.reshape(k, -1, n).transpose(0, 2, 1)

    @property
    def n_rows(self) -> float:
        """Number of observations per target, repetitions included."""
        return self.y_t.shape[1] if self.weights is None else float(self.weights.sum())

    def misfit(self, outputs: Any, noise: Array) -> float:
        return self.misfit_of(self.split(outputs.output), noise)

    def misfit_of(self, f: Array, noise: Array) -> float:
        """Negative log-likelihood of outputs (K, n, p), without `normaliser`."""
        if self.weights is None:
            return self.likelihood.misfit(self.y_t, f, per_row(noise))
        y, f = (a.astype(float, copy=False) for a in (self.y_t, f))
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is rejected
            log_density = self.likelihood.log_density(y, f, per_row(noise))
            return -float((self.weights * log_density).sum())

    def normaliser(self, noise: Array) -> float:
        if self.weights is not None:
            return 0.0
        return self.likelihood.normaliser(noise, self.y_t.shape[1])

    def correction(self, outputs: Any, noise: Array, variance: Array | None) -> float:
        return self.correction_of(self.split(outputs.output), noise, variance)

    def correction_of(self, f: Array, noise: Array, variance: Array | None) -> float:
        """`correction` of outputs (K, n, p)."""
        if variance is None or self.likelihood.constant_information:
            return 0.0
        terms = variance * self.likelihood.information(f, per_row(noise))
        return 0.5 * float((terms if self.weights is None else self.weights[:, None] * terms).sum())

    def mark(self, phi: Array, layout: Any, noise: Array) -> Array:
        """Predictions in units of the noise: the same for all symmetric images of an optimum."""
        f = self.split(self.evaluate(phi, layout).output)
        return f * np.sqrt(self.likelihood.information(f, per_row(noise)))

    def initial_noise(self) -> Array:
        """Known parameters, or a start from the data, (K, q) or (K, n, q)."""
        if self.noise is not None:
            return self.noise
        return np.array([self.likelihood.start(y) for y in self.y_t])

    def data_term(self, outputs: Any, phi: Array, layout: Any) -> RegressionTerm:
        return RegressionTerm(self, outputs.output, self.jacobian(outputs, phi, layout))

    @abstractmethod
    def jacobian(self, outputs: Any, phi: Array, layout: Any) -> Array:
        """∂f/∂φ of the active parameters, (d_active, K p, n)."""

    def loo_log_density(self, phi: Array, layout: Any, noise: Array, precision: Precision) -> Array:
        """Leave-one-out log predictive density of each row in the linearised model, (n,).

        Without row i, its outputs are normal with variance v/(1 − vW) and mean f − g v/(1 − vW),
        where v = J H⁻¹Jᵀ, W is the information and g the score of the row, for each output
        separately. For Gaussian noise: residual r/(1 − h) and variance σ²/(1 − h) with leverage
        h = vW.
        """
        term = self.data_term(self.evaluate(phi, layout), phi, layout)
        theta, f = per_row(noise), self.split(term.f_t)
        variance = self.split(precision.variance(term.flat).reshape(term.f_t.shape))
        kept = 1.0 - np.clip(variance * self.likelihood.information(f, theta), 0.0, 0.99)
        variance = variance / kept
        f = f - variance * self.likelihood.score(self.y_t, f, theta)
        one = np.ones((1, *f.shape[:-1]))
        predictive = self.likelihood.predictive(one, f[None], variance[None], theta[None])
        return predictive.log_density(self.y_t).sum(axis=0)

    def output_variance(
        self, term: RegressionTerm, noise: Array, gamma: Array, precision: Precision
    ) -> Array | None:
        likelihood, f = self.likelihood, self.split(term.f_t)
        updated = self.noise is None and noise.size
        if likelihood.constant_information and not updated:
            return None
        if likelihood.needs_row_variances or len(self.y_t) > 1:
            # Single precision is enough for a correction and takes half the time.
            found = precision.variance(term.flat.astype(np.float32, copy=False)).astype(float)
            return self.split(found.reshape(term.f_t.shape))
        # The update needs only the sum over rows, Σ J H⁻¹Jᵀ W = Σγ.
        weight = likelihood.information(f[:1, :1], per_row(noise))[0, 0]
        return np.full(f.shape, gamma.sum() / (self.n_rows * weight))

    def updated_noise(self, term: RegressionTerm, noise: Array, variance: Array | None) -> Array:
        """Parameters of the likelihood from `Likelihood.update`, target by target."""
        if self.noise is not None or not noise.size:
            return noise
        assert variance is not None
        f, y = (a.astype(float, copy=False) for a in (self.split(term.f_t), self.y_t))
        new = [
            self.likelihood.update(y[i], f[i], noise[i], variance[i], self.weights)
            for i in range(len(y))
        ]
        return noise + np.clip(np.array(new) - noise, -0.5, 0.5)
