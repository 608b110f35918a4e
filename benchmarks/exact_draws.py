"""Do exact draws predict better than the linearised Laplace mixture?

    python benchmarks/exact_draws.py --data DIR [--tables yacht …] [--splits 5] [--refined 1]

DIR is the folder of benchmarks/rivals.py. Every split is fitted once by `laplace_nsbl`. Unseen rows
are then predicted by the linearised mixture and by exact draws of the same optima with the same
weights. The first splits, --refined of each table, are also predicted by "nsbl": α refined on the
exact evidence, which takes most of the time, and weights from leave-one-out densities of the draws;
and by the same with weights from the exact evidences alone. Rows of
benchmarks/results/exact_draws.csv are written at once, and a second call continues.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import jax
import numpy as np
from harness import RESULTS, Table
from rival_data import load_split
from scipy.special import softmax

from sbnn import SparseBNNRegressor
from sbnn.regressor.exact import exact_optima, posterior_of, weights_of

HIDDEN, N_STARTS = (10,), 4
SPLITS = {"yacht": 20, "energy": 20, "concrete": 5}


def scores(model: SparseBNNRegressor, posterior, x: np.ndarray, y: np.ndarray) -> tuple:
    """RMSE and mean log density of unseen rows."""
    model._posterior = posterior
    rmse = np.sqrt(np.mean((model.predict(x) - y) ** 2))
    return float(rmse), float(np.mean(model.log_predictive_density(x, y)))


def run(
    data: Path, name: str, split: int, noise: str, n_particles: int, refine: bool
) -> dict[str, object]:
    """One split: the fit, the draws, and the scores of the variants."""
    x, y, x_test, y_test, *_ = load_split(data / name, split)
    model = SparseBNNRegressor(HIDDEN, noise=noise, n_starts=N_STARTS, random_state=split)
    model.fit(x, y)
    task, linearised = model._task, model._posterior
    mixture = linearised.mixture
    cpu = time.process_time()
    exact = exact_optima(task, mixture, n_particles, refine=refine)
    cpu = time.process_time() - cpu
    plain = [e.unrefined() for e in exact]
    evidences = np.array([e.run.log_evidence for e in exact])
    variants = {
        "linearised": linearised,
        "draws": posterior_of(task, mixture, plain, mixture.weights),
    }
    if refine:
        weights = weights_of(task, mixture, exact)
        variants["nsbl"] = posterior_of(task, mixture, exact, weights)
        variants["evidence"] = posterior_of(task, mixture, exact, softmax(evidences))
    row: dict[str, object] = {
        "table": name,
        "split": split,
        "noise": noise,
        "optima": len(exact),
        "weights": float(np.mean([len(o.active) for o in mixture.optima])),
        "refined": sum(e.refined for e in exact),
        "gain": np.mean([e.run.log_evidence - e.first.log_evidence for e in exact])
        if refine
        else np.nan,
        "converged": sum(e.run.converged and e.run.agreeing for e in exact),
        "cpu": cpu,
    }
    for variant in ("linearised", "draws", "nsbl", "evidence"):
        found = variants.get(variant)
        rmse, density = (np.nan, np.nan) if found is None else scores(model, found, x_test, y_test)
        row |= {f"rmse_{variant}": rmse, f"log_density_{variant}": density}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--tables", nargs="+", default=list(SPLITS), choices=list(SPLITS))
    parser.add_argument("--splits", type=int, help="of each table; default 20, 20 and 5")
    parser.add_argument("--noise", default="student_t")
    parser.add_argument("--particles", type=int, default=128)
    parser.add_argument("--refined", type=int, default=1, help="splits on which α is refined")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table(RESULTS / "exact_draws.csv", ["table", "split", "noise"])
    for name in arguments.tables:
        for split in range(arguments.splits or SPLITS[name]):
            if (name, split, arguments.noise) in table:
                continue
            refine = split < arguments.refined
            row = run(arguments.data, name, split, arguments.noise, arguments.particles, refine)
            table.add(row)
            jax.clear_caches()  # thousands of compiled functions exhaust the memory maps
            print({k: v if isinstance(v, str) else round(v, 3) for k, v in row.items()}, flush=True)
    frame = table.frame()
    columns = [c for c in frame if c.startswith(("rmse", "log_density"))]
    print(frame.groupby("table", sort=False)[columns].mean().T.to_string())


if __name__ == "__main__":
    main()
