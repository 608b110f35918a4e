"""Regression with a neural network as a problem: data, noise, names and priors of its weights."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbnn.priors import KnownPrior, select_names
from sbnn.problems.fingerprints import fingerprint
from sbnn.problems.model_checks import default_noise_prior
from sbnn.problems.network import Network
from sbnn.problems.problem import Problem
from sbnn.problems.symmetry import Symmetry


class NetworkProblem(Problem):
    """Regression with a neural network; made by `network_problem`."""

    network: Network

    def __init__(self, network: Network, x, y, noise_std, priors, ard, bound, noise_prior):
        self.network, self.x, self.y = network, x, y
        self.noise_std = None if noise_std is None else np.asarray(noise_std, dtype=float)
        names, labels = list(network.names), list(network.labels)
        given = dict(priors or {})
        if noise_std is None:
            names += [f"log_sigma[{k}]" for k in range(1, network.n_outputs + 1)]
            labels += [rf"$\log\sigma_{{{k}}}$" for k in range(1, network.n_outputs + 1)]
            spread = np.maximum(y.std(axis=0), 1e-12 * (1 + np.abs(y).max()))
            for k in range(network.n_outputs):
                default = noise_prior or default_noise_prior(spread[k])
                given.setdefault(f"log_sigma[{k + 1}]", default)
        if ard is None:
            known = select_names(names, list(given)) if given else np.zeros(len(names), bool)
            ard = [n for n, k in zip(names, known) if not k]
        self._set_parameters(names, given, ard, bound, labels)
        self.black_box = False
        self.function = _network_log_likelihood(network, noise_std is None)
        sigma = np.ones(network.n_outputs) if self.noise_std is None else self.noise_std
        self.data = (x, y, sigma)

    def __repr__(self) -> str:
        size = "-".join(map(str, self.network.sizes))
        noise = (
            "inferred" if self.noise_std is None else ", ".join(f"{s:.4g}" for s in self.noise_std)
        )
        return (
            f"<sbnn problem: {size} network ({self.network.activation}), {len(self.x)} rows; "
            f"{self.n_parameters} parameters, {int(self.ard.sum())} of them ARD; noise std {noise}>"
        )

    @functools.cached_property
    def _batched(self) -> Callable:
        return self.function

    @property
    def _rapid(self) -> Callable:
        return _rapid_log_likelihood(self.network, self.noise_std is None, self._walk_precision)

    @functools.cached_property
    def _walk_precision(self) -> str:
        """float32 where its rounding moves the log-likelihood by less than 10⁻³, else float64.

        Rounding moves an output by about ε (max|y| + B √m), with weights up to B into the output
        from m neurons; over σ, for n residuals of order 1 and independent roundings, the sum of
        squares moves by √n times that.
        """
        if self.noise_std is None:
            return "float64"  # σ may become as small as the data allow
        size = np.abs(self.y).max() + self.bound * math.sqrt(self.network.sizes[-2])
        moved = np.finfo(np.float32).eps * size / self.noise_std.min() * math.sqrt(self.y.size)
        return "float32" if moved < 1e-3 else "float64"

    @property
    def symmetry(self) -> Symmetry:
        return Symmetry(self.network, self.n_parameters - self.network.n_parameters)

    def noise_of(self, phi: np.ndarray) -> np.ndarray:
        """σ per output for each row of φ: (n, d) → (n, n_outputs)."""
        phi = np.atleast_2d(phi)
        if self.noise_std is not None:
            return np.broadcast_to(self.noise_std, (len(phi), self.network.n_outputs))
        return np.exp(phi[:, self.network.n_parameters :])

    def description(self) -> dict[str, Any]:
        return {
            **super().description(),
            "sizes": list(self.network.sizes),
            "activation": self.network.activation,
            "noise_std": None if self.noise_std is None else self.noise_std.tolist(),
        }

    def data_fingerprint(self) -> str:
        return fingerprint((self.x, self.y))


def network_problem(
    X,
    y,
    hidden_layer_sizes: Sequence[int] = (3,),
    activation: str = "tanh",
    noise_std: float | Sequence[float] | None = None,
    bound: float = 20.0,
    priors: Mapping[str, KnownPrior] | None = None,
    ard: Sequence[str] | None = None,
    noise_prior: KnownPrior | None = None,
) -> NetworkProblem:
    """Regression of y on X by a multilayer perceptron with Gaussian noise.

    Parameters
    ----------
    X : array, shape (n,) or (n, n_features)
    y : array, shape (n,) or (n, n_outputs)
    hidden_layer_sizes : sequence of int
        Widths of the hidden layers; () is a linear model.
    activation : str
    noise_std : float, one per output, or None
        Known standard deviation of the noise. None infers log σ, one per output, as parameters
        ``log_sigma[1]``, … with `noise_prior` (default: normal around log(std(y) / 3), std 1.5).
    bound : float
        Weights are uniform on ±bound before their relevance is learned.
    priors : mapping, optional
        Known priors by name or group, for example ``{"b[2]": Normal(0, 0.1)}``.
    ard : sequence of str, optional
        What gets an ARD prior in the sparse methods; by default all that has no known prior.

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
    network = Network((x.shape[1], *hidden_layer_sizes, targets.shape[1]), activation)
    noise = None
    if noise_std is not None:
        sigma = np.asarray(noise_std, dtype=float)
        if sigma.ndim > 1 or sigma.size not in (1, network.n_outputs):
            raise ValueError(
                f"`noise_std` must be one number or one per output ({network.n_outputs}); "
                f"got shape {sigma.shape}."
            )
        if not (np.isfinite(sigma).all() and (sigma > 0).all()):
            raise ValueError(f"`noise_std` must be finite and above zero; got {noise_std}.")
        noise = np.broadcast_to(sigma, (network.n_outputs,)).copy()
    return NetworkProblem(network, x, targets, noise, priors, ard, bound, noise_prior)


def check_data(X, y) -> tuple[np.ndarray, np.ndarray]:
    """X as (n, n_features) and y as (n, n_outputs), both finite, or an error that says why not."""
    arrays = []
    for name, values in (("X", X), ("y", y)):
        try:
            array = np.asarray(values, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numeric; {error}{_text_column(values)}.") from None
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[1] == 0:
            raise ValueError(f"{name} must have one or two dimensions; got shape {array.shape}.")
        if not np.isfinite(array).all():
            row, column = np.argwhere(~np.isfinite(array))[0]
            raise ValueError(
                f"{name} holds {array[row, column]} in row {row}, column {column} "
                "(counted from 0); remove or fill missing values first."
            )
        arrays.append(array)
    x, targets = arrays
    if len(x) != len(targets):
        raise ValueError(f"X has {len(x)} rows and y has {len(targets)}; they must be equal.")
    if len(x) < 2:
        raise ValueError(f"At least two samples are needed; got {len(x)}.")
    return x, targets


@functools.lru_cache(maxsize=256)
def _network_log_likelihood(network: Network, infer_noise: bool) -> Callable:
    """Gaussian log-likelihood of a network, batched over φ."""

    def one(data, phi):
        x, y, sigma = data
        if infer_noise:
            sigma = jnp.exp(phi[network.n_parameters :])
        residual = (y - network.forward(phi[: network.n_parameters], x)) / sigma
        # log p(D|φ) = −½ Σ r² − n Σ log σ − ½ n n_y log 2π
        constant = y.shape[0] * (jnp.log(sigma).sum() + 0.5 * y.shape[1] * math.log(2 * math.pi))
        return -0.5 * (residual**2).sum() - constant

    return lambda data, phi: jax.vmap(one, in_axes=(None, 0))(data, phi)


@functools.lru_cache(maxsize=256)
def _rapid_log_likelihood(network: Network, infer_noise: bool, precision: str) -> Callable:
    """The same, one row of the data after the other with the particles as the fast axis.

    On a CPU this is up to three times as fast as the form above, which keeps derivatives cheap.
    Squares are summed in float64 whatever the precision of the network.
    """

    def log_likelihood(data, phi):
        x, y, sigma = data
        columns = phi.T
        log_sigma = columns[network.n_parameters :] if infer_noise else jnp.log(sigma)[:, None]
        inverse = jnp.exp(-log_sigma).astype(precision)
        columns = columns[: network.n_parameters].astype(precision)

        def add_row(total, row):
            inputs, targets = row
            out = network.forward_row(columns, inputs)
            residual = (targets[:, None] - out) * inverse
            return total + (residual.astype(jnp.float64) ** 2).sum(axis=0), None

        rows = (jnp.asarray(x, precision), jnp.asarray(y, precision))
        total, _ = jax.lax.scan(add_row, jnp.zeros(phi.shape[0]), rows)
        constant = y.shape[0] * (log_sigma.sum(axis=0) + 0.5 * y.shape[1] * math.log(2 * math.pi))
        return -0.5 * total - constant

    return log_likelihood


def _text_column(values) -> str:
    """The first column of a data frame that holds no numbers, for a message."""
    for name in getattr(values, "columns", ()):
        try:
            np.asarray(values[name], dtype=float)
        except (TypeError, ValueError):
            return f" in column {name!r}; drop it, or turn it into numbers"
    return ""
