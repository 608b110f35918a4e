"""Log-likelihood of a model that predicts the observations; importable by workers without JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnn._core.arrays import as_real, reject_complex
from sbnn.likelihoods.base import Likelihood


@dataclass(frozen=True, eq=False)
class ModelAt:
    """A model of parameters and inputs, at the inputs of the observations."""

    model: Callable[[Any, Any], Any]
    x: Any

    def __call__(self, theta: Any) -> Any:
        return self.model(theta, self.x)


@dataclass(frozen=True, eq=False)
class ModelLikelihood:
    """log p(y | model(θ)), for data = (y, known parameters of the likelihood).

    The first `n_parameters` entries of θ go to the model. Inferred parameters of the likelihood
    follow, target by target; a y with two axes has one target per column.
    """

    model: Callable[[Any], Any]
    n_parameters: int
    likelihood: Likelihood
    inferred: bool

    def __call__(self, theta: Any, data: tuple[Any, Any]) -> Any:
        y, known = data
        if isinstance(theta, np.ndarray):
            with np.errstate(all="ignore"):  # NaN and ∞ are rejected later
                predictions = as_real("model(theta)", self.model(theta[: self.n_parameters]))
                return self._value(theta, y, known, predictions)
        import jax.numpy as jnp

        traced = jnp.asarray(self.model(theta[: self.n_parameters]))
        reject_complex("model(theta)", traced)
        return self._value(theta, y, known, traced)

    def _value(self, theta: Any, y: Any, known: Any, predictions: Any) -> Any:
        n_outputs = len(self.likelihood.outputs)
        expected = y.shape if n_outputs == 1 else (*y.shape, n_outputs)
        check_predictions(predictions.shape, expected)
        f = predictions.reshape(*y.shape, n_outputs)
        return self.likelihood.log_likelihood(y, f, self.own(theta, y, known))

    def own(self, theta: Any, y: Any, known: Any) -> Any:
        """The likelihood's parameters, shape (q,) for one target, else (n_targets, q)."""
        if not self.inferred:
            return known
        own = theta[self.n_parameters :]
        return own if y.ndim == 1 else own.reshape(y.shape[1], -1)


def check_predictions(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Raise ValueError unless the shapes agree; NumPy would silently broadcast."""
    if shape != expected:
        raise ValueError(
            f"`model` must return one prediction per observation, an array of y's shape "
            f"{expected}; it returned shape {shape}."
        )
