"""Independent tasks: order, warnings, and where they run."""

from __future__ import annotations

import os
import threading
import warnings

import joblib
import pytest

from sbnn._core.parallel import is_distributed, run_all


def test_results_keep_the_order_of_the_items_with_any_number_of_threads():
    numbers, seen = list(range(20)), []
    assert run_all(lambda n: n**2, numbers, 4, seen.append) == [n**2 for n in numbers]
    assert seen == [n**2 for n in numbers]


def test_tasks_inside_a_task_run_in_its_thread():
    def outer(_):
        threads = run_all(lambda _: threading.get_ident(), [0, 1, 2], 3)
        return set(threads) == {threading.get_ident()} and not is_distributed()

    assert run_all(outer, [0, 1], 2) == [True, True]


def test_joblib_backend_takes_the_tasks_only_if_allowed():
    items = [0, 1]
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert is_distributed()
        assert os.getpid() not in run_all(lambda _: os.getpid(), items)
        assert set(run_all(lambda _: os.getpid(), items, distribute=False)) == {os.getpid()}
    assert not is_distributed()


def test_warnings_of_other_processes_are_issued_here():
    def warned(number):
        warnings.warn(f"about {number}", RuntimeWarning, stacklevel=2)
        return number

    with (
        joblib.parallel_config(backend="loky", n_jobs=2),
        pytest.warns(RuntimeWarning, match="about [01]") as caught,
    ):
        assert run_all(warned, [0, 1]) == [0, 1]
    assert [str(warning.message) for warning in caught] == ["about 0", "about 1"]
