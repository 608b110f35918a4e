"""Fitted estimators as arrays and plain values: one file, no pickle."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sbnn import __version__
from sbnn._core.files.netcdf import FORMAT, write_tree
from sbnn._core.messages import from_json
from sbnn.evidence.laplace.mixture import NoiseTrial, Trial
from sbnn.methods.draws_posterior import DrawsPosterior
from sbnn.regressor.account.relevance import COLUMNS
from sbnn.regressor.data.scaling import Scaling
from sbnn.regressor.estimator import SparseBNNRegressor
from sbnn.regressor.last_layer import LastLayerPosterior
from sbnn.regressor.posteriors.exact_posterior import ExactPosterior
from sbnn.regressor.posteriors.laplace_posterior import LaplacePosterior
from sbnn.regressor.state import FittedState
from sbnn.tables.encoder import ColumnEncoder

if TYPE_CHECKING:
    import xarray as xr

KIND = "SparseBNNRegressor"
_NUMBERS = [name for name in COLUMNS if name != "group"]  # of the table of input relevance
# The kinds of posterior that files can hold, by name.
POSTERIORS: dict[str, Any] = {
    posterior.kind: posterior
    for posterior in (LaplacePosterior, DrawsPosterior, LastLayerPosterior, ExactPosterior)
}


def parts(estimator: SparseBNNRegressor) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The contents of a fitted estimator: arrays and plain values."""
    state = estimator.fitted_state()
    arrays, plain = state.posterior.arrays()
    arrays = {f"posterior_{name}": np.asarray(value) for name, value in arrays.items()}
    for name, value in state.scaling._asdict().items():
        arrays[f"scaling_{name}"] = value
    arrays |= {
        "inputs": state.inputs,
        "feature_relevance": state.feature_relevance,
        "feature_relevance_std": state.feature_relevance_std,
        "input_relevance": state.input_relevance[_NUMBERS].to_numpy(),
        "training": state.training,
    }
    metadata = {
        "kind": KIND,
        "version": __version__,
        "parameters": _plain_parameters(estimator),
        "posterior": {"kind": state.posterior.kind, **plain},
        "columns": state.encoder.as_json(),
        "flat": state.one_dimensional,
        "feature_names": state.feature_names,
        "method_used": state.method_used,
        "method_reason": state.method_reason.as_json(),
        "log_evidence": state.log_evidence,
        "trials": state.trials.to_dict("list"),
        "noise_used": state.noise_used,
        "noise_reason": state.noise_reason.as_json(),
        "noise_trials": state.noise_trials.to_dict("list"),
        "inputs": list(state.input_relevance.index),
        "input_groups": list(state.input_relevance["group"]),
    }
    return arrays, metadata


def from_parts(arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> SparseBNNRegressor:
    """The inverse of `parts`."""
    _check(arrays)
    described = metadata["posterior"]
    mine = {n.removeprefix("posterior_"): v for n, v in arrays.items() if "posterior_" in n}
    trials = metadata.get("trials", {})
    families = [tuple(map(tuple, family)) for family in trials.get(Trial._fields[0], [])]
    state = FittedState(
        posterior=POSTERIORS[described["kind"]].from_arrays(mine, described),
        scaling=Scaling(*(arrays[f"scaling_{name}"] for name in Scaling._fields)),
        encoder=ColumnEncoder.from_json(metadata["columns"]),
        one_dimensional=metadata["flat"],
        inputs=arrays["inputs"],
        feature_names=metadata["feature_names"],
        method_used=metadata["method_used"],
        method_reason=from_json(metadata["method_reason"]),
        log_evidence=metadata["log_evidence"],
        trials=pd.DataFrame(
            list(zip(families, trials.get(Trial._fields[1], []))), columns=Trial._fields
        ),
        noise_used=metadata["noise_used"],
        noise_reason=from_json(metadata["noise_reason"]),
        noise_trials=pd.DataFrame(metadata["noise_trials"], columns=NoiseTrial._fields),
        feature_relevance=arrays["feature_relevance"],
        feature_relevance_std=arrays["feature_relevance_std"],
        input_relevance=_input_relevance(arrays["input_relevance"], metadata),
        training=arrays["training"],
    )
    return SparseBNNRegressor.from_state(_parameters(metadata["parameters"]), state)


def _input_relevance(values: np.ndarray, metadata: dict[str, Any]) -> pd.DataFrame:
    """The table that `parts` took apart."""
    found = pd.DataFrame(values, columns=_NUMBERS, index=pd.Index(metadata["inputs"], name="input"))
    return found.assign(group=metadata["input_groups"])[list(COLUMNS)]


def _check(arrays: dict[str, np.ndarray]) -> None:
    """Raise a ValueError for arrays that no fit produces."""
    for name, values in arrays.items():
        # The relevance, losses, α and history of some methods are unknown.
        unknown = any(word in name for word in ("relevance", "losses", "log_alpha", "history"))
        if values.dtype.kind == "f" and not unknown and np.isnan(values).any():
            raise ValueError(f"{name!r} contains NaN")
        if name.startswith("scaling_") and name.endswith("_scale") and not (values > 0).all():
            raise ValueError(f"{name!r} contains a scale that is not positive")
        # Indices of kept weights increase; too large ones are errors of NumPy.
        increasing = np.diff(values, prepend=-1) > 0 if name.startswith("posterior_active") else 1
        if not np.all(increasing):
            raise ValueError(f"{name!r} contains invalid indices")


def save(estimator: SparseBNNRegressor, path: str | os.PathLike, overwrite: bool = False) -> None:
    """Write one NetCDF file atomically.

    Parameters
    ----------
    estimator : SparseBNNRegressor
    path : path
    overwrite : bool
        Replace an existing file.
    """
    import xarray as xr

    arrays, metadata = parts(estimator)
    # Axes of the same length share a dimension: each dimension takes a kilobyte.
    data = {
        name: (tuple(f"axis_{i}_of_{n}" for i, n in enumerate(np.shape(value))), value)
        for name, value in arrays.items()
    }
    attributes = {"sbnn_format": FORMAT, "sbnn": json.dumps(metadata), "creation_library": "sbnn"}
    tree = {"/": xr.Dataset(attrs=attributes), "estimator": xr.Dataset(data)}
    write_tree(xr.DataTree.from_dict(tree), path, overwrite)


def from_tree(tree: xr.DataTree, metadata: dict[str, Any]) -> SparseBNNRegressor:
    """The estimator in an open file.

    Parameters
    ----------
    tree : DataTree
    metadata : dict

    Returns
    -------
    SparseBNNRegressor
    """
    arrays = {str(name): np.asarray(v) for name, v in tree["estimator"].data_vars.items()}
    return from_parts(arrays, metadata)


def _plain_parameters(estimator: SparseBNNRegressor) -> dict[str, Any]:
    """Constructor parameters as JSON values; None for those JSON cannot hold (a RandomState)."""
    out = {}
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, np.ndarray | np.generic):
            value = value.tolist()
        try:
            out[name] = json.loads(json.dumps(value))
        except TypeError:
            out[name] = None
    return out


def _parameters(stored: dict[str, Any]) -> dict[str, Any]:
    """Lists of widths become tuples again: a list means several architectures."""
    widths = stored["hidden_layer_sizes"]
    if isinstance(widths, list):
        nested = any(isinstance(w, list) for w in widths)
        stored["hidden_layer_sizes"] = [tuple(w) for w in widths] if nested else tuple(widths)
    return stored
