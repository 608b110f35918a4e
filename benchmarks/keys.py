"""Does the result of `sbnn.nsbl` depend on the key? The study's 1-3-1 problem.

    python benchmarks/keys.py [--seeds 5] [--keys 10]

For every data seed and key: the log evidence that `sbnn.nsbl` reports, and that at its α by
`N_RUNS` exact runs with other keys, whose mean tells differences of α from errors of single runs.
Prints a table and writes benchmarks/results/keys_runs.csv row by row, so that a second call
continues, and benchmarks/results/keys.csv with one row per data seed.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from harness import Table

import sbnn
from sbnn.evidence.exact.cold import cold_evidence

RESULTS = Path(__file__).parent / "results"
N_RUNS = 10
CLOSE = 0.3  # nats


def run(seed: int, key: int) -> dict[str, float]:
    """The reported log evidence of one key, and the mean of exact runs at its α."""
    x, y = sbnn.datasets.boxcar(seed=seed)
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(3,), noise_std=0.5)
    result = sbnn.nsbl(problem, key=key)
    runs = [cold_evidence(problem, result.log_alpha, 1000 + k) for k in range(N_RUNS)]
    values = np.array([exact.log_evidence for exact in runs])
    return {
        "seed": seed,
        "key": key,
        "verified": result.verified,
        "log_evidence": result.log_evidence,
        "error": result.log_evidence_error,
        "mean": values.mean(),
        "mean_error": values.std(ddof=1) / np.sqrt(N_RUNS),
        "spread": values.std(ddof=1),
        "seconds": result.seconds,
    }


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per data seed."""
    rows = []
    for seed, part in runs.groupby("seed"):
        rows.append(
            {
                "seed": seed,
                "keys": len(part),
                "verified": int(part["verified"].sum()),
                "best": part["mean"].max(),
                "worst": part["mean"].min(),
                "close": int((part["mean"] > part["mean"].max() - CLOSE).sum()),
                "reported_close": int(
                    (part["log_evidence"] > part["log_evidence"].max() - CLOSE).sum()
                ),
                "error": part["error"].mean(),
                "spread": np.sqrt((part["spread"] ** 2).mean()),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--keys", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table(RESULTS / "keys_runs.csv", ["seed", "key"])
    for seed in range(options.seeds):
        for key in range(options.keys):
            if (seed, key) not in table:
                table.add(run(seed, key))
                print({k: round(float(v), 3) for k, v in table.rows[-1].items()}, flush=True)
    found = summary(table.frame())
    found.to_csv(RESULTS / "keys.csv", index=False, float_format="%.4g")
    print(found.to_string(index=False))


if __name__ == "__main__":
    main()
