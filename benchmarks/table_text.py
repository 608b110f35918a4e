"""Text of the benchmark tables: Markdown, means with errors, percentages."""

from __future__ import annotations

import pandas as pd


def markdown(table: pd.DataFrame) -> str:
    """A Markdown table; floats have three significant digits."""
    lines = [[cell(str(name)) for name in table.columns], ["---"] * table.shape[1]]
    lines += [[cell(value) for value in row] for row in table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(value: object) -> str:
    """One cell; floats have three significant digits."""
    if value is None or value != value:
        return "–"
    if isinstance(value, float):
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        return text.replace("-", "−")
    return str(value).replace("|", "\\|")


def mean_and_error(values: pd.Series, digits: int) -> str:
    """Mean ± standard error."""
    values = values.dropna()
    if values.empty:
        return "–"
    text = f"{values.mean():.{digits}f}"
    if len(values) > 1:
        text += f" ± {values.sem():.{digits}f}"
    return text.replace("-", "−")


def percent(values: pd.Series) -> str:
    """The mean as a percentage."""
    return "–" if values.dropna().empty else f"{100 * values.mean():.0f} %"
