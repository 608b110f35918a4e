"""Optional dependencies: if one is missing, the error says which extra to install."""

from __future__ import annotations

from importlib.util import find_spec


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
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise MissingExtraError(
            f"{what} needs {', '.join(missing)}; install {'it' if len(missing) == 1 else 'them'} "
            f'with: pip install "sbnn[{extra}]"'
        )
