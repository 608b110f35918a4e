"""Tables handed over from Python: what is no number is named by its column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sbnn.formats import plural


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


# 1 − |r| below this is rounding: columns then differ by 1.4e-6 of their spread.
SAME = 1e-12


def repeated_columns(X: pd.DataFrame) -> list[list[int]]:
    """Places of columns that say the same: b = s·a + t in every row, for some s ≠ 0 and t.

    Standardised columns z are projected on one random direction d. Where z and ±z' are the same,
    so are |d·z| and |d·z'|: columns are sorted by it, and only neighbours are compared in full.
    """
    n, direction = len(X), np.random.default_rng(0).normal(size=len(X))
    keys = {}
    for k in range(X.shape[1] if n > 2 else 0):
        z = _standardised(X, k)
        if z is not None:
            keys[k] = abs(float(z @ direction))
    # d·(z − z') is normal with variance |z − z'|² = 2 n (1 − |r|): six deviations, and rounding.
    window = 6.0 * np.sqrt(2.0 * n * SAME) + 1e-9
    groups: list[list[int]] = []
    for k in sorted(keys, key=lambda k: keys[k]):
        for group in reversed(groups):
            if keys[k] - keys[group[0]] > window:
                groups.append([k])
                break
            z, other = _standardised(X, k), _standardised(X, group[0])
            if z is not None and other is not None and 1.0 - abs(z @ other) / n < SAME:
                group.append(k)
                break
        else:
            groups.append([k])
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _standardised(X: pd.DataFrame, k: int) -> np.ndarray | None:
    """A column with mean zero and mean square one; None where all values are the same."""
    values = X.iloc[:, k].to_numpy(dtype=float)
    if (values == values[0]).all():
        return None
    values = values / np.abs(values).max()  # squares of large numbers are infinite
    values = values - values.mean()
    return values / np.sqrt((values**2).mean())


def about_repeated_columns(X: pd.DataFrame, n_shown: int = 3) -> list[str]:
    """A sentence for each group of inputs that say the same."""
    groups = repeated_columns(X)
    out = []
    for group in groups[:n_shown]:
        names = [f"“{X.columns[k]}”" for k in group[:8]]
        many = f" and {len(group) - 8} more" if len(group) > 8 else ""
        first = X.iloc[:, group[0]].to_numpy()
        equal = all((X.iloc[:, k].to_numpy() == first).all() for k in group[1:])
        how = "have the same values in every row" if equal else "are the same but for unit and zero"
        out.append(
            f"The inputs {', '.join(names)}{many} {how}: the fit cannot tell which of them counts. "
            "Leave out all but one."
        )
    if len(groups) > n_shown:
        out.append(f"So it is with {plural(len(groups) - n_shown, 'more group')} of inputs.")
    return out
