"""`sbnn paper`: run the study behind the method."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sbnn.cli import options as opt
from sbnn.cli.terminal import echo, error_handling


def paper(
    quick: Annotated[
        bool, typer.Option("--quick", help="Use fewer particles, to finish sooner.")
    ] = False,
    seed: Annotated[
        str, typer.Option(metavar="NUMBER", help="Random seed of the noise in the data.")
    ] = "0",
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for results, tables, figures, report.")
    ] = Path("paper-results"),
    force: Annotated[bool, typer.Option("--force", help="Recompute finished parts.")] = False,
    debug: opt.Debug = False,
) -> None:
    """Run the study: five methods on the boxcar data, with tables, figures and a report.

    Run this to see that the methods are right where the answer is known, and what their evidence
    and sparsity mean. It takes one or two minutes.
    """
    with error_handling(debug, interrupted="interrupted; finished parts are kept."):
        from sbnn.reports.output_paths import check_study

        number = opt.check_seed(seed)
        check_study(out)
        from sbnn.study.page import write_report
        from sbnn.study.runs import run

        study = run(out, seed=number, quick=quick, force=force, say=echo)
        echo("writing tables and figures")
        page, claims = write_report(study, out)
        for claim in claims:
            echo(f"  {'holds         ' if claim.holds else 'does NOT hold '} {claim.claim}")
            echo(f"                 measured: {claim.measured}")
        echo(f"report: {page}")
