"""Yacht, energy, concrete and power on the 20 standard splits: sbnn and other methods in one run.

    python benchmarks/uci.py --data DIR [--splits N] [--datasets yacht energy] [--methods sbnn gp]

DIR has one folder per data set (data.txt, index_features.txt, index_target.txt, index_train_K.txt,
index_test_K.txt) and, optionally, published_results.csv to print published numbers as well. Every
score is written to a CSV file immediately; a second call with the same file continues it.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from peers import PEERS, Prediction

from sbnn import SparseBNNRegressor
from sbnn.scores import NormalMixture, Predictive, coverage, interval_width, nlpd, rmse

OUT = Path(__file__).parent / "results" / "uci.csv"
DATASETS = ("yacht", "energy", "concrete", "power")
METHODS = ["sbnn", *PEERS]
COLUMNS = ("rmse", "log_likelihood", "crps", "coverage", "width", "kept", "parameters", "seconds")


def load_split(folder: Path, split: int):
    """Training inputs and targets, test inputs and targets."""

    def read(name: str) -> np.ndarray:
        return np.loadtxt(folder / f"{name}.txt")

    table, columns = read("data"), read("index_features").astype(int)
    x, y = table[:, columns], table[:, int(read("index_target"))]
    train, test = (read(f"index_{part}_{split}").astype(int) for part in ("train", "test"))
    return x[train], y[train], x[test], y[test]


def ours(x, y, x_test, seed) -> tuple[Predictive, dict[str, float | str]]:
    """The default configuration, the same for every data set."""
    started, cpu = time.perf_counter(), time.process_time()
    model = SparseBNNRegressor(random_state=seed).fit(x, y)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    small = model.compact()
    mean, std = model.predict(x_test, return_std=True)
    shift = float(np.max(np.abs(small.predict(x_test) - mean) / std))
    return model.predictive(x_test), {
        "noise": model.noise_used_,
        "seconds": seconds,
        "cpu": cpu,
        "kept": model.n_parameters_kept_,
        "parameters": model.n_parameters_,
        "compact_parameters": small.n_parameters_,
        "compact_shift": shift,
    }


def scores(y: np.ndarray, found: Predictive) -> dict[str, float]:
    """Scores of predictive distributions."""
    low, high = found.quantiles((0.025, 0.975))
    return {
        "rmse": rmse(y, found.mean()),
        "log_likelihood": -nlpd(y, found),
        "crps": float(found.crps(y).mean()),
        "coverage": coverage(y, low, high),
        "width": interval_width(low, high),
    }


def scores_of_peer(y: np.ndarray, found: Prediction) -> dict[str, float]:
    """Scores of Gaussian mixtures whose weights may differ from point to point, or of means."""
    if found.stds is None:
        return {"rmse": rmse(y, (found.weights * found.means).sum(axis=0))}
    return scores(y, NormalMixture(found.weights, found.means, found.stds))


def run(method: str, folder: Path, split: int) -> dict[str, float | str]:
    x, y, x_test, y_test = load_split(folder, split)
    started, cpu = time.perf_counter(), time.process_time()
    row = {"dataset": folder.name, "method": method, "split": split}
    if method == "sbnn":
        predictive, extra = ours(x, y, x_test, split)
        return {**row, "note": "", **scores(y_test, predictive), **extra}
    found = PEERS[method](x, y, x_test, split)
    seconds = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
    return {**row, "note": found.note, **scores_of_peer(y_test, found), **seconds}


def summary(table: pd.DataFrame) -> str:
    """Mean ± standard error over splits, one block per data set, best log-likelihood first."""
    lines = []
    for dataset in [d for d in DATASETS if d in set(table["dataset"])]:
        part = table[table["dataset"] == dataset]
        lines.append(f"\n{dataset}")
        head = f"{'':24s}{'RMSE':>16s}{'log-likelihood':>18s}{'CRPS':>9s}{'cover':>7s}"
        lines.append(head + f"{'kept':>11s}{'wall s':>8s}{'cpu s':>8s}{'splits':>7s}")
        mean = part.groupby("method").mean(numeric_only=True)
        error = part.groupby("method").sem(numeric_only=True)
        for method in mean.sort_values("log_likelihood", ascending=False).index:
            a, e, n = mean.loc[method], error.loc[method], (part["method"] == method).sum()
            kept = f"{a['kept']:.0f}/{a['parameters']:.0f}" if "kept" in a and a["kept"] > 0 else ""
            lines.append(
                f"{method:24s}{a['rmse']:>9.3f} ±{e['rmse']:.3f}{a['log_likelihood']:>11.3f} "
                f"±{e['log_likelihood']:.3f}{a['crps']:>9.4f}{a['coverage']:>7.3f}"
                f"{kept:>11s}{a['seconds']:>8.1f}{a['cpu']:>8.1f}{n:>7d}"
            )
    return "\n".join(lines)


def published(folder: Path) -> str:
    path = folder / "published_results.csv"
    if not path.exists():
        return f"\nNo {path}: published numbers are left out."
    return f"\nPublished ({path.name})\n" + pd.read_csv(path).to_string(index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    rows = pd.read_csv(arguments.out).to_dict("records") if arguments.out.exists() else []
    done = {(r["dataset"], r["method"], r["split"]) for r in rows}
    missing: dict[str, str] = {}
    warnings.simplefilter("ignore")
    for dataset in arguments.datasets:
        for split in range(arguments.splits):
            for method in arguments.methods:
                if (dataset, method, split) in done or method in missing:
                    continue
                try:
                    rows.append(run(method, arguments.data / dataset, split))
                except ImportError as error:
                    missing[method] = str(error)
                    continue
                except FileNotFoundError as error:
                    sys.exit(f"{error}. --data must be the folder that holds {dataset}/data.txt.")
                pd.DataFrame(rows).to_csv(arguments.out, index=False)
                last = {c: round(rows[-1][c], 3) for c in COLUMNS if c in rows[-1]}
                print(dataset, split, method, last, file=sys.stderr, flush=True)
    print(summary(pd.DataFrame(rows)))
    print(published(arguments.data))
    for method, reason in missing.items():
        print(f"skipped: {method} ({reason})")
    print(f"\nEvery split: {arguments.out}")


if __name__ == "__main__":
    main()
