"""SparseBNNRegressor: sparse Bayesian neural networks with a scikit-learn interface."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sbnn._core.messages import warn
from sbnn.design.suggestions import Suggestions
from sbnn.evidence.laplace.mixture import NoiseTrial, Trial
from sbnn.exports.writing import Export
from sbnn.likelihoods import Likelihood
from sbnn.methods.posterior import Posterior
from sbnn.regressor import options as checks
from sbnn.regressor.account.cautions import about_table
from sbnn.regressor.account.description import Description, with_losses
from sbnn.regressor.data.completion import Table, complete
from sbnn.regressor.data.inputs import read_training
from sbnn.regressor.data.rows import Rows, check_weights, some_rows, training
from sbnn.regressor.data.scaling import Scaling
from sbnn.regressor.noise import known_noise, likelihoods, reason
from sbnn.regressor.prediction import Predictions
from sbnn.regressor.running import Running
from sbnn.regressor.state import FittedState
from sbnn.regressor.training import Task, Trained, train
from sbnn.regressor.verification import Verification


class SparseBNNRegressor(
    Predictions,
    Description,
    Suggestions,
    Export,
    Verification,
    Running,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    """Regression by sparse Bayesian neural networks.

    Inputs and targets are standardised internally: units do not matter, and everything except the
    network's own parameters is reported in original units.

    Parameters
    ----------
    hidden_layer_sizes : "default", "auto", int, tuple of int, or list of tuples
        Widths of the hidden layers before pruning. "default" mixes one and two hidden layers: (12,)
        and (8, 6) up to 500 rows, (20,) and (15, 10) up to 2,000, else (40,) and (20, 10); up to 3
        inputs, (30,) instead of narrower ones above 60 rows. Where the best of these keeps most of
        its weights, larger networks join: (10, 10, 10) above 100 rows, (20, 15) above 500 and up to
        2,500. With four rows per weight, so does a linear one.
        "auto" lets the evidence choose between these pairs and (3,) with (6,). With a sampling
        method, both mean (3,) if that network has at most 30 parameters or the method is not
        "nsbl"; with "layer_wise", up to three layers of 20 or 40 (2,000 rows). Lists share starts.
    activation : str
        "tanh", "relu", "logistic" (or "sigmoid"), "softplus", "sin", "identity".
    method : str
        "auto", "nsbl", "laplace_nsbl", "standard", "hierarchical", "laplace", "last_layer" or
        "layer_wise". "laplace_nsbl" does not sample and suits tables of data; "laplace" is the same
        with one precision per layer and no pruning; "last_layer" trains the hidden layers and
        infers only the output layer, exactly and from any number of rows (see `sbnn.last_layer`);
        "layer_wise" adds hidden layers while the evidence rises, up to the depth of
        `hidden_layer_sizes`; the others sample. "standard" and "hierarchical" suit up to 30
        parameters, as `sbnn.nsbl` does; for larger networks "nsbl" draws from the exact posterior
        of every optimum of "laplace_nsbl" and refines α on the exact evidence, in minutes. "auto"
        is "laplace_nsbl": seconds.
    noise_std : float, sequence of float, or None
        Known standard deviation of the noise in the units of y, one for all outputs or one each;
        None infers one per output.
    noise : {"auto", "constant", "varying", "student_t", "varying_student_t"} or Likelihood
        Distribution of the noise: Gaussian with one standard deviation per output; Gaussian with a
        standard deviation that depends on the inputs; the same two with Student-t tails, which
        tolerate outliers; or a custom likelihood (`sbnn.likelihoods.Likelihood`). "auto" compares
        constant, "student_t" and "varying_student_t" noise by their evidence and takes the simplest
        that is not clearly worse than the best.
    n_starts : int
        Number of starts of the sampling-free methods.
    random_state : int, RandomState or None
    n_jobs : int or None
        Starts that run in parallel threads; None uses as many as the linear algebra would (see
        OMP_NUM_THREADS). With a joblib backend or a Dask client they run there instead. The result
        does not depend on it.
    method_options : dict or None
        Further options of the method: those of the Laplace engine, or of `sbnn.nsbl` and so on.
    categorical_features : "from_dtype", array_like of str, int or bool, or None
        Columns that hold categories. "from_dtype": those of a DataFrame that hold text or have the
        dtype "category". Otherwise their names, positions or a mask; None allows none.
    missing : {"impute", "error"}
        What to do about missing cells of X. "impute" fills each several times from similar rows,
        in `fit` and when predicting; "error" raises.
    time_limit : float or None
        Seconds after which `fit` ends with the best result so far; without sampling only.
    verbose : bool or callable
        True prints progress to stderr: starts done, log evidence, time left. A function is called
        with a `FitProgress` instead.

    Attributes
    ----------
    method_used_ : str
    method_reason_ : Message
        Why it was chosen; `str(model.method_reason_)` is a phrase.
    account_ : Account
        What the predictor consists of: networks whose predictions are averaged (`n_optima`),
        weights they keep together (`n_kept` of `n_parameters`) and each (`fewest` to `most`),
        columns they use (`inputs`), and the one network that would do, if any (`single`).
    network_ : Network
        Network of the optimum with the largest evidence, the first of `optima_`.
    relevance_, log_alpha_ : ndarray, shape (n_parameters of `network_`,)
        γ and log α of its parameters, `network_.names`; pruned ones have γ = 0 and log α = inf.
        NaN for parameters without a precision of their own.
    input_relevance_ : DataFrame
        One row per column of X: the `loss` of log density per left-out row, in nats, if it is
        withheld together with the columns collinear with it (`group`), and its standard `error`;
        `alone` and `alone_error` if only this column is withheld. A loss of less than two errors
        is zero. NaN for methods that sample and for "last_layer".
    feature_relevance_, feature_relevance_std_ : ndarray, shape (n_features_in_,)
        Share of every column of X in the sum of their total effects, from 0 to 1, and its
        posterior standard deviation. The total effect of a column is half the mean squared change
        of the prediction if its value is exchanged with that of another row. Zero for constant
        columns.
    encoder_ : ColumnEncoder
        How the columns of X become inputs of the network.
    columns_ : DataFrame
        One row per column of X: kind, categories, missing cells and inputs of the network.
    log_evidence_ : float
        Log evidence of the best optimum, for y in original units.
    noise_used_ : str
    noise_reason_ : Message
        The kind of noise that was used, and why; `str(model.noise_reason_)` is a phrase.
    noise_trials_ : DataFrame
        The kinds of noise that "auto" compared, with log evidences as in `trials_`.
    noise_std_ : float or ndarray, shape (n_outputs,)
        Standard deviation of the noise; if it varies, the root mean square at the training inputs.
    optima_ : DataFrame
        The optima of the mixture, largest evidence first; log evidences for y in original units.
        `weight` is the share in predictions, `loss` what left-out rows would lose with this
        optimum alone, in nats per row, with its standard error `loss_error`.
    n_parameters_, n_parameters_kept_ : int
        Weights and biases of all optima together: in total, and those kept, that is, not pruned
        and connected to the output. In the estimator returned by `compact`, both count the stored
        weights.
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
    verification_, verified_ : DataFrame, bool
        What the last call of `verify` found; missing before.

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
        categorical_features: Any = "from_dtype",
        missing: str = "impute",
        time_limit: float | None = None,
        verbose: Any = False,
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
        self.categorical_features = categorical_features
        self.missing = missing
        self.time_limit = time_limit
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self.missing == "impute"
        return tags

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, noise_std: Any = None
    ) -> SparseBNNRegressor:
        """Fit to a table; the order of its rows does not matter.

        Parameters
        ----------
        X : array_like, sparse matrix or DataFrame, shape (n, n_features)
            Columns of a DataFrame may hold numbers, text, categories, booleans, dates or times.
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
            If a cell does not suit its column, or an option is invalid.
        """
        encoder, encoded, y = read_training(self, X, y, self.categorical_features, self.missing)
        checks.check_options(self.method, self.activation, self.n_starts)
        self._begin()
        self._flat = y.ndim == 1
        targets = y[:, None] if self._flat else y
        self.n_outputs_ = targets.shape[1]
        known = known_noise(self.noise_std, noise_std, targets.shape, self._flat)
        kinds = likelihoods(self.noise, known is not None, len(targets))
        per_row = known if known is not None and known.ndim == 2 else None
        weights = check_weights(sample_weight, len(targets))
        n_rows = float(len(targets) if weights is None else weights.sum())
        architectures = checks.architectures_for(
            self.method, self.hidden_layer_sizes, n_rows, encoded.values.shape[1], self.n_outputs_
        )
        self.method_used_, self.method_reason_ = checks.choose_method(self.method, architectures)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))

        def make_task(rows: Rows) -> Task:
            return Task(
                rows=rows,
                scaling=Scaling.of(rows.x, rows.y, rows.weights),
                known=known if per_row is None else rows.noise_std,
                kinds=kinds,
                architectures=architectures,
                activation=checks.canonical_activation(self.activation),
                method=self.method_used_,
                options=self._options(n_rows, encoded.values.shape[1]),
                method_options=self.method_options or {},
                seed=seed,
            )

        table = Table(encoded, targets, per_row, weights)
        self.encoder_, rows = complete(table, encoder, make_task)
        task = make_task(rows)
        self._scaling, self._task = task.scaling, task
        self._set_trained(train(task), task)
        self._end()
        warn([*self.messages_, *about_table(encoder, encoded, y, self._names)])
        return self

    def _set_trained(self, trained: Trained, task: Task) -> None:
        """Attributes that `fit` sets from what training found."""
        names = self._names
        found = with_losses(trained.posterior, task, self.encoder_, names)
        self._posterior: Posterior = found[0]
        self.input_relevance_ = found[1]
        if trained.result is not None:
            self.result_ = trained.result
        units = task.rows.n_rows * float(np.log(self._scaling.y_scale).sum())
        self.log_evidence_ = trained.log_evidence - units
        self.trials_ = pd.DataFrame(trained.trials, columns=Trial._fields)
        self.noise_trials_ = pd.DataFrame(trained.noise_trials, columns=NoiseTrial._fields)
        for table in (self.trials_, self.noise_trials_):
            table["log_evidence"] -= units
        self.noise_used_ = trained.noise
        self.noise_reason_ = reason(
            self.noise, task.known is not None, trained.noise, dict(trained.noise_trials)
        )
        self._set_learned()
        x_t = task.scaling.training(task.rows.x, task.rows.y)[0]
        self._set_relevance(x_t, task.rows.weights, task.seed)

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
            for name in self.optima_.columns.intersection(["log_evidence", "laplace"]):
                self.optima_[name] += shift
        self.messages_ = posterior.messages()

    def _set_relevance(self, x_t: np.ndarray, weights: np.ndarray | None, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        completed = any(c.n_missing for c in self.encoder_.columns)
        rows = some_rows(rng, x_t.shape[1], weights if completed else None)
        self._inputs, self._training = np.ascontiguousarray(x_t[:, rows]), training(x_t, weights)
        found = self._posterior.sensitivities(self._inputs, rng, self.encoder_.groups)
        self.feature_relevance_, self.feature_relevance_std_ = found

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
            self.encoder_,
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
            self.input_relevance_,
            self._training,
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
        out._flat, out._inputs, out.encoder_ = state.one_dimensional, state.inputs, state.encoder
        out.n_features_in_, out.n_outputs_ = len(state.encoder.columns), state.scaling.n_outputs
        if state.feature_names is not None:
            out.feature_names_in_ = np.array(state.feature_names, dtype=object)
        out.method_used_, out.method_reason_ = state.method_used, state.method_reason
        out.log_evidence_, out.trials_ = state.log_evidence, state.trials
        out.noise_used_, out.noise_reason_ = state.noise_used, state.noise_reason
        out.noise_trials_, out.feature_relevance_ = state.noise_trials, state.feature_relevance
        out.feature_relevance_std_ = state.feature_relevance_std
        out.input_relevance_, out._training = state.input_relevance, state.training
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
        # Predictions need neither a Result, whose compiled problem cannot be pickled, nor the data.
        return {name: v for name, v in state.items() if name not in ("result_", "_task", "_watch")}
