"""Values as strict JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Values that JSON can hold; NaN and ±inf become None."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def dumps(value: Any, indent: int | None = 1, ascii_only: bool = False) -> str:
    """Strict JSON: NaN and infinities become null.

    Parameters
    ----------
    value : Any
    indent : int, optional
    ascii_only : bool
        Escape all other characters.

    Returns
    -------
    str
    """
    text = json.dumps(plain(value), indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    # Bytes of a file name that are not UTF-8 become the escapes of JSON.
    return text.encode("utf-8", "backslashreplace").decode()
