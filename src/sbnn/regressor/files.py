"""Fitted estimators as arrays and plain values: one file, no pickle."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sbnn import __version__
from sbnn._core.messages import from_json
from sbnn._core.netcdf import FORMAT, write_tree
from sbnn.evidence.laplace.mixture import Trial
from sbnn.regressor.estimator import SparseBNNRegressor
from sbnn.regressor.posteriors import KINDS, Posterior
from sbnn.regressor.scaling import Scaling

if TYPE_CHECKING:
    import xarray as xr

KIND = "SparseBNNRegressor"


def parts(estimator: SparseBNNRegressor) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Everything a fitted estimator is made of: arrays and plain values."""
    arrays, plain = estimator._posterior.arrays()
    arrays = {f"posterior_{name}": np.asarray(value) for name, value in arrays.items()}
    for name, value in estimator._scaling._asdict().items():
        arrays[f"scaling_{name}"] = value
    arrays |= {
        "inputs": estimator._inputs,
        "feature_relevance": estimator.feature_relevance_,
        "feature_relevance_std": estimator.feature_relevance_std_,
    }
    names = getattr(estimator, "feature_names_in_", None)
    metadata = {
        "kind": KIND,
        "version": __version__,
        "parameters": _plain_parameters(estimator),
        "posterior": {"kind": estimator._posterior.kind, **plain},
        "flat": estimator._flat,
        "feature_names": None if names is None else [str(n) for n in names],
        "method_used": estimator.method_used_,
        "method_reason": estimator.method_reason_.as_json(),
        "log_evidence": estimator.log_evidence_,
        "trials": estimator.trials_.to_dict("list"),
    }
    return arrays, metadata


def from_parts(arrays, metadata, posterior: Posterior | None = None) -> SparseBNNRegressor:
    """The inverse of `parts`, with another posterior if one is given."""
    estimator = SparseBNNRegressor(**_parameters(metadata["parameters"]))
    if posterior is None:
        described = metadata["posterior"]
        mine = {n.removeprefix("posterior_"): v for n, v in arrays.items() if "posterior_" in n}
        posterior = KINDS[described["kind"]].from_arrays(mine, described)
    estimator._posterior = posterior
    estimator._scaling = Scaling(*(arrays[f"scaling_{name}"] for name in Scaling._fields))
    estimator._flat = metadata["flat"]
    estimator._inputs = arrays["inputs"]
    estimator.n_features_in_ = len(estimator._scaling.x_centre)
    estimator.n_outputs_ = len(estimator._scaling.y_centre)
    if metadata["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(metadata["feature_names"], dtype=object)
    estimator.method_used_ = metadata["method_used"]
    estimator.method_reason_ = from_json(metadata["method_reason"])
    estimator.log_evidence_ = metadata["log_evidence"]
    trials = metadata.get("trials", {})
    families = [tuple(map(tuple, family)) for family in trials.get(Trial._fields[0], [])]
    estimator.trials_ = pd.DataFrame(
        list(zip(families, trials.get(Trial._fields[1], []))), columns=Trial._fields
    )
    estimator.feature_relevance_ = arrays["feature_relevance"]
    estimator.feature_relevance_std_ = arrays["feature_relevance_std"]
    estimator._set_learned()
    return estimator


def save(estimator: SparseBNNRegressor, path, overwrite: bool = False) -> None:
    """Write one NetCDF file, whole or not at all."""
    import xarray as xr

    arrays, metadata = parts(estimator)
    # Axes of the same length share a dimension: each one takes a kilobyte of the file.
    data = {
        name: (tuple(f"axis_{i}_of_{n}" for i, n in enumerate(np.shape(value))), value)
        for name, value in arrays.items()
    }
    attributes = {"sbnn_format": FORMAT, "sbnn": json.dumps(metadata), "creation_library": "sbnn"}
    tree = {"/": xr.Dataset(attrs=attributes), "estimator": xr.Dataset(data)}
    write_tree(xr.DataTree.from_dict(tree), path, overwrite)


def from_tree(tree: xr.DataTree, metadata: dict[str, Any]) -> SparseBNNRegressor:
    """An estimator out of an opened file."""
    arrays = {str(name): np.asarray(v) for name, v in tree["estimator"].data_vars.items()}
    return from_parts(arrays, metadata)


def _plain_parameters(estimator: SparseBNNRegressor) -> dict[str, Any]:
    """Constructor parameters as JSON knows them; a RandomState is not one and becomes None."""
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
