"""Exact log evidences of networks of 21 to 222 weights on real tables, against Laplace.

    python benchmarks/exact.py --data DIR [--networks "yacht 6-10-1" …] [--keys 3]

DIR is a folder of benchmarks/rivals.py. For every network, a fit to the
training part of split 0 gives the best optimum; warm-start SMC then computes the exact log evidence
at its α and noise, with several keys. Every run is written to benchmarks/results/exact_runs.csv at
once, and a second call continues; exact.csv has one row per network.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from rival_data import load_split

from sbnn import SparseBNNRegressor
from sbnn.regressor.verification import verify_optimum

OUT = Path(__file__).parent / "results" / "exact.csv"
# Hidden layers and the largest number of rows. The noise is constant, but for the largest network,
# whose second output is the logarithm of the scale of Student-t noise.
NETWORKS: dict[str, tuple[str, tuple[int, ...], int | None]] = {
    "yacht 6-10-1": ("yacht", (10,), None),
    "energy 8-10-1": ("energy", (10,), None),
    "concrete 8-10-1": ("concrete", (10,), None),
    "power 4-10-1": ("power", (10,), 2000),
    "concrete 8-20-1": ("concrete", (20,), None),
    "energy 8-20-1": ("energy", (20,), None),
    "yacht 6-15-10-1": ("yacht", (15, 10), None),
    "concrete 8-40-2": ("concrete", (40,), None),
}
N_STARTS = 4


def fitted(data: Path, name: str) -> SparseBNNRegressor:
    """The network with its sparse optima."""
    dataset, hidden, n_rows = NETWORKS[name]
    x, y, *_ = load_split(data / dataset, 0)
    noise = "varying_student_t" if name.endswith("-2") else "constant"
    model = SparseBNNRegressor(hidden, noise=noise, n_starts=N_STARTS, random_state=0)
    return model.fit(x[:n_rows], y[:n_rows])


def run(model: SparseBNNRegressor, name: str, key: int, n_particles: int) -> dict[str, object]:
    """One exact run at the best optimum; log evidences are those of standardised data."""
    best = int(np.argmax([opt.log_evidence for opt in model._posterior.mixture.optima]))
    cpu = time.process_time()
    found = verify_optimum(model._posterior, model._task, best, key, n_particles)
    row = {"network": name, "key": key, "n_particles": n_particles, **found.row()}
    return {
        **row,
        "converged": found.run.converged,
        "agreeing": found.run.agreeing,
        "correlation": found.run.worst_correlation,
        "stages": len(found.run.stages),
        "gradients": found.run.n_evaluations,
        "cpu": time.process_time() - cpu,
    }


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per network: means over keys, and the range of the log evidence."""
    rows = []
    for name, part in runs.groupby("network", sort=False):
        exact = part["exact"]
        rows.append(
            {
                "network": name,
                "weights": int(part["n_kept"].iloc[0]),
                "laplace": part["laplace"].iloc[0],
                "exact": exact.mean(),
                "error": part["error"].mean(),
                "gap": part["gap"].mean(),
                "range": exact.max() - exact.min(),
                "one_sided": (part["backward"] - part["forward"]).abs().max(),
                "k_hat": part["k_hat"].mean(),
                "converged": int((part["converged"] & part["agreeing"]).sum()),
                "keys": len(part),
                "gradients": part["gradients"].mean(),
                "seconds": part["seconds"].mean(),
                "cpu": part["cpu"].mean(),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    each = arguments.out.with_name(f"{arguments.out.stem}_runs.csv")
    runs = pd.read_csv(each).to_dict("records") if each.exists() else []
    done = {(r["network"], r["key"]) for r in runs}
    warnings.simplefilter("ignore")
    for name in arguments.networks:
        left = [key for key in range(arguments.keys) if (name, key) not in done]
        model = fitted(arguments.data, name) if left else None
        for key in left:
            assert model is not None
            runs.append(run(model, name, key, arguments.particles))
            pd.DataFrame(runs).to_csv(each, index=False)
            summary(pd.DataFrame(runs)).to_csv(arguments.out, index=False)
            print(
                {k: v if isinstance(v, str) else round(float(v), 3) for k, v in runs[-1].items()},
                flush=True,
            )
    print(summary(pd.DataFrame(runs)).to_string(index=False))


if __name__ == "__main__":
    main()
