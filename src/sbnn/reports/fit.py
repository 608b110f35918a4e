"""Fit folders: a model, what it was fitted to, how it scores, and its report; whole or absent."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from sbnn import __version__
from sbnn._core.atomic import write_text
from sbnn._core.messages import SamplingFinished, SearchEnded, for_command_line
from sbnn._core.text import duration
from sbnn.io import load as load_model
from sbnn.methods.registry import SAMPLING
from sbnn.methods.result import Result
from sbnn.regressor.estimator import SparseBNNRegressor
from sbnn.reports.output_paths import DATA, FIT, HELD_OUT, MODEL
from sbnn.reports.validation import HeldOut, for_users, held_out
from sbnn.tables.header import TableError
from sbnn.tables.reader import near

# Fields of `HeldOut`, and what their columns are called after the target's name.
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
# Columns of the tables of a run that are log evidences, but for a constant of the units.
LOG_EVIDENCES = ("log_evidence", "objective", "estimate", "surrogate")
FORMAT = 5
Step = Callable[[str], None]
Folds = Callable[[int, int], None]


@dataclass
class Fit:
    """A fitted model with everything its report shows."""

    model: SparseBNNRegressor
    features: list[str]
    targets: list[str]
    data: pd.DataFrame  # features, then targets; the index is the line of the file
    held_out: HeldOut
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def x(self) -> pd.DataFrame:
        return self.data[self.features]

    @property
    def y(self) -> np.ndarray:
        """Shape (n, n_outputs)."""
        return self.data[self.targets].to_numpy()

    @property
    def scores(self) -> dict[str, list[float]]:
        return self.held_out.scores()


def fit(
    data: pd.DataFrame,
    features: Sequence[str],
    targets: Sequence[str],
    options: dict[str, Any],
    source: str | Path | None = None,
    command: str = "",
    step: Step = lambda text: None,
    on_fold: Folds | None = None,
    on_stage: Callable[[Any], None] | None = None,
) -> Fit:
    """Fit a model to a table and score it on rows it did not see."""
    x = data[list(features)]
    y = data[list(targets)].to_numpy()
    flat = y[:, 0] if len(targets) == 1 else y
    model = SparseBNNRegressor(**options)
    if on_stage is not None and options["method"] in SAMPLING:
        model.set_params(method_options={"progress": on_stage})
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(x, flat)
        model.set_params(method_options=None)
        seconds = time.perf_counter() - started
    step(f"fitted by {model.method_used_} in {duration(seconds)}")
    with warnings.catch_warnings(record=True) as caught_again:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)  # of refits: the scores show it
        scored = held_out(
            model,
            lambda: SparseBNNRegressor(**options),
            x,
            y,
            options["random_state"] or 0,
            on_fold,
        )
    took = {"seconds": seconds, "seconds_unseen": time.perf_counter() - started - seconds}
    messages = for_users([*caught, *caught_again])
    out = Fit(model, list(features), list(targets), data, scored)
    out.record = _record(out, options, source, command, took, messages)
    return out


def _record(fitted: Fit, options, source, command, took, messages) -> dict[str, Any]:
    model = fitted.model
    run: dict[str, Any] = {}
    result = getattr(model, "result_", None)
    if result is not None:
        # The method saw standardised targets; log evidences are told for those of the table.
        units = model.log_evidence_ - result.log_evidence
        run = {
            "verified": result.verified,
            "evidence_gap": result.evidence_gap,
            "log_evidence_error": result.log_evidence_error,
            "converged": bool(result.converged),
            "reason": result.reason.for_command_line(),
            "slow": _slow(result),
            "n_evaluations": int(result.n_evaluations),
            "n_rejected": int(result.n_rejected),
            "messages": for_command_line(result.messages),
            "stages": _records(result.history.get("stages")),
            "newton": _records(result.history.get("newton"), units),
            "refine": _records(result.history.get("refine"), units),
            "optima": _records(result.optima, units),
        }
    return {
        "format": FORMAT,
        "version": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "created": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "command": command,
        "data": {
            "file": None if source is None else Path(source).name,
            "sha256": None if source is None else _digest(Path(source)),
            "rows": len(fitted.data),
        },
        "features": fitted.features,
        "targets": fitted.targets,
        "options": _plain(options),
        "method": model.method_used_,
        "method_reason": model.method_reason_.for_command_line(),
        **took,
        "log_evidence": model.log_evidence_,
        "noise_std": np.atleast_1d(model.noise_std_).tolist(),
        "feature_relevance": dict(zip(fitted.features, model.feature_relevance_.tolist())),
        "n_parameters": model.n_parameters_,
        "n_parameters_kept": model.n_parameters_kept_,
        "validation": fitted.held_out.how,
        "scores": {
            target: {name: values[k] for name, values in fitted.scores.items()}
            for k, target in enumerate(fitted.targets)
        },
        "warnings": messages,
        "run": run,
    }


def _slow(result: Result) -> bool:
    """Whether the last run of the sampler mixed slowly and no message says so."""
    ended = result.reason.exact if isinstance(result.reason, SearchEnded) else result.reason
    said = any(getattr(message, "outcome", None) == ended for message in result.messages)
    return not isinstance(ended, SamplingFinished) and not said


def _records(table: pd.DataFrame | None, units: float = 0.0) -> list[dict[str, Any]]:
    """Rows of a table, log evidences shifted by `units`."""
    if table is None:
        return []
    shifted = {name: table[name] + units for name in LOG_EVIDENCES if name in table}
    return _plain(table.assign(**shifted).to_dict("records"))


def _plain(value: Any) -> Any:
    """Values as JSON knows them; NaN and ±inf become None."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def dumps(value: Any, indent: int | None = 1) -> str:
    """Strict JSON: no NaN."""
    return json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _digest(path: Path) -> str | None:
    if not path.is_file():  # a pipe cannot be read again
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ------------------------------------------------------------------------------ write and read
def save(fitted: Fit, folder: Path) -> None:
    """Model, record, training table and held-out predictions; the report comes from `report`."""
    fitted.model.save(folder / MODEL)
    write_text(folder / DATA, fitted.data.to_csv())
    write_text(folder / FIT, dumps(fitted.record) + "\n")
    held = fitted.held_out
    columns = {"line": fitted.data.index[held.rows]}
    for name, title in HELD_OUT_COLUMNS.items():
        for k, target in enumerate(fitted.targets):
            columns[f"{target}_{title}"] = getattr(held, name)[:, k]
    write_text(folder / HELD_OUT, pd.DataFrame(columns).to_csv(index=False))


def record(folder: Path) -> dict[str, Any]:
    """What was fitted to what; a TableError when this is no fit folder."""
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
        _ = found["features"], found["targets"], found["validation"]
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise TableError(f"{folder / FIT} is damaged: {type(error).__name__} {error}.") from error
    if version < FORMAT:
        raise TableError(
            f"{folder} was written by an older sbnn ({found.get('version')}); fit the data again."
        )
    if version > FORMAT:
        raise TableError(
            f"{folder} was written by sbnn {found.get('version')}; this is {__version__}. Upgrade."
        )
    missing = {"data", "scores", "options", "run"} - set(found)
    if missing:
        raise TableError(f"{folder / FIT} is damaged: it has no {min(missing)!r}.")
    return found


def beyond_training(folder: Path, frame: pd.DataFrame, n_rows: int) -> dict[str, np.ndarray]:
    """Inputs with rows outside the range they had in the fit to n_rows rows, and which rows."""
    if not (folder / DATA).is_file():
        return {}
    seen = pd.read_csv(folder / DATA, index_col=0).iloc[:, : frame.shape[1]]
    if len(seen) != n_rows:
        raise TableError(f"{folder / DATA} is damaged: {len(seen)} of {n_rows} rows.")
    seen.columns = frame.columns  # an input may be called as the column of lines is
    outside = (frame < seen.min()) | (frame > seen.max())
    return {str(name): outside[name].to_numpy() for name in outside if outside[name].any()}


def by_row(outside: dict[str, np.ndarray], n: int) -> list[list[str]]:
    """For each of n rows the inputs outside the range of the fit."""
    return [[name for name, rows in outside.items() if rows[k]] for k in range(n)]


def with_columns(
    table: pd.DataFrame,
    predicted: dict[str, dict[str, list[float]]],
    outside: dict[str, np.ndarray],
) -> pd.DataFrame:
    """The table as it came, then the predictions, then the inputs outside the range of the fit.

    Predictions are rounded to a thousandth of their standard deviation: other digits say nothing.
    Names that the table has already are left to it: y_mean becomes y_predicted_mean.
    """
    taken: set[str] = {name.strip() for name in table.columns}
    added: dict[str, list] = {}
    for target, parts in predicted.items():
        parts = _to_thousandths(parts)
        start = target
        while any(f"{start}_{part}" in taken for part in parts):
            start += "_predicted"
        added |= {f"{start}_{part}": values for part, values in parts.items()}
        taken |= set(added)
    last = "extrapolates"
    while last in taken:
        last += "_predicted"
    added[last] = ["; ".join(names) for names in by_row(outside, len(table))]
    return pd.concat([table, pd.DataFrame(added, index=table.index)], axis=1)


def _to_thousandths(parts: dict[str, list[float]]) -> dict[str, list[float]]:
    """Each row rounded to the decimal below a thousandth of its standard deviation."""
    decimals = [3 - math.floor(math.log10(std)) if std > 0 else 15 for std in parts["std"]]
    return {name: [round(v, d) for v, d in zip(vs, decimals)] for name, vs in parts.items()}


def model_of(folder: Path) -> SparseBNNRegressor:
    try:
        model = load_model(folder / MODEL)
    except (OSError, ValueError, KeyError) as error:
        text = str(error).splitlines() or [type(error).__name__]
        raise TableError(f"{folder / MODEL} cannot be read: {text[0]}") from error
    if not isinstance(model, SparseBNNRegressor):
        raise TableError(f"{folder / MODEL} is not a fitted model.")
    return model


def load(folder: Path) -> Fit:
    """The fit that a folder holds."""
    found = record(folder)
    for name in (DATA, HELD_OUT):
        if not (folder / name).is_file():
            raise TableError(f"{folder} has no {name}, which the report needs.")
    try:
        data, held = _tables(folder, found)
    except (ValueError, KeyError) as error:  # pandas' own errors are ValueErrors
        text = str(error).splitlines() or [type(error).__name__]
        raise TableError(f"{folder}: {DATA} or {HELD_OUT} is damaged: {text[0]}") from error
    return Fit(model_of(folder), found["features"], found["targets"], data, held, found)


def _tables(folder: Path, found: dict[str, Any]) -> tuple[pd.DataFrame, HeldOut]:
    exact: dict[str, Any] = {"float_precision": "round_trip"}
    data = pd.read_csv(folder / DATA, index_col=0, **exact)
    data.columns = pd.Index([*found["features"], *found["targets"]])
    table = pd.read_csv(folder / HELD_OUT, **exact)
    n = len(found["targets"])
    if table.shape[1] != 1 + n * len(HELD_OUT_COLUMNS):
        raise ValueError(f"{table.shape[1]} columns of predictions")
    rows = data.index.get_indexer(table.iloc[:, 0])
    if (rows < 0).any():
        raise ValueError(f"predictions of lines that {DATA} does not have")
    # By their places: a target may be called as it likes.
    values = table.iloc[:, 1:].to_numpy(dtype=float).reshape(len(table), -1, n)
    arrays = {name: values[:, k] for k, name in enumerate(HELD_OUT_COLUMNS)}
    held = HeldOut(found["validation"], rows, **arrays)
    told = [found["scores"][target]["rmse"] for target in found["targets"]]
    if len(data) != found["data"]["rows"] or not np.allclose(held.scores()["rmse"], told):
        raise ValueError("it does not agree with the numbers in fit.json")
    return data, held
