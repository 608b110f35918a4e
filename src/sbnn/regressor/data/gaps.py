"""Gaps in a table: rows with unknown inputs are completed several times from similar rows.

A missing cell is filled with those of donors: training rows whose other cells predict a similar
value (predictive mean matching; Little, 1988). The prediction is the mixture over the fills. In
training, fills that make the target probable are preferred, x ~ p(x | known inputs, y): without
this, the fit would see too weak an effect of the input, and too much noise.

A category that the fit did not have is one more draw from the population of categories. If their
effects are normal, the effect of a new one has Student's t distribution around their mean.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.stats import norm, ttest_ind
from sklearn.linear_model import BayesianRidge

from sbnn.regressor.data.scaling import Scaling
from sbnn.tables.encoder import ColumnEncoder, Encoded
from sbnn.tables.input_column import InputColumn

N_FILLS = 40  # completed copies of a row in predictions, and candidates in training
N_TRAINING = 4  # copies of a row in training
MAX_DONORS = 500
# An indicator of missing cells becomes an input if chance explains the difference it makes to the
# target with less than this probability, divided by the number of indicators.
SIGNIFICANT = 0.01
FEW_CELLS = 5


class Donors:
    """Complete rows from which gaps are filled.

    Parameters
    ----------
    x : ndarray, shape (n_donors, n_encoded)
        Standardised inputs.
    """

    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    @cached_property
    def centre_and_precision(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and inverse covariance; correlations that chance explains are zero.

        Those would predict the cells of the donors themselves, but no others.
        """
        n, d = self.x.shape
        centre = self.x.mean(axis=0)
        spread = self.x.std(axis=0)
        z = (self.x - centre) / np.where(spread > 0, spread, 1.0)
        r = z.T @ z / n
        # |r| of independent columns exceeds this with a probability of 1 % in all pairs together.
        r[np.abs(r) < norm.isf(0.01 / max(d * (d - 1), 1)) / np.sqrt(n)] = 0.0
        np.fill_diagonal(r, 1.0)
        values, vectors = np.linalg.eigh(r)
        precision = (vectors / np.maximum(values, 0.01)) @ vectors.T
        scale = np.where(spread > 0, spread, 1.0)
        return centre, precision / np.outer(scale, scale)

    def nearest(self, x: np.ndarray, n: int) -> np.ndarray:
        """Donors whose cells replace the unknown ones, the most similar first.

        The unknown inputs u of a row given the known ones o have the mean
        μᵤ − Pᵤᵤ⁻¹ Pᵤₒ (xₒ − μₒ) and the precision Pᵤᵤ. The distance of a donor is that of its
        mean from the mean of the row, in units of the remaining spread.

        Parameters
        ----------
        x : ndarray, shape (m, n_encoded)
            Standardised, NaN where unknown.
        n : int

        Returns
        -------
        ndarray of int, shape (m, min(n, n_donors))
        """
        centre, precision = self.centre_and_precision
        unknown = np.isnan(x)
        out = np.empty((len(x), min(n, len(self.x))), dtype=int)
        patterns, place = np.unique(unknown, axis=0, return_inverse=True)
        for k, u in enumerate(patterns):
            rows = np.flatnonzero(place.ravel() == k)
            if not u.any():
                out[rows] = np.arange(out.shape[1])
                continue
            chol = np.linalg.cholesky(precision[np.ix_(u, u)])
            # L⁻¹ Pᵤₒ (xₒ − μₒ): the predicted means, up to sign, in units of the spread
            half = np.linalg.solve(chol, precision[np.ix_(u, ~u)])
            of_donors = (self.x[:, ~u] - centre[~u]) @ half.T
            of_rows = (x[np.ix_(rows, np.flatnonzero(~u))] - centre[~u]) @ half.T
            for start in range(0, len(rows), 1000):
                some = of_rows[start : start + 1000]
                squares = ((some[:, None, :] - of_donors) ** 2).sum(axis=2)
                order = np.argsort(squares, axis=1, kind="stable")[:, : out.shape[1]]
                out[rows[start : start + 1000]] = order
        return out


def fill(
    encoded: Encoded, encoder: ColumnEncoder, scaling: Scaling, donors: np.ndarray, n: int = N_FILLS
) -> tuple[np.ndarray, np.ndarray]:
    """Rows with their gaps filled.

    Parameters
    ----------
    encoded : Encoded
    encoder : ColumnEncoder
    scaling : Scaling
    donors : ndarray, shape (n_encoded, n_donors)
        Standardised complete rows.
    n : int
        Copies of each row that has gaps.

    Returns
    -------
    x : ndarray, shape (n_copies, n_encoded)
        In the units of the encoded columns; copies of a row are next to each other.
    starts : ndarray of int, shape (n_rows,)
        The first copy of each row.
    """
    gaps = encoded.gaps
    if not gaps.any():
        return encoded.values, np.arange(len(gaps))
    counts = np.where(gaps, n, 1)
    starts = np.cumsum(counts) - counts
    out = np.repeat(encoded.values, counts, axis=0)
    x = encoded.values[gaps]
    unknown = np.isnan(x)
    rows = Donors(donors.T)
    nearest = rows.nearest(scaling.inputs(x).T, n)
    nearest = nearest[:, np.arange(n) % nearest.shape[1]]
    found = rows.x[nearest] * scaling.x_scale + scaling.x_centre  # (m, n, n_encoded)
    x = np.where(unknown[:, None, :], found, x[:, None, :])
    for j, column in enumerate(encoder.columns):
        new = encoded.unseen[gaps, j]
        if new.any():
            mine = np.flatnonzero((encoder.groups == j) & ~encoder.is_indicator)
            x[np.ix_(new, np.arange(n), mine)] = new_category(column, n)
    out[np.repeat(gaps, counts)] = x.reshape(-1, x.shape[2])
    return out, starts


def new_category(column: InputColumn, n: int) -> np.ndarray:
    """Draws of the encoding of a category that the fit did not have, shape (n, n_columns).

    A function that is linear in the one-hot columns has the values a₁ … a_K at the K levels. At
    Σₖ wₖ eₖ with w = c + g, Σ gₖ = 0, its value is Σ cₖ aₖ + Σ gₖ aₖ. With
    g ~ N(0, (1 + 1/K)/(K − 1) (I − 11ᵀ/K)) · √(ν/χ²_ν) and ν = K − 1, the second term has the
    distribution s √(1 + 1/K) t_ν, where s² is the variance of a: the predictive distribution of a
    new value from a normal population. The centre c is the level of infrequent categories if there
    is one, otherwise the mean of all levels. One or two levels say too little about a spread: ν is
    at least 2.
    """
    codes = column.level_codes()
    n_levels = len(codes)
    rng = np.random.default_rng(0)
    centre = np.full(n_levels, 1.0 / n_levels)
    if column.level_names[-1] not in (column.counts or {}):  # infrequent ones
        centre = np.eye(n_levels)[-1]
    # Antithetic pairs keep the mean exact.
    g = rng.normal(size=(-(-n // 2), n_levels))
    g = (g - g.mean(axis=1, keepdims=True)) * np.sqrt((1 + 1 / n_levels) / max(n_levels - 1, 1))
    freedom = max(n_levels - 1, 2)
    g *= np.sqrt(freedom / rng.chisquare(freedom, size=(len(g), 1)))
    return ((centre + np.concatenate([g, -g])) @ codes)[:n]


def informative(
    encoded: Encoded, encoder: ColumnEncoder, y: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Which columns have missing cells that say something about the target, shape (n_inputs,).

    The residuals of a linear fit with mean-filled inputs are compared between rows where a cell is
    missing and the others.

    Parameters
    ----------
    encoded : Encoded
        Without indicators.
    encoder : ColumnEncoder
    y : ndarray, shape (n, n_outputs)
    weights : ndarray, shape (n,), or None

    Returns
    -------
    ndarray of bool
    """
    counts = encoded.missing.sum(axis=0)
    few = np.minimum(counts, len(y) - counts) < FEW_CELLS
    candidates = np.flatnonzero(~few & ~encoder.empty)
    chosen = np.zeros(len(encoder.columns), dtype=bool)
    if not len(candidates):
        return chosen
    x = filled_with_means(encoded.values, weights)
    limit = SIGNIFICANT / (len(candidates) * y.shape[1])
    for target in filled_with_means(y, weights).T:
        residual = target - BayesianRidge().fit(x, target, weights).predict(x)
        for j in candidates:
            gap = encoded.missing[:, j]
            if np.ptp(residual[gap]) > 0 and np.ptp(residual[~gap]) > 0:
                # Welch's test: without its value, a row has more spread.
                found = ttest_ind(residual[gap], residual[~gap], equal_var=False)
                chosen[j] |= found.pvalue < limit
    return chosen


def filled_with_means(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Standardised columns, 0 where a cell is unknown; shape (n, n_encoded)."""
    known = ~np.isnan(values)
    w = known * (1.0 if weights is None else weights[:, None])
    total = np.maximum(w.sum(axis=0), 1e-300)
    filled = np.where(known, values, 0.0)
    largest = np.maximum(np.abs(filled).max(axis=0), 1e-300)  # squares of large numbers overflow
    filled /= largest
    centre = (w * filled).sum(axis=0) / total
    filled = np.where(known, filled - centre, 0.0)
    spread = np.sqrt((w * filled**2).sum(axis=0) / total)
    return filled / np.where(spread > 1e-12, spread, 1.0)


def resample(log_density: np.ndarray, n: int) -> np.ndarray:
    """Systematic resampling of candidates, with weights ∝ exp(log density).

    Parameters
    ----------
    log_density : ndarray, shape (m, n_candidates)
    n : int

    Returns
    -------
    ndarray of int, shape (m, n)
    """
    weights = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    cumulated = np.cumsum(weights, axis=1)
    steps = (np.arange(n) + 0.5) / n * cumulated[:, -1:]
    return (cumulated[:, None, :] < steps[:, :, None]).sum(axis=2)
