"""Cautions: reasons not to rely on the numbers of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sbnn._core.messages import for_command_line
from sbnn._core.text import duration, number
from sbnn.reports.columns import numeric_inputs
from sbnn.reports.noise import about_fifths, is_noise_known
from sbnn.tables.column_checks import (
    about_constant_columns,
    about_duplicate_rows,
    about_few_rows,
    about_repeated_columns,
    about_row_numbers,
    about_similar_columns,
    about_two_values,
)

if TYPE_CHECKING:
    from sbnn.reports.fit import Fit


def cautions(fitted: Fit, warned: Sequence[str] = ()) -> list[str]:
    """Cautions about the table, the targets, the intervals and the method.

    Parameters
    ----------
    fitted : Fit
    warned : sequence of str
        Warnings raised while fitting and scoring.

    Returns
    -------
    list of str
        Without duplicates.
    """
    run = fitted.record.run
    out = [*_table(fitted), *_targets(fitted), *about_fifths(fitted.record.coverage_by_fifths)]
    if run is not None and run.slow:
        out.append(
            f"The last run of the sampler mixed slowly: {run.reason}. Errors may be larger than "
            "stated."
        )
    # A method both warns and stores the message in its result.
    out += for_command_line(fitted.model.messages_)
    out += [*(run.messages if run is not None else ()), *warned]
    return list(dict.fromkeys(out))


def _table(fitted: Fit) -> list[str]:
    out, data, n = [], fitted.data, len(fitted.data)
    out += about_constant_columns(data[fitted.features])
    numbers = numeric_inputs(fitted)
    out += about_repeated_columns(numbers)
    out += about_similar_columns(numbers)
    out += about_row_numbers(numbers)
    out += about_few_rows(n)
    most = fitted.model.account_.most
    if most >= n * len(fitted.targets):
        out.append(f"A network keeps {most} parameters for {n} rows; it may follow the noise.")
    out += about_duplicate_rows(int(data.duplicated().sum()))
    return out


def _targets(fitted: Fit) -> list[str]:
    out, held = [], fitted.held_out
    noise = np.atleast_1d(fitted.model.noise_std_)
    residual = np.sqrt(((held.y - held.mean) ** 2).mean(axis=0))
    for k, name in enumerate(fitted.targets):
        out += about_two_values(name, fitted.y[:, k])
        if noise[k] > 1.5 * residual[k] > 0:
            out.append(
                f"The noise of “{name}” ({noise_text(fitted, float(noise[k]))}) is far above "
                f"the errors on unseen rows ({number(float(residual[k]), 2)}): the intervals are "
                "too wide."
            )
    return out


def noise_text(fitted: Fit, noise: float) -> str:
    """A noise std: as given, or as inferred with the two digits a few hundred rows support."""
    return number(noise, 3 if is_noise_known(fitted) else 2)


def about_time(stopped: float | None, short: bool) -> list[str]:
    """What to say of a fit that ended after `stopped` seconds, and of scores of shortened fits."""
    out = []
    if stopped is not None:
        after = duration(stopped)
        out.append(f"The fit was stopped after {after}: this is the best result until then.")
    if short:
        out.append(
            "The fits for the scores on unseen rows were cut short: with more time, the scores may "
            "be better, and fewer rows may seem not to fit the rest."
        )
    return out
