"""The encoding of a file: UTF-8, or another one that is asked for."""

from __future__ import annotations

import codecs
from pathlib import Path

from sbnn.tables.header import TableError

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What no text has: control characters but tab, line ends, form feed and the end of a DOS file.
CONTROL = frozenset(map(chr, range(32))) - set("\t\n\v\f\r\x1a")
HELP = "save it as UTF-8 (in Excel: 'CSV UTF-8')"


def codec_of(path: Path, data: bytes, wanted: str | None = None) -> str:
    """The codec that reads a file's text; an error says what is wrong, and what may be asked for.

    Without `wanted` it is UTF-8: other encodings can be told from it, but not from one another.
    """
    if wanted is None and data[:2] in UTF_16:
        raise TableError(f"{path} looks like UTF-16 text; {HELP}, or add --encoding utf-16.")
    if wanted is None and b"\0" in data:
        raise TableError(f"{path} is not a text table; export it as CSV first.")
    codec = wanted or "utf-8"
    try:
        text = data.decode(codec)
    except LookupError:
        raise TableError(
            f"--encoding {codec!r} is not known; give one such as cp1252 or utf-16."
        ) from None
    except UnicodeDecodeError as error:
        where = f"byte 0x{data[error.start]:02x} on line {_line(data, error.start)}"
        hint = "" if wanted else _hint(data, error.start)
        name = "UTF-8" if wanted is None else wanted
        raise TableError(f"{path} is not {name} text ({where}); {HELP}{hint}.") from error
    if wanted is not None and not CONTROL.isdisjoint(text):
        raise TableError(f"{path} holds control characters when read as {wanted}; {HELP}.")
    return "utf-8-sig" if codecs.lookup(codec).name == "utf-8" else codec


def _line(data: bytes, at: int) -> int:
    return len((data[:at] + b".").splitlines())


def _hint(data: bytes, at: int) -> str:
    """Windows-1252 is what Excel writes as "CSV"; it is proposed where the file could be that."""
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return ""
    if not CONTROL.isdisjoint(text):
        return ""
    return f", or add --encoding cp1252 if that byte is meant to be '{text[at]}'"
