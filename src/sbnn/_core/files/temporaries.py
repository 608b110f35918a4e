"""Temporary files and folders: locked while in use, so that left-overs can be removed safely."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # not available on Windows, where left-overs stay
    fcntl = None  # type: ignore[assignment]

# Suffix of temporary files and folders; only a killed process leaves one behind.
UNFINISHED = ".unfinished"
# Locks may be invisible to other machines that share a file system: each removes only its own.
_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_OURS = re.compile(rf"\..*\.{_MACHINE}-[0-9a-f]{{16}}{re.escape(UNFINISHED)}", re.DOTALL)


@contextlib.contextmanager
def temporary(beside: Path, folder: bool) -> Iterator[Path]:
    """A new, empty file or folder beside a path, removed at the end if it is still there.

    Parameters
    ----------
    beside : Path
    folder : bool
        Create a folder, not a file.
    """
    remove_leftovers(beside.parent)
    path, descriptor = _create(beside, folder)
    try:
        yield path
    finally:
        _remove(path)
        if descriptor is not None:
            os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files and folders of processes that no longer run.

    A process locks its temporary, and the lock ends with the process, even if it is killed. What
    cannot be locked, or comes from another machine, is kept.

    Parameters
    ----------
    folder : Path
    """
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if _OURS.fullmatch(entry.name) and not entry.is_symlink():
                _remove_if_free(Path(entry.path))


def _remove_if_free(path: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if _lock(descriptor):
                _remove(path)
        finally:
            os.close(descriptor)


def _create(beside: Path, folder: bool) -> tuple[Path, int | None]:
    """A new temporary and the descriptor that holds its lock, or None where there are no locks."""
    while True:
        token = f"{_MACHINE}-{secrets.token_hex(8)}"
        # File systems limit names to 255 bytes.
        path = beside.with_name(f".{beside.name[:40]}.{token}{UNFINISHED}")
        if folder:
            path.mkdir()
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        if fcntl is None:
            return path, None
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY)
            # Before it was locked, another process may have taken it for a left-over.
            if _lock(descriptor) is not False and path.exists():
                return path, descriptor
            os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Whether the lock was free, and is now ours; None without locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
