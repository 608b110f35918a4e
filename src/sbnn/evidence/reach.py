"""Uncertainty beyond the data: how it grows outside the range of the training inputs.

A saturated neuron has the same output, and the same small uncertainty, at any distance from the
data: the posterior of a network is sure of a function that nobody has seen. Outside the range
[lⱼ, uⱼ] of input j, the function may therefore go on with another slope than that of the network.
With dⱼ the distance from the range and sⱼ the root mean square of ∂f/∂xⱼ at the data, the variance
is that at the nearest point of the range plus Σⱼ (sⱼ dⱼ)². A straight line that the network bends,
or a plateau that it continues as a line, is then about one standard deviation away.

A prediction that is constant has no slopes, yet n rows with noise σ do not exclude one of
σ / √(Σᵢ (xᵢⱼ − x̄ⱼ)²). Its square divided by the number of inputs p is then sⱼ², as if one of them,
nobody knows which, had such a slope.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sbnn.evidence.laplace.models.layout import Array, Layout, input_gradient

N_AVERAGED = 500  # rows over which slopes, shares and noise are averaged


def some_rows(n: int) -> Array:
    """Positions of at most `N_AVERAGED` of n rows, at random but always the same."""
    return np.random.default_rng(0).permutation(n)[:N_AVERAGED]


class WeightedNetwork(NamedTuple):
    """One network of a mixture."""

    weight: float
    phi: Array
    layout: Layout
    activation: str


@dataclass(frozen=True)
class Reach:
    """The range of the training inputs, and the slopes that the function may have beyond it.

    Attributes
    ----------
    lower, upper : array, shape (n_in,)
    slope : array, shape (n_in, n_targets)
    """

    lower: Array
    upper: Array
    slope: Array

    @classmethod
    def of(
        cls, networks: Iterable[WeightedNetwork], x_t: Array, n_outputs: int, some: Array
    ) -> Reach:
        """The reach of a mixture of networks trained at inputs `x_t`, (n_in, n).

        Parameters
        ----------
        networks : iterable of WeightedNetwork
        x_t : array, shape (n_in, n)
        n_outputs : int
            Outputs per target; the first is its centre.
        some : array of int
            The points at which slopes are averaged.
        """
        squares, at = 0.0, x_t[:, some]
        for weight, phi, layout, activation in networks:
            slopes = input_gradient(phi, at, layout, activation)[:, ::n_outputs]
            squares = squares + weight * (slopes**2).mean(axis=2)
        return cls(x_t.min(axis=1), x_t.max(axis=1), np.sqrt(squares))

    def with_error_of_slopes(
        self, noise_variance: Array, x_t: Array, rows: Array | None = None
    ) -> Reach:
        """The reach of a constant, with slopes of one input that the rows do not exclude.

        Parameters
        ----------
        noise_variance : array, shape (n_targets,)
        x_t : array, shape (n_in, n)
        rows : array, shape (n,), optional
            How many times every row counts.
        """
        if self.slope.any():
            return self
        counts = np.ones(x_t.shape[1]) if rows is None else rows
        centred = x_t - np.average(x_t, axis=1, weights=counts)[:, None]
        spread = len(x_t) * (centred**2 @ counts)
        error = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-12)
        return replace(self, slope=np.sqrt(error[:, None] * noise_variance))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Reach | None:
        """The inverse of `arrays`; None if there are none."""
        if "reach_slope" not in arrays:
            return None
        return cls(*(arrays[f"reach_{name}"] for name in ("lower", "upper", "slope")))

    def arrays(self) -> dict[str, Array]:
        """Arrays by name, for a file."""
        return {
            "reach_lower": self.lower, "reach_upper": self.upper, "reach_slope": self.slope,
        }  # fmt: skip

    def inside(self, x_t: Array) -> Array:
        """The nearest points of the range, (n_in, m)."""
        return np.clip(x_t, self.lower[:, None], self.upper[:, None])

    def variance(self, x_t: Array) -> Array:
        """Σⱼ (sⱼ dⱼ)² at inputs (n_in, m), shape (m, n_targets)."""
        return ((x_t - self.inside(x_t)) ** 2).T @ self.slope**2

    def draws(self, x_t: Array, n: int, rng: np.random.Generator) -> Array:
        """n functions that are zero in the range and linear beyond, (n, m, n_targets)."""
        outside = (x_t - self.inside(x_t)).T
        both = np.concatenate([np.maximum(outside, 0.0), np.minimum(outside, 0.0)], axis=1)
        slopes = rng.standard_normal((n, 2, *self.slope.shape)) * self.slope
        return both @ slopes.reshape(n, -1, self.slope.shape[1])
