"""Shared by the benchmarks: timed fresh processes, resumable CSV files, fitted exponents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parent / "results"
THREADS = 2
STARTED = "BENCHMARK_STARTED"
MARK = "RESULT "


def fresh(
    script: Path | str,
    arguments: Sequence[str],
    *,
    python: str = sys.executable,
    environment: dict[str, str] | None = None,
    threads: int = THREADS,
    timeout: float = 600,
) -> dict[str, Any]:
    """Run a script in a fresh process with a fixed number of threads.

    The script ends with `report(...)`. Its numbers are returned, with the load average before it
    started as a measure of how idle the machine was.
    """
    limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    given = {**os.environ, **dict.fromkeys(limits, str(threads)), **(environment or {})}
    given |= {STARTED: repr(time.time()), "PYTHONWARNINGS": "ignore"}
    given.pop("JAX_COMPILATION_CACHE_DIR", None)  # a cold process compiles its programs,
    given.pop("PYTHONDONTWRITEBYTECODE", None)  # but uses the byte code of its packages
    load = os.getloadavg()[0]
    command = [python, str(script), *map(str, arguments)]
    try:
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"status": f"stopped after {timeout:.0f} s", "load": load}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(MARK):
            return {**json.loads(line.removeprefix(MARK)), "status": "done", "load": load}
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return {"status": last[:200], "load": load}


def report(**numbers: Any) -> None:
    """In the fresh process: return numbers to the caller."""
    print(MARK + json.dumps(numbers), flush=True)


def since_start() -> dict[str, float]:
    """In the fresh process: seconds since the start, CPU seconds and peak memory so far."""
    import resource

    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return {
        "seconds": time.time() - float(os.environ[STARTED]),
        "cpu_seconds": cpu,
        "peak_gib": _peak_kib(own.ru_maxrss) / 2**20,
    }


def _peak_kib(reported: int) -> float:
    """Peak memory of this program; `reported` includes that of its parent before it started."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1])
    return reported / 1024 if sys.platform == "darwin" else reported  # bytes there, kB elsewhere


class Table:
    """A CSV file that is written row by row; rows that it already has are not run again."""

    def __init__(self, path: Path, keys: Sequence[str], fresh: bool = False) -> None:
        self.path, self.keys = path, list(keys)
        path.parent.mkdir(exist_ok=True)
        self.rows: list[dict[str, Any]] = []
        if path.exists() and not fresh:
            self.rows = pd.read_csv(path).to_dict("records")

    def __contains__(self, key: tuple) -> bool:
        found = (tuple(str(row[k]) for k in self.keys) for row in self.rows)
        return tuple(map(str, key)) in found

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        self.frame().to_csv(self.path, index=False, float_format="%.6g")

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows)


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The exponent p of times ∝ sizesᵖ, by least squares in the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
