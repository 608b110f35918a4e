"""`sbnn predict`: predict new rows with a fitted network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sbnn._core.text import plural
from sbnn.cli import options as opt
from sbnn.cli.row_columns import check_positive
from sbnn.cli.streams import write_utf8
from sbnn.cli.terminal import echo, error_handling, print_json, warn

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

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

    All columns of DATA.csv are kept unchanged, with its separator and decimal sign; the encoding
    is UTF-8. For a target y, the new columns are y_mean, y_std, y_lower and y_upper; the interval
    contains a new observation, noise included, with probability 95 %. y_noise_std and
    y_function_std are the two parts of y_std, the noise and the uncertainty of the function: the
    square of y_std is the sum of their squares. The last column, extrapolates, names the inputs
    outside the range seen in the fit. Predictions are rounded to a thousandth of their standard
    deviation; --json has all digits. If the fit used --noise-column and DATA.csv has that column,
    the standard errors in it are used.
    """
    with error_handling(debug):
        from sbnn.reports import fit_folder, predictions
        from sbnn.reports.output_paths import check_file
        from sbnn.tables import reader as tables

        if out is not None:
            check_file(out, force)
        record = fit_folder.read_record(model)
        table = tables.read(
            data, (), record.features, min_rows=1, whole=True, encoding=encoding,
            others=record.noise_columns, if_present=True,
        )  # fmt: skip
        for line in table.notes:
            warn(line)
        n = len(table.numbers)
        errors = _errors(data, table.numbers, record)
        inputs = table.numbers[record.features]
        predicted = _predict(model, inputs, record.targets, errors)
        outside = fit_folder.extrapolations(model, inputs, record.data.rows)
        for name, rows in outside.items():
            warn(
                f"{rows.sum():,} of {n:,} rows are outside the range of {name!r} in the fit; there "
                "the model extrapolates, and its intervals may be too narrow."
            )
        if out is not None:
            _write(out, table, predicted, outside, force)
        if as_json:
            answer = {
                "rows": n,
                "out": None if out is None else str(out),
                "predictions": predicted,
                "extrapolates": predictions.by_row(outside, n),
            }
            print_json(answer)
        elif out is None:
            write_utf8(_csv(table, predicted, outside, table.separator))
        else:
            echo(f"{plural(n, 'row')} predicted: {out}")


def _errors(data: Path, numbers: pd.DataFrame, record: Record) -> np.ndarray | None:
    """Known standard errors of the new rows, or None; warn if those of the fit are used."""
    columns = record.noise_columns
    missing = [name for name in columns if name not in numbers]
    if missing:
        warn(
            f"{data} has no column {missing[0]!r} with standard errors; intervals are for rows "
            "with the root mean square of the errors in the fit."
        )
    if missing or not columns:
        return None
    check_positive(data, numbers, columns)
    return numbers[columns].to_numpy()


def _predict(
    model: Path, inputs: pd.DataFrame, targets: list[str], errors: np.ndarray | None
) -> Predictions:
    import numpy as np

    from sbnn.reports.fit_folder import read_model
    from sbnn.reports.validation import PerRow, noise_std

    n, fitted, known = len(inputs), read_model(model), PerRow(errors)
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
    table: Table, predictions: Predictions, outside: dict[str, np.ndarray], separator: str
) -> str:
    from sbnn.reports.predictions import with_columns

    whole: Any = table.whole
    decimal = "," if table.decimal_comma else "."
    added = with_columns(whole, predictions, outside)
    return added.to_csv(index=False, sep=separator, decimal=decimal)


def _write(
    out: Path,
    table: Table,
    predictions: Predictions,
    outside: dict[str, np.ndarray],
    replace: bool,
) -> None:
    from sbnn._core.atomic import write_text
    from sbnn.tables.text import is_tsv

    separator = "\t" if is_tsv(out) else table.separator
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, _csv(table, predictions, outside, separator), replace)
