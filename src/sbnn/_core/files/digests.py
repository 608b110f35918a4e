"""SHA-256 digests of the content of files: added when they are written, checked when read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SEAL = "sha256"  # the key of the digest in a sealed mapping
_MARK = b"\nsbnn sha256 "
_LENGTH = len(_MARK) + 64 + 1


class DamagedError(ValueError):
    """Content that does not match its digest."""


def sealed(content: bytes) -> bytes:
    """The content followed by a line with its digest; HDF5 ignores what follows its content.

    Parameters
    ----------
    content : bytes

    Returns
    -------
    bytes

    Examples
    --------
    >>> unsealed(sealed(b"content"))
    b'content'
    """
    return content + _MARK + hashlib.sha256(content).hexdigest().encode() + b"\n"


def is_sealed(data: bytes) -> bool:
    """Whether the data end with a digest, right or wrong."""
    return data[-_LENGTH:].startswith(_MARK)


def unsealed(data: bytes) -> bytes:
    """The content of `sealed` data.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    bytes

    Raises
    ------
    DamagedError
        If the data do not end with the digest of what precedes it.
    """
    content = data[:-_LENGTH]
    if sealed(content) != data:
        raise DamagedError("the content does not match its checksum")
    return content


def seal_mapping(values: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values with their digest, the last entry.

    Parameters
    ----------
    values : mapping
        What JSON can hold, keys included.

    Returns
    -------
    dict

    Examples
    --------
    >>> list(seal_mapping({"a": 1.5}))
    ['a', 'sha256']
    """
    kept = {name: value for name, value in values.items() if name != SEAL}
    return {**kept, SEAL: _digest(kept)}


def check_mapping(values: Mapping[str, Any]) -> None:
    """Raise a DamagedError unless the values match the digest that `seal_mapping` added.

    Parameters
    ----------
    values : mapping
    """
    if SEAL not in values:
        raise DamagedError("it has no checksum")
    if _digest({name: value for name, value in values.items() if name != SEAL}) != values[SEAL]:
        raise DamagedError("the content does not match its checksum")


def file_digest(path: str | os.PathLike) -> str:
    """The SHA-256 of a file, in hexadecimal.

    Parameters
    ----------
    path : path

    Returns
    -------
    str
    """
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(values: Mapping[str, Any]) -> str:
    # JSON keeps a float64 exactly, so that reading and writing again gives the same text.
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
