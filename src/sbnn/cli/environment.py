"""What the command line sets for JAX, through the environment and before JAX is imported.

Compiled programs are kept on disk between runs, in a folder of the user's, and every core is a
device. A library has no business doing either; a program of its own has.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path

OFF = "SBNN_NO_CACHE"
LIMIT = 256 * 2**20  # bytes; a fit's programs take some tens of kB each


def cache_folder(
    environment: Mapping[str, str], home: Path, platform: str = sys.platform
) -> Path | None:
    """Where the platform keeps what may be lost, or None where it does not say.

    $XDG_CACHE_HOME or ~/.cache; ~/Library/Caches on macOS; %LOCALAPPDATA% on Windows.
    """
    if platform == "win32":
        local = environment.get("LOCALAPPDATA")
        return Path(local, "sbnn", "Cache", "jax") if local else None
    if platform == "darwin":
        return home / "Library" / "Caches" / "sbnn" / "jax"
    given = environment.get("XDG_CACHE_HOME", "")
    base = Path(given) if os.path.isabs(given) else home / ".cache"  # the XDG rules ask for this
    return base / "sbnn" / "jax"


def use_cores(environment: MutableMapping[str, str] = os.environ) -> None:
    """One JAX device per core, so that all of them sample; what the user has set stays."""
    if "device_count" in environment.get("XLA_FLAGS", ""):
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    environment.setdefault("JAX_NUM_CPU_DEVICES", str(cores or 1))


def use_cache(environment: MutableMapping[str, str] = os.environ) -> Path | None:
    """Let JAX keep compiled programs on disk; returns the folder, or None where that is not done.

    Worker processes share it. What the user has set for JAX stays as it is. A folder that cannot be
    written, or that others could write to (JAX runs the programs it finds there), is not used; no
    failure of the cache is an error.
    """
    if environment.get(OFF, "") not in ("", "0") or "JAX_COMPILATION_CACHE_DIR" in environment:
        return None
    try:
        folder = cache_folder(environment, Path.home())
        if folder is None:
            return None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(folder):
            return None
        _shrink(folder)
    except (OSError, RuntimeError):  # RuntimeError: the user has no home
        return None
    environment["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    # JAX's thresholds leave out what compiles in less than a second: nearly all of ours.
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    return folder


def _is_private(folder: Path) -> bool:
    """Writable for this user and for nobody else."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    if not hasattr(os, "getuid"):
        return True  # Windows: a user's local data are his own
    found = folder.stat()
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _shrink(folder: Path, limit: int = LIMIT) -> None:
    """Remove the oldest files until half of the limit is free again, once it is passed."""
    files = [(entry.stat(), Path(entry.path)) for entry in os.scandir(folder) if entry.is_file()]
    total = sum(found.st_size for found, _ in files)
    if total <= limit:
        return
    for found, path in sorted(files, key=lambda item: item[0].st_mtime):
        if total <= limit // 2:
            break
        with contextlib.suppress(OSError):  # another process was faster
            path.unlink()
        total -= found.st_size
