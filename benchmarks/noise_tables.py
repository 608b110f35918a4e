"""Benchmark tables of the noise models."""

from __future__ import annotations

import pandas as pd
from table_text import markdown, mean_and_error, percent

NOISE_AIMS = {
    **{("varying", f"coverage_{k}"): f"coverage of 95 % intervals, fifth {k}" for k in range(1, 6)},
    ("varying", "sigma_error"): "median relative error of σ(x)",
    ("outliers", "ratio"): "RMSE relative to a fit without the outliers",
    ("outliers", "named"): "outliers named, of three",
    ("constant", "gain"): 'log density of a new row with "auto" minus that with "constant"',
}


def noise_uci(table: pd.DataFrame) -> str:
    rows = []
    for (dataset, noise), runs in table.groupby(["dataset", "noise"], sort=False):
        rows.append(
            {
                "data": dataset,
                "noise": f'"{noise}"',
                "RMSE": mean_and_error(runs["rmse"], 3),
                "log-likelihood": mean_and_error(runs["log_likelihood"], 3),
                "coverage": percent(runs["coverage"]),
                "CPU seconds": f"{runs['cpu'].mean():.1f}",
                "chosen": _counts(runs["used"]),
                "splits": len(runs),
            }
        )
    return (
        'The default `noise="auto"` and `noise="constant"` on the standard splits of the UCI data '
        "sets: means ± standard errors over the splits. The coverage of 95 % intervals should be "
        "near 95 %. The rule for how long networks are trained was chosen on other tables, but "
        "the first splits of these four were looked at while it was developed.\n\n"
        + markdown(pd.DataFrame(rows))
    )


def noise(table: pd.DataFrame) -> str:
    rows = []
    for (task, column), aim in NOISE_AIMS.items():
        runs = table[table["task"] == task]
        if len(runs) and column in runs:
            values = runs[column]
            rows.append(
                {
                    "data": task, "measured": aim, "mean": values.mean(),
                    "smallest": values.min(), "median": values.median(),
                    "largest": values.max(), "seeds": len(runs),
                }
            )  # fmt: skip
    return (
        "Simulated data with varying noise (y = sin x + (0.05 + 0.25 x) noise, 200 rows), three "
        "outliers (y = a² − b + 0.2 noise, 150 rows, three shifted by 50) and constant noise "
        "(y = sin x + 0.3 noise, 200 rows).\n\n" + markdown(pd.DataFrame(rows))
    )


def _counts(values: pd.Series) -> str:
    """student_t 12, constant 8."""
    return ", ".join(f"{name} {n}" for name, n in values.value_counts().items())
