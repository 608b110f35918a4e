"""The command line: `sbnn fit`, `predict`, `compare`, `report`, `paper`, `--version`.

What is heavy is imported inside the commands, so that `--help` and `--version` answer at once.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from sbnn import __version__
from sbnn._core.text import duration, plural
from sbnn.cli.environment import use_cache, use_cores
from sbnn.cli.options import (
    Data,
    Debug,
    Encoding,
    Exclude,
    Features,
    Folder,
    Force,
    Hidden,
    Json,
    NoiseStd,
    Seed,
    Target,
    estimator_options,
    read,
    spelt,
    targets_of,
)
from sbnn.cli.terminal import UsageProblem, command_line, complain, manners, say, show_steps, tell

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(show: bool) -> None:
    if show:
        print(f"sbnn {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Sparse Bayesian neural networks for tables of data, with honest uncertainty.

    \b
    A first session:
      sbnn fit data.csv --target y --out model
      sbnn predict model new.csv --out predictions.csv
    Then open model/report.html. 'sbnn COMMAND --help' explains a command.
    """


@app.command(short_help="Fit a network to a table and write a report.")
def fit(
    data: Data,
    target: Target = None,
    features: Features = None,
    exclude: Exclude = None,
    encoding: Encoding = None,
    hidden: Hidden = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="One of the methods above.")] = "auto",
    noise_std: NoiseStd = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder to write; DATA-fit if not given."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit a network to a table: model, scores on unseen rows, and a report to open.

    \b
    Methods:
      laplace_nsbl  prunes weights that the data do not ask for; no sampling (auto takes this)
      laplace       the same without pruning
      nsbl          samples, prunes and verifies; up to 30 parameters, minutes
      standard      samples under fixed wide priors; up to 30 parameters
      hierarchical  samples weights and their precisions together; up to 30 parameters
    \b
    Example:
      sbnn fit data.csv --target strength --exclude id --out model
    """
    with manners(debug):
        from sbnn.reports import output_paths as outputs

        started = time.perf_counter()
        folder_path = out or Path(f"{data.stem}-fit")
        targets = targets_of(data, target, encoding)
        options = estimator_options(hidden, method, noise_std, seed, len(targets))
        outputs.check_folder(folder_path, force, outputs.FIT_FILES)
        frame = read(data, targets, features, exclude, encoding)
        from sbnn._core import atomic as files
        from sbnn.regressor.options import infeasible
        from sbnn.reports import fit as fits
        from sbnn.reports import fit_folder, page

        inputs = [name for name in frame.columns if name not in set(targets)]
        method = options["method"]
        reason = infeasible(options["hidden_layer_sizes"], len(inputs), len(targets)).get(method)
        if reason:
            complain(
                f"{method} {reason}; this can take hours. It starts now; Ctrl-C stops it. "
                "A smaller --hidden, or no --method, is faster."
            )
        with show_steps(quiet=as_json) as steps:
            steps.step(
                f"fitting {plural(len(frame), 'row')}, {plural(len(inputs), 'input')}, "
                f"{plural(len(targets), 'target')}"
            )
            if method == "nsbl":
                steps.step("it samples, proposes what to prune, judges, refines, verifies: minutes")
            fitted = fits.fit(
                frame, inputs, targets, options, data, command_line(),
                steps.step, steps.on_fold, steps,
            )  # fmt: skip
            steps.step("writing the report")
            with files.whole_folder(folder_path) as temporary:
                fit_folder.save(fitted, temporary)
                page.write(fitted, temporary)
        record = fitted.record
        if as_json:
            print(fits.dumps({"out": str(folder_path), **record.as_json()}, indent=None))
            return
        marks = {"good": "+", "bad": "!", "plain": " "}
        for sentence in record.verdict:
            say(f"{marks[sentence.tone]} {sentence.text}")
        for text in record.warnings:
            say(f"! {text}")
        took = time.perf_counter() - started
        tell(
            f"took {duration(took)}: fit {duration(record.seconds)}, unseen rows "
            f"{duration(record.seconds_unseen)}, the rest reading and writing"
        )
        say(f"report: {folder_path / outputs.REPORT}")


@app.command(short_help="Predict new rows with a fitted network.")
def predict(
    model: Folder,
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file to write, with tabs if it ends in .tsv; printed if not given.",
        ),
    ] = None,
    encoding: Encoding = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict new rows: mean, standard deviation and 95 % interval of every target.

    All columns of DATA.csv are kept as they are; separator and decimal sign are those of DATA.csv,
    the encoding is UTF-8. Added are, for a target y, y_mean, y_std, and y_lower and y_upper: the
    interval that holds a new observation, noise included, with probability 95 %.
    The last column, extrapolates, names the inputs outside the range of the fit. Predictions are
    rounded to a thousandth of their standard deviation; --json has all digits.
    """
    with manners(debug):
        from sbnn._core import atomic as files
        from sbnn.reports import output_paths as outputs
        from sbnn.tables import reader as tables

        if out is not None:
            outputs.check_file(out, force)
        from sbnn.reports.fit import dumps
        from sbnn.reports.fit_folder import extrapolations, read_model, read_record
        from sbnn.reports.predictions import by_row, with_columns

        found = read_record(model)
        table = tables.read(data, (), found.features, min_rows=1, whole=True, encoding=encoding)
        for note in table.notes:
            complain(note)
        frame = table.numbers
        fitted = read_model(model)
        mean, std, interval = fitted.predict(frame, return_std=True, return_interval=0.95)
        n = len(frame)
        outside = extrapolations(model, frame, found.data.rows)
        for name, rows in outside.items():
            complain(
                f"{rows.sum():,} of {n:,} rows lie outside the range that {name!r} had in the fit; "
                "there the prediction extrapolates, and its interval may not hold."
            )
        interval = interval.reshape(n, -1, 2)
        columns = (mean.reshape(n, -1), std.reshape(n, -1), interval[..., 0], interval[..., 1])
        parts = dict(zip(("mean", "std", "lower", "upper"), columns))
        predicted = {
            name: {part: values[:, k].tolist() for part, values in parts.items()}
            for k, name in enumerate(found.targets)
        }
        if out is not None or not as_json:
            text = with_columns(table.whole, predicted, outside).to_csv(
                index=False,
                sep="\t" if out is not None and tables.is_tsv(out) else table.separator,
                decimal="," if table.decimal_comma else ".",
            )
            if out is not None:
                out.parent.mkdir(parents=True, exist_ok=True)
                files.write_text(out, text)
        if as_json:
            where = None if out is None else str(out)
            shown = {"rows": n, "out": where, "predictions": predicted}
            print(dumps({**shown, "extrapolates": by_row(outside, n)}, indent=None))
        elif out is None:
            sys.stdout.write(text)
        else:
            say(f"{plural(n, 'row')} predicted: {out}")


@app.command(short_help="Compare methods on unseen rows of a table.")
def compare(
    data: Data,
    target: Target = None,
    features: Features = None,
    exclude: Exclude = None,
    encoding: Encoding = None,
    hidden: Hidden = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Compare only this method; may be repeated. If not given: laplace_nsbl and "
            "laplace, which do not sample.",
        ),
    ] = None,
    noise_std: NoiseStd = None,
    folds: Annotated[
        int,
        typer.Option(
            min=2,
            metavar="NUMBER",
            help="Parts of the rows, each left out once; as many as rows leave out one by one.",
        ),
    ] = 5,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the table (CSV, JSON).")
    ] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare methods on rows that were left out of the fit (cross-validation).

    Methods that sample (nsbl, standard, hierarchical) run once for all rows and once per fold, a
    minute or more each: name them with --method, with a small --hidden and perhaps --folds 3.
    """
    with manners(debug):
        from sbnn.reports import output_paths as outputs

        targets = targets_of(data, target, encoding)
        options = estimator_options(hidden, "auto", noise_std, seed, len(targets))
        if out is not None:
            outputs.check_folder(out, force, outputs.COMPARISON_FILES)
        frame = read(data, targets, features, exclude, encoding)
        if folds > len(frame):
            raise UsageProblem(
                f"--folds {folds} is more than the {len(frame)} rows of {data}; the most is "
                f"{len(frame)}, which leaves out one row at a time."
            )
        from sbnn.cli import comparison_table as comparison
        from sbnn.regressor.options import infeasible
        from sbnn.reports import validation
        from sbnn.reports.fit import dumps

        inputs = [name for name in frame.columns if name not in set(targets)]
        reasons = infeasible(options["hidden_layer_sizes"], len(inputs), len(targets))
        wanted = None if method is None else [spelt(name) for name in method]
        chosen, left_out = comparison.choose(wanted, reasons, folds)
        y = frame[targets].to_numpy()
        with show_steps(quiet=as_json) as steps:
            if warning := comparison.cost(chosen, folds):
                steps.step(warning)
            records = validation.compare_methods(
                chosen, options, frame[inputs], y, folds, steps.step, steps.on_fold, steps
            )
        summary = comparison.summary(
            records, left_out, data, targets, inputs, options, folds, len(y)
        )
        if out is not None:
            comparison.write(summary, out)
        if as_json:
            print(dumps(summary, indent=None))
            return
        for line in comparison.lines(summary):
            say(line)
        if out is not None:
            say(f"written: {out / 'compare.csv'}")


@app.command()
def report(model: Folder, as_json: Json = False, debug: Debug = False) -> None:
    """Write the report of a fit again."""
    with manners(debug):
        from sbnn.reports.fit import dumps
        from sbnn.reports.fit_folder import load
        from sbnn.reports.page import write

        path = write(load(model), model)
        if as_json:
            print(dumps({"report": str(path)}, indent=None))
        else:
            say(f"report: {path}")


@app.command(short_help="Run the study that the method comes from.")
def paper(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer particles: minutes instead of more.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, metavar="NUMBER", help="Seed of the noise in the data.")
    ] = 0,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for results, tables, figures, report.")
    ] = Path("paper-results"),
    force: Annotated[
        bool, typer.Option("--force", help="Recompute parts that are there already.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Run the whole study: five methods on the boxcar data, tables, figures and a report."""
    with manners(debug, interrupted="interrupted; finished parts are kept."):
        from sbnn.reports import output_paths as outputs

        outputs.check_study(out)
        from sbnn.study.page import write_report
        from sbnn.study.runs import run

        study = run(out, seed=seed, quick=quick, force=force, say=say)
        say("writing tables and figures")
        report, claims = write_report(study, out)
        for claim in claims:
            say(f"  {'holds         ' if claim.holds else 'does NOT hold '} {claim.claim}")
            say(f"                 measured: {claim.measured}")
        say(f"report: {report}")


def main() -> None:
    """Entry point."""
    use_cache()
    use_cores()
    app()
