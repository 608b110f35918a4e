"""`LastLayerResult`: posterior of a linear output layer, with summaries and predictions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sbnn import __version__
from sbnn._core.files.netcdf import FORMAT, write_tree
from sbnn._core.messages import Message, from_json
from sbnn.evidence.linear.blocks import Reader, plain
from sbnn.evidence.linear.layer import Layer
from sbnn.evidence.linear.storage import layer_arrays, layer_from_arrays
from sbnn.methods.last_layer.messages import EvidenceMaximised, EvidenceNotMaximised
from sbnn.problems.noise import check_noise_std
from sbnn.scores import NormalMixture, Predictive

if TYPE_CHECKING:
    import xarray as xr

KIND = "LastLayerResult"
BLOCK = 4096  # rows predicted at a time


@dataclass(frozen=True, eq=False)
class LastLayerResult:
    """Posterior of the weights of a linear layer, Gaussian and exact at the best α and noise.

    Arrays over parameters list the features, then the intercept `b`; for several targets, those of
    the first target come first.

    Attributes
    ----------
    layer : Layer
        Posterior and noise of every target.
    feature_names : tuple of str
        The intercept included.
    intercept : bool
    one_dimensional : bool
        Whether y has one axis.
    noise_known : bool
    seconds : float
    messages : tuple of Message
    feature_function : callable or None
        Maps rows to features, without the constant; predictions take rows then. Files do not store
        it: after `sbnn.load`, predictions take features, or use
        ``dataclasses.replace(result, feature_function=function)``.
    version : str
        Version of sbnn.
    """

    layer: Layer
    feature_names: tuple[str, ...]
    intercept: bool
    one_dimensional: bool
    noise_known: bool
    seconds: float
    messages: tuple[Message, ...] = ()
    feature_function: Callable[[Any], Any] | None = field(default=None, repr=False)
    version: str = __version__

    method = "last_layer"
    log_evidence_error = 0.0

    def __repr__(self) -> str:
        kept = sum(len(fit.kept) for fit in self.layer.fits)
        return (
            f"<sbnn last_layer: {len(self.names)} parameters, {kept} kept, "
            f"{self.layer.n_rows:.0f} rows, log evidence {self.log_evidence:.2f}>"
        )

    @property
    def log_evidence(self) -> float:
        """Exact log evidence at the best α and noise; a lower bound for Student-t noise."""
        return self.layer.log_evidence

    @property
    def converged(self) -> bool:
        return self.layer.converged

    @property
    def reason(self) -> Message:
        """How the search ended; `str(result.reason)` is a phrase."""
        return EvidenceMaximised() if self.converged else EvidenceNotMaximised()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters; those of several targets end with the target's number."""
        if len(self.layer.fits) == 1:
            return self.feature_names
        numbers = range(1, len(self.layer.fits) + 1)
        return tuple(f"{name}[{k}]" for k in numbers for name in self.feature_names)

    @property
    def mean(self) -> np.ndarray:
        """Posterior mean, shape (n_parameters,)."""
        return np.concatenate([fit.mean for fit in self.layer.fits])

    @property
    def covariance(self) -> np.ndarray:
        """Posterior covariance, shape (n_parameters, n_parameters); zero where pruned."""
        from scipy.linalg import block_diag

        return block_diag(*(fit.covariance() for fit in self.layer.fits))

    @property
    def log_alpha(self) -> np.ndarray:
        """log α, shape (n_parameters,); ∞ where pruned."""
        return np.concatenate([fit.log_alpha for fit in self.layer.fits])

    @property
    def relevance(self) -> np.ndarray:
        """γ in [0, 1], shape (n_parameters,); zero where pruned."""
        return np.concatenate([fit.relevance for fit in self.layer.fits])

    @property
    def noise_std(self) -> float | np.ndarray:
        """Standard deviation of the noise of new rows, one per target."""
        outputs = np.zeros((len(self.layer.fits), 1))
        found = self.layer.likelihood.std(outputs, self.layer.theta)
        return float(found[0]) if self.one_dimensional else np.array(found)

    def draws(self, n: int = 1000, seed: int = 0) -> np.ndarray:
        """Independent posterior draws of the parameters.

        Parameters
        ----------
        n : int
        seed : int

        Returns
        -------
        ndarray, shape (n, n_parameters)
        """
        if n < 1:
            raise ValueError(f"`n` must be at least 1; got {n}.")
        rng = np.random.default_rng([seed, 11])
        return np.concatenate([fit.draws(rng, n) for fit in self.layer.fits], axis=1)

    def summary(self) -> pd.DataFrame:
        """Posterior summaries of the parameters.

        Returns
        -------
        DataFrame
            One row per parameter: mean, std, 2.5 %, 50 %, 97.5 %, log α and γ.
        """
        std = np.concatenate([fit.std for fit in self.layer.fits])
        return pd.DataFrame(
            {
                "mean": self.mean,
                "std": std,
                "2.5%": self.mean - 1.959963984540054 * std,
                "50%": self.mean,
                "97.5%": self.mean + 1.959963984540054 * std,
                "log_alpha": self.log_alpha,
                "relevance": self.relevance,
            },
            index=pd.Index(self.names, name="parameter"),
        )

    def distribution(self, x: Any, noise: bool = True, noise_std: Any = None) -> Predictive:
        """Predictive distribution at x.

        Parameters
        ----------
        x : array, shape (m, n_features), or rows for the feature function
        noise : bool
            Include the noise; if False, the distribution is that of the function.
        noise_std : float or array, shape (m,) or (m, n_targets), optional
            Known standard deviations of the new observations, if those of the data were known.

        Returns
        -------
        Predictive
            With points of shape (m,) or (m, n_targets): mean, std, quantiles, log density, CDF and
            CRPS.

        Raises
        ------
        ValueError
            If the number of features is wrong, or `noise_std` was not known for the data.
        """
        found = [self.layer.outputs(part) for part in self._features(x)]
        mean, variance = (np.concatenate(part) for part in zip(*found))
        theta = self.layer.theta
        if noise_std is not None:
            if not self.noise_known:
                raise ValueError(
                    "`noise_std` of new rows needs a result with known noise; leave it out."
                )
            known = np.broadcast_to(check_noise_std(noise_std, mean.shape), mean.shape)
            theta = np.log(known)[..., None]
        weights = np.ones((1, *mean.shape))
        if noise:
            out: Predictive = self.layer.likelihood.predictive(
                weights, mean[None, ..., None], variance[None, ..., None], theta[None]
            )
        else:
            out = NormalMixture(weights, mean[None], np.sqrt(variance)[None])
        return out[..., 0] if self.one_dimensional else out

    def predict(self, x: Any, return_interval: float | None = None, noise_std: Any = None) -> Any:
        """Mean and standard deviation of new observations at x, noise included.

        Parameters
        ----------
        x, noise_std
            As for `distribution`.
        return_interval : float, optional
            Also return the central interval of this probability, last axis (lower, upper).

        Returns
        -------
        mean, std : ndarray, shape (m,) or (m, n_targets)
        interval : ndarray, shape (..., 2)
            Only with `return_interval`.
        """
        at = self.distribution(x, noise_std=noise_std)
        if return_interval is None:
            return at.mean(), at.std()
        tail = 0.5 * (1.0 - return_interval)
        if not 0 < tail < 0.5:
            raise ValueError(
                "`return_interval` must be a probability between 0 and 1, such as 0.95; got "
                f"{return_interval!r}."
            )
        return at.mean(), at.std(), np.stack(list(at.quantiles((tail, 1 - tail))), axis=-1)

    def push_forward(self, x: Any, n: int = 1000, seed: int = 0) -> np.ndarray:
        """Draws of the function at x, without noise.

        Parameters
        ----------
        x : as for `distribution`
        n : int
        seed : int

        Returns
        -------
        ndarray, shape (n, m) or (n, m, n_targets)
        """
        weights = self.draws(n, seed).reshape(n, len(self.layer.fits), -1)
        found = [np.einsum("nkd,md->nmk", weights, part) for part in self._features(x)]
        out = np.concatenate(found, axis=1)
        return out[..., 0] if self.one_dimensional else out

    def predictive(self, x: Any, n: int = 1000, seed: int = 0) -> np.ndarray:
        """Draws of new observations at x; parameters and return value as for `push_forward`."""
        values = self.push_forward(x, n, seed)
        values = values[..., None] if self.one_dimensional else values
        rng = np.random.default_rng([seed, 12])
        out = self.layer.likelihood.sample(rng, values[..., None], self.layer.theta)
        return out[..., 0] if self.one_dimensional else out

    def _features(self, x: Any) -> Iterator[np.ndarray]:
        reader = Reader(self.feature_function, self.intercept, BLOCK)
        rows = plain(x)
        if rows.ndim != 2:
            raise ValueError(f"x must have the shape (m, n_columns); got {rows.shape}.")
        for start in range(0, max(len(rows), 1), BLOCK):
            part = reader.features(rows[start : start + BLOCK], start)
            if part.shape[1] != len(self.feature_names):
                expected = len(self.feature_names) - int(self.intercept)
                got = part.shape[1] - int(self.intercept)
                raise ValueError(f"x must have {expected} features; got {got}.")
            yield part

    # ------------------------------------------------------------------------------------- files
    def datatree(self) -> xr.DataTree:
        """The result as an xarray DataTree, from which `sbnn.load` restores it.

        Returns
        -------
        DataTree
            For every target the posterior mean, log α, γ and the factored precision.
        """
        import xarray as xr

        arrays, plain_values = layer_arrays(self.layer)
        data = {
            name: (tuple(f"{name}_{i}" for i in range(np.ndim(value))), value)
            for name, value in arrays.items()
        }
        names = {"parameter": list(self.feature_names)}
        metadata = {
            "kind": KIND,
            "layer": plain_values,
            "intercept": self.intercept,
            "one_dimensional": self.one_dimensional,
            "noise_known": self.noise_known,
            "seconds": self.seconds,
            "messages": [message.as_json() for message in self.messages],
            "version": self.version,
        }
        attributes = {
            "sbnn_format": FORMAT, "sbnn": json.dumps(metadata), "creation_library": "sbnn",
        }  # fmt: skip
        tree = {"/": xr.Dataset(attrs=attributes), "layer": xr.Dataset(data, coords=names)}
        return xr.DataTree.from_dict(tree)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write one NetCDF file atomically, without the feature function; `sbnn.load` reads it.

        Parameters
        ----------
        path : path
            With the suffix .nc, or without a suffix.
        overwrite : bool
            Replace an existing file.
        """
        write_tree(self.datatree(), path, overwrite)

    def equals(self, other: LastLayerResult) -> bool:
        """Whether two results hold the same numbers, bit by bit."""
        return bool(self.datatree().identical(other.datatree()))


def from_tree(tree: xr.DataTree, metadata: dict[str, Any]) -> LastLayerResult:
    """The result in an open file.

    Parameters
    ----------
    tree : DataTree
    metadata : dict

    Returns
    -------
    LastLayerResult
    """
    node = tree["layer"]
    arrays = {str(name): np.asarray(values) for name, values in node.data_vars.items()}
    return LastLayerResult(
        layer_from_arrays(arrays, metadata["layer"]),
        tuple(map(str, node.coords["parameter"].values)),
        metadata["intercept"],
        metadata["one_dimensional"],
        metadata["noise_known"],
        metadata["seconds"],
        tuple(from_json(message) for message in metadata["messages"]),
        version=metadata["version"],
    )
