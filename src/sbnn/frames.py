"""Tables handed over from Python: what is no number is named by its column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def check_numbers(X: Any) -> None:
    """Refuse a DataFrame with columns that are no numbers, all of them named; pass all else."""
    if not isinstance(X, pd.DataFrame):
        return
    wrong = [k for k in range(X.shape[1]) if not _is_numeric(X.iloc[:, k])]
    if not wrong:
        return
    shown = [f"{X.columns[k]!r} (such as {str(X.iloc[0, k])[:20]!r})" for k in wrong[:8]]
    more = f" and {len(wrong) - 8} more" if len(wrong) > 8 else ""
    raise ValueError(
        f"Columns of X that are not numbers: {', '.join(shown)}{more}; leave them out, or turn "
        "them into numbers, for example with pandas.get_dummies."
    )


def _is_numeric(column: pd.Series) -> bool:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return True
    if len(column) == 0 or column.dtype.kind in "mM":
        return len(column) == 0
    try:
        np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return False
    return True
