"""A box in two dimensions: last-layer, layer-wise, all-weights Laplace and exact on one table.

    python benchmarks/deep.py [--only layer_wise]

400 rows of the function of docs/how-to/deep.md, whose depth is two. "exact" samples the posterior
of the network that layer-wise learning found, at its precisions and noise (`sbnn.exact_evidence`).
Error of the mean against the function without noise, coverage of 95 % intervals, weights kept, log
evidence where it is that of all weights, CPU seconds in a fresh process with one thread.
Prints a table and writes benchmarks/results/deep.csv.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from depth import bump
from harness import RESULTS, Table, fresh, report

METHODS = {
    "layer_wise, up to three layers": ("layer_wise", (12, 12, 12)),
    "exact, same network": ("exact", (12, 12, 12)),
    "last_layer, two layers": ("last_layer", (12, 12)),
    "laplace_nsbl, two layers": ("laplace_nsbl", (12, 12)),
    "laplace_nsbl, one layer": ("laplace_nsbl", (12,)),
}


def box(x: np.ndarray) -> np.ndarray:
    """One inside a square, minus one outside, with smooth edges."""
    return np.tanh(4 * (bump(x[:, 0]) + bump(x[:, 1]) - 1.5))


def data() -> tuple[np.ndarray, ...]:
    """Training rows, and new rows with observations."""
    rng = np.random.default_rng(0)
    x, new = rng.uniform(-3, 3, size=(400, 2)), rng.uniform(-3, 3, size=(2000, 2))
    y, observed = (box(rows) + 0.1 * rng.normal(size=len(rows)) for rows in (x, new))
    return x, y, new, observed


def exact(model, x, y, new) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean, 95 % interval at new rows and log evidence under the exact posterior."""
    import sbnn

    centre, scale, middle, unit = x.mean(axis=0), x.std(axis=0), y.mean(), y.std()
    sigma = model.noise_std_ / unit
    problem = sbnn.network_problem(
        (x - centre) / scale, (y - middle) / unit, model.network_.sizes[1:-1], noise_std=sigma
    )
    mode = model.summary()["median"].to_numpy()
    found = sbnn.exact_evidence(problem, model.log_alpha_, start=mode)
    scaled = (new - centre) / scale
    f = np.array([np.ravel(model.network_.forward(phi, scaled)) for phi in found.draws])
    noisy = f + sigma * np.random.default_rng(1).normal(size=f.shape)
    low, high = np.quantile(noisy, (0.025, 0.975), axis=0)
    images = found.log_evidence - len(y) * np.log(unit)
    return middle + unit * f.mean(axis=0), middle + unit * np.stack([low, high], axis=1), images


def measure(name: str) -> None:
    from sbnn import SparseBNNRegressor

    warnings.simplefilter("ignore")
    method, widths = METHODS[name]
    x, y, new, observed = data()
    model = SparseBNNRegressor(
        widths, method="layer_wise" if method == "exact" else method, noise="constant",
        n_starts=8, random_state=0, n_jobs=1,
    )  # fmt: skip
    started = time.process_time()
    model.fit(x, y)
    mean, interval = model.predict(new, return_interval=0.95)
    evidence = None if method == "last_layer" else model.log_evidence_
    if method == "exact":
        mean, interval, evidence = exact(model, x, y, new)
    inside = (interval[:, 0] < observed) & (observed < interval[:, 1])
    report(
        rmse=float(np.sqrt(np.mean((mean - box(new)) ** 2))),
        coverage=float(inside.mean()),
        kept=model.n_parameters_kept_,
        parameters=model.n_parameters_,
        log_evidence=evidence,
        cpu_seconds=time.process_time() - started,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], help="prefixes of the methods to run")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        measure(options.run)
        return
    out = Table(RESULTS / "deep.csv", ("method",))
    for name in METHODS:
        if any(name.startswith(start) for start in options.only) and (name,) not in out:
            row = fresh(Path(__file__), ["--run", name], threads=1, timeout=3600)
            if row["status"] != "done":
                sys.exit(f"{name}: {row['status']}")
            out.add({"method": name, **row})
            print(f"{name}: {row['cpu_seconds']:.0f} s", flush=True)
    print(out.frame().to_string(index=False, float_format="%.3g"))


if __name__ == "__main__":
    main()
