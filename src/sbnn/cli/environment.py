"""What the command line prepares before it works: settings of JAX, and libraries loaded in time.

Compiled programs are cached on disk, and every core is a device. Done only by the command-line
program; importing the library changes nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
from collections.abc import MutableMapping
from pathlib import Path

from sbnn._core.memory import naming_lack_of_memory, require_memory_for_threads

OFF = "SBNN_NO_CACHE"
LIMIT = 256 * 2**20  # bytes; each program of a fit takes some tens of kB


# Loaded late otherwise, by the libraries that use them, when a long fit is to be written.
LATE = ("scipy.linalg", "sklearn", "jax", "h5py", "h5netcdf", "jinja2", "matplotlib.figure")


def load_libraries() -> None:
    """Import all that writing a fit needs, so that a lack of memory shows before the fit.

    The memory of the threads of a fit is checked too.

    Raises
    ------
    MemoryError
    """
    for name in LATE:
        with naming_lack_of_memory(f"loading {name.partition('.')[0]}"):
            importlib.import_module(name)
    require_memory_for_threads(os.cpu_count() or 1, "fitting the model")


def use_cores(environment: MutableMapping[str, str] = os.environ) -> None:
    """Give JAX one device per core, unless the user has chosen a number of devices."""
    if "device_count" in environment.get("XLA_FLAGS", ""):
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    environment.setdefault("JAX_NUM_CPU_DEVICES", str(cores or 1))


def use_cache(environment: MutableMapping[str, str] = os.environ) -> Path | None:
    """Let JAX cache compiled programs on disk; return the folder, or None without a cache.

    Worker processes share it. Settings of the user take precedence. A folder that is not writable,
    or that others could write to (JAX runs the programs it finds there), is not used. Problems
    with the cache are never errors.
    """
    import platformdirs

    if environment.get(OFF, "") not in ("", "0") or "JAX_COMPILATION_CACHE_DIR" in environment:
        return None
    try:
        folder = platformdirs.user_cache_path("sbnn", appauthor=False) / "jax"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(folder):
            return None
        _shrink(folder, LIMIT)
    except (OSError, RuntimeError):  # RuntimeError: the user has no home
        return None
    environment["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    # By default, JAX caches only what compiles for a second or more: almost nothing of ours.
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    return folder


def _is_private(folder: Path) -> bool:
    """Whether this user, and nobody else, can write to the folder."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    if not hasattr(os, "getuid"):
        return True  # on Windows, local application data are private
    found = folder.stat()
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _shrink(folder: Path, limit: int) -> None:
    """If the files exceed the limit, remove the oldest until half of it is free."""
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
