"""Atomic writes: a file or folder is complete or absent, never half written."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

# Suffix of temporary files and folders; only a killed process leaves one behind.
UNFINISHED = ".unfinished"


@contextlib.contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary file beside `path`, which replaces it at the end, or is removed after an error.

    An existing file is kept until then and passes on its permissions; a new file has those of the
    user's umask. If `path` is a link, its target is replaced.
    """
    path = Path(path).resolve()
    temporary = _beside(path)
    try:
        yield temporary
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except OSError as error:
        if error.filename == str(temporary):  # the temporary name would confuse the user
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a file atomically in UTF-8, with unchanged line endings.

    Parameters
    ----------
    path : path
    text : str
    """
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def write_bytes(path: str | os.PathLike, data: bytes) -> None:
    """Write a file atomically.

    Parameters
    ----------
    path : path
    data : bytes
    """
    with whole_file(path) as temporary:
        temporary.write_bytes(data)


@contextlib.contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A temporary folder that replaces `out` at the end, or is removed after an error."""
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(out)
    aside = temporary.with_name(temporary.name + ".old")
    try:
        temporary.mkdir()
        yield temporary
        if out.exists():
            out.rename(aside)
        try:
            temporary.rename(out)
        except BaseException:
            if aside.exists():
                aside.rename(out)
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)


def _beside(path: Path) -> Path:
    # File systems limit names to 255 bytes.
    return path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}{UNFINISHED}")
