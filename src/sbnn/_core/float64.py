"""The boundary to JAX: 64-bit arrays inside, whatever the caller's own setting is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax

F = TypeVar("F", bound=Callable[..., Any])


def float64(function: F) -> F:
    """Run a public function with 64-bit JAX arrays, whatever the caller's own setting is."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]
