"""Entry point of the `sbnn` program."""

from __future__ import annotations

import sys

from sbnn._core.extras import MissingExtraError, require
from sbnn.cli.streams import prepare_streams

QUICK = frozenset({"--help", "--version"})
MODULES = ("arviz_stats", "jinja2", "matplotlib", "platformdirs", "rich", "typer")


def main() -> None:
    """Run the command line; without its packages, say what to install."""
    prepare_streams()
    try:
        require("cli", "The command line", *MODULES)
    except MissingExtraError as error:
        sys.exit(f"sbnn: {error}")
    from sbnn.cli.app import app

    if not QUICK.intersection(sys.argv):  # help and version need neither JAX nor its settings
        from sbnn.cli.environment import use_cache, use_cores

        use_cache()
        use_cores()
    app(prog_name="sbnn")
