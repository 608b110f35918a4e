"""Generated parts of the documentation: measured numbers and the glossary of the report.

    python docs/generated.py

rewrites everything between `<!-- generated: NAME -->` and `<!-- end -->` in the pages. Numbers come
from the CSV files in benchmarks/results/, the glossary from the package. A test checks that the
pages are up to date. `benchmarks/tables.py` generates the page of benchmarks and the README table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def claims(results: Path) -> str:
    """How many claims hold on every seed, and those that do not."""
    table = pd.read_csv(results / "claims.csv")
    n_seeds = table["seed"].nunique()
    held = table.groupby("claim", sort=False)["holds"].sum()
    failed = held[held < n_seeds]
    text = f"Of the {len(held)} claims, {len(held) - len(failed)} hold on all {n_seeds} data seeds"
    verb = "does" if len(failed) == 1 else "do"
    lines = [f"{text}; {len(failed)} {verb} not:\n" if len(failed) else f"{text}."]
    for claim, n_held in failed.items():
        measured = table["measured"][(table["claim"] == claim) & (table["seed"] == 0)].item()
        lines.append(
            f"- *{claim}*: holds on {n_held} of {n_seeds} seeds; measured on seed 0: {measured}."
        )
    return "\n".join(lines)


def oscillator_table(results: Path) -> str:
    """The printed table of the example for seed 0."""
    table = pd.read_csv(results / "oscillator.csv")
    run = table[table["seed"] == 0]
    shown = run.set_index("term")[["true", "estimate", "std", "relevance", "kept"]]
    shown = shown.assign(kept=np.where(shown["kept"], "yes", "no"))
    first = run.iloc[0]
    lines = shown.to_string(float_format="{:.3f}".format).splitlines()
    return (
        "```text\n" + "\n".join(line.rstrip() for line in lines) + "\n\n"
        f"log evidence {first.log_evidence:.2f} ± {first.log_evidence_error:.2f}, "
        f"verified: {first.verified} (gap {first.gap:+.2f} nats), {first.seconds:.0f} s\n```"
    )


def oscillator_seeds(results: Path) -> str:
    """On how many noise seeds exactly the true terms are kept."""
    table = pd.read_csv(results / "oscillator.csv")
    seeds = table.groupby("seed")[["exact", "verified"]].first()
    spread = table[~table["kept"]].groupby("seed")["std"].max()
    return (
        f"On {seeds['exact'].sum()} of {len(seeds)} noise seeds the kept terms are exactly the "
        f"true ones; {seeds['verified'].sum()} of {len(seeds)} results are verified "
        "(`benchmarks/results/oscillator.csv`, one row per seed and term). The draws, and "
        "therefore the column *estimate*, average over all optima, weighted by their evidence. If "
        "noise makes a second model nearly as probable, terms that are not kept have a nonzero "
        f"standard deviation: at most {spread.min():.1g} on seed {spread.idxmin()}, but up to "
        f"{spread.max():.1g} on seed {spread.idxmax()}. "
        "`result.details.best_phi` holds the posterior of the best model alone."
    )


def surrogate(results: Path) -> str:
    """How wrong an unverified mixture is at its own optimum."""
    table = pd.read_csv(results / "verified.csv")
    first = table[table["seed"] == 0].iloc[0]
    low, high = table["em20_gap"].min(), table["em20_gap"].max()
    return (
        f"On the 1-3-1 boxcar problem (data seed 0), a mixture of {first.em20_kernels:.0f} kernels "
        f"fitted by EM reports a log evidence of {_number(first.em20_surrogate)} at its optimum; "
        f"the exact value there is {_number(first.em20_exact)}. On {len(table)} data sets, the "
        f"mixture overestimates the log evidence by {_number(low)} to {_number(high)} nats."
    )


def _number(value: float) -> str:
    return f"{value:.0f}".replace("-", "−")


def bands(results: Path) -> str:
    """Width of the band at α* and of the averaged one, outside the data."""
    table = pd.read_csv(results / "bands.csv").set_index("method")
    ratios = 100 * table[["ratio(-6)", "ratio(+6)"]].mean(axis=1)
    return (
        "Draws at α* alone are overconfident: on the boxcar data, their 95 % bands at x = ±6 have "
        f"{ratios['nsbl, at α*']:.0f} % of the width of a long reference run of hierarchical "
        f"Bayes. With the uncertainty of log α it is {ratios['nsbl, averaged']:.0f} %."
    )


def deep(results: Path) -> str:
    """Methods for deep networks on one table; "" without deep.csv."""
    path = results / "deep.csv"
    if not path.exists():
        return ""
    table = pd.read_csv(path)
    words = (
        'The same on another 400 rows of this function, with log evidence and time. "exact" '
        "samples the posterior of the network that layer-wise learning found, at its precisions:"
    )
    head = "| method | error | in 95 % | weights kept | log evidence | CPU s |"
    rows = [words, "", head, "|---|--:|--:|--:|--:|--:|"]
    for row in table.itertuples():
        evidence = "" if np.isnan(row.log_evidence) else _number(row.log_evidence)
        rows.append(
            f"| {row.method} | {row.rmse:.3f} | {100 * row.coverage:.0f} % | "
            f"{row.kept:.0f} of {row.parameters:.0f} | {evidence} | {row.cpu_seconds:.0f} |"
        )
    return "\n".join([*rows, "", "*`benchmarks/results/deep.csv`, by `benchmarks/deep.py`*"])


def glossary(_: Path) -> str:
    """The glossary of the report."""
    from sbnn.reports.page import GLOSSARY

    rows = [f"| {word} | {meaning} |" for word, meaning in GLOSSARY.items()]
    return "\n".join(["| term | meaning |", "|---|---|", *rows])


PARTS: dict[str, Callable[[Path], str]] = {
    function.__name__: function
    for function in (claims, oscillator_table, oscillator_seeds, surrogate, bands, deep, glossary)
}


def fill(text: str, results: Path = RESULTS) -> str:
    """The page with its generated parts up to date."""
    return PART.sub(lambda m: f"{m[1]}{PARTS[m[2]](results)}\n{m[3]}", text)


def main() -> None:
    for path in DOCS.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        path.write_text(fill(text), encoding="utf-8")


if __name__ == "__main__":
    main()
