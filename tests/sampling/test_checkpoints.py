"""Checkpoints: continued runs equal uninterrupted ones, and unusable checkpoints raise."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import checkpoint_worker as worker
import numpy as np
import pandas as pd
import pytest
from helpers import SEED
from scipy import interpolate, sparse
from sklearn.exceptions import ConvergenceWarning

import sbnn
from sbnn.priors import Hyperprior
from sbnn.problems.fingerprints import value_hash
from sbnn.sampling import checkpoints as files
from sbnn.sampling.checkpoints import CheckpointError, Folder, FolderCheckpoint
from sbnn.sampling.storage import NO_CHECKPOINT

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Interruption(Exception):
    """Any event that stops a run."""


def same(one, other) -> bool:
    """Bitwise equality, except for the time taken."""
    return dataclasses.replace(one, seconds=0.0).equals(dataclasses.replace(other, seconds=0.0))


@pytest.fixture(scope="module")
def uninterrupted():
    """Results without a checkpoint, each computed once."""
    known: dict = {}

    def get(method, kind):
        if (method, kind) not in known:
            known[method, kind] = worker.call(method, kind, None)
        return known[method, kind]

    return get


@pytest.fixture
def stop_after_every_write(monkeypatch):
    write = Folder.write

    def stopping(self, *arguments):
        write(self, *arguments)
        raise Interruption

    monkeypatch.setattr(Folder, "write", stopping)


def run_to_the_end(method, kind, folder) -> tuple[sbnn.methods.result.Result, int]:
    """Call again after every interruption; return the result and the number of interruptions."""
    interruptions = 0
    while True:
        try:
            return worker.call(method, kind, folder), interruptions
        except Interruption:
            interruptions += 1


@pytest.mark.parametrize(
    ("method", "kind"),
    [("standard", "plain"), ("standard", "compiled"), ("hierarchical", "plain"), ("nsbl", "plain")],
)
def test_run_interrupted_after_every_part_equals_an_uninterrupted_one(
    method, kind, tmp_path, uninterrupted, stop_after_every_write
):
    result, interruptions = run_to_the_end(method, kind, tmp_path / "c")
    expected = uninterrupted(method, kind)
    assert interruptions >= len(expected.history["stages"])
    if method == "nsbl":  # the candidates' runs, the steps of the ascents, averaging
        assert interruptions > len(expected.history["stages"]) + len(expected.history["refine"])
    assert same(result, expected)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["hierarchical", "nsbl"])
def test_compiled_run_interrupted_after_every_part_equals_an_uninterrupted_one(
    method, tmp_path, uninterrupted, stop_after_every_write
):
    result, _ = run_to_the_end(method, "compiled", tmp_path / "c")
    assert same(result, uninterrupted(method, "compiled"))


def test_interrupting_every_stage_in_turn_changes_nothing(tmp_path, uninterrupted):
    n_stages = len(uninterrupted("standard", "compiled").history["stages"])
    assert n_stages >= 3
    for last in range(1, n_stages + 1):
        seen = []

        def progress(stage, seen=seen, last=last):
            seen.append(stage)
            if len(seen) == last:
                raise KeyboardInterrupt

        folder = tmp_path / str(last)
        with pytest.raises(KeyboardInterrupt):
            worker.call("standard", "compiled", folder, progress=progress)
        again = []
        result = worker.call("standard", "compiled", folder, progress=again.append)
        assert same(result, uninterrupted("standard", "compiled"))
        assert len(again) == n_stages - last, "finished stages are not computed again"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_interrupted_write_leaves_a_usable_checkpoint(step, tmp_path, uninterrupted, monkeypatch):
    """Each write is stopped in turn, before its data are on disk or before the rename."""
    real, calls = getattr(os, step), 0

    def cut(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == at:
            raise Interruption
        return real(*arguments, **options)

    at = 0
    worker.call("standard", "compiled", tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(files.os, step, cut)
        calls = 0
        worker.call("standard", "compiled", tmp_path / "counted")
        total = calls
        assert total > 8
        for at in range(1, total + 1, 1 if step == "replace" else 3):
            folder, calls = tmp_path / f"{step}-{at}", 0
            with pytest.raises(Interruption):
                worker.call("standard", "compiled", folder)
            calls = total + 1
            result = worker.call("standard", "compiled", folder)
            assert same(result, uninterrupted("standard", "compiled"))
            assert sorted(p.name for p in folder.iterdir()) == ["call.sbnn", "result.nc"]


def start(method, kind, folder, path) -> subprocess.Popen:
    """A process that has reached the call."""
    process = subprocess.Popen(
        [sys.executable, str(Path(worker.__file__)), method, kind, str(folder), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n", process.communicate()[1]
    return process


def kill_and_continue(method, kind, folder: Path, n_kills: int, seconds: float) -> list[float]:
    """Kill several processes at random moments, then let one finish; return the progress made.

    Half of the moments are anywhere in the call, most of which may be compilation; the others
    follow a state that this process has written. After each kill every file that the checkpoint
    lists exists and matches its checksum.
    """
    rng = random.Random(f"{SEED} {method} {kind}")
    path, written = folder.parent / "result.nc", []
    for kill in range(n_kills):
        process = start(method, kind, folder, path)
        if kill % 2:
            before = _times(folder)
            while _times(folder) == before and process.poll() is None:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.2))
        else:
            time.sleep(rng.uniform(0.0, seconds))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if path.exists():
            break
        if (folder / "call.sbnn").exists():
            call = _read(folder, "call")[1]
            for part in call["parts"]:
                _read(folder, part)
            written.append(call["seconds"])
    process = start(method, kind, folder, path)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return written


def _times(folder: Path) -> dict[str, int]:
    """When each file of a checkpoint was last written."""
    out = {}
    for path in folder.glob("*.sbnn"):
        with contextlib.suppress(FileNotFoundError):  # the parts of a finished call are removed
            out[path.name] = path.stat().st_mtime_ns
    return out


def _read(folder: Path, part: str):
    reader = object.__new__(Folder)
    reader.path = folder
    return reader._load(part)


def reference_run(method, kind, tmp_path) -> tuple[sbnn.methods.result.Result, float]:
    """An uninterrupted run in a separate process, and the duration of its call."""
    process = start(method, kind, tmp_path / "reference", tmp_path / "reference.nc")
    begin = time.perf_counter()
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return sbnn.load(tmp_path / "reference.nc"), time.perf_counter() - begin


def test_killed_processes_continue_to_the_same_result(tmp_path):
    expected, seconds = reference_run("standard", "plain", tmp_path)
    assert kill_and_continue("standard", "plain", tmp_path / "c", 2, 0.6 * seconds)
    assert same(sbnn.load(tmp_path / "result.nc"), expected)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["standard", "hierarchical", "nsbl"])
@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_ten_kills_at_random_moments_change_nothing(method, kind, tmp_path):
    expected, seconds = reference_run(method, kind, tmp_path)
    written = kill_and_continue(method, kind, tmp_path / "c", 10, 0.5 * seconds)
    assert written, "no kill came after the first stage: this has tested nothing"
    assert same(sbnn.load(tmp_path / "result.nc"), expected)


@pytest.mark.slow
def test_ten_kills_of_a_warm_start_change_nothing(tmp_path):
    method, kind, reference = "exact_evidence", "bent", tmp_path / "reference.nc"
    process = start(method, kind, tmp_path / "reference", reference)
    begin = time.perf_counter()
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    seconds = time.perf_counter() - begin
    written = kill_and_continue(method, kind, tmp_path / "c", 10, 0.5 * seconds)
    assert written, "no kill came after the first stage: this has tested nothing"
    with np.load(reference) as expected, np.load(tmp_path / "result.nc") as found:
        assert all((found[name] == expected[name]).all() for name in expected.files)


@pytest.mark.filterwarnings("ignore:The function failed")
def test_record_of_failures_survives_a_continuation(tmp_path, stop_after_every_write):
    expected = worker.call("standard", "failing", None)
    assert 0 < expected.n_failed <= expected.n_rejected
    result, interruptions = run_to_the_end("standard", "failing", tmp_path / "c")
    assert interruptions >= 3
    assert same(result, expected)
    assert result.n_failed == expected.n_failed
    assert result.failures.equals(expected.failures)
    with pytest.warns(RuntimeWarning, match="The function failed"):
        again = worker.call("standard", "failing", tmp_path / "c")
    assert again.equals(result)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "c"
    return worker.call("standard", "compiled", folder), folder


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """A checkpoint after two stages."""
    folder = tmp_path_factory.mktemp("half") / "c"
    seen = []

    def progress(stage):
        seen.append(stage)
        if len(seen) == 2:
            raise Interruption

    with pytest.raises(Interruption):
        worker.call("standard", "compiled", folder, progress=progress)
    return folder


@pytest.fixture
def copy(half, tmp_path):
    return Path(shutil.copytree(half, tmp_path / "copy"))


def test_finished_call_returns_its_result_without_computing(finished, monkeypatch):
    result, folder = finished
    monkeypatch.setattr("sbnn.methods._standard.tmcmc", None)
    again = worker.call("standard", "compiled", folder)
    assert again.equals(result)
    assert again.problem.function is worker.compiled
    assert sorted(p.name for p in folder.iterdir()) == ["call.sbnn", "result.nc"]
    assert sbnn.load(folder / "result.nc").equals(result), "an ordinary result file"


def test_finished_result_repeats_its_warnings(tmp_path, monkeypatch):
    monkeypatch.setattr("sbnn.sampling.tmcmc.STUCK", -1.0)  # every run counts as stuck
    with pytest.warns(ConvergenceWarning, match="got stuck"):
        first = worker.call("standard", "compiled", tmp_path / "c")
    monkeypatch.undo()
    with pytest.warns(ConvergenceWarning, match="got stuck"):
        again = worker.call("standard", "compiled", tmp_path / "c")
    assert again.equals(first)


def test_seconds_include_earlier_runs(copy):
    before = _read(copy, "tmcmc")[1]["seconds"]
    begin = time.perf_counter()
    result = worker.call("standard", "compiled", copy)
    assert before > 0
    assert before <= result.seconds <= before + time.perf_counter() - begin


def other_data(theta, data):
    return worker.compiled(theta, data)


_SCALE = -50.0
_COUNT = 0


def with_global(theta):
    global _COUNT
    _COUNT += 1
    return _SCALE * float(theta[0]) ** 2


def make_closure(scale):
    return lambda theta: scale * float(theta[0]) ** 2


class Model:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, theta):
        return self.scale * float(theta[0]) ** 2


def x_squared(theta):
    return -(float(theta[0]) ** 2)


def x_cubed(theta):
    return -(float(theta[0]) ** 3)


def assert_raises(folder, *texts, **changes):
    """A changed call of `half` raises an error that contains all the texts."""
    options = {"key": 3, "n_particles": worker.N_PARTICLES, **changes}
    problem = options.pop("problem", None) or worker.problem("compiled")
    method = options.pop("method", sbnn.standard)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(CheckpointError) as error:
        method(problem, checkpoint=folder, **options)
    for text in (*texts, "another directory"):
        assert text in str(error.value), str(error.value)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before, "nothing was touched"


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({"n_particles": 70}, ("settings.n_particles: 60 there, 70 here",)),
        ({"key": 4}, ("key:", "3]", "4]")),
        ({"move": "random_walk"}, ('settings.move: "auto" there, "random_walk" here',)),
        ({"max_moves": 40}, ("settings.max_moves: 400 there, 40 here",)),
        ({"method": sbnn.hierarchical}, ('method: "standard" there, "hierarchical" here',)),
    ],
)
def test_checkpoint_of_other_settings_raises(changes, texts, half):
    assert_raises(half, *texts, **changes)


def test_equivalent_settings_share_a_checkpoint(copy, uninterrupted):
    import jax

    result = worker.call(
        "standard", "compiled", copy, key=jax.random.key(3), n_particles=np.int64(60)
    )
    assert np.array_equal(result.phi, uninterrupted("standard", "compiled").phi)


def test_checkpoint_of_another_hyperprior_raises_but_explicit_default_continues(tmp_path):
    problem = worker.problem("plain")
    stop = {"key": 0, "n_particles": 50, "checkpoint": tmp_path / "c", "progress": _stop}
    with pytest.raises(Interruption):
        sbnn.hierarchical(problem, **stop)
    with pytest.raises(CheckpointError, match=r"settings\.hyperprior\.rate"):
        sbnn.hierarchical(problem, hyperprior=Hyperprior(rate=1e-3), **stop)
    with pytest.raises(Interruption):
        sbnn.hierarchical(problem, hyperprior=Hyperprior(), **stop)


def _stop(stage):
    raise Interruption


def test_checkpoint_of_other_data_or_another_problem_raises(half):
    x, y = worker.data()
    make = lambda function=worker.compiled, names=("a", "b"), bound=4.0, data=(x, y): sbnn.Problem(
        function, names, ard=names, bound=bound, data=data
    )
    y_other = y.copy()
    y_other[3] += 1e-12
    assert_raises(half, "problem.data", problem=make(data=(x, y_other)))
    assert_raises(half, "problem.bound: 4.0 there, 5.0 here", problem=make(bound=5.0))
    assert_raises(half, "problem.names", problem=make(names=("a", "c")))
    assert_raises(half, "problem.function.name", "other_data", problem=make(other_data))
    network = sbnn.network_problem(x, y, (2,), noise_std=0.1)
    assert_raises(half, "problem.sizes: null there, [1, 2, 1] here", problem=network)


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (x_squared, x_cubed, "problem.function.name"),
        (make_closure(-1.0), make_closure(-2.0), "problem.function.uses.scale"),
        (Model(-1.0), Model(-2.0), "problem.function"),
        (
            lambda theta: -(float(theta[0]) ** 2),
            lambda theta: -(float(theta[0]) ** 4),
            "function.code",
        ),
    ],
)
def test_function_fingerprint_covers_code_and_everything_it_uses(one, other, text, tmp_path):
    def run(function, progress=False):
        problem = sbnn.Problem(function, ["a"], {"a": sbnn.priors.Normal(0.0, 1.0)}, black_box=True)
        sbnn.standard(problem, 0, 50, checkpoint=tmp_path / "c", progress=progress)

    with pytest.raises(Interruption):
        run(one, _stop)
    with pytest.raises(CheckpointError, match=text):
        run(other)
    run(one)
    with pytest.raises(CheckpointError, match=text):
        run(other)


def test_fingerprints_distinguish_values_by_content():
    numbers, others = np.arange(4.0), np.array([0.0, 1.0, 2.0, 3.0 + 1e-12])
    frame, grid = (lambda v: pd.DataFrame({"a": v})), (lambda v: interpolate.interp1d(v, v))
    vectorised = lambda v: np.vectorize(lambda i: v[i])
    for make in (list, tuple, set, frame, grid, sparse.csr_array, vectorised, make_closure, Model):
        assert value_hash(make(numbers)) == value_hash(make(numbers.copy())), make
        assert value_hash(make(numbers)) != value_hash(make(others)), make
        assert value_hash({"a": make(numbers)}) != value_hash({"b": make(numbers)}), make
    assert value_hash(threading.Lock()) == value_hash(threading.Lock())
    assert value_hash([1]) != value_hash([True])
    assert value_hash(([0], [0])) != value_hash(([0], []))
    assert value_hash((numbers, numbers)) == value_hash((numbers, numbers.copy()))
    one, other = [1.0], [2.0]
    one.append(one)
    other.append(other)
    assert value_hash(one) != value_hash(other)


class Slotted:
    rate = 1.0
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k

    @property
    def twice(self):
        return 2 * self.k


def test_fingerprint_covers_class_attributes_slots_properties_and_function_attributes(monkeypatch):
    first = value_hash(Slotted(1.0))
    assert first == value_hash(Slotted(1.0))
    assert first != value_hash(Slotted(2.0))
    monkeypatch.setattr(Slotted, "rate", 2.0)
    second = value_hash(Slotted(1.0))
    assert second != first
    monkeypatch.setattr(Slotted, "twice", property(lambda self: 3 * self.k))
    assert value_hash(Slotted(1.0)) != second

    def function(theta):
        return theta

    plain = value_hash(function)
    function.k = 1.0
    assert value_hash(function) != plain


def test_fingerprint_covers_globals_a_function_reads_but_not_those_it_sets(tmp_path, monkeypatch):
    def run():
        problem = sbnn.Problem(
            with_global, ["a"], {"a": sbnn.priors.Normal(0.0, 1.0)}, black_box=True
        )
        sbnn.standard(problem, 0, 50, checkpoint=tmp_path / "c", progress=_stop)

    with pytest.raises(Interruption):
        run()
    assert _COUNT > 0
    with pytest.raises(Interruption):
        run()
    monkeypatch.setattr(sys.modules[__name__], "_SCALE", -49.0)
    with pytest.raises(CheckpointError, match=r"problem\.function\.uses\._SCALE"):
        run()


def test_checkpoint_of_another_version_raises(half, copy, monkeypatch):
    monkeypatch.setattr("sbnn.methods.resume.__version__", "9.9")
    assert_raises(half, 'version: "0', '"9.9" here')
    monkeypatch.undo()
    monkeypatch.setattr(files, "FORMAT", 3)
    assert_raises(half, "has format 2", "reads 3")


@pytest.mark.parametrize("name", ["call.sbnn", "tmcmc.sbnn"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty", "missing"])
def test_damaged_checkpoint_raises(name, damage, copy):
    path = copy / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
        assert_raises(copy, "is damaged", name, "missing")
        return
    if damage == "flipped":
        for place in (0, 20, 70, len(content) // 2, len(content) - 1):
            changed = bytearray(content)
            changed[place] ^= 1
            path.write_bytes(changed)
            assert_raises(copy, "is damaged", name)
        return
    path.write_bytes(content[: len(content) // 2] if damage == "truncated" else b"")
    assert_raises(copy, "is damaged", name)


@pytest.mark.parametrize("damage", ["flipped", "missing"])
def test_damaged_result_raises(damage, finished, tmp_path):
    folder = Path(shutil.copytree(finished[1], tmp_path / "copy"))
    path = folder / "result.nc"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content) if damage == "flipped" else path.unlink()
    assert_raises(folder, "is damaged", "result.nc")


def test_part_of_another_checkpoint_raises(copy, tmp_path):
    with pytest.raises(Interruption):
        worker.call("standard", "compiled", tmp_path / "c", key=4, progress=_stop)
    shutil.copy(tmp_path / "c" / "tmcmc.sbnn", copy / "tmcmc.sbnn")
    assert_raises(copy, "is damaged", "tmcmc.sbnn is from another checkpoint")


def test_directory_with_other_files_raises(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"holds other files \(thesis\.tex\).*empty one"):
        worker.call("standard", "compiled", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_unrelated_files_in_a_checkpoint_directory_are_kept(copy):
    (copy / "notes.txt").write_text("mine", encoding="utf-8")
    worker.call("standard", "compiled", copy)
    assert sorted(p.name for p in copy.iterdir()) == ["call.sbnn", "notes.txt", "result.nc"]


def test_checkpoint_path_that_is_a_file_raises_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("sbnn.methods._standard.tmcmc", None)
    (tmp_path / "c").write_text("a file", encoding="utf-8")
    with pytest.raises(NotADirectoryError, match="must be a directory"):
        worker.call("standard", "compiled", tmp_path / "c")
    with pytest.raises(TypeError, match="path of a directory; got 7"):
        worker.call("standard", "compiled", 7)
    assert (tmp_path / "c").read_text("utf-8") == "a file"


def test_invalid_call_does_not_block_a_later_valid_one(tmp_path):
    with pytest.raises(ValueError, match="n_particles"):
        worker.call("standard", "compiled", tmp_path / "c", n_particles=3)
    assert not (tmp_path / "c").exists()
    with pytest.raises(Interruption):
        worker.call("standard", "compiled", tmp_path / "c", progress=_stop)


@pytest.mark.skipif(files.fcntl is None, reason="no locks on this system")
def test_concurrent_runs_cannot_share_a_checkpoint(tmp_path):
    first = Folder(tmp_path / "c", {})
    with pytest.raises(CheckpointError, match="in use by another run"):
        Folder(tmp_path / "c", {})
    first.close()
    Folder(tmp_path / "c", {}).close()


def test_checkpoint_values_round_trip(tmp_path):
    folder = Folder(tmp_path / "c", {})
    arrays = {
        "phi": np.array([[0.1, -np.inf], [5e-324, np.nan]]),
        "ancestor": np.array([1, 0]),
    }
    values = {"beta": 0.1 + 0.2, "none": None, "inf": float("inf"), "move": "hmc", "yes": True}
    FolderCheckpoint(folder, "a").part("b").write(arrays, values)
    folder.close()
    folder = Folder(tmp_path / "c", {})
    read, back = FolderCheckpoint(folder).part("a").part("b").read()
    folder.close()
    assert back == values
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        assert read[name].tobytes() == array.tobytes()
    assert NO_CHECKPOINT.part("a").read() is None


def test_unfinished_files_of_a_killed_process_are_removed(tmp_path, uninterrupted):
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / ".call.sbnn.1234.unfinished").write_bytes(b"half")
    assert same(worker.call("standard", "compiled", folder), uninterrupted("standard", "compiled"))
    (folder / ".result.nc.5678.unfinished").write_bytes(b"half")
    assert same(worker.call("standard", "compiled", folder), uninterrupted("standard", "compiled"))
    assert sorted(p.name for p in folder.iterdir()) == ["call.sbnn", "result.nc"]
