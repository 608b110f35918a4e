"""The command line: `sbnn paper`, `sbnn --version`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sbnn import __version__

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Sparse Bayesian neural networks, verified against the exact evidence.",
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
    """Sparse Bayesian neural networks, verified against the exact evidence."""


@app.command()
def paper(
    quick: Annotated[bool, typer.Option(help="Fewer particles: minutes instead of more.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the noise in the data.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for results, tables, figures, report.")] = Path(
        "paper-results"
    ),
    force: Annotated[bool, typer.Option(help="Recompute parts that are there already.")] = False,
) -> None:
    """Run the whole study: five methods on the boxcar data, tables, figures and a report."""
    if out.exists() and not out.is_dir():
        _fail(f"{out} is a file; give a folder with --out.", code=2)
    from sbnn import paper as study_module
    from sbnn.paper_report import write_report

    study_module.use_all_cores()
    study = study_module.run(out, seed=seed, quick=quick, force=force, say=_say)
    _say("writing tables and figures")
    report = write_report(study, out)
    for claim in study_module.claims(study):
        _say(f"  {'holds         ' if claim.holds else 'does NOT hold '} {claim.claim}")
        _say(f"                 measured: {claim.measured}")
    _say(f"report: {report}")


def _say(text: str) -> None:
    print(text, flush=True)


def _fail(message: str, code: int = 1) -> None:
    print(f"sbnn: {message}", file=sys.stderr)
    raise typer.Exit(code)


def main() -> None:
    """Entry point: errors of the data or the usage are one line, not a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        print("sbnn: interrupted; finished parts are kept.", file=sys.stderr)
        raise SystemExit(130) from None
