"""Do the claims of the study hold on other data? Runs `sbnn paper` on several data seeds.

    python benchmarks/claims.py [--seeds 5] [--full] [--out DIR]

Prints a table of claims by seed and writes benchmarks/results/claims.csv: what was measured and
whether the claim holds. Finished studies are kept in DIR and reused.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from sbnn.study.claims import judge
from sbnn.study.runs import run

CSV = Path(__file__).parent / "results" / "claims.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--full", action="store_true", help="full settings instead of quick ones")
    parser.add_argument("--out", type=Path, default=Path("claims"))
    options = parser.parse_args()
    rows = []
    for seed in range(options.seeds):
        study = run(options.out / f"seed{seed}", seed=seed, quick=not options.full)
        rows += [{"seed": seed, **claim._asdict()} for claim in judge(study)]
        pd.DataFrame(rows).to_csv(CSV, index=False)
    table = pd.DataFrame(rows)
    verdicts = table.pivot(index="claim", columns="seed", values="holds")
    with pd.option_context("display.width", 200, "display.max_colwidth", 90):
        print(verdicts.reindex(table["claim"].unique()).to_string())
    stable = verdicts.nunique(axis=1) == 1
    print(f"\nsame verdict on all seeds: {int(stable.sum())} of {len(stable)} claims")


if __name__ == "__main__":
    main()
