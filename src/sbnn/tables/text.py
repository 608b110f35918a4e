"""Rows of a CSV or TSV file as text, with the line each row ends on.

pandas' C parser reads a file without surprises. It cannot say on which line a row is, and pads
short rows silently, so whatever is unusual (rows of other lengths, cells that span lines, an open
quotation) is read again by `csv.reader`, which knows the line numbers. Reading 50,000 rows of 20
columns as numbers takes about 1.0 s this way and about 1.4 s with `csv.reader` alone.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sbnn._core.text import plural
from sbnn.tables.cells import MORE, more
from sbnn.tables.extra_lines import count_comments, is_comment
from sbnn.tables.header import TableError, check_header

if TYPE_CHECKING:
    import pandas as pd

TABS = (".tsv", ".tab")
MAX_COMMENTS = 200  # lines above the header


class Header(NamedTuple):
    """The first row that is not blank."""

    separator: str
    cells: list[str]  # as in the file
    names: list[str]  # without surrounding spaces
    line: int  # where it ends
    body: str  # the text after it
    n_comments: int = 0  # lines above it


class Rows(NamedTuple):
    """Rows as long as the header, without blank lines and without empty rows at the end."""

    lines: list[int]  # where each row ends; the first line of a file is 1
    cells: pd.DataFrame  # strings
    n_empty: int = 0  # empty rows at the end: separators and no text, as spreadsheets write them
    n_comments: int = 0  # lines below the header that begin with #


def is_tsv(path: Path) -> bool:
    """Whether cells are separated by tabs, judged by the file's name."""
    return path.suffix.lower() in TABS


def read_header(path: Path, text: str) -> Header:
    """Find the separator and the header of a table; raise TableError if there is none."""
    first_lines = list(itertools.islice(io.StringIO(text, newline=""), MAX_COMMENTS))
    table = [line for line in first_lines if not is_comment(line)] or first_lines
    separator = "\t" if is_tsv(path) else _separator(table[:20])
    n_comments = count_comments(first_lines, separator)
    stream = io.StringIO(text, newline="")
    for _ in range(n_comments):
        stream.readline()
    rows = csv.reader(stream, delimiter=separator)
    with _csv_errors(path, rows, n_comments):
        cells = next((row for row in rows if any(cell.strip() for cell in row)), [])
    names, line = [name.strip() for name in cells], n_comments + rows.line_num
    check_header(path, names, line=line)
    return Header(separator, cells, names, line, stream.read(), n_comments)


def read_rows(path: Path, header: Header) -> Rows:
    """The rows below the header; raise TableError if their lengths differ from the header's."""
    rows = parse_quickly(header)
    return parse_by_line(path, header) if rows is None else rows


def parse_quickly(header: Header) -> Rows | None:
    """The rows as pandas' C parser reads them; None if only `parse_by_line` can be trusted."""
    import pandas as pd

    body = header.body
    if not body:
        return None
    try:
        cells = pd.read_csv(
            io.StringIO(body, newline=""),
            sep=header.separator,
            header=None,
            dtype=object,
            keep_default_na=False,
            na_filter=False,
            skip_blank_lines=False,  # a row is then a line
            low_memory=False,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError):
        return None
    ends = body.count("\n") + body.count("\r") - body.count("\r\n")
    n_lines = ends + (body[-1] not in "\r\n")
    if cells.shape != (n_lines, len(header.cells)):
        return None
    # Short rows are padded with empty cells, so a row whose last cell has text is complete.
    short = [k for k, cell in enumerate(cells.iloc[:, -1]) if not cell.strip()]
    if short:  # blank lines are left out; empty rows may count
        text = re.split(r"\r\n|\r|\n", body)
        if any(text[k].strip() for k in short):
            return None
    kept = np.setdiff1d(np.arange(n_lines), short)
    return Rows((kept + header.line + 1).tolist(), cells.iloc[kept].reset_index(drop=True))


def parse_by_line(path: Path, header: Header) -> Rows:
    """The rows as `csv.reader` reads them, line by line; wrong rows are counted and named."""
    import pandas as pd

    reader = csv.reader(io.StringIO(header.body, newline=""), delimiter=header.separator)
    lines: list[int] = []
    cells: list[list[str]] = []
    wrong: list[tuple[int, int]] = []  # line, number of cells
    n_comments = 0
    width = len(header.cells)
    with _csv_errors(path, reader, header.line):
        for row in reader:
            line = header.line + reader.line_num
            if not any(map(str.strip, row)):
                if len(row) < 2:
                    continue  # a blank line
                row = [""] * width
            if len(row) != width and is_comment(row[0]):
                n_comments += 1
            elif len(row) != width:
                wrong.append((line, len(row)))
            else:
                cells.append(row)
                lines.append(line)
    if wrong:
        _raise_for_lengths(path, header, wrong, any_right=bool(cells))
    n = len(cells)
    while n and not any(map(str.strip, cells[n - 1])):
        n -= 1
    table = pd.DataFrame(cells[:n], columns=range(width), dtype=object)
    return Rows(lines[:n], table, len(cells) - n, n_comments)


def _raise_for_lengths(
    path: Path, header: Header, wrong: list[tuple[int, int]], any_right: bool
) -> None:
    width = len(header.cells)
    line, found = wrong[0]
    hint = "."
    if header.separator == "," and found == 2 * width:
        hint = "; if numbers have decimal commas, separate the cells with semicolons."
    elif not any_right and len({n for _, n in wrong}) == 1:
        hint = ", in every row. Does every column have a name?"
    others = ", ".join(f"line {line}" for line, _ in wrong[1 : MORE + 1])
    raise TableError(
        f"{path}, line {line}: {plural(found, 'cell')}, but the header has {width}{hint}"
        f"{more(len(wrong) - 1, others, 'row')}"
    )


@contextlib.contextmanager
def _csv_errors(path: Path, reader: Any, lines_before: int = 0) -> Iterator[None]:
    try:
        yield
    except csv.Error as error:
        raise TableError(f"{path}, line {lines_before + reader.line_num}: {error}.") from error


def _separator(lines: list[str]) -> str:
    """The separator that splits header and first row into the same number of cells.

    In a tie the comma comes last, because names and numbers contain it too. `csv.Sniffer` would
    raise an error for a table of one column.
    """

    def widths(separator: str) -> list[int]:
        rows = (row for row in csv.reader(lines, delimiter=separator) if any(map(str.strip, row)))
        try:
            return [len(row) for row in itertools.islice(rows, 2)] or [0]
        except csv.Error:  # one huge cell: not the separator
            return [0]

    found = {separator: widths(separator) for separator in ";\t|,"}
    fits = [s for s, n_cells in found.items() if len(set(n_cells)) == 1 and n_cells[0] > 1]
    return max(fits or ",;\t|", key=lambda s: found[s][0])
