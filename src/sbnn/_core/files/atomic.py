"""Atomic writes: a file or folder is complete or absent, and nothing is replaced unasked."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from sbnn._core.files.temporaries import UNFINISHED, temporary

_NO_REPLACE, _EXCHANGE = 1, 2  # RENAME_NOREPLACE and RENAME_EXCHANGE of Linux
_HERE = -100  # AT_FDCWD: relative to the current directory
# Errors of kernels and file systems that do not have the call or the flag.
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})
_ATTEMPTS = 20  # to replace a folder that other processes replace at the same time


class OutputExistsError(FileExistsError):
    """The name of an output was taken by the time it was finished; it was kept under another.

    Attributes
    ----------
    kept : Path
        The finished output.
    """

    def __init__(self, wanted: Path, kept: Path) -> None:
        self.kept = kept
        super().__init__(f"{wanted} exists and is not replaced; the finished result is in {kept}")


@contextlib.contextmanager
def whole_file(path: str | os.PathLike, replace: bool = True) -> Iterator[Path]:
    """A temporary file beside `path`, renamed to it at the end, or removed after an error.

    An existing file is kept until then and passes on its permissions; a new file has those of the
    user's umask. A link is replaced, and the file it points to is not touched.

    Parameters
    ----------
    path : path
    replace : bool
        Replace an existing file.

    Raises
    ------
    OutputExistsError
        If the file exists at the end and `replace` is False.
    """
    shown, path = Path(path), Path(path).absolute()
    with _named(shown), temporary(path, folder=False) as unfinished:
        yield unfinished
        if not replace:
            _rename_or_keep(unfinished, path, shown)
            return
        if path.is_file() and not path.is_symlink():
            shutil.copymode(path, unfinished)
        os.replace(unfinished, path)


def write_text(path: str | os.PathLike, text: str, replace: bool = True) -> None:
    """Write a file atomically in UTF-8, with unchanged line endings.

    Parameters
    ----------
    path : path
    text : str
    replace : bool
        Replace an existing file.
    """
    write_bytes(path, text.encode(), replace)


def write_bytes(path: str | os.PathLike, data: bytes, replace: bool = True) -> None:
    """Write a file atomically.

    Parameters
    ----------
    path : path
    data : bytes
    replace : bool
        Replace an existing file.
    """
    with whole_file(path, replace) as unfinished:
        unfinished.write_bytes(data)


@contextlib.contextmanager
def whole_folder(out: Path, replaceable: Collection[str] = ()) -> Iterator[Path]:
    """A temporary folder, renamed to `out` at the end, or removed after an error.

    Parameters
    ----------
    out : Path
    replaceable : collection of str
        Names of files. An existing folder is replaced if it holds nothing else, so by default
        only if it is empty.

    Raises
    ------
    OutputExistsError
        If `out` exists at the end and holds anything else.
    """
    shown, out = out, out.absolute()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:  # a file has the name of a parent
        code = errno.ENOTDIR
        raise NotADirectoryError(code, os.strerror(code), error.filename) from None
    with _named(shown), temporary(out, folder=True) as unfinished:
        yield unfinished
        for _ in range(_ATTEMPTS):
            try:
                rename_new(unfinished, out)
                return
            except FileExistsError:
                if _replaced(unfinished, out, replaceable):
                    return
                if not _holds_only(out, replaceable):
                    break
        _rename_or_keep(unfinished, out, shown)


def _replaced(unfinished: Path, out: Path, replaceable: Collection[str]) -> bool:
    """Whether the folder `out` was replaced; what it held before is removed."""
    if not _holds_only(out, replaceable):
        return False
    with contextlib.suppress(FileNotFoundError, FileExistsError):  # another process was faster
        if exchange(unfinished, out):
            if _holds_only(unfinished, replaceable):
                return True
            exchange(unfinished, out)  # a file was added between the check and the exchange
            return False
        return _replaced_portably(unfinished, out, replaceable)
    return False


def _replaced_portably(unfinished: Path, out: Path, replaceable: Collection[str]) -> bool:
    """`_replaced` where two names cannot be exchanged: for a moment, `out` does not exist."""
    with contextlib.suppress(OSError):  # not empty; rmdir checks it and removes it in one step
        out.rmdir()
        rename_new(unfinished, out)
        return True
    if not replaceable or not _holds_only(out, replaceable):
        return False
    aside = unfinished.with_name(unfinished.name + ".old")
    out.rename(aside)
    try:
        if _holds_only(aside, replaceable):
            rename_new(unfinished, out)
            shutil.rmtree(aside, ignore_errors=True)
            return True
        return False
    finally:
        if aside.exists():
            _rename_to_free_name(aside, out)


def _holds_only(folder: Path, names: Collection[str]) -> bool:
    """Whether nothing but a folder with these files, or nothing at all, has this name."""
    try:
        return not folder.is_symlink() and not foreign_names(folder, names)
    except NotADirectoryError:
        return False
    except FileNotFoundError:  # another process has just removed it
        return True


def foreign_names(folder: Path, names: Collection[str]) -> list[str]:
    """Names of everything in a folder except files with given names.

    Parameters
    ----------
    folder : Path
    names : collection of str

    Returns
    -------
    list of str
        Sorted. A folder with one of the names is foreign, because it may hold anything.
    """
    with os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in entries
            if entry.name not in names or entry.is_dir(follow_symlinks=False)
        )


def _rename_or_keep(unfinished: Path, path: Path, shown: Path) -> None:
    """Rename to `path`; if that exists, to the first free name like it, and raise."""
    kept = _rename_to_free_name(unfinished, path)
    if kept != path:
        raise OutputExistsError(shown, shown.with_name(kept.name))


def _rename_to_free_name(source: Path, path: Path) -> Path:
    """Rename to `path`, or else to the first free one of a-2.csv, a-3.csv, …; return the name."""
    stem, suffix, number, target = path.stem, path.suffix, 1, path
    while True:
        try:
            rename_new(source, target)
            return target
        except FileExistsError:
            number += 1
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG or number == 1 or len(stem) <= 20:
                raise
            stem, suffix = stem[:20], suffix[:10]
        target = path.with_name(f"{stem}-{number}{suffix}")


@contextlib.contextmanager
def _named(shown: Path) -> Iterator[None]:
    """Let errors of the system name the output, not a temporary file or nothing at all."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = _real_name(error.filename, shown)
        raise


def _real_name(filename: str | bytes | int | None, shown: Path) -> str:
    """The name that a user knows for a file that an error names."""
    if not isinstance(filename, str | bytes):
        return str(shown)
    parts = Path(os.fsdecode(filename)).parts
    for k, part in enumerate(parts):
        if part.endswith(UNFINISHED):
            return str(shown.joinpath(*parts[k + 1 :]))
    return os.fsdecode(filename)


# --------------------------------------------------------------- renames that replace nothing
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
