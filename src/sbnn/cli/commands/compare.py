"""`sbnn compare`: cross-validate several methods on one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sbnn.cli import options as opt
from sbnn.cli.progress import show_progress
from sbnn.cli.row_columns import (
    check_errors,
    check_noise_columns,
    check_noise_of_methods,
    use_weights,
)
from sbnn.cli.terminal import echo, error_handling, print_json


def compare(
    data: opt.Data,
    target: opt.Target = None,
    features: opt.Features = None,
    exclude: opt.Exclude = None,
    categorical: opt.Categorical = None,
    missing: opt.Missing = "impute",
    encoding: opt.Encoding = None,
    hidden: opt.Hidden = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Compare only this method or baseline (repeatable). Default: laplace_nsbl and "
            "laplace, which do not sample, and the baselines mean, bayesian_ridge and "
            "gaussian_process.",
        ),
    ] = None,
    noise: opt.Noise = "auto",
    noise_std: opt.NoiseStd = None,
    noise_column: opt.NoiseColumn = None,
    weight_column: opt.WeightColumn = None,
    folds: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="Number of cross-validation folds; the number of rows gives leave-one-out.",
        ),
    ] = "5",
    seed: opt.Seed = "0",
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the table (CSV, JSON).")
    ] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Compare networks with simple models on rows that were left out of the fit.

    Run this before you rely on a network: the table shows whether it predicts better than the
    mean, a linear model and a Gaussian process, and whether the difference exceeds chance.

    Methods that sample (nsbl, standard, hierarchical) run once on all rows and once per fold, a
    minute or more each. To include them, use --method, a small --hidden and perhaps --folds 3.
    """
    with error_handling(debug):
        from sbnn.reports import output_paths

        opt.check_folds(folds)  # before the table is read
        if out is not None:
            output_paths.check_folder(out, force, output_paths.COMPARISON_FILES)
        targets = opt.target_columns(data, target, encoding)
        missing = opt.check_missing(missing)
        options = opt.estimator_options(
            hidden, "auto", noise_std, seed, len(targets), noise, missing
        )
        requested = None if method is None else list(map(opt.normalise_method, method))
        check_noise_of_methods(options["noise"], requested or ())
        errors = check_noise_columns(noise_column, len(targets), options["noise"], noise_std)
        others = [*errors, *([] if weight_column is None else [weight_column])]
        table = opt.read_table(
            data, targets, features, exclude, encoding, others, categorical, missing
        )
        frame, inputs = table.frame, list(table.types)
        opt.check_noise_std(options["noise_std"], frame, targets)
        check_errors(data, frame, targets, errors)
        frame = use_weights(data, frame, weight_column, requested or ())
        n_folds = opt.check_folds(folds, len(frame), data)

        from sbnn.cli import comparison_table as comparison
        from sbnn.regressor.data.inputs import count_encoded
        from sbnn.regressor.options import infeasible
        from sbnn.reports.comparison import compare_methods
        from sbnn.reports.fit import per_row

        n_inputs = count_encoded(frame[inputs])
        reasons = infeasible(options["hidden_layer_sizes"], n_inputs, len(targets))
        chosen, skipped = comparison.choose(requested, reasons, n_folds)
        y = frame[targets].to_numpy()
        with show_progress(quiet=as_json) as progress:
            if warning := comparison.cost(chosen, n_folds):
                progress.step(warning)
            records = compare_methods(
                chosen, options, frame[inputs], y, n_folds, progress.step, progress.on_fold,
                progress, per_row(frame, errors, weight_column),
            )  # fmt: skip
        summary = comparison.summary(
            records, skipped, data, targets, inputs, options, n_folds, len(y)
        )
        if out is not None:
            replaceable = output_paths.COMPARISON_FILES if force else frozenset()
            comparison.write(summary, out, replaceable)
        if as_json:
            print_json(summary)
            return
        for line in comparison.lines(summary):
            echo(line)
        if out is not None:
            echo(f"written: {out / 'compare.csv'}")
