"""Yacht, energy, concrete and power on the standard splits: noise="auto" and noise="constant".

    python benchmarks/noise_uci.py --data DIR [--splits 20] [--datasets yacht energy] [--noise auto]

DIR is a folder of benchmarks/rivals.py. Resumes; writes benchmarks/results/noise_uci.csv after
every fit.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

from harness import RESULTS, Table
from rival_data import STANDARD, load_split
from rival_scores import scores

from sbnn import SparseBNNRegressor


def run(folder: Path, split: int, noise: str) -> dict[str, float | str]:
    x, y, x_test, y_test = load_split(folder, split)
    started = time.process_time()
    model = SparseBNNRegressor(noise=noise, random_state=split, n_jobs=1).fit(x, y)
    cpu = time.process_time() - started
    found = scores(y_test, model.predictive(x_test))
    return {"used": model.noise_used_, **found, "kept": model.n_parameters_kept_, "cpu": cpu}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--datasets", nargs="+", choices=STANDARD, default=list(STANDARD))
    kinds = ("auto", "constant")
    parser.add_argument("--noise", nargs="+", choices=kinds, default=list(kinds))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = Table(RESULTS / "noise_uci.csv", ("dataset", "split", "noise"))
    for dataset in options.datasets:
        for split in range(options.splits):
            for noise in options.noise:
                if (dataset, split, noise) not in results:
                    row = run(options.data / dataset, split, noise)
                    results.add({"dataset": dataset, "split": split, "noise": noise, **row})
        mine = results.frame().query("dataset == @dataset")
        print(dataset, dict(mine.query("noise == 'auto'")["used"].value_counts()))
        print(mine.drop(columns="split").groupby("noise").mean(numeric_only=True).round(3))


if __name__ == "__main__":
    main()
