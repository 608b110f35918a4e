"""Helpers for tests of the command line: the program, a quick fit, commands in this process."""

from __future__ import annotations

import sys

from typer.testing import CliRunner

from sbnn.cli.app import app

PROGRAM = [sys.executable, "-c", "from sbnn.cli.main import main; main()"]
QUICK = ["--hidden", "1", "--method", "laplace"]


def run(*arguments, code=0):
    """Run a command in this process and check its exit code."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result
