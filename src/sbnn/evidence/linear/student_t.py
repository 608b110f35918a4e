"""Linear models with Student-t noise, by iterated re-weighting.

Student's t is a normal distribution whose precision λ/σ² is Gamma distributed, λ ~ Γ(ν/2, ν/2).
Independent posteriors q(w) q(λ) bound the log evidence from below, and for given q(λ) the model is
linear and Gaussian with weights E[λ]/σ². The best q(λ) can be eliminated, which leaves

    L = Σ log t_ν(√eᵢ; σ) − KL(q(w) ‖ p(w|α)),   eᵢ = (yᵢ − φᵢᵀm)² + φᵢᵀPφᵢ.

Every iteration raises L: q(w) and α from re-weighted rows, then σ and ν from the eᵢ. It reads the
rows twice.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from sbnn.evidence.linear.blocks import Reader, Source
from sbnn.evidence.linear.learning import LinearFit, learn
from sbnn.likelihoods import StudentT

MAX_ITERATIONS = 200
SETTLED = 1e-3  # nats by which the bound still rises in the last iteration


@dataclass(frozen=True)
class StudentFit:
    """Linear models of several targets with Student-t noise.

    Attributes
    ----------
    fits : list of LinearFit
        At the final weights of the rows; their `log_evidence` is that of the re-weighted rows.
    theta : ndarray, shape (n_targets, 2)
        log σ and log(ν − 2).
    bounds : ndarray, shape (n_iterations,)
        Lower bound of the log evidence, summed over the targets, after every iteration.
    each : ndarray, shape (n_targets,)
        The last bound of every target.
    converged : bool
    """

    fits: list[LinearFit]
    theta: np.ndarray
    bounds: np.ndarray
    each: np.ndarray
    converged: bool


def expected_squares(features: np.ndarray, y: np.ndarray, fits: list[LinearFit]) -> np.ndarray:
    """e = (y − φᵀm)² + φᵀPφ of every row and target, shape (n, n_targets)."""
    out = np.empty(y.shape)
    for k, fit in enumerate(fits):
        mean, variance = fit.at(features)
        out[:, k] = (y[:, k] - mean) ** 2 + variance
    return out


def kl_divergence(fit: LinearFit) -> float:
    """KL(q(w) ‖ p(w|α)) = ½ (log|B| − Σγ + mᵀAm) over the weights kept."""
    kept = fit.kept
    energy = float((np.exp(fit.log_alpha[kept]) * fit.mean[kept] ** 2).sum())
    return 0.5 * (fit.precision.log_det - float(fit.relevance[kept].sum()) + energy)


def _scale_and_tails(
    squares: np.ndarray, theta: np.ndarray, counts: np.ndarray | None
) -> np.ndarray:
    """σ and ν that maximise Σ log t_ν(√e; σ) and the prior of ν."""
    size, nothing = np.sqrt(squares), np.zeros((len(squares), 1))
    for _ in range(200):
        new = StudentT().update(size, nothing, theta, nothing, counts)
        theta, change = new, float(np.abs(new - theta).max())
        if change < 1e-9:
            break
    return theta


def fit_student_t(
    source: Source,
    reader: Reader,
    shared: np.ndarray,
    fits: list[LinearFit],
    counts: np.ndarray | None,
) -> StudentFit:
    """Fit by iterated re-weighting, from a Gaussian fit.

    Parameters
    ----------
    source : Source
        Rows that can be read several times.
    reader : Reader
    shared : ndarray of int, shape (d,)
        See `learn`.
    fits : list of LinearFit
        With Gaussian noise, one per target.
    counts : ndarray, shape (n,), or None
        How many times every row counts.

    Returns
    -------
    StudentFit
    """
    rows = np.ones(1) if counts is None else counts
    theta = np.array([[-0.5 * fit.log_beta, np.log(8.0)] for fit in fits])
    bounds: list[float] = []
    each = np.zeros(len(fits))
    for iteration in range(MAX_ITERATIONS):
        squares = source.per_row(reader, functools.partial(expected_squares, fits=fits))
        theta = np.array(
            [_scale_and_tails(squares[:, k], theta[k], counts) for k in range(len(fits))]
        )
        log_t = StudentT().log_density(np.sqrt(squares), np.zeros((*squares.shape, 1)), theta)
        each = (rows[:, None] * log_t).sum(axis=0) - [kl_divergence(fit) for fit in fits]
        bounds.append(float(each.sum()))
        if iteration and abs(bounds[-1] - bounds[-2]) < SETTLED:
            return StudentFit(fits, theta, np.array(bounds), each, True)
        # E[λ]/σ² = (ν + 1) / (νσ² + e)
        nu, sigma2 = 2.0 + np.exp(theta[:, 1]), np.exp(2.0 * theta[:, 0])
        factors = source.factors(reader, (nu + 1.0) / (nu * sigma2 + squares))
        start = [fit.log_alpha for fit in fits]
        fits = [
            learn(factor.models()[0], shared, 0.0, log_alpha if iteration else None)
            for factor, log_alpha in zip(factors, start)
        ]
    return StudentFit(fits, theta, np.array(bounds), each, False)
