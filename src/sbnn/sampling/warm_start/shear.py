"""Coordinates in which a posterior bends less: some parameters relative to the others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from sbnn._core.arrays import Array
from sbnn._core.float64 import float64


@functools.partial(jax.tree_util.register_dataclass, data_fields=["data"], meta_fields=["function"])
@dataclass(frozen=True)
class Shear:
    """The map u → φ = u + s(u), where s changes some of the coordinates and depends on the others.

    So its Jacobian determinant is one, its inverse is φ − s(φ), and a density of φ is one of u,
    whatever s is.

    Attributes
    ----------
    data : tree of arrays
    function : callable
        s: (data, (n, d)) → (n, d).
    """

    data: Any
    function: Callable[[Any, Array], Array]

    def bend(self, u: Array) -> Array:
        """u → φ, (n, d)."""
        return u + self.function(self.data, u)

    def straighten(self, phi: Array) -> Array:
        """φ → u, (n, d)."""
        return phi - self.function(self.data, phi)


@float64
def straightened(
    shear: Shear | None, mean: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and covariance (d, d) of a narrow Gaussian over φ, in the coordinates u."""
    if shear is None:
        return mean, covariance
    slope = np.asarray(_slope(shear, mean))
    return straight(shear, mean[None])[0], slope @ covariance @ slope.T


@float64
def straight(shear: Shear | None, phi: np.ndarray) -> np.ndarray:
    """Draws φ (n, d) in the coordinates u."""
    return phi if shear is None else np.asarray(_straighten(shear, phi))


# Compiled once for all shears of a kind: a single operation may contain a loop.
_straighten = jax.jit(Shear.straighten)
_slope = jax.jit(jax.jacfwd(lambda shear, phi: shear.straighten(phi[None])[0], argnums=1))
