"""`sbnn.load`: read results and estimators from files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from sbnn._core.files.netcdf import read_tree
from sbnn.methods.files import check_same, result_from_tree
from sbnn.methods.result import Result
from sbnn.problems.problem import Problem


def load(path: str | os.PathLike, problem: Problem | None = None) -> Any:
    """Read a saved result or `SparseBNNRegressor`, without running any code from the file.

    Parameters
    ----------
    path : path
    problem : Problem, optional
        The problem of the result, if it has a user-defined function: functions are not stored, and
        `prune` and `modes` need it. It must be the same problem: the same names, priors and data,
        and for a JAX function the same log-likelihoods of the first draws.

    Returns
    -------
    Result, LastLayerResult or SparseBNNRegressor

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
        If there is no readable file at `path`.
    ValueError
        If the file is damaged or was not written by sbnn, or `problem` is another problem.
    TypeError
        If `problem` is not a Problem, or the file holds something that needs none.

    Examples
    --------
    >>> import tempfile
    >>> import sbnn
    >>> x, y = sbnn.datasets.boxcar()
    >>> problem = sbnn.network_problem(x, y, hidden_layer_sizes=(2,), noise_std=0.5)
    >>> result = sbnn.laplace(problem, key=0, n_particles=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(f"{folder}/result.nc")
    ...     again = sbnn.load(f"{folder}/result.nc")
    >>> again.equals(result)
    True
    """
    path = Path(path)
    tree, metadata = read_tree(path)
    try:
        if metadata.get("kind") == "SparseBNNRegressor":
            from sbnn.regressor.files import from_tree

            loaded: Any = from_tree(tree, metadata)
        elif metadata.get("kind") == "LastLayerResult":
            from sbnn.methods.last_layer.result import from_tree as last_layer_from_tree

            loaded = last_layer_from_tree(tree, metadata)
        else:
            loaded = result_from_tree(tree, metadata)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{str(path)!r} is incomplete or was altered: {error}.") from None
    if problem is None:
        return loaded
    if not isinstance(loaded, Result):
        what = "a last layer" if hasattr(loaded, "layer") else "an estimator"
        raise TypeError(f"{str(path)!r} is {what}, which needs no `problem`.")
    if not isinstance(problem, Problem):
        raise TypeError(f"`problem` must be an sbnn.Problem; got {type(problem).__name__}.")
    check_same(loaded, problem, path)
    return replace(loaded, problem=problem)
