"""Results as trees of labelled arrays, as written by `Result.save` and read by `sbnn.load`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sbnn._core.files.netcdf import FORMAT, read_tree
from sbnn._core.messages import from_json
from sbnn.likelihoods import from_description, is_known
from sbnn.methods.details import Details
from sbnn.methods.result import Result
from sbnn.priors import prior_from_json
from sbnn.problems.network import Network
from sbnn.problems.network_regression import NetworkProblem
from sbnn.problems.problem import Problem

if TYPE_CHECKING:
    import xarray as xr

# Fields of a result that JSON stores unchanged.
_PLAIN_FIELDS = (
    "method",
    "log_evidence",
    "log_evidence_error",
    "n_evaluations",
    "seconds",
    "converged",
    "key",
    "settings",
    "n_rejected",
    "n_failed",
    "verified",
    "evidence_gap",
    "description",
    "version",
)


def load_result(path: Path) -> Result:
    """Read a file that holds a `Result`."""
    return result_from_tree(*read_tree(path))


def check_same(result: Result, problem: Problem, path: Path) -> None:
    """Raise a ValueError if the result belongs to another problem.

    Parameters
    ----------
    result : Result
    problem : Problem
    path : Path
        File of the result, for the error message.

    Raises
    ------
    ValueError
        If names, priors, data or, for a JAX function, log-likelihoods of the first draws differ.
    """
    start = f"The problem given is not that of {str(path)!r}:"
    stored, given = result.description, json.loads(json.dumps(problem.description()))
    for what in ("names", "ard", "priors", "bound", "data"):
        if what in stored and what in given and stored[what] != given[what]:
            values = "" if what == "data" else f" ({stored[what]} there, {given[what]} here)"
            raise ValueError(f"{start} the {what} differ{values}.")
    if problem.black_box:  # a call may take minutes
        return
    there, here = result.log_likelihood[:3], problem.log_likelihood(result.phi[:3])
    if not np.allclose(there, here, rtol=1e-6, atol=1e-6):
        raise ValueError(
            f"{start} the log-likelihoods of the first draws are {there.round(6).tolist()} there, "
            f"{np.round(here, 6).tolist()} here."
        )


def tree_of(result: Result) -> xr.DataTree:
    """The result as a DataTree in the ArviZ schema, from which `result_from_tree` restores it."""
    import xarray as xr

    draw, names = np.arange(len(result.phi)), list(result.names)
    tree: dict[str, xr.Dataset] = {
        "posterior": xr.Dataset(
            {"phi": (("chain", "draw", "parameter"), result.phi[None])},
            coords={"chain": [0], "draw": draw, "parameter": names},
        ),
        "sample_stats": xr.Dataset(
            {"log_likelihood": (("chain", "draw"), result.log_likelihood[None])},
            coords={"chain": [0], "draw": draw},
        ),
    }
    learned = {
        name: (("parameter",), value)
        for name, value in (("log_alpha", result.log_alpha), ("relevance", result.relevance))
        if value is not None
    }
    if learned:
        tree["learned"] = xr.Dataset(learned, coords={"parameter": names})
    if isinstance(result.problem, NetworkProblem):
        tree["observed_data"] = xr.Dataset({"y": (("row", "output"), result.problem.y)})
        tree["constant_data"] = xr.Dataset({"X": (("row", "input"), result.problem.x)})
    for name, table in {**result.history, "optima": result.optima}.items():
        if table is not None:
            tree[f"history/{name}"] = xr.Dataset(
                {c: (("step",), np.asarray(table[c])) for c in table.columns}
            )
    if result.details is not None:
        tree["details"] = xr.Dataset(
            {
                name: (tuple(f"{name}_{i}" for i in range(np.ndim(value))), value)
                for name, value in result.details.arrays().items()
            }
        )
    if result.failed_phi is not None:
        tree["failures"] = xr.Dataset(
            {
                "phi": (("failure", "parameter"), result.failed_phi),
                "error": (("failure",), np.array(result.failed_errors, dtype=object)),
            }
        )
    metadata = json.dumps(_metadata(result), default=_plain)
    attributes = {"sbnn_format": FORMAT, "sbnn": metadata, "creation_library": "sbnn"}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attributes), **tree})


def _metadata(result: Result) -> dict[str, Any]:
    """The fields that are not arrays, as JSON can store them."""
    out = {name: getattr(result, name) for name in _PLAIN_FIELDS}
    out["reason"] = result.reason.as_json()
    out["messages"] = [message.as_json() for message in result.messages]
    out["details"] = None if result.details is None else type(result.details).__name__
    return out


def _plain(value: Any) -> Any:
    """NumPy's scalars and arrays as JSON can store them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be stored in a result's settings.")


def result_from_tree(tree: xr.DataTree, metadata: Mapping[str, Any]) -> Result:
    """The result that `tree_of` stored.

    Parameters
    ----------
    tree : DataTree
    metadata : dict

    Returns
    -------
    Result

    Raises
    ------
    KeyError, TypeError, ValueError
        If the file is incomplete or was altered.
    """
    unknown = set(metadata) - {*_PLAIN_FIELDS, "reason", "messages", "details"}
    if unknown:
        raise ValueError(f"unknown field {min(unknown)!r}")
    tables = {
        name: pd.DataFrame({str(c): np.asarray(node[str(c)]) for c in node.data_vars})
        for name, node in (tree["history"].children.items() if "history" in tree.children else ())
    }
    optima = tables.pop("optima", None)
    description = metadata["description"]
    problem = None
    if "sizes" in description:
        problem = _rebuild(
            description, np.asarray(tree["constant_data/X"]), np.asarray(tree["observed_data/y"])
        )
    phi = np.asarray(tree["posterior/phi"])[0]
    log_likelihood = np.asarray(tree["sample_stats/log_likelihood"])[0]
    expected = (len(log_likelihood), len(description["names"]))
    if phi.shape != expected:
        raise ValueError(f"the draws have shape {phi.shape}; expected {expected}")
    if np.isnan(phi).any() or np.isnan(log_likelihood).any():
        raise ValueError("the draws contain NaN")
    failed = "failures" in tree.children
    learned = tree.children.get("learned")
    return Result(
        **{
            **{name: metadata[name] for name in _PLAIN_FIELDS},
            "problem": problem,
            "phi": phi,
            "log_likelihood": log_likelihood,
            "key": tuple(metadata["key"]),
            "reason": from_json(metadata["reason"]),
            "messages": tuple(from_json(message) for message in metadata["messages"]),
            "log_alpha": _learned(learned, "log_alpha"),
            "relevance": _learned(learned, "relevance"),
            "optima": optima,
            "history": tables,
            "details": _details(tree, metadata["details"]),
            "failed_phi": np.asarray(tree["failures/phi"]) if failed else None,
            "failed_errors": tuple(map(str, np.asarray(tree["failures/error"]))) if failed else (),
        }
    )


def _details(tree: xr.DataTree, kind: str | None) -> Any:
    if kind is None:
        return None
    arrays = tree["details"].data_vars
    return Details.kinds[kind].from_arrays({str(n): np.asarray(v) for n, v in arrays.items()})


def _learned(node: xr.DataTree | None, name: str) -> np.ndarray | None:
    return np.asarray(node[name]) if node is not None and name in node else None


def _rebuild(description: Mapping[str, Any], x: np.ndarray, y: np.ndarray) -> NetworkProblem | None:
    likelihood = description["likelihood"]
    if any(p["kind"] == "Custom" for p in description["priors"]) or not is_known(likelihood):
        return None
    names = description["names"]
    priors = {n: prior_from_json(p) for n, p in zip(names, description["priors"])}
    ard = [n for n, a in zip(names, description["ard"]) if a]
    network = Network(tuple(description["sizes"]), description["activation"])
    noise = description["noise_std"]
    return NetworkProblem(
        network, x, y, from_description(likelihood), noise, priors, ard, description["bound"], None
    )
