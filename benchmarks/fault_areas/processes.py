"""Areas about processes: limits on memory, and forks.

Each area is a function of `quick` and an empty folder that returns an `Outcome`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fault_areas.common import PROGRAM, QUICK_FIT, Outcome

KIB = 2**10  # in a MiB; the unit of ulimit
SECONDS = 300  # after which a command counts as hanging

FORK = """
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

def custom():
    return sbnn.Problem(lambda theta: -theta[0] ** 2, ["a"], {"a": sbnn.priors.Normal()})

def own_jax():
    import jax.numpy as jnp
    return float(jnp.ones(3).sum())

parent, child = (globals()[name] for name in sys.argv[1:])
parent()
if os.fork() == 0:
    try:
        print("finite" if np.isfinite(child()) else "not finite", flush=True)
    except RuntimeError as error:
        print(error, flush=True)
    finally:
        os._exit(0)
os.wait()
"""


def memory_limits(quick: bool, folder: Path) -> Outcome:
    """`sbnn fit` under limits of the address space: a clear line and nothing written, or a fit."""
    data = folder / "d.csv"
    data.write_text("a,y\n" + "".join(f"{k},{k % 7}\n" for k in range(30)))
    limits = [1024] if quick else [1024, 2048, 4096]
    return Outcome.of([_limited(data, limit) for limit in limits])


def _limited(data: Path, limit: int) -> str:
    """What went wrong in a fit with `limit` MiB of address space; "" if nothing did."""
    out = data.with_name(f"fit-{limit}")
    command = [*PROGRAM, "fit", str(data), *QUICK_FIT, "--out", str(out)]
    # By the shell: Python cannot safely run code between fork and exec beside JAX's threads.
    limited = ["sh", "-c", f'ulimit -v {limit * KIB} && exec "$@"', "sh", *command]
    try:
        done = subprocess.run(limited, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"{limit} MiB: hangs for {SECONDS} s"
    if done.returncode == 0:
        return "" if (out / "report.html").exists() else f"{limit} MiB: exit code 0, no report"
    last = (done.stderr.splitlines() or [""])[-1]
    if "Traceback" in done.stderr or not last.startswith("sbnn: Not enough memory"):
        return f"{limit} MiB: exit code {done.returncode}: {last[:100]}"
    left = sorted(path.name for path in data.parent.glob(f"*{out.name}*"))
    return f"{limit} MiB: left {left}" if left else ""


def forks(quick: bool, folder: Path) -> Outcome:
    """Children of a process that has sampled: sampling raises at once, a fit by NumPy works."""
    if not hasattr(os, "fork"):
        return Outcome(0, 0, ["no fork on this system"])
    expected = {"sample": "JAX cannot run in this process", "fit": "finite"}
    return Outcome.of([_forked(child, text) for child, text in expected.items()])


def _forked(child: str, expected: str) -> str:
    said = forked("sample", child)
    return "" if said.startswith(expected) and "\n" not in said else f"{child}: {said[:100]}"


def forked(parent: str, child: str) -> str:
    """What a forked child prints that runs a function of FORK after its parent ran another."""
    command = [sys.executable, "-c", FORK, parent, child]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"hangs for {SECONDS} s"
    return done.stdout.strip() or done.stderr
