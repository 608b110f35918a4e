"""Random walk or HMC: which reaches a given error of the log evidence sooner?

Both sample the 1-3-1 boxcar posterior (uniform prior ±10, reference log evidence −49.37) in one
process, after a first run that compiles. Prints a table and writes results/moves.csv.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

import sbnn

REFERENCE = -49.37


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=6)
    parser.add_argument("--particles", type=int, default=2000)
    options = parser.parse_args()
    x, y = sbnn.datasets.boxcar()
    problem = sbnn.network_problem(x, y, (3,), noise_std=0.5, bound=10.0)
    rows = []
    for move in ("random_walk", "hmc"):
        sbnn.standard(problem, key=1000, n_particles=options.particles, move=move)
        started = time.perf_counter()
        runs = [
            sbnn.standard(problem, key=k, n_particles=options.particles, move=move)
            for k in range(options.keys)
        ]
        seconds = (time.perf_counter() - started) / options.keys
        errors = np.array([run.log_evidence for run in runs]) - REFERENCE
        rows.append(
            {
                "move": move,
                "seconds": seconds,
                "bias": errors.mean(),
                "spread": errors.std(ddof=1),
                "reported_error": np.mean([run.log_evidence_error for run in runs]),
                "evaluations": np.mean([run.n_evaluations for run in runs]),
                # variance × time: halving the error costs four times the particles
                "rms2_seconds": (errors**2).mean() * seconds,
            }
        )
    table = pd.DataFrame(rows).set_index("move")
    print(table.to_string(float_format="%.4g"))
    ratio = table.loc["hmc", "rms2_seconds"] / table.loc["random_walk", "rms2_seconds"]
    print(f"squared error × seconds, HMC over random walk: {ratio:.2f}")
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    table.to_csv(folder / "moves.csv", float_format="%.6g")


if __name__ == "__main__":
    main()
