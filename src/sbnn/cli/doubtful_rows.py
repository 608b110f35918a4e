"""Rows to be careful about: missing cells, new values, and values outside the range of the fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sbnn._core.text import folded, listed, plural
from sbnn.cli.terminal import note, warn

if TYPE_CHECKING:
    import pandas as pd

    from sbnn.regressor.estimator import SparseBNNRegressor
    from sbnn.reports.fit import Record

Flags = dict[str, list[list[str]]]  # extrapolates, missing, unseen: names of inputs by row
N_QUESTIONS = 3
# Similarity of texts that differ by a slip: Gorlitz and Görlitz 0.86, type A and type B 0.83.
SLIP = 0.85
# What is wrong with one row, with several, and what follows from it.
WORDS = {
    "missing": ("has missing cells", "have missing cells", "the interval is wider there."),
    "unseen": (
        "has a category that the fit did not have", "have categories that the fit did not have",
        "the interval is wider there.",
    ),
    "constant": (
        "has a new value in a column that was the same in all rows of the fit",
        "have new values in columns that were the same in all rows of the fit",
        "the model cannot know the effect, and the interval does not include it.",
    ),
    "extrapolates": (
        "is outside the range of the fit", "are outside the range of the fit",
        "the interval widens with the distance, but no data support it.",
    ),
}  # fmt: skip


def flags_of(
    folder: Path, fitted: SparseBNNRegressor, inputs: pd.DataFrame, record: Record
) -> Flags:
    """Names of the inputs to be careful about, one list per row.

    Parameters
    ----------
    folder : Path
        Of the fit.
    fitted : SparseBNNRegressor
    inputs : DataFrame
        New rows.
    record : Record

    Returns
    -------
    dict of list of list of str
        extrapolates, missing and unseen. A new value of a column that was constant is unseen.
        Columns without any effect do not extrapolate.
    """
    from sbnn.reports import fit_folder
    from sbnn.reports.predictions import by_row

    ignored = {*constant_columns(fitted, record.features), *unused_columns(fitted, record.features)}
    outside = fit_folder.extrapolations(folder, inputs, record)
    outside = {name: rows for name, rows in outside.items() if name not in ignored}
    unknown = fitted.unknown_cells(inputs)
    return {"extrapolates": by_row(outside, len(inputs)), **unknown.to_dict("list")}


def constant_columns(fitted: SparseBNNRegressor, features: Sequence[str]) -> list[str]:
    """Inputs that had the same value in all rows of the fit."""
    return [name for name, same in zip(features, fitted.encoder_.constant) if same]


def unused_columns(fitted: SparseBNNRegressor, features: Sequence[str]) -> list[str]:
    """Inputs without any effect on predictions."""
    return [name for name, share in zip(features, fitted.feature_relevance_) if share == 0]


def warn_about(
    flags: Flags,
    fitted: SparseBNNRegressor,
    features: Sequence[str],
    what: str = "row",
    inputs: pd.DataFrame | None = None,
    noted: Collection[str] = (),
) -> None:
    """Say how many rows have missing cells, new values, or values outside the fit's range.

    Inputs that the model does not use do not matter, which one line says, unless they were constant
    in the fit.

    Parameters
    ----------
    flags : dict of list of list of str
        From `flags_of`.
    fitted : SparseBNNRegressor
    features : sequence of str
    what : str
        What a row is called.
    inputs : DataFrame, optional
        The rows; new categories that look like a known one misspelt are named.
    noted : collection of str
        Unused inputs that the user has been told about.
    """
    same, unused = constant_columns(fitted, features), unused_columns(fitted, features)
    both = flags["unseen"]
    named = {
        **flags,
        "constant": [[name for name in of_row if name in same] for of_row in both],
        "unseen": [[name for name in of_row if name not in same] for of_row in both],
    }
    idle = set[str]()
    for kind, (one, several, rest) in WORDS.items():
        ignored = () if kind == "constant" else unused
        used = [[name for name in of_row if name not in ignored] for of_row in named[kind]]
        idle |= {name for of_row in named[kind] for name in of_row if name in ignored}
        rows = sum(map(bool, used))
        if rows:
            counts = Counter(name for of_row in used for name in of_row)
            shown = ", ".join(f"{name!r}: {k:,}" for name, k in counts.most_common(6))
            warn(
                f"{rows:,} of {plural(len(used), what)} {one if rows == 1 else several} "
                f"({shown}{', …' if len(counts) > 6 else ''}); {rest}"
                + (_misspelt(used, inputs, fitted, features) if kind == "unseen" else "")
            )
    idle -= set(noted)
    if idle:
        note(
            f"cells of {listed([repr(name) for name in sorted(idle)])} are missing, new or cannot "
            "be read; the model does not use "
            f"{'this column' if len(idle) == 1 else 'these columns'}"
        )


def that_matter(flags: Flags, fitted: SparseBNNRegressor, features: Sequence[str]) -> Flags:
    """The flags without inputs that the model does not use; constant ones may matter."""
    same = constant_columns(fitted, features)
    ignored = {name for name in unused_columns(fitted, features) if name not in same}
    return {
        kind: [[name for name in of_row if name not in ignored] for of_row in rows]
        for kind, rows in flags.items()
    }


def _misspelt(
    unseen: Sequence[Sequence[str]],
    inputs: pd.DataFrame | None,
    fitted: SparseBNNRegressor,
    features: Sequence[str],
) -> str:
    """A question about new categories that differ from a known one by case or by a slip."""
    if inputs is None:
        return ""
    known = {name: c.counts or {} for name, c in zip(features, fitted.encoder_.columns)}
    new = dict.fromkeys(
        (name, str(inputs[name].iloc[row])) for row, names in enumerate(unseen) for name in names
    )
    # The most frequent category comes last: of those that differ in case only, it is the one meant.
    ranked = {name: sorted(counts, key=lambda c: counts[c]) for name, counts in known.items()}
    found = ((name, text, similar(text, ranked[name])) for name, text in new)
    shown = [
        f" {name!r} has {text!r}: did you mean {close!r}?" for name, text, close in found if close
    ]
    return "".join(shown[:N_QUESTIONS])


def similar(text: str, known: Sequence[str]) -> str | None:
    """The known category that a text most likely is, or None; of equal ones the last.

    Numbers must be the same, and short codes differ by case only: A2 is not A1 misspelt.

    Examples
    --------
    >>> similar("münchen", ["Köln", "München"]), similar("Munchen", ["Köln", "München"])
    ('München', 'München')
    >>> similar("type C", ["type A", "type B"]), similar("Bremen", ["Köln", "München"])
    (None, None)
    >>> similar("ACME", ["acme", "Acme"])
    'Acme'
    """
    import difflib
    import re

    by_folded = {folded(name): name for name in known[-5000:]}
    asked = folded(text)
    if asked in by_folded:
        return by_folded[asked]
    digits = re.findall(r"\d", asked)
    same = [name for name in by_folded if re.findall(r"\d", name) == digits]
    close = difflib.get_close_matches(asked, same, n=1, cutoff=SLIP)
    return by_folded[close[0]] if close else None
