"""Shared by the areas: outcomes, a small fit, and commands run in this process or another."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd

PROGRAM = [sys.executable, "-c", "from sbnn.cli.main import main; main()"]
QUICK_FIT = ["--target", "y", "--hidden", "1", "--method", "laplace"]
ROW_COLUMNS = ["--noise-column", "error", "--weight-column", "weight"]  # of `typed_table`


class Outcome(NamedTuple):
    """How an area ended."""

    tried: int
    handled: int
    rest: list[str]  # one line for each case that was not handled well

    @classmethod
    def of(cls, faults: Sequence[str]) -> Outcome:
        """From one text per case, empty if it was handled well."""
        rest = [text for text in faults if text]
        return cls(len(faults), len(faults) - len(rest), rest)


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


def table(n: int = 24) -> pd.DataFrame:
    """A small table: y depends on a, not on b, and is negative for half of the rows."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(n, 2))
    y = np.tanh(2 * x[:, 0]) + 0.1 * rng.normal(size=n)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y})


def typed_table(n: int = 24) -> pd.DataFrame:
    """Text, dates, times, percentages, yes or no, empty cells, standard errors and weights."""
    rng = np.random.default_rng(1)
    k = np.arange(n)
    a = rng.uniform(-1, 1, size=n)
    y = np.tanh(2 * a) + (k % 3) + 0.1 * rng.normal(size=n)
    days = pd.Timestamp("2020-02-27") + pd.to_timedelta(11 * k, unit="D")
    return pd.DataFrame(
        {
            "a": np.where(k % 7 == 3, "", np.round(a, 3).astype(str)),
            "kind": np.array(["north", "south", "west, far"])[k % 3],
            "day": days.strftime("%Y-%m-%d"),
            "hour": [f"{h}:30" for h in k % 24],
            "share": [f"{s} %" for s in 5 * (k % 11)],
            "ok": np.where(k % 2 == 0, "yes", "no"),
            "y": np.round(y, 3),
            "error": 0.1 + 0.01 * (k % 5),
            "weight": 1 + k % 3,
        }
    )


def small_fit(folder: Path) -> Path:
    """Write d.csv and new.csv to a folder, and a fit of d.csv to its subfolder `fit`."""
    shutil.copytree(_small_fit().name, folder, dirs_exist_ok=True)
    return folder / "fit"


@functools.cache
def _small_fit() -> tempfile.TemporaryDirectory:
    """The files of `small_fit`, computed once and removed at exit."""
    place = tempfile.TemporaryDirectory()
    folder = Path(place.name)
    table().to_csv(folder / "d.csv", index=False)
    table(3).drop(columns="y").to_csv(folder / "new.csv", index=False)
    done = here("fit", folder / "d.csv", *QUICK_FIT, "--out", folder / "fit")
    assert done.code == 0, done.err
    return place


def here(*arguments: Any) -> Done:
    """Run a command in this process."""
    from typer.testing import CliRunner

    from sbnn.cli.app import app

    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    err = result.stderr
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        err += f"Traceback: {result.exception!r}"
    return Done(result.exit_code, result.stdout, err)


def program(*arguments: Any, environment: Mapping[str, str] | None = None, end: str = "") -> Done:
    """Run the program; `end` is added to its line in the shell, such as 1>&-."""
    words = " ".join(f"'{word}'" for word in [*PROGRAM, *arguments])
    done = subprocess.run(
        ["sh", "-c", f"{words} {end}"], env={**os.environ, **(environment or {})},
        capture_output=True, timeout=600,
    )  # fmt: skip
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return Done(done.returncode, out, err)


def fault_of(done: Done, *codes: int) -> str:
    """What is wrong with how a command ended: not one of the codes, or not one plain line."""
    lines = [line for line in done.err.splitlines() if "warning:" not in line]
    if "Traceback" in done.err or "Exception ignored" in done.err:
        return f"Python's own text: {lines[-1][:100]}"
    if done.code not in codes:
        return f"exit code {done.code}: {(lines or [''])[-1][:100]}"
    if done.code == 2 and not (len(lines) == 1 and lines[0].startswith("sbnn: ")):
        return f"not one line: {done.err[:100]!r}"
    return ""


@contextmanager
def instant_fits(folder: Path) -> Iterator[None]:
    """Let `sbnn fit` return the fit in a folder at once, with an empty report."""
    from sbnn.reports import fit, fit_folder, page

    known = fit_folder.load(folder)
    with (
        mock.patch.object(fit, "fit", return_value=known),
        mock.patch.object(page, "render", return_value="a page"),
    ):
        yield
