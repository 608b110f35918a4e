"""Saved files: changed bytes, kills while writing, full disks, and several writers."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import sbnn
from fault_areas.common import (
    PROGRAM,
    QUICK_FIT,
    Outcome,
    fault_of,
    here,
    instant_fits,
    small_fit,
    table,
)  # fmt: skip
from sbnn._core.files.atomic import OutputExistsError, whole_folder
from sbnn.reports import fit_folder
from sbnn.reports.output_paths import FIT_FILES

# Writes a folder again and again, until it is killed.
WRITER = """
import sys
from pathlib import Path
from sbnn._core.files.atomic import whole_folder, write_bytes
source, out = map(Path, sys.argv[1:])
parts = {path.name: path.read_bytes() for path in source.iterdir()}
print("ready", flush=True)
while True:
    with whole_folder(out, frozenset(parts)) as folder:
        for name, data in parts.items():
            write_bytes(folder / name, data)
"""


def flips(quick: bool, folder: Path) -> Outcome:
    """Change single bits of three saved models."""
    data = table(60)
    x, y = data[["a", "b"]].to_numpy(), data["y"].to_numpy()
    common: dict[str, Any] = {"random_state": 0, "n_jobs": 1}
    small = sbnn.SparseBNNRegressor((2,), n_starts=2, **common).fit(x, y)
    small.save(folder / "small.nc")
    if not quick:
        sbnn.SparseBNNRegressor((20,), n_starts=8, **common).fit(x, y).save(folder / "large.nc")
    problem = sbnn.network_problem(x, y, (2,), noise_std=0.1)
    sbnn.laplace(problem, key=0, n_particles=500).save(folder / "result.nc")
    rng = np.random.default_rng(0)
    faults = []
    for path in sorted(folder.glob("*.nc")):
        right = sbnn.load(path).predict(x)
        content = path.read_bytes()
        for _ in range(20 if quick else 200):
            place, bit = int(rng.integers(len(content))), int(rng.integers(8))
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            faults.append(flip_fault(path, x, right, f"{path.name}, byte {place}, bit {bit}"))
    return Outcome.of(faults)


def flip_fault(path: Path, x: np.ndarray, right: Any, where: str) -> str:
    """What went wrong in loading a changed file; "" if it is an error or has no effect."""
    try:
        found = sbnn.load(path).predict(x)
    except ValueError:
        return ""
    except Exception as error:
        return f"{where}: {type(error).__name__}"
    return "" if np.array_equal(found, right) else f"{where}: other predictions"


def kills(quick: bool, folder: Path) -> Outcome:
    """Kill a process that writes a fit folder; the folder must be complete, or absent."""
    source, out = small_fit(folder / "source"), folder / "out" / "fit"
    out.parent.mkdir()
    rng = random.Random(0)
    faults = []
    for k in range(5 if quick else 30):
        if k % 3 == 0:
            shutil.rmtree(out, ignore_errors=True)
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, source, out], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(rng.uniform(0, 0.02))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        faults.append(_kill_fault(source, out, f"kill {k}"))
    return Outcome.of(faults)


def _kill_fault(source: Path, out: Path, where: str) -> str:
    if out.exists():
        same = all((out / p.name).read_bytes() == p.read_bytes() for p in source.iterdir())
        if not same or set(os.listdir(out)) != set(os.listdir(source)):
            return f"{where}: an incomplete folder"
    with whole_folder(out.parent / "next"):
        pass  # removes what the killed process left behind
    left = set(os.listdir(out.parent)) - {"fit", "next"}
    return f"{where}: {sorted(left)[0]} is left over" if left else ""


def full_disk(quick: bool, folder: Path) -> Outcome:
    """Let the disk be full at every write of `fit`, `compare`, `predict` and `report`."""
    known = small_fit(folder)
    commands: list[list[Any]] = [
        ["fit", folder / "d.csv", "--target", "y", "--out", folder / "o"],
        ["predict", known, folder / "new.csv", "--out", folder / "o.csv"],
        ["report", known],
    ]
    if not quick:
        commands.append(
            ["compare", folder / "d.csv", *QUICK_FIT, "--folds", 2, "--out", folder / "o"]
        )
    faults = []
    for command in commands:
        before = _snapshot(folder)
        for k in range(20):
            with _full_at(k) as writes, instant_fits(known):
                done = here(*command)
            if writes[0] <= k:  # all writes before the k-th were tried
                for name in ("o", "o.csv"):
                    shutil.rmtree(folder / name, ignore_errors=True)
                    (folder / name).unlink(missing_ok=True)
                break
            fault = fault_of(done, 1)
            last = done.err.splitlines()[-1] if done.err else ""
            if not fault and ("No space left" not in last or ".unfinished" in last):
                fault = f"unclear message: {last[:80]}"
            if not fault and str(folder) not in last:
                fault = "the message names no path"
            if not fault and _snapshot(folder) != before:
                fault = "files have changed"
            faults.append(fault and f"{command[0]}, write {k}: {fault}")
    return Outcome.of(faults)


def _snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class _full_at:
    """Patch of `Path.write_bytes` that writes half and fails at the k-th call."""

    def __init__(self, k: int) -> None:
        self.k, self.calls, self.real = k, [0], Path.write_bytes

    def __enter__(self) -> list[int]:
        def write(path: Path, data: bytes) -> int:
            self.calls[0] += 1
            if self.calls[0] == self.k + 1:
                self.real(path, data[: len(data) // 2])
                raise OSError(28, "No space left on device")
            return self.real(path, data)

        self.patch = mock.patch.object(Path, "write_bytes", write)
        self.patch.start()
        return self.calls

    def __exit__(self, *rest: object) -> None:
        self.patch.stop()


def writers(quick: bool, folder: Path) -> Outcome:
    """Let several writers finish one folder at the same moment, and two fits write one folder."""
    faults = [_race(folder / str(k)) for k in range(5 if quick else 30)]
    if not quick:
        faults += [_two_fits(folder / f"fits-{k}", force) for k, force in enumerate([False, True])]
    return Outcome.of(faults)


def _race(folder: Path, n: int = 6) -> str:
    folder.mkdir()
    barrier = threading.Barrier(n)

    def write(k: int) -> Path:
        try:
            with whole_folder(folder / "out") as temporary:
                (temporary / "text").write_text(str(k))
                barrier.wait(60)
        except OutputExistsError as error:
            return error.kept
        return folder / "out"

    with ThreadPoolExecutor(n) as pool:
        kept = list(pool.map(write, range(n)))
    right = all((path / "text").read_text() == str(k) for k, path in enumerate(kept))
    return "" if right and len(os.listdir(folder)) == n else f"{folder.name}: a result was lost"


def _two_fits(folder: Path, force: bool) -> str:
    folder.mkdir()
    table().to_csv(folder / "d.csv", index=False)
    command = [*PROGRAM, "fit", folder / "d.csv", *QUICK_FIT, "--out", folder / "out"]
    command += ["--force"] if force else []
    fits = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ends = [(fit.communicate()[1], fit.returncode) for fit in fits]
    codes = sorted(code for _, code in ends)
    found = [path for path in folder.iterdir() if path.is_dir()]
    complete = all(set(os.listdir(path)) == FIT_FILES for path in found)
    for path in found:
        fit_folder.load(path)
    if force:
        return "" if codes == [0, 0] and len(found) == 1 and complete else f"--force: {codes}"
    named = any("out-2" in text for text, code in ends if code)
    return (
        "" if codes == [0, 1] and len(found) == 2 and complete and named else f"two fits: {codes}"
    )
