"""Shared code for NumPy and JAX arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any  # a NumPy or a JAX array


def namespace(*arrays: Array) -> Any:
    """`numpy` if all arrays are NumPy's or plain numbers, else `jax.numpy`."""
    if all(isinstance(a, np.ndarray | np.generic | float | int) for a in arrays):
        return np
    import jax.numpy

    return jax.numpy
