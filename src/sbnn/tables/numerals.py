"""Numbers as people write them in tables: decimal commas, thousands separators, percent signs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from sbnn.tables.header import is_number

# Scores square the values, and the squares must neither overflow nor vanish.
LARGEST, SMALLEST = 1e150, 1e-150
Cells = Sequence[str] | np.ndarray  # strings

SPACES = "[ '’\u00a0\u202f]"  # spaces and apostrophes separate nothing but thousands
SPACED = re.compile(rf"[+-]?\d{{1,3}}({SPACES}\d{{3}})+([.,]\d+)?")
WITH_COMMAS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
WITH_POINTS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?")


def convert(cells: Cells) -> np.ndarray | None:
    """The numbers in a column, or None if one of its cells is not a plain number.

    Parameters
    ----------
    cells : sequence of str

    Returns
    -------
    ndarray, shape (n,), or None
    """
    try:
        # NumPy calls float() on each: correctly rounded, unlike pandas.to_numeric.
        values = np.asarray(cells, dtype=object).astype(float)
    except ValueError:
        return None
    if not (np.abs(values) <= LARGEST).all() or any("_" in cell for cell in cells):
        return None
    return values


def convert_each(cells: Cells, comma: bool, separator: str) -> tuple[np.ndarray, np.ndarray]:
    """The number in each cell, NaN where there is none, and whether it has a percent sign.

    12 % becomes 12. A thousands separator is accepted if all cells of the column that have it
    leave no doubt: 1,234 alone may also be a decimal comma, unless commas separate the cells.

    Parameters
    ----------
    cells : sequence of str
    comma : bool
        Whether the comma is the decimal sign.
    separator : str
        Between the cells of the table.

    Returns
    -------
    values : ndarray, shape (n,)
    percent : ndarray of bool, shape (n,)

    Examples
    --------
    >>> convert_each(["1,234.5", "12 %", "x"], False, ",")
    (array([1234.5,   12. ,    nan]), array([False,  True, False]))
    """
    quick = convert(cells)
    if quick is not None:
        return quick, np.zeros(len(quick), dtype=bool)
    texts = [cell.strip() for cell in cells]
    percent = np.array([text.endswith("%") for text in texts], dtype=bool)
    texts = [text[:-1].rstrip() if sign else text for text, sign in zip(texts, percent)]
    thousands = _thousands(texts, comma, separator)
    values = np.full(len(texts), np.nan)
    for k, text in enumerate(texts):
        if not text or not (text[-1].isdigit() or text[-1] == "."):  # nan, inf, words
            continue
        if SPACED.fullmatch(text):
            text = re.sub(SPACES, "", text)
        if thousands:
            text = text.replace(thousands, "")
        try:
            values[k] = float(text.replace(",", ".", 1) if comma else text)
        except ValueError:
            continue
        if not abs(values[k]) <= LARGEST or "_" in text:
            values[k] = np.nan
    return values, percent & ~np.isnan(values)


def _thousands(texts: Sequence[str], comma: bool, separator: str) -> str:
    """The sign that separates thousands in a column, or "" if none does beyond doubt."""
    sign, pattern = (".", WITH_POINTS) if comma else (",", WITH_COMMAS)
    found = [text for text in texts if sign in text and text[-1:].isdigit()]
    if not found or not all(pattern.fullmatch(text) for text in found):
        return ""
    decimal = "," if comma else "."
    clear = separator == "," or any(text.count(sign) > 1 or decimal in text for text in found)
    return sign if clear else ""


def decimal_comma(columns: Iterable[Cells], separator: str) -> bool:
    """Whether numbers are written 1,5: some have one comma, and none has a decimal point.

    Tables separated by tabs or bars may also write a thousand as 1,234. There, at least one comma
    must not be followed by three digits. A semicolon is used where the comma is the decimal sign.
    Columns of text do not count, whatever their commas.

    Parameters
    ----------
    columns : iterable of sequence of str
    separator : str
        Between the cells of the table.

    Returns
    -------
    bool
    """
    columns = list(columns)
    if separator == "," or not any("," in cell for column in columns for cell in column):
        return False
    with_comma: list[str] = []
    pointed = False  # 1.234, which may be a thousand if commas are decimal signs
    for column in columns:
        cells = [cell.strip().rstrip("%").rstrip() for cell in column]
        found = [cell for cell in cells if "," in cell]
        if sum(map(is_written_number, found)) < len(found) / 2:
            continue  # words
        for cell in cells:
            if "," in cell:
                with_comma.append(re.sub(SPACES, "", cell) if SPACED.fullmatch(cell) else cell)
            elif "." in cell and is_number(cell):
                if not WITH_POINTS.fullmatch(cell):
                    return False
                pointed = True
    marked = [cell for cell in with_comma if "." in cell and WITH_POINTS.fullmatch(cell)]
    if pointed and not marked:
        return False
    plain = [cell.replace(".", "") if cell in marked else cell for cell in with_comma]
    if not plain or not all(is_number(cell.replace(",", ".", 1)) for cell in plain):
        return False
    return separator == ";" or any(len(cell.partition(",")[2]) != 3 for cell in plain)


def is_written_number(cell: str) -> bool:
    """Whether a cell is meant to be a number, whatever its commas and points mean."""
    return is_number(cell.replace(",", "").replace(".", "")) or bool(SPACED.fullmatch(cell))
