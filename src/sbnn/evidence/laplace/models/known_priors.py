"""Priors of parameters without ARD, for the Laplace engine."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.float64 import float64
from sbnn.priors import JointPrior, KnownPrior, Uniform

Array = np.ndarray


class KnownPriors:
    """Independent known priors at `positions` of φ: energy, gradient and curvature.

    Parameters
    ----------
    priors : sequence of KnownPrior
        One per position.
    positions : array of int
    """

    def __init__(self, priors: list[KnownPrior], positions: Array):
        self.positions = np.asarray(positions)
        self.joint = JointPrior.of(priors)
        self.widths = np.array(
            [p.high - p.low if isinstance(p, Uniform) else np.inf for p in priors]
        )

    @float64
    def at(self, phi: Array) -> tuple[float, Array, Array]:
        """−log p, its gradient and its curvature (at least zero) at the positions."""
        value, gradient, curvature = _derivatives(self.joint, phi[self.positions])
        curvature = np.asarray(curvature)
        curvature = np.where(np.isfinite(curvature), np.maximum(curvature, 0.0), 0.0)
        return float(value), np.asarray(gradient), curvature

    @float64
    def energy(self, phi: Array) -> float:
        """−log p of the known priors; ∞ outside their support."""
        return float(_energy(self.joint, phi[self.positions]))


@jax.jit
def _energy(joint: JointPrior, values: Any) -> Any:
    return -joint.log_density(values)


@jax.jit
def _derivatives(joint: JointPrior, values: Any) -> Any:
    energy = lambda v: -joint.log_density(v)
    value, gradient = jax.value_and_grad(energy)(values)
    return value, gradient, jnp.diagonal(jax.hessian(energy)(values))
