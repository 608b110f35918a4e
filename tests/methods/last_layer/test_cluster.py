"""`sbnn.last_layer` on a Dask cluster of worker processes, also if one of them is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from helpers import rng

import sbnn

array = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    """Two worker processes."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


@pytest.fixture(scope="module")
def data():
    r = rng(60)
    x = r.uniform(-2, 2, size=(4000, 2))
    return x, np.sin(2 * x[:, 0]) + 0.1 * r.normal(size=4000)


def waves(x):
    return np.sin(x @ np.arange(1, 13).reshape(2, 6))


def assert_same(one, other):
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-9)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.relevance, other.relevance, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("noise", ["constant", "student_t"])
def test_two_worker_processes_give_the_result_in_memory(client, data, noise, tmp_path):
    x, y = data
    rows, targets = array.from_array(x, chunks=(450, 2)), array.from_array(y, chunks=1000)
    result = sbnn.last_layer(Recorded(tmp_path), targets, x=rows, noise=noise)
    assert_same(result, sbnn.last_layer(waves, y, x=x, noise=noise))
    processes = {int(path.name) for path in tmp_path.iterdir()}
    assert processes <= set(client.run(os.getpid).values())


class Recorded:
    """A feature function that leaves a file with the number of its process."""

    def __init__(self, folder: Path):
        self.folder = str(folder)

    def __call__(self, x):
        Path(self.folder, str(os.getpid())).touch()
        return waves(x)


class Deadly:
    """A feature function that kills the process of its first call in a worker."""

    def __init__(self, mark: Path):
        self.mark, self.parent = str(mark), os.getpid()

    def __call__(self, x):
        if len(x) > 1 and os.getpid() != self.parent:
            try:
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return waves(x)


def test_killed_worker_changes_nothing(client, data, tmp_path):
    x, y = data
    mark = tmp_path / "killed"
    rows = array.from_array(x, chunks=(450, 2))
    result = sbnn.last_layer(Deadly(mark), y, x=rows)
    assert mark.exists()
    calm = sbnn.last_layer(waves, y, x=rows)
    assert result.equals(type(result)(**{**vars(calm), "seconds": result.seconds}))
    assert_same(result, sbnn.last_layer(waves, y, x=x))
