"""Predictions of a fitted `SparseBNNRegressor`: moments, intervals, distributions, draws."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sbnn._core.messages import Message
from sbnn.likelihoods import half_width
from sbnn.methods.posterior import Posterior
from sbnn.problems.noise import check_noise_std
from sbnn.regressor.data.completed import Completed
from sbnn.regressor.data.gaps import fill
from sbnn.regressor.data.inputs import read_new
from sbnn.regressor.data.scaling import Scaling
from sbnn.regressor.noise import NoiseKnown
from sbnn.regressor.options import check_level
from sbnn.scores import NormalMixture, Predictive
from sbnn.tables.encoder import ColumnEncoder, Encoded, table


class Predictions:
    """Mixin of `SparseBNNRegressor`: everything it predicts from its posterior and scaling."""

    _posterior: Posterior
    _scaling: Scaling
    _flat: bool  # y had the shape (n,)
    _inputs: np.ndarray  # (n_encoded, m), standardised training inputs
    encoder_: ColumnEncoder
    missing: str
    noise_reason_: Message

    @property
    def posterior_(self) -> Posterior:
        """The posterior for standardised inputs and targets."""
        check_is_fitted(self)
        return self._posterior

    @property
    def columns_(self) -> pd.DataFrame:
        """What is known about the columns of X, one row each."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", np.arange(len(self.encoder_.columns)))
        return table(self.encoder_, list(names))

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_interval: float | None = None,
        noise_std: Any = None,
    ) -> Any:
        """Predict new observations: mean and, on request, standard deviation and interval.

        Parameters
        ----------
        X : array_like or DataFrame, shape (m, n_features)
        return_std : bool
            Also return the standard deviation, noise included.
        return_interval : float, optional
            Also return the central interval of this probability, last axis (lower, upper).
        noise_std : float or array_like, shape (m,) or (m, n_outputs), optional
            Known standard errors of the new observations, if those of the table were known.

        Returns
        -------
        mean : ndarray, shape (m,) or (m, n_outputs)
        std : ndarray, of the same shape
            Only with `return_std`.
        interval : ndarray, shape (..., 2)
            Only with `return_interval`.

        Raises
        ------
        ValueError
            If `return_interval` is not a probability between 0 and 1.

        Examples
        --------
        See the class.
        """
        level = None if return_interval is None else check_level(return_interval)
        means, stds, intervals = [], [], []
        encoded = self._encoded(X)
        for predictive in self._predictives(encoded, noise_std):
            means.append(predictive.mean())
            if return_std:
                stds.append(predictive.std())
            if level is not None:
                tail = 0.5 * (1 - level)
                intervals.append(predictive.quantiles((tail, 1 - tail)))
        out = [self._units(np.concatenate(means))]
        if return_std:
            out.append(self._units(np.concatenate(stds), shift=False))
        if level is not None:
            bounds = np.concatenate(intervals, axis=1)
            out.append(np.stack([self._units(b) for b in bounds], axis=-1))
        return out[0] if len(out) == 1 else tuple(out)

    def noise_std_at(self, X: Any) -> np.ndarray:
        """Standard deviation of the noise of new observations.

        The square of the standard deviation that `predict` returns is the sum of its square and of
        that of the uncertainty of the function, `predictive(X, noise=False).std()`.

        Parameters
        ----------
        X : array_like or DataFrame, shape (m, n_features)

        Returns
        -------
        ndarray, shape (m,) or (m, n_outputs)
        """
        return self._units(np.concatenate([n.std() for n in self._noise(X)]), shift=False)

    def typical_noise_at(self, X: Any) -> np.ndarray:
        """Size of the noise of most new observations: 68.3 % of it is within this distance.

        Half the width of the central 68.3 % interval of the noise. For Gaussian noise this is the
        standard deviation; for Student-t noise it is smaller, because a few large values make up
        most of the standard deviation.

        Parameters
        ----------
        X : array_like or DataFrame, shape (m, n_features)

        Returns
        -------
        ndarray, shape (m,) or (m, n_outputs)
        """
        return self._units(np.concatenate([half_width(n) for n in self._noise(X)]), shift=False)

    def _noise(self, X: Any) -> Iterator[Completed]:
        """Distributions of the noise of blocks of rows, for standardised targets."""
        for _, block in _blocks(self._encoded(X)):
            x_t, starts = self._filled(block)
            yield Completed(self._posterior.noise_at(x_t), starts)

    def predictive(self, X: Any, noise: bool = True, noise_std: Any = None) -> Predictive:
        """Predictive distribution of every row, in the units of y.

        Parameters
        ----------
        X : array_like or DataFrame, shape (m, n_features)
        noise : bool
            Whether to include the noise; if False, the distribution is that of the function.
        noise_std : float or array_like, shape (m,) or (m, n_outputs), optional
            Known standard errors of the new observations, if those of the table were known.

        Returns
        -------
        Predictive
            With points of shape (m,) or (m, n_outputs): mean, std, quantiles, log density, CDF and
            CRPS. A `sbnn.scores.NormalMixture` if the noise is Gaussian.

        Examples
        --------
        >>> import numpy as np
        >>> from sbnn import SparseBNNRegressor
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> model = SparseBNNRegressor((2,), n_starts=2, random_state=0).fit(X, X[:, 0] ** 2)
        >>> model.predictive(X).crps(X[:, 0] ** 2).shape
        (20,)
        """
        encoded = self._encoded(X)
        known = self._known_std(noise_std, len(encoded.values))
        predictive = self._predictive(encoded, noise, known)
        in_units = predictive.rescaled(self._scaling.y_scale, self._scaling.y_centre)
        return in_units[..., 0] if self._flat else in_units

    def predictive_mixture(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, means and stds of the normal mixture predicted for every row.

        Parameters
        ----------
        X : array_like or DataFrame, shape (m, n_features)

        Returns
        -------
        weights, means, stds : ndarray, shape (n_components, m) or (n_components, m, n_outputs)

        Raises
        ------
        TypeError
            If predictions are not normal mixtures; `predictive` covers every case.
        """
        predictive = self.predictive(X)
        if not isinstance(predictive, NormalMixture):
            raise TypeError(
                f"Predictions are of type {type(predictive).__name__}, not normal mixtures; use "
                "`predictive(X)`."
            )
        return predictive.weights, predictive.means, predictive.stds

    def log_predictive_density(self, X: Any, y: ArrayLike, noise_std: Any = None) -> np.ndarray:
        """Log predictive density log p(y|x, D) of every row (and output), in the units of y.

        Parameters
        ----------
        X : array_like or DataFrame, shape (m, n_features)
        y : array_like, shape (m,) or (m, n_outputs)
        noise_std : float or array_like, shape (m,) or (m, n_outputs), optional
            Known standard errors of y, if those of the table were known.

        Returns
        -------
        ndarray, of the shape of y

        Raises
        ------
        ValueError
            If X and y differ in length.
        """
        predictive = self.predictive(X, noise_std=noise_std)
        if np.shape(y) != predictive.shape:
            raise ValueError(
                f"y must have the shape {predictive.shape}, one value per row of X; got "
                f"{np.shape(y)}."
            )
        return predictive.log_density(y)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, noise: bool = True
    ) -> np.ndarray:
        """Joint draws of new observations at X.

        Parameters
        ----------
        X : array_like or DataFrame, shape (m, n_features)
        n_samples : int
        random_state : int, RandomState or None
        noise : bool
            Whether to include the noise; if False, the draws are of the function.

        Returns
        -------
        ndarray, shape (m, n_samples) or (m, n_outputs, n_samples)
            As scikit-learn's Gaussian process returns them.
        """
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"`n_samples` must be a whole number ≥ 1; got {n_samples!r}.")
        x_t, starts = self._filled(self._encoded(X))
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        draws = self._posterior.sample(x_t, n_samples, rng, noise)  # (n_samples, n_copies, n_out)
        counts = np.diff(starts, append=x_t.shape[1])
        if (counts > 1).any():  # one of the completed copies of a row for each draw
            copies = starts + rng.integers(counts, size=(n_samples, len(starts)))
            draws = np.take_along_axis(draws, copies[..., None], axis=1)
        return np.stack([self._units(d) for d in draws], axis=-1)

    def unknown_cells(self, X: Any) -> pd.DataFrame:
        """Inputs of every row that are not known: empty cells, and values new to the model.

        New are categories that the fit did not have, and any other value of a column that was the
        same in all rows of the fit: the model cannot know its effect.

        Parameters
        ----------
        X : array_like or DataFrame, shape (m, n_features)

        Returns
        -------
        DataFrame
            Columns `missing` and `unseen`, lists of column names, or of positions if X has no
            names; the index is that of X.
        """
        encoded = self._encoded(X)
        names = getattr(self, "feature_names_in_", np.arange(len(self.encoder_.columns)))
        index = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(len(encoded.values))
        listed = lambda flags: [list(names[row]) if row.any() else [] for row in flags]
        unseen = encoded.unseen | self.encoder_.new_values(encoded)
        found = {"missing": listed(encoded.missing), "unseen": listed(unseen)}
        return pd.DataFrame(found, index=index)

    def predict_frame(self, X: Any, level: float = 0.95, noise_std: Any = None) -> pd.DataFrame:
        """Predictions as a DataFrame with the index of X.

        Parameters
        ----------
        X : array_like or DataFrame, shape (m, n_features)
        level : float
            Probability of the interval.
        noise_std : float or array_like, optional
            See `predict`.

        Returns
        -------
        DataFrame
            Columns mean, std, lower and upper; with several targets, below their numbers. Columns
            `missing` and `unseen` are those of `unknown_cells`.
        """
        mean, std, interval = self.predict(
            X, return_std=True, return_interval=level, noise_std=noise_std
        )
        parts = {"mean": mean, "std": std, "lower": interval[..., 0], "upper": interval[..., 1]}
        flags = self.unknown_cells(X)
        if self._flat:
            return pd.DataFrame(parts, index=flags.index).join(flags)
        tables = [
            pd.DataFrame({n: v[:, k] for n, v in parts.items()}, index=flags.index).join(flags)
            for k in range(self._scaling.n_outputs)
        ]
        return pd.concat(dict(enumerate(tables)), axis=1)

    def _encoded(self, X: Any) -> Encoded:
        check_is_fitted(self)
        return read_new(self, X, self.encoder_, self.missing)

    def _filled(self, encoded: Encoded) -> tuple[np.ndarray, np.ndarray]:
        """Standardised inputs without gaps (n_encoded, n_copies), and the first copy of each row.

        Rows without gaps have one copy.
        """
        if encoded.gaps.any() and not self._inputs.shape[1]:
            raise ValueError(
                "X has missing cells or new categories, and a compact model holds no training rows "
                "to fill them from; use the full model, or fill them in."
            )
        x, starts = fill(encoded, self.encoder_, self._scaling, self._inputs)
        return self._scaling.inputs(x), starts

    def _predictive(
        self, encoded: Encoded, noise: bool = True, known: np.ndarray | None = None
    ) -> Predictive:
        """Predictive distribution for standardised targets, points (m, n_out)."""
        x_t, starts = self._filled(encoded)
        if x_t.shape[1] == len(starts):
            return self._posterior.predictive(x_t, noise, known)
        owner = np.repeat(np.arange(len(starts)), np.diff(starts, append=x_t.shape[1]))
        known = None if known is None else known[owner]
        return Completed(self._posterior.predictive(x_t, noise, known), starts)

    def _predictives(self, encoded: Encoded, noise_std: Any) -> Iterator[Predictive]:
        """Predictive distributions of blocks of rows."""
        known = self._known_std(noise_std, len(encoded.values))
        for rows, block in _blocks(encoded):
            yield self._predictive(block, known=None if known is None else known[rows])

    def _known_std(self, noise_std: Any, n_rows: int) -> np.ndarray | None:
        """Known standard errors of new rows for standardised targets, (m, n_out), or None."""
        if noise_std is None:
            return None
        if not isinstance(self.noise_reason_, NoiseKnown):
            raise ValueError(
                "`noise_std` of new rows needs a model fitted with known standard errors; fit it "
                "with `noise_std`, or leave it out here."
            )
        shape = (n_rows, self._scaling.n_outputs)
        return np.broadcast_to(check_noise_std(noise_std, shape), shape) / self._scaling.y_scale

    def _units(self, values: np.ndarray, shift: bool = True) -> np.ndarray:
        """Standardised (m, n_out) → (m,) or (m, n_out) in the units of y."""
        out = self._scaling.outputs(values, shift)
        return out[:, 0] if self._flat else out


def _blocks(encoded: Encoded, size: int = 1024) -> Iterator[tuple[slice, Encoded]]:
    """At most `size` rows at a time, fewer if they have gaps, to limit memory."""
    size = size // 8 if encoded.gaps.any() else size
    for start in range(0, len(encoded.values), size):
        rows = slice(start, start + size)
        yield rows, Encoded(*(values[rows] for values in encoded))
