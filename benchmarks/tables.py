"""The measured numbers as Markdown: docs/benchmarks.md, and the table of the README.

    python benchmarks/tables.py

Reads the CSV files in benchmarks/results/. One that is missing leaves its table out; one that has
no description below is shown as it is; *_runs.csv, the single runs behind another, are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
START, END = "<!-- benchmarks: start -->", "<!-- benchmarks: end -->"
MOST = 20  # rows of a table that nobody described
INTRODUCTION = """# Benchmarks

Every number below comes from a CSV file in `benchmarks/results/`, written by the script named
beside it. Times are of the machine that ran them; compare them with one another, not with those of
other machines.
"""
NAMES = {
    "sbnn": "**sbnn**",
    "gp": "Gaussian process, ARD-RBF (scikit-learn)",
    "bayesian_ridge": "Bayesian ridge (scikit-learn)",
    "ard_regression": "ARD regression (scikit-learn)",
    "catboost": "CatBoost",
    "catboost_uncertainty": "CatBoost with uncertainty",
    "ngboost": "NGBoost",
    "deep_ensemble": "deep ensemble",
    "laplace_torch": "Laplace (laplace-torch)",
}


def markdown(table: pd.DataFrame) -> str:
    """Rows of text as a Markdown table; numbers get three digits."""
    lines = [[_cell(str(name)) for name in table.columns], ["---"] * table.shape[1]]
    lines += [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value) -> str:
    if value is None or value != value:
        return "–"
    if isinstance(value, float):
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        return text.replace("-", "−")
    return str(value).replace("|", "\\|")


def _mean_and_error(values: pd.Series, digits: int) -> str:
    values = values.dropna()
    if values.empty:
        return "–"
    text = f"{values.mean():.{digits}f}"
    if len(values) > 1:
        text += f" ± {values.sem():.{digits}f}"
    return text.replace("-", "−")


# ----------------------------------------------------------------------------- one function each
def uci(table: pd.DataFrame) -> str:
    parts = [
        "UCI data sets on the standard splits, all methods on the same rows in one run: mean ± "
        "standard error over the splits. RMSE, CRPS: lower is better; log-likelihood of unseen "
        "rows: higher is better; coverage of 95 % intervals: nearer to 95 % is better. Parameters: "
        "those of the compact network, of those it started with, means over optima and splits. CPU "
        "seconds of one split, one thread per method. Where trees have the lower RMSE the table "
        "shows it."
    ]
    for dataset, part in table.groupby("dataset", sort=False):
        rows = []
        for method, runs in part.groupby("method", sort=False):
            row = {
                "method": NAMES.get(method, method),
                "RMSE": _mean_and_error(runs["rmse"], 3),
                "log-likelihood": _mean_and_error(runs["log_likelihood"], 3),
                "CRPS": _mean_and_error(runs["crps"], 3),
                "coverage": _percent(runs["coverage"]),
                "parameters": _parameters(runs),
                "CPU seconds": f"{runs['cpu'].mean():.1f}",
                "splits": len(runs),
            }
            # A method without densities has no rank among those that have one.
            rank = -runs["log_likelihood"].mean()
            rows.append((rank if rank == rank else float("inf"), row))
        ordered = pd.DataFrame([row for _, row in sorted(rows, key=lambda r: r[0])])
        parts.append(f"### {dataset.capitalize()}\n\n{markdown(ordered)}")
    return "\n\n".join(parts)


def _parameters(runs: pd.DataFrame) -> str:
    if runs["parameters"].dropna().empty:
        return "–"
    return f"{runs['compact_parameters'].mean():.0f} of {runs['parameters'].mean():.0f}"


def _percent(values: pd.Series) -> str:
    return "–" if values.dropna().empty else f"{100 * values.mean():.0f} %"


def verified(table: pd.DataFrame) -> str:
    shown = pd.DataFrame(
        {
            "data seed": table["seed"],
            "verified": table["verified"].map({True: "yes", False: "no"}),
            "estimate − exact": table["gap"].map("{:.2f}".format),
            "log evidence": table["log_evidence"].map("{:.2f}".format),
            "below the best known": table["below_best"].map("{:.2f}".format),
            "neurons pruned": table["irrelevant"],
            "unverified, EM with 20 kernels: off by": table["em20_gap"].map("{:+.0f}".format),
            "unverified, BIC's kernels: off by": table["bic_gap"].map("{:+.0f}".format),
        }
    ).map(lambda v: v.replace("-", "−") if isinstance(v, str) else v)
    return (
        "Is what `sbnn.nsbl` hands over what it says it is? The study's 1-3-1 problem, one data "
        "set per row, in nats. The last two columns are how far the evidence of an unverified "
        "mixture is from the exact one at the α it offers.\n\n" + markdown(shown)
    )


def bands(table: pd.DataFrame) -> str:
    points = [c for c in table.columns if c.startswith("ratio")]
    shown = pd.DataFrame({"method": table["method"]})
    for column in points:
        x = column[len("ratio(") : -1].replace("+0", "0").replace("-", "−")
        shown[f"x = {x}"] = table[column].map("{:.2f}".format)
    shown["seconds"] = table["seconds"].map("{:.0f}".format)
    return (
        "Does NSBL predict like hierarchical Bayes? Width of the 95 % band of the prediction at "
        "five points of the study's problem, as a ratio to a long reference run of hierarchical "
        "Bayes.\n\n" + markdown(shown)
    )


def moves(table: pd.DataFrame) -> str:
    shown = pd.DataFrame(
        {
            "move": table["move"].str.replace("_", " "),
            "seconds": table["seconds"],
            "bias (nats)": table["bias"],
            "spread over keys": table["spread"],
            "error it reports": table["reported_error"],
            "likelihood evaluations": table["evaluations"].astype(float),
        }
    )
    return (
        "Two ways to move particles in TMCMC, on the log evidence of the 1-3-1 problem.\n\n"
        + markdown(shown)
    )


def nist(table: pd.DataFrame) -> str:
    return (
        "Nonlinear regression by `sbnn.laplace` against NIST's certified values: correct digits of "
        "the worst parameter, of its standard deviation and of the noise, from both of NIST's "
        "starts.\n\n" + plain(table)
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
    return markdown(pd.DataFrame(rows))


def samplers(table: pd.DataFrame) -> str:
    def at_least(column: str) -> list[str]:
        limits = table["finished"] < table["seeds"]
        return [("> " if low else "") + _cell(float(v)) for v, low in zip(table[column], limits)]

    shown = pd.DataFrame(
        {
            "sampler": table["method"].replace({"sbnn": "**sbnn**"}),
            "error of log evidence (nats)": table["rms_error"],
            "seconds, new process": at_least("cold_seconds"),
            "times sbnn's": at_least("cold_seconds_over_sbnn"),
            "seconds, second run": table["second_seconds"],
            "million evaluations per second": table["evaluations_per_second"] / 1e6,
            "unevenness of the 48 cells": table["cell_cv"],
            "as good as independent": table["cell_cv_ideal"],
            "empty cells": table["empty_cells"],
            "seeds": table["seeds"],
        }
    )
    return (
        "The study's 1-3-1 posterior, 2,000 particles unless said otherwise, two threads each. "
        "The error is the root mean square over seeds. A new process imports, compiles and "
        "samples. Unevenness is the coefficient of variation of the masses of the 48 cells that "
        "symmetry makes equal.\n\n" + markdown(shown)
    )


def claims(table: pd.DataFrame) -> str:
    held = table.pivot(index="claim", columns="seed", values="holds")
    first = table.groupby("claim", sort=False)["measured"].first()
    shown = held.reindex(first.index).map(lambda v: "yes" if v else "no")
    shown.columns = [f"seed {seed}" for seed in shown.columns]
    shown.insert(0, "measured on seed 0", first)
    return markdown(shown.reset_index())


def plain(table: pd.DataFrame) -> str:
    """Any other table, as it is."""
    text = markdown(table.head(MOST).rename(columns=lambda name: str(name).replace("_", " ")))
    more = f"\n\nThe first {MOST} of {len(table)} rows." if len(table) > MOST else ""
    return text + more


def purpose(name: str) -> str:
    """The first line of the script's own description."""
    path = ROOT / "benchmarks" / f"{name}.py"
    if not path.exists():
        return ""
    described = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return described.splitlines()[0] if described else ""


SECTIONS: dict[str, tuple[str, Callable[[pd.DataFrame], str]]] = {
    "uci": ("Against what people use today", uci),
    "verified": ("Verification", verified),
    "bands": ("Bands", bands),
    "claims": ("Claims of the study", claims),
    "samplers": ("Samplers side by side", samplers),
    "moves": ("Moves of the sampler", moves),
    "nist": ("Certified values", nist),
    "oscillator": ("The law of an oscillator", oscillator),
}
DESCRIBED = (
    "uci",
    "verified",
    "bands",
    "samplers",
    "moves",
    "nist",
)  # these bring words of their own


def page(results: Path = RESULTS) -> str:
    """The whole of docs/benchmarks.md."""
    found = {path.stem: path for path in sorted(results.glob("*.csv"))}
    found = {name: path for name, path in found.items() if not name.endswith("_runs")}
    order = [n for n in SECTIONS if n in found] + [n for n in found if n not in SECTIONS]
    parts = [INTRODUCTION.rstrip()]
    for name in order:
        table = pd.read_csv(found[name])
        title, write = SECTIONS.get(name, (name.replace("_", " ").capitalize(), plain))
        words = "" if name in DESCRIBED else purpose(name)
        source = f"*`benchmarks/results/{name}.csv`"
        if (ROOT / "benchmarks" / f"{name}.py").exists():
            source += f", by `benchmarks/{name}.py`"
        parts.extend(text for text in (f"## {title}", words, write(table), f"{source}*") if text)
    return "\n\n".join(parts) + "\n"


def readme_table(results: Path = RESULTS) -> str:
    """RMSE and log-likelihood of every method on every data set; "" while there is no uci.csv."""
    path = results / "uci.csv"
    if not path.exists():
        return ""
    table = _common(pd.read_csv(path))
    n_splits = table.groupby("dataset")["split"].nunique()
    rows = []
    for method, runs in table.groupby("method", sort=False):
        row = {"RMSE / log-likelihood of unseen rows": NAMES.get(method, method)}
        for dataset in table["dataset"].unique():
            part = runs[runs["dataset"] == dataset]
            score = part["log_likelihood"].mean()
            tail = "–" if score != score else f"{score:.2f}"
            name = f"{dataset} ({n_splits[dataset]} splits)"
            row[name] = "–" if part.empty else f"{part['rmse'].mean():.2f} / {tail}"
        rows.append(row)
    text = markdown(pd.DataFrame(rows)).replace(" -", " −").replace("| −-- ", "| --- ")
    return (
        f"{text}\n\nMeans over the standard splits of UCI data sets, all methods on the same rows: "
        "`python benchmarks/uci.py --data DIR`."
    )


def _common(table: pd.DataFrame) -> pd.DataFrame:
    """The splits that every method has which has any of the data set: means over the same rows."""
    parts = []
    for _, part in table.groupby("dataset", sort=False):
        n_methods = part["method"].nunique()
        counts = part.groupby("split")["method"].nunique()
        parts.append(part[part["split"].isin(counts.index[counts == n_methods])])
    return pd.concat(parts)


def readme(text: str, results: Path = RESULTS) -> str:
    """The README with its table between the two marks brought up to date."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    table = readme_table(results)
    return f"{before}{START}\n{table}\n{END}{after}" if table else f"{before}{START}\n{END}{after}"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
