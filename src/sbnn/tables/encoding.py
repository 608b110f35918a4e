"""Text encoding of a file: UTF-8 unless the user names another one."""

from __future__ import annotations

import codecs
from pathlib import Path

from sbnn.tables.header import TableError

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Control characters that no text has: all except tab, line ends, form feed and the DOS end mark.
CONTROL = frozenset(map(chr, range(32))) - set("\t\n\v\f\r\x1a")
HELP = "save it as UTF-8 (in Excel: 'CSV UTF-8')"


def decode(path: Path, data: bytes, encoding: str | None = None) -> str:
    """The text of a file, without a byte order mark; an error says which encoding to try.

    Without `encoding` the file must be UTF-8. Other encodings are never guessed: they can be told
    from UTF-8, but not from one another.
    """
    if encoding is None and data[:2] in UTF_16:
        raise TableError(f"{path} looks like UTF-16 text; {HELP}, or add --encoding utf-16.")
    if encoding is None and b"\0" in data:
        raise TableError(f"{path} is not a text table; export it as CSV first.")
    try:
        text = data.decode(encoding or "utf-8")
    except LookupError:
        raise TableError(
            f"--encoding {encoding!r} is not known; give one such as cp1252 or utf-16."
        ) from None
    except UnicodeDecodeError as error:
        where = f"byte 0x{data[error.start]:02x} on line {_line(data, error.start)}"
        hint = "" if encoding else _hint(data, error.start)
        name = "UTF-8" if encoding is None else encoding
        raise TableError(f"{path} is not {name} text ({where}); {HELP}{hint}.") from error
    except UnicodeError as error:  # codecs such as punycode do not say where
        raise TableError(f"{path} is not {encoding} text; give another --encoding.") from error
    if encoding is not None and not CONTROL.isdisjoint(text):
        raise TableError(f"{path} has control characters when read as {encoding}; {HELP}.")
    return text.removeprefix("\ufeff")


def _line(data: bytes, at: int) -> int:
    return len((data[:at] + b".").splitlines())


def _hint(data: bytes, at: int) -> str:
    """Suggest Windows-1252, which Excel writes as "CSV", if the file could be that."""
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return ""
    if not CONTROL.isdisjoint(text):
        return ""
    return f", or add --encoding cp1252 if that byte is meant to be '{text[at]}'"
