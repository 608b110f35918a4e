"""SparseBNNRegressor: sparse Bayesian neural networks with scikit-learn's manners."""

from __future__ import annotations

import os
from numbers import Integral, Real

import numpy as np
import pandas as pd
from scipy import special
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_info

from sbnn._core.messages import Message, MethodChosen, MethodRequested, warn
from sbnn.evidence.laplace.fit import Options, fit
from sbnn.evidence.laplace.mixture import Trial, moments, quantiles
from sbnn.evidence.laplace.models import NetworkModel
from sbnn.methods.registry import AUTO, CHOICES, METHODS, SAMPLING
from sbnn.problems.activations import ACTIVATIONS
from sbnn.regressor.architectures import families
from sbnn.regressor.posteriors import DrawsPosterior, LaplacePosterior, Posterior
from sbnn.regressor.scaling import Scaling
from sbnn.tables.column_checks import check_numbers

MAX_SAMPLED = 30  # parameters up to which sampling is feasible


class SparseBNNRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Regression by sparse Bayesian neural networks.

    Inputs and targets are standardised inside; everything is reported in original units, but
    for the network's own parameters. Changing the units of X or y changes nothing else.

    Parameters
    ----------
    hidden_layer_sizes : "default", "auto", int, tuple of int, or list of tuples
        Widths of the hidden layers. "default" mixes one and two hidden layers, (20,) and (15, 10),
        above 2,000 rows (40,) and (20, 10); up to 500 rows it tries few neurons as well, (3,) and
        (6,), and the evidence chooses. "auto" lets it choose between all of these and (12,) with
        (8, 6). Either takes (3,) where a sampling method is asked for. With a list of tuples, the
        starts are shared between the architectures.
    activation : str
        "tanh", "relu", "logistic" (or "sigmoid"), "softplus", "sin", "identity".
    method : {"auto", "nsbl", "laplace_nsbl", "standard", "hierarchical", "laplace"}
        "laplace_nsbl" is sampling-free and meant for tables of data; "laplace" the same with one
        precision per layer and no pruning; the others sample and are meant for up to 30 parameters.
        "auto" is "laplace_nsbl": seconds where sampling takes minutes.
    noise_std : float, sequence of float, or None
        Known standard deviation of the noise in the units of y, one for all outputs or one each;
        None infers one per output.
    n_starts : int
        Starts of the sampling-free methods.
    random_state : int, RandomState or None
    n_jobs : int or None
        Starts that run side by side, in threads; None uses as many as the linear algebra would
        (see OMP_NUM_THREADS). The answer does not depend on it.
    method_options : dict or None
        Further options of the method: of the Laplace engine, or of `sbnn.nsbl` and the like.

    Attributes
    ----------
    method_used_ : str
    method_reason_ : Message
        Why; `str(model.method_reason_)` is a phrase.
    network_ : Network
        That of the best optimum.
    relevance_, log_alpha_ : ndarray, shape (n_parameters,)
        γ and log α of its parameters, `network_.names`; pruned ones have γ = 0 and log α = inf.
    feature_relevance_, feature_relevance_std_ : ndarray, shape (n_features_in_,)
        Share of every input in the mean squared gradient of the prediction (standardised units, so
        it has none), from 0 to 1, and its posterior standard deviation.
    log_evidence_ : float
        Of the best optimum, for y in its own units.
    noise_std_ : float or ndarray, shape (n_outputs,)
    optima_ : DataFrame
        The optima of the mixture, best first; log evidences for y in its own units.
    n_parameters_, n_parameters_kept_ : float
        Weights and biases in total, and those left after pruning that have a way to the output;
        whole numbers for each optimum (`optima_`), here their mean over the optima. In the
        estimator returned by `compact` both count what is stored.
    trials_ : DataFrame
        The families of hidden widths that were tried and the best log evidence each had reached
        when one of them was chosen, for y in its own units.
    messages_ : list of Message
        What the user should know, such as optima that have not converged; `str(message)` is a
        sentence. `fit` issues those about convergence as warnings too.
    result_ : Result
        What the sampling method returned, for standardised X and y (not kept by pickle and `save`).

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
        hidden_layer_sizes="default",
        activation="tanh",
        method="auto",
        noise_std=None,
        n_starts=16,
        random_state=None,
        n_jobs=None,
        method_options=None,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.method = method
        self.noise_std = noise_std
        self.n_starts = n_starts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.method_options = method_options

    # ------------------------------------------------------------------------------------- fit
    def fit(self, X, y):
        """Learn from X of shape (n, n_features) and y of shape (n,) or (n, n_outputs)."""
        check_numbers(X)
        X, y = validate_data(
            self, X, y, dtype="numeric", multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        self._check_options()
        y = np.asarray(y, dtype=float)
        self._flat = y.ndim == 1
        targets = y[:, None] if self._flat else y
        self.n_outputs_ = targets.shape[1]
        noise = self._known_noise()
        self._scaling = Scaling.of(np.asarray(X, dtype=float), targets)
        x_t, y_t = self._scaling.training(np.asarray(X, dtype=float), targets)
        architectures = families(self.hidden_layer_sizes, len(y), self.method in SAMPLING)
        self.method_used_, self.method_reason_ = self._choose(architectures)
        variance = None if noise is None else (noise / self._scaling.y_scale) ** 2
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._posterior: Posterior
        self.trials_ = pd.DataFrame(columns=Trial._fields)
        if self.method_used_ in SAMPLING:
            value = self._fit_sampling(x_t, y_t, variance, architectures, seed)
        else:
            value = self._fit_laplace(x_t, y_t, variance, architectures, seed)
        self.log_evidence_ = value - self._log_units(len(y))
        self._set_learned()
        self._set_feature_relevance(x_t, seed)
        warn(self.messages_)
        return self

    def _fit_laplace(self, x_t, y_t, variance, architectures, seed) -> float:
        options = Options(
            **{
                "n_starts": self.n_starts,
                "sparse": self.method_used_ == "laplace_nsbl",
                "n_threads": self._n_threads(),
                **(self.method_options or {}),
            }
        )
        noise = None if variance is None else 0.5 * np.log(variance)[:, None]
        families = [
            [
                NetworkModel(
                    x_t=x_t, y_t=y_t, sizes=(len(x_t), *w, len(y_t)),
                    activation=self._activation, noise=noise,
                )
                for w in widths
            ]
            for widths in architectures
        ]  # fmt: skip
        mixture = fit(families, np.random.default_rng(seed), options)
        some = np.random.default_rng(0).permutation(x_t.shape[1])[:500]
        self._posterior = LaplacePosterior.of(mixture, x_t[:, some])
        self.trials_ = pd.DataFrame(mixture.trials, columns=Trial._fields)
        self.trials_["log_evidence"] -= self._log_units(y_t.shape[1])
        return float(mixture.optima[0].log_evidence)

    def _fit_sampling(self, x_t, y_t, variance, architectures, seed) -> float:
        from sbnn.problems import network_regression as regression

        network = regression.network_problem(
            np.ascontiguousarray(x_t.T),
            np.ascontiguousarray(y_t.T),
            hidden_layer_sizes=architectures[0][0],
            activation=self._activation,
            noise_std=None if variance is None else np.sqrt(variance),
        )
        run = METHODS[self.method_used_].load()
        self.result_ = result = run(network, key=seed, **(self.method_options or {}))
        d = network.network.n_parameters
        unknown = np.full(d, np.nan)
        self._posterior = DrawsPosterior(
            network.network,
            result.phi[:, :d],
            np.exp(network.regression.new_theta(result.phi)[..., 0]),
            unknown if result.log_alpha is None else result.log_alpha[:d],
            unknown if result.relevance is None else result.relevance[:d],
        )
        return float(result.log_evidence)

    def _log_units(self, n_rows: int) -> float:
        """What the log density of n standardised rows exceeds that of the rows by."""
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
        if "log_evidence" in self.optima_:  # for y in its own units, as that of the best one
            shift = self.log_evidence_ - self.optima_["log_evidence"].iloc[0]
            self.optima_["log_evidence"] += shift
        self.messages_ = posterior.messages()

    def _set_feature_relevance(self, x_t, seed) -> None:
        rng = np.random.default_rng([seed, 1])
        rows = rng.permutation(x_t.shape[1])[:500]
        self._inputs = np.ascontiguousarray(x_t[:, rows])
        shares, spread = self._posterior.sensitivities(self._inputs, rng)
        self.feature_relevance_, self.feature_relevance_std_ = shares, spread

    # --------------------------------------------------------------------------------- options
    @property
    def _activation(self) -> str:
        return "sigmoid" if self.activation == "logistic" else self.activation

    def _check_options(self) -> None:
        if self.method not in CHOICES:
            raise ValueError(f"`method` must be one of {', '.join(CHOICES)}; got {self.method!r}.")
        if self._activation not in ACTIVATIONS:
            known = ", ".join((*ACTIVATIONS, "logistic"))
            raise ValueError(f"`activation` must be one of {known}; got {self.activation!r}.")
        if not isinstance(self.n_starts, Integral) or int(self.n_starts) < 1:
            raise ValueError(f"`n_starts` must be a whole number ≥ 1; got {self.n_starts!r}.")

    def _known_noise(self):
        if self.noise_std is None:
            return None
        noise = np.asarray(self.noise_std, dtype=float)
        if noise.ndim > 1 or noise.size not in (1, self.n_outputs_):
            raise ValueError(
                f"`noise_std` must be one number or one per output ({self.n_outputs_}); "
                f"got shape {noise.shape}."
            )
        if not (np.isfinite(noise).all() and (noise > 0).all()):
            raise ValueError(f"`noise_std` must be finite and above zero; got {self.noise_std!r}.")
        return np.broadcast_to(noise.ravel(), (self.n_outputs_,))

    def _choose(self, architectures) -> tuple[str, Message]:
        """The method and the reason for it."""
        if self.method != "auto":
            if self.method in SAMPLING and len(architectures[0]) > 1:
                raise ValueError(
                    f"method={self.method!r} takes one architecture; got {len(architectures[0])}. "
                    "Give one tuple, or use method='laplace_nsbl'."
                )
            return self.method, MethodRequested()
        return AUTO, MethodChosen()

    def _n_threads(self) -> int:
        if self.n_jobs is None or self.n_jobs == -1:
            allowed = [m["num_threads"] for m in threadpool_info() if m["user_api"] == "blas"]
            return max(1, min([*allowed, os.cpu_count() or 1]))
        return max(1, int(self.n_jobs))

    # ----------------------------------------------------------------------------- predictions
    def predict(self, X, return_std=False, return_interval=None):
        """Mean of new observations at X, with their standard deviation and interval if wanted.

        Parameters
        ----------
        X : array, shape (m, n_features)
        return_std : bool
            Also return the standard deviation, noise included.
        return_interval : float, optional
            Also return the central interval of this probability, last axis (lower, upper).

        Returns
        -------
        mean : ndarray, shape (m,) or (m, n_outputs)
        std : ndarray, of the same shape
        interval : ndarray, shape (…, 2)
        """
        if return_interval is not None and not (
            isinstance(return_interval, Real) and 0 < float(return_interval) < 1
        ):
            raise ValueError(
                f"`return_interval` is a probability between 0 and 1, as 0.95; "
                f"got {return_interval!r}."
            )
        means, stds, intervals = [], [], []
        for part in self._blocks(X):
            mixture = self._posterior.components(part)
            mean, std = moments(*mixture)
            means.append(mean)
            stds.append(std)
            if return_interval is not None:
                tail = 0.5 * (1 - float(return_interval))
                intervals.append(quantiles(*mixture, (tail, 1 - tail)))
        out = [self._units(np.concatenate(means, axis=1))]
        if return_std:
            out.append(self._units(np.concatenate(stds, axis=1), shift=False))
        if return_interval is not None:
            bounds = np.concatenate(intervals, axis=2)
            out.append(np.stack([self._units(b) for b in bounds], axis=-1))
        return out[0] if len(out) == 1 else tuple(out)

    def predictive_mixture(self, X) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, means and stds of the Gaussian mixture predicted for every row.

        Each of shape (n_components, m), or (n_components, m, n_outputs) for several outputs.
        """
        parts = [self._posterior.components(part) for part in self._blocks(X)]
        weights, means, stds = (np.concatenate(p, axis=2) for p in zip(*parts))
        shares = weights[:, 0] if self._flat else weights.transpose(0, 2, 1)
        spread = np.array([self._units(s, shift=False) for s in stds])
        return shares, np.array([self._units(m) for m in means]), spread

    def log_predictive_density(self, X, y) -> np.ndarray:
        """log p(y|x, D) of every row (and output), in the units of y."""
        weights, means, stds = self.predictive_mixture(X)
        z = (np.asarray(y, dtype=float) - means) / stds
        terms = -0.5 * z**2 - np.log(stds) - 0.5 * np.log(2 * np.pi)
        return special.logsumexp(terms, b=weights, axis=0)

    def sample_y(self, X, n_samples=1, random_state=0, noise=True):
        """Joint draws of new observations at X (of the function, without `noise`).

        Shape (m, n_samples), or (m, n_outputs, n_samples), as scikit-learn's Gaussian process.
        """
        X = self._inputs_of(X)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        draws = self._posterior.sample(self._scaling.inputs(X), n_samples, rng, noise)
        return np.stack([self._units(d) for d in draws], axis=-1)

    def _inputs_of(self, X) -> np.ndarray:
        check_is_fitted(self)
        check_numbers(X)
        return np.asarray(validate_data(self, X, dtype="numeric", reset=False), dtype=float)

    def _blocks(self, X, size: int = 1024):
        X = self._inputs_of(X)
        for start in range(0, len(X), size):
            yield self._scaling.inputs(X[start : start + size])

    def _units(self, values, shift=True) -> np.ndarray:
        """(n_out, m) in standardised units → (m,) or (m, n_out) in those of y."""
        out = self._scaling.outputs(values, shift)
        return out[:, 0] if self._flat else out

    # ------------------------------------------------------------------------ what was learned
    def summary(self) -> pd.DataFrame:
        """One row per parameter of `network_`: median, spread, log α, relevance γ, and if pruned.

        In standardised units; of the best optimum, or of posterior draws without mirror images.
        The spread is half the central 68 %: the std, where the posterior is Gaussian.
        """
        check_is_fitted(self)
        centre, spread = self._posterior.centre_and_spread
        columns = {"median": centre, "spread": spread, "log_alpha": self.log_alpha_}
        index = pd.Index(self.network_.names, name="parameter")
        columns |= {"relevance": self.relevance_, "pruned": self._posterior.pruned}
        return pd.DataFrame(columns, index=index)

    def compact(self) -> SparseBNNRegressor:
        """A fitted estimator with the pruned, smaller networks and the same predictions.

        Neurons without a way to the output are cut out, and weights that move no prediction at the
        training inputs (mean or standard deviation) are dropped, all of them together by less
        than 0.3 % of its standard deviation. `n_parameters_` counts the connections stored. Its
        file is smaller by the training inputs; pruned weights take no room in either.
        """
        from sbnn.regressor.files import from_parts, parts

        check_is_fitted(self)
        arrays, metadata = parts(self)
        small = self._posterior.compact(self._inputs)
        if isinstance(small, LaplacePosterior):  # it stays as it is: inputs have done their work
            arrays["inputs"] = self._inputs[:, :0]
        return from_parts(arrays, metadata, small)

    def save(self, path, overwrite: bool = False) -> None:
        """Write one NetCDF file, name.nc, without pickled code; `sbnn.load` reads it."""
        from sbnn.regressor.files import save

        check_is_fitted(self)
        save(self, path, overwrite)

    def __getstate__(self):
        state = super().__getstate__()
        # A Result holds the compiled problem, which cannot be pickled; predictions do not need it.
        return {name: value for name, value in state.items() if name != "result_"}
