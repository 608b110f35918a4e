"""Checks on tables: constant, equal and similar columns, categories, row numbers, few rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sbnn._core.text import folded, listed, plural

# 1 − |r| below this is rounding: columns then differ by 1.4e-6 of their spread.
SAME = 1e-12
FEW_ROWS = 30
# A row number grows by one at this share of the steps: rows may be left out. It begins with 0 or 1,
# or is large, as in 88001; numbers in between may be settings, and some large ones are years.
MOST_STEPS, LARGE, YEARS = 0.95, 1000, (1500, 2200)


def repeated_columns(X: pd.DataFrame) -> list[list[int]]:
    """Groups of columns that are identical up to scale and offset: b = s·a + t, with s ≠ 0.

    Standardised columns z are projected on one random direction d. If z = ±z', then
    |d·z| = |d·z'|: columns are sorted by it, and only neighbours are compared in full.
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
    """A column with mean zero and mean square one; None if all values are the same."""
    values = X.iloc[:, k].to_numpy(dtype=float)
    if (values == values[0]).all():
        return None
    values = values / np.abs(values).max()  # squares of large numbers overflow
    values = values - values.mean()
    return values / np.sqrt((values**2).mean())


def about_repeated_columns(X: pd.DataFrame, n_shown: int = 3) -> list[str]:
    """A sentence for each group of inputs that are identical up to scale and offset."""
    groups = repeated_columns(X)
    out = []
    for group in groups[:n_shown]:
        names = [f"“{X.columns[k]}”" for k in group[:8]]
        many = f" and {len(group) - 8} more" if len(group) > 8 else ""
        first = X.iloc[:, group[0]].to_numpy()
        equal = all((X.iloc[:, k].to_numpy() == first).all() for k in group[1:])
        how = "are identical" if equal else "are identical up to scale and offset"
        out.append(
            f"The inputs {', '.join(names)}{many} {how}: the fit cannot tell which of them "
            "matters. Keep only one."
        )
    if len(groups) > n_shown:
        out.append(f"And {plural(len(groups) - n_shown, 'more such group')} of inputs.")
    return out


# Two inputs with |r| above this are nearly the same. Pairs are compared for up to this many inputs.
SIMILAR = 0.99
MAX_COMPARED = 300


def about_similar_columns(X: pd.DataFrame, n_shown: int = 3) -> list[str]:
    """A sentence for each pair of inputs that are nearly, but not exactly, the same."""
    columns = {} if X.shape[1] > MAX_COMPARED or len(X) < 3 else range(X.shape[1])
    found = {k: z for k in columns if (z := _standardised(X, k)) is not None}
    if len(found) < 2:
        return []
    places, z = list(found), np.array(list(found.values()))
    r = z @ z.T / len(X)
    rows, others = np.nonzero(np.triu((np.abs(r) >= SIMILAR) & (1.0 - np.abs(r) >= SAME), 1))
    pairs = sorted(zip(rows, others), key=lambda pair: -abs(r[pair]))
    out = []
    for i, j in pairs[:n_shown]:
        a, b = (f"“{X.columns[places[k]]}”" for k in (i, j))
        value = f"{r[i, j]:.{4 if abs(r[i, j]) >= 0.999 else 3}f}".replace("-", "−")
        out.append(
            f"The inputs {a} and {b} are nearly the same (correlation {value}): the prediction may "
            "use either, so their separate effects mean little."
        )
    if len(pairs) > n_shown:
        out.append(f"And {plural(len(pairs) - n_shown, 'more such pair')} of inputs.")
    return out


def about_row_numbers(X: pd.DataFrame) -> list[str]:
    """A sentence for each input that counts the rows, unless it is the only input."""
    n, out = len(X), []
    for k in range(X.shape[1] if X.shape[1] > 1 and n > 2 else 0):
        values = X.iloc[:, k].to_numpy(dtype=float)
        if _counts(values):
            out.append(
                f"The input “{X.columns[k]}” counts the rows; if it is only a row number, "
                "ignore it with --exclude."
            )
    return out


def _counts(values: np.ndarray) -> bool:
    """Whether numbers grow by one as row numbers do, but for some rows that were left out."""
    steps, first, last = np.diff(values), values[0], values[-1]
    if (first % 1 != 0) or (steps < 1).any() or (steps % 1 != 0).any():
        return False
    begins = first in (0.0, 1.0) or (first >= LARGE and not YEARS[0] <= first <= last <= YEARS[1])
    return bool(begins and np.mean(steps == 1) >= MOST_STEPS)


def about_alike_categories(counts: Mapping[str, Mapping[str, int]], n_shown: int = 3) -> list[str]:
    """Sentences on categories that differ in upper case or spaces only.

    Parameters
    ----------
    counts : mapping
        By column: rows of every category.
    n_shown : int

    Returns
    -------
    list of str

    Examples
    --------
    >>> print(about_alike_categories({"city": {"Oslo": 40, "oslo": 1, "Rome": 9}})[0][:46])
    “city” has “Oslo” (40 rows) and “oslo” (1 row)
    """
    out = []
    for column, of_column in counts.items():
        alike: dict[str, list[str]] = {}
        for category in of_column:
            alike.setdefault(folded(category), []).append(category)
        for group in alike.values():
            if len(group) > 1:
                group.sort(key=lambda category: -of_column[category])
                shown = [f"“{name}” ({plural(of_column[name], 'row')})" for name in group]
                out.append(
                    f"“{column}” has {listed(shown)}, which differ in case or spaces only; they "
                    "count as different categories."
                )
    return out[:n_shown]


def about_constant_columns(X: pd.DataFrame, n_shown: int = 8) -> list[str]:
    """A sentence if some inputs have the same value in every row."""
    constant = [f"“{name}”" for name in X if X[name].nunique(dropna=False) == 1]
    if not constant:
        return []
    return [
        f"The same value in every row: {', '.join(constant[:n_shown])}. What another value would "
        "change cannot be learned; predictions for other values are flagged."
    ]


def about_few_rows(n: int) -> list[str]:
    """A sentence if there are few rows."""
    if n >= FEW_ROWS:
        return []
    return [
        f"Only {n} rows: predictions and scores are rough, and the width of the intervals depends "
        "on chance."
    ]


def about_duplicate_rows(n: int) -> list[str]:
    """A sentence if n rows repeat others, targets included."""
    if not n:
        return []
    return [f"{n} rows are exact duplicates; scores on unseen rows may look too good."]


def about_two_values(name: str, values: np.ndarray) -> list[str]:
    """A sentence if a target has only two values."""
    if len(np.unique(values)) != 2:
        return []
    return [
        f"“{name}” has only two values and looks like a class label. sbnn does regression: "
        "do not read its predictions as probabilities or its intervals as error bars."
    ]
