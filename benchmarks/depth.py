"""Layer-wise learning: the depth it finds for functions of known depth, and a wide deep network.

    python benchmarks/depth.py [--only wide]

Depth: five functions, ten data sets of 400 rows each: two that one hidden layer represents with few
neurons and three compositions f(g(x)), two that two layers of few neurons represent and a sine of a
sum, of which they are only an approximation. Seeds 0 to 9 were used to choose the rules of the
method, so they are not measured. Wide: up to 64-64-64 neurons, 9,000 weights, on 8,000 rows of
8 columns. Prints a table and writes benchmarks/results/depth.csv.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from harness import RESULTS, Table, fresh, report, since_start


def bump(x: np.ndarray) -> np.ndarray:
    """A smooth boxcar: 1 between −1 and 1, 0 elsewhere."""
    return 0.5 * (np.tanh(4 * (x + 1)) - np.tanh(4 * (x - 1)))


# Name: true depth, number of columns, half the range of x, function, noise.
TRUTHS = {
    "boxcar": (1, 1, 3.0, lambda x: 2 * bump(x[:, 0]), 0.1),
    "two ridges": (
        1, 3, 2.0, lambda x: np.tanh(2 * (x[:, 0] - x[:, 1])) + 0.5 * np.tanh(3 * x[:, 1] + 1), 0.1,
    ),
    "boxcar in two dimensions": (
        2, 2, 3.0, lambda x: np.tanh(4 * (bump(x[:, 0]) + bump(x[:, 1]) - 1.5)), 0.1,
    ),
    "sine of two steps": (
        2, 2, 2.0, lambda x: np.sin(3 * (np.tanh(2 * x[:, 0]) + np.tanh(2 * x[:, 1]))), 0.1,
    ),
    "band of two steps": (
        2, 2, 2.0, lambda x: 2 * bump(1.5 * (np.tanh(2 * x[:, 0]) + np.tanh(2 * x[:, 1]))), 0.1,
    ),
    "wide": (
        2, 8, 2.0, lambda x: np.sin(2 * np.tanh(x[:, 0] + x[:, 1]) + 2 * bump(x[:, 2])) + x[:, 3],
        0.1,
    ),
}  # fmt: skip
SETTINGS = [(name, seed) for name in TRUTHS if name != "wide" for seed in range(10, 20)] + [
    ("wide", 0)
]


def data(name: str, seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, y and the function without noise."""
    _, columns, half, function, noise = TRUTHS[name]
    rng = np.random.default_rng([seed, len(name)])
    x = rng.uniform(-half, half, size=(n, columns))
    return x, function(x) + noise * rng.normal(size=n), function(x)


def measure(name: str, seed: int) -> None:
    from sbnn import SparseBNNRegressor

    warnings.simplefilter("ignore")
    wide = name == "wide"
    x, y, _ = data(name, seed, 8000 if wide else 400)
    new, observed, truth = data(name, seed + 100, 2000)
    model = SparseBNNRegressor(
        (64, 64, 64) if wide else (20, 20, 20), method="layer_wise", noise="constant",
        n_starts=4 if wide else 8, random_state=seed,
    ).fit(x, y)  # fmt: skip
    tried = "; ".join(f"{value:.1f}" for value in model.trials_["log_evidence"])
    mean, interval = model.predict(new, return_interval=0.95)
    inside = (interval[:, 0] < observed) & (observed < interval[:, 1])
    report(
        true_depth=TRUTHS[name][0],
        depth=len(model.network_.sizes) - 2,
        log_evidences=tried,
        kept=model.n_parameters_kept_,
        parameters=model.n_parameters_,
        rmse=float(np.sqrt(np.mean((mean - truth) ** 2))),
        coverage=float(inside.mean()),
        **since_start(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], help="prefixes of the functions to run")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        measure(options.run[0], int(options.run[1]))
        return
    out = Table(RESULTS / "depth.csv", ("truth", "seed"))
    for name, seed in SETTINGS:
        if any(name.startswith(start) for start in options.only) and (name, seed) not in out:
            row = fresh(Path(__file__), ["--run", name, str(seed)], timeout=3600)
            if row["status"] != "done":
                sys.exit(f"{name}, {seed}: {row['status']}")
            out.add({"truth": name, "seed": seed, **row})
            print(f"{name} {seed}: depth {row['depth']}, {row['cpu_seconds']:.0f} s", flush=True)
    print(out.frame().to_string(index=False, float_format="%.3g"))


if __name__ == "__main__":
    main()
