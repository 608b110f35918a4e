"""Transitional MCMC of sbnn against the same algorithm in plain C (plain_tmcmc.c).

    python benchmarks/plain_c.py [--particles 2000 10000] [--keys 5] [--cc gcc]

Both sample the 1-3-1 boxcar posterior (uniform prior ±10, reference log evidence −49.37) on one
core. sbnn runs once before the clock starts, because the first run compiles. The C program has the
network in single precision too, and is compiled with -O3 -march=native -ffast-math, so that its
tanh is vectorised; without -ffast-math it takes ten times as long. The number of moves depends on
the key, so the ratio is that of the times per move of a particle. Prints a table and writes
benchmarks/results/plain_c.csv.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from harness import RESULTS, fresh, report
from table_text import markdown

SOURCE = Path(__file__).with_name("plain_tmcmc.c")
FLAGS = ("-O3", "-march=native", "-ffast-math")
REFERENCE = -49.37


def in_python(n_particles: int, keys: int) -> None:
    if hasattr(os, "sched_setaffinity"):  # JAX has no setting for one thread
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    import sbnn

    problem = sbnn.network_problem(*sbnn.datasets.boxcar(), (3,), noise_std=0.5, bound=10.0)
    sbnn.standard(problem, key=1000, n_particles=n_particles)
    runs = []
    for key in range(keys):
        started = time.perf_counter()
        run = sbnn.standard(problem, key=key, n_particles=n_particles)
        seconds = time.perf_counter() - started
        runs.append((run.log_evidence, run.n_evaluations / n_particles, seconds))
    report(runs=runs)


def in_c(n_particles: int, keys: int, cc: str) -> list[tuple[float, ...]]:
    import sbnn

    x, y = sbnn.datasets.boxcar()
    with tempfile.TemporaryDirectory() as folder:
        program, data = Path(folder, "plain_tmcmc"), Path(folder, "data.txt")
        subprocess.run([cc, *FLAGS, SOURCE, "-o", program, "-lm"], check=True)
        np.savetxt(data, np.column_stack([np.ravel(x), np.ravel(y)]))
        outputs = [
            subprocess.run(
                [program, data, str(n_particles), str(key)], check=True, capture_output=True
            ).stdout
            for key in range(1, keys + 1)
        ]
    return [tuple(map(float, output.split())) for output in outputs]


def summary(language: str, n_particles: int, runs: list[tuple[float, ...]]) -> dict[str, object]:
    """Means over the keys."""
    log_evidence, moves, seconds = np.array(runs).T
    return {
        "language": language,
        "particles": n_particles,
        "keys": len(runs),
        "bias": log_evidence.mean() - REFERENCE,
        "spread": log_evidence.std(ddof=1),
        "moves": moves.mean(),
        "seconds": seconds.mean(),
        "ns_per_move": 1e9 * seconds.sum() / (n_particles * moves.sum()),
    }


def plain_c(table: pd.DataFrame) -> str:
    """The section of the page."""
    times = table.pivot(index="particles", columns="language", values="ns_per_move")
    ratios = times["sbnn"] / times["C"]
    of = "; ".join(f"{n:,} particles: **{ratio:.2f}**" for n, ratio in ratios.items())
    return (
        "Transitional MCMC on the study's 1-3-1 problem, on one core, against the same algorithm "
        "in C; sbnn after its first run, which compiles. Both have the network in single "
        "precision, with vectorised tanh. Time per move of a particle, sbnn over C: "
        f"{of}. *Bias* and *spread* are those of the log evidence over the keys.\n\n"
        + markdown(table.rename(columns={"ns_per_move": "ns per move"}))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--particles", nargs="+", type=int, default=[2000, 10_000])
    parser.add_argument("--keys", type=int, default=5)
    parser.add_argument("--cc", default="gcc", help="the C compiler")
    parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        in_python(options.run, options.keys)
        return
    rows = []
    for n in options.particles:
        arguments = ["--run", n, "--keys", options.keys]
        found = fresh(Path(__file__), arguments, threads=1, timeout=3600)
        if found["status"] != "done":
            raise SystemExit(f"sbnn: {found['status']}")
        rows.append(summary("sbnn", n, found["runs"]))
        rows.append(summary("C", n, in_c(n, options.keys, options.cc)))
    table = pd.DataFrame(rows)
    table.to_csv(RESULTS / "plain_c.csv", index=False, float_format="%.6g")
    print(plain_c(table))


if __name__ == "__main__":
    main()
