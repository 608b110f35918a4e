"""Where black-box likelihoods run: local worker processes (loky) or a Dask cluster.

A worker holds the function and its data, sent to it once, and receives batches of parameter
vectors. It imports this module and what the function needs, and JAX only if the function does.
"""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
import uuid
import warnings
from collections.abc import Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from sbnn._core.arrays import NotRealError
from sbnn.problems.black_box import BlackBox

IDLE_SECONDS = 60.0  # idle time after which a worker exits, also if its parent was killed
TEND_SECONDS = 5.0  # without results, after which to check that workers are left


class EvaluationError(RuntimeError):
    """A black-box function failed and `on_failure` is "raise"."""


class WorkerDied(Exception):
    """The process that evaluated a batch died."""


def _with_64_bits(box: BlackBox, theta: np.ndarray) -> float:
    """The value, with JAX in 64-bit mode, as everywhere in this package."""
    jax = sys.modules.get("jax")
    with contextlib.nullcontext() if jax is None else jax.enable_x64(True):
        value = box.value(theta.copy())  # a copy: the function may change its argument
    if jax is None and "jax" in sys.modules:
        return _with_64_bits(box, theta)  # the function has just loaded JAX, in 32-bit mode
    return value


class Batch(NamedTuple):
    """Values (NaN where the function failed), error texts by row, median seconds."""

    values: np.ndarray
    errors: dict[int, str]
    seconds: float


def evaluate_rows(box: BlackBox, theta: np.ndarray, stop: bool) -> Batch:
    """Call the user's function on each row alone, so that batching cannot change a value.

    With `stop` the first failure raises `EvaluationError`; otherwise failures are recorded. Values
    that are not real numbers raise `NotRealError` in any case.
    """
    values, errors = np.full(len(theta), np.nan), {}
    seconds = np.zeros(len(theta))
    for i, row in enumerate(theta):
        started = time.perf_counter()
        try:
            values[i] = _with_64_bits(box, row)
        except NotRealError:
            raise  # the function is wrong, not the point
        except (Exception, SystemExit) as error:
            errors[i] = describe(error)
            if stop:
                raise failed_at(box.names, row, errors[i]) from error
        seconds[i] = time.perf_counter() - started
    return Batch(values, errors, float(np.median(seconds)))


def failed_at(names: Sequence[str], theta: np.ndarray, error: str) -> EvaluationError:
    where = ", ".join(f"{n} = {float(v)!r}" for n, v in zip(names, theta))
    return EvaluationError(
        f"The function failed at {where}: {error}. Fix the function, or reject such points "
        "with on_failure='reject' or 'retry'."
    )


def describe(error: BaseException) -> str:
    """Type, message, and innermost line of code."""
    text = "".join(traceback.format_exception_only(error)).strip()
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


# Inside a worker: the functions it has received, pickled until first use.
_boxes: dict[str, Any] = {}


def install(token: str, pickled: bytes) -> None:
    _boxes[token] = pickled


def forget(token: str) -> None:
    _boxes.pop(token, None)


def evaluate_batch(token: str, theta: np.ndarray, stop: bool) -> Batch:
    """Run in a worker: evaluate a batch with a function that was sent before."""
    box = _boxes[token]
    if isinstance(box, bytes):
        import cloudpickle

        try:
            box = _boxes[token] = cloudpickle.loads(box)
        except Exception as error:
            raise RuntimeError(
                f"A worker cannot load the function: {describe(error)}. Everything the function "
                "imports must be installed where the workers run."
            ) from error
    try:
        return evaluate_rows(box, theta, stop)
    except EvaluationError as error:
        message = str(error)
    raise EvaluationError(message)  # without the user's error, which need not be picklable


def pickled(box: BlackBox) -> bytes:
    import cloudpickle

    try:
        return cloudpickle.dumps(box)
    except Exception as error:
        raise TypeError(
            f"The function cannot be sent to workers: {describe(error)}. Open files, connections "
            "and locks inside the function, not around it."
        ) from error


class Backend(Protocol):
    """Workers: batches in, futures out; `collect` raises WorkerDied when their process did."""

    @property
    def n_workers(self) -> int: ...
    @property
    def window(self) -> int: ...  # most batches in progress at a time
    def submit(self, theta: np.ndarray, stop: bool) -> Any: ...
    def collect(self, future: Any) -> Batch: ...
    def tend(self) -> None: ...  # called from time to time while no result arrives
    def cancel(self, futures: list) -> None: ...
    def close(self) -> None: ...


class Processes:
    """Local worker processes, each a loky pool of one.

    A larger pool loses all running batches when one process dies, and cannot say which batch was
    at fault; a pool of one loses only that batch. loky needs no ``if __name__ == "__main__"``.
    """

    def __init__(self, box: BlackBox, n_workers: int):
        self.n_workers = n_workers
        self._installation = (uuid.uuid4().hex, pickled(box))
        self._pools: list[Any] = [None] * n_workers
        self._free = list(range(n_workers))
        self._slots: dict[Any, int] = {}

    @property
    def window(self) -> int:
        return self.n_workers

    def _start(self, slot: int) -> None:
        import loky

        self._stop(slot)
        self._pools[slot] = loky.ProcessPoolExecutor(
            1, timeout=IDLE_SECONDS, initializer=install, initargs=self._installation
        )

    def _stop(self, slot: int) -> None:
        if self._pools[slot] is not None:
            self._pools[slot].shutdown(wait=True, kill_workers=True)
            self._pools[slot] = None

    def submit(self, theta: np.ndarray, stop: bool) -> Any:
        from loky.process_executor import BrokenProcessPool

        slot = self._free.pop()
        task = (evaluate_batch, self._installation[0], theta, stop)
        if self._pools[slot] is None:
            self._start(slot)
        try:
            future = self._pools[slot].submit(*task)
        except BrokenProcessPool:  # killed while idle: nothing is lost
            self._start(slot)
            future = self._pools[slot].submit(*task)
        self._slots[future] = slot
        return future

    def collect(self, future: Any) -> Batch:
        from loky.process_executor import BrokenProcessPool

        slot = self._slots.pop(future)
        self._free.append(slot)
        try:
            return future.result()
        except BrokenProcessPool:
            self._stop(slot)
            raise WorkerDied from None

    def tend(self) -> None:
        pass  # a process that died is started again with its next batch

    def cancel(self, futures: list) -> None:
        for future in futures:
            slot = self._slots.pop(future)
            self._stop(slot)
            self._free.append(slot)

    def close(self) -> None:
        for slot in range(self.n_workers):
            self._stop(slot)


class Dask:
    """The workers of a `distributed.Client`.

    The function goes out as a worker plugin, which Dask also gives to workers that join or restart
    later; scattered data would be lost with the last worker that holds it.
    """

    def __init__(self, box: BlackBox, client: Any):
        if client.asynchronous:
            raise TypeError("`executor` must be a synchronous dask.distributed.Client.")
        if client.status != "running":
            raise ValueError(
                f"`executor` is a dask.distributed.Client that is {client.status}; give one that "
                "is connected."
            )
        self._client = client
        self._n_processes, self._warned = max(1, len(client.nthreads())), False
        self._token = f"sbnn-{uuid.uuid4().hex}"
        client.register_plugin(_plugin(self._token, pickled(box)), name=self._token)

    @property
    def n_workers(self) -> int:
        return max(1, sum(self._client.nthreads().values()))

    @property
    def window(self) -> int:
        return 2 * self.n_workers  # so that the next batch is there when the last one is done

    def submit(self, theta: np.ndarray, stop: bool) -> Any:
        return self._client.submit(evaluate_batch, self._token, theta, stop, pure=False)

    def collect(self, future: Any) -> Batch:
        from distributed import KilledWorker

        try:
            while True:
                try:  # a finished result may be lost with its worker and must be recomputed
                    return future.result(timeout=TEND_SECONDS)
                except TimeoutError:
                    self.tend()
        except KilledWorker:
            raise WorkerDied from None
        except CancelledError:
            raise RuntimeError(
                "Dask cancelled an evaluation: the scheduler was lost or restarted, or the client "
                "closed."
            ) from None
        finally:
            future.release()

    def tend(self) -> None:
        """Request workers again when none are left.

        Dask's own clusters drop a worker permanently if it is restarting 15 seconds after
        an earlier death (`distributed.deploy.lost-worker-timeout`).
        """
        if self._client.nthreads():
            return
        if self._client.cluster is not None:
            self._client.cluster.scale(self._n_processes)
        elif not self._warned:
            self._warned = True
            warnings.warn("The Dask cluster has no workers left; waiting.", stacklevel=2)

    def cancel(self, futures: list) -> None:
        self._client.cancel(futures)

    def close(self) -> None:
        if self._client.status == "running":
            self._client.unregister_worker_plugin(self._token)


def _plugin(token: str, box: bytes) -> Any:
    from distributed import WorkerPlugin

    class SendFunction(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            install(token, box)

        def teardown(self, worker: Any) -> None:
            forget(token)

    return SendFunction()


def make_backend(box: BlackBox, executor: Any) -> Backend | None:
    """The workers that `executor` names; None means this process."""
    if executor is None or executor == "serial":
        return None
    if executor == "processes":
        import loky

        return Processes(box, loky.cpu_count())
    if isinstance(executor, int | np.integer) and not isinstance(executor, bool):
        if executor < 1:
            raise ValueError(f"`executor` must be at least one worker process; got {executor}.")
        return Processes(box, int(executor))
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(executor, distributed.Client):
        return Dask(box, executor)
    raise TypeError(
        "`executor` must be None, 'serial', 'processes', a number of worker processes or a "
        f'dask.distributed.Client (pip install "sbnn[distributed]"); got {executor!r}.'
    )
