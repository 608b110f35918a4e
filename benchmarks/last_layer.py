"""Time and peak memory of last-layer learning with up to a million rows of 200 features.

    python benchmarks/last_layer.py [--only array]

Sources of the rows: an array in memory, a memory-mapped file of doubles, a feature function (random
tanh features of ten columns), and a Dask array on a cluster of two worker processes, whose memory
is not counted. Every setting runs in a fresh process on two threads. Prints a table and writes
benchmarks/results/last_layer.csv. The limits for a million rows that do not lie in memory are 60 s
and 1.5 GiB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import RESULTS, Table, fresh, report, since_start

N_FEATURES, N_COLUMNS, N_TRUE = 200, 10, 20
ROWS = (10_000, 100_000, 1_000_000)
SETTINGS = [
    *(("array", "constant", n) for n in ROWS[:2]),
    *(("file", "constant", n) for n in ROWS),
    *(("function", "constant", n) for n in ROWS),
    *(("dask", "constant", n) for n in ROWS),
    *(("function", "student_t", n) for n in ROWS),
]


class RandomFeatures:
    """tanh(x W + b) with fixed random W and b."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.weights = rng.normal(size=(N_COLUMNS, N_FEATURES))
        self.bias = rng.normal(size=N_FEATURES)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.tanh(x @ self.weights + self.bias)


def rows(n: int, start: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets of which 20 of the 200 features are the truth."""
    rng = np.random.default_rng([2, start])
    x = rng.normal(size=(n, N_COLUMNS))
    truth = np.random.default_rng(3).normal(size=N_TRUE)
    return x, RandomFeatures()(x)[:, :N_TRUE] @ truth + 0.3 * rng.normal(size=n)


def measure(source: str, noise: str, n: int) -> None:
    import sbnn

    block = min(n, 50_000)
    parts = [rows(block, start) for start in range(0, n, block)]
    x, y = (np.concatenate(part) for part in zip(*parts))
    del parts
    function = RandomFeatures()
    started = time.perf_counter()
    if source == "function":
        result = sbnn.last_layer(function, y, x=x, noise=noise)
    elif source == "array":
        features = function(x)
        started = time.perf_counter()
        result = sbnn.last_layer(features, y, noise=noise)
    elif source == "file":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "features.npy"
            shape = (n, N_FEATURES)
            mapped = np.lib.format.open_memmap(path, "w+", dtype=float, shape=shape)
            for at in range(0, n, block):
                mapped[at : at + block] = function(x[at : at + block])
                mapped.flush()
                mapped._mmap.madvise(4)  # MADV_DONTNEED: written pages count as memory
            del mapped, x
            started = time.perf_counter()
            result = sbnn.last_layer(np.load(path, mmap_mode="r"), y, noise=noise)
    else:
        import dask.array
        import distributed

        with (
            distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster),
        ):
            cut = dask.array.from_array(x, chunks=(block // 2, N_COLUMNS))
            started = time.perf_counter()
            result = sbnn.last_layer(function, y, x=cut, noise=noise)
    fit = time.perf_counter() - started
    report(fit_seconds=fit, kept=int(np.isfinite(result.log_alpha).sum()), **since_start())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], help="sources to run")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        measure(options.run[0], options.run[1], int(options.run[2]))
        return
    out = Table(RESULTS / "last_layer.csv", ("source", "noise", "rows"))
    for source, noise, n in SETTINGS:
        if any(source.startswith(s) for s in options.only) and (source, noise, n) not in out:
            row = fresh(Path(__file__), ["--run", source, noise, str(n)], timeout=3600)
            if row["status"] != "done":
                sys.exit(f"{source}, {noise}, {n}: {row['status']}")
            out.add({"source": source, "noise": noise, "rows": n, **row})
            print(
                f"{source}, {noise}, {n:,}: {row['fit_seconds']:.1f} s, {row['peak_gib']:.2f} GiB"
            )
    print(out.frame().to_string(index=False, float_format="%.3g"))


if __name__ == "__main__":
    main()
