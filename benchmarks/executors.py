"""Overhead and speed-up of `executor=` with two workers.

Evaluates two functions of two parameters; one takes 50 ms, the other about 10 µs. The slow one
sleeps, so the speed-up is that of the machinery alone: workers that compute share cores, memory and
caches, and gain less. Every executor evaluates the same points after a first call that starts the
workers, and its values are compared with the serial ones bit for bit. For comparison, the last row
is Dask's own `client.map`. Prints a table and writes results/executors.csv.
"""

import argparse
import time
from pathlib import Path

import distributed
import numpy as np
import pandas as pd

import sbnn
from sbnn.priors import Normal
from sbnn.sampling.evaluator import Evaluator

REPEATS = 5  # the shortest counts: other load on the machine only adds time


def slow(theta):
    time.sleep(0.05)
    return fast(theta)


def fast(theta):
    bend = theta[1] - np.sin(theta[0])
    return float(-0.5 * (theta[0] ** 2 / 0.09 + bend**2 / 0.04))


def measure(name: str, function, n: int, executors: dict) -> list[dict]:
    problem = sbnn.Problem(function, ["a", "b"], {"a": Normal(), "b": Normal()}, black_box=True)
    theta = np.random.default_rng(0).normal(size=(n, 2))
    rows, expected = [], None
    for label, executor in executors.items():
        with Evaluator(problem, executor) as evaluate:
            evaluate(theta[:40])
            seconds = np.inf
            for _ in range(REPEATS):
                before = evaluate.n_tasks, evaluate.n_sent
                started = time.perf_counter()
                values = evaluate(theta)
                seconds = min(seconds, time.perf_counter() - started)
        tasks, sent = evaluate.n_tasks - before[0], evaluate.n_sent - before[1]
        expected = values if expected is None else expected
        rows.append(
            {
                "function": name,
                "executor": label,
                "evaluations": n,
                "tasks": tasks,
                "evaluations_per_task": sent / tasks if tasks else np.nan,
                "seconds": seconds,
                "speed_up": rows[0]["seconds"] / seconds if rows else 1.0,
                "same_bits": bool((values == expected).all()),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow-evaluations", type=int, default=200)
    parser.add_argument("--fast-evaluations", type=int, default=20_000)
    options = parser.parse_args()
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        executors = {"serial": None, "2 processes": 2, "Dask, 2 workers": client}
        rows = measure("50 ms", slow, options.slow_evaluations, executors)
        rows += measure("10 µs", fast, options.fast_evaluations, executors)
        n = options.slow_evaluations
        seconds = np.inf
        for _ in range(REPEATS):
            started = time.perf_counter()
            client.gather(client.map(time.sleep, [0.05] * n, pure=False))
            seconds = min(seconds, time.perf_counter() - started)
        plain = {"executor": "client.map, 2 workers", "evaluations": n, "tasks": n}
        plain |= {"evaluations_per_task": 1, "seconds": seconds}
        rows.append({"function": "50 ms", **plain, "speed_up": rows[0]["seconds"] / seconds})
    table = pd.DataFrame(rows)
    print(table.to_string(index=False, float_format="%.4g"))
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    table.to_csv(folder / "executors.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
