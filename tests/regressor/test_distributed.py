"""Starts, folds and verification on a Dask cluster of worker processes."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from helpers import rng

from sbnn import SparseBNNRegressor
from sbnn._core.parallel import run_all
from sbnn.reports.validation import cross_validate

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow
OPTIONS = {"hidden_layer_sizes": (4,), "n_starts": 4, "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def data():
    r = rng(30)
    x = pd.DataFrame(r.normal(size=(120, 2)), columns=["a", "b"])
    return x, np.sin(2 * x["a"].to_numpy()) + 0.1 * r.normal(size=120)


def test_starts_on_a_cluster_give_the_same_numbers(cluster, data):
    x, y = data
    here = SparseBNNRegressor(**OPTIONS).fit(x, y)
    with distributed.Client(cluster):
        there = SparseBNNRegressor(**OPTIONS).fit(x, y)
        with joblib.parallel_config(backend="dask"):
            chosen = SparseBNNRegressor(**OPTIONS).fit(x, y)
    for other in (there, chosen):
        assert other.log_evidence_ == here.log_evidence_
        np.testing.assert_array_equal(other.predict(x), here.predict(x))


def test_folds_and_verification_on_a_cluster_give_the_same_numbers(cluster, data):
    x, y = data
    make = lambda: SparseBNNRegressor(**OPTIONS)
    model = make().fit(x, y)
    here, exact = cross_validate(make, x, y[:, None], 3), model.verify(n_particles=64)
    with distributed.Client(cluster):
        there, again = cross_validate(make, x, y[:, None], 3), model.verify(n_particles=64)
    np.testing.assert_array_equal(here.mean, there.mean)
    np.testing.assert_array_equal(here.log_density, there.log_density)
    pd.testing.assert_frame_equal(exact.drop(columns="seconds"), again.drop(columns="seconds"))


@dataclass(frozen=True)
class Deadly:
    """A task that kills the first process that runs it."""

    mark: str
    parent: int

    def __call__(self, number: int) -> int:
        if number == 1 and os.getpid() != self.parent:
            try:
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return int(np.random.default_rng(number).integers(1000))


def test_killed_worker_loses_nothing(cluster, tmp_path: Path):
    task = Deadly(str(tmp_path / "killed"), os.getpid())
    here = [task(number) for number in range(6)]
    with distributed.Client(cluster):
        assert run_all(task, range(6)) == here
    assert (tmp_path / "killed").exists()


def test_fit_survives_a_killed_worker(cluster, data):
    x, y = data
    here = SparseBNNRegressor(**OPTIONS).fit(x, y)
    with distributed.Client(cluster) as client:
        victim, seen = next(iter(client.run(os.getpid).values())), []

        def kill_once(progress):
            if progress.done == 1 and not seen:
                seen.append(progress)
                os.kill(victim, signal.SIGKILL)

        there = SparseBNNRegressor(**OPTIONS, verbose=kill_once).fit(x, y)
    assert seen
    np.testing.assert_array_equal(there.predict(x), here.predict(x))
