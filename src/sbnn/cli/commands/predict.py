"""`sbnn predict`: predict new rows with a fitted network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sbnn._core.text import listed, plural
from sbnn.cli import options as opt
from sbnn.cli.doubtful_rows import (
    constant_columns,
    flags_of,
    that_matter,
    unused_columns,
    warn_about,
)
from sbnn.cli.row_columns import check_positive
from sbnn.cli.streams import write_utf8
from sbnn.cli.terminal import echo, error_handling, note, print_json, warn

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from sbnn.regressor.estimator import SparseBNNRegressor
    from sbnn.reports.fit import Record
    from sbnn.tables.reader import Table

Predictions = dict[str, dict[str, list[float]]]  # by target, then mean, std, …


def predict(
    model: opt.Folder,
    data: opt.Data,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file to write (tab-separated if it ends in .tsv). Default: print the table.",
        ),
    ] = None,
    encoding: opt.Encoding = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Predict new rows: mean, standard deviation and 95 % interval of every target.

    Run this when you have rows whose target is not known yet, or to check a fit on rows you kept.

    All columns of DATA.csv are kept unchanged, with its separator and decimal sign; the encoding is
    UTF-8. For a target y, the new columns are y_mean, y_std, y_lower and y_upper; the interval
    contains a new observation, noise included, with probability 95 %. y_noise_std and
    y_function_std are the two parts of y_std, the noise and the uncertainty of the function: the
    square of y_std is the sum of their squares. The last columns name inputs: extrapolates those
    that the model uses and that are outside the range seen in the fit, missing those without a
    value, unseen those with a category that the fit did not have. If the model uses such an input,
    the interval is wider: the prediction averages over what the value may be. unseen also names
    inputs that had one value in all rows of the fit and have another one here; their effect cannot
    be known. Predictions are rounded to a thousandth of their standard deviation; --json has all
    digits. If the fit used --noise-column and DATA.csv has that column, the standard errors in it
    are used.
    """
    with error_handling(debug):
        from sbnn.reports import fit_folder
        from sbnn.reports.columns import signs_of, types_of
        from sbnn.reports.output_paths import check_file
        from sbnn.tables import reader as tables

        if out is not None:
            check_file(out, force)
        record = fit_folder.read_record(model)
        missing = record.options.get("missing", "impute")
        fitted = fit_folder.read_model(model)
        unused = unused_columns(fitted, record.features) if missing == "impute" else []
        same = constant_columns(fitted, record.features)
        table = tables.read(
            data, (), record.features, min_rows=1, whole=True, encoding=encoding,
            others=record.noise_columns, if_present=True, types=types_of(record.columns),
            missing=missing, signs=signs_of(record), optional=unused,
            ignored=[name for name in unused if name not in same],
        )  # fmt: skip
        for line in table.notes:
            note(line)
        n = len(table.frame)
        errors = _errors(data, table.frame, record)
        inputs = table.frame.reindex(columns=record.features)
        predicted = _predict(fitted, inputs, record.targets, errors)
        flags = flags_of(model, fitted, inputs, record)
        absent = [name for name in inputs if name not in table.frame]  # a note above says so
        warn_about(flags, fitted, record.features, inputs=inputs, noted=absent)
        flags = that_matter(flags, fitted, record.features)
        if out is not None:
            _write(out, table, predicted, flags, force)
        if as_json:
            answer = {
                "rows": n,
                "out": None if out is None else str(out),
                "predictions": predicted,
                **flags,
            }
            print_json(answer)
        elif out is None:
            write_utf8(_csv(table, predicted, flags, table.separator))
        else:
            echo(f"{plural(n, 'row')} predicted: {out}")


def _errors(data: Path, numbers: pd.DataFrame, record: Record) -> np.ndarray | None:
    """Known standard errors of the new rows, or None; warn if those of the fit are used.

    A column that is missing does not affect the other targets.
    """
    import numpy as np

    columns = record.noise_columns
    given = [name for name in columns if name in numbers]
    missing = [name for name in columns if name not in numbers]
    for name in dict.fromkeys(missing):
        which = [t for t, column in zip(record.targets, columns) if column == name]
        warn(
            f"{data} has no column {name!r} with standard errors; intervals for {listed(which)} "
            "are for rows with the root mean square of the errors in the fit."
        )
    if not given:
        return None
    check_positive(data, numbers, given)
    typical = zip(columns, record.noise_std)
    return np.column_stack(
        [numbers[c] if c in given else np.full(len(numbers), std) for c, std in typical]
    )


def _predict(
    fitted: SparseBNNRegressor,
    inputs: pd.DataFrame,
    targets: list[str],
    errors: np.ndarray | None,
) -> Predictions:
    import numpy as np

    from sbnn.reports.validation import PerRow, noise_std

    n, known = len(inputs), PerRow(errors)
    mean, std, interval = fitted.predict(
        inputs, return_std=True, return_interval=0.95, **known.to_predict()
    )
    interval, std = interval.reshape(n, -1, 2), std.reshape(n, -1)
    noise = noise_std(fitted, inputs, known)
    parts = {
        "mean": mean.reshape(n, -1),
        "std": std,
        "lower": interval[..., 0],
        "upper": interval[..., 1],
        "noise_std": noise,
        "function_std": np.sqrt(np.maximum(std**2 - noise**2, 0.0)),
    }
    return {
        name: {part: values[:, k].tolist() for part, values in parts.items()}
        for k, name in enumerate(targets)
    }


def _csv(
    table: Table, predictions: Predictions, flags: dict[str, list[list[str]]], separator: str
) -> str:
    from sbnn.reports.predictions import with_columns

    whole: Any = table.whole
    decimal = "," if table.decimal_comma else "."
    added = with_columns(whole, predictions, flags)
    return added.to_csv(index=False, sep=separator, decimal=decimal)


def _write(
    out: Path,
    table: Table,
    predictions: Predictions,
    flags: dict[str, list[list[str]]],
    replace: bool,
) -> None:
    from sbnn._core.files.atomic import write_text
    from sbnn.tables.text import is_tsv

    separator = "\t" if is_tsv(out) else table.separator
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, _csv(table, predictions, flags, separator), replace)
