"""Two CPU devices against one: speed-up of TMCMC, and whether the numbers are identical.

    python benchmarks/devices.py [--particles 20000 50000] [--repeats 3]

Samples the 1-3-1 boxcar posterior in fresh processes, alternately with one and two JAX devices.
Each process compiles with a small run first, then reports the time, a digest of all particles and
the log evidence. The speed-up is the ratio of the shortest times. Prints a table and writes
benchmarks/results/devices.csv.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path

import pandas as pd
from harness import RESULTS, fresh, report

REQUIRED = 1.2


def measure(n_particles: int) -> None:
    import jax
    import numpy as np

    import sbnn

    x, y = sbnn.datasets.boxcar()
    problem = sbnn.network_problem(x, y, (3,), noise_std=0.5, bound=10.0)
    sbnn.standard(problem, key=1, n_particles=2000)  # compile; chunks have the same size
    started, cpu = time.perf_counter(), time.process_time()
    result = sbnn.standard(problem, key=0, n_particles=n_particles)
    seconds = time.perf_counter() - started
    report(
        devices_found=jax.device_count(),
        seconds=seconds,
        cpu_seconds=time.process_time() - cpu,
        evaluations=int(result.n_evaluations),
        evaluations_per_second=result.n_evaluations / seconds,
        log_evidence=float(result.log_evidence),
        digest=hashlib.sha256(np.ascontiguousarray(result.phi).tobytes()).hexdigest()[:16],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--particles", type=int, nargs="+", default=[20_000, 50_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        measure(options.run)
        return
    rows = []
    for n in options.particles:
        for repeat in range(options.repeats):
            for devices in (1, 2):
                row = fresh(
                    Path(__file__),
                    ["--run", str(n)],
                    environment={"JAX_NUM_CPU_DEVICES": str(devices)},
                )
                if row["status"] != "done" or row["devices_found"] != devices:
                    sys.exit(f"{n} particles, {devices} device(s): {row}")
                rows.append({"particles": n, "devices": devices, "repeat": repeat, **row})
                pd.DataFrame(rows).to_csv(RESULTS / "devices.csv", index=False)
    table = pd.DataFrame(rows)
    print(table.drop(columns=["devices_found", "status"]).to_string(index=False))
    for n, part in table.groupby("particles"):
        least = part.groupby("devices")["seconds"].min()
        ratio = least[1] / least[2]
        same = part["digest"].nunique() == 1 and part["log_evidence"].nunique() == 1
        print(
            f"{n:,} particles: two devices {ratio:.2f} × as fast as one "
            f"({'at least' if ratio >= REQUIRED else 'LESS than'} {REQUIRED}), "
            f"{'identical' if same else 'DIFFERENT'} numbers, "
            f"{part['evaluations_per_second'].max() / 1e6:.2f} million evaluations per second"
        )


if __name__ == "__main__":
    main()
