"""`sbnn next`: where to measure next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sbnn._core.text import listed, number, plural
from sbnn.cli import options as opt
from sbnn.cli.doubtful_rows import Flags, constant_columns, flags_of, unused_columns, warn_about
from sbnn.cli.streams import write_output
from sbnn.cli.terminal import UsageError, echo, error_handling, note, print_json, printable
from sbnn.cli.written_cells import check_comma, plain_number, read_limits, written

if TYPE_CHECKING:
    import pandas as pd

    from sbnn.regressor.estimator import SparseBNNRegressor
    from sbnn.reports.fit import Record
    from sbnn.tables.reader import Table

GOALS = ("accuracy", "minimum", "maximum")
RANGES = "COLUMN=LOW:HIGH, COLUMN=A,B for categories, or COLUMN=VALUE"
# How the library's messages name what are options here.
OPTIONS = {"`ranges`": "--range", "`candidates`": "--candidates", "`n`": "--n"}


def next_measurement(
    model: opt.Folder,
    n: Annotated[
        str, typer.Option("--n", metavar="NUMBER", help="How many rows to suggest.")
    ] = "5",
    goal: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="accuracy reduces the uncertainty of predictions; minimum and maximum look for "
            "the smallest or largest value of the target.",
        ),
    ] = "accuracy",
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="COLUMN=LOW:HIGH",
            help="Where a column can be set; COLUMN=A,B for categories, COLUMN=VALUE to hold one "
            "value (repeatable). Default: the range of the training data.",
        ),
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Table of rows to choose from. Default: any row in the ranges."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV file to write. Default: print the table."),
    ] = None,
    seed: opt.Seed = "0",
    force: opt.Force = False,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Suggest the next measurements.

    Run this when another measurement is expensive: it says which inputs to set, what to expect
    there, and how much the measurements would help. Suggestions of one run belong together; each
    takes into account what the ones above it will show. Measure them, add the rows to the table,
    fit again, and ask again. Numbers and dates are written as in the table of the fit.

    The column gain is the share of the average variance of predictions that a row removes, in
    addition to the rows above it; with --goal minimum or maximum, the expected improvement on the
    best row measured so far, in the units of the target.
    """
    with error_handling(debug):
        from sbnn.reports import fit_folder
        from sbnn.reports.output_paths import check_file

        if goal not in GOALS:
            raise UsageError(f"--goal must be one of {', '.join(GOALS)}; got {printable(goal)!r}.")
        count, state = opt.whole_number("--n", n), opt.check_seed(seed)
        if out is not None:
            check_file(out, force)
        record = fit_folder.read_record(model)
        limits = _ranges(ranges or [], record, model)
        fitted = fit_folder.read_model(model)
        same = constant_columns(fitted, record.features)
        unused = [name for name in unused_columns(fitted, record.features) if name not in same]
        table = None if candidates is None else _table(candidates, record, unused)
        rows = None if table is None else table.frame[record.features]
        if rows is not None:
            rows = _complete(rows, fitted)
            flags = flags_of(model, fitted, rows, record)
            warn_about(flags, fitted, record.features, "candidate", rows)
        try:
            found = fitted.suggest(count, rows, limits, goal, state)
        except ValueError as error:
            text = str(error)
            for name, option in OPTIONS.items():
                text = text.replace(name, option)
            raise UsageError(text) from None
        if rows is None:
            flags = _in_columns(flags_of(model, fitted, found[record.features], record), limits)
            warn_about(flags, fitted, record.features, "suggested row")
        unused = [name for name in unused if name not in limits]
        if rows is not None or len(unused) == len(record.features):
            unused = []
        held = [name for name in same if rows is None and name not in limits]
        whole = None if table is None else table.whole
        _answer(_named(found, record), record, goal, out, force, as_json, unused, whole, held)


def _ranges(given: list[str], record: Record, folder: Path) -> dict[str, Any]:
    """Limits or categories by column."""
    out: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise UsageError(f"--range takes {RANGES}; got {printable(text)!r}.")
        if name not in record.features:
            known = ", ".join(map(repr, record.features[:20]))
            raise UsageError(f"--range: the fit has no input {printable(name)!r}; it has {known}.")
        if name in out:
            raise UsageError(f"--range is given twice for {printable(name)!r}; give one range.")
        kind = record.columns[name]["kind"]
        if kind == "category":
            out[name] = value.split(",")
            continue
        ends = _ends(value, kind)
        if len(ends) > 2 or not all(ends):
            raise UsageError(f"--range takes {RANGES}; got {printable(text)!r}.")
        out[name] = read_limits(name, ends, record)
        if len(ends) == 1 and "," in value and kind in ("number", "percent"):
            check_comma(name, value, out[name][0], _seen(name, record, folder))
    return out


def _seen(name: str, record: Record, folder: Path) -> list[float]:
    """The known numbers of a column in the fit; empty if the folder has no table."""
    from sbnn.reports.fit_folder import training_inputs

    inputs = training_inputs(folder, record)
    return [] if inputs is None else inputs[name].dropna().tolist()


def _ends(value: str, kind: str) -> list[str]:
    """The texts of the two ends of a range, or of the one value in it."""
    if kind == "boolean":
        return value.replace(",", ":").split(":")
    parts = value.split(":")
    if len(parts) == 1 or (kind == "time" and len(parts) < 4):
        return [value]
    half = len(parts) // 2  # 08:00:12:30 is from 8:00 to 12:30
    return [":".join(parts[:half]), ":".join(parts[half:])] if len(parts) % 2 == 0 else parts


def _table(candidates: Path, record: Record, unused: Sequence[str]) -> Table:
    """Candidates from a file; their index is the line of the file."""
    from sbnn.reports.columns import signs_of, types_of
    from sbnn.tables import reader as tables

    table = tables.read(
        candidates, (), record.features, min_rows=1, whole=True,
        types=types_of(record.columns), signs=signs_of(record), ignored=unused,
    )  # fmt: skip
    for line in table.notes:
        note(line)
    return table


def _complete(rows: pd.DataFrame, fitted: SparseBNNRegressor) -> pd.DataFrame:
    """The candidates whose cells are known to the model in all columns that it uses."""
    unused = set(unused_columns(fitted, list(rows)))
    ignored = unused.union(constant_columns(fitted, list(rows)))  # there, a warning follows
    known = [
        unused.issuperset(missing) and ignored.issuperset(unseen)
        for missing, unseen in fitted.unknown_cells(rows).to_numpy()
    ]
    if not any(known):
        raise UsageError(
            "Every candidate has a missing cell, or a category that the fit did not have, in a "
            "column that the model uses; fill the cells in."
        )
    if not all(known):
        left_out = plural(known.count(False), "candidate")
        note(f"{left_out} with missing cells or categories that the fit did not have left out")
    return rows[known]


def _in_columns(flags: Flags, chosen: Collection[str]) -> Flags:
    """Flags of some columns: those with a range of their own may leave that of the data."""
    return {
        kind: [[name for name in row if name in chosen] for row in rows]
        for kind, rows in flags.items()
    }


def _named(found: pd.DataFrame, record: Record) -> pd.DataFrame:
    """Columns with the names of the targets."""
    names = {}
    for part in ("mean", "std"):
        for k, target in enumerate(record.targets):
            mine = f"predicted_{part}" if len(record.targets) == 1 else f"predicted_{part}_{k}"
            names[mine] = f"{target}_{part}"
    return found.rename(columns={**names, "index": "line"})


def _answer(
    found: pd.DataFrame,
    record: Record,
    goal: str,
    out: Path | None,
    force: bool,
    as_json: bool,
    unused: Collection[str],
    whole: pd.DataFrame | None = None,
    held: Sequence[str] = (),
) -> None:
    """Write and print the suggestions; `whole` are the candidates as in their file.

    `held` are columns that were the same in all rows of the fit.
    """
    from sbnn._core.files.atomic import write_text
    from sbnn.reports.columns import signs_of
    from sbnn.tables.text import is_tsv

    sentence = _sentence(found, record, goal)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        separator = "\t" if is_tsv(out) else signs_of(record).separator
        rows = _as_in_file(written(found, record, digits=6), found, record, whole)
        write_text(out, rows.to_csv(index=False, sep=separator), force)
    if as_json:
        shown = found.astype({c: str for c in found if found[c].dtype.kind not in "ifb"})
        shown = _as_in_file(shown, found, record, whole, inputs=False)
        print_json(
            {
                "goal": goal,
                "suggestions": shown.to_dict("records"),
                "expected_gain": float(found["gain"].sum()),
                "sentence": sentence,
                "out": None if out is None else str(out),
            }
        )
        return
    if out is None:
        shown = written(found.drop(columns=list(unused)), record, digits=4)
        shown["gain"] = _gains(found["gain"], goal, signs_of(record).decimal)
        shown = _as_in_file(shown, found, record, whole)
        write_output(shown.to_string(index=False) + "\n\n")
    else:
        echo(f"{plural(len(found), 'row')} suggested: {out}")
    echo(sentence)
    used = [name for name in record.features if name in found and name not in unused]
    if found[used].astype(str).duplicated().any() and "line" not in found:
        echo("Rows with the same inputs are repeated measurements, which average the noise.")
    if held:
        names, it = listed([repr(name) for name in held]), "it" if len(held) == 1 else "them"
        echo(
            f"Leave {names} as in all rows of the fit: what another value of {it} would change is "
            "not known."
        )
    if unused:
        names = listed([repr(name) for name in unused])
        them = "it" if len(unused) == 1 else "them"
        echo(f"Any value will do for {names}: the model does not use {them}.")


def _as_in_file(
    shown: pd.DataFrame,
    found: pd.DataFrame,
    record: Record,
    whole: pd.DataFrame | None,
    inputs: bool = True,
) -> pd.DataFrame:
    """With all columns of the candidates' file; `inputs` too are written as there."""
    if whole is None:
        return shown
    import pandas as pd

    cells = whole.loc[found["line"]].set_axis(shown.index, axis=0)
    cells.columns = [str(name).strip() for name in cells]
    added = shown.drop(columns=[name for name in record.features if name in shown])
    others = cells.drop(columns=[name for name in cells if name in added])
    if not inputs:
        others = others.drop(columns=record.features).astype(str).join(shown[record.features])
    return pd.concat([shown[["line"]], others, added.drop(columns="line")], axis=1)


def _gains(gains: pd.Series, goal: str, decimal: str) -> list[str]:
    shown = [
        f"{100 * gain:.1f} %" if goal == "accuracy" else plain_number(gain, 3) for gain in gains
    ]
    return [text.replace(".", decimal) for text in shown]


def _sentence(found: pd.DataFrame, record: Record, goal: str) -> str:
    """What to expect from all suggested rows together."""
    total, rows = float(found["gain"].sum()), plural(len(found), "row")
    if goal == "accuracy":
        less = 1.0 - max(1.0 - total, 0.0) ** 0.5
        return (
            f"Measuring {'this' if len(found) == 1 else 'these'} {rows} would reduce the average "
            f"variance of the predicted function by about {100 * total:.0f} % (its standard "
            f"deviation by {100 * less:.0f} %), if the model is right."
        )
    best = "lowest" if goal == "minimum" else "highest"
    if total <= 0.0:
        return (
            f"No row is expected to improve on the {best} value of {record.targets[0]!r} at the "
            f"rows of the fit; these have the {best} expected values. Are the ranges too narrow?"
        )
    return (
        f"The best of {'this' if len(found) == 1 else 'these'} {rows} is expected to improve on "
        f"the {best} value of {record.targets[0]!r} at the rows of the fit by "
        f"{number(total)}, noise left out."
    )
