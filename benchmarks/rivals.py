"""sbnn beside other methods: many tables, the same splits, every fit in a fresh process.

    python benchmarks/rivals.py --data DIR … [--minutes 600] [--python bde=PATH treeffuser=PATH]

    python benchmarks/rivals.py --data DIR --tables yacht --methods sbnn gp --splits 1
    python benchmarks/rivals.py --data DIR --plan       what is left to do, with CPU seconds
    python benchmarks/rivals.py --data DIR --again sbnn  measure rows of sbnn again

DIR has tables in one of the formats of benchmarks/rival_data.py; tables of Python packages are
added. Install the other packages with pip install -e ".[all,bench]". sklearn-contrib-bde and
treeffuser need versions that sbnn does not support and a separate environment with
benchmarks/apart.txt; --python names its interpreter. Missing packages are reported and skipped.

Every fit uses one thread and writes its row to benchmarks/results/rivals.csv at once; a second call
continues. The order makes comparisons complete early: first splits of all tables come first, and
slow methods after them. With --minutes, fits that would not end in time are left for the next call.
--again removes the rows of methods when it starts: leave it out to continue such a run.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from harness import RESULTS, Table, fresh
from peers import METHODS
from rival_data import MOST_ROWS, Data, all_tables
from rival_scores import scores_of

OUT = RESULTS / "rivals.csv"
WORKER = Path(__file__).with_name("rival_worker.py")
KEYS = ("table", "method", "split")
BLOCK = 5  # splits of a table that are run before the next table
SLOW = 120.0  # CPU seconds per fit; slower methods come one block later


class Job(NamedTuple):
    """One fit."""

    table: str
    method: str
    split: int


def fit(job: Job, data: Data, python: str, timeout: float) -> dict[str, Any]:
    """Run one fit and score it; {"missing": …} if a package is not installed."""
    x, y, x_test, y_test = data.split(job.split)
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "in.npz", Path(folder) / "out.pickle"
        np.savez(given, x=x, y=y, x_test=x_test, seed=job.split)
        row = fresh(WORKER, [job.method, given, out], python=python, threads=1, timeout=timeout)
        if row["status"] != "done" or "missing" in row:
            return row
        found = pickle.loads(out.read_bytes())
    size = {} if found.parameters is None else {"parameters": found.parameters}
    return {**scores_of(y_test, found), **row, **size, "note": found.note, **found.extra}


def jobs(splits: dict[str, int], methods: list[str], costs: Costs) -> list[Job]:
    """All fits in order of importance.

    Parameters
    ----------
    splits : dict
        Number of splits of each table, in order of importance.
    methods : list of str
        In order of importance.
    costs : Costs
    """
    found = []
    for t, (table, n) in enumerate(splits.items()):
        for m, name in enumerate(methods):
            method = METHODS[name]
            if method.tables is not None and table not in method.tables:
                continue
            for split in range(min(n, method.splits)):
                late = costs.expected(table, name) > SLOW
                found.append(((split // BLOCK + late, t, split, m), Job(table, name, split)))
    return [job for _, job in sorted(found)]


class Costs:
    """Expected CPU seconds of a fit, from fits so far, and those that took too long."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.spent: dict[tuple[str, str], list[float]] = {}
        self.stopped: set[tuple[str, str]] = set()
        for row in rows:
            self.add(row)

    def add(self, row: dict[str, Any]) -> None:
        seconds = row.get("cpu_seconds")
        if str(row.get("status")).startswith("stopped"):
            self.stopped.add((row["table"], row["method"]))
        if seconds is not None and seconds == seconds:
            for key in ((row["table"], row["method"]), ("", row["method"])):
                self.spent.setdefault(key, []).append(float(seconds))

    def expected(self, table: str, method: str) -> float:
        """Mean over fits of the method to this table, or to all tables; 0 if there are none."""
        known = self.spent.get((table, method)) or self.spent.get(("", method)) or [0.0]
        return float(np.mean(known))


class Tables:
    """Tables that are loaded when they are needed, one at a time."""

    def __init__(self, loaders: dict[str, Callable[[], Data]]) -> None:
        self.loaders, self.last = loaders, None

    def __getitem__(self, name: str) -> Data:
        if self.last is None or self.last.name != name:
            self.last = self.loaders[name]()
        return self.last


def sizes(tables: Tables, named: bool, most: int | None) -> tuple[dict[str, int], dict[str, str]]:
    """Number of splits by table, and the reason why tables are skipped."""
    splits, skipped = {}, {}
    for name in tables.loaders:
        try:
            data = tables[name]
        except ImportError as error:
            skipped[name] = str(error)
            continue
        if len(data.y) > MOST_ROWS and not named:
            skipped[name] = f"{len(data.y)} rows; name it with --tables to run it"
            continue
        splits[name] = len(data.splits) if most is None else min(most, len(data.splits))
    return splits, skipped


def run(
    todo: list[Job], tables: Tables, out: Table, costs: Costs, options: argparse.Namespace
) -> Iterator[tuple[str, str]]:
    """Run jobs until the time is over; yields methods that are skipped and why."""
    pythons = interpreters(options.python)
    end = time.monotonic() + 60 * options.minutes
    missing: set[str] = set()
    for job in todo:
        if time.monotonic() >= end:
            return
        over = time.monotonic() + costs.expected(job.table, job.method) > end
        if over or job.method in missing or (job.table, job.method) in costs.stopped:
            continue
        python = pythons.get(job.method, sys.executable)
        row = fit(job, tables[job.table], python, options.timeout)
        if "missing" in row:
            missing.add(job.method)
            yield job.method, row["missing"]
            continue
        row = {**job._asdict(), **row}
        out.add(row)
        costs.add(row)
        shown = ("rmse", "log_likelihood", "crps", "coverage", "cpu_seconds")
        text = {k: float(f"{row[k]:.4g}") for k in shown if k in row}
        print(*job, text or row["status"], file=sys.stderr, flush=True)


def interpreters(given: list[str]) -> dict[str, str]:
    """{"bde": PATH} from ["bde=PATH"]; bde_long uses that of bde."""
    found = dict(item.split("=", 1) for item in given)
    return {"bde_long": found["bde"], **found} if "bde" in found else found


def plan(todo: list[Job], costs: Costs) -> str:
    """Fits and CPU minutes that are left, by method."""
    frame = pd.DataFrame(todo, columns=KEYS)
    frame["minutes"] = [costs.expected(job.table, job.method) / 60 for job in todo]
    left = frame.groupby("method", sort=False)["minutes"].agg(["size", "sum"])
    left.columns = ["fits", "CPU minutes"]
    return f"{left.round(1).to_string()}\ntotal: {left['CPU minutes'].sum():.0f} CPU minutes"


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", default=[], help="folders with tables")
    parser.add_argument("--tables", nargs="+", help="only these")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--splits", type=int, help="at most so many per table")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="time budget")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds of one fit")
    parser.add_argument("--python", nargs="+", default=[], help="METHOD=INTERPRETER")
    parser.add_argument("--again", nargs="+", default=[], help="methods whose rows are removed")
    parser.add_argument("--plan", action="store_true", help="show what is left, run nothing")
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    python = interpreters(options.python).get("bde", sys.executable)
    loaders = all_tables(options.data, python)
    unknown = [name for name in options.tables or [] if name not in loaders]
    if unknown:
        sys.exit(f"No such tables: {', '.join(unknown)}. There are: {', '.join(loaders)}.")
    if options.tables:
        loaders = {name: loaders[name] for name in options.tables}
    tables = Tables(loaders)
    splits, skipped = sizes(tables, bool(options.tables), options.splits)
    out = Table(options.out, KEYS)
    costs = Costs(out.rows)
    out.rows = [row for row in out.rows if row["method"] not in options.again]
    done = {(row["table"], row["method"], int(row["split"])) for row in out.rows}
    todo = [job for job in jobs(splits, options.methods, costs) if job not in done]
    if options.plan:
        print(plan(todo, costs))
        return
    skipped |= dict(run(todo, tables, out, costs, options))
    for name, reason in skipped.items():
        print(f"skipped: {name} ({reason})")
    print(f"Every fit: {options.out}. Tables: python benchmarks/tables.py")


if __name__ == "__main__":
    main()
