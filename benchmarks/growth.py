"""How cost grows: the fit without sampling with rows n and weights d, TMCMC with particles and d.

    python benchmarks/growth.py [--only fit stream TMCMC] [--large]

Fit: CPU time of one iteration (Levenberg–Marquardt step, evidence, update of α) over n at fixed d
and over d at fixed n. The cost O(min(n, d)² max(n, d)) has exponent 1 in n and at most 2 in d for
d < n, and vice versa for n < d.

Stream: peak memory of `sbnn.last_layer` in a fresh process, for blocks of rows that are made when
they are needed. It does not depend on the number of rows.

TMCMC: CPU time and evaluations of complete runs, without compilation. Both have exponent 1 in the
number of particles, because neither stages nor moves depend on it. On d-dimensional Gaussian
posteriors, the number of stages is ∝ √d (a step of the temperature changes the log weights by
Δβ/β · √d) and the number of random-walk moves ∝ d, which gives 1.5 for evaluations. Blocks of moves
have a minimum size, so few dimensions cost more.

Prints measured and expected exponents. Writes benchmarks/results/growth.csv (one row per sweep) and
growth_runs.csv (every point). `--large` fits 1,000 weights to 5,000 rows with the default options
and prints the time and the peak memory.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings

import numpy as np
import pandas as pd
from harness import RESULTS, exponent, fresh, report, since_start

from sbnn import (
    Problem,
    SparseBNNRegressor,
    datasets,
    last_layer,
    network_problem,
    priors,
    standard,
)
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import initial
from sbnn.evidence.laplace.pruning import evolve

RUNS: list[dict] = []
SWEEPS: list[dict] = []


def table(n: int, n_features: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, n_features))
    y = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 3] ** 2 + 0.1 * rng.normal(size=n)
    return x, (y - y.mean()) / y.std()


def seconds_per_iteration(n: int, width: int, n_iter: int = 10, repeats: int = 3) -> float:
    """The shortest of several timings: other load on the machine only adds time."""
    x, y = table(n)
    model = NetworkModel(x_t=np.ascontiguousarray(x.T), y_t=y[None], sizes=(x.shape[1], width, 1))
    groups, times = model.groups(), []
    for repeat in range(repeats):
        opt = initial(model, np.random.default_rng(repeat))
        started = time.process_time()
        evolve(model, opt, n_iter, groups, tol=0.0)
        times.append((time.process_time() - started) / n_iter)
    return min(times)


def conclude(sweep: str, varied: str, measure: str, sizes, values, expected: str) -> None:
    """Print and store the points and the exponent."""
    for size, value in zip(sizes, values):
        RUNS.append(
            {"sweep": sweep, "varied": varied, "size": size, "measure": measure, "value": value}
        )
        print(f"{sweep:38s}{varied:>11s} {size:7d}{value:16.6g} {measure}", flush=True)
    row = {
        "sweep": sweep,
        "varied": varied,
        "from": sizes[0],
        "to": sizes[-1],
        "measure": measure,
        "exponent": round(exponent(sizes, values), 2) + 0.0,  # no −0
        "exponent_last_two": round(exponent(sizes[-2:], values[-2:]), 2) + 0.0,
        "expected": expected,
    }
    SWEEPS.append(row)
    print(
        f"  exponent in {varied}: {row['exponent']:.2f} (last two points: "
        f"{row['exponent_last_two']:.2f}), expected {expected}\n"
    )
    for path, rows in ((RESULTS / "growth_runs.csv", RUNS), (RESULTS / "growth.csv", SWEEPS)):
        table = pd.DataFrame(rows)
        if path.exists():  # keep earlier measurements that this run does not repeat
            earlier = pd.read_csv(path)
            table = pd.concat([earlier[~earlier["sweep"].isin(table["sweep"])], table])
        table.to_csv(path, index=False, float_format="%.6g")


def fits() -> None:
    sweeps = [
        ("fit, more rows than weights", "rows", [(n, 20) for n in (1000, 2000, 4000, 8000)], "1"),
        (
            "fit, fewer weights than rows",
            "weights",
            [(4000, w) for w in (10, 20, 40, 80)],
            "up to 2",
        ),
        ("fit, more weights than rows", "weights", [(200, w) for w in (40, 80, 160, 320)], "1"),
        (
            "fit, fewer rows than weights",
            "rows",
            [(n, 150) for n in (150, 300, 600, 1200)],
            "up to 2",
        ),
    ]
    for name, varied, settings, expected in sweeps:
        values = [seconds_per_iteration(n, width) for n, width in settings]
        sizes = [n if varied == "rows" else width * 10 + 1 for n, width in settings]
        conclude(name, varied, "CPU seconds per iteration", sizes, values, expected)


def blocks(n: int, size: int = 20_000, n_features: int = 50):
    """Blocks of features and targets, made one after the other."""
    waves = np.arange(1, n_features + 1)
    for start in range(0, n, size):
        rng = np.random.default_rng([5, start])
        x = rng.uniform(-1, 1, size=(min(size, n - start), 1))
        yield np.sin(waves * x), np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=len(x))


def streams() -> None:
    sizes, peaks = [50_000, 150_000, 500_000], []
    for n in sizes:
        found = fresh(__file__, ["--stream-rows", str(n)], threads=1)
        peaks.append(found["peak_gib"])
    conclude("last layer, streamed rows", "rows", "peak memory (GiB)", sizes, peaks, "0")


def gaussian_problem(d: int) -> Problem:
    """Prior N(0, 1), one observation of each parameter with noise 0.1."""
    import jax.numpy as jnp

    names = [f"p{i}" for i in range(d)]
    return Problem(
        lambda theta: -0.5 * jnp.sum((theta - 0.5) ** 2) / 0.1**2,
        names=names,
        priors=dict.fromkeys(names, priors.Normal(0.0, 1.0)),
    )


def sampled(problem: Problem, n_particles: int) -> tuple[float, float]:
    """CPU seconds and evaluations of one run, after a first run that compiles."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few moves may not decorrelate
        n_short = min(n_particles, 2000)
        standard(problem, key=1, n_particles=n_short, max_moves=20, move="random_walk")
    started = time.process_time()
    result = standard(problem, key=0, n_particles=n_particles)
    return time.process_time() - started, float(result.n_evaluations)


def tmcmc() -> None:
    x, y = datasets.boxcar()
    net = network_problem(x, y, (3,), noise_std=0.5, bound=10.0)
    sizes = [500, 1000, 2000, 4000, 8000, 16000, 32000]
    seconds, evaluations = zip(*(sampled(net, n) for n in sizes))
    conclude("TMCMC, 1-3-1 network", "particles", "CPU seconds", sizes, seconds, "1")
    conclude("TMCMC, 1-3-1 network", "particles", "evaluations", sizes, evaluations, "1")
    sizes = [5, 10, 20, 40, 80]
    seconds, evaluations = zip(*(sampled(gaussian_problem(d), 2000) for d in sizes))
    conclude("TMCMC, Gaussian", "dimensions", "evaluations", sizes, evaluations, "1.5")
    each = [s / e for s, e in zip(seconds, evaluations)]
    name = "CPU seconds per evaluation"
    conclude("TMCMC, Gaussian", "dimensions", name, sizes, each, "1 to 2 (d × d proposal)")


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
    parts = {"TMCMC": tmcmc, "fit": fits, "stream": streams}
    parser.add_argument("--only", nargs="+", default=list(parts), choices=list(parts))
    parser.add_argument("--stream-rows", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--large", action="store_true", help="also fit 1,000 weights × 5,000 rows")
    arguments = parser.parse_args()
    if arguments.stream_rows:
        last_layer(blocks(arguments.stream_rows))
        report(**since_start())
        return
    RESULTS.mkdir(exist_ok=True)
    for name, run in parts.items():
        if name in arguments.only:
            run()
    if arguments.large:
        large()


if __name__ == "__main__":
    main()
