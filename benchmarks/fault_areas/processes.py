"""Areas about processes: limits on memory, and forks.

Each area is a function of `quick` and an empty folder; it returns the number of cases tried, the
number handled well, and one line for each of the others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fault_areas.common import Outcome

PROGRAM = [sys.executable, "-c", "from sbnn.cli.main import main; main()"]
MIB = 2**20
SECONDS = 300  # after which a command counts as hanging

CHILD = """
import os, sys, warnings
import numpy as np
import sbnn

warnings.simplefilter("ignore")
x = np.linspace(-1, 1, 12)[:, None]
y = np.tanh(x[:, 0])

def sample():
    problem = sbnn.network_problem(x, y, (1,), noise_std=0.5)
    return sbnn.standard(problem, n_particles=50).log_evidence

def fit():
    return sbnn.SparseBNNRegressor((1,), method="laplace", n_starts=2).fit(x, y).log_evidence_

sample()
child = globals()[sys.argv[1]]
if os.fork() == 0:
    try:
        print("finite" if np.isfinite(child()) else "not finite", flush=True)
    except RuntimeError as error:
        print(error, flush=True)
    finally:
        os._exit(0)
os.wait()
"""


def _area(names: Sequence[str], faults: Sequence[str]) -> Outcome:
    rest = [f"{name}: {fault}" for name, fault in zip(names, faults) if fault]
    return Outcome(len(names), len(names) - len(rest), rest)


def memory_limits(quick: bool, folder: Path) -> Outcome:
    """`sbnn fit` under limits of the address space: a clear line and nothing written, or a fit."""
    data = folder / "d.csv"
    data.write_text("a,y\n" + "".join(f"{k},{k % 7}\n" for k in range(30)))
    limits = [1024] if quick else [1024, 2048, 4096]
    return _area([f"{limit} MiB" for limit in limits], [_limited(data, m) for m in limits])


def _limited(data: Path, limit: int) -> str:
    """What went wrong in a fit with `limit` MiB of address space; "" if nothing did."""
    import resource

    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit * MIB, limit * MIB))

    out = data.with_name(f"fit-{limit}")
    options = ["--target", "y", "--hidden", "1", "--method", "laplace"]
    try:
        done = subprocess.run(
            [*PROGRAM, "fit", str(data), *options, "--out", str(out)],
            capture_output=True, text=True, timeout=SECONDS, preexec_fn=lower,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"hangs for {SECONDS} s"
    left = sorted(path.name for path in data.parent.iterdir() if path.name != data.name)
    if done.returncode == 0:
        return "" if (out / "report.html").exists() else "exit code 0 without a report"
    last = (done.stderr.splitlines() or [""])[-1]
    if "Traceback" in done.stderr or not last.startswith("sbnn: Not enough memory"):
        return f"exit code {done.returncode}: {last[:100]}"
    return f"left {left}" if left else ""


def forks(quick: bool, folder: Path) -> Outcome:
    """Children of a process that has sampled: sampling raises at once, a fit by NumPy works."""
    if not hasattr(os, "fork"):
        return 0, 0, []
    expected = {"sample": "JAX cannot run in this process", "fit": "finite"}
    return _area(list(expected), [_forked(name, text) for name, text in expected.items()])


def _forked(name: str, expected: str) -> str:
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, name], capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"hangs for {SECONDS} s"
    said = done.stdout.strip()
    return "" if said.startswith(expected) and "\n" not in said else f"{said or done.stderr}"[:100]
