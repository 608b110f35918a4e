"""The command-line application: its commands, `--version`, and one style of errors."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sbnn import __version__
from sbnn.cli.commands.compare import compare
from sbnn.cli.commands.fit import HELP as FIT_HELP
from sbnn.cli.commands.fit import fit
from sbnn.cli.commands.paper import paper
from sbnn.cli.commands.predict import predict
from sbnn.cli.commands.report import report
from sbnn.cli.streams import write_output
from sbnn.cli.terminal import FAILED, USAGE, print_error

# Click's UsageError. Recent versions of typer contain a copy of Click and do not export the class.
ParsingError: Any = typer.BadParameter.__mro__[1]


class OneLineErrors(TyperGroup):
    """Commands whose parsing errors are one line, like all other errors."""

    def main(self, args: Any = None, *, standalone_mode: bool = True, **kwargs: Any) -> Any:  # type: ignore[override]
        """Run a command and exit; with `standalone_mode=False`, leave errors to the caller."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **kwargs)
        try:
            code = super().main(args, standalone_mode=False, **kwargs)
        except ParsingError as error:
            within = error.ctx is not None and error.ctx.parent is not None
            command = f"sbnn {error.ctx.info_name}" if within else "sbnn"
            print_error(f"{error.format_message().rstrip('.')}; see '{command} --help'.")
            sys.exit(USAGE)
        except OSError as error:  # help for a stream that cannot be written to
            print_error(f"standard output: {error.strerror}.")
            sys.exit(FAILED)
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    cls=OneLineErrors,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(show: bool) -> None:
    if show:
        write_output(f"sbnn {__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
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
    if context.invoked_subcommand is None:
        write_output(context.get_help() + "\n")


app.command(short_help="Fit a network to a table and write a report.", help=FIT_HELP)(fit)
app.command(short_help="Predict new rows with a fitted network.")(predict)
app.command(short_help="Compare methods on held-out rows of a table.")(compare)
app.command(short_help="Rewrite the report of a fit.")(report)
app.command(short_help="Run the study behind the method.")(paper)
