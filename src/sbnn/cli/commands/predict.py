"""`sbnn predict`: predict new rows with a fitted network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sbnn._core.text import plural
from sbnn.cli import options as opt
from sbnn.cli.streams import write_utf8
from sbnn.cli.terminal import echo, error_handling, print_json, warn

if TYPE_CHECKING:
    import numpy as np

    from sbnn.tables.reader import Table

Predictions = dict[str, dict[str, list[float]]]  # by target, then mean, std, lower, upper


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
    contains a new observation, noise included, with probability 95 %. The last column,
    extrapolates, names the inputs outside the range seen in the fit. Predictions are rounded to a
    thousandth of their standard deviation; --json has all digits.
    """
    with error_handling(debug):
        from sbnn.reports import fit_folder, predictions
        from sbnn.reports.output_paths import check_file
        from sbnn.tables import reader as tables

        if out is not None:
            check_file(out, force)
        record = fit_folder.read_record(model)
        table = tables.read(data, (), record.features, min_rows=1, whole=True, encoding=encoding)
        for line in table.notes:
            warn(line)
        n = len(table.numbers)
        predicted = _predict(model, table, record.targets)
        outside = fit_folder.extrapolations(model, table.numbers, record.data.rows)
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


def _predict(model: Path, table: Table, targets: list[str]) -> Predictions:
    from sbnn.reports.fit_folder import read_model

    n = len(table.numbers)
    fitted = read_model(model)
    mean, std, interval = fitted.predict(table.numbers, return_std=True, return_interval=0.95)
    interval = interval.reshape(n, -1, 2)
    columns = (mean.reshape(n, -1), std.reshape(n, -1), interval[..., 0], interval[..., 1])
    parts = dict(zip(("mean", "std", "lower", "upper"), columns))
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
