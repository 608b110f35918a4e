"""Peak memory of TMCMC with up to 100,000 particles, and of the estimator with 1,000 weights.

    python benchmarks/memory.py [--only TMCMC]

Every setting runs in a fresh process, whose peak resident memory is read at its end. A process that
only imports the package is the baseline. The limit is 4 GiB. Prints a table and writes
benchmarks/results/memory.csv.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness import RESULTS, Table, fresh, report, since_start

LIMIT = 4.0
SETTINGS = [
    ("import", 0),
    *(("TMCMC, particles", n) for n in (2_000, 10_000, 100_000)),
    ("estimator, rows × 1,000 weights", 5_000),
]


def measure(what: str, size: int) -> None:
    import sbnn

    if what.startswith("TMCMC"):
        x, y = sbnn.datasets.boxcar()
        problem = sbnn.network_problem(x, y, (3,), noise_std=0.5, bound=10.0)
        sbnn.standard(problem, key=0, n_particles=size)
    elif what.startswith("estimator"):
        from growth import table

        sbnn.SparseBNNRegressor((100,), random_state=0).fit(*table(size))
    else:
        _ = sbnn.standard, sbnn.SparseBNNRegressor
    report(**since_start())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], help="prefixes of the settings to run")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        measure(options.run[0], int(options.run[1]))
        return
    out = Table(RESULTS / "memory.csv", ("what", "size"))
    for what, size in SETTINGS:
        if any(what.startswith(start) for start in options.only) and (what, size) not in out:
            row = fresh(Path(__file__), ["--run", what, str(size)], timeout=1800)
            if row["status"] != "done":
                sys.exit(f"{what}, {size}: {row['status']}")
            out.add({"what": what, "size": size, **row, "limit_gib": LIMIT})
            print(f"{what} {size:,}: {row['peak_gib']:.2f} GiB, {row['seconds']:.0f} s", flush=True)
    table = out.frame()
    worst = table["peak_gib"].max()
    print(table.to_string(index=False, float_format="%.3g"))
    print(f"largest: {worst:.2f} GiB, {'within' if worst <= LIMIT else 'ABOVE'} {LIMIT:.0f} GiB")


if __name__ == "__main__":
    main()
