"""Run a method: its evaluator, checkpoint, failures and warnings."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from sbnn import __version__
from sbnn._core.keys import Key, as_key, key_data
from sbnn._core.messages import FunctionFailed, warn
from sbnn.methods.files import load_result
from sbnn.methods.result import Result
from sbnn.methods.sampler_report import undefined_fraction, with_undefined
from sbnn.priors import Hyperprior
from sbnn.problems.fingerprints import problem_identity, value_hash
from sbnn.problems.problem import Problem
from sbnn.sampling.checkpoints import Folder, FolderCheckpoint
from sbnn.sampling.evaluator import Evaluator, Executor, check_policy
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint

CheckpointPath = str | os.PathLike[str] | None
# Libraries that determine the numbers: other versions may round differently.
LIBRARIES = ("jax", "jaxlib", "blackjax", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Call:
    """A call of a method: everything that its numbers depend on."""

    method: str
    problem: Problem
    key: Key
    settings: Mapping[str, Any]

    def identity(self) -> dict[str, Any]:
        """The call as JSON; a checkpoint continues only the same one."""
        key = as_key(self.key)
        libraries = {name: importlib.metadata.version(name) for name in LIBRARIES}
        libraries["python"] = ".".join(platform.python_version_tuple()[:2])
        return {
            "method": self.method,
            "version": __version__,
            "libraries": libraries,
            "backend": f"{jax.default_backend()}, {platform.machine()}",
            "key": [str(jax.random.key_impl(key)), *(int(word) for word in key_data(key).ravel())],
            "settings": {name: _plain(value) for name, value in self.settings.items()},
            "problem": problem_identity(self.problem),
        }


@dataclass(frozen=True)
class Resources:
    """Resources of a running method.

    Attributes
    ----------
    evaluate : Evaluator or None
        Evaluates a black-box function; None if JAX compiles the problem.
    checkpoint : Checkpoint
        Keeps the state of the computation.
    """

    evaluate: Evaluator | None = None
    checkpoint: Checkpoint = NO_CHECKPOINT

    def part(self, name: str) -> Resources:
        """The same for a part of the computation."""
        return Resources(self.evaluate, self.checkpoint.part(name))


def carry_out(
    call: Call,
    compute: Callable[[Resources], Result],
    *,
    executor: Executor,
    on_failure: str,
    checkpoint: CheckpointPath,
) -> Result:
    """Compute a result, or continue where an interrupted call stopped, or return the stored one.

    Issues the result's warnings at each call.
    """
    check_policy(on_failure)

    def compute_with(kept: Checkpoint) -> Result:
        with _open_evaluator(call.problem, executor, on_failure) as evaluator:
            if evaluator is None:
                result = compute(Resources(None, kept))
                undefined = undefined_fraction(call.problem) if result.n_rejected else 0.0
                return _with_undefined(result, undefined)
            kept.accompany(evaluator)
            result = _with_failures(compute(Resources(evaluator, kept)), evaluator)
            return _with_undefined(result, evaluator.undefined)

    if checkpoint is None:
        result = compute_with(NO_CHECKPOINT)
    else:
        with open_folder(checkpoint, call) as folder:
            stored = folder.finished()
            if stored is not None:
                result = dataclasses.replace(load_result(stored), problem=call.problem)
            else:
                result = compute_with(FolderCheckpoint(folder))
                result = dataclasses.replace(result, seconds=folder.seconds)
                folder.finish(lambda path: result.save(path, overwrite=True))
    warn(result.messages, stacklevel=4)  # points at the caller of the public function
    return result


def _open_evaluator(
    problem: Problem, executor: Executor, on_failure: str
) -> contextlib.AbstractContextManager[Evaluator | None]:
    if problem.black_box or executor is not None:
        return Evaluator(problem, executor, on_failure)
    return contextlib.nullcontext()


def open_folder(path: Any, call: Call) -> contextlib.closing[Folder]:
    """The checkpoint folder of a call, to be closed."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"`checkpoint` must be the path of a directory; got {path!r}.")
    return contextlib.closing(Folder(path, call.identity()))


def _with_failures(result: Result, evaluator: Evaluator) -> Result:
    """The result with the failures of a black-box function: count, points, errors, message."""
    if not evaluator.n_failed:
        return result
    first = evaluator.failures[0]
    message = FunctionFailed(
        evaluator.n_failed,
        tuple(evaluator.problem.names),
        tuple(float(value) for value in first.theta),
        first.error,
    )
    return dataclasses.replace(
        result,
        n_failed=evaluator.n_failed,
        messages=(*result.messages, message),
        failed_phi=np.array([failure.theta for failure in evaluator.failures]),
        failed_errors=tuple(failure.error for failure in evaluator.failures),
    )


def _with_undefined(result: Result, undefined: float) -> Result:
    """The result with the fraction of prior draws at which the likelihood is not a number."""
    return dataclasses.replace(result, messages=with_undefined(result.messages, undefined))


def _plain(value: Any) -> Any:
    """A setting as JSON can store it; other objects by a hash of what they hold."""
    if isinstance(value, Hyperprior):
        return {"shape": float(value.shape), "rate": float(value.rate)}
    if isinstance(value, np.generic):
        value = value.item()
    plain = value is None or isinstance(value, bool | int | float | str)
    return value if plain else value_hash(value)
