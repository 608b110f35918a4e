"""Numbers as people write them in tables: decimal commas, thousands separators, percent signs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sbnn.tables.header import is_number

# Scores square the values, and the squares must neither overflow nor vanish.
LARGEST, SMALLEST = 1e150, 1e-150
Cells = Sequence[str] | np.ndarray  # strings

SPACES = "[ '’\u00a0\u202f]"  # spaces and apostrophes separate nothing but thousands
SPACED = re.compile(rf"[+-]?\d{{1,3}}({SPACES}\d{{3}})+([.,]\d+)?")
WITH_COMMAS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
WITH_POINTS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?")


class Signs(NamedTuple):
    """The signs in the numbers of a table."""

    separator: str = ","  # between cells
    comma: bool = False  # 1,5 is one and a half
    points: bool = False  # 1.234 is more than a thousand, beyond doubt


PLAIN = Signs()


def convert_plain(cells: Cells, signs: Signs) -> np.ndarray | None:
    """The numbers in a column, or None if one of its cells is not a plain number.

    Parameters
    ----------
    cells : sequence of str
    signs : Signs

    Returns
    -------
    ndarray, shape (n,), or None
    """
    if signs.comma and any("." in cell for cell in cells):
        return None
    try:
        # NumPy calls float() on each: correctly rounded, unlike pandas.to_numeric.
        values = np.asarray(cells, dtype=object).astype(float)
    except ValueError:
        return None
    if not (np.abs(values) <= LARGEST).all() or any("_" in cell for cell in cells):
        return None
    return values


def convert_each(cells: Cells, signs: Signs) -> tuple[np.ndarray, np.ndarray]:
    """The number in each cell, NaN where there is none, and whether it has a percent sign.

    12 % becomes 12. A thousands separator is accepted if all cells of the column that have it
    leave no doubt: 1,234 alone may also be a decimal comma, unless commas separate the cells.
    A cell with another decimal sign than the table's is not a number.

    Parameters
    ----------
    cells : sequence of str
    signs : Signs

    Returns
    -------
    values : ndarray, shape (n,)
    percent : ndarray of bool, shape (n,)

    Examples
    --------
    >>> convert_each(["1,234.5", "12 %", "x"], Signs())
    (array([1234.5,   12. ,    nan]), array([False,  True, False]))
    """
    quick = convert_plain(cells, signs)
    if quick is not None:
        return quick, np.zeros(len(quick), dtype=bool)
    texts = [cell.strip() for cell in cells]
    percent = np.array([text.endswith("%") for text in texts], dtype=bool)
    texts = [text[:-1].rstrip() if sign else text for text, sign in zip(texts, percent)]
    thousands = _thousands(texts, signs)
    values = np.full(len(texts), np.nan)
    for k, text in enumerate(texts):
        if not text or not (text[-1].isdigit() or text[-1] == "."):  # nan, inf, words
            continue
        if SPACED.fullmatch(text):
            text = re.sub(SPACES, "", text)
        if thousands:
            text = text.replace(thousands, "")
        if signs.comma and "." in text:
            continue
        try:
            values[k] = float(text.replace(",", ".", 1) if signs.comma else text)
        except ValueError:
            continue
        if not abs(values[k]) <= LARGEST or "_" in text:
            values[k] = np.nan
    return values, percent & ~np.isnan(values)


def _thousands(texts: Sequence[str], signs: Signs) -> str:
    """The sign that separates thousands in a column, or "" if none does beyond doubt."""
    sign, pattern = (".", WITH_POINTS) if signs.comma else (",", WITH_COMMAS)
    found = [text for text in texts if sign in text and text[-1:].isdigit()]
    if not found or not all(pattern.fullmatch(text) for text in found):
        return ""
    decimal = "," if signs.comma else "."
    clear = signs.points if signs.comma else signs.separator == ","
    clear = clear or any(text.count(sign) > 1 or decimal in text for text in found)
    return sign if clear else ""


def find_signs(columns: Iterable[Cells], separator: str) -> Signs:
    """How numbers are written: 1,5 if more of them speak for a decimal comma than for a point.

    A few cells written otherwise are errors to be named, and do not change how all others are
    read. Tables separated by tabs or bars may also write a thousand as 1,234. There, at least one
    comma must not be followed by three digits. A semicolon is used where the comma is the decimal
    sign. Columns of text do not count, whatever their commas.

    Parameters
    ----------
    columns : iterable of sequence of str
    separator : str
        Between the cells of the table.

    Returns
    -------
    Signs
    """
    columns = list(columns)
    if separator == "," or not any("," in cell for column in columns for cell in column):
        return Signs(separator)
    with_comma: list[str] = []
    clear = points = perhaps = 0  # 1.234 may be a thousand if commas are decimal signs
    for column in columns:
        cells = [cell.strip().rstrip("%").rstrip() for cell in column]
        found = [cell for cell in cells if "," in cell]
        if sum(map(is_written_number, found)) < len(found) / 2:
            continue  # words
        for cell in cells:
            if "," in cell:
                plain = re.sub(SPACES, "", cell) if SPACED.fullmatch(cell) else cell
                if marked := "." in plain and bool(WITH_POINTS.fullmatch(plain)):
                    plain = plain.replace(".", "")
                if is_number(plain.replace(",", ".", 1)):
                    with_comma.append(plain)
                    clear += marked
                elif WITH_COMMAS.fullmatch(plain):
                    points += 1
            elif WITH_POINTS.fullmatch(cell):
                perhaps += 1
            elif "." in cell and is_number(cell):
                points += 1
    against = points + (0 if clear else perhaps)
    sure = separator == ";" or any(len(cell.partition(",")[2]) != 3 for cell in with_comma)
    comma = sure and len(with_comma) > against
    return Signs(separator, comma, comma and clear > 0)


def is_written_number(cell: str) -> bool:
    """Whether a cell is meant to be a number, whatever its commas and points mean."""
    return is_number(cell.replace(",", "").replace(".", "")) or bool(SPACED.fullmatch(cell))
