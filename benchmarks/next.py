"""Suggested measurements against random ones: test error after ten more rows.

    python benchmarks/next.py [--truths report|tuning] [--seeds 20] [--strategies NAME …]

A network is fitted to a few random rows of a known function with noise. Then ten rows are added:
random ones, those of `SparseBNNRegressor.suggest(10)`, or twice those of `suggest(5)` with a fit in
between. The RMSE is that of the predicted function at 1,000 random points. The criterion was
developed on the tuning truths; the report truths were run afterwards. Prints a table and writes
benchmarks/results/next.csv.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from harness import RESULTS, Table
from table_text import markdown

N_ADDED = 10
Truth = tuple[int, int, float, Callable[[np.ndarray], np.ndarray]]


def _franke(x: np.ndarray) -> np.ndarray:
    a, b = 4.5 * (x + 1.0).T  # from [-1, 1] to [0, 9]
    return (
        0.75 * np.exp(-((a - 2) ** 2 + (b - 2) ** 2) / 4)
        + 0.75 * np.exp(-((a + 1) ** 2) / 49 - (b + 1) / 10)
        + 0.5 * np.exp(-((a - 7) ** 2 + (b - 3) ** 2) / 4)
        - 0.2 * np.exp(-((a - 4) ** 2) - (b - 7) ** 2)
    )


def _branin(x: np.ndarray) -> np.ndarray:
    a, b = 7.5 * x[:, 0] + 2.5, 7.5 * x[:, 1] + 7.5
    square = (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2
    return (square + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10) / 100


def _ishigami(x: np.ndarray) -> np.ndarray:
    a, b, c = (np.pi * x).T / 2
    return np.sin(a) + 2 * np.sin(b) ** 2 + 0.1 * (np.pi * c) ** 2 * np.sin(a)


# Name: columns, rows at the start, standard deviation of the noise, function on [-1, 1]^columns.
TRUTHS: dict[str, dict[str, Truth]] = {
    "tuning": {
        "chirp": (1, 10, 0.05, lambda x: np.sin(3 * np.exp(0.8 * x[:, 0]))),
        "branin": (2, 20, 0.05, _branin),
        "ridge": (2, 15, 0.05, lambda x: np.tanh(3 * (x[:, 0] + 0.5 * x[:, 1])) + 0.3 * x[:, 1]),
        "ishigami": (3, 30, 0.05, _ishigami),
        "wave": (1, 10, 0.05, lambda x: np.sin(5 * x[:, 0]) + 0.5 * x[:, 0]),
        "step": (1, 10, 0.05, lambda x: np.tanh(8 * (x[:, 0] - 0.3)) + 0.5 * x[:, 0] ** 2),
    },
    "report": {
        "resonance": (1, 10, 0.05, lambda x: 1 / (1 + 12 * (x[:, 0] + 0.2) ** 2) + 0.3 * x[:, 0]),
        "swing": (1, 12, 0.05, lambda x: np.exp(-1.5 * x[:, 0]) * np.cos(6 * x[:, 0]) / 2),
        "franke": (2, 20, 0.02, _franke),
        "saddle": (2, 15, 0.05, lambda x: x[:, 0] ** 2 - x[:, 1] ** 2 + 0.5 * x[:, 0] * x[:, 1]),
        "product": (3, 25, 0.05, lambda x: np.exp(x[:, 0]) * np.sin(2 * x[:, 1]) + 0.5 * x[:, 2]),
    },
}  # fmt: skip
STRATEGIES = ("random", "batch of 10", "two batches of 5")


def fitted(x: np.ndarray, y: np.ndarray):
    """A small and fast network; its settings are the same before and after."""
    from sbnn import SparseBNNRegressor

    options = {"group_iterations": 30, "iterations": 30, "neuron_moves": 0}
    model = SparseBNNRegressor(
        (8,), noise="constant", n_starts=6, random_state=0, method_options=options
    )
    return model.fit(x, y)


class Experiment:
    """A truth, the rows measured so far, and the points where the prediction is tested."""

    def __init__(self, truth: Truth, seed: int) -> None:
        self.columns, n, self.noise, self.function = truth
        self.rng = np.random.default_rng(seed)
        self.x = self.inputs(n)
        self.y = self.measured(self.x)
        self.new = np.random.default_rng([seed, 1]).uniform(-1, 1, (1000, self.columns))
        self.ranges = dict.fromkeys(range(self.columns), (-1.0, 1.0))

    def inputs(self, n: int) -> np.ndarray:
        return self.rng.uniform(-1, 1, (n, self.columns))

    def measured(self, x: np.ndarray) -> np.ndarray:
        return self.function(x) + self.noise * self.rng.normal(size=len(x))

    def rmse(self, model) -> float:
        return float(np.sqrt(np.mean((model.predict(self.new) - self.function(self.new)) ** 2)))

    def add(self, x: np.ndarray) -> None:
        self.x, self.y = np.vstack([self.x, x]), np.append(self.y, self.measured(x))


def run(truth: Truth, seed: int, strategy: str, first=None) -> dict[str, float]:
    """RMSE before and after the ten rows of a strategy; `first` is the fit before, if known."""
    started = time.process_time()
    case = Experiment(truth, seed)
    model = fitted(case.x, case.y) if first is None else first
    before = case.rmse(model)
    if strategy == "random":
        case.add(case.inputs(N_ADDED))
    elif strategy == "batch of 10":
        case.add(suggested(model, case, N_ADDED))
    else:
        case.add(suggested(model, case, N_ADDED // 2))
        case.add(suggested(fitted(case.x, case.y), case, N_ADDED // 2))
    after = case.rmse(fitted(case.x, case.y))
    return {"before": before, "after": after, "cpu": time.process_time() - started}


def suggested(model, case: Experiment, n: int) -> np.ndarray:
    """The inputs of the suggested rows."""
    return model.suggest(n, ranges=case.ranges)[list(case.ranges)].to_numpy()


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Mean RMSE, and the reduction of each strategy relative to that of random rows."""
    by = table.groupby(["truth", "strategy"], sort=False)[["before", "after"]].mean().reset_index()
    wide = by.pivot(index="truth", columns="strategy", values="after")
    wide.insert(0, "before", by.groupby("truth")["before"].mean())
    for strategy in STRATEGIES[1:]:
        if strategy in wide:
            gain = (wide["before"] - wide[strategy]) / (wide["before"] - wide["random"])
            wide[f"gain, {strategy}"] = gain
    return wide


def section(table: pd.DataFrame) -> str:
    """The text of the benchmark page."""
    found = summary(table)
    gains = [name for name in found if name.startswith("gain")]
    average = ", ".join(
        f"{found[name].mean():.2f} ({name.removeprefix('gain, ')})" for name in gains
    )
    return (
        "Ten rows are added to a small table of a known function: random ones, or suggested ones. "
        f"Mean RMSE of the predicted function over {table['seed'].nunique()} data sets, before and "
        "after. *gain* is the reduction by suggested rows divided by that by random rows: above 1, "
        f"suggestions are better. Its mean over the functions is {average}.\n\n"
        + markdown(found.round(3).reset_index())
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--truths", choices=list(TRUTHS), default="report")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=STRATEGIES)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    name = "next.csv" if arguments.truths == "report" else "next_tuning.csv"
    table = Table(RESULTS / name, ("truth", "seed", "strategy"))
    for seed in range(arguments.seeds):
        for truth, described in TRUTHS[arguments.truths].items():
            todo = [s for s in arguments.strategies if (truth, seed, s) not in table]
            if todo:
                case = Experiment(described, seed)
                first = fitted(case.x, case.y)
            for strategy in todo:
                found = run(described, seed, strategy, first)
                table.add({"truth": truth, "seed": seed, "strategy": strategy, **found})
    print(summary(table.frame()).round(3).to_string())


if __name__ == "__main__":
    main()
