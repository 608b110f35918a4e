"""Numbers, durations and names formatted for people: only digits that are significant."""

from __future__ import annotations

import datetime
import math
import re
import shlex
from collections.abc import Sequence
from typing import Any

NO_BREAK = "\N{NO-BREAK SPACE}"
# Spellings of our own characters for streams that cannot encode them.
ASCII = {
    "−": "-", "–": "-", "—": "-", "±": "+/-", "×": "x", "·": "*", "…": "...", "∞": "inf",
    "“": '"', "”": '"', "‘": "'", "’": "'", "→": "->", "≤": "<=", "≥": ">=", "≈": "~",
    "²": "^2", "√": "sqrt", NO_BREAK: " ", "\N{NARROW NO-BREAK SPACE}": " ", "�": "?",
    "α": "alpha", "β": "beta", "γ": "gamma", "σ": "sigma", "ν": "nu", "∂": "d", "Σ": "sum",
}  # fmt: skip


def ascii_spelling(error: UnicodeError) -> tuple[str, int]:
    """Error handler of `codecs`: spell characters that cannot be encoded, or write a "?".

    Parameters
    ----------
    error : UnicodeEncodeError

    Returns
    -------
    text : str
        What is written instead.
    position : int
        Where encoding continues.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(ASCII.get(c, "?") for c in characters), error.end


def number(value: Any, digits: int = 3) -> str:
    """A number with significant `digits` and a true minus sign; – for None and NaN.

    Parameters
    ----------
    value : Any
        Numbers are formatted, other values converted by `str`.
    digits : int

    Returns
    -------
    str

    Examples
    --------
    >>> number(-0.12345), number(12345.6), number(None)
    ('−0.123', '12,346', '–')
    """
    if hasattr(value, "item"):  # NumPy's
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return fixed(value, 0)
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if 10.0 ** min(digits, 3) - 0.5 <= abs(value) < 1e6:  # 12,346 rather than 1.23e+04
        return fixed(value, 0)
    return f"{value:.{digits}g}".replace("-", "−")


def fixed(value: float, decimals: int) -> str:
    """A number with the given number of decimals; zero has no sign.

    Parameters
    ----------
    value : float
    decimals : int

    Returns
    -------
    str

    Examples
    --------
    >>> fixed(-1234.56, 1), fixed(-0.01, 1)
    ('−1,234.6', '0.0')
    """
    text = f"{value:,.{decimals}f}"
    return text.lstrip("-") if not any(c in "123456789" for c in text) else text.replace("-", "−")


def decimals_of(error: float | None) -> int | None:
    """Significant decimals of a number with this standard error; None if it is unknown.

    The error keeps one digit, or two if the first is a 1: it is rarely known more precisely.
    """
    if error is None or not math.isfinite(error) or error <= 0:
        return None
    exponent = math.floor(math.log10(error))
    digits = 1 if error / 10.0**exponent >= 1.95 else 2
    return max(digits - 1 - exponent, 0)


def rounded(value: float, error: float | None) -> str:
    """A number with the digits its standard error justifies; three if there is none.

    Parameters
    ----------
    value : float
    error : float or None
        Standard error.

    Returns
    -------
    str

    Examples
    --------
    >>> rounded(6.4321, 0.5), rounded(6.4321, None)
    ('6.4', '6.43')
    """
    decimals = decimals_of(error)
    if decimals is None or not math.isfinite(value):
        return number(float(value))
    if decimals > 6 or abs(value) >= 1e6:
        known = math.log10(max(abs(value), float(error or 1)) / float(error or 1))
        return number(float(value), max(1, round(known) + 1))
    return fixed(value, decimals)


def with_error(value: float, error: float | None) -> str:
    """6.4 ± 0.5: a number and its standard error, with significant digits only.

    Parameters
    ----------
    value : float
    error : float or None
        Standard error.

    Returns
    -------
    str

    Examples
    --------
    >>> with_error(6.4321, 0.5)
    '6.4 ± 0.5'
    """
    if decimals_of(error) is None or not math.isfinite(value):
        return number(float(value))
    return f"{rounded(value, error)} ± {rounded(float(error or 0), error)}"


def log_evidence(value: float, error: float | None = None) -> str:
    """A log evidence in nats, with one decimal if its error is unknown: less is irrelevant.

    Parameters
    ----------
    value : float
    error : float or None
        Standard error.

    Returns
    -------
    str

    Examples
    --------
    >>> log_evidence(-61.234), log_evidence(-61.234, 0.05)
    ('−61.2', '−61.23 ± 0.05')
    """
    return fixed(value, 1) if decimals_of(error) is None else with_error(value, error)


def percent(share: float, n: int) -> str:
    """A share of n rows; below a thousand rows its standard error exceeds half a percent.

    Parameters
    ----------
    share : float
        From 0 to 1.
    n : int

    Returns
    -------
    str

    Examples
    --------
    >>> percent(0.9512, 100), percent(0.9512, 5000)
    ('95 %', '95.1 %')
    """
    decimals = 1 if n >= 1000 or 0.995 <= share < 1 else 0
    return f"{fixed(100 * share, decimals)} %"


def explained(r2: float) -> str:
    """R² as a percentage, with one digit of 1 − R²: 96 %, 99.7 %."""
    left = 100 * max(1 - r2, 1e-6)
    return f"{fixed(100 * r2, min(max(-math.floor(math.log10(left)), 0), 3))} %"


def duration(seconds: float) -> str:
    """2.7 s, 35 s, 4.9 min, 25 min, 1.5 h."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if seconds < 597:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def plural(n: int, word: str) -> str:
    """1 row, 12,000 rows.

    Parameters
    ----------
    n : int
    word : str
        In the singular.

    Returns
    -------
    str

    Examples
    --------
    >>> plural(1, "row"), plural(12000, "row")
    ('1 row', '12,000 rows')
    """
    return f"{n:,} {word}" + ("" if n == 1 else "s")


def names(items: Sequence[str]) -> str:
    """Column names separated by commas, in quotation marks if one contains a comma."""
    if any("," in item or ";" in item for item in items):
        items = [f"“{item}”" for item in items]
    return ", ".join(items)


def words(command: str) -> list[str]:
    """The words of a shell command, quoted, so that lines break only between them."""
    try:
        return [shlex.quote(word) for word in shlex.split(command)]
    except ValueError:  # not a shell command; shown as it is
        return command.split()


def listed(items: Sequence[str]) -> str:
    """a, b and c."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def folded(text: str) -> str:
    """A text without upper case and superfluous spaces."""
    return " ".join(text.casefold().split())


def plain_repr(value: Any) -> str:
    """A value in a message: repr, but NumPy numbers as Python has them, and dates as text.

    Examples
    --------
    >>> import numpy as np
    >>> plain_repr((np.float64(9.5), np.int64(8))), plain_repr("a")
    ('(9.5, 8)', "'a'")
    >>> plain_repr(np.datetime64("2024-02-01T00:00:00"))
    '2024-02-01'
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(plain_repr, value))})"
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, datetime.date):
        return str(value).removesuffix(" 00:00:00")
    return repr(value)


def unbroken(text: str) -> str:
    """The text with no-break spaces between numbers, their units and their errors."""
    text = re.sub(r"(?<=\d) (?=(?:%|s|min|h|nats?)(?!\w))", NO_BREAK, text)
    return text.replace(" ± ", f"{NO_BREAK}±{NO_BREAK}")
