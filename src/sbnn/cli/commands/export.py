"""`sbnn export`: a fitted model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sbnn.cli import options as opt
from sbnn.cli.terminal import UsageError, echo, error_handling, print_json


def export(
    model: opt.Folder,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Ends in .py (needs NumPy only), .onnx (ONNX) or .json (numbers)."
        ),
    ],
    force: opt.Force = False,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Write a fitted model for other programs.

    Run this when predictions are needed where sbnn is not installed. model.py is a Python module
    with a function predict(X, return_std, return_interval); model.onnx runs in ONNX runtimes of
    many languages, with the outputs mean, std, lower and upper; model.json holds the networks,
    their uncertainty and the noise as numbers. The first two give the same numbers as
    'sbnn predict'. They need the cells of all columns that the model uses, and categories that the
    fit had.
    """
    with error_handling(debug):
        from sbnn.exports.writing import check_suffix
        from sbnn.reports import fit_folder
        from sbnn.reports.columns import signs_of, types_of

        try:
            check_suffix(out)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if out.is_dir():
            raise UsageError(f"{out} is a folder; give the name of a file.")
        if out.exists() and not force:
            raise UsageError(f"{out} exists; add --force to replace it, or give another name.")
        if not out.absolute().parent.is_dir():
            raise UsageError(f"{out.parent} is not a folder; create it first.")
        record = fit_folder.read_record(model)  # its errors name a folder that is none
        fitted = fit_folder.read_model(model)
        try:
            fitted._export(out, force, types_of(record.columns), signs_of(record))
        except ValueError as error:
            raise UsageError(str(error)) from None
        if as_json:
            print_json({"out": str(out), "bytes": out.stat().st_size})
        else:
            echo(f"model: {out} ({max(out.stat().st_size // 1000, 1):,} kB)")
