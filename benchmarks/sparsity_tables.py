"""Benchmark tables of sparsity, few rows and extrapolation."""

from __future__ import annotations

import pandas as pd
from table_text import markdown, mean_and_error, percent


def sparsity(table: pd.DataFrame) -> str:
    return "\n\n".join(
        part(table[table["task"] == name])
        for name, part in PARTS.items()
        if (table["task"] == name).any()
    )


def _friedman(runs: pd.DataFrame) -> str:
    rows = [
        {
            "rows": int(n),
            "noise inputs without influence": percent(1 - mine["noise_inputs"] / 5),
            "true inputs kept": percent(1 - mine["missed"] / 5),
            "RMSE against the truth": mean_and_error(mine["rmse"], 3),
            "weights kept per network": f"{mine['kept'].mean():.0f}",
            "seeds": len(mine),
        }
        for n, mine in runs.groupby("rows")
    ]
    return (
        "Friedman's first function with five inputs that matter and five that do not, noise 1:\n\n"
        + markdown(pd.DataFrame(rows))
    )


def _noise(runs: pd.DataFrame) -> str:
    constant, gain = int((runs["kept"] == 0).sum()), f"{runs['gain'].mean():+.3f}"
    return (
        f"Pure noise, 40 rows and five inputs: the prediction is a constant in {constant} of "
        f"{len(runs)} repeats. The log density of a new row minus that of a normal distribution "
        f"with the mean and standard deviation of the rows is {gain.replace('-', '−')} nat."
    )


def _linear(runs: pd.DataFrame) -> str:
    rows = [
        {
            "rows": int(n), "data": case,
            "largest error / spread": mean_and_error(mine["error"], 4),
            "bent by, / spread": mean_and_error(mine["bent"], 4),
            "weights kept per network": f"{mine['kept'].mean():.1f}",
            "converged": percent(mine["converged"].astype(float)),
            "CPU seconds": f"{mine['cpu'].mean():.1f}", "seeds": len(mine),
        }
        for (n, case), mine in runs.groupby(["rows", "case"])
    ]  # fmt: skip
    return "Linear effects of three inputs:\n\n" + markdown(pd.DataFrame(rows))


def _few(runs: pd.DataFrame) -> str:
    rows = [
        {
            "rows": int(n), "function": case, "coverage": percent(mine["coverage"]),
            "log density": mean_and_error(mine["log_density"], 2),
            "lowest": f"{mine['log_density'].min():.2f}".replace("-", "−"), "seeds": len(mine),
        }
        for (n, case), mine in runs.groupby(["rows", "case"], sort=False)
    ]  # fmt: skip
    return (
        "Few rows: coverage of 95 % intervals and mean log density of new rows, for sin 3x, "
        "2x² − 1 and tanh 4x with noise 0.2:\n\n" + markdown(pd.DataFrame(rows))
    )


def _far(runs: pd.DataFrame) -> str:
    rows = [
        {
            "function": case, "inside the 95 % interval": percent(mine["coverage"]),
            "fits whose band narrows": int(mine["narrows"].astype(bool).sum()), "seeds": len(mine),
        }
        for case, mine in runs.groupby("case", sort=False)
    ]  # fmt: skip
    return (
        "Beyond the data: functions seen on [−1, 1] (40 rows, noise 0.1), predicted at 1.5, 2, 3 "
        "and 10 times that range on both sides:\n\n" + markdown(pd.DataFrame(rows))
    )


def _sharp(runs: pd.DataFrame) -> str:
    rows = [
        {
            "method": method, "RMSE": mean_and_error(runs[f"rmse{end}"], 3),
            "log-likelihood": mean_and_error(runs[f"log_likelihood{end}"], 3),
            "coverage": percent(runs[f"coverage{end}"]), "seeds": len(runs),
        }
        for method, end in (("**sbnn**", ""), ("Gaussian process, ARD-RBF (scikit-learn)", "_gp"))
    ]  # fmt: skip
    better = int((runs["log_likelihood"] > runs["log_likelihood_gp"]).sum())
    return (
        "A pendulum that may hit a wall (nine inputs, 567 rows, noise of one per cent), beside a "
        f"Gaussian process, whose log-likelihood is lower on {better} of {len(runs)} data sets:\n\n"
        + markdown(pd.DataFrame(rows))
    )


def _tables(runs: pd.DataFrame) -> str:
    rows = [
        {
            "table": case, "parameters removed": percent(mine["removed"]),
            "kept per network": f"{mine['kept'].mean():.0f}",
            **{
                f"{kind}: RMSE, log density": f"{mine[f'rmse_{kind}'].mean():.3f}, "
                + f"{mine[f'density_{kind}'].mean():.3f}".replace("-", "−")
                for kind in ("dense", "sparse", "single")
            },
            "splits": len(mine),
        }
        for case, mine in runs.groupby("case", sort=False)
    ]  # fmt: skip
    return (
        "Tables: the same networks and kind of noise without pruning (dense), the sparse mixture, "
        "and its best single network:\n\n" + markdown(pd.DataFrame(rows))
    )


PARTS = {
    "friedman": _friedman,
    "noise": _noise,
    "linear": _linear,
    "few": _few,
    "far": _far,
    "sharp": _sharp,
    "tables": _tables,
}
