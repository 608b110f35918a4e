"""Black-box evaluations: batched by their duration, spread over workers, failures counted."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import queue
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from sbnn.problems.black_box import BlackBox
from sbnn.problems.problem import Problem
from sbnn.sampling.workers import TEND_SECONDS, WorkerDied, evaluate_rows, failed_at, make_backend

POLICIES = ("reject", "retry", "raise")
# Sending a task and fetching its answer takes some milliseconds: shorter ones would spend their
# time on the way, much longer ones leave workers idle at the end (benchmarks/executors.py).
TASK_SECONDS = 0.1
WORTH_SPLITTING = 0.01
# The first rows of a run are evaluated ahead: they measure the duration, and if all of them fail
# the function is at fault and the run stops before it has cost much.
PROBE = 20
# A batch that killed its worker is cut into so many: each death costs a start of a process, some
# seconds, and a task only milliseconds, so few rounds count more than few tasks.
SPLIT = 8
MAX_RECORDED = 1000


class Failure(NamedTuple):
    theta: np.ndarray
    error: str


class Evaluator:
    """Log-likelihood of (n, d), by a problem's black-box function, on the workers of `executor`.

    Parameters
    ----------
    problem : Problem
        With a black-box function.
    executor : None, "serial", "processes", int or distributed.Client
        This process; as many worker processes as there are cores; so many; a Dask cluster.
    on_failure : {"retry", "reject", "raise"}
        When the function raises: evaluate the point once more and then count it as −inf; count it
        as −inf at once; or stop. A worker that dies costs nobody a point: its batch is cut up and
        sent again until the one vector that kills its worker, twice and the second time with
        nothing else under way, is found. That one has failed.

    Attributes
    ----------
    failures : list of Failure
        The first 1,000 failed points with their errors, in order; `n_failed` counts all.
    n_tasks, n_sent : int
        Batches and evaluations sent to workers.
    """

    def __init__(self, problem: Problem, executor: Any = None, on_failure: str = "retry"):
        check_policy(on_failure)
        if not problem.black_box:
            raise ValueError(
                "`executor` is for black-box functions; this log-likelihood is compiled by JAX and "
                "uses its devices. Leave `executor` out, or make the problem with black_box=True."
            )
        self.problem, self.on_failure = problem, on_failure
        self.failures: list[Failure] = []
        self.n_failed = self.n_tasks = self.n_sent = 0
        self._seconds: float | None = None  # of one evaluation, unknown before the first
        self._box = BlackBox(problem.function, problem.data, problem.names)
        self._backend = make_backend(self._box, executor)

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *_: object) -> None:
        if self._backend is not None:
            self._backend.close()

    def __call__(self, phi: np.ndarray) -> np.ndarray:
        phi = np.ascontiguousarray(phi, dtype=float)
        values = np.full(len(phi), np.nan)
        errors: dict[int, str] = {}
        rows = np.arange(len(phi))
        if self._seconds is None and len(phi):
            n = PROBE if self._backend is None else max(PROBE, self._backend.n_workers)
            errors |= self._evaluate(phi, rows[:n], values)
            if len(errors) == len(rows[:n]):
                raise ValueError(
                    f"The function failed at each of the first {len(errors)} parameter vectors, "
                    f"first at {phi[0]}: {errors[0]}. Fix the function or narrow the priors."
                )
            rows = rows[n:]
        if len(rows):
            errors |= self._evaluate(phi, rows, values)
        for row in sorted(errors):
            self.n_failed += 1
            if len(self.failures) < MAX_RECORDED:
                self.failures.append(Failure(phi[row].copy(), errors[row]))
        return np.where(np.isnan(values) | (values == np.inf), -np.inf, values)

    def _evaluate(self, phi: np.ndarray, rows: np.ndarray, values: np.ndarray) -> dict[int, str]:
        """Fill in the values of `rows`; return the errors of those that failed for good."""
        errors, final = self._run(phi, rows, values)
        if self.on_failure == "retry" and errors:
            errors, more = self._run(phi, np.array(sorted(errors)), values)
            final |= more
        errors |= final
        if self.on_failure == "raise" and errors:
            row = min(errors)
            raise failed_at(self.problem.names, phi[row], errors[row])
        return errors

    def _run(
        self, phi: np.ndarray, rows: np.ndarray, values: np.ndarray
    ) -> tuple[dict[int, str], dict[int, str]]:
        """One attempt at each row: errors of the function, and deaths that are for good."""
        stop, backend = self.on_failure == "raise", self._backend
        if backend is None:
            batch = evaluate_rows(self._box, phi[rows], stop)
            values[rows] = batch.values
            self._seconds = batch.seconds
            return {int(rows[i]): text for i, text in batch.errors.items()}, {}
        errors: dict[int, str] = {}
        deaths: dict[int, str] = {}
        durations: list[float] = []
        waiting = deque(np.array_split(rows, self._plan(len(rows), backend.n_workers)))
        suspects: deque[np.ndarray] = deque()
        flying: dict[Any, tuple[np.ndarray, bool]] = {}
        finished: queue.SimpleQueue = queue.SimpleQueue()
        window = backend.window

        def launch(part: np.ndarray, alone: bool) -> None:
            future = backend.submit(phi[part], stop)
            flying[future] = (part, alone)
            self.n_tasks += 1
            self.n_sent += len(part)
            future.add_done_callback(finished.put)

        try:
            while waiting or suspects or flying:
                while waiting and len(flying) < window:
                    launch(waiting.popleft(), False)
                if not flying:
                    launch(suspects.popleft(), True)
                try:
                    future = finished.get(timeout=TEND_SECONDS)
                except queue.Empty:
                    backend.tend()
                    continue
                part, alone = flying.pop(future)
                try:
                    batch = backend.collect(future)
                except WorkerDied:
                    if len(part) > 1:
                        waiting.extend(np.array_split(part, min(SPLIT, len(part))))
                    elif not alone:
                        suspects.append(part)
                    else:
                        deaths[int(part[0])] = "The worker process died, twice, evaluating it"
                    continue
                values[part] = batch.values
                durations.append(batch.seconds)
                errors |= {int(part[i]): text for i, text in batch.errors.items()}
        finally:
            if flying:
                backend.cancel(list(flying))
        if durations:
            self._seconds = float(np.mean(durations))
        return errors, deaths

    def _plan(self, n: int, workers: int) -> int:
        return min(n, workers) if self._seconds is None else n_tasks(n, self._seconds, workers)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: failures, and the duration that the first batch has measured."""
        failures = [[failure.theta.tolist(), failure.error] for failure in self.failures]
        return {"n_failed": self.n_failed, "failures": failures, "seconds": self._seconds}

    def restore(self, state: dict[str, Any]) -> None:
        self.n_failed, self._seconds = state["n_failed"], state["seconds"]
        self.failures = [Failure(np.array(theta), error) for theta, error in state["failures"]]

    def record(self, result: Any) -> Any:
        """The result with what failed in it: count, points, errors and a message."""
        if not self.n_failed:
            return result
        first = self.failures[0]
        where = ", ".join(f"{n} = {v:.6g}" for n, v in zip(self.problem.names, first.theta))
        text = (
            f"The function failed in {self.n_failed} evaluations, counted as −inf (zero "
            f"likelihood); see `result.failures`. The first: at {where}: {first.error}."
        )
        warnings.warn(text, RuntimeWarning, stacklevel=4)
        return dataclasses.replace(
            result,
            n_failed=self.n_failed,
            messages=(*result.messages, text),
            arrays={**result.arrays, "failed_phi": np.array([f.theta for f in self.failures])},
            history={
                **result.history,
                "failures": pd.DataFrame({"error": [f.error for f in self.failures]}),
            },
        )


def check_policy(on_failure: str) -> None:
    if on_failure not in POLICIES:
        raise ValueError(f"`on_failure` must be 'reject', 'retry' or 'raise'; got {on_failure!r}.")


def n_tasks(n: int, seconds: float, n_workers: int) -> int:
    """How many tasks n evaluations make: each worth sending, and as many for every worker."""
    total = n * seconds
    if total < WORTH_SPLITTING:
        return 1
    return min(n, n_workers * math.ceil(total / (TASK_SECONDS * n_workers)))


F = TypeVar("F", bound=Callable[..., Any])


def with_executor(method: F) -> F:
    """Open what evaluates a black-box problem around a method, and note failures in its result.

    The method finds an `Evaluator` (or None, for a problem that JAX compiles) in the place of its
    argument `executor`. One that it is given already, by another method, is passed on.
    """
    signature = inspect.signature(method)

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        problem, executor = given["problem"], given["executor"]
        check_policy(given["on_failure"])
        wanted = isinstance(problem, Problem) and (problem.black_box or executor is not None)
        if not wanted or isinstance(executor, Evaluator):
            return method(*bound.args, **bound.kwargs)
        with Evaluator(problem, executor, given["on_failure"]) as evaluator:
            given["executor"] = evaluator
            if given.get("checkpoint") is not None:
                given["checkpoint"].accompany(evaluator)
            return evaluator.record(method(*bound.args, **bound.kwargs))

    return wrapper  # type: ignore[return-value]
