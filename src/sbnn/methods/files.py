"""Results read from the files that `Result.save` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sbnn._core.netcdf import read_tree
from sbnn.likelihoods import Gaussian
from sbnn.methods.result import Result
from sbnn.priors import prior_from_json
from sbnn.problems.network import Network
from sbnn.problems.network_regression import NetworkProblem
from sbnn.problems.problem import Problem

if TYPE_CHECKING:
    import xarray as xr


def load_result(path: Path) -> Result:
    """Read a file that holds a `Result`."""
    return result_from_tree(*read_tree(path))


def check_same(result: Result, problem: Problem, path: Path) -> None:
    """Refuse a problem that the result is not of."""
    start = f"The problem given is not the one of {str(path)!r}:"
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


def result_from_tree(tree: xr.DataTree, metadata: Mapping[str, Any]) -> Result:
    learned = tree.children.get("learned")
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
    metadata = {**metadata, "key": tuple(metadata["key"]), "messages": tuple(metadata["messages"])}
    arrays = tree["arrays"].data_vars if "arrays" in tree.children else {}
    phi = np.asarray(tree["posterior/phi"])[0]
    log_likelihood = np.asarray(tree["sample_stats/log_likelihood"])[0]
    expected = (len(log_likelihood), len(description["names"]))
    if phi.shape != expected:
        raise ValueError(f"the draws have shape {phi.shape}; expected {expected}")
    return Result(
        problem=problem,
        phi=phi,
        log_likelihood=log_likelihood,
        log_alpha=_learned(learned, "log_alpha"),
        relevance=_learned(learned, "relevance"),
        optima=optima,
        history=tables,
        arrays={str(name): np.asarray(value) for name, value in arrays.items()},
        **metadata,
    )


def _learned(node, name: str) -> np.ndarray | None:
    return np.asarray(node[name]) if node is not None and name in node else None


def _rebuild(description: Mapping[str, Any], x: np.ndarray, y: np.ndarray) -> NetworkProblem | None:
    if any(p["kind"] == "Custom" for p in description["priors"]):
        return None
    names = description["names"]
    priors = {n: prior_from_json(p) for n, p in zip(names, description["priors"])}
    ard = [n for n, a in zip(names, description["ard"]) if a]
    network = Network(tuple(description["sizes"]), description["activation"])
    noise = description["noise_std"]
    return NetworkProblem(network, x, y, Gaussian(), noise, priors, ard, description["bound"], None)
