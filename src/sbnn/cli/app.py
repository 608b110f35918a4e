"""The command-line application: its commands, `--version`, and one style of errors."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sbnn import __version__
from sbnn.cli.commands.compare import compare
from sbnn.cli.commands.export import export
from sbnn.cli.commands.fit import HELP as FIT_HELP
from sbnn.cli.commands.fit import fit
from sbnn.cli.commands.next import next_measurement
from sbnn.cli.commands.paper import paper
from sbnn.cli.commands.predict import predict
from sbnn.cli.commands.report import report
from sbnn.cli.parsing_errors import worded
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
            print_error(worded(error))
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
    Then open model/report.html: how good the predictions are, which columns matter, and how.

    \b
    When to run what:
      fit      you have a table and want to understand or predict one of its columns
      predict  you have new rows and want their values, with intervals
      next     you can measure more rows and want to know which help most
      compare  you want to know whether a network is worth it, against simple models
      export   you need predictions where sbnn is not installed
      report   you have upgraded sbnn and want the report in its new form
      paper    you want to see the method verified on a problem with a known answer
    'sbnn COMMAND --help' explains a command.
    """
    if context.invoked_subcommand is None:
        write_output(context.get_help() + "\n")


app.command(short_help="Learn to predict a column of a table; write a report.", help=FIT_HELP)(fit)
app.command(short_help="Predict new rows, with intervals.")(predict)
app.command("next", short_help="Suggest the next measurements.")(next_measurement)
app.command(short_help="Compare networks with simple models on unseen rows.")(compare)
app.command(short_help="Write a model for other programs.")(export)
app.command(short_help="Rewrite the report of a fit.")(report)
app.command(short_help="Run the study behind the method.")(paper)
