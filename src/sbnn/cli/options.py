"""Options of the command line: what they are called, and checks before anything is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sbnn._core.text import plural
from sbnn.cli.terminal import UsageProblem, complain, printable
from sbnn.methods.registry import CHOICES

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA.csv",
        readable=False,  # what cannot be read is told below, in one line
        help="Table of numbers: CSV, TSV or Parquet; names of the columns on the first line.",
    ),
]
Folder = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER", readable=False, help="Folder that 'sbnn fit' wrote, with --out."
    ),
]
Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target", metavar="COLUMN", help="Column to predict; may be repeated.  [required]"
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns to predict from, as a,b,c; may be repeated. All others if not given.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns to leave out, such as numbers of rows or dates; may be repeated. One without "
        'a name is "".',
    ),
]
Hidden = Annotated[
    str | None,
    typer.Option(
        metavar="SIZES",
        help="Neurons: 20; or 15,10 for two layers; or auto: many sizes are tried and the "
        "evidence chooses. If not given, sizes that suit most tables.",
    ),
]
NoiseStd = Annotated[
    str | None,
    typer.Option(
        "--noise-std",
        metavar="NUMBER",
        help="Standard deviation of the noise, where it is known: one, or one per target as 1,2. "
        "Inferred from the data if not given.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        min=0,
        max=2**31 - 1,
        metavar="NUMBER",
        help="Seed of everything random: the same seed gives the same answer.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Of DATA.csv, where it is not UTF-8; such as cp1252 or utf-16."
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def targets_of(data: Path, target: list[str] | None, encoding: str | None) -> list[str]:
    """The columns to predict; without any, the error tells which columns there are."""
    if target:
        return target
    from sbnn.tables import reader as tables

    known = tables.columns(data, encoding)
    shown = ", ".join(map(repr, known[:20])) + (", …" if len(known) > 20 else "")
    raise UsageProblem(f"--target is missing: which column is to be predicted? {data} has {shown}.")


def read(data: Path, targets: list[str], features, exclude, encoding: str | None):
    """The numbers of a table; what was guessed about it is said."""
    from sbnn.tables import reader as tables

    table = tables.read(data, targets, features or None, exclude or (), encoding=encoding)
    for note in table.notes:
        complain(note)
    for name in targets:
        if table.numbers[name].nunique() == 1:
            raise UsageProblem(
                f"{data}: column {name!r} has the same value in every row; there is nothing to "
                "predict."
            )
    return table.numbers


def spelt(method: str) -> str:
    """A method's name as the library spells it: NSBL and laplace-nsbl are understood, too."""
    return method.strip().lower().replace("-", "_")


def estimator_options(hidden, method, noise_std, seed: int, n_targets: int) -> dict[str, Any]:
    """Options of the estimator."""
    method = spelt(method)
    if method not in CHOICES:
        raise UsageProblem(f"--method must be one of {', '.join(CHOICES)}; got {method!r}.")
    noise: Any = None
    if noise_std is not None:
        noise = _list(noise_std, float, "--noise-std takes numbers above zero, as 0.1")
        if not all(0 < value < float("inf") for value in noise):
            raise UsageProblem(f"--noise-std takes numbers above zero; got {noise_std!r}.")
        if len(noise) not in (1, n_targets):
            raise UsageProblem(
                f"--noise-std: {plural(len(noise), 'number')} for {plural(n_targets, 'target')}."
            )
        noise = noise[0] if len(noise) == 1 else noise
    widths: Any = "default" if hidden is None else hidden.strip()
    if widths not in ("default", "auto"):
        widths = tuple(_list(widths, int, "--hidden takes 20, or 15,10, or auto"))
        if not all(1 <= width <= 1000 for width in widths):
            raise UsageProblem(f"--hidden takes widths from 1 to 1000; got {hidden!r}.")
    return {
        "hidden_layer_sizes": widths,
        "method": method,
        "noise_std": noise,
        "random_state": seed,
    }


def _list(text: str, kind, usage: str) -> list:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise UsageProblem(f"{usage}; got {printable(text)!r}.") from None
