"""The Gaussian posterior at one Laplace optimum, over all parameters of a problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.known_priors import KnownPriors
from sbnn.evidence.laplace.models.layout import Array
from sbnn.evidence.laplace.models.regression import RegressionModel
from sbnn.evidence.laplace.models.terms import RegressionTerm
from sbnn.evidence.laplace.optimum import Optimum, factorise, linearise, prior_term
from sbnn.problems.problem import Problem


@dataclass(frozen=True)
class GaussianPosterior:
    """N(φ*, H⁻¹) over all parameters of a problem, including inferred noise.

    Attributes
    ----------
    mode : array, shape (d,)
        Zero where pruned.
    data_precision : array, shape (d, d)
        Λ, the precision from the likelihood and known priors; zero where pruned.
    covariance : array, shape (d, d)
        Zero where pruned. Inferred noise is independent of the rest.
    relevance : array, shape (d,)
        γ = 1 − α (H⁻¹)ᵢᵢ; NaN where there is no ARD prior.
    log_alpha : array, shape (d,)
        ∞ where pruned, NaN where there is no ARD prior.
    """

    mode: Array
    data_precision: Array
    covariance: Array
    relevance: Array
    log_alpha: Array

    @classmethod
    def of(cls, problem: Problem, model: Model, opt: Optimum) -> GaussianPosterior:
        """The posterior at an optimum of the problem's model."""
        d, active = problem.n_parameters, opt.active
        term, prior = linearise(model, opt), prior_term(model, opt)
        precision, _ = factorise(term, prior, opt.noise)
        jac_t, gram = term.weighted(opt.noise)
        data = np.array(jac_t @ jac_t.T if gram is None else gram, dtype=float)
        data[np.diag_indices(len(data))] += np.where(prior.known, prior.precision, 0.0)
        index = np.arange(len(active))
        scaled = precision.covariance(index) * precision.scale[:, None] * precision.scale
        blocks, covariance = np.zeros((d, d)), np.zeros((d, d))
        blocks[np.ix_(active, active)], covariance[np.ix_(active, active)] = data, scaled
        gamma, log_alpha = np.full(d, np.nan), np.full(d, np.nan)
        ard = problem.ard[: len(opt.phi)]
        gamma[: len(opt.phi)][ard], log_alpha[: len(opt.phi)][ard] = 0.0, opt.log_alpha[ard]
        kept = active[~prior.known]
        gamma[kept] = precision.relevance()[~prior.known]
        mode = np.zeros(d)
        mode[: len(opt.phi)] = opt.phi
        if d > len(opt.phi):
            mode[len(opt.phi) :] = opt.noise.ravel()
            own = _noise_precision(model, term, opt.noise, float(np.nansum(gamma)))
            priors = KnownPriors(list(problem.priors[len(opt.phi) :]), np.arange(len(opt.phi), d))
            own[np.diag_indices(len(own))] += priors.at(mode)[2]
            tail = slice(len(opt.phi), d)
            blocks[tail, tail], covariance[tail, tail] = own, np.linalg.inv(own)
        return cls(mode, blocks, covariance, gamma, log_alpha)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draws, shape (n, d)."""
        random = np.diag(self.covariance) > 0
        block = self.covariance[np.ix_(random, random)]
        scale = np.sqrt(np.diag(block))
        correlation = block / np.outer(scale, scale)
        try:
            factor = np.linalg.cholesky(correlation + 1e-13 * np.eye(len(block)))
        except np.linalg.LinAlgError:  # nearly collinear: some eigenvalues round below zero
            values, vectors = np.linalg.eigh(correlation)
            factor = vectors * np.sqrt(np.maximum(values, 0.0))
        out = np.tile(self.mode, (n, 1))
        out[:, random] += (rng.normal(size=(n, len(block))) @ factor.T) * scale
        return out


def _noise_precision(model: Model, term: object, noise: Array, used: float) -> Array:
    """Information of the inferred noise, reduced by the `used` degrees of freedom."""
    assert isinstance(model, RegressionModel)
    assert isinstance(term, RegressionTerm)
    f, y = model.split(term.f_t), model.y_t
    left = max(1.0 - used / y.size, 1e-3)
    own = [
        np.asarray(model.likelihood.parameter_information(y[k], f[k], noise[k]))
        for k in range(len(y))
    ]
    return linalg.block_diag(*own) * left
