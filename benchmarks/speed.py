"""Time of `fit` against an exact Gaussian process: 20 to 10,000 rows, 2 to 128 columns.

    python benchmarks/speed.py [--rows 20 200 2000] [--columns 2 8] [--minutes 60]

Five columns at most have an effect: a wave, a product, a step and a slope, with noise. The Gaussian
process is scikit-learn's with an ARD-RBF kernel and one start, as in benchmarks/rivals.py. Every
fit is made in a fresh process with one thread; sbnn fits two tables of the same size there, because
the first fit includes compilation. A Gaussian process of more than 2,000 rows, or whose gradient
needs more than 2 GiB, is not run: its time is extrapolated with the cube of the rows.
Resumes; writes benchmarks/results/speed.csv after every fit.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from harness import RESULTS, Table, fresh, report
from peers import MOST_ROWS
from table_text import cell, markdown

ROWS = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
COLUMNS = (2, 8, 32, 128)
MOST_BYTES = 2**31


def data(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of up to five columns with noise of a tenth of its spread."""
    rng = np.random.default_rng([seed, n, p])
    x = rng.normal(size=(n, p))
    a, b, c, d, e = (x[:, column] if column < p else np.zeros(n) for column in range(5))
    y = np.sin(2 * a) + b * np.tanh(c + 1) + np.tanh(3 * d) + 0.5 * e
    return x, y + 0.1 * y.std() * rng.normal(size=n)


def runnable(method: str, n: int, p: int) -> bool:
    """Whether a fit is run; scikit-learn's gradient of the kernel has n × n × p numbers."""
    return method == "sbnn" or (n <= MOST_ROWS and 8 * n * n * p <= MOST_BYTES)


def measure(method: str, n: int, p: int) -> None:
    from peers import METHODS

    warnings.simplefilter("ignore")
    if method == "sbnn":
        from sbnn import SparseBNNRegressor

        fit = lambda x, y: SparseBNNRegressor(random_state=0, n_jobs=1).fit(x, y)
    else:
        import sklearn.gaussian_process  # noqa: F401

        fit = lambda x, y: METHODS["gp"].fit(x, y, x[:1], 0)
    spent = []
    for seed in range(2 if method == "sbnn" else 1):
        x, y = data(n, p, seed)
        started = time.process_time()
        fit(x, y)
        spent.append(time.process_time() - started)
    report(cpu_seconds=spent[0], second_cpu_seconds=spent[-1])


def extrapolated(table: pd.DataFrame) -> pd.DataFrame:
    """A row per size: CPU seconds of both, the ratio, and whether the second is extrapolated."""
    wide = table.pivot(index=["columns", "rows"], columns="method")
    found = []
    for p, n in wide.index:
        ours = wide.loc[(p, n), ("second_cpu_seconds", "sbnn")]
        first = wide.loc[(p, n), ("cpu_seconds", "sbnn")]
        known = table[(table["method"] == "gp") & (table["columns"] == p)].set_index("rows")
        known = known["cpu_seconds"].dropna()
        theirs, guess = known.get(n, np.nan), False
        if n not in known.index and len(known) and known.index.max() < n:
            guess = True
            theirs = known[known.index.max()] * (n / known.index.max()) ** 3
        found.append((p, n, first, ours, theirs, ours / theirs, guess))
    names = ["columns", "rows", "first", "later", "gp", "ratio", "extrapolated"]
    return pd.DataFrame(found, columns=names)


def speed(table: pd.DataFrame) -> str:
    """The section of the page."""
    found = extrapolated(table)
    marks = np.where(found["extrapolated"], " (extrapolated)", "")
    shown = pd.DataFrame(
        {
            "columns": found["columns"],
            "rows": found["rows"].map("{:,}".format),
            "sbnn, first fit of a process": found["first"].astype(float),
            "sbnn, later fits": found["later"].astype(float),
            "Gaussian process": [cell(float(v)) + m for v, m in zip(found["gp"], marks)],
            "ratio": found["ratio"].astype(float),
        }
    )
    return (
        "CPU seconds of `fit` on one thread against an exact Gaussian process (scikit-learn, "
        "ARD-RBF, one start). The first fit of a process includes compilation; the ratio is that "
        "of later fits. A Gaussian process of more than 2,000 rows, or whose gradient needs more "
        "than 2 GiB, was not run: its time is extrapolated with the cube of the rows.\n\n"
        + markdown(shown)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--columns", nargs="+", type=int, default=list(COLUMNS))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="time budget")
    parser.add_argument("--out", type=Path, default=RESULTS / "speed.csv")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        measure(options.run[0], *map(int, options.run[1:]))
        return
    out = Table(options.out, ("method", "rows", "columns"))
    end = time.monotonic() + 60 * options.minutes
    for n in sorted(options.rows):
        for p in sorted(options.columns):
            for method in ("sbnn", "gp"):
                if (method, n, p) in out or not runnable(method, n, p) or time.monotonic() > end:
                    continue
                row = fresh(Path(__file__), ["--run", method, n, p], threads=1, timeout=3600)
                out.add({"method": method, "rows": n, "columns": p, **row})
                print(method, n, p, row.get("cpu_seconds", row["status"]), file=sys.stderr)
    if out.rows:
        print(extrapolated(out.frame()).to_string(index=False, float_format="%.3g"))


if __name__ == "__main__":
    main()
