"""Safety of HTML pages: which scripts may run, and no control characters from names."""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from typing import Any

# Characters that reorder the text around them.
_REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


def content_security_policy(*scripts: str) -> str:
    """The Content-Security-Policy of a page that opens from disk and loads nothing.

    Only these scripts run, identified by their SHA-256; scripts in names, event handlers and
    javascript: links do not. Inline styles are allowed.

    Parameters
    ----------
    *scripts : str
        The exact text between <script> and </script>, for each script of the page.

    Returns
    -------
    str

    Examples
    --------
    >>> content_security_policy().split("; ")[-1]
    "script-src 'none'"
    """
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
        f"form-action 'none'; script-src {allowed or chr(39) + 'none' + chr(39)}"
    )


def visible(value: Any) -> Any:
    """Text with control and reordering characters replaced by \N{REPLACEMENT CHARACTER}.

    Parameters
    ----------
    value : Any
        What a template is about to show; only text is changed, and markup stays markup.

    Returns
    -------
    Any

    Examples
    --------
    >>> visible("a\\x1b[31mb")
    'a�[31mb'
    """
    if not isinstance(value, str) or value.isprintable():
        return value
    shown = "".join("\N{REPLACEMENT CHARACTER}" if _is_hidden(c) else c for c in value)
    return type(value)(shown)


def _is_hidden(character: str) -> bool:
    if character in "\t\n":
        return False
    return unicodedata.category(character) in ("Cc", "Cs") or character in _REORDERING
