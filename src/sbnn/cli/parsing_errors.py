"""Errors of the command-line parser, worded like all other errors of the program."""

from __future__ import annotations

import re
from typing import Any

from sbnn.tables.header import nearest

# The parser's words, and ours.
PATTERNS = (
    (r"Missing argument '(.+)'", r"\1 is missing"),
    (r"Missing option '(.+)'", r"\1 is missing"),
    (
        r"No such command '(.+?)'\.? Did you mean '(.+)'\?",
        r"there is no command '\1'; did you mean '\2'?",
    ),
    (r"No such command '(.+)'", r"there is no command '\1'"),
    (r"Got unexpected extra argument(?:\(?s?\)?)? \((.+)\)", r"unexpected argument '\1'"),
    (r"Option '(.+)' requires an argument", r"\1 needs a value"),
    (r"Option '(.+)' requires (\d+) arguments", r"\1 needs \2 values"),
    (r"Option '(.+)' does not take a value", r"\1 takes no value"),
)


def worded(error: Any) -> str:
    """The error of a parser in the words of the program, with the command whose help to read.

    Parameters
    ----------
    error : UsageError of Click
        Recent versions of typer contain a copy of Click and do not export the class.

    Returns
    -------
    str
        One line.
    """
    within = error.ctx is not None and error.ctx.parent is not None
    command = f"sbnn {error.ctx.info_name}" if within else "sbnn"
    text = _text(error).rstrip(".")
    return f"{text}{'' if text.endswith('?') else ';'} see '{command} --help'.".replace(
        "? s", "? S"
    )


def _text(error: Any) -> str:
    name = getattr(error, "option_name", None)
    if type(error).__name__ == "NoSuchOption" and name is not None:
        close = nearest(name, list(error.possibilities or ()))
        return f"there is no option {name}" + ("" if close is None else f"; did you mean {close}?")
    message = error.format_message().rstrip(".")
    for pattern, words in PATTERNS:
        if re.fullmatch(pattern, message):
            return re.sub(pattern, words, message)
    return message
