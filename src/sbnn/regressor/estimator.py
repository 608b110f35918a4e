"""SparseBNNRegressor: sparse Bayesian neural networks with a scikit-learn interface."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sbnn._core.messages import warn
from sbnn.evidence.laplace.fit import Options, fit
from sbnn.evidence.laplace.mixture import Trial
from sbnn.evidence.laplace.models import NetworkModel
from sbnn.likelihoods import Likelihood, resolve
from sbnn.methods.posterior import Posterior, summary
from sbnn.methods.registry import METHODS, SAMPLING
from sbnn.regressor import options as checks
from sbnn.regressor.architectures import Family, families
from sbnn.regressor.laplace_posterior import LaplacePosterior
from sbnn.regressor.prediction import Predictions
from sbnn.regressor.scaling import Scaling
from sbnn.regressor.state import FittedState
from sbnn.tables.column_checks import check_numbers


class SparseBNNRegressor(Predictions, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Regression by sparse Bayesian neural networks.

    Inputs and targets are standardised internally; everything except the network's own parameters
    is reported in original units. Changing the units of X or y changes nothing else.

    Parameters
    ----------
    hidden_layer_sizes : "default", "auto", int, tuple of int, or list of tuples
        Widths of the hidden layers. "default" mixes one and two hidden layers, (20,) and (15, 10),
        above 2,000 rows (40,) and (20, 10); up to 500 rows it tries few neurons as well, (3,) and
        (6,), and the evidence chooses. "auto" lets it choose between all of these and (12,) with
        (8, 6). With a sampling method, both mean (3,). With a list of tuples, the starts are shared
        between the architectures.
    activation : str
        "tanh", "relu", "logistic" (or "sigmoid"), "softplus", "sin", "identity".
    method : {"auto", "nsbl", "laplace_nsbl", "standard", "hierarchical", "laplace"}
        "laplace_nsbl" does not sample and suits tables of data; "laplace" is the same with one
        precision per layer and no pruning; the others sample, for networks of up to 30 parameters.
        "auto" is "laplace_nsbl": seconds where sampling takes minutes.
    noise_std : float, sequence of float, or None
        Known standard deviation of the noise in the units of y, one for all outputs or one each;
        None infers one per output.
    noise : {"constant", "varying", "student_t", "varying_student_t"} or Likelihood
        Distribution of the noise: Gaussian with one standard deviation per output; Gaussian with a
        standard deviation that depends on the inputs; the same two with Student-t tails, which
        tolerate outliers; or a custom likelihood (`sbnn.likelihoods.Likelihood`). Tails with two
        degrees of freedom or fewer have an infinite standard deviation: use intervals.
    n_starts : int
        Number of starts of the sampling-free methods.
    random_state : int, RandomState or None
    n_jobs : int or None
        Starts that run in parallel threads; None uses as many as the linear algebra would (see
        OMP_NUM_THREADS). The result does not depend on it.
    method_options : dict or None
        Further options of the method: those of the Laplace engine, or of `sbnn.nsbl` and so on.

    Attributes
    ----------
    method_used_ : str
    method_reason_ : Message
        Why it was chosen; `str(model.method_reason_)` is a phrase.
    network_ : Network
        Network of the best optimum.
    relevance_, log_alpha_ : ndarray, shape (n_parameters,)
        γ and log α of its parameters, `network_.names`; pruned ones have γ = 0 and log α = inf.
    feature_relevance_, feature_relevance_std_ : ndarray, shape (n_features_in_,)
        Share of every input in the mean squared gradient of the prediction (standardised units, so
        it has none), from 0 to 1, and its posterior standard deviation.
    log_evidence_ : float
        Log evidence of the best optimum, for y in original units.
    noise_std_ : float or ndarray, shape (n_outputs,)
    optima_ : DataFrame
        The optima of the mixture, best first; log evidences for y in original units.
    n_parameters_, n_parameters_kept_ : float
        Weights and biases in total, and those kept: not pruned, and connected to the output.
        Whole numbers for each optimum (`optima_`), averaged over the optima here. In the estimator
        returned by `compact`, both count the stored weights.
    trials_ : DataFrame
        The families of hidden widths that were tried and the best log evidence each had reached
        when one of them was chosen, for y in original units.
    messages_ : list of Message
        Notes on the fit, such as optima that have not converged; `str(message)` is a sentence.
        `fit` also issues those about convergence as warnings.
    posterior_ : Posterior
        The posterior for standardised inputs and targets.
    result_ : Result
        Result of the sampling method, for standardised X and y (not kept by pickle and `save`).

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn import SparseBNNRegressor
    >>> X = np.linspace(-2, 2, 60)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> model = SparseBNNRegressor((4,), method="laplace_nsbl", n_starts=4, random_state=0)
    >>> mean, std = model.fit(X, y).predict([[0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 3 * std[0])
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = "default",
        activation: str = "tanh",
        method: str = "auto",
        noise_std: Any = None,
        n_starts: int = 16,
        random_state: Any = None,
        n_jobs: int | None = None,
        method_options: dict[str, Any] | None = None,
        noise: str | Likelihood = "constant",
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.method = method
        self.noise_std = noise_std
        self.n_starts = n_starts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.method_options = method_options
        self.noise = noise

    # ------------------------------------------------------------------------------------- fit
    def fit(self, X: Any, y: Any) -> SparseBNNRegressor:
        """Fit to a table.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n, n_features)
        y : array_like, shape (n,) or (n, n_outputs)

        Returns
        -------
        SparseBNNRegressor
            The estimator itself, fitted.

        Raises
        ------
        ValueError
            If a cell is not a finite number, or an option is invalid.
        """
        check_numbers(X)
        X, y = validate_data(
            self, X, y, dtype="numeric", multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        checks.check_options(self.method, self.activation, self.n_starts)
        y = np.asarray(y, dtype=float)
        self._flat = y.ndim == 1
        targets = y[:, None] if self._flat else y
        self.n_outputs_ = targets.shape[1]
        likelihood = resolve(self.noise)
        noise = checks.known_noise(self.noise_std, self.n_outputs_, likelihood)
        self._scaling = Scaling.of(np.asarray(X, dtype=float), targets)
        x_t, y_t = self._scaling.training(np.asarray(X, dtype=float), targets)
        architectures = families(self.hidden_layer_sizes, len(y), self.method in SAMPLING)
        chosen = checks.choose_method(self.method, architectures)
        self.method_used_, self.method_reason_ = chosen
        variance = None if noise is None else (noise / self._scaling.y_scale) ** 2
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._posterior: Posterior
        self.trials_ = pd.DataFrame(columns=Trial._fields)
        if self.method_used_ in SAMPLING:
            value = self._fit_sampling(x_t, y_t, variance, likelihood, architectures, seed)
        else:
            value = self._fit_laplace(x_t, y_t, variance, likelihood, architectures, seed)
        self.log_evidence_ = value - self._log_units(len(y))
        self._set_learned()
        self._set_feature_relevance(x_t, seed)
        warn(self.messages_)
        return self

    def _fit_laplace(
        self,
        x_t: np.ndarray,
        y_t: np.ndarray,
        variance: np.ndarray | None,
        likelihood: Likelihood,
        architectures: Sequence[Family],
        seed: int,
    ) -> float:
        options = Options(
            **{
                "n_starts": self.n_starts,
                "sparse": self.method_used_ == "laplace_nsbl",
                "n_threads": self._n_threads(),
                **(self.method_options or {}),
            }
        )
        noise = None if variance is None else 0.5 * np.log(variance)[:, None]
        n_outputs = len(y_t) * len(likelihood.outputs)
        models = [
            [
                NetworkModel(
                    x_t=x_t, y_t=y_t, sizes=(len(x_t), *widths, n_outputs),
                    activation=self._activation, likelihood=likelihood, noise=noise,
                )
                for widths in family
            ]
            for family in architectures
        ]  # fmt: skip
        mixture = fit(models, np.random.default_rng(seed), options)
        some = np.random.default_rng(0).permutation(x_t.shape[1])[:500]
        self._posterior = LaplacePosterior.of(mixture, x_t[:, some])
        self.trials_ = pd.DataFrame(mixture.trials, columns=Trial._fields)
        self.trials_["log_evidence"] -= self._log_units(y_t.shape[1])
        return float(mixture.optima[0].log_evidence)

    def _fit_sampling(
        self,
        x_t: np.ndarray,
        y_t: np.ndarray,
        variance: np.ndarray | None,
        likelihood: Likelihood,
        architectures: Sequence[Family],
        seed: int,
    ) -> float:
        from sbnn.problems import network_regression as regression

        network = regression.network_problem(
            np.ascontiguousarray(x_t.T),
            np.ascontiguousarray(y_t.T),
            hidden_layer_sizes=architectures[0][0],
            activation=self._activation,
            noise_std=None if variance is None else np.sqrt(variance),
            noise=likelihood,
        )
        run = METHODS[self.method_used_].load()
        self.result_ = result = run(network, key=seed, **(self.method_options or {}))
        self._posterior = result.posterior()
        return float(result.log_evidence)

    def _log_units(self, n_rows: int) -> float:
        """Log density of n standardised rows minus that of the rows in original units."""
        return n_rows * float(np.log(self._scaling.y_scale).sum())

    def _set_learned(self) -> None:
        """Public attributes that follow from the posterior."""
        posterior = self._posterior
        self.network_ = posterior.network
        self.relevance_, self.log_alpha_ = posterior.relevance, posterior.log_alpha
        noise = np.sqrt(posterior.noise_variance) * self._scaling.y_scale
        self.noise_std_ = float(noise[0]) if self._flat else noise
        self.n_parameters_kept_, self.n_parameters_ = posterior.counts
        self.optima_ = posterior.table()
        if "log_evidence" in self.optima_:  # for y in original units, as log_evidence_
            shift = self.log_evidence_ - self.optima_["log_evidence"].iloc[0]
            self.optima_["log_evidence"] += shift
        self.messages_ = posterior.messages()

    def _set_feature_relevance(self, x_t: np.ndarray, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        rows = rng.permutation(x_t.shape[1])[:500]
        self._inputs = np.ascontiguousarray(x_t[:, rows])
        shares, spread = self._posterior.sensitivities(self._inputs, rng)
        self.feature_relevance_, self.feature_relevance_std_ = shares, spread

    # --------------------------------------------------------------------------------- options
    @property
    def _activation(self) -> str:
        return checks.canonical_activation(self.activation)

    def _n_threads(self) -> int:
        return checks.n_threads(self.n_jobs)

    # --------------------------------------------------------------------------------- summaries
    def summary(self) -> pd.DataFrame:
        """Summarise every parameter of `network_`, in standardised units.

        Returns
        -------
        DataFrame
            One row per parameter: median, spread (half the width of the central 68 %; the std of a
            Gaussian), log α, relevance γ and whether it is pruned. For the best optimum, or for
            posterior draws, of which one of each set of mirror images counts.
        """
        return summary(self.posterior_)

    def compact(self) -> SparseBNNRegressor:
        """Return a fitted estimator with smaller, pruned networks and the same predictions.

        Neurons that are not connected to the output are removed, and so are weights that do not
        affect predictions at the training inputs: together they change no mean and no standard
        deviation by more than 0.3 % of the standard deviation. `n_parameters_` counts the stored
        weights. The file omits the training inputs; pruned weights take no space in either file.

        Returns
        -------
        SparseBNNRegressor
        """
        state = self.fitted_state()
        small = state.posterior.compact(state.inputs)
        # A compacted posterior stays unchanged and no longer needs the inputs.
        inputs = state.inputs[:, :0] if small.compacted else state.inputs
        parameters = self.get_params(deep=False)
        return self.from_state(parameters, replace(state, posterior=small, inputs=inputs))

    # ------------------------------------------------------------------------------- state, files
    def fitted_state(self) -> FittedState:
        """Everything `fit` learned, as one object.

        Returns
        -------
        FittedState
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return FittedState(
            self._posterior,
            self._scaling,
            self._flat,
            self._inputs,
            None if names is None else [str(name) for name in names],
            self.method_used_,
            self.method_reason_,
            self.log_evidence_,
            self.trials_,
            self.feature_relevance_,
            self.feature_relevance_std_,
        )

    @classmethod
    def from_state(cls, parameters: dict[str, Any], state: FittedState) -> SparseBNNRegressor:
        """Build a fitted estimator from constructor parameters and a state.

        Parameters
        ----------
        parameters : dict
            As `get_params` returns them.
        state : FittedState

        Returns
        -------
        SparseBNNRegressor
        """
        out = cls(**parameters)
        out._posterior, out._scaling = state.posterior, state.scaling
        out._flat, out._inputs = state.one_dimensional, state.inputs
        out.n_features_in_, out.n_outputs_ = state.scaling.n_inputs, state.scaling.n_outputs
        if state.feature_names is not None:
            out.feature_names_in_ = np.array(state.feature_names, dtype=object)
        out.method_used_, out.method_reason_ = state.method_used, state.method_reason
        out.log_evidence_, out.trials_ = state.log_evidence, state.trials
        out.feature_relevance_ = state.feature_relevance
        out.feature_relevance_std_ = state.feature_relevance_std
        out._set_learned()
        return out

    def save(self, path: str | os.PathLike, overwrite: bool = False) -> None:
        """Write the estimator to one NetCDF file without pickled code; `sbnn.load` reads it.

        Parameters
        ----------
        path : str or path
            Ends in .nc, or has no suffix and gets .nc.
        overwrite : bool
            Replace an existing file.
        """
        from sbnn.regressor.files import save

        save(self, path, overwrite)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        # A Result holds the compiled problem, which cannot be pickled; predictions do not need it.
        return {name: value for name, value in state.items() if name != "result_"}
