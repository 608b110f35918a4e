"""Checks of output paths before a command runs: never overwrite other files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from sbnn._core.files.atomic import foreign_names
from sbnn.tables.header import TableError

# Files written by a fit and by a comparison.
MODEL, FIT, DATA, HELD_OUT, REPORT = (
    "model.nc", "fit.json", "training.csv", "held_out.csv", "report.html",
)  # fmt: skip
FIT_FILES = frozenset({MODEL, FIT, DATA, HELD_OUT, REPORT})
# Suffixes of formats that are not written.
OTHERS = frozenset({".parquet", ".pq", ".xlsx", ".xls", ".json", ".html", ".nc"})
COMPARISON_FILES = frozenset({"compare.csv", "compare.json"})

# Folders are created recursively.
MOST_NEW_FOLDERS = 100


def check_folder(out: Path, force: bool, files: frozenset[str]) -> None:
    """Raise unless `out` is a folder that a command may write.

    Parameters
    ----------
    out : Path
    force : bool
        Allow an existing folder if it holds nothing but `files`.
    files : frozenset of str
        Names of the files that the command writes.

    Raises
    ------
    TableError
        If the folder exists, is not a folder, or cannot be written.
    """
    _check_place(out)
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir() or out.is_symlink():
        raise TableError(f"{out} is not a folder; give another name with --out.")
    try:
        empty, foreign = not any(out.iterdir()), foreign_names(out, files)
    except OSError as error:
        raise TableError(f"{out} cannot be read: {error.strerror}. Give another --out.") from error
    if not empty and not force:
        raise TableError(f"{out} exists; add --force to replace it, or give another --out.")
    if foreign:
        raise TableError(
            f"{out} holds {foreign[0]!r}, which sbnn did not write; it is not replaced. "
            "Give another --out."
        )


def check_file(out: Path, force: bool) -> None:
    """Raise unless `out` is a CSV file that a command may write.

    Parameters
    ----------
    out : Path
    force : bool
        Allow an existing file.

    Raises
    ------
    TableError
        If the file exists, has another format, or cannot be written.
    """
    _check_name(out)
    if out.is_dir():
        raise TableError(f"{out} is a folder; give a file with --out.")
    if out.suffix.lower() in OTHERS:
        raise TableError(f"{out} would be a CSV file; give a name that ends in .csv with --out.")
    if out.exists() and not out.is_file():
        raise TableError(f"{out} is not a file; without --out the table is printed.")
    if (out.exists() or out.is_symlink()) and not force:
        raise TableError(f"{out} exists; add --force to replace it, or give another --out.")
    _check_place(out)


def _check_name(out: Path) -> None:
    """Raise unless the system can have a file of this name."""
    above = next((path for path in out.absolute().parents if os.path.lexists(path)), Path("/"))
    missing = out.absolute().relative_to(above).parts
    if len(missing) > MOST_NEW_FOLDERS:
        raise TableError(
            f"--out would create {len(missing)} folders, one in another; give a shorter name."
        )
    try:
        for part in missing:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                (above / part).lstat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TableError(f"{out} cannot be written: {reason}. Give another --out.") from error


def _check_place(out: Path) -> None:
    """Raise unless the folder of `out`, or its nearest existing parent, can be written to."""
    _check_name(out)
    if out.resolve().parent == out.resolve():
        raise TableError(f"{out} is the root of the file system; give another --out.")
    above = next(path for path in out.absolute().parents if path.exists())
    if not above.is_dir():
        raise TableError(f"{out} cannot be written: {above} is not a folder. Give another --out.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise TableError(f"{out} cannot be written: no permission to write in {above}.")
    try:  # some file systems, such as /proc, grant permission and still cannot be written to
        os.rmdir(tempfile.mkdtemp(prefix=".sbnn-", dir=above))
    except OSError as error:
        raise TableError(
            f"{out} cannot be written: no folder can be created in {above} ({error.strerror}). "
            "Give another --out."
        ) from error


def check_study(out: Path) -> None:
    """Raise unless `out` suits the study, which empties its results when its settings change."""
    if out.exists() and not out.is_dir():
        raise TableError(f"{out} is a file; give a folder with --out.")
    results = out / "results"
    if results.exists() and not (results / "settings.json").exists() and any(results.iterdir()):
        raise TableError(
            f"{results} exists and was not written by 'sbnn paper'; give another folder with --out."
        )
    _check_place(out / "results")
