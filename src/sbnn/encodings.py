"""The encoding of a file: UTF-8, or what Excel writes instead of it."""

from __future__ import annotations

import codecs
from pathlib import Path

from sbnn.columns import TableError

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What no text has: control characters but tab, line ends, form feed and the end of a DOS file.
CONTROL = frozenset(map(chr, range(32))) - set("\t\n\v\f\r\x1a")
HELP = "save it as UTF-8 (in Excel: 'CSV UTF-8')"


def encoding(path: Path, data: bytes) -> tuple[str, str]:
    """The encoding of a file's text, and what was guessed about it: "" where it is UTF-8.

    Bytes that are no UTF-8 are read as Windows-1252, which Excel writes as "CSV", unless they
    are none of that either or hold control characters.
    """
    if data[:2] in UTF_16:
        if "\0" in data.decode("utf-16", errors="replace").replace("\ufffd", "\0"):
            raise TableError(f"{path} begins as UTF-16 text, but is not; {HELP}.")
        return "utf-16", ""
    if b"\0" in data:
        raise TableError(f"{path} is not a text table; export it as CSV first.")
    try:
        data.decode("utf-8")
        return "utf-8-sig", ""
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
    return "cp1252", f"{path} is not UTF-8 ({where}); read as Windows-1252, where that is '{sign}'."
