"""`sbnn fit`: fit a network to a table; write the model, its scores and a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sbnn._core.text import duration, plural
from sbnn.cli import options as opt
from sbnn.cli.progress import Progress, show_progress
from sbnn.cli.row_columns import check_errors, check_noise_columns, use_weights
from sbnn.cli.terminal import command_line, echo, error_handling, note, print_json, warn
from sbnn.methods.registry import AUTO, METHODS

if TYPE_CHECKING:
    import pandas as pd

    from sbnn.reports.fit import Fit, Record
    from sbnn.tables.column_types import ColumnType
    from sbnn.tables.reader import Table


QUICK_STARTS = 4
_METHODS = "\n".join(
    f"  {m.name:<12}  {m.summary}" + (" (used by auto)" if m.name == AUTO else "")
    for m in METHODS.values()
)
# Typer keeps the line breaks of paragraphs that begin with \b.
HELP = f"""Learn to predict a column of a table from the others; write a model and a report.

Run this when you want to know how well a column can be predicted, which of the other columns it
depends on and how, and how certain each prediction is. Text, dates, percentages and empty cells
are handled as they are; columns that only name rows are ignored. All scores are for rows that were
left out of the fit.

\b
Methods:
{_METHODS}

\b
Example:
  sbnn fit data.csv --target strength --exclude id --out model
"""


def fit(
    data: opt.Data,
    target: opt.Target = None,
    features: opt.Features = None,
    exclude: opt.Exclude = None,
    categorical: opt.Categorical = None,
    missing: opt.Missing = "impute",
    encoding: opt.Encoding = None,
    hidden: opt.Hidden = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="One of the methods above.")] = "auto",
    noise: opt.Noise = "auto",
    noise_std: opt.NoiseStd = None,
    noise_column: opt.NoiseColumn = None,
    weight_column: opt.WeightColumn = None,
    verify: opt.Verify = False,
    quick: opt.Quick = False,
    time_limit: opt.TimeLimit = None,
    seed: opt.Seed = "0",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder to write. Default: DATA-fit."),
    ] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Fit a network to a table; write the model, scores on held-out rows, and a report."""
    with error_handling(debug):
        from sbnn.cli.environment import load_libraries
        from sbnn.reports import output_paths

        started = time.perf_counter()
        folder = out or Path(f"{data.stem}-fit")
        output_paths.check_folder(folder, force, output_paths.FIT_FILES)
        targets = opt.target_columns(data, target, encoding)
        missing = opt.check_missing(missing)
        options = opt.estimator_options(
            hidden, method, noise_std, seed, len(targets), noise, missing
        )
        if quick:
            options["n_starts"] = QUICK_STARTS
        opt.check_verify(verify, options["method"])
        limit = opt.check_time_limit(time_limit, options["method"])
        errors = check_noise_columns(noise_column, len(targets), options["noise"], noise_std)
        others = [*errors, *([] if weight_column is None else [weight_column])]
        table = opt.read_table(
            data, targets, features, exclude, encoding, others, categorical, missing
        )
        frame, inputs = table.frame, list(table.types)
        opt.check_noise_std(options["noise_std"], frame, targets)
        check_errors(data, frame, targets, errors)
        frame = use_weights(data, frame, weight_column, [options["method"]], errors)
        table = table._replace(frame=frame)
        load_libraries()
        _warn_if_slow(options, frame[inputs], len(targets))
        with show_progress(quiet=as_json) as progress:
            fitted = _fit(
                table, targets, options, data, progress, errors, weight_column, verify, limit, quick
            )
            _write(fitted, folder, output_paths.FIT_FILES if force else frozenset())
        if as_json:
            print_json({"out": str(folder), **fitted.record.as_json()})
        else:
            _print_summary(fitted.record, time.perf_counter() - started)
            echo(f"report: {folder / output_paths.REPORT}")


def _warn_if_slow(options: dict[str, Any], inputs: pd.DataFrame, n_targets: int) -> None:
    from sbnn.regressor.data.inputs import count_encoded
    from sbnn.regressor.options import infeasible

    n_inputs, method = count_encoded(inputs), options["method"]
    reason = infeasible(options["hidden_layer_sizes"], n_inputs, n_targets).get(method)
    if reason:
        warn(
            f"{method} {reason}; this may take hours. Press Ctrl-C to stop, and use a smaller "
            "--hidden or the default --method."
        )


def _fit(
    table: Table,
    targets: list[str],
    options: dict[str, Any],
    data: Path,
    progress: Progress,
    errors: list[str],
    weight_column: str | None,
    verify: bool,
    time_limit: float | None,
    quick: bool,
) -> Fit:
    """Fit a model and show the progress."""
    from sbnn._core.memory import naming_lack_of_memory
    from sbnn.reports import fit as fits

    inputs, rows = list(table.types), plural(len(table.frame), "row")
    progress.step(
        f"fitting {rows}, {plural(len(inputs), 'input')}{_kinds(table.types)}, "
        f"{plural(len(targets), 'target')}"
    )
    if options["method"] == "nsbl":
        progress.step("nsbl samples, prunes, refines and verifies, which takes minutes")
    with naming_lack_of_memory("fitting the model"):
        fitted = fits.fit(
            table.frame, inputs, targets, options, data, command_line(),
            progress.step, progress.on_fold, progress, errors, weight_column, table.types,
            table.signs, verify, time_limit, progress.fitting, quick,
        )  # fmt: skip
    progress.step("writing the report")
    return fitted


def _kinds(types: dict[str, ColumnType]) -> str:
    """How many inputs are of which kind, unless all are numbers."""
    from collections import Counter

    counts = Counter(kind for kind, _ in types.values() if kind != "number")
    return f" ({', '.join(f'{n} {kind}' for kind, n in counts.items())})" if counts else ""


def _write(fitted: Fit, folder: Path, replaceable: frozenset[str]) -> None:
    """Write the folder of a fit, complete or not at all."""
    from sbnn._core.files.atomic import whole_folder
    from sbnn._core.memory import naming_lack_of_memory
    from sbnn.reports import fit_folder, page

    writing = naming_lack_of_memory("writing the report")
    with writing, whole_folder(folder, replaceable) as temporary:
        fit_folder.save(fitted, temporary)
        page.write(fitted, temporary)


def _print_summary(record: Record, seconds: float) -> None:
    marks = {"good": "+", "bad": "!", "plain": " "}
    for sentence in record.verdict:
        echo(f"{marks[sentence.tone]} {sentence.text}")
    for text in record.warnings:
        echo(f"! {text}")
    verified = sum(row["seconds"] for row in record.verification)
    note(
        f"took {duration(seconds)}: fit {duration(record.seconds)}, "
        + (f"verification {duration(verified)}, " if verified else "")
        + f"held-out rows {duration(record.seconds_unseen)}, "
        + "the rest figures, simple models and files"
    )
