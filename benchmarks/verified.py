"""Verification on the study's 1-3-1 problem: does `sbnn.nsbl` return the optimum it claims?

For every data seed:

- the default run (key 0);
- the best exact log evidence known for that data set: the maximum of this run, of a longer run with
  another key, and of a refinement, with as many particles, of the optimum of Laplace's evidence,
  which depends on neither mixture nor sampler;
- the unverified method: plain EM with K = 20 kernels and with the K chosen by BIC, the surrogate
  evidence maximised, and the exact log evidence at the α found.

    python benchmarks/verified.py --seeds 20

Prints a table and writes benchmarks/results/verified.csv row by row. Seeds that the file already
contains are not run again (--fresh runs all).
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import sbnn
from sbnn._core.float64 import float64
from sbnn.evidence.exact.ascent import ascend
from sbnn.evidence.exact.cold import cold_evidence
from sbnn.evidence.laplace.models.problems import laplace_optima
from sbnn.evidence.mixture import expectation_maximisation
from sbnn.evidence.newton import multistart, starting_points
from sbnn.priors import Hyperprior

OUT = Path(__file__).parent / "results" / "verified.csv"
THRESHOLD = 0.1  # a neuron below this relevance is irrelevant
BIC_SIZES = (1, 2, 4, 8, 16, 32, 64)


def irrelevant_neurons(result) -> int:
    return int((result.neuron_relevance()[0] < THRESHOLD).sum())


@float64
def unverified(problem, phi, log_normaliser: float, sizes) -> dict[str, float]:
    """Without verification: fit a mixture by EM, maximise its evidence, accept α."""
    mixture = expectation_maximisation(phi, sizes, log_normaliser)
    starts = starting_points(np.random.default_rng(0), phi, problem.ard, 12)
    best = multistart(starts, mixture, problem.ard, Hyperprior())[0]
    exact = cold_evidence(problem, best.log_alpha, 1, n_particles=1000)
    return {
        "kernels": mixture.n_kernels,
        "surrogate": best.log_evidence,
        "exact": exact.log_evidence,
        "gap": best.log_evidence - exact.log_evidence,
    }


@float64
def refined_laplace(problem, n_particles: int) -> float:
    """The exact log evidence that an ascent from the optimum of Laplace's evidence reaches."""
    log_alpha = laplace_optima(problem, Hyperprior(), np.random.default_rng(0), 10)[0].log_alpha
    start = cold_evidence(problem, log_alpha, 2, n_particles=n_particles)
    ascent = ascend(problem, log_alpha, start, Hyperprior(), 3)
    end = cold_evidence(problem, ascent.log_alpha, 4, n_particles=n_particles)
    return max(start.log_evidence, end.log_evidence)


def one_seed(seed: int, n_long: int) -> dict[str, float]:
    x, y = sbnn.datasets.boxcar(seed=seed)
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(3,), noise_std=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = sbnn.nsbl(problem, key=0)
        longer = sbnn.nsbl(problem, key=1000 + seed, n_particles=n_long)
    refined = refined_laplace(problem, n_long)
    best = max(refined, *(r.optima["log_evidence"].max() for r in (result, longer)))
    log_normaliser = result.details.standard_log_evidence + problem.log_box_volume()
    standard = result.details.standard_phi
    em20 = unverified(problem, standard, log_normaliser, 20)
    bic = unverified(problem, standard, log_normaliser, BIC_SIZES)
    return {
        "seed": seed,
        "verified": result.verified,
        "gap": result.evidence_gap,
        "log_evidence": result.log_evidence,
        "error": result.log_evidence_error,
        "irrelevant": irrelevant_neurons(result),
        "best": best,
        "below_best": best - result.log_evidence,
        "long_log_evidence": longer.log_evidence,
        "long_verified": longer.verified,
        "long_irrelevant": irrelevant_neurons(longer),
        "refined_laplace": refined,
        "seconds": result.seconds,
        "evaluations": result.n_evaluations,
        **{f"em20_{k}": v for k, v in em20.items()},
        **{f"bic_{k}": v for k, v in bic.items()},
    }


def holds(table: pd.DataFrame) -> pd.Series:
    """Whether the result is verified, best known within one nat, and prunes one neuron."""
    return (
        table["verified"]
        & (table["gap"].abs() <= 1)
        & (table["below_best"] <= 1)
        & (table["irrelevant"] == 1)
    )


def report(table: pd.DataFrame) -> None:
    with pd.option_context("display.width", 250, "display.max_columns", 40):
        print(table.round(2).to_string(index=False))
    good = holds(table)
    print(f"\nverified, best known and sparse: {int(good.sum())} of {len(table)} data sets", end="")
    print(f"; not on seeds {table['seed'][~good].tolist()}" if not good.all() else "")
    for route in ("em20", "bic"):
        failed = (table[f"{route}_gap"].abs() > 1).sum()
        print(f"unverified {route}: off by more than 1 nat on {failed} of {len(table)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--long", type=int, default=4000, help="particles of the longer run")
    parser.add_argument("--fresh", action="store_true", help="also run seeds in the file")
    options = parser.parse_args()
    OUT.parent.mkdir(exist_ok=True)
    known = OUT.exists() and not options.fresh
    rows = pd.read_csv(OUT).to_dict("records") if known else []
    for seed in range(options.seeds):
        if any(row["seed"] == seed for row in rows):
            continue
        started = time.perf_counter()
        rows.append(one_seed(seed, options.long))
        pd.DataFrame(rows).to_csv(OUT, index=False)
        row = rows[-1]
        print(
            f"seed {seed}: {row['log_evidence']:.2f} ± {row['error']:.2f}, gap {row['gap']:+.2f}, "
            f"best {row['best']:.2f}, {row['irrelevant']} irrelevant "
            f"({time.perf_counter() - started:.0f} s)",
            flush=True,
        )
    report(pd.DataFrame(rows))


if __name__ == "__main__":
    main()
