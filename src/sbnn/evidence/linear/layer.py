"""Sparse Bayesian learning of a linear layer, for Gaussian and Student-t noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from sbnn.evidence.linear.blocks import Reader, Source
from sbnn.evidence.linear.learning import LinearFit, learn
from sbnn.evidence.linear.student_t import fit_student_t
from sbnn.likelihoods import Gaussian, Likelihood, StudentT

KINDS: tuple[Likelihood, ...] = (Gaussian(), StudentT())


@dataclass(frozen=True)
class KnownNoise:
    """Known standard deviations of Gaussian noise.

    Attributes
    ----------
    std : ndarray, shape (n_targets,), (1,), or (n, n_targets), (n, 1)
    per_row : bool
        Whether the first axis of `std` is that of the rows.
    """

    std: np.ndarray
    per_row: bool

    @property
    def precision(self) -> np.ndarray | None:
        """σ⁻² of every row, (n,) if it is the same for all targets, else (n, n_targets)."""
        if not self.per_row:
            return None
        found = self.std**-2.0
        return found[:, 0] if found.shape[1] == 1 else found

    def log_beta(self, n_targets: int) -> np.ndarray:
        """Log precision of every target, relative to that of the rows."""
        if self.per_row:
            return np.zeros(n_targets)
        return np.broadcast_to(-2.0 * np.log(self.std), (n_targets,))

    def log_sigma(self, n_targets: int, counts: np.ndarray | None) -> np.ndarray:
        """log σ of new rows: the root mean square over the rows."""
        squares = self.std**2
        if self.per_row:
            squares = np.average(squares, axis=0, weights=counts)
        return np.broadcast_to(0.5 * np.log(squares), (n_targets,))


@dataclass(frozen=True)
class Layer:
    """A linear layer with its posterior.

    Attributes
    ----------
    fits : tuple of LinearFit
        One per target.
    likelihood : Likelihood
    theta : ndarray, shape (n_targets, q)
        Parameters of the likelihood of new rows.
    log_evidence : float
        Sum over the targets; a lower bound for Student-t noise.
    n_rows : float
        Repetitions included.
    converged : bool
    """

    fits: tuple[LinearFit, ...]
    likelihood: Likelihood
    theta: np.ndarray
    log_evidence: float
    n_rows: float
    converged: bool

    def outputs(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the outputs, each of shape (n, n_targets)."""
        found = [fit.at(features) for fit in self.fits]
        mean, variance = (np.stack(part, axis=1) for part in zip(*found))
        return mean, variance


def learn_layer(
    source: Source,
    reader: Reader,
    likelihood: Likelihood,
    known: KnownNoise | None = None,
    counts: np.ndarray | None = None,
) -> Layer:
    """Maximise the evidence of a linear layer.

    Parameters
    ----------
    source : Source
        With the counts and known precisions of the rows.
    reader : Reader
    likelihood : Likelihood
        One of `KINDS`.
    known : KnownNoise, optional
    counts : ndarray, shape (n,), optional
        How many times every row counts, for Student-t noise.

    Returns
    -------
    Layer

    Raises
    ------
    ValueError
        If there are fewer than two rows.
    """
    # One thread: the matrices are too small, and the panels of QR too narrow, to gain from more.
    with threadpool_limits(limits=1, user_api="blas"):
        return _learn(source, reader, likelihood, known, counts)


def _learn(
    source: Source,
    reader: Reader,
    likelihood: Likelihood,
    known: KnownNoise | None,
    counts: np.ndarray | None,
) -> Layer:
    factors = source.factors(reader)
    if not factors or factors[0].n_rows < 2:
        raise ValueError("At least two rows are needed.")
    models = [model for factor in factors for model in factor.models()]
    n_targets, n_rows = len(models), factors[0].n_rows
    shared = np.zeros(models[0].features.shape[1], int)
    shared[len(shared) - int(reader.intercept) :] = 1
    betas = [None] * n_targets if known is None else known.log_beta(n_targets).tolist()
    fits = [learn(model, shared, beta) for model, beta in zip(models, betas)]
    if likelihood == StudentT():
        student = fit_student_t(source, reader, shared, fits, counts)
        return Layer(
            tuple(student.fits), likelihood, student.theta, float(student.each.sum()), n_rows,
            student.converged,
        )  # fmt: skip
    if known is None:
        log_sigma = np.array([-0.5 * fit.log_beta for fit in fits])
    else:
        log_sigma = known.log_sigma(n_targets, counts)
    evidence = float(sum(fit.log_evidence for fit in fits))
    converged = all(fit.converged for fit in fits)
    return Layer(tuple(fits), likelihood, log_sigma[:, None], evidence, n_rows, converged)
