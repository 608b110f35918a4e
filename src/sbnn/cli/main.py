"""Entry point of the `sbnn` program."""

from __future__ import annotations

import sys

from sbnn._core.extras import MissingExtraError, require
from sbnn._core.memory import require_memory
from sbnn.cli.streams import prepare_streams

QUICK = frozenset({"--help", "--version"})
LIBRARIES = 1536 * 2**20  # bytes of address space of NumPy, SciPy, JAX and the rest, once loaded
MODULES = ("arviz_stats", "jinja2", "matplotlib", "platformdirs", "rich", "typer")


def main() -> None:
    """Run the command line; without its packages or the memory for them, say so."""
    prepare_streams()
    quick = not QUICK.isdisjoint(sys.argv)
    try:
        require("cli", "The command line", *MODULES)
        if not quick:
            require_memory(LIBRARIES, "loading the libraries of sbnn")
    except (MissingExtraError, MemoryError) as error:
        sys.exit(f"sbnn: {error}")
    from sbnn.cli.app import app

    if not quick:  # help and version need neither JAX nor its settings
        from sbnn.cli.environment import use_cache, use_cores

        use_cache()
        use_cores()
    app(prog_name="sbnn")
