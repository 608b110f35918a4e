"""`sbnn.load`: results and estimators read from files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from sbnn._core.netcdf import read_tree
from sbnn.methods.files import check_same, result_from_tree
from sbnn.methods.result import Result
from sbnn.problems.problem import Problem


def load(path: str | os.PathLike, problem: Problem | None = None) -> Any:
    """Read what `Result.save` or `SparseBNNRegressor.save` wrote. No code in it is ever run.

    Parameters
    ----------
    path : path
    problem : Problem, optional
        The problem of the result, if its function is a model of your own: functions are not
        stored, and `prune` and `modes` need it. It must be the same problem: the same names, priors
        and data, and for a JAX function the same log-likelihoods of the first draws.
    """
    path = Path(path)
    tree, metadata = read_tree(path)
    try:
        if metadata.get("kind") == "SparseBNNRegressor":
            from sbnn.regressor.files import from_tree

            loaded: Any = from_tree(tree, metadata)
        else:
            loaded = result_from_tree(tree, metadata)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{str(path)!r} is incomplete or was altered: {error}.") from None
    if problem is None:
        return loaded
    if not isinstance(loaded, Result):
        raise TypeError(f"{str(path)!r} is an estimator, which needs no `problem`.")
    if not isinstance(problem, Problem):
        raise TypeError(f"`problem` must be an sbnn.Problem; got {type(problem).__name__}.")
    check_same(loaded, problem, path)
    return replace(loaded, problem=problem)
