"""Kinds of noise, and columns of standard errors and weights: checks before anything is run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sbnn._core.text import plural
from sbnn.cli.terminal import UsageError, note, printable
from sbnn.methods.registry import SAMPLING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

NOISE = ("auto", "constant", "varying", "student_t", "varying_student_t")
# Times the range of the target; beyond, numbers of the fit underflow or overflow.
NOISE_STD_LIMITS = 1e-12, 1e12


def check_noise(noise: str, known: bool) -> str:
    """The kind of noise as the library writes it, or a UsageError.

    Parameters
    ----------
    noise : str
        student-t and STUDENT_T are accepted too.
    known : bool
        Whether --noise-std is given.

    Returns
    -------
    str
    """
    name = noise.strip().lower().replace("-", "_")
    if name not in NOISE:
        raise UsageError(f"--noise must be one of {', '.join(NOISE)}; got {printable(noise)!r}.")
    if known and name not in NOISE[:2]:
        raise UsageError(
            f"--noise {name} cannot be combined with --noise-std: known noise is Gaussian."
        )
    return name


def check_noise_of_methods(noise: str, methods: Collection[str]) -> None:
    """Raise UsageError if one of the methods does not have this kind of noise.

    Parameters
    ----------
    noise : str
        From `check_noise`.
    methods : collection of str
        Methods that will be run.
    """
    if "last_layer" not in methods or noise == "auto":
        return
    from sbnn.regressor.last_layer import KIND_NAMES

    if noise not in KIND_NAMES:
        raise UsageError(
            f"--noise {noise} cannot be combined with --method last_layer; choose "
            f"{' or '.join(KIND_NAMES)}, or another method."
        )


def check_noise_columns(
    columns: Sequence[str] | None, n_targets: int, noise: str, noise_std: str | None
) -> list[str]:
    """Columns of standard errors, one per target, or none.

    Parameters
    ----------
    columns : sequence of str or None
        As given with --noise-column.
    n_targets : int
    noise : str
        From `check_noise`.
    noise_std : str or None
        As given with --noise-std.

    Returns
    -------
    list of str
    """
    if not columns:
        return []
    if noise_std is not None:
        raise UsageError("--noise-column and --noise-std cannot be combined; give one of them.")
    if noise not in NOISE[:2]:
        raise UsageError(
            f"--noise {noise} cannot be combined with --noise-column: known noise is Gaussian."
        )
    if len(columns) != n_targets:
        raise UsageError(
            f"{plural(len(columns), 'column')} given with --noise-column for "
            f"{plural(n_targets, 'target')}; give one for each target, in the same order."
        )
    return list(columns)


def check_errors(
    data: Path, frame: pd.DataFrame, targets: Sequence[str], columns: Sequence[str]
) -> None:
    """Raise TableError for standard errors that are not positive or do not suit their target.

    Parameters
    ----------
    data : Path
        For the message.
    frame : DataFrame
        The index is the line of the file.
    targets, columns : sequence of str
        `columns` has one name per target, or none.
    """
    low, high = NOISE_STD_LIMITS
    check_positive(data, frame, columns)
    for target, name in zip(targets, columns):
        errors = frame[name].to_numpy()
        spread = float(frame[target].max() - frame[target].min())
        wrong = (errors < low * spread) | (errors > high * spread)
        text = f"this standard error does not suit {target!r}, whose values span {spread:.3g}"
        _check_cells(data, frame, name, wrong, text)


def check_positive(data: Path, frame: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise TableError for a standard error that is not above zero."""
    for name in columns:
        wrong = frame[name].to_numpy() <= 0
        _check_cells(data, frame, name, wrong, "a standard error must be above zero")


def use_weights(
    data: Path,
    frame: pd.DataFrame,
    column: str | None,
    methods: Sequence[str],
    errors: Sequence[str] = (),
) -> pd.DataFrame:
    """The rows with a positive weight; those of weight zero are left out, with a note.

    Parameters
    ----------
    data : Path
        For messages.
    frame : DataFrame
    column : str or None
    methods : sequence of str
        Methods that will be run; those that sample need whole numbers.
    errors : sequence of str
        Columns of standard errors.

    Returns
    -------
    DataFrame
    """
    from sbnn.regressor.data.rows import MAX_WEIGHT, MIN_WEIGHT
    from sbnn.tables.reader import MIN_ROWS

    if column is None:
        return frame
    if column in errors:
        raise UsageError(f"{column!r} cannot be both --noise-column and --weight-column.")
    weights = frame[column].to_numpy()
    _check_cells(data, frame, column, weights < 0, "a weight must not be negative")
    most = f"a weight says how often a row was observed, at most {MAX_WEIGHT:g} times"
    _check_cells(data, frame, column, weights > MAX_WEIGHT, most)
    small = f"a weight must be zero or at least {MIN_WEIGHT:g}"
    _check_cells(data, frame, column, (weights > 0) & (weights < MIN_WEIGHT), small)
    if set(SAMPLING).intersection(methods):
        whole = "methods that sample need whole numbers as weights"
        _check_cells(data, frame, column, weights % 1 != 0, whole)
    n_left = int((weights > 0).sum())
    if n_left < MIN_ROWS:
        raise UsageError(
            f"{data}, column {column!r}: {plural(n_left, 'row')} with a positive weight; at least "
            f"{MIN_ROWS} are needed."
        )
    if n_left < len(weights):
        note(f"{plural(len(weights) - n_left, 'row')} of weight zero left out")
    return frame[weights > 0]


def _check_cells(
    data: Path, frame: pd.DataFrame, name: str, wrong: np.ndarray, problem: str
) -> None:
    """Raise TableError that names the first of the wrong cells."""
    from sbnn.tables.cells import raise_for_cells

    rows = wrong.nonzero()[0].tolist()
    if rows:
        text = f"{problem}; got {frame[name].iloc[rows[0]]:g}."
        raise_for_cells(data, {name: rows}, frame.index.tolist(), text)
