"""Optional dependencies: if one is missing, the error says which extra to install."""

from __future__ import annotations

import importlib
import re

from sbnn._core.memory import is_installed, is_lack_of_memory


class MissingExtraError(ImportError):
    """A package of an extra is not installed; the message says which extra to install."""


def require(extra: str, what: str, *modules: str) -> None:
    """Raise MissingExtraError unless all modules are installed; nothing is imported.

    Parameters
    ----------
    extra : str
        The extra of sbnn that installs the modules.
    what : str
        What needs them, as the singular subject of a sentence.
    *modules : str
        Top-level names.

    Examples
    --------
    >>> require("report", "A plot", "matplotlib")
    >>> require("report", "A plot", "no_such_module")
    Traceback (most recent call last):
    ...
    sbnn._core.extras.MissingExtraError: A plot needs no_such_module; install it with: ...
    """
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        raise MissingExtraError(
            f"{what} needs {', '.join(missing)}; install {'it' if len(missing) == 1 else 'them'} "
            f'with: pip install "sbnn[{extra}]"'
        )


def why_not_imported(error: ImportError) -> str:
    """Why an import failed; libraries call a package missing that is there but cannot be loaded.

    Parameters
    ----------
    error : ImportError

    Returns
    -------
    str
        A sentence.

    Examples
    --------
    >>> why_not_imported(ImportError("No module named 'no_such_module'"))
    "No module named 'no_such_module'."
    >>> why_not_imported(ImportError("No module named 'json'; please install 'json'"))
    'json is installed, but could not be loaded; is there enough memory?'
    """
    claimed = re.search(r"No module named '?(\w+)", str(error))
    if claimed is None or not is_installed(claimed[1]):
        return f"{str(error).rstrip('.')}."
    try:
        importlib.import_module(claimed[1])
    except Exception as true_error:
        short = is_lack_of_memory(true_error)
        reason = "there is not enough memory" if short else str(true_error).rstrip(".")
        return f"{claimed[1]} is installed, but cannot be loaded: {reason}."
    return f"{claimed[1]} is installed, but could not be loaded; is there enough memory?"
