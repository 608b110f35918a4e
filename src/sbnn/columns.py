"""Columns of a table: their names, and which of them a command asks for."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Sequence
from pathlib import Path

MAX_FEATURES = 2000


class TableError(Exception):
    """Something about the file or the columns asked for; the text is one line for the user."""


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_header(path: Path, header: list[str], numeric_names: bool = False) -> None:
    if not header:
        raise TableError(f"{path} holds blank lines only; a header and rows are expected.")
    if not numeric_names and all(is_number(name) for name in header):
        raise TableError(
            f"{path}, line 1: all numbers, so there seems to be no header; "
            "put the names of the columns on the first line."
        )
    if len(set(header)) < len(header):
        seen: set[str] = set()
        for place, name in enumerate(header, start=1):
            if name in seen and name:
                raise TableError(
                    f"{path}, line 1, column {place}: the name {name!r} is there twice."
                )
            seen.add(name)


def select(path: Path, header: list[str], targets, features, exclude) -> list[str]:
    """The features asked for, or all columns but the targets; without those excluded."""
    known = set(header)
    chosen = None if features is None else _split("--features", features, known)
    excluded = set(_split("--exclude", exclude, known))
    for name in [*targets, *(chosen or ()), *sorted(excluded)]:
        if name not in known:
            several = "," in name and set(map(str.strip, name.split(","))) <= known
            hint = "; give --target once for each column." if several else _known(name, header)
            raise TableError(f"{path} has no column {name!r}{hint}")
    if len(set(targets)) < len(targets) or len(set(chosen or ())) < len(chosen or ()):
        raise TableError("A column was asked for twice.")
    for name in targets:
        if name in (chosen or ()):
            raise TableError(f"Column {name!r} cannot be a target and a feature.")
        if name in excluded:
            raise TableError(f"Column {name!r} cannot be a target and excluded.")
    if chosen is None:
        chosen = [name for name in header if name not in {*targets, *excluded}]
        if "" in chosen:
            place = header.index("") + 1
            raise TableError(
                f"{path}, line 1, column {place}: no name; name it, or choose columns with "
                "--features."
            )
    wanted = [name for name in header if name not in targets] if features is None else chosen
    chosen = [name for name in chosen if name not in excluded]
    if not chosen and wanted:
        raise TableError(
            f"{path}: --exclude leaves no column to predict from; exclude fewer of "
            f"{', '.join(map(repr, wanted[:6]))}{', …' if len(wanted) > 6 else ''}."
        )
    if not chosen:
        raise TableError(f"{path} has no column besides the target: nothing to predict from.")
    if len(chosen) > MAX_FEATURES:
        raise TableError(
            f"{path} has {len(chosen):,} input columns, more than the {MAX_FEATURES:,} that can "
            "be fitted; choose some with --features."
        )
    return chosen


def _split(option: str, values: Sequence[str], known: set[str]) -> list[str]:
    """Names as they are, or "a,b" → a, b; a name with a comma may stand in quotation marks."""
    out: list[str] = []
    for value in values:
        if value in known:
            out.append(value)
            continue
        names = [name.strip() for name in next(csv.reader([value], skipinitialspace=True), [])]
        if not names or "" in names:
            raise TableError(f"{option} takes names of columns, as a,b,c; got {value!r}.")
        out += names if known.intersection(names) else [value]
    return out


def _known(name: str, header: list[str]) -> str:
    """The nearest name, or all of them when they are few."""
    import difflib

    as_small = {n.lower(): n for n in reversed(header[:5000])}
    close = difflib.get_close_matches(name.lower(), as_small, n=1, cutoff=0.6)
    meant = f"; did you mean {as_small[close[0]]!r}?" if close else ""
    few = header if len(header) <= 8 else header[:5]
    if close and len(few) < len(header):
        return meant
    which = "" if len(few) == len(header) else f"{len(header):,} columns, the first "
    return f"{meant or ';'} {'It' if close else 'it'} has {which}{', '.join(map(repr, few))}."


def exclude_options(names: list[str]) -> str:
    """Options that leave these columns out, as a shell takes them."""
    simple = [name for name in names if "," not in name and '"' not in name and name.strip()]
    parts = [shlex.quote(",".join(simple))] if simple else []
    parts += [shlex.quote(name) for name in names if name not in simple]
    return " ".join(f"--exclude {part}" for part in parts)
