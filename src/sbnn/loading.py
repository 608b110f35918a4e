"""Results and estimators out of files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sbnn.network import Network
from sbnn.priors import prior_from_json
from sbnn.problem import Problem
from sbnn.regression import NetworkProblem
from sbnn.results import FORMAT, Result

if TYPE_CHECKING:
    import xarray as xr


def load(path: str | os.PathLike, problem: Problem | None = None) -> Any:
    """Read what `Result.save` or `SparseBNNRegressor.save` wrote. No code in it is ever run.

    Parameters
    ----------
    path : path
    problem : Problem, optional
        The problem that a result is of, where its function is a model of your own: functions are
        not stored, and `prune` and `modes` need it. Another problem is refused: names, priors and
        data must be the same, and a JAX function must give the stored log-likelihoods.
    """
    import xarray as xr

    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"No file {str(path)!r}.")
    if path.is_dir():
        inside = sorted(p.name for p in path.glob("*.nc"))
        hint = f"give {str(path / inside[0])!r}" if inside else "give a file that `save` wrote"
        raise IsADirectoryError(f"{str(path)!r} is a folder; {hint}.")
    try:
        with xr.open_datatree(path, engine="h5netcdf") as opened:
            tree = opened.load()
        metadata = json.loads(tree.attrs["sbnn"]) if "sbnn" in tree.attrs else None
        found = int(tree.attrs.get("sbnn_format", -1))
    except PermissionError:
        raise PermissionError(f"No right to read {str(path)!r}.") from None
    except Exception as error:
        raise ValueError(
            f"{str(path)!r} is not a readable sbnn result (damaged, truncated or of another "
            f"kind): {type(error).__name__}."
        ) from None
    if metadata is None:
        raise ValueError(f"{str(path)!r} is a NetCDF file, but not one that sbnn wrote.")
    if found != FORMAT:
        raise ValueError(
            f"{str(path)!r} has format {found}; this version of sbnn reads {FORMAT}. "
            "Use the version that wrote it."
        )
    try:
        if metadata.get("kind") == "SparseBNNRegressor":
            from sbnn.estimator_io import from_tree

            loaded: Any = from_tree(tree, metadata)
        else:
            loaded = _from_tree(tree, metadata)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{str(path)!r} is incomplete or was altered: {error}.") from None
    if problem is None:
        return loaded
    if not isinstance(loaded, Result):
        raise TypeError(f"{str(path)!r} is an estimator, which needs no `problem`.")
    if not isinstance(problem, Problem):
        raise TypeError(f"`problem` must be an sbnn.Problem; got {type(problem).__name__}.")
    _check_same(loaded, problem, path)
    return replace(loaded, problem=problem)


def _check_same(result: Result, problem: Problem, path: Path) -> None:
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


def _from_tree(tree: xr.DataTree, metadata: Mapping[str, Any]) -> Result:
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
    return NetworkProblem(network, x, y, noise, priors, ard, description["bound"], None)
