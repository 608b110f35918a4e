"""Fit folders: write a `Fit` to files and read it back, with errors that name damaged files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sbnn import __version__
from sbnn._core.atomic import write_text
from sbnn.io import load as load_model
from sbnn.regressor.estimator import SparseBNNRegressor
from sbnn.reports.fit import FORMAT, Fit, Record, dumps
from sbnn.reports.output_paths import DATA, FIT, HELD_OUT, MODEL
from sbnn.reports.predictions import outside_range
from sbnn.reports.validation import HeldOut
from sbnn.tables.header import TableError
from sbnn.tables.reader import near

# Fields of `HeldOut`, and the suffixes of their columns after the name of the target.
HELD_OUT_COLUMNS = {
    "y": "observed",
    "mean": "mean",
    "std": "std",
    "lower": "lower",
    "upper": "upper",
    "pit": "pit",
    "log_density": "log_density",
    "crps": "crps",
}


def save(fitted: Fit, folder: Path) -> None:
    """Write model, record, training table and held-out predictions.

    Parameters
    ----------
    fitted : Fit
    folder : Path
        Exists and is empty; `page.write` adds the report.
    """
    fitted.model.save(folder / MODEL)
    write_text(folder / DATA, fitted.data.to_csv())
    write_text(folder / FIT, dumps(fitted.record.as_json()) + "\n")
    held = fitted.held_out
    columns = {"line": fitted.data.index[held.rows]}
    for name, title in HELD_OUT_COLUMNS.items():
        for k, target in enumerate(fitted.targets):
            columns[f"{target}_{title}"] = getattr(held, name)[:, k]
    write_text(folder / HELD_OUT, pd.DataFrame(columns).to_csv(index=False))


def load(folder: Path) -> Fit:
    """Read the fit that a folder holds.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    Fit

    Raises
    ------
    TableError
        If this is not a fit folder, or one of its files is missing or damaged.
    """
    record = read_record(folder)
    for name in (DATA, HELD_OUT):
        if not (folder / name).is_file():
            raise TableError(f"{folder} has no {name}, which the report needs.")
    try:
        data, held = _tables(folder, record)
    except (ValueError, KeyError) as error:  # pandas' own errors are ValueErrors
        text = str(error).splitlines() or [type(error).__name__]
        raise TableError(f"{folder}: {DATA} or {HELD_OUT} is damaged: {text[0]}") from error
    return Fit(read_model(folder), record.features, record.targets, data, held, record)


def read_record(folder: Path) -> Record:
    """Read the record of a fit.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    Record

    Raises
    ------
    TableError
        If this is not a fit folder, or its fit.json is damaged or from another version.
    """
    if not folder.exists():
        raise TableError(
            f"{folder} does not exist{near(folder, folders=True) or '.'} Give a folder that "
            "'sbnn fit' wrote."
        )
    if not folder.is_dir():
        raise TableError(f"{folder} is not a folder; give one that 'sbnn fit' wrote.")
    if not (folder / FIT).is_file() or not (folder / MODEL).is_file():
        raise TableError(f"{folder} has no {FIT} and {MODEL}; give a folder that 'sbnn fit' wrote.")
    try:
        found = json.loads((folder / FIT).read_text(encoding="utf-8"))
        version = int(found["format"])
        if version == FORMAT:
            missing = {"data", "scores", "options", "run"} - set(found)
            if missing:
                raise TableError(f"{folder / FIT} is damaged: it has no {min(missing)!r}.")
            return Record.from_json(found)
    except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise TableError(f"{folder / FIT} is damaged: {type(error).__name__} {error}.") from error
    if version < FORMAT:
        raise TableError(
            f"{folder} was written by an older sbnn ({found.get('version')}); fit the data again."
        )
    raise TableError(
        f"{folder} was written by sbnn {found.get('version')}; this is {__version__}. Upgrade."
    )


def read_model(folder: Path) -> SparseBNNRegressor:
    """Read the fitted model.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    SparseBNNRegressor

    Raises
    ------
    TableError
        If the file cannot be read or holds something else.
    """
    try:
        model = load_model(folder / MODEL)
    except (OSError, ValueError, KeyError) as error:
        text = str(error).splitlines() or [type(error).__name__]
        raise TableError(f"{folder / MODEL} cannot be read: {text[0]}") from error
    if not isinstance(model, SparseBNNRegressor):
        raise TableError(f"{folder / MODEL} is not a fitted model.")
    return model


def extrapolations(folder: Path, frame: pd.DataFrame, n_rows: int) -> dict[str, np.ndarray]:
    """Rows of each input outside its range in the fit.

    Parameters
    ----------
    folder : Path
    frame : DataFrame
        New rows of the inputs.
    n_rows : int
        Rows of the fit.

    Returns
    -------
    dict of ndarray of bool
        By input; empty if the folder has no training table.
    """
    if not (folder / DATA).is_file():
        return {}
    seen = pd.read_csv(folder / DATA, index_col=0).iloc[:, : frame.shape[1]]
    if len(seen) != n_rows:
        raise TableError(f"{folder / DATA} is damaged: {len(seen)} of {n_rows} rows.")
    seen.columns = frame.columns  # an input may have the same name as the column of line numbers
    return outside_range(seen, frame)


def _tables(folder: Path, record: Record) -> tuple[pd.DataFrame, HeldOut]:
    exact: dict[str, Any] = {"float_precision": "round_trip"}
    data = pd.read_csv(folder / DATA, index_col=0, **exact)
    data.columns = pd.Index([*record.features, *record.targets])
    table = pd.read_csv(folder / HELD_OUT, **exact)
    n = len(record.targets)
    if table.shape[1] != 1 + n * len(HELD_OUT_COLUMNS):
        raise ValueError(f"{table.shape[1]} columns of predictions")
    rows = data.index.get_indexer(table.iloc[:, 0])
    if (rows < 0).any():
        raise ValueError(f"predictions of lines that {DATA} does not have")
    # By position: a target may have any name.
    values = table.iloc[:, 1:].to_numpy(dtype=float).reshape(len(table), -1, n)
    arrays = {name: values[:, k] for k, name in enumerate(HELD_OUT_COLUMNS)}
    held = HeldOut(record.validation, rows, **arrays)
    known = [record.scores[target]["rmse"] for target in record.targets]
    if len(data) != record.data.rows or not np.allclose(held.scores()["rmse"], known):
        raise ValueError("it does not agree with the numbers in fit.json")
    return data, held
