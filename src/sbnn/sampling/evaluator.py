"""Black-box evaluations: batched by their duration, spread over workers, failures counted."""

from __future__ import annotations

import math
import queue
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from sbnn.problems.black_box import BlackBox
from sbnn.problems.problem import Problem
from sbnn.sampling.workers import TEND_SECONDS, WorkerDied, evaluate_rows, failed_at, make_backend

if TYPE_CHECKING:
    from distributed import Client

Executor: TypeAlias = "str | int | Client | None"
POLICIES = ("reject", "retry", "raise")
# Sending a task and fetching its answer takes some milliseconds: shorter tasks would mostly be in
# transit, much longer ones leave workers idle at the end (benchmarks/executors.py).
TASK_SECONDS = 0.1
WORTH_SPLITTING = 0.01
# The first rows of a run are evaluated ahead: they measure the duration, and if all of them fail
# the function is at fault and the run stops before it has cost much.
PROBE = 20
# Parts into which a batch that killed its worker is split. Each death costs the start of a process,
# some seconds, and a task only milliseconds, so few rounds are better than few tasks.
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
        This process; one worker process per core; this many worker processes; a Dask cluster.
    on_failure : {"retry", "reject", "raise"}
        When the function raises: evaluate the point once more and then count it as −inf; count it
        as −inf at once; or stop. When a worker dies, its batch is split and sent again until the
        one vector that kills its worker is found: twice, the second time with nothing else
        running. Only that vector has failed.

    Attributes
    ----------
    failures : list of Failure
        The first 1,000 failed points with their errors, in order; `n_failed` counts all.
    n_tasks, n_sent : int
        Batches and evaluations sent to workers.
    undefined : float
        Fraction of NaN and +inf among the first batch: the prior draws of a sampler.
    """

    def __init__(
        self, problem: Problem, executor: Executor = None, on_failure: str = "retry"
    ) -> None:
        check_policy(on_failure)
        if not problem.black_box:
            raise ValueError(
                "`executor` is for black-box functions; this log-likelihood is compiled by JAX and "
                "uses its devices. Omit `executor`, or create the problem with black_box=True."
            )
        self.problem, self.on_failure = problem, on_failure
        self.failures: list[Failure] = []
        self.n_failed = self.n_tasks = self.n_sent = 0
        self.undefined = 0.0
        self._seconds: float | None = None  # of one evaluation; unknown before the first
        self._box = BlackBox(problem.function, problem.data, problem.names)
        self._backend = make_backend(self._box, executor)

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *_: object) -> None:
        if self._backend is not None:
            self._backend.close()

    def __call__(self, phi: np.ndarray) -> np.ndarray:
        """Log-likelihood of every row of φ.

        Parameters
        ----------
        phi : ndarray, shape (n, d)

        Returns
        -------
        ndarray, shape (n,)
            −inf where the function failed or returned NaN or +inf.

        Raises
        ------
        ValueError
            If the function failed at each of the first points of the run.
        EvaluationError
            At the first failure, with on_failure="raise".
        """
        phi = np.ascontiguousarray(phi, dtype=float)
        values = np.full(len(phi), np.nan)
        errors: dict[int, str] = {}
        rows = np.arange(len(phi))
        is_first = self._seconds is None
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
        undefined = np.isnan(values) | (values == np.inf)
        if is_first and len(phi):
            self.undefined = (int(undefined.sum()) - len(errors)) / len(phi)
        return np.where(undefined, -np.inf, values)

    def _evaluate(self, phi: np.ndarray, rows: np.ndarray, values: np.ndarray) -> dict[int, str]:
        """Fill in the values of `rows`; return the errors of rows that failed permanently."""
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
        """One attempt at each row: errors of the function, and final worker deaths."""
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
        """State for a checkpoint: failures, and the measured duration of an evaluation."""
        failures = [[failure.theta.tolist(), failure.error] for failure in self.failures]
        return {
            "n_failed": self.n_failed,
            "failures": failures,
            "seconds": self._seconds,
            "undefined": self.undefined,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.n_failed, self._seconds = state["n_failed"], state["seconds"]
        self.undefined = state["undefined"]
        self.failures = [Failure(np.array(theta), error) for theta, error in state["failures"]]


def check_policy(on_failure: str) -> None:
    """Raise a ValueError unless `on_failure` is a known policy."""
    if on_failure not in POLICIES:
        raise ValueError(f"`on_failure` must be 'reject', 'retry' or 'raise'; got {on_failure!r}.")


def n_tasks(n: int, seconds: float, n_workers: int) -> int:
    """Number of tasks for n evaluations: long enough each, and the same number for every worker."""
    total = n * seconds
    if total < WORTH_SPLITTING:
        return 1
    return min(n, n_workers * math.ceil(total / (TASK_SECONDS * n_workers)))
