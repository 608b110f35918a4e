"""Wide tables: the columns found, accuracy and CPU time of the default fit.

    python benchmarks/wide.py [--only 2300]

Ten of 128 or 2,000 columns have an effect, nine of them nonlinear: waves, products, absolute
values, a square, a step. Every table is fitted with the default options in a fresh process with one
thread. Prints a table and writes benchmarks/results/wide.csv.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from harness import RESULTS, Table, fresh, report, since_start

SETTINGS = [(2300, 128, seed) for seed in range(3)] + [(1000, 2000, 0)]
NEW = 500


def table(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, y with noise of 0.3 standard deviations of the function, and the real columns."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    real = np.sort(rng.permutation(p)[:10])
    a, b, c, d, e, f, g, h, i, j = x[:, real].T
    y = np.sin(2 * a) + b * c + np.abs(d) + np.tanh(2 * e) + 0.5 * f**2
    y += np.cos(2 * g) + h * np.tanh(i) + 0.7 * j
    return x, y / y.std() + 0.3 * rng.normal(size=n), real


def measure(n: int, p: int, seed: int) -> None:
    from sbnn import SparseBNNRegressor

    warnings.simplefilter("ignore")
    x, y, real = table(n + NEW, p, seed)
    started = time.process_time()
    model = SparseBNNRegressor(random_state=0, n_jobs=1).fit(x[:n], y[:n])
    seconds = time.process_time() - started
    used = set(np.flatnonzero(model.feature_relevance_))
    mean, interval = model.predict(x[n:], return_interval=0.95)
    inside = (interval[:, 0] < y[n:]) & (y[n:] < interval[:, 1])
    report(
        found=len(used & set(real)),
        others=len(used - set(real)),
        rmse=float(np.sqrt(np.mean((mean - y[n:]) ** 2))),
        coverage=float(inside.mean()),
        kept=model.n_parameters_kept_,
        parameters=model.n_parameters_,
        fit_cpu_seconds=seconds,
        **since_start(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", type=int, help="numbers of rows to run")
    parser.add_argument("--run", nargs=3, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        measure(*options.run)
        return
    out = Table(RESULTS / "wide.csv", ("rows", "columns", "seed"))
    for n, p, seed in SETTINGS:
        if (n, p, seed) not in out and (options.only is None or n in options.only):
            row = fresh(Path(__file__), ["--run", n, p, seed], threads=1, timeout=3600)
            if row["status"] != "done":
                sys.exit(f"{n} × {p}: {row['status']}")
            out.add({"rows": n, "columns": p, "seed": seed, **row})
            print(f"{n} × {p}: {row['found']} found, {row['fit_cpu_seconds']:.0f} s", flush=True)
    print(out.frame().to_string(index=False, float_format="%.3g"))


if __name__ == "__main__":
    main()
