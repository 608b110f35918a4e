"""Fit folders: write a `Fit` to files and read it back, with errors that name damaged files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sbnn import __version__
from sbnn._core.files.atomic import write_text
from sbnn._core.files.digests import check_mapping, file_digest, seal_mapping
from sbnn._core.json_text import dumps
from sbnn._core.json_types import check_fields
from sbnn.io import load as load_model
from sbnn.regressor.estimator import SparseBNNRegressor
from sbnn.reports.columns import numbers_of
from sbnn.reports.fit import FORMAT, Fit, Record, per_row
from sbnn.reports.output_paths import DATA, FIT, HELD_OUT, MODEL
from sbnn.reports.predictions import outside_range
from sbnn.reports.validation import HeldOut
from sbnn.tables import dates
from sbnn.tables.header import TableError
from sbnn.tables.reader import near

# The files whose digests fit.json holds under this key. Nothing reads the report again.
CHECKED = (MODEL, DATA, HELD_OUT)
DIGESTS = "files"
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
    "noise_std": "noise_std",
    "function_std": "function_std",
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
    write_text(folder / DATA, _with_percent_signs(fitted).to_csv())
    held = fitted.held_out
    columns = {"line": fitted.data.index[held.rows]}
    for name, title in HELD_OUT_COLUMNS.items():
        for k, target in enumerate(fitted.targets):
            columns[f"{target}_{title}"] = getattr(held, name)[:, k]
    write_text(folder / HELD_OUT, pd.DataFrame(columns).to_csv(index=False))
    digests = {name: file_digest(folder / name) for name in CHECKED}
    # As JSON reads it: NaN has become null.
    record = json.loads(dumps({**fitted.record.as_json(), DIGESTS: digests}))
    write_text(folder / FIT, dumps(seal_mapping(record)) + "\n")


def _with_percent_signs(fitted: Fit) -> pd.DataFrame:
    """The training table; percentages have their sign, so that `sbnn predict` reads them too."""
    data = fitted.data.copy()
    for name in fitted.features:
        if fitted.record.columns.get(name, {}).get("kind") == "percent":
            data[name] = [f"{float(v)!r} %" if v == v else "" for v in data[name]]
    return data


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
        _check_digest(folder, name)
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
    return Record.from_json(_read(folder))


def _read(folder: Path) -> dict[str, Any]:
    """The content of fit.json, checked."""
    if not (folder / FIT).is_file() or not (folder / MODEL).is_file():
        raise TableError(f"{folder} has no {FIT} and {MODEL}; give a folder that 'sbnn fit' wrote.")
    try:
        found = json.loads((folder / FIT).read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it is not an object")
        version = found["format"]
        if version == FORMAT:
            _check_record(found)
            return found
        if not isinstance(version, int):
            raise ValueError(f"its format is {version!r}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        text = f"it has no {text}" if isinstance(error, KeyError) else text
        raise TableError(f"{folder / FIT} is damaged: {text}.") from error
    by = f"sbnn ({found.get('version')}, format {version})"
    if version < FORMAT:
        raise TableError(f"{folder} was written by an older {by}; fit the data again.")
    raise TableError(
        f"{folder} was written by a newer {by}; sbnn {__version__} reads format {FORMAT}. "
        "Upgrade sbnn."
    )


def _check_record(found: dict[str, Any]) -> None:
    """Raise a ValueError unless this is the intact content of a fit.json."""
    missing = {"data", "scores", "options", "run"} - set(found)
    if missing:
        raise ValueError(f"it has no {min(missing)!r}")
    check_mapping(found)
    # A run that was not sampled is stored as an empty object.
    check_fields({**found, "run": found["run"] or None}, Record)
    features, targets = found["features"], found["targets"]
    if not features or sorted(found["scores"]) != sorted(targets) or not targets:
        raise ValueError("its inputs, targets and scores do not match")
    known = {name for name, column in found["columns"].items() if {"kind", "format"} <= set(column)}
    if known != set(features):
        raise ValueError("its inputs and columns do not match")
    Record.from_json(found)


def _check_digest(folder: Path, name: str) -> None:
    """Raise a TableError unless a file is the one that was written with fit.json."""
    if file_digest(folder / name) != _read(folder).get(DIGESTS, {}).get(name):
        raise TableError(
            f"{folder / name} is damaged or was changed: it does not match its checksum in {FIT}. "
            "Use a copy of the folder, or fit the data again."
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
    _check_digest(folder, MODEL)
    record = read_record(folder)
    columns = list(getattr(model, "feature_names_in_", record.features))
    if record.features != columns or len(record.targets) != model.n_outputs_:
        raise TableError(f"{folder / FIT} is damaged: its columns are not those of {MODEL}.")
    return model


def extrapolations(folder: Path, frame: pd.DataFrame, record: Record) -> dict[str, np.ndarray]:
    """Rows of each input outside its range in the fit.

    Parameters
    ----------
    folder : Path
    frame : DataFrame
        New rows of the inputs.
    record : Record
        Of the fit.

    Returns
    -------
    dict of ndarray of bool
        By input that holds numbers or dates; empty if the folder has no training table.
    """
    seen = training_inputs(folder, record)
    if seen is None:
        return {}
    numeric = [name for name in frame if not isinstance(seen[name].dtype, pd.CategoricalDtype)]
    numbers = lambda table: pd.DataFrame({name: numbers_of(table[name]) for name in numeric})
    return outside_range(numbers(seen), numbers(frame))


def training_inputs(folder: Path, record: Record) -> pd.DataFrame | None:
    """The inputs in the training table of a fit, by type; None if the folder has no table."""
    if not (folder / DATA).is_file():
        return None
    _check_digest(folder, DATA)
    seen = _read_table(folder / DATA)
    if len(seen) != record.data.rows:
        raise TableError(f"{folder / DATA} is damaged: {len(seen)} of {record.data.rows} rows.")
    # By position: an input may have the same name as the column of line numbers.
    return _typed(seen.iloc[:, : len(record.features)], record.columns, record.features)


def _read_table(path: Path) -> pd.DataFrame:
    """The training table as text: a category may be called NA."""
    text = pd.read_csv(path, dtype=str, keep_default_na=False)
    return text.set_index(text.columns[0]).set_axis(text.iloc[:, 0].astype(int), axis=0)


def _typed(
    text: pd.DataFrame, columns: dict[str, dict[str, Any]], names: Sequence[str]
) -> pd.DataFrame:
    """The columns of the training table by their types."""
    if len(names) != text.shape[1]:
        raise ValueError(f"{text.shape[1]} columns instead of {len(names)}")
    out: dict[str, Any] = {}
    for k, name in enumerate(names):
        cells, kind = text.iloc[:, k], columns.get(name, {}).get("kind", "number")
        if kind == "category":
            out[name] = pd.Categorical(cells.where(cells != "", None))
        elif kind == "date":
            out[name] = dates.parse(cells.tolist(), dates.ISO)
        elif kind == "time":
            out[name] = dates.times_of(dates.parse_times(cells.tolist()))
        else:
            cells = cells.str.removesuffix(" %")
            # NumPy calls float() on each: correctly rounded.
            out[name] = cells.where(cells != "", "nan").to_numpy(dtype=object).astype(float)
    return pd.DataFrame(out, index=text.index.rename("line"))


def _tables(folder: Path, record: Record) -> tuple[pd.DataFrame, HeldOut]:
    exact: dict[str, Any] = {"float_precision": "round_trip"}
    others = dict.fromkeys([*record.noise_columns, *filter(None, [record.weight_column])])
    names = [*record.features, *record.targets, *others]
    data = _typed(_read_table(folder / DATA), record.columns, names)
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
    weights = per_row(data, (), record.weight_column).at(rows).weights
    held = HeldOut(record.validation, rows, **arrays, weights=weights)
    scores = held.scores()
    known = [record.scores[target]["rmse"] for target in record.targets]
    same = all(record.scores[target].keys() == scores.keys() for target in record.targets)
    if len(data) != record.data.rows or not same or not np.allclose(scores["rmse"], known):
        raise ValueError("it does not agree with the numbers in fit.json")
    return data, held
