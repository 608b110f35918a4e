"""Memory: recognise errors that mean "not enough", and raise before libraries hang for lack of it.

Without address space, OpenBLAS retries forever and JAX aborts the process; neither can be caught.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Iterator
from importlib.util import find_spec

from sbnn._core.forks import jax_is_running

MIB = 2**20
NAMED = "Not enough memory"  # how errors begin that say what was being done
# Address space for the stack, the arena of malloc and the buffer of OpenBLAS of a thread. A rough
# estimate, not measured; almost none of it is ever touched.
PER_THREAD = 128 * MIB
# Address space for JAX to start, besides its threads; also an estimate.
JAX = 512 * MIB
# Words of errors by which the dynamic loader, threads and XLA say that memory is short.
_WORDS = (
    "cannot allocate memory",
    "can't start new thread",
    "failed to map segment",
    "out of memory",
    "resource_exhausted",
    "unable to allocate",
)


def require_memory(size: int, doing: str) -> None:
    """Raise MemoryError unless `size` bytes of address space are free; nothing is kept.

    Parameters
    ----------
    size : int
    doing : str
        What needs it, as the object of "not enough memory for".

    Raises
    ------
    MemoryError

    Examples
    --------
    >>> require_memory(1024, "an example")
    >>> require_memory(2**60, "an example")
    Traceback (most recent call last):
    ...
    MemoryError: Not enough memory for an example: ...
    """
    try:
        mmap.mmap(-1, size).close()
    except (OSError, ValueError, OverflowError):
        raise MemoryError(
            f"{NAMED} for {doing}: another {size / MIB:,.0f} MiB of address space are "
            f"needed{_limit()}."
        ) from None


_granted = 0  # threads for which there was memory; their arenas and buffers are used again


def require_memory_for_threads(n_threads: int, doing: str) -> None:
    """Raise MemoryError unless `n_threads` threads can start and do linear algebra."""
    global _granted
    n_threads = max(n_threads, 1)
    if n_threads > _granted:
        require_memory((n_threads - _granted) * PER_THREAD, doing)
        _granted = n_threads


def require_memory_for_jax() -> None:
    """Raise MemoryError unless JAX runs or has the memory to start."""
    if not jax_is_running():
        require_memory(JAX + (os.cpu_count() or 1) * PER_THREAD, "JAX")


def _limit() -> str:
    """The limit on address space, as the end of a sentence; "" if there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return ""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    return f", and this process is limited to {limit / MIB:,.0f} MiB (ulimit -v)"


def is_lack_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one it was raised from, means that memory is short.

    Libraries report a package that could not be loaded as missing: an ImportError about a package
    that is installed counts if the loader ran out of memory.

    Examples
    --------
    >>> is_lack_of_memory(RuntimeError("can't start new thread"))
    True
    >>> is_lack_of_memory(ImportError("No module named 'no_such_module'"))
    False
    """
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        text = str(error).lower()
        if isinstance(error, ImportError | RuntimeError | OSError) and any(
            words in text for words in _WORDS
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def is_installed(module: str) -> bool:
    """Whether a top-level module is installed, even if it cannot be loaded now."""
    try:
        return find_spec(module) is not None
    except ValueError:  # hidden or half imported
        return False


@contextlib.contextmanager
def naming_lack_of_memory(doing: str) -> Iterator[None]:
    """Turn errors that mean "not enough memory" into a MemoryError that says what was being done.

    Parameters
    ----------
    doing : str
        As the object of "not enough memory for".
    """
    try:
        yield
    except MemoryError as error:
        if str(error).startswith(NAMED):
            raise
        raise MemoryError(_sentence(doing)) from error
    except Exception as error:
        if not is_lack_of_memory(error):
            raise
        raise MemoryError(_sentence(doing)) from error


def _sentence(doing: str) -> str:
    return f"{NAMED} for {doing}{_limit()}."
