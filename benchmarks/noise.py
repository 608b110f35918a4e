"""Noise models on simulated data: varying noise, outliers, and the price of the choice.

    python benchmarks/noise.py [--seeds 20] [--task varying outliers constant]

varying    y = sin(x) + (0.05 + 0.25 x) noise, 200 rows: coverage of the 95 % intervals on
           2,000 new rows in every fifth of x, and the median relative error of σ(x)
outliers   y = a² − b + 0.2 noise, 150 rows, three shifted by 50: RMSE on new rows, that of a fit
           without the three, and how many of the three are among the rows farthest from the fit,
           beyond the limit of the report
constant   y = sin(x) + 0.3 noise, 200 rows: log density of new rows with "auto" minus that with
           noise="constant"

Resumes; writes benchmarks/results/noise.csv after every fit and prints the means.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from harness import Table

from sbnn import SparseBNNRegressor
from sbnn.reports.noise import outlier_limit

OUT = Path(__file__).parent / "results" / "noise.csv"


def fitted(x: np.ndarray, y: np.ndarray, noise: str = "auto") -> tuple[SparseBNNRegressor, float]:
    started = time.process_time()
    model = SparseBNNRegressor(noise=noise, random_state=0, n_jobs=1).fit(x, y)
    return model, time.process_time() - started


def varying(seed: int) -> dict[str, float | str]:
    rng = np.random.default_rng(seed)
    sigma = lambda x: 0.05 + 0.25 * x[:, 0]
    x, new = rng.uniform(0, 10, size=(200, 1)), rng.uniform(0, 10, size=(2000, 1))
    y, y_new = (np.sin(v[:, 0]) + sigma(v) * rng.normal(size=len(v)) for v in (x, new))
    model, seconds = fitted(x, y)
    _, interval = model.predict(new, return_interval=0.95)
    inside = (interval[:, 0] <= y_new) & (y_new <= interval[:, 1])
    fifth = np.minimum(new[:, 0] / 2, 4).astype(int)
    grid = np.linspace(0.05, 9.95, 100)[:, None]
    error = np.median(np.abs(model.noise_std_at(grid) / sigma(grid) - 1))
    cover = {f"coverage_{k + 1}": inside[fifth == k].mean() for k in range(5)}
    return {"noise": model.noise_used_, **cover, "sigma_error": error, "seconds": seconds}


def outliers(seed: int) -> dict[str, float | str]:
    rng = np.random.default_rng(seed)
    x, new = rng.normal(size=(150, 2)), rng.normal(size=(2000, 2))
    truth = lambda v: v[:, 0] ** 2 - v[:, 1]
    y = truth(x) + 0.2 * rng.normal(size=150)
    wrong = rng.choice(150, size=3, replace=False)
    shifted = y.copy()
    shifted[wrong] += 50.0
    error = lambda model: float(np.sqrt(np.mean((model.predict(new) - truth(new)) ** 2)))
    model, seconds = fitted(x, shifted)
    clean, _ = fitted(np.delete(x, wrong, axis=0), np.delete(y, wrong))
    scales = np.abs(shifted - model.predict(x)) / model.noise_std_at(x)
    named = scales[wrong] > outlier_limit(150) * np.quantile(scales, 0.6827)
    return {
        "noise": model.noise_used_, "rmse": error(model), "rmse_clean": error(clean),
        "ratio": error(model) / error(clean), "named": int(named.sum()), "seconds": seconds,
    }  # fmt: skip


def constant(seed: int) -> dict[str, float | str]:
    rng = np.random.default_rng(seed)
    x, new = rng.uniform(0, 10, size=(200, 1)), rng.uniform(0, 10, size=(5000, 1))
    y, y_new = (np.sin(v[:, 0]) + 0.3 * rng.normal(size=len(v)) for v in (x, new))
    found = {kind: fitted(x, y, kind) for kind in ("auto", "constant")}
    density = {k: m.log_predictive_density(new, y_new).mean() for k, (m, _) in found.items()}
    return {
        "noise": found["auto"][0].noise_used_, "gain": density["auto"] - density["constant"],
        "seconds": found["auto"][1], "seconds_constant": found["constant"][1],
    }  # fmt: skip


TASKS = {"varying": varying, "outliers": outliers, "constant": constant}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--task", nargs="+", choices=list(TASKS), default=list(TASKS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = Table(OUT, ("task", "seed"))
    for name in options.task:
        for seed in range(options.seeds):
            if (name, seed) not in results:
                results.add({"task": name, "seed": seed, **TASKS[name](seed)})
        mine = results.frame().query("task == @name").dropna(axis=1, how="all")
        print(name, dict(mine["noise"].value_counts()))
        print(mine.drop(columns=["task", "seed", "noise"]).mean().round(3).to_string())


if __name__ == "__main__":
    main()
