"""Sparsity and honest uncertainty on simulated data.

    python benchmarks/sparsity.py [--seeds 20] [--task friedman noise linear few far sharp tables]
                                  [--data DIR] [--tables yacht …]

friedman   Friedman's first function, ten inputs of which five are noise, 100, 200 and 500 rows: how
           many noise inputs some network uses, how many true ones none uses, RMSE on new rows
noise      five inputs without an effect, 40 rows: weights kept besides the output bias, and log
           density of new rows minus that of a normal distribution with the mean and std of the rows
linear     three inputs with linear effects, without noise and with it, 20 and 60 rows: largest
           error on new rows and deviation from a straight line, in units of the spread, weights
           kept, converged, CPU seconds
few        three bent functions, 6, 10, 15 and 30 rows: coverage of 95 % intervals, log density
far        five functions seen on [−1, 1], 40 rows: whether 95 % intervals at 1.5, 2, 3 and 10
           times that range hold the function, and whether one is narrower than one closer
sharp      a pendulum that may hit a wall, nine inputs, 567 rows, noise of one per cent: RMSE and
           log-likelihood of new rows, sbnn beside a Gaussian process with an ARD-RBF kernel
tables     the tables of DIR, see benchmarks/rivals.py, one seed per split: the sparse mixture, its
           best single network, and the same networks and noise without pruning; not by default

Resumes; writes benchmarks/results/sparsity.csv after every fit and prints the means.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from harness import RESULTS, Table
from peers import METHODS
from rival_data import load_split
from rival_scores import scores, scores_of
from sklearn.datasets import make_friedman1

from sbnn import SparseBNNRegressor

Function = Callable[[np.ndarray], np.ndarray]
BENT: dict[str, Function] = {
    "sine": lambda x: np.sin(3 * x),
    "parabola": lambda x: 2 * x**2 - 1,
    "step": lambda x: np.tanh(4 * x),
}
FAR: dict[str, Function] = {
    "linear": lambda x: 1.5 * x,
    "saturating": lambda x: np.tanh(2 * x),
    "periodic": lambda x: np.sin(4 * x),
    "quadratic": lambda x: x**2,
    "boxcar": lambda x: np.where(np.abs(x) < 0.5, 1.0, 0.0),
}
DISTANCES = np.array([1.0, 1.5, 2.0, 3.0, 10.0])


def fitted(x: np.ndarray, y: np.ndarray) -> tuple[SparseBNNRegressor, float]:
    started = time.process_time()
    model = SparseBNNRegressor(random_state=0, n_jobs=1).fit(x, y)
    return model, time.process_time() - started


def friedman(seed: int) -> Iterator[dict[str, Any]]:
    for n in (100, 200, 500):
        x, y = make_friedman1(n, n_features=10, noise=1.0, random_state=seed)
        new, truth = make_friedman1(2000, n_features=10, noise=0.0, random_state=seed + 10_000)
        model, cpu = fitted(x, y)
        used = model.posterior_.inputs_used
        error = float(np.sqrt(np.mean((model.predict(new) - truth) ** 2)))
        yield {
            "rows": n, "noise_inputs": int(used[5:].sum()), "missed": int((~used[:5]).sum()),
            "rmse": error, "kept": model.n_parameters_kept_ / len(model.optima_), "cpu": cpu,
        }  # fmt: skip


def noise(seed: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng([1, seed])
    x, y, new = rng.normal(size=(40, 5)), rng.normal(size=40), rng.normal(size=(5000, 5))
    y_new = rng.normal(size=5000)
    model, cpu = fitted(x, y)
    plain = -0.5 * np.log(2 * np.pi * y.var()) - (y_new - y.mean()) ** 2 / (2 * y.var())
    gain = (model.log_predictive_density(new, y_new) - plain).mean()
    kept = int((model.optima_["n_kept"] - 1).max())
    yield {"rows": 40, "kept": kept, "gain": gain, "cpu": cpu}


def linear(seed: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng([2, seed])
    slopes = rng.normal(size=3)
    for n in (20, 60):
        for scale in (0.0, 0.3):
            x, new = rng.uniform(-1, 1, size=(n, 3)), rng.uniform(-1, 1, size=(2000, 3))
            model, cpu = fitted(x, x @ slopes + scale * rng.normal(size=n))
            found, spread = model.predict(new), np.std(new @ slopes)
            design = np.column_stack([np.ones(len(new)), new])
            line = design @ np.linalg.lstsq(design, found, rcond=None)[0]
            yield {
                "rows": n, "case": f"noise {scale}", "cpu": cpu,
                "error": np.abs(found - new @ slopes).max() / spread,
                "bent": np.std(found - line) / spread,
                "kept": model.n_parameters_kept_ / len(model.optima_),
                "converged": bool(model.optima_["converged"].all()),
            }  # fmt: skip


def few(seed: int) -> Iterator[dict[str, Any]]:
    for n in (6, 10, 15, 30):
        for name, f in BENT.items():
            rng = np.random.default_rng([3, n, seed])
            x, new = rng.uniform(-1, 1, size=(n, 1)), rng.uniform(-1, 1, size=(1000, 1))
            y, y_new = (f(v[:, 0]) + 0.2 * rng.normal(size=len(v)) for v in (x, new))
            model, cpu = fitted(x, y)
            _, interval = model.predict(new, return_interval=0.95)
            inside = (interval[:, 0] <= y_new) & (y_new <= interval[:, 1])
            density = model.log_predictive_density(new, y_new).mean()
            yield {
                "rows": n, "case": name, "coverage": inside.mean(), "log_density": density,
                "cpu": cpu,
            }  # fmt: skip


def far(seed: int) -> Iterator[dict[str, Any]]:
    for name, f in FAR.items():
        rng = np.random.default_rng([4, seed])
        x = rng.uniform(-1, 1, size=(40, 1))
        model, cpu = fitted(x, f(x[:, 0]) + 0.1 * rng.normal(size=40))
        inside, narrows = [], False
        for side in (-1.0, 1.0):
            at = side * DISTANCES
            _, interval = model.predict(at[:, None], return_interval=0.95)
            inside.append((interval[1:, 0] <= f(at[1:])) & (f(at[1:]) <= interval[1:, 1]))
            narrows |= bool((np.diff(interval[:, 1] - interval[:, 0]) < 0).any())
        yield {
            "rows": 40, "case": name, "coverage": float(np.mean(inside)), "narrows": narrows,
            "cpu": cpu,
        }  # fmt: skip


def pendulum(x: np.ndarray) -> np.ndarray:
    """Velocity of a pendulum after 0.4 s, (n,), which jumps where it has just hit a wall.

    The columns of x, each between −1 and 1, are angle, velocity, torque of the first and of the
    second half, length, mass, damping, angle of the wall and restitution.
    """
    low = np.array([-1.5, -3.0, -4.0, -4.0, 0.8, 0.8, 0.05, 0.6, 0.3])
    high = np.array([1.5, 3.0, 4.0, 4.0, 1.2, 1.2, 0.5, 1.2, 0.9])
    angle, velocity, first, second, length, mass, damping, wall, bounce = (
        low + (high - low) * (1.0 + x) / 2.0
    ).T
    angle, step = np.minimum(angle, wall), 0.01
    for time_step in range(40):
        torque = first if time_step < 20 else second
        pull = torque / (mass * length**2) - 9.81 / length * np.sin(angle) - damping * velocity
        velocity = velocity + step * pull
        angle = angle + step * velocity
        hit = (angle > wall) & (velocity > 0)
        velocity = np.where(hit, -bounce * velocity, velocity)
        angle = np.where(hit, 2.0 * wall - angle, angle)
    return velocity


def sharp(seed: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng([5, seed])
    x, new = rng.uniform(-1, 1, size=(567, 9)), rng.uniform(-1, 1, size=(2000, 9))
    y, y_new = pendulum(x), pendulum(new)
    noise = 0.01 * y.std()
    y, y_new = (v + noise * rng.normal(size=len(v)) for v in (y, y_new))
    model, cpu = fitted(x, y)
    found = {"": scores(y_new, model.predictive(new))}
    found["_gp"] = scores_of(y_new, METHODS["gp"].fit(x, y, new, seed))
    yield {"rows": len(x), "cpu": cpu} | {
        f"{score}{kind}": row[score]
        for kind, row in found.items()
        for score in ("rmse", "log_likelihood", "coverage")
    }


def tables(seed: int, data: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    for name in names:
        x, y, x_new, y_new = load_split(data / name, seed)
        sparse, cpu = fitted(x, y)
        options = {"noise": sparse.noise_used_, "random_state": 0, "n_jobs": 1}
        models = {
            "dense": SparseBNNRegressor(method="laplace", **options).fit(x, y),
            "sparse": sparse,
            "single": sparse.compact(single=True),
        }
        optima = sparse.optima_
        removed = 1 - optima["n_kept"].sum() / optima["n_parameters"].sum()
        row = {
            "case": name, "rows": len(y), "cpu": cpu, "removed": removed,
            "kept": optima["n_kept"].mean(), "networks": len(optima),
            "single_kept": models["single"].n_parameters_kept_,
        }  # fmt: skip
        for kind, model in models.items():
            error = np.sqrt(np.mean((model.predict(x_new) - y_new) ** 2))
            density = np.mean(model.log_predictive_density(x_new, y_new))
            row |= {f"rmse_{kind}": float(error), f"density_{kind}": float(density)}
        yield row


TASKS = {
    "friedman": friedman, "noise": noise, "linear": linear, "few": few, "far": far, "sharp": sharp,
}  # fmt: skip
UCI = ["yacht", "energy", "concrete", "power"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--task", nargs="+", choices=[*TASKS, "tables"], default=list(TASKS))
    parser.add_argument("--data", type=Path, help="folder with the data sets, for 'tables'")
    parser.add_argument("--tables", nargs="+", default=UCI)
    options = parser.parse_args()
    if "tables" in options.task and options.data is None:
        parser.error("--task tables needs --data")
    tasks = {**TASKS, "tables": partial(tables, data=options.data, names=options.tables)}
    warnings.simplefilter("ignore")
    results = Table(RESULTS / "sparsity.csv", ("task", "seed", "rows", "case"))
    for name in options.task:
        for seed in range(options.seeds):
            done = results.frame()
            if len(done) and ((done["task"] == name) & (done["seed"] == seed)).any():
                continue
            for row in list(tasks[name](seed)):
                results.add({"task": name, "seed": seed, "case": "", **row})
        mine = results.frame().query("task == @name").dropna(axis=1, how="all")
        by = [c for c in ("case", "rows") if c in mine and mine[c].nunique() > 1]
        print(name)
        shown = mine.drop(columns=["task", "seed"])
        print((shown.groupby(by) if by else shown).mean(numeric_only=True).round(3))


if __name__ == "__main__":
    main()
