"""64-bit JAX arrays inside the package, whatever the caller's setting."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax

F = TypeVar("F", bound=Callable[..., Any])


def float64(function: F) -> F:
    """Run a public function with 64-bit JAX arrays, whatever the caller's setting."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]
