"""Baselines: the mean, Bayesian ridge regression and a Gaussian process, and their scores."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sbnn.reports.validation import NOTHING_KNOWN, PerRow, cross_validate, n_refits
from sbnn.scores import NormalMixture
from sbnn.tables.column_types import read_series
from sbnn.tables.encoder import ColumnEncoder

BASELINES = ("mean", "bayesian_ridge", "gaussian_process")
NAMES = {
    "mean": "mean of the target",
    "bayesian_ridge": "Bayesian ridge regression",
    "gaussian_process": "Gaussian process",
}
# The cost of a Gaussian process grows with the cube of the rows.
MAX_GP_ROWS = 1000


class Baseline:
    """A simple model from scikit-learn with Gaussian predictions.

    Columns are encoded as for the network. Missing cells hold the mean.

    Parameters
    ----------
    name : str
        One of `BASELINES`.
    seed : int
        Chooses the rows that a Gaussian process is fitted to.
    """

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name, self.seed = name, seed

    def fit(
        self,
        x: pd.DataFrame,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        noise_std: np.ndarray | None = None,
    ) -> Baseline:
        """Fit to a table.

        Parameters
        ----------
        x : DataFrame, shape (n, n_features)
        y : ndarray, shape (n,) or (n, n_outputs)
        sample_weight : ndarray, shape (n,), optional
        noise_std : ndarray, shape (n, n_outputs), optional
            Known standard errors.

        Returns
        -------
        Baseline
        """
        columns = [read_series(x[name]) for name in x]
        self.encoder = ColumnEncoder.of(columns)
        # A column without values stays, so that the columns of new rows are the same.
        imputer = SimpleImputer(keep_empty_features=True)
        self.prepare = make_pipeline(imputer, StandardScaler())
        inputs = self.prepare.fit_transform(self.encoder.encode(columns).values)
        targets = y.reshape(len(y), -1)
        weights = np.ones(len(targets)) if sample_weight is None else np.asarray(sample_weight)
        known = None if noise_std is None else np.asarray(noise_std).reshape(targets.shape)
        self.models = [
            self._fit_one(inputs, target, weights, None if known is None else known[:, k])
            for k, target in enumerate(targets.T)
        ]
        return self

    def _fit_one(
        self, x: np.ndarray, y: np.ndarray, weights: np.ndarray, known: np.ndarray | None
    ) -> Any:
        if self.name == "mean":
            centre = np.average(y, weights=weights)
            squares = np.average((y - centre) ** 2, weights=weights)
            return centre, np.sqrt(squares * len(y) / max(len(y) - 1, 1))
        if self.name == "bayesian_ridge":
            weights = weights if known is None else weights / known**2 * np.mean(known**2)
            # Its initial precision of the weights, 1, would shrink those of large targets to zero.
            centre = float(np.average(y, weights=weights))
            scale = float(np.sqrt(np.average((y - centre) ** 2, weights=weights))) or 1.0
            return BayesianRidge().fit(x, (y - centre) / scale, weights), centre, scale
        rows = np.random.default_rng(self.seed).permutation(len(y))[:MAX_GP_ROWS]
        kernel = ConstantKernel() * RBF(np.sqrt(x.shape[1]))
        alpha: Any = 1e-10
        if known is None:
            kernel = kernel + WhiteKernel(0.5)
        else:
            alpha = (known[rows] / max(float(y[rows].std()), 1e-300)) ** 2
        process = GaussianProcessRegressor(kernel, alpha=alpha, normalize_y=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # hyperparameters at a bound
            return process.fit(x[rows], y[rows])

    def _moments(self, x: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean, std and noise std, each (n, n_outputs); noise of a known std is not included."""
        types = [column.type for column in self.encoder.columns]
        columns = [read_series(x[name], known) for name, known in zip(x, types)]
        inputs = self.prepare.transform(self.encoder.encode(columns).values)
        found = []
        for model in self.models:
            if self.name == "mean":
                mean, std = (np.full(len(x), value) for value in model)
                noise = std
            elif self.name == "bayesian_ridge":
                ridge, centre, scale = model
                mean, std = ridge.predict(inputs, return_std=True)
                mean, std = centre + scale * mean, scale * std
                noise = np.full(len(x), scale * float(ridge.alpha_) ** -0.5)
            else:
                mean, std = model.predict(inputs, return_std=True)
                noise = np.full(len(x), self._noise(model))
            found.append((mean, std, noise))
        mean, std, noise = (np.stack(parts, axis=1) for parts in zip(*found))
        return mean, std, noise

    def _noise(self, model: Any) -> float:
        white = getattr(model.kernel_, "k2", None)
        level = white.noise_level if isinstance(white, WhiteKernel) else 0.0
        return float(np.sqrt(level) * np.ravel(model._y_train_std)[0])

    def predictive(self, x: pd.DataFrame, noise_std: np.ndarray | None = None) -> NormalMixture:
        """Predictive distribution of every row, points (n, n_outputs).

        Parameters
        ----------
        x : DataFrame, shape (n, n_features)
        noise_std : ndarray, shape (n, n_outputs), optional
            Known standard errors.

        Returns
        -------
        NormalMixture
        """
        mean, std, noise = self._moments(x)
        if noise_std is not None and self.name != "mean":
            std = np.sqrt(np.maximum(std**2 - noise**2, 0.0) + noise_std**2)
        return NormalMixture(np.ones(1), mean[None], std[None])

    def noise_std_at(self, x: pd.DataFrame) -> np.ndarray:
        """Standard deviation of the noise, shape (n, n_outputs)."""
        return self._moments(x)[2]

    def about(self, n_rows: int) -> list[str]:
        """What a reader should know about the fit."""
        if self.name == "gaussian_process" and n_rows > MAX_GP_ROWS:
            return [
                f"fitted to {MAX_GP_ROWS:,} random rows, because its cost grows with their cube"
            ]
        return []


def baseline_scores(
    x: pd.DataFrame,
    y: np.ndarray,
    seed: int,
    per_row: PerRow = NOTHING_KNOWN,
    n_run: int | None = None,
    far: np.ndarray | None = None,
) -> list[dict[str, Any]]:
    """Scores of all baselines on unseen rows, to compare those of a network with.

    Parameters
    ----------
    x : DataFrame, shape (n, n_features)
    y : ndarray, shape (n, n_outputs)
    seed : int
        Chooses the rows that are left out: with the same seed, the same as for the network.
    per_row : PerRow
    n_run : int, optional
        Number of folds that are run; that of `n_refits` if None.
    far : ndarray of bool, shape (n, n_outputs), optional
        Outliers, with which and without which the scores are computed.

    Returns
    -------
    list of dict
        name, scores by target (see `HeldOut.scores`), the same without outliers, and notes.
    """
    far = np.zeros(y.shape, dtype=bool) if far is None else far
    out, n_run = [], n_refits(len(y)) if n_run is None else n_run
    for name in BASELINES:
        make = lambda name=name: Baseline(name, seed)
        held = cross_validate(make, x, y, min(5, len(y)), seed, n_run=n_run, per_row=per_row)
        scores = [held.of_target(k) for k in range(y.shape[1])]
        near = [held.of_target(k, ~far[held.rows, k]) for k in range(y.shape[1])]
        notes = Baseline(name).about(len(y))
        out.append({"name": name, "scores": scores, "without_outliers": near, "notes": notes})
    return out
