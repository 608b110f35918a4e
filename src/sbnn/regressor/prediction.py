"""Predictions of a fitted `SparseBNNRegressor`: moments, intervals, distributions, draws."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sbnn._core.messages import Message
from sbnn.methods.posterior import Posterior
from sbnn.problems.noise import check_noise_std
from sbnn.regressor.noise import NoiseKnown
from sbnn.regressor.options import check_level
from sbnn.regressor.scaling import Scaling
from sbnn.scores import NormalMixture, Predictive
from sbnn.tables.column_checks import check_numbers


class Predictions:
    """Mixin of `SparseBNNRegressor`: everything it predicts from its posterior and scaling."""

    _posterior: Posterior
    _scaling: Scaling
    _flat: bool  # y had the shape (n,)
    noise_reason_: Message

    @property
    def posterior_(self) -> Posterior:
        """The posterior for standardised inputs and targets."""
        check_is_fitted(self)
        return self._posterior

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
        for x_t, known in self._blocks(X, noise_std):
            predictive = self._posterior.predictive(x_t, noise_std=known)
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
        found = [self._posterior.noise_std_at(x_t) for x_t, _ in self._blocks(X, None)]
        return self._units(np.concatenate(found), shift=False)

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
        X = self._inputs_of(X)
        x_t = self._scaling.inputs(X)
        predictive = self._posterior.predictive(x_t, noise, self._known_std(noise_std, len(X)))
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
        X = self._inputs_of(X)
        x_t = self._scaling.inputs(X)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        draws = self._posterior.sample(x_t, n_samples, rng, noise)
        return np.stack([self._units(d) for d in draws], axis=-1)

    def _inputs_of(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        check_numbers(X)
        return np.asarray(validate_data(self, X, dtype="numeric", reset=False), dtype=float)

    def _blocks(
        self, X: Any, noise_std: Any, size: int = 1024
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Standardised inputs (n_in, m) and known noise, at most `size` rows to limit memory."""
        X = self._inputs_of(X)
        known = self._known_std(noise_std, len(X))
        for start in range(0, len(X), size):
            rows = slice(start, start + size)
            yield self._scaling.inputs(X[rows]), None if known is None else known[rows]

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
