"""Numbers as people write them in tables: decimal commas, thousands, percent and currency signs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sbnn.tables.header import is_number

# Scores square the values, and the squares must neither overflow nor vanish.
LARGEST, SMALLEST = 1e150, 1e-150
Cells = Sequence[str] | np.ndarray  # strings

SPACES = "[ '’\u00a0\u202f]"  # spaces and apostrophes separate nothing but thousands
SPACED = re.compile(rf"[+-]?\d{{1,3}}({SPACES}\d{{3}})+([.,]\d+)?")
# No thousands begin with a zero: 0,250 is a quarter.
WITH_COMMAS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
WITH_POINTS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?")
THOUSANDS = {",": WITH_COMMAS, ".": WITH_POINTS}
OTHER = {",": ".", ".": ","}
_CURRENCY = r"(US\$|[$€£¥₹]|USD|EUR|GBP|CHF)"
SAME_CURRENCY = {"US$": "$", "USD": "$", "EUR": "€", "GBP": "£"}
AMOUNT = re.compile(rf"(?P<sign>[+-]?){_CURRENCY}\s?(?P<a>[+-]?[\d.,].*)|(?P<b>.*\d)\s?{_CURRENCY}")


class Signs(NamedTuple):
    """The signs in the numbers of a table."""

    separator: str = ","  # between cells
    comma: bool = False  # 1,5 is one and a half
    thousands: bool = False  # the sign that is not decimal marks thousands, beyond doubt
    known: bool = False  # shown by numbers: of this table, or of the fit whose inputs it has

    @property
    def decimal(self) -> str:
        return "," if self.comma else "."


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


def convert_each(cells: Cells, signs: Signs, currency: str = "") -> tuple[np.ndarray, np.ndarray]:
    """The number in each cell, NaN where there is none, and whether it has a percent sign.

    12 % becomes 12, and $12 too; an amount in another currency than the column's is not a number,
    because the rate is not known. A thousands separator is accepted if all cells of the column that
    have it leave no doubt: 1,234 alone may also be a decimal comma, unless commas separate the
    cells or the rest of the table shows that they mark thousands. A cell with another decimal sign
    than the table's is not a number.

    Parameters
    ----------
    cells : sequence of str
    signs : Signs
    currency : str
        Of the column, from `currency_of`; the most frequent one of the cells if empty.

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
    texts = _amounts(texts, currency or most_frequent_currency(texts))
    mark = OTHER[signs.decimal] if _has_thousands(texts, signs) else ""
    values = np.full(len(texts), np.nan)
    for k, text in enumerate(texts):
        if not text or not (text[-1].isdigit() or text[-1] == "."):  # nan, inf, words
            continue
        if SPACED.fullmatch(text):
            text = re.sub(SPACES, "", text)
        if mark and THOUSANDS[mark].fullmatch(text):
            text = text.replace(mark, "")
        if signs.comma and "." in text:
            continue
        try:
            values[k] = float(text.replace(",", ".", 1) if signs.comma else text)
        except ValueError:
            continue
        if not abs(values[k]) <= LARGEST or "_" in text:
            values[k] = np.nan
    return values, percent & ~np.isnan(values)


def bare(text: str) -> str:
    """A cell without its sign of currency.

    Examples
    --------
    >>> bare("-$1,234"), bare("12,50 €"), bare("12 m")
    ('-1,234', '12,50', '12 m')
    """
    found = _amount(text)
    return text if found is None else found["b"] or found["sign"] + found["a"]


def _amount(text: str) -> re.Match[str] | None:
    if not text or (text[0].isdigit() and text[-1].isdigit()):
        return None
    return AMOUNT.fullmatch(text)


def currency_of(text: str) -> str:
    """The currency of an amount, "" if it has none; the sign stands for all its names.

    Examples
    --------
    >>> currency_of("12,50 EUR"), currency_of("-$1,234"), currency_of("12 m")
    ('€', '$', '')
    """
    found = _amount(text.strip())
    name = "" if found is None else found[2] or found[5]
    return SAME_CURRENCY.get(name, name)


def most_frequent_currency(cells: Cells) -> str:
    """The currency of most amounts in a column, the first of equally frequent ones, or ""."""
    found = Counter(map(currency_of, cells))
    del found[""]
    return found.most_common(1)[0][0] if found else ""


def _amounts(texts: list[str], currency: str) -> list[str]:
    """Cells without their sign of currency, except those with another one."""
    return [bare(text) if currency_of(text) == currency else text for text in texts]


def _has_thousands(texts: Sequence[str], signs: Signs) -> bool:
    """Whether thousands are marked in a column, beyond doubt, in all but a few wrong cells."""
    mark = OTHER[signs.decimal]
    found = [text for text in texts if mark in text and text[-1:].isdigit()]
    fits = [text for text in found if THOUSANDS[mark].fullmatch(text)]
    clear = signs.thousands or (mark == "," == signs.separator)
    clear = clear or any(text.count(mark) > 1 or signs.decimal in text for text in fits)
    return clear and 2 * len(fits) > len(found)


class Evidence(NamedTuple):
    """How many numbers of a table speak for a decimal sign, here the comma."""

    strong: int = 0  # 1.234,5 or 1.234.567: the other sign marks thousands
    sure: int = 0  # 1,5
    perhaps: int = 0  # 1,234: may also be above a thousand
    consistent: bool = False  # a column has 1,5 and no points; none has 1,5 beside 1.234

    @property
    def certain(self) -> int:
        return self.strong + self.sure

    @property
    def settled(self) -> bool:
        """Whether the other sign marks thousands if no number speaks against it."""
        return self.strong > 0 or self.consistent


def find_signs(columns: Iterable[Cells], separator: str, fit: Signs | None = None) -> Signs:
    """How numbers are written, found from all numbers of a table.

    1,5 shows a decimal comma, 1.5 a decimal point, 1.234,5 and 1,234.5 also thousands; 1,234 and
    1.234 may be either, and follow the rest of the table. Where cells contradict each other, the
    more frequent sign is taken: a few cells written otherwise are errors to be named, and do not
    change how all others are read. If all numbers are like 1,234, the comma is decimal where
    semicolons separate the cells; otherwise it is an error. Columns of text do not count, whatever
    their commas.

    Parameters
    ----------
    columns : iterable of sequence of str
    separator : str
        Between the cells of the table.
    fit : Signs, optional
        Those of the table that a model was fitted to. They are taken unless a number, or commas
        between the cells, contradict them: few rows may have no other numbers than 1.234.

    Returns
    -------
    Signs

    Examples
    --------
    >>> find_signs([["1,234", "12"], ["0.5", "2.5"]], ";")
    Signs(separator=';', comma=False, thousands=True, known=False)
    >>> find_signs([["1.234.567", "12"], ["2,5", "3"]], ";")
    Signs(separator=';', comma=True, thousands=True, known=False)
    """
    columns = list(columns)
    own = _own_signs(columns, separator)
    if fit is None or not fit.known:
        return own
    numbers = [found for found in map(_with_signs, columns) if found]
    commas, points = _evidence(numbers, ","), _evidence(numbers, ".")
    agree, differ = (commas, points) if fit.comma else (points, commas)
    if agree.certain:
        other = own.comma != fit.comma
    else:
        other = differ.certain > 0 or (fit.comma and separator == ",")
    if other:
        return own
    thousands = fit.thousands or (own.thousands and own.comma == fit.comma)
    return Signs(separator, fit.comma, thousands, known=True)


def _own_signs(columns: Sequence[Cells], separator: str) -> Signs:
    """The signs of a table without regard to others."""
    if separator == "," or not any(
        "," in cell or cell.count(".") > 1 for column in columns for cell in column
    ):
        return Signs(separator)
    numbers = [found for found in map(_with_signs, columns) if found]
    commas, points = _evidence(numbers, ","), _evidence(numbers, ".")
    if commas.settled and not points.certain:
        return Signs(separator, True, True)
    if points.settled and not commas.certain:
        return Signs(separator, False, True)
    against = points.certain + (0 if commas.strong else points.perhaps)
    comma = commas.certain + commas.perhaps > against
    comma = comma and (separator == ";" or commas.certain > 0)
    return Signs(separator, comma, comma and commas.strong > 0)


def _with_signs(column: Cells) -> list[str]:
    """The cells of a column that have commas or points; none if most of them are words."""
    some = (cell.strip().rstrip("%").rstrip() for cell in column if "," in cell or "." in cell)
    cells = list(map(bare, some))
    if sum(map(is_written_number, cells)) < len(cells) / 2:
        return []
    return [re.sub(SPACES, "", cell) if SPACED.fullmatch(cell) else cell for cell in cells]


def _evidence(columns: Sequence[Sequence[str]], decimal: str) -> Evidence:
    mark = OTHER[decimal]
    strong = sure = perhaps = 0
    alone, mixed = False, False
    for cells in columns:
        marked = [cell for cell in cells if mark in cell]
        fits = [cell for cell in marked if THOUSANDS[mark].fullmatch(cell)]
        strong += sum(decimal in cell or cell.count(mark) > 1 for cell in fits)
        others = [cell for cell in cells if decimal in cell and mark not in cell]
        doubtful = sum(
            bool(THOUSANDS[decimal].fullmatch(c)) and c.count(decimal) == 1 for c in others
        )
        here = sum(is_number(cell.replace(decimal, ".")) for cell in others) - doubtful
        sure, perhaps = sure + here, perhaps + doubtful
        alone, mixed = alone or (here > 0 and not marked), mixed or (here > 0 and bool(marked))
    return Evidence(strong, sure, perhaps, alone and not mixed)


def is_written_number(cell: str) -> bool:
    """Whether a cell is meant to be a number, whatever its commas and points mean."""
    return is_number(cell.replace(",", "").replace(".", "")) or bool(SPACED.fullmatch(cell))
