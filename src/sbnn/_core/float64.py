"""64-bit JAX arrays inside the package, whatever the caller's setting."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax

from sbnn._core.forks import require_usable_jax
from sbnn._core.memory import require_memory_for_jax

F = TypeVar("F", bound=Callable[..., Any])


def float64(function: F) -> F:
    """Run a public function with 64-bit JAX arrays, whatever the caller's setting.

    Raises RuntimeError or MemoryError where JAX would hang or abort the process: in a forked child
    and without memory for its threads.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        require_usable_jax()
        require_memory_for_jax()
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]
