"""How accurate predictions of unseen rows are, in words, and which rows dominate the errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sbnn._core.text import explained, number, plural, with_error
from sbnn.reports.columns import column_of
from sbnn.reports.noise import outlying
from sbnn.reports.validation import HeldOut, standard_errors

if TYPE_CHECKING:
    from sbnn.reports.fit import Fit

# Outliers with more than this share of the squared errors say more about themselves than about
# the model; the scores without them come first.
DOMINANT = 0.5
# Missing cells are named if they enlarge the typical error of all rows by this factor.
LARGER = 1.2


def about_accuracy(fitted: Fit, k: int) -> tuple[str, str]:
    """Tone and text of the sentence on the accuracy for one target.

    Parameters
    ----------
    fitted : Fit
    k : int
        Which target.

    Returns
    -------
    tuple of str
    """
    held, name = fitted.held_out, fitted.targets[k]
    if np.ptp(held.y[:, k]) == 0:
        return "plain", f"“{name}” is constant; there is nothing to explain."
    far = outlying(fitted, k)[held.rows]
    rest = held.at(~far)
    if not far.any() or np.ptp(rest.y[:, k]) == 0:
        tone, text = _judged(held, name, k)
        return tone, f"{text}.{_absent(fitted, name, far)}"
    squares = _weights(held) * (held.y[:, k] - held.mean[:, k]) ** 2
    share, n = float(squares[far].sum() / squares.sum()), int(far.sum())
    if share <= DOMINANT:
        tone, text = _judged(held, name, k)
        rows = "the row that does" if n == 1 else "the rows that do"
        text += f". Without {rows} not fit the rest, it explains {explained(_r2(rest, k))} of the "
        return tone, f"{text}variance, and the typical error is {number(_error(rest, k), 2)}."
    tone, text = _judged(rest, name, k)
    apart, those, them = (
        ("one row that does", "That row makes", "it")
        if n == 1
        else (f"{plural(n, 'row')} that do", "Those rows make", "them")
    )
    most = "more than 99 %" if share > 0.99 else f"{100 * share:.0f} %"
    return tone, (
        f"Apart from {apart} not fit the rest, {text[0].lower()}{text[1:]}. {those} up {most} of "
        f"the squared errors; with {them}, the typical error is {number(_error(held, k), 2)}."
    )


def about_gaps(fitted: Fit, k: int) -> str:
    """A sentence on the errors in rows with missing cells, if they are why errors are large.

    Parameters
    ----------
    fitted : Fit
    k : int
        Which target.

    Returns
    -------
    str
        Begins with a space; "" if there is nothing to say.
    """
    held, used = fitted.held_out, fitted.model.feature_relevance_ > 0
    names = [
        name
        for name, counts in zip(fitted.features, used)
        if counts and column_of(fitted, name).n_missing
    ]
    if not names:
        return ""
    gaps = fitted.x[names].isna().any(axis=1).to_numpy()[held.rows]
    near = ~outlying(fitted, k)[held.rows]
    complete, incomplete = near & ~gaps, near & gaps
    if not complete.any() or not incomplete.any():
        return ""
    errors = [_error(held.at(rows), k) for rows in (near, incomplete, complete)]
    if errors[0] < LARGER * errors[2]:
        return ""
    n = int(incomplete.sum())
    return (
        f" Where cells are missing, the typical error is larger: {number(errors[1], 2)} in the "
        f"{'row' if n == 1 else plural(n, 'row')} with gaps in inputs that the model uses, "
        f"{number(errors[2], 2)} in the others"
        f"{'' if near.all() else ', without those that do not fit the rest'}."
    )


def _absent(fitted: Fit, name: str, scored: np.ndarray) -> str:
    """A sentence if rows do not fit the rest and none of them is among the scored rows."""
    n = sum(row["target"] == name for row in fitted.record.outliers)
    if not n or scored.any():
        return ""
    if n == 1:
        return " The row that does not fit the rest is not among these rows."
    return f" The {n:,} rows that do not fit the rest are not among these rows."


def _judged(held: HeldOut, name: str, k: int) -> tuple[str, str]:
    """Tone, and the sentence about some rows, without its full stop."""
    r2, shown = _r2(held, k), with_error(_error(held, k), standard_errors(held)["rmse"][k])
    error = f"its typical error is {shown}, where “{name}” itself varies by "
    error += number(_spread(held, k))
    if r2 < 0.05:
        how = "worse" if r2 < -0.1 else "hardly better"
        text = f"In rows it did not see, the model predicts “{name}” {how} than the mean does: "
        return "bad", text + error
    degree = "nearly all" if r2 > 0.95 else "most" if r2 > 0.7 else "part" if r2 > 0.3 else "little"
    text = (
        f"The model explains {degree} of “{name}” in rows it did not see ({explained(r2)} of the "
    )
    return "good" if r2 > 0.7 else "plain", f"{text}variance): {error}"


def _weights(held: HeldOut) -> np.ndarray:
    return np.ones(len(held.rows)) if held.weights is None else held.weights


def _error(held: HeldOut, k: int) -> float:
    """Root mean square of the errors."""
    square = (held.y[:, k] - held.mean[:, k]) ** 2
    return float(np.sqrt(np.average(square, weights=held.weights)))


def _spread(held: HeldOut, k: int) -> float:
    """Standard deviation of a target, with the weights of the rows."""
    y, weights = held.y[:, k], held.weights
    return float(np.sqrt(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)))


def _r2(held: HeldOut, k: int) -> float:
    return 1.0 - (_error(held, k) / _spread(held, k)) ** 2
