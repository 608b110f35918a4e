"""Columns of a table: checks of their names, and which of them a command uses."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Sequence
from pathlib import Path

MAX_FEATURES = 2000
SIMILAR = 0.75  # names that differ by a slip: pirce and price 0.8, response and reason 0.71


class TableError(Exception):
    """A problem with a file or with the columns requested; the text is one line for the user."""


def is_number(text: str) -> bool:
    """Whether Python reads the text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_header(path: Path, header: list[str], numeric_names: bool = False, line: int = 1) -> None:
    """Raise TableError for a header that is missing, all numbers, or has a name twice."""
    if not header:
        raise TableError(f"{path} has blank lines only; expected a header and rows.")
    if not numeric_names and all(is_number(name) for name in header):
        raise TableError(
            f"{path}, line {line}: all numbers, so there seems to be no header; "
            "put the column names on the first line."
        )
    if len(set(header)) < len(header):
        seen: set[str] = set()
        for place, name in enumerate(header, start=1):
            if name in seen and name:
                raise TableError(
                    f"{path}, line {line}, column {place}: the name {name!r} appears "
                    "twice; rename one of them."
                )
            seen.add(name)


def select(
    path: Path,
    header: list[str],
    targets: Sequence[str],
    features: Sequence[str] | None,
    exclude: Sequence[str],
    others: Sequence[str] = (),
) -> list[str]:
    """The features requested, or all columns except targets and `others`; not those excluded.

    `others` hold standard errors or weights of the rows.
    """
    known = set(header)
    chosen = None if features is None else split("--features", features, known)
    excluded = set(split("--exclude", exclude, known))
    asked = dict.fromkeys([*targets, *others, *(chosen or ()), *sorted(excluded)])
    unknown = [name for name in asked if name not in known]
    if unknown:
        name = unknown[0]
        several = "," in name and set(map(str.strip, name.split(","))) <= known
        hint = "; give --target once for each column." if several else _known(unknown, header)
        raise TableError(f"{path} has no {hint if not several else f'column {name!r}' + hint}")
    if len(set(targets)) < len(targets) or len(set(chosen or ())) < len(chosen or ()):
        raise TableError("A column was given twice; name each target and feature once.")
    for name in dict.fromkeys([*targets, *others]):
        role = "a target" if name in targets else "a column of errors or weights"
        if name in targets and name in others:
            raise TableError(f"Column {name!r} cannot hold both {role} and errors or weights.")
        if name in (chosen or ()):
            raise TableError(f"Column {name!r} cannot be both {role} and a feature.")
        if name in excluded:
            raise TableError(f"Column {name!r} cannot be both {role} and excluded.")
    used = {*targets, *others}
    if chosen is None:
        chosen = [name for name in header if name not in used | excluded]
    wanted = [name for name in header if name not in used] if features is None else chosen
    chosen = [name for name in chosen if name not in excluded]
    if not chosen and wanted:
        raise TableError(
            f"{path}: --exclude leaves no column to predict from; exclude fewer of "
            f"{', '.join(map(repr, wanted[:6]))}{', …' if len(wanted) > 6 else ''}."
        )
    if not chosen:
        raise TableError(f"{path} has no column except the target: nothing to predict from.")
    if len(chosen) > MAX_FEATURES:
        raise TableError(
            f"{path} has {len(chosen):,} input columns, more than the {MAX_FEATURES:,} that can "
            "be fitted; choose some with --features."
        )
    return chosen


def split(option: str, values: Sequence[str], known: set[str]) -> list[str]:
    """Names as they are, or "a,b" → a, b; a name with a comma may be in quotation marks."""
    out: list[str] = []
    with_commas = [name for name in known if "," in name]
    for value in values:
        if value in known:
            out.append(value)
            continue
        names = [name.strip() for name in next(csv.reader([value], skipinitialspace=True), [])]
        if not names or "" in names:
            raise TableError(f"{option} takes names of columns, such as a,b,c; got {value!r}.")
        # one name with a comma, misspelt, or several names?
        one = not known.intersection(names) and nearest(value, with_commas) is not None
        out += [value] if one else names
    return out


def without_unnamed(
    path: Path, header: list[str], features: Sequence[str], first: Sequence[str] = ()
) -> tuple[list[str], str]:
    """The features that have a name, and a note about a column that was ignored.

    A first column without a name is ignored if its cells `first` count the rows, as the index does
    that pandas writes. Any other column without a name is an error.
    """
    if "" not in features:
        return list(features), ""
    place = header.index("")
    named = [name for name in features if name]
    count = [int(c) if c.strip().isdecimal() and len(c) < 20 else -1 for c in first]
    counts = bool(count) and count == list(range(count[0], count[0] + len(count)))
    if place == 0 and header.count("") == 1 and counts and count[0] in (0, 1) and named:
        return named, (
            f"{path}: ignoring the first column, which has no name and counts the rows (the index "
            "that pandas writes)."
        )
    index = "; perhaps it is the index that pandas writes" if place == 0 else ""
    raise TableError(
        f'{path}, column {place + 1} has no name{index}; name it, or ignore it with --exclude "".'
    )


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The one of `names` that is most similar to `name`, ignoring case; None if none is.

    Examples
    --------
    >>> nearest("Pirce", ["area", "price"]), nearest("temp", ["temperature", "time"])
    ('price', 'temperature')
    >>> nearest("response", ["reason", "rate"]) is None
    True
    """
    import difflib

    asked, by_lower = name.lower(), {n.lower(): n for n in reversed(names[:5000])}
    close = difflib.get_close_matches(asked, by_lower, n=1, cutoff=SIMILAR)
    if not close:  # a name without its unit, or cut short
        close = [n for n in by_lower if min(len(n), len(asked)) > 2 and (n in asked or asked in n)]
        close = [] if len(close) > 1 else close
    return by_lower[close[0]] if close else None


def _known(unknown: list[str], header: list[str]) -> str:
    """Unknown names, the most similar ones, and all columns of the table if they are few."""
    close = [nearest(name, header) for name in unknown[:8]]
    asked = ", ".join(map(repr, unknown[:8]))
    asked += f" and {len(unknown) - 8} more" if len(unknown) > 8 else ""
    out = f"column{'s' if len(unknown) > 1 else ''} {asked}"
    meant = ", ".join(repr(name) for name in close if name is not None)
    out += f"; did you mean {meant}?" if meant else ""
    few = header if len(header) <= 8 else header[:5]
    if meant and len(few) < len(header):
        return out
    if len(header) == 1 and " " in header[0]:
        return f"{out}; it has one, {header[0]!r}: separate cells with commas, semicolons or tabs."
    which = "" if len(few) == len(header) else f"{len(header):,} columns, the first "
    return f"{out}{' It' if meant else '; it'} has {which}{', '.join(map(repr, few))}."


def exclude_options(names: list[str]) -> str:
    """Options that exclude these columns, quoted for a shell."""
    simple = [name for name in names if "," not in name and '"' not in name and name.strip()]
    parts = [shlex.quote(",".join(simple))] if simple else []
    parts += [shlex.quote(name) for name in names if name not in simple]
    return " ".join(f"--exclude {part}" for part in parts)
