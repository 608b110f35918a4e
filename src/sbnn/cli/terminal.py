"""Text on the terminal: results, notes, one-line errors with exit codes, and interruptions."""

from __future__ import annotations

import contextlib
import errno
import shlex
import shutil
import signal
import sys
import textwrap
import threading
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

import typer

from sbnn._core.extras import MissingExtraError, why_not_imported
from sbnn._core.memory import NAMED, is_lack_of_memory
from sbnn.cli.streams import write_note, write_output

FAILED, USAGE, INTERRUPTED = 1, 2, 130


class UsageError(Exception):
    """An option or argument is wrong; the text is one line for the user."""


def printable(text: str) -> str:
    """The text on one line without control characters, so that names cannot steer the terminal."""
    return "".join(c if c.isprintable() else "�" for c in text.replace("\n", " "))


def echo(text: str) -> None:
    """Print one line of the result, wrapped if stdout is a terminal."""
    line = printable(text)
    write_output((_wrapped(line) if sys.stdout.isatty() else line) + "\n")


def print_json(value: Any) -> None:
    """Print the result as one JSON object, in ASCII."""
    from sbnn._core.json_text import dumps

    write_output(dumps(value, indent=None, ascii_only=True) + "\n")


def _wrapped(text: str) -> str:
    """Lines that fit the terminal, broken between words and never inside --option."""
    width = max(shutil.get_terminal_size().columns, 40)
    if len(text) <= width:
        return text
    return textwrap.fill(
        text, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def note(text: str) -> None:
    """Print one line on stderr that is not part of the result."""
    write_note(printable(text))


def print_error(message: str) -> None:
    """Print an error as one line on stderr."""
    note(f"sbnn: {' '.join(message.split())}")


def warn(message: str) -> None:
    """Print a warning as one line on stderr."""
    print_error(f"warning: {message}")


def command_line() -> str:
    """The command as it could be typed again."""
    return shlex.join(["sbnn", *sys.argv[1:]])


@contextlib.contextmanager
def error_handling(
    debug: bool, interrupted: str = "interrupted; nothing was written."
) -> Iterator[None]:
    """Turn errors into one line and an exit code: 2 for usage and data, 1 for failures."""
    from sbnn.tables.header import TableError

    try:
        with _interruptible():
            yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        print_error(interrupted)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # whoever read our output has gone, as `head` does
        raise typer.Exit(0) from None
    except Exception as error:
        if debug:
            traceback.print_exc()
        usage = isinstance(error, UsageError | TableError) or _is_bad_name(error)
        known = isinstance(error, UsageError | TableError)
        print_error(str(error) if known else _failure(error, debug))
        raise typer.Exit(USAGE if usage else FAILED) from None


def _is_bad_name(error: Exception) -> bool:
    """Whether the system cannot have a file of this name."""
    return isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.ELOOP)


def _failure(error: Exception, debug: bool) -> str:
    """One line for a failure that is not the user's."""
    if isinstance(error, MissingExtraError):
        return str(error)
    if is_lack_of_memory(error):
        reason = f"{error} Allow more, or" if str(error).startswith(NAMED) else "out of memory;"
        return f"{reason} fit fewer rows, columns or neurons."
    if isinstance(error, ImportError):
        return why_not_imported(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or str(error).rstrip('.')}."
    hint = "" if debug else " (--debug shows where)"
    return f"failed: {type(error).__name__}: {error}{hint}"


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Clean up after SIGTERM as after Ctrl-C, and lose no interrupt.

    Python ignores an interrupt in a place that cannot raise, such as a callback of the garbage
    collector; a timer then repeats it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def repeat(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is KeyboardInterrupt and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
        else:
            hook(lost)

    known = [getattr(signal, name) for name in ("SIGTERM", "SIGALRM") if hasattr(signal, name)]
    before = {number: signal.signal(number, stop) for number in known}
    hook, sys.unraisablehook = sys.unraisablehook, repeat
    try:
        yield
    finally:
        sys.unraisablehook = hook
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)
