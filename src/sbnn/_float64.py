"""The boundary to JAX: float64 inside, explicit keys, no global switches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def float64(function: F) -> F:
    """Run a public function with 64-bit JAX arrays, whatever the caller's own setting is."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def as_key(key: Any) -> jax.Array:
    """A typed JAX key from an integer, an old-style key array or a typed key.

    >>> as_key(0).shape
    ()
    """
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if key < 0:
            raise ValueError(f"`key` must not be negative; got {key}. Use 0, 1, 2, …")
        return jax.random.key(int(key))
    if isinstance(key, jax.Array) and jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key):
        if key.ndim == 0:
            return key
    elif isinstance(key, jax.Array | np.ndarray) and key.shape == (2,):
        return jax.random.wrap_key_data(jax.numpy.asarray(key))
    raise TypeError(f"`key` must be an integer or one JAX random key; got {key!r}.")


def key_data(key: Any) -> np.ndarray:
    """The key's words as an array, to be stored."""
    return np.asarray(jax.random.key_data(as_key(key)))
