"""Hostile test: damaged files, kills, full disks, taken names, odd streams, tables and names.

    python benchmarks/faults.py [--quick] [--area NAME]

Prints one table: for each area, how many faults were tried, how many were handled well (the right
exit code, one clear line, nothing lost, nothing silently wrong) and the rest, each with what
happened. Takes some minutes, with --quick about one. Writes benchmarks/results/faults.csv, unless
--quick is given.

An area is a function of `quick` and an empty folder that returns an `Outcome`; add it to AREAS.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from fault_areas import files, folders, likelihoods, pages, processes, streams, tables
from fault_areas.common import Outcome
from harness import RESULTS

OUT = RESULTS / "faults.csv"
AREAS: dict[str, Callable[[bool, Path], Outcome]] = {
    "bits changed in saved models": files.flips,
    "kills while writing": files.kills,
    "full disk at every write": files.full_disk,
    "several writers of one folder": files.writers,
    "closed and odd streams": streams.odd_streams,
    "edited fit folders": folders.edited_folders,
    "fuzzed tables": tables.fuzzed_tables,
    "fuzzed tables of new rows": tables.fuzzed_predictions,
    "hostile names in a browser": pages.hostile_names,
    "memory limits": processes.memory_limits,
    "forks": processes.forks,
    "odd likelihoods": likelihoods.odd_likelihoods,
}


def run(area: str, quick: bool) -> Outcome:
    """Run one area in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        return AREAS[area](quick, Path(folder))


def write(rows: list[dict[str, object]]) -> None:
    """Replace the rows of these areas in the file, in the order of AREAS."""
    table = pd.DataFrame(rows)
    if OUT.exists():
        before = pd.read_csv(OUT, keep_default_na=False)
        table = pd.concat([before[~before["area"].isin(table["area"])], table])
    order = {area: k for k, area in enumerate(AREAS)}
    table = table[table["area"].isin(order)].sort_values("area", key=lambda a: a.map(order))
    table.to_csv(OUT, index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few faults of each kind")
    parser.add_argument("--area", choices=list(AREAS), action="append", help="only this area")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for area in options.area or AREAS:
        tried, handled, rest = run(area, options.quick)
        print(f"{area}: {tried} tried, {handled} handled well", flush=True)
        for line in rest:
            print(f"  {line}")
        rows.append({"area": area, "tried": tried, "handled": handled, "rest": "; ".join(rest)})
        if not options.quick:
            write(rows)
    print()
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
