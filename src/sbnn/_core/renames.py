"""Renames that replace nothing, and exchanges of two names, each in one atomic step."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
from collections.abc import Callable
from pathlib import Path

_NO_REPLACE, _EXCHANGE = 1, 2  # RENAME_NOREPLACE and RENAME_EXCHANGE of Linux
_HERE = -100  # AT_FDCWD: relative to the current directory
# Errors of kernels and file systems that do not have the call or the flag.
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})


def rename_new(source: Path, target: Path) -> None:
    """Rename a file or folder to a name that nothing has yet.

    Parameters
    ----------
    source, target : Path
        On one file system.

    Raises
    ------
    FileExistsError
        If anything has the name `target`, even a broken link. Of several processes that rename
        to one name, exactly one succeeds.
    """
    if os.name == "nt":  # os.rename never replaces on Windows
        os.rename(source, target)
    elif not _linux_rename(source, target, _NO_REPLACE):
        _rename_new_portably(source, target)


def exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False, and nothing done, where the system cannot.

    Parameters
    ----------
    one, other : Path
        Both exist, on one file system.

    Returns
    -------
    bool
    """
    return _linux_rename(one, other, _EXCHANGE)


def _rename_new_portably(source: Path, target: Path) -> None:
    """`rename_new` with POSIX calls only: creating a folder or a hard link never replaces."""
    if source.is_dir():
        target.mkdir()
        try:
            os.rename(source, target)  # replaces nothing, or an empty folder
        except OSError as error:
            with contextlib.suppress(OSError):
                target.rmdir()
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        return
    os.link(source, target)
    source.unlink()


def _linux_rename(source: Path, target: Path, flag: int) -> bool:
    """Whether renameat2 did it; False if the system does not support it."""
    call = _renameat2()
    if call is None:
        return False
    if call(_HERE, os.fsencode(source), _HERE, os.fsencode(target), flag) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(source), None, str(target))


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # another system, or an old C library
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call.restype = ctypes.c_int
    return call
