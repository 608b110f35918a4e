"""Files and folders that are written whole or not at all, and never over what others wrote."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sbnn.columns import TableError

# What a fit and a comparison write.
MODEL, FIT, DATA, HELD_OUT, REPORT = (
    "model.nc", "fit.json", "training.csv", "held_out.csv", "report.html",
)  # fmt: skip
FIT_FILES = frozenset({MODEL, FIT, DATA, HELD_OUT, REPORT})
COMPARISON_FILES = frozenset({"compare.csv", "compare.json"})


def check_folder(out: Path, force: bool, files: frozenset[str]) -> None:
    """Refuse to overwrite, and with `force` to delete what is none of `files`."""
    if not out.exists() and not out.is_symlink():
        _check_place(out)
        return
    if not out.is_dir() or out.is_symlink():
        raise TableError(f"{out} is not a folder; give another name with --out.")
    _check_place(out)
    here = {path.name for path in out.iterdir()}
    if here and not force:
        raise TableError(f"{out} exists; add --force to replace it, or give another --out.")
    foreign = sorted(here - files)
    if foreign:
        raise TableError(
            f"{out} holds {foreign[0]!r}, which sbnn did not write; it is not replaced. "
            "Give another --out."
        )


def check_file(out: Path, force: bool) -> None:
    """Refuse to overwrite a file without `force`, and a folder at all."""
    if out.is_dir():
        raise TableError(f"{out} is a folder; give a file with --out.")
    if out.exists() and not force:
        raise TableError(f"{out} exists; add --force to replace it, or give another --out.")
    _check_place(out)


def _check_place(out: Path) -> None:
    """The folder that is to hold `out`, or the nearest one that exists, must take new files."""
    above = next(path for path in out.absolute().parents if path.exists())
    if not above.is_dir():
        raise TableError(f"{out} cannot be written: {above} is not a folder. Give another --out.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise TableError(f"{out} cannot be written: no right to write in {above}.")


@contextlib.contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A temporary folder beside `out` that takes its place at the end, or vanishes."""
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    aside = temporary.with_name(temporary.name + ".old")
    try:
        temporary.chmod(0o755)
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


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.absolute().parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_study(out: Path) -> None:
    """The study empties the folder of its results when its settings change: it must be its own."""
    if out.exists() and not out.is_dir():
        raise TableError(f"{out} is a file; give a folder with --out.")
    results = out / "results"
    if results.exists() and not (results / "settings.json").exists() and any(results.iterdir()):
        raise TableError(
            f"{results} exists and was not written by 'sbnn paper'; give another folder with --out."
        )
    _check_place(out / "results")
