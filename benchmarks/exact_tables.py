"""Benchmark tables of the exact evidences and of predictions from exact draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
from table_text import markdown

from sbnn._core.text import plural


def exact(table: pd.DataFrame) -> str:
    rows = [
        {
            "network": row["network"],
            "weights kept": row["weights"],
            "Laplace": f"{row['laplace']:.2f}".replace("-", "−"),
            "exact": f"{row['exact']:.2f} ± {row['error']:.2f}".replace("-", "−"),
            "Laplace − exact": f"{row['gap']:.2f}".replace("-", "−"),
            "range over keys": f"{row['range']:.2f}",
            "forward against backward": f"{row['one_sided']:.2f}",
            "k̂": f"{row['k_hat']:.2f}",
            "converged": f"{row['converged']} of {row['keys']}",
            "million gradients": f"{row['gradients'] / 1e6:.2f}",
            "seconds": f"{row['seconds']:.0f}",
            "CPU seconds": f"{row['cpu']:.0f}",
        }
        for _, row in table.iterrows()
    ]
    return (
        "Log evidence of the best optimum of a fit to the training part of split 0 (standardised "
        "data), by Laplace and by warm-start SMC. The noise is constant; networks with a second "
        "output have varying Student-t noise. SMC estimates the evidence three "
        "times: the bridge estimate is the result, and *forward against backward* is the largest "
        "difference between the one-sided ones. Errors, times and k̂ are means over the keys; the "
        "machine had other work.\n\n" + markdown(pd.DataFrame(rows))
    )


VARIANTS = {
    "linearised": "linearised Laplace",
    "draws": "exact draws, same α and weights",
    "nsbl": "`nsbl`: α refined, new weights",
    "evidence": "`nsbl`, weighted by exact evidence",
}


def exact_draws(table: pd.DataFrame) -> str:
    def cell(part: pd.DataFrame, score: str, name: str) -> str:
        values = part[f"{score}_{name}"]
        change = values - part[f"{score}_linearised"]
        text = f"{values.mean():.3f}"
        if name != "linearised":
            text += f" ({change.mean():+.3f}"
            text += f" ± {change.std(ddof=1) / np.sqrt(len(part)):.3f})" if len(part) > 1 else ")"
        return text.replace("-", "−")

    rows = []
    for name, part in table.groupby("table", sort=False):
        for variant, title in VARIANTS.items():
            done = part[part[f"rmse_{variant}"].notna()]
            rows.append(
                {
                    "data": f"{name}, {plural(len(done), 'split')}",
                    "predictions": title,
                    "RMSE": cell(done, "rmse", variant),
                    "log-likelihood": cell(done, "log_density", variant),
                }
            )
    converged = f"{table['converged'].sum():.0f} of {table['optima'].sum():.0f}"
    return (
        "Do exact draws predict better than the linearised mixture? Networks with ten neurons and "
        "Student-t noise, four starts per split, 128 draws of each optimum; in brackets the paired "
        "difference to the first row and its standard error over the splits. The sampler converged "
        f"at {converged} optima; refining α on the exact evidence added "
        f"{table['gain'].mean():.1f} nats on average.\n\n" + markdown(pd.DataFrame(rows))
    )
