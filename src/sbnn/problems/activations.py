"""Activation functions: values and slopes, for NumPy and JAX alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sbnn._core.arrays import Array, namespace


class Activation(NamedTuple):
    """A function g, its derivative given z and g(z), and whether g(−z) = −g(z).

    Flipping the signs of a neuron's inputs, bias and outputs changes nothing where g is odd.
    """

    value: Callable[[Array], Array]
    slope: Callable[[Array, Array], Array]
    odd: bool


def _sigmoid(z: Array) -> Any:
    return 0.5 * (namespace(z).tanh(0.5 * z) + 1.0)


ACTIVATIONS = {
    "tanh": Activation(lambda z: namespace(z).tanh(z), lambda z, a: 1.0 - a * a, True),
    "relu": Activation(
        lambda z: namespace(z).where(z > 0.0, z, 0.0 * z),
        lambda z, a: (z > 0.0).astype(z.dtype),
        False,
    ),
    "sigmoid": Activation(_sigmoid, lambda z, a: a * (1.0 - a), False),
    "softplus": Activation(
        lambda z: namespace(z).logaddexp(0.0 * z, z), lambda z, a: _sigmoid(z), False
    ),
    "sin": Activation(lambda z: namespace(z).sin(z), lambda z, a: namespace(z).cos(z), True),
    "identity": Activation(lambda z: z, lambda z, a: namespace(z).ones_like(z), True),
}
