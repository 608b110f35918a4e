"""`sbnn report`: write the report of a fit again."""

from __future__ import annotations

from sbnn.cli import options as opt
from sbnn.cli.terminal import echo, error_handling, print_json


def report(model: opt.Folder, as_json: opt.Json = False, debug: opt.Debug = False) -> None:
    """Rewrite the report of a fit.

    Run this after an upgrade of sbnn, or if report.html was lost. Nothing is fitted again.
    """
    with error_handling(debug):
        from sbnn.reports.fit_folder import load
        from sbnn.reports.page import write

        path = write(load(model), model)
        if as_json:
            print_json({"report": str(path)})
        else:
            echo(f"report: {path}")
