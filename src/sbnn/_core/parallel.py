"""Independent tasks in threads, or wherever joblib or a Dask client puts them."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

import joblib
from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")
_local = threading.local()


class _Call(Generic[Item, Result]):
    """One call with its argument, and the warnings it issued if it ran in another process.

    One object: joblib would put large arguments on one worker of a Dask cluster, and they would be
    lost with it.
    """

    def __init__(self, function: Callable[[Item], Result], item: Item):
        self.function, self.item, self.process = function, item, os.getpid()

    def __call__(self) -> tuple[Result, list[warnings.WarningMessage]]:
        before, _local.inside = getattr(_local, "inside", False), True
        try:
            if os.getpid() == self.process:
                return self.function(self.item), []
            with warnings.catch_warnings(record=True) as caught, threadpool_limits(1, "blas"):
                warnings.simplefilter("always")
                return self.function(self.item), caught
        finally:
            _local.inside = before


def is_distributed() -> bool:
    """Whether the user has chosen a joblib backend, or has a Dask client, for the tasks."""
    return not getattr(_local, "inside", False) and (_chosen() or _has_dask_client())


def _chosen() -> bool:
    """Whether we are inside `joblib.parallel_config` or `joblib.parallel_backend`."""
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    default = joblib.parallel.ThreadingBackend
    return type(backend) is not default or backend.nesting_level not in (None, 0)


def _has_dask_client() -> bool:
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    with contextlib.suppress(ValueError):
        distributed.default_client()
        return True
    return False


def run_all(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n_threads: int = 1,
    on_done: Callable[[Result], None] | None = None,
    distribute: bool = True,
) -> list[Result]:
    """Apply a function to every item; the results, in order, do not depend on where they ran.

    Parameters
    ----------
    function : callable
        Picklable, at least by cloudpickle, if the tasks may run in other processes.
    items : sequence
    n_threads : int
        Threads to use unless a joblib backend or a Dask client takes the tasks.
    on_done : callable, optional
        Called with every result in this process.
    distribute : bool
        False keeps the tasks in this process.

    Returns
    -------
    list

    Examples
    --------
    >>> run_all(lambda number: number**2, [1, 2, 3])
    [1, 4, 9]
    """
    if getattr(_local, "inside", False) or len(items) <= 1:
        n_threads, distribute = 1, False
    out: list[Result] = []
    for result, caught in _results(function, items, n_threads, distribute):
        for warning in caught:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
        if on_done is not None:
            on_done(result)
        out.append(result)
    return out


def _results(
    function: Callable[[Item], Result], items: Sequence[Item], n_threads: int, distribute: bool
) -> Iterator[tuple[Result, list[warnings.WarningMessage]]]:
    calls = [_Call(function, item) for item in items]
    if distribute and is_distributed():
        context = contextlib.nullcontext() if _chosen() else joblib.parallel_config(backend="dask")
        with context:
            yield from joblib.Parallel()(joblib.delayed(call)() for call in calls)
    elif n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            yield from pool.map(lambda call: call(), calls)
    else:
        for call in calls:
            yield call.function(call.item), []
