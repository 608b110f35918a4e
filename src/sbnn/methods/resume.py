"""Methods that continue where they were interrupted: `checkpoint=DIR`."""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import inspect
import os
import platform
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import numpy as np

from sbnn import __version__
from sbnn._core.keys import as_key, key_data
from sbnn.methods.files import load_result
from sbnn.methods.result import Result
from sbnn.priors import Hyperprior
from sbnn.problems.fingerprints import problem_identity, value_hash
from sbnn.problems.problem import Problem
from sbnn.sampling.checkpoints import Folder, FolderCheckpoint
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint

F = TypeVar("F", bound=Callable[..., Result])

# How something is run or shown, which no number of the result depends on.
_MANNERS = ("progress", "checkpoint", "executor")
# What the numbers come from: other versions may round differently.
_LIBRARIES = ("jax", "jaxlib", "blackjax", "numpy", "scipy", "scikit-learn")


def convergence_warning() -> type[Warning]:
    """scikit-learn's ConvergenceWarning, imported when it is needed: that takes half a second."""
    from sklearn.exceptions import ConvergenceWarning

    return ConvergenceWarning


# Beginnings of the messages that are warnings too.
_WARNED: dict[str, Callable[[], type[Warning]]] = {
    "The sampler got stuck": convergence_warning,
    "Not verified": convergence_warning,
    "The function failed": lambda: RuntimeWarning,
}


def resumable(method: F) -> F:
    """Give a method its `checkpoint`: a directory from which the same call continues.

    The method receives a `Checkpoint` in its place. A finished result is kept in the directory,
    and the same call returns it.
    """
    signature = inspect.signature(method)

    @functools.wraps(method)
    def wrapper(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given, problem = bound.arguments["checkpoint"], bound.arguments["problem"]
        if given is None or isinstance(given, Checkpoint) or not isinstance(problem, Problem):
            bound.arguments["checkpoint"] = NO_CHECKPOINT if given is None else given
            return method(*bound.args, **bound.kwargs)
        if not isinstance(given, str | os.PathLike):
            raise TypeError(f"`checkpoint` must be the path of a directory; got {given!r}.")
        folder = Folder(given, _call(method.__name__, bound.arguments))
        try:
            path = folder.finished()
            if path is not None:
                return _finished(load_result(path), problem)
            bound.arguments["checkpoint"] = FolderCheckpoint(folder)
            result = method(*bound.args, **bound.kwargs)
            result = dataclasses.replace(result, seconds=folder.seconds)
            folder.finish(lambda path: result.save(path, overwrite=True))
            return result
        finally:
            folder.close()

    return wrapper  # type: ignore[return-value]


def _finished(result: Result, problem: Problem) -> Result:
    for message in result.messages:
        for beginning, category in _WARNED.items():
            if message.startswith(beginning):
                warnings.warn(message, category(), stacklevel=4)
    return dataclasses.replace(result, problem=problem)


def _call(method: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a call computes: all that its numbers depend on."""
    settings = {k: v for k, v in arguments.items() if k not in (*_MANNERS, "problem", "key")}
    key = as_key(arguments["key"])
    libraries = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    libraries["python"] = ".".join(platform.python_version_tuple()[:2])
    return {
        "method": method,
        "version": __version__,
        "libraries": libraries,
        "backend": f"{jax.default_backend()}, {platform.machine()}",
        "key": [str(jax.random.key_impl(key)), *(int(word) for word in key_data(key).ravel())],
        "settings": {name: _setting(name, value) for name, value in settings.items()},
        "problem": problem_identity(arguments["problem"]),
    }


def _setting(name: str, value: Any) -> Any:
    if name == "hyperprior":
        value = value or Hyperprior()
        return {"shape": float(value.shape), "rate": float(value.rate)}
    if isinstance(value, np.generic):
        value = value.item()
    plain = value is None or isinstance(value, bool | int | float | str)
    return value if plain else value_hash(value)
