"""Options of the command line: their help, and checks before anything is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sbnn._core.text import plural
from sbnn.cli import row_columns
from sbnn.cli.terminal import UsageError, note, printable
from sbnn.methods.registry import CHOICES, SAMPLING, VERIFIABLE

if TYPE_CHECKING:
    import pandas as pd

    from sbnn.tables.reader import Table

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA.csv",
        readable=False,  # the reader has a better message
        help="Table (CSV, TSV or Parquet) with column names on the first line. Columns may hold "
        "numbers, percentages, text, yes or no, dates and times.",
    ),
]
Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", readable=False, help="Folder written by 'sbnn fit --out'."),
]
Target = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="COLUMN", help="Column to predict (repeatable).  [required]"),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns to predict from, such as a,b,c (repeatable). Default: all other columns.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help='Columns to ignore, such as row IDs (repeatable). Use "" for an unnamed column.',
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns of numbers that are codes, such as a postal zone or a machine number "
        "(repeatable). Columns of text need no option.",
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Empty cells of inputs: impute fills them several times from similar rows, drop "
        "leaves out the rows, error stops.",
    ),
]
Hidden = Annotated[
    str | None,
    typer.Option(
        metavar="SIZES",
        help="Hidden neurons: 20, or 15,10 for two layers, or auto to try many sizes and let the "
        "evidence choose. The default suits most tables.",
    ),
]
NoiseStd = Annotated[
    str | None,
    typer.Option(
        "--noise-std",
        metavar="NUMBER",
        help="Standard deviation of the noise, if known: one number, or one per target as 1,2. "
        "Default: inferred from the data.",
    ),
]
Noise = Annotated[
    str,
    typer.Option(
        "--noise",
        metavar="NAME",
        help="Kind of noise: constant (Gaussian), varying (with the inputs), student_t (tolerates "
        "outliers), varying_student_t, or auto, which lets the evidence choose.",
    ),
]
NoiseColumn = Annotated[
    list[str] | None,
    typer.Option(
        "--noise-column",
        metavar="COLUMN",
        help="Column with the known standard error of the target in every row; not an input. With "
        "several targets, once for each, in the same order.",
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        "--weight-column",
        metavar="COLUMN",
        help="Column that says how many times every row counts; not an input.",
    ),
]
Seed = Annotated[
    str,
    typer.Option(metavar="NUMBER", help="Random seed: the same seed gives the same result."),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Compute the exact evidence of every optimum by sampling; takes minutes.",
    ),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="A first look: a quarter of the starts, and scores on fewer held-out rows (100 or "
        "more).",
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--time-limit",
        metavar="MINUTES",
        help="Stop after about this time and report the best result so far.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing output.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Encoding of DATA.csv if not UTF-8, such as cp1252 or utf-16."
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

MISSING = ("impute", "drop", "error")
MAX_SEED = 2**31 - 1
MAX_WIDTH = 1000


def target_columns(data: Path, target: list[str] | None, encoding: str | None) -> list[str]:
    """The columns to predict; if none is given, the error lists the columns of the table."""
    if target:
        return target
    from sbnn.tables import reader as tables

    known = tables.columns(data, encoding)
    shown = ", ".join(map(repr, known[:20])) + (", …" if len(known) > 20 else "")
    raise UsageError(f"--target is missing: which column should be predicted? {data} has {shown}.")


def read_table(
    data: Path,
    targets: Sequence[str],
    features: Sequence[str] | None,
    exclude: Sequence[str] | None,
    encoding: str | None,
    others: Sequence[str],
    categorical: Sequence[str] | None,
    missing: str,
) -> Table:
    """The columns of a table; warn about what was guessed.

    `others` are columns of standard errors and weights.
    """
    from sbnn.tables import reader as tables

    table = tables.read(
        data, targets, features or None, exclude or (), encoding=encoding, others=others,
        categorical=categorical or (), missing=missing,
    )  # fmt: skip
    for line in table.notes:
        note(line)
    for name in targets:
        if table.frame[name].nunique() == 1:
            raise UsageError(
                f"{data}: column {name!r} has the same value in every row; there is nothing to "
                "predict."
            )
    return table


def check_missing(missing: str) -> str:
    """What to do about missing cells, or a UsageError."""
    name = missing.strip().lower()
    if name not in MISSING:
        raise UsageError(f"--missing must be one of {', '.join(MISSING)}; got {missing!r}.")
    return name


def normalise_method(method: str) -> str:
    """A method's name as the library writes it: NSBL and laplace-nsbl are accepted too."""
    return method.strip().lower().replace("-", "_")


def estimator_options(
    hidden: str | None,
    method: str,
    noise_std: str | None,
    seed: str,
    n_targets: int,
    noise: str = "auto",
    missing: str = "impute",
) -> dict[str, Any]:
    """Checked arguments of `SparseBNNRegressor`."""
    method = normalise_method(method)
    if method not in CHOICES:
        raise UsageError(f"--method must be one of {', '.join(CHOICES)}; got {method!r}.")
    noise = row_columns.check_noise(noise, noise_std is not None)
    row_columns.check_noise_of_methods(noise, [method])
    return {
        "hidden_layer_sizes": _widths(hidden),
        "method": method,
        "noise_std": _noise_std(noise_std, n_targets),
        "noise": noise,
        "random_state": check_seed(seed),
        # Rows that are dropped here may be predicted later.
        "missing": "error" if missing == "error" else "impute",
    }


def whole_number(option: str, text: str) -> int:
    """The value of an option that takes a whole number, or a UsageError."""
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{option} must be a whole number; got {printable(text)!r}.") from None


def check_seed(text: str) -> int:
    """The seed, or a UsageError."""
    seed = whole_number("--seed", text)
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"--seed must be between 0 and {MAX_SEED}; got {seed}.")
    return seed


def check_folds(text: str, n_rows: int | None = None, data: Path | None = None) -> int:
    """The number of folds; UsageError for fewer than 2, or for more than rows if they are known."""
    folds = whole_number("--folds", text)
    if folds < 2:
        raise UsageError(f"--folds must be at least 2; got {folds}.")
    if n_rows is not None and folds > n_rows:
        raise UsageError(
            f"--folds {folds} exceeds the {n_rows} rows of {data}; give at most {n_rows}, which "
            "holds out one row at a time."
        )
    return folds


def _widths(hidden: str | None) -> str | tuple[int, ...]:
    if hidden is None:
        return "default"
    if hidden.strip() == "auto":
        return "auto"
    widths = tuple(_list(hidden, int, "--hidden takes 20, or 15,10, or auto"))
    if not all(1 <= width <= MAX_WIDTH for width in widths):
        raise UsageError(f"--hidden takes widths from 1 to {MAX_WIDTH}; got {hidden!r}.")
    return widths


def _noise_std(noise_std: str | None, n_targets: int) -> float | list[float] | None:
    if noise_std is None:
        return None
    usage = "--noise-std takes numbers above zero, such as 0.1"
    noise = _list(noise_std, float, usage)
    if not all(0 < value < float("inf") for value in noise):
        raise UsageError(f"{usage}; got {noise_std!r}.")
    if len(noise) not in (1, n_targets):
        raise UsageError(
            f"--noise-std has {plural(len(noise), 'number')} for {plural(n_targets, 'target')}; "
            "give one number, or one per target."
        )
    return noise[0] if len(noise) == 1 else noise


def check_noise_std(
    noise_std: float | Sequence[float] | None, frame: pd.DataFrame, targets: Sequence[str]
) -> None:
    """Raise UsageError for a standard deviation that cannot belong to its target."""
    if noise_std is None:
        return
    low, high = row_columns.NOISE_STD_LIMITS
    given = [noise_std] * len(targets) if isinstance(noise_std, float) else noise_std
    for name, value in zip(targets, given):
        spread = float(frame[name].max() - frame[name].min())
        if not low * spread <= value <= high * spread:
            raise UsageError(
                f"--noise-std {value:.3g} does not suit {name!r}, whose values span {spread:.3g}; "
                f"give a number between {low * spread:.3g} and {high * spread:.3g}."
            )


def _list(text: str, convert: Callable[[str], Any], usage: str) -> list[Any]:
    try:
        return [convert(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{usage}; got {printable(text)!r}.") from None


def check_time_limit(text: str | None, method: str) -> float | None:
    """The time limit in seconds, or a UsageError."""
    if text is None:
        return None
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < float("inf"):
        raise UsageError(
            f"--time-limit takes minutes above zero, such as 5; got {printable(text)!r}."
        )
    if method in SAMPLING:
        raise UsageError(
            f"--time-limit works with methods that do not sample; {method} samples. Leave it out, "
            "or use the default --method."
        )
    return 60.0 * minutes


def check_verify(verify: bool, method: str) -> None:
    """Raise a UsageError if the method has no Laplace approximation to verify."""
    if verify and method not in ("auto", *VERIFIABLE):
        raise UsageError(
            f"--verify checks the methods {', '.join(VERIFIABLE)}; {method} does not use the "
            "Laplace approximation. Leave out --verify."
        )
