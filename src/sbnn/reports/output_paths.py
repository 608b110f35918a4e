"""What commands write, and checks beforehand: never over what others wrote."""

from __future__ import annotations

import os
from pathlib import Path

from sbnn.tables.header import TableError

# What a fit and a comparison write.
MODEL, FIT, DATA, HELD_OUT, REPORT = (
    "model.nc", "fit.json", "training.csv", "held_out.csv", "report.html",
)  # fmt: skip
FIT_FILES = frozenset({MODEL, FIT, DATA, HELD_OUT, REPORT})
# Endings of tables that are not written.
OTHERS = frozenset({".parquet", ".pq", ".xlsx", ".xls", ".json", ".html", ".nc"})
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
    if out.suffix.lower() in OTHERS:
        raise TableError(f"{out} would be a CSV file; give a name that ends in .csv with --out.")
    if out.exists() and not out.is_file():
        raise TableError(f"{out} is not a file; without --out the table is printed.")
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
