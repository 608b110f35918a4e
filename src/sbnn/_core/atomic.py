"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

# How the names of what is not finished end; only a killed process leaves one behind.
UNFINISHED = ".unfinished"


@contextlib.contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[Path]:
    """The name of a file to write beside `path`: it takes its place at the end, or vanishes.

    What was there stays until then, and hands on its permissions; a new file has those that the
    user's umask gives. Through a link, the file that it points to is replaced.
    """
    path = Path(path).resolve()
    temporary = _beside(path)
    try:
        yield temporary
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except OSError as error:
        if error.filename == str(temporary):  # a name that nobody gave
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a file whole or not at all, in UTF-8, its line ends as they are."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


@contextlib.contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A folder beside `out` that takes its place at the end, or vanishes."""
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
    # A name may have 255 bytes, and this one must not be longer than that.
    return path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}{UNFINISHED}")
