"""Benchmark tables in Markdown: docs/reference/benchmarks.md and the table of the README.

    python benchmarks/tables.py

Reads the CSV files in benchmarks/results/. A missing file is skipped, as are *_runs.csv, which hold
the individual runs behind another file. A file without a function below is shown as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from exact_tables import exact, exact_draws
from next import section as next_rows
from noise_tables import noise, noise_uci
from plain_c import plain_c
from rival_text import comparison, published, readme_text
from sparsity_tables import sparsity
from speed import speed
from table_text import cell, markdown, percent

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE, README = ROOT / "docs" / "reference" / "benchmarks.md", ROOT / "README.md"
START, END = "<!-- benchmarks: start -->", "<!-- benchmarks: end -->"
MOST = 20  # rows shown of a file without a function below
INTRODUCTION = """# Benchmarks

Every table is generated from a CSV file in `benchmarks/results/`, written by the script named below
it. Compare times within a table only: they depend on the machine.
"""


# ------------------------------------------------------------------------ one function per file
def verified(table: pd.DataFrame) -> str:
    shown = pd.DataFrame(
        {
            "data seed": table["seed"],
            "verified": table["verified"].map({True: "yes", False: "no"}),
            "estimate − exact": table["gap"].map("{:.2f}".format),
            "log evidence": table["log_evidence"].map("{:.2f}".format),
            "below best known": table["below_best"].map("{:.2f}".format),
            "neurons pruned": table["irrelevant"],
            "EM with 20 kernels, error": table["em20_gap"].map("{:+.0f}".format),
            "EM with BIC, error": table["bic_gap"].map("{:+.0f}".format),
        }
    ).map(lambda v: v.replace("-", "−") if isinstance(v, str) else v)
    return (
        "Does `sbnn.nsbl` return the optimum it claims? The study's 1-3-1 problem, one data set "
        "per row, in nats. *Estimate − exact* is the gap that verification measures. The last two "
        "columns show the error of the evidence of an unverified mixture at its own optimum.\n\n"
        + markdown(shown)
    )


def keys(table: pd.DataFrame) -> str:
    of = lambda column: [f"{n} of {total}" for n, total in zip(table[column], table["keys"])]
    shown = pd.DataFrame(
        {
            "data seed": table["seed"],
            "verified": of("verified"),
            "best": table["best"].map("{:.2f}".format),
            "worst": table["worst"].map("{:.2f}".format),
            "within 0.3 nats": of("close"),
            "by one run": of("reported_close"),
            "reported error": table["error"].map("{:.3f}".format),
            "spread of exact runs": table["spread"].map("{:.3f}".format),
        }
    ).map(lambda v: v.replace("-", "−") if isinstance(v, str) else v)
    return (
        "Does the result of `sbnn.nsbl` depend on the key? The study's 1-3-1 problem, ten keys per "
        "data set. At the α of every key, the mean of ten exact runs gives the log evidence to "
        "about 0.03 nats: *best* and *worst* of the ten keys, and how many are within 0.3 nats of "
        "the best, also *by one run*, the value that each key reports.\n\n" + markdown(shown)
    )


def bands(table: pd.DataFrame) -> str:
    points = [c for c in table.columns if c.startswith("ratio")]
    shown = pd.DataFrame({"method": table["method"]})
    for column in points:
        x = column[len("ratio(") : -1].replace("+0", "0").replace("-", "−")
        shown[f"x = {x}"] = table[column].map("{:.2f}".format)
    shown["seconds"] = table["seconds"].map("{:.0f}".format)
    return (
        "Does NSBL predict like hierarchical Bayes? Width of the 95 % band of the function at five "
        "points of the study's problem, relative to a long reference run of hierarchical Bayes. "
        "The ideal is 1.\n\n" + markdown(shown)
    )


def moves(table: pd.DataFrame) -> str:
    shown = pd.DataFrame(
        {
            "move": table["move"].str.replace("_", " "),
            "seconds": table["seconds"],
            "bias (nats)": table["bias"],
            "spread over keys": table["spread"],
            "reported error": table["reported_error"],
            "likelihood evaluations": table["evaluations"].astype(float),
        }
    )
    return "Two moves of TMCMC, judged by the log evidence of the 1-3-1 problem.\n\n" + markdown(
        shown
    )


def nist(table: pd.DataFrame) -> str:
    return (
        "Nonlinear regression by `sbnn.laplace` compared with NIST's certified values: number of "
        "correct digits of the worst parameter, the worst standard deviation and the noise, from "
        "both of NIST's starting points.\n\n" + plain(table)
    )


def oscillator(table: pd.DataFrame) -> str:
    runs = table["seed"].nunique()
    rows = [
        {
            "term": term,
            "true coefficient": part["true"].iloc[0],
            "mean estimate": part["estimate"].mean(),
            "mean standard deviation": part["std"].mean(),
            "kept": f"{part['kept'].sum()} of {runs} runs",
        }
        for term, part in table.groupby("term", sort=False)
    ]
    return (
        "Does NSBL find exactly the true terms in the law of an oscillator? "
        "`examples/oscillator.py` on several noise seeds.\n\n" + markdown(pd.DataFrame(rows))
    )


def samplers(table: pd.DataFrame) -> str:
    def at_least(column: str) -> list[str]:
        limits = table["finished"] < table["seeds"]
        return [("> " if low else "") + cell(float(v)) for v, low in zip(table[column], limits)]

    shown = pd.DataFrame(
        {
            "sampler": table["method"].replace({"sbnn": "**sbnn**"}),
            "error of log evidence (nats)": table["rms_error"],
            "seconds, new process": at_least("cold_seconds"),
            "relative to sbnn": at_least("cold_seconds_over_sbnn"),
            "seconds, second run": table["second_seconds"],
            "million evaluations per second": table["evaluations_per_second"] / 1e6,
            "CV of the 48 cells": table["cell_cv"],
            "CV of independent draws": table["cell_cv_ideal"],
            "empty cells": table["empty_cells"],
            "seeds": table["seeds"],
        }
    )
    return (
        "The study's 1-3-1 posterior with 2,000 particles (unless stated otherwise) and two "
        "threads. The error is the root mean square over seeds. The time of a new process includes "
        "imports and compilation. Symmetry divides the posterior into 48 cells of equal mass; *CV* "
        "is the coefficient of variation of the sampled masses, and an even sampler reaches that "
        "of independent draws.\n\n" + markdown(shown)
    )


def claims(table: pd.DataFrame) -> str:
    held = table.pivot(index="claim", columns="seed", values="holds")
    first = table.groupby("claim", sort=False)["measured"].first()
    shown = held.reindex(first.index).map(lambda v: "yes" if v else "no")
    shown.columns = [f"seed {seed}" for seed in shown.columns]
    shown.insert(0, "measured on seed 0", first)
    return (
        "Do the claims of the study hold on other data? `sbnn paper` on several data seeds.\n\n"
        + markdown(shown.reset_index())
    )


def devices(table: pd.DataFrame) -> str:
    rows = []
    for n, part in table.groupby("particles"):
        least = part.groupby("devices")["seconds"].min()
        same = part["digest"].nunique() == 1 and part["log_evidence"].nunique() == 1
        rows.append(
            {
                "particles": f"{n:,}",
                "seconds, one device": least[1],
                "seconds, two devices": least[2],
                "speed-up": least[1] / least[2],
                "identical bits": "yes" if same else "no",
            }
        )
    return (
        "TMCMC on the 1-3-1 posterior with one and with two CPU devices, shortest of "
        f"{table['repeat'].nunique()} runs.\n\n" + markdown(pd.DataFrame(rows))
    )


def executors(table: pd.DataFrame) -> str:
    shown = table.rename(columns={"speed_up": "speed-up", "same_bits": "identical bits"})
    shown["identical bits"] = shown["identical bits"].map({True: "yes", False: "no"})
    return (
        "Overhead and speed-up of `executor=` for a slow and a fast black-box function. The slow "
        "one sleeps, so this is the speed-up of the machinery alone.\n\n" + plain(shown)
    )


def growth(table: pd.DataFrame) -> str:
    shown = table.rename(columns={"exponent_last_two": "exponent of the last two points"})
    return (
        "How cost grows: exponent p of cost ∝ sizeᵖ, for the fit without sampling and for "
        "TMCMC.\n\n" + plain(shown)
    )


def memory(table: pd.DataFrame) -> str:
    names = {"what": "task", "cpu_seconds": "CPU seconds", "peak_gib": "peak memory (GiB)"}
    shown = table[["what", "size", "seconds", "cpu_seconds", "peak_gib"]].rename(columns=names)
    return "Peak memory of fresh processes.\n\n" + plain(shown)


def depth(table: pd.DataFrame) -> str:
    rows = []
    for name, runs in table.groupby("truth", sort=False):
        found = f"{(runs['depth'] == runs['true_depth']).sum()} of {len(runs)}"
        rows.append(
            {
                "function": name,
                "depth": runs["true_depth"].iloc[0],
                "depth found": found,
                "weights kept": f"{runs['kept'].median():.0f} of {runs['parameters'].median():.0f}",
                "RMSE": runs["rmse"].median(),
                "in 95 %": percent(runs["coverage"]),
                "CPU seconds": runs["cpu_seconds"].median(),
            }
        )
    return (
        "Up to three hidden layers of 20, 400 rows; for the last function, of 64, 8,000 rows. RMSE "
        "against the function without noise, whose standard deviation is 0.1. Medians over data "
        "sets. Two layers of tanh neurons only approximate the sine of a sum: where three layers "
        "are found, they have 13 to 35 nats more.\n\n" + markdown(pd.DataFrame(rows))
    )


def last_layer(table: pd.DataFrame) -> str:
    names = {"fit_seconds": "seconds", "cpu_seconds": "CPU seconds", "peak_gib": "memory (GiB)"}
    shown = table[["source", "noise", "rows", *names]].rename(columns=names)
    return (
        "200 features, of which 20 are the truth. Seconds are those of the fit; CPU seconds and "
        "peak memory those of the process, which also makes the data.\n\n" + plain(shown)
    )


def optimiser(table: pd.DataFrame) -> str:
    return (
        "Time of one evaluation of the closed-form evidence with gradient and Hessian, and of a "
        "search from 32 starts.\n\n" + plain(table.rename(columns={"what": "task"}))
    )


def plain(table: pd.DataFrame) -> str:
    """A table as it is."""
    text = markdown(table.head(MOST).rename(columns=lambda name: str(name).replace("_", " ")))
    more = f"\n\nThe first {MOST} of {len(table)} rows." if len(table) > MOST else ""
    return text + more


def purpose(name: str) -> str:
    """The first line of the script's docstring, or ""."""
    path = ROOT / "benchmarks" / f"{name}.py"
    if not path.exists():
        return ""
    described = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return described.splitlines()[0] if described else ""


SECTIONS: dict[str, tuple[str, Callable[[pd.DataFrame], str]]] = {
    "rivals": ("Comparison with other methods", comparison),
    "published": ("Published results", published),
    "speed": ("Speed", speed),
    "noise_uci": ("Noise models on real data", noise_uci),
    "sparsity": ("Sparsity, few rows, extrapolation", sparsity),
    "noise": ("Noise models on simulated data", noise),
    "verified": ("Verification", verified),
    "keys": ("Dependence on the key", keys),
    "exact": ("Exact evidences on real data", exact),
    "exact_draws": ("Predictions from exact draws", exact_draws),
    "bands": ("Predictive bands", bands),
    "claims": ("Claims of the study", claims),
    "samplers": ("Comparison of samplers", samplers),
    "plain_c": ("Transitional MCMC in C", plain_c),
    "moves": ("Sampler moves", moves),
    "nist": ("Certified values", nist),
    "oscillator": ("The law of an oscillator", oscillator),
    "devices": ("Devices", devices),
    "executors": ("Executors", executors),
    "growth": ("Growth of cost", growth),
    "memory": ("Memory", memory),
    "depth": ("Depth found by layer-wise learning", depth),
    "last_layer": ("Last-layer learning of many rows", last_layer),
    "optimiser": ("Optimiser", optimiser),
    "next": ("The next measurement", next_rows),
}


def page(results: Path = RESULTS) -> str:
    """The complete page."""
    found = {path.stem: path for path in sorted(results.glob("*.csv"))}
    found = {name: path for name, path in found.items() if not name.endswith("_runs")}
    order = [n for n in SECTIONS if n in found] + [n for n in found if n not in SECTIONS]
    parts = [INTRODUCTION.rstrip()]
    for name in order:
        table = pd.read_csv(found[name])
        title, write = SECTIONS.get(name, (name.replace("_", " ").capitalize(), plain))
        words = "" if name in SECTIONS else purpose(name)
        source = f"*`benchmarks/results/{name}.csv`"
        if (ROOT / "benchmarks" / f"{name}.py").exists():
            source += f", by `benchmarks/{name}.py`"
        parts.extend(text for text in (f"## {title}", words, write(table), f"{source}*") if text)
    return "\n\n".join(parts) + "\n"


def readme_table(results: Path = RESULTS) -> str:
    """The table of the README; "" without rivals.csv."""
    path, others = results / "rivals.csv", results / "published.csv"
    if not path.exists():
        return ""
    return readme_text(pd.read_csv(path), pd.read_csv(others) if others.exists() else None)


def readme(text: str, results: Path = RESULTS) -> str:
    """The README with an up-to-date table between the two marks."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    table = readme_table(results)
    return f"{before}{START}\n{table}\n{END}{after}" if table else f"{before}{START}\n{END}{after}"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
