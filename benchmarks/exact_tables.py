"""Benchmark table of the exact evidences."""

from __future__ import annotations

import pandas as pd
from table_text import markdown


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
        "Log evidence of the best optimum of a fit with constant noise to the training part of "
        "split 0 (standardised data), by Laplace and by warm-start SMC. SMC estimates it three "
        "times: the bridge estimate is the result, and *forward against backward* is the largest "
        "difference between the one-sided ones. Errors, times and k̂ are means over the keys.\n\n"
        + markdown(pd.DataFrame(rows))
    )
