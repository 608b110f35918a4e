"""SparseBNNRegressor: sparse Bayesian neural networks with a scikit-learn interface."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sbnn._core.messages import warn
from sbnn.evidence.laplace.fit import Options
from sbnn.evidence.laplace.mixture import NoiseTrial, Trial
from sbnn.likelihoods import Likelihood
from sbnn.methods.posterior import Posterior, summary
from sbnn.methods.registry import SAMPLING
from sbnn.regressor import options as checks
from sbnn.regressor.architectures import families
from sbnn.regressor.noise import known_noise, likelihoods, reason
from sbnn.regressor.prediction import Predictions
from sbnn.regressor.rows import Rows, check_weights
from sbnn.regressor.scaling import Scaling
from sbnn.regressor.state import FittedState
from sbnn.regressor.training import Task, Trained, train
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
    noise : {"auto", "constant", "varying", "student_t", "varying_student_t"} or Likelihood
        Distribution of the noise: Gaussian with one standard deviation per output; Gaussian with a
        standard deviation that depends on the inputs; the same two with Student-t tails, which
        tolerate outliers; or a custom likelihood (`sbnn.likelihoods.Likelihood`). "auto" compares
        the four by their evidence and takes the simplest that is not clearly worse than the best.
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
    noise_used_ : str
    noise_reason_ : Message
        The kind of noise that was used, and why; `str(model.noise_reason_)` is a phrase.
    noise_trials_ : DataFrame
        The kinds of noise that "auto" compared, and the best log evidence each had reached when
        one of them was chosen, for y in original units.
    noise_std_ : float or ndarray, shape (n_outputs,)
        Standard deviation of the noise; if it varies, the root mean square at the training inputs.
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
        noise: str | Likelihood = "auto",
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
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, noise_std: Any = None
    ) -> SparseBNNRegressor:
        """Fit to a table.

        The order of the rows does not matter.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n, n_features)
        y : array_like, shape (n,) or (n, n_outputs)
        sample_weight : array_like, shape (n,), optional
            How many times every row counts: a weight of 2 is the same as repeating the row, 0 the
            same as leaving it out.
        noise_std : array_like, shape (n,) or (n, n_outputs), optional
            Known standard error of every measurement in the units of y. New rows are predicted
            with their root mean square.

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
        known = known_noise(self.noise_std, noise_std, targets.shape, self._flat)
        kinds = likelihoods(self.noise, known is not None)
        per_row = known if known is not None and known.ndim == 2 else None
        weights = check_weights(sample_weight, len(targets))
        rows = Rows.of(np.asarray(X, dtype=float), targets, per_row, weights)
        self._scaling = Scaling.of(rows.x, rows.y, rows.weights)
        architectures = families(self.hidden_layer_sizes, rows.n_rows, self.method in SAMPLING)
        chosen = checks.choose_method(self.method, architectures)
        self.method_used_, self.method_reason_ = chosen
        task = Task(
            rows=rows,
            scaling=self._scaling,
            known=known if per_row is None else rows.noise_std,
            kinds=kinds,
            architectures=architectures,
            activation=checks.canonical_activation(self.activation),
            method=self.method_used_,
            options=self._options(),
            method_options=self.method_options or {},
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        self._set_trained(train(task), task)
        warn(self.messages_)
        return self

    def _options(self) -> Options:
        """Options of the Laplace engine; a sampling method uses it to choose the noise model."""
        sampled = self.method_used_ in SAMPLING
        return Options(
            **{
                "n_starts": self.n_starts,
                "sparse": self.method_used_ != "laplace",
                "n_threads": checks.n_threads(self.n_jobs),
                **({} if sampled else self.method_options or {}),
            }
        )

    def _set_trained(self, trained: Trained, task: Task) -> None:
        """Attributes that `fit` sets from what training found."""
        self._posterior: Posterior = trained.posterior
        if trained.result is not None:
            self.result_ = trained.result
        units = task.rows.n_rows * float(np.log(self._scaling.y_scale).sum())
        self.log_evidence_ = trained.log_evidence - units
        self.trials_ = pd.DataFrame(trained.trials, columns=Trial._fields)
        self.noise_trials_ = pd.DataFrame(trained.noise_trials, columns=NoiseTrial._fields)
        for table in (self.trials_, self.noise_trials_):
            table["log_evidence"] -= units
        gain = {trial.noise: trial.log_evidence for trial in trained.noise_trials}
        self.noise_used_ = trained.noise
        self.noise_reason_ = reason(
            self.noise,
            task.known is not None,
            trained.noise,
            gain.get(trained.noise, 0.0) - gain.get("constant", 0.0),
        )
        self._set_learned()
        x_t = task.scaling.training(task.rows.x, task.rows.y)[0]
        self._set_feature_relevance(x_t, task.seed)

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
            self.noise_used_,
            self.noise_reason_,
            self.noise_trials_,
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
        out.noise_used_, out.noise_reason_ = state.noise_used, state.noise_reason
        out.noise_trials_ = state.noise_trials
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
