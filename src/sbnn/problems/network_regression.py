"""Neural network regression as a problem: data, noise, parameter names and priors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.arrays import NotRealError, as_real
from sbnn.likelihoods import Likelihood, resolve
from sbnn.priors import JointPrior, KnownPrior, select_names
from sbnn.problems.fingerprints import fingerprint
from sbnn.problems.many_networks import gradient_of_many, log_likelihood_of_many
from sbnn.problems.network import Network
from sbnn.problems.noise import check_noise_std, noise_priors, require_gaussian
from sbnn.problems.problem import Problem
from sbnn.problems.regression import Regression
from sbnn.problems.symmetry import Symmetry
from sbnn.problems.target import Target


class NetworkProblem(Problem):
    """Regression with a neural network; create one with `network_problem`.

    Attributes
    ----------
    network : Network
        With p outputs per target, p the number of `likelihood.outputs`.
    likelihood : Likelihood
    x, y : ndarray, shapes (n, n_inputs) and (n, n_targets)
    noise_std : ndarray or None
        Known standard deviations, (n_targets,) or (n, n_targets); None if they are inferred.
    """

    network: Network
    regression: Regression

    def __init__(
        self,
        network: Network,
        x: np.ndarray,
        y: np.ndarray,
        likelihood: Likelihood,
        noise_std: np.ndarray | None,
        priors: Mapping[str, KnownPrior] | None,
        ard: Sequence[str] | None,
        bound: float,
        noise_prior: KnownPrior | None,
    ):
        self.network, self.x, self.y, self.likelihood = network, x, y, likelihood
        self.noise_std = None if noise_std is None else np.asarray(noise_std, dtype=float)
        names, labels = list(network.names), list(network.labels)
        given = dict(priors or {})
        known = None if self.noise_std is None else np.log(self.noise_std)[..., None]
        if known is None:
            added, given = noise_priors(likelihood, y, given, noise_prior)
            names += added
            labels += [_noise_label(name) for name in added]
        if ard is None:
            fixed = select_names(names, list(given)) if given else np.zeros(len(names), bool)
            ard = [n for n, k in zip(names, fixed) if not k]
        self._set_parameters(names, given, ard, bound, labels)
        self.black_box = False
        self.function = _network_log_likelihood(network, likelihood, known is None)
        self.data = (x, y, np.zeros((y.shape[1], len(likelihood.parameters))))
        if known is not None:
            self.data = (x, y, known)
        self.observations = y
        self.regression = Regression(
            _network_outputs(network, y.shape[1]), x, network.n_parameters, likelihood, y, known
        )

    def __repr__(self) -> str:
        size = "-".join(map(str, self.network.sizes))
        noise = "inferred"
        if self.noise_std is not None:
            each = self.noise_std.ndim > 1
            noise = "per row" if each else ", ".join(f"{s:.4g}" for s in self.noise_std)
        return (
            f"<sbnn problem: {size} network ({self.network.activation}), {len(self.x)} rows; "
            f"{self.n_parameters} parameters, {int(self.ard.sum())} of them ARD; noise std {noise}>"
        )

    @functools.cached_property
    def _batched(self) -> Callable:
        return self.function

    @property
    def _rapid(self) -> Callable:
        inferred = self.noise_std is None
        return _rapid_log_likelihood(
            self.network, self.likelihood, inferred, self.data[2].ndim > 2, self._walk_precision
        )

    def smooth_target(self, prior: JointPrior | None = None) -> Target:
        kind = (self.network, self.likelihood, self.noise_std is None)
        prior = prior if prior is not None else self.known_prior()
        return Target(
            self.data, prior, log_likelihood_of_many(*kind), None, gradient_of_many(*kind)
        )

    @functools.cached_property
    def _walk_precision(self) -> str:
        """float32 where its rounding moves the log-likelihood by less than 10⁻³, else float64.

        Rounding moves an output by about ε (max|y| + B √m), for m neurons with output weights up
        to B. With n residuals r/σ of order 1 and independent rounding errors, the sum of squares
        moves by √n / σ times that.
        """
        if self.noise_std is None:
            return "float64"  # σ may become as small as the data allow
        size = np.abs(self.y).max() + self.bound * math.sqrt(self.network.sizes[-2])
        steepest = self.likelihood.sensitivity(self.data[2])
        moved = np.finfo(np.float32).eps * size * steepest * math.sqrt(self.y.size)
        return "float32" if moved < 1e-3 else "float64"

    @property
    def symmetry(self) -> Symmetry:
        return Symmetry(self.network, self.n_parameters - self.network.n_parameters)

    def observe(self, rng: np.random.Generator, phi: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """New observations for draws φ (n, d) and their outputs (n, m, K p): (n, m, K)."""
        f, theta = self._split(phi, outputs)
        return self.likelihood.sample(rng, f, theta)

    def centre_and_noise(
        self, phi: np.ndarray, outputs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Expected value and standard deviation of new observations, each (n, m, K)."""
        f, theta = self._split(phi, outputs)
        return self.likelihood.centre(f, theta), self.likelihood.std(f, theta)

    def _split(self, phi: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f = outputs.reshape(*outputs.shape[:-1], self.y.shape[1], -1)
        return f, self.regression.new_theta(phi)[:, None]

    def description(self) -> dict[str, Any]:
        return {
            **super().description(),
            "sizes": list(self.network.sizes),
            "activation": self.network.activation,
            "noise_std": None if self.noise_std is None else self.noise_std.tolist(),
            "likelihood": self.likelihood.describe(),
        }

    def data_fingerprint(self) -> str:
        return fingerprint((self.x, self.y))


def network_problem(
    X: Any,
    y: Any,
    hidden_layer_sizes: Sequence[int] = (3,),
    activation: str = "tanh",
    noise_std: Any = None,
    bound: float = 20.0,
    priors: Mapping[str, KnownPrior] | None = None,
    ard: Sequence[str] | None = None,
    noise_prior: KnownPrior | None = None,
    noise: str | Likelihood = "constant",
) -> NetworkProblem:
    """Regression of y on X with a multilayer perceptron.

    Parameters
    ----------
    X : array, shape (n,) or (n, n_features)
    y : array, shape (n,) or (n, n_outputs)
    hidden_layer_sizes : sequence of int
        Widths of the hidden layers; () is a linear model.
    activation : {"tanh", "relu", "sigmoid", "softplus", "sin", "identity"}
    noise_std : float, one per output, one per observation, or None
        Known standard deviation of Gaussian noise. None infers it as the parameter ``log_sigma``
        (``log_sigma[1]``, … for several outputs) with `noise_prior`.
    bound : float
        Parameters with an ARD prior are uniform on ±bound before their relevance is learned.
    priors : mapping, optional
        Known priors by name or group, for example ``{"b[2]": Normal(0, 0.1)}``.
    ard : sequence of str, optional
        Names or groups with an ARD prior in the sparse methods; by default, all parameters
        without a known prior.
    noise_prior : prior, optional
        Prior of ``log_sigma``; by default normal around log(std(y) / 3) with std 1.5.
    noise : {"constant", "varying", "student_t", "varying_student_t", "auto"} or Likelihood
        Distribution of the noise: Gaussian with one standard deviation per output; Gaussian with a
        standard deviation that depends on the inputs (a second output of the network); the same two
        with Student-t tails; or a custom `sbnn.likelihoods.Likelihood`. "auto" takes the one of the
        four that a quick Laplace fit of the same network prefers.

    Returns
    -------
    NetworkProblem

    Raises
    ------
    ValueError
        If X or y is not numeric and finite, their shapes do not match, an option is invalid, or the
        noise of a constant target is to be inferred.

    Examples
    --------
    >>> import sbnn
    >>> x, y = sbnn.datasets.boxcar()
    >>> problem = sbnn.network_problem(x, y, hidden_layer_sizes=(3,), noise_std=0.5)
    >>> problem.n_parameters
    10
    """
    x, targets = check_data(X, y)
    if isinstance(hidden_layer_sizes, int | np.integer):
        hidden_layer_sizes = (int(hidden_layer_sizes),)
    likelihood = _likelihood(noise, noise_std, x, targets, hidden_layer_sizes, activation)
    n_outputs = targets.shape[1] * len(likelihood.outputs)
    network = Network((x.shape[1], *hidden_layer_sizes, n_outputs), activation)
    sigma = None
    if noise_std is not None:
        require_gaussian(likelihood)
        sigma = check_noise_std(noise_std, targets.shape)
        if sigma.ndim < 2:
            sigma = np.broadcast_to(sigma, targets.shape[1:]).copy()
    elif noise_prior is None and "log_sigma" in (*likelihood.parameters, *likelihood.outputs):
        _require_varying_targets(targets)
    return NetworkProblem(network, x, targets, likelihood, sigma, priors, ard, bound, noise_prior)


def _require_varying_targets(y: np.ndarray) -> None:
    """Raise a ValueError for a constant target, whose noise would be inferred to be zero."""
    constant = np.flatnonzero(np.ptp(y, axis=0) == 0)
    if len(constant):
        which = "y" if y.shape[1] == 1 else f"y[:, {constant[0]}]"
        raise ValueError(
            f"All values of {which} are {y[0, constant[0]]:.6g}, so the noise cannot be inferred; "
            "give `noise_std`, or a `noise_prior`."
        )


def _likelihood(
    noise: str | Likelihood,
    noise_std: Any,
    x: np.ndarray,
    y: np.ndarray,
    hidden_layer_sizes: Sequence[int],
    activation: str,
) -> Likelihood:
    """The likelihood that `noise` names; "auto" is constant noise if `noise_std` is known."""
    if not (isinstance(noise, str) and noise == "auto"):
        return resolve(noise)
    if noise_std is not None:
        return resolve("constant")
    # The only import from a room above: the choice fits networks, which are built on problems.
    from sbnn.evidence.laplace.automatic_noise import preferred_noise

    return preferred_noise(x, y, hidden_layer_sizes, activation)


def check_data(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return X with shape (n, n_features) and y with shape (n, n_outputs).

    Parameters
    ----------
    X : array-like, shape (n,) or (n, n_features)
    y : array-like, shape (n,) or (n, n_outputs)

    Returns
    -------
    x, targets : ndarray

    Raises
    ------
    ValueError
        If either is not numeric and finite, or they have different numbers of rows.
    """
    arrays = []
    for name, values in (("X", X), ("y", y)):
        try:
            array = as_real(name, values)
        except NotRealError as error:
            raise ValueError(f"{str(error).rstrip('.')}{_text_column(values)}.") from None
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[1] == 0:
            raise ValueError(f"{name} must have one or two dimensions; got shape {array.shape}.")
        if not np.isfinite(array).all():
            row, column = np.argwhere(~np.isfinite(array))[0]
            raise ValueError(
                f"{name} contains {array[row, column]} in row {row}, column {column} "
                "(counted from 0); remove or fill missing values first."
            )
        arrays.append(array)
    x, targets = arrays
    if len(x) != len(targets):
        raise ValueError(f"X has {len(x)} rows and y has {len(targets)}; they must be equal.")
    if len(x) < 2:
        raise ValueError(f"At least two samples are needed; got {len(x)}.")
    return x, targets


def _noise_label(name: str) -> str:
    """``log_sigma[2]`` → $\\log\\sigma_{2}$; other names stay as they are."""
    base, _, rest = name.partition("[")
    if not base.startswith("log_"):
        return name
    index = f"_{{{rest.rstrip(']')}}}" if rest else ""
    return rf"$\log\{base.removeprefix('log_')}{index}$"


@functools.lru_cache(maxsize=256)
def _network_outputs(network: Network, n_targets: int) -> Callable[[Any, Any], Any]:
    """φ, x → outputs of shape (n, n_targets, p)."""

    def outputs(phi: Any, x: Any) -> Any:
        return network.forward(phi[: network.n_parameters], x).reshape(len(x), n_targets, -1)

    return outputs


@functools.lru_cache(maxsize=256)
def _network_log_likelihood(
    network: Network, likelihood: Likelihood, inferred: bool
) -> Callable[[Any, Any], Any]:
    """Log-likelihood of a network, batched over φ."""

    def one(data: Any, phi: Any) -> Any:
        x, y, theta = data
        if inferred:
            theta = phi[network.n_parameters :].reshape(y.shape[1], -1)
        f = network.forward(phi[: network.n_parameters], x)
        return likelihood.log_likelihood(y, f.reshape(*y.shape, -1), theta)

    return lambda data, phi: jax.vmap(one, in_axes=(None, 0))(data, phi)


@functools.lru_cache(maxsize=256)
def _rapid_log_likelihood(
    network: Network, likelihood: Likelihood, inferred: bool, per_row: bool, precision: str
) -> Callable[[Any, Any], Any]:
    """The same log-likelihood, row by row with the particles as the last axis.

    On a CPU this is up to three times as fast; the form above has cheaper derivatives.
    """

    def log_likelihood(data: Any, phi: Any) -> Any:
        x, y, theta = data
        n_targets = y.shape[1]
        columns = phi.T
        if inferred:
            own = columns[network.n_parameters :].reshape(n_targets, -1, len(phi))
            theta = jnp.moveaxis(own, 1, 2)
        elif not per_row:
            theta = theta[:, None, :]
        setup = None if per_row else likelihood.fast_setup(theta, precision)
        columns = columns[: network.n_parameters].astype(precision)

        def add_row(total: Any, row: Any) -> Any:
            inputs, targets, own = row
            out = network.forward_row(columns, inputs)
            f = jnp.moveaxis(out.reshape(n_targets, -1, len(phi)), 1, 2)
            if per_row:
                own = own[:, None, :]
                terms = likelihood.fast_row(targets, f, likelihood.fast_setup(own, precision))
                return total + likelihood.fast_total(terms, own, 1), None
            return total + likelihood.fast_row(targets, f, setup), None

        rows = (jnp.asarray(x, precision), jnp.asarray(y, precision), theta if per_row else y)
        total, _ = jax.lax.scan(add_row, jnp.zeros(phi.shape[0]), rows)
        return total if per_row else likelihood.fast_total(total, theta, len(y))

    return log_likelihood


def _text_column(values: Any) -> str:
    """Part of an error message that names the first non-numeric column of a data frame."""
    for name in getattr(values, "columns", ()):
        try:
            as_real(str(name), values[name])
        except NotRealError:
            return f" in column {name!r}; drop it or convert it to numbers"
    return ""
