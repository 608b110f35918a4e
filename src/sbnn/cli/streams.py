"""Standard streams that always work: closed ones, full ones, and any encoding."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from typing import Any

from sbnn._core.text import ascii_spelling

_HANDLER = "sbnn.ascii_spelling"


def prepare_streams() -> None:
    """Let output reach any stdout and stderr, or nowhere if they are closed.

    A closed stream becomes the null device, also for libraries that write to its number;
    otherwise the next file to be opened would get that number, and their messages. Characters that
    a stream cannot encode are spelled in ASCII; an encoding without plain text becomes UTF-8.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    codecs.register_error(_HANDLER, ascii_spelling)
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_HANDLER)
            if not _encodes_plain_text(stream.encoding):
                stream.reconfigure(encoding="utf-8", errors=_HANDLER)


def _encodes_plain_text(encoding: str) -> bool:
    """Whether lines of ASCII text of any length can be encoded; with "idna", some cannot."""
    try:
        return bool((" 1.5 " * 20 + "\n").encode(encoding, _HANDLER))
    except (UnicodeError, LookupError):
        return False


def write_output(text: str) -> None:
    """Write to stdout and flush; an error names the stream, and nothing is written again at exit.

    Parameters
    ----------
    text : str

    Raises
    ------
    BrokenPipeError
        If nobody reads any more.
    OSError
        If the text cannot be written, for example to a full disk.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        _drop_stdout()
        if isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, error.strerror, "standard output") from error


def write_utf8(text: str) -> None:
    """Write to stdout: in UTF-8 to files and pipes, in its own encoding to terminals.

    Parameters
    ----------
    text : str
    """
    with contextlib.suppress(AttributeError, ValueError):  # a stream in memory
        if not sys.stdout.isatty():
            stream: Any = sys.stdout
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")
    write_output(text)


def write_note(text: str) -> None:
    """Write one line to stderr; that nobody can read it is no reason to stop.

    Parameters
    ----------
    text : str
    """
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _drop_stdout() -> None:
    """Send the rest to the null device: Python flushes stdout again when it exits."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
