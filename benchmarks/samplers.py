"""Comparison of samplers on the 1-3-1 posterior: evidence, evenness, time.

Boxcar data of seed 0, tanh, uniform prior ±10, σ = 0.5; reference log evidence −49.37 (long runs of
two samplers agree on it). Every method runs in a fresh process with two threads. `cold_seconds` is
the time from its start to its first result (import, compilation, sampling); `second_seconds` is the
time of a second run in the same process, skipped if the first took more than a minute. The
posterior has 48 equal cells (3! orders × 2³ signs): `cell_cv` is the coefficient of variation of
their masses, `cell_cv_ideal` that of the same number of independent draws.

    python benchmarks/samplers.py [--seeds 3] [--only sbnn BlackJAX] [--python UQpy=PATH] [--fresh]

Install the other packages with pip install -e .[bench]. UQpy and pyuncertainnumber require NumPy 1
and separate environments; --python UQpy=PATH pyuncertainnumber=PATH sets their interpreters.
Missing packages are reported and skipped.

Prints a table with ratios to sbnn and writes it to benchmarks/results/samplers.csv. Individual runs
are stored in samplers_runs.csv as they finish and are not run again (--fresh runs all).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from harness import RESULTS, Table, fresh
from sampler_methods import METHODS

import sbnn

REFERENCE = -49.37
SCRIPT = Path(__file__).with_name("sampler_methods.py")


def cells(phi: np.ndarray) -> np.ndarray:
    """Index of the symmetric cell of each row of φ (n, 10), 0 to 47: signs, then order."""
    signs = np.where(phi[:, 6:9] < 0, -1, 1)
    order = np.argsort(np.argsort(signs * phi[:, :3], axis=1), axis=1)
    rank = 2 * order[:, 0] + (order[:, 1] > order[:, 2])  # 0 … 5
    return 8 * rank + ((signs < 0) * [1, 2, 4]).sum(axis=1)


def evenness(draws: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    masses = np.bincount(cells(draws), weights, minlength=48)
    ess = 1.0 / (weights**2).sum()
    return {
        "ess": ess,
        "cell_cv": masses.std() / masses.mean(),
        "cell_cv_ideal": float(np.sqrt(47 / ess)),
        "empty_cells": int((masses == 0).sum()),
        "cell_max_over_min": masses.max() / masses.min() if masses.min() > 0 else np.inf,
    }


def one_run(name: str, seed: int, python: str, timeout: float) -> dict[str, float | str]:
    x, y = sbnn.datasets.boxcar()
    devices = {"JAX_NUM_CPU_DEVICES": "2"} if "two devices" in name else {}
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder, "data.npz"), Path(folder, "draws.npz")
        np.savez(data, x=np.ravel(x), y=np.ravel(y))
        row = fresh(
            SCRIPT,
            [name, str(seed), str(data), str(out), "60"],
            python=python,
            environment=devices,
            timeout=timeout,
        )
        if row["status"] == "done":
            with np.load(out) as found:
                row |= evenness(found["draws"], found["weights"])
            row["error"] = row["log_evidence"] - REFERENCE
    return {"method": name, "seed": seed, **row}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, root mean square of the error, and times against sbnn's.

    A run that was stopped counts with its time limit, a lower bound.
    """
    table = table.reindex(columns=table.columns.union(["cold_seconds", "error"], sort=False))
    stopped = table["status"].str.extract(r"stopped after (\d+) s")[0].astype(float)
    table["cold_seconds"] = table["cold_seconds"].fillna(stopped)
    table["finished"] = table["status"] == "done"
    table["rms_error"] = table["error"] ** 2
    columns = [
        "rms_error", "evaluations", "cold_seconds", "cold_cpu_seconds", "second_seconds",
        "evaluations_per_second", "cell_cv", "cell_cv_ideal", "empty_cells", "load",
    ]  # fmt: skip
    order = [name for name in METHODS if name in set(table["method"])]
    table = table.reindex(columns=["method", "finished", *columns])
    out = table.groupby("method")[columns].mean().reindex(order)
    out["rms_error"] **= 0.5
    out.insert(0, "seeds", table.groupby("method").size())
    out.insert(1, "finished", table.groupby("method")["finished"].sum())
    if "sbnn" in out.index:
        for kind in ("cold_seconds", "cold_cpu_seconds"):
            out[f"{kind}_over_sbnn"] = out[kind] / out.loc["sbnn", kind]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[""], help="prefixes of the methods to run")
    parser.add_argument("--python", nargs="+", default=[], help="NAME=INTERPRETER, such as UQpy=…")
    parser.add_argument("--timeout", type=float, default=300, help="seconds per process")
    parser.add_argument("--fresh", action="store_true", help="repeat stored runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the CSV files")
    options = parser.parse_args()
    pythons = dict(text.split("=", 1) for text in options.python)
    table = Table(options.out / "samplers_runs.csv", ("method", "seed"), options.fresh)
    names = [n for n in METHODS if any(n.startswith(start) for start in options.only)]
    failed: set[str] = set()
    for seed in range(options.seeds):
        for name in names:
            if (name, seed) in table or name in failed:
                continue
            python = next((p for k, p in pythons.items() if name.startswith(k)), sys.executable)
            row = one_run(name, seed, python, options.timeout)
            if row["status"] != "done":
                failed.add(name)
                print(f"{name}: {row['status']}", flush=True)
                if not row["status"].startswith("stopped"):
                    continue
            table.add(row)
            shown = {k: row.get(k) for k in ("error", "cold_seconds", "second_seconds", "load")}
            print(name, seed, {k: v and round(v, 2) for k, v in shown.items()}, flush=True)
    with pd.option_context("display.width", 250, "display.max_columns", 40):
        print(summary(table.frame()).to_string(float_format="%.3g"))
    summary(table.frame()).to_csv(options.out / "samplers.csv", float_format="%.6g")


if __name__ == "__main__":
    main()
