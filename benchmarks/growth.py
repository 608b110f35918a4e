"""Cost of the sampling-free fit against the number of rows n and of weights d.

    python benchmarks/growth.py [--large]

Times one iteration (Levenberg–Marquardt step, evidence, update of α) over n at fixed d and over d
at fixed n, and prints the exponents of a fit in log–log. Expected of O(min(n, d)² max(n, d)):
about 1 in n and up to 2 in d while d < n, and the other way round while n < d. `--large` fits 1,000
weights on 5,000 rows with the default options and prints the time and the peak memory.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from sbnn import SparseBNNRegressor
from sbnn.laplace_optimum import evolve, initial, layer_groups
from sbnn.sparse_laplace import Model


def table(n: int, n_features: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, n_features))
    y = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 3] ** 2 + 0.1 * rng.normal(size=n)
    return x, (y - y.mean()) / y.std()


def seconds_per_iteration(n: int, width: int, n_iter: int = 10, repeats: int = 3) -> float:
    """The least of several timings: what else the machine does can only add."""
    x, y = table(n)
    model = Model(np.ascontiguousarray(x.T), y[None], (x.shape[1], width, 1))
    groups, times = layer_groups(model.sizes), []
    for repeat in range(repeats):
        opt = initial(model, np.random.default_rng(repeat))
        started = time.process_time()
        evolve(model, opt, n_iter, groups, tol=0.0)
        times.append((time.process_time() - started) / n_iter)
    return min(times)


def exponent(sizes, times) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def sweep(title: str, settings: list[tuple[int, int]], vary: str) -> None:
    print(f"\n{title}\n{'n':>7s}{'d':>7s}{'ms / iteration':>17s}")
    sizes, times = [], []
    for n, width in settings:
        d = width * 10 + 1
        times.append(seconds_per_iteration(n, width))
        sizes.append(n if vary == "n" else d)
        print(f"{n:7d}{d:7d}{1e3 * times[-1]:17.2f}", flush=True)
    local = exponent(sizes[-2:], times[-2:])
    print(f"exponent in {vary}: {exponent(sizes, times):.2f} (last two: {local:.2f})")


def large() -> None:
    x, y = table(5000)
    started = time.perf_counter()
    model = SparseBNNRegressor((100,), random_state=0).fit(x, y)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"\n{model.n_parameters_:.0f} weights × {len(y)} rows: {seconds:.0f} s, peak memory "
        f"{peak:.2f} GiB, {model.n_parameters_kept_:.0f} weights kept, {len(model.optima_)} optima"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also fit 1,000 weights × 5,000 rows")
    arguments = parser.parse_args()
    sweep("Rows, more of them than weights", [(n, 20) for n in (1000, 2000, 4000, 8000)], "n")
    sweep("Weights, fewer than rows", [(4000, w) for w in (10, 20, 40, 80)], "d")
    sweep("Weights, more of them than rows", [(200, w) for w in (40, 80, 160, 320)], "d")
    sweep("Rows, fewer than weights", [(n, 150) for n in (150, 300, 600, 1200)], "n")
    if arguments.large:
        large()


if __name__ == "__main__":
    main()
