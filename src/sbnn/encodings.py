"""The text of a file: UTF-8, or what Excel writes instead of it."""

from __future__ import annotations

import codecs
from pathlib import Path

from sbnn.columns import TableError

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What no text has: control characters but tab, line ends, form feed and the end of a DOS file.
CONTROL = frozenset(map(chr, range(32))) - set("\t\n\v\f\r\x1a")
HELP = "save it as UTF-8 (in Excel: 'CSV UTF-8')"


def decode(path: Path, data: bytes) -> tuple[str, str]:
    """The text of a file, and what was guessed about it: "" where it is UTF-8.

    Bytes that are no UTF-8 are read as Windows-1252, which Excel writes as "CSV", unless they
    are none of that either or hold control characters.
    """
    if data[:2] in UTF_16:
        try:
            return data.decode("utf-16"), ""
        except UnicodeDecodeError:
            raise TableError(f"{path} begins as UTF-16 text, but is not; {HELP}.") from None
    if b"\0" in data or data[:2] == b"PK":
        raise TableError(f"{path} is not a text table; export it as CSV first.")
    try:
        return data.decode("utf-8").removeprefix("\ufeff"), ""
    except UnicodeDecodeError as error:
        at = error.start
    line = len((data[:at] + b".").splitlines())
    where = f"byte 0x{data[at]:02x} on line {line}"
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        text = ""
    if not text or not CONTROL.isdisjoint(text):
        raise TableError(f"{path} is not UTF-8 text ({where}); {HELP}.")
    sign = data[at : at + 1].decode("cp1252")
    return text, f"{path} is not UTF-8 ({where}); read as Windows-1252, where that is '{sign}'."
