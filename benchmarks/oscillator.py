"""Does NSBL find exactly the true terms? Runs `examples/oscillator.py` for several noise seeds.

    python benchmarks/oscillator.py --seeds 5

Prints a table and writes benchmarks/results/oscillator.csv, with one row per candidate term and
seed, after every seed. Seeds that the file already contains are not run again (--fresh runs all).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parent.parent
OUT = ROOT / "benchmarks" / "results" / "oscillator.csv"
sys.path.insert(0, str(ROOT / "examples"))

import oscillator  # noqa: E402


def one_seed(seed: int, n_particles: int) -> pd.DataFrame:
    result = oscillator.find_terms(seed, n_particles)
    found = oscillator.table(result).reset_index()
    found.insert(0, "seed", seed)
    return found.assign(
        exact=oscillator.is_exact(found),
        verified=result.verified,
        gap=result.evidence_gap,
        log_evidence=result.log_evidence,
        log_evidence_error=result.log_evidence_error,
        seconds=result.seconds,
        evaluations=result.n_evaluations,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--particles", type=int, default=500)
    parser.add_argument("--fresh", action="store_true", help="also run seeds in the file")
    options = parser.parse_args()
    known = OUT.exists() and not options.fresh
    rows = pd.read_csv(OUT) if known else pd.DataFrame({"seed": []})
    for seed in range(options.seeds):
        if seed in set(rows["seed"]):
            continue
        new = one_seed(seed, options.particles)
        rows = new if rows.empty else pd.concat([rows, new], ignore_index=True)
        OUT.parent.mkdir(exist_ok=True)
        rows.round(4).to_csv(OUT, index=False)
        last = new.iloc[0]
        print(
            f"seed {seed}: exact {last['exact']}, verified {last['verified']} "
            f"(gap {last['gap']:+.2f}), {last['seconds']:.0f} s",
            flush=True,
        )
    print(rows.iloc[:, :7].round(3).to_string(index=False))
    seeds = rows.groupby("seed")
    print(f"\nexactly the true terms: {seeds['exact'].first().sum()} of {seeds.ngroups} seeds")
    print(f"verified: {seeds['verified'].first().sum()} of {seeds.ngroups} seeds")


if __name__ == "__main__":
    main()
