"""The likelihood of a model with Gaussian noise. Workers load this module: it needs no JAX."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class GaussianLikelihood:
    """log p(y|θ) = −½ Σ r² − Σ log σ − ½ n log 2π with r = (y − model(θ)) / σ; data = (y, σ).

    `n_parameters` of θ go to the model; where `infer_noise`, log σ follow them, one per output
    (the last axis of a y with two).
    """

    model: Callable
    n_parameters: int
    infer_noise: bool

    def __call__(self, theta, data):
        y, sigma = data
        if isinstance(theta, np.ndarray):
            with np.errstate(over="ignore", invalid="ignore"):  # NaN and ∞ are rejected later
                predictions = self.model(theta[: self.n_parameters])
                refuse_complex("model(theta)", predictions)
                predictions = np.asarray(predictions, dtype=float)
                return self._log_density(np, theta, y, sigma, predictions)
        import jax.numpy as jnp

        traced = jnp.asarray(self.model(theta[: self.n_parameters]))
        refuse_complex("model(theta)", traced)
        return self._log_density(jnp, theta, y, sigma, traced)

    def _log_density(self, xp: Any, theta, y, sigma, predictions):
        check_predictions(predictions.shape, y.shape)
        if self.infer_noise:
            sigma = xp.exp(theta[self.n_parameters :])
        residual = (y - predictions) / sigma
        log_sigma = xp.broadcast_to(xp.log(sigma), y.shape)
        return -0.5 * (residual**2).sum() - log_sigma.sum() - 0.5 * y.size * _LOG_2PI

    def information(self, theta, data):
        """Fisher information of θ: JᵀJ with J = ∂model/∂θ / σ, and 2n for the log σ of n values.

        What Gauss–Newton and the standard deviations of nonlinear regression are made of.
        """
        import jax
        import jax.numpy as jnp

        y, sigma = data
        if self.infer_noise:
            sigma = jnp.broadcast_to(jnp.exp(theta[self.n_parameters :]), y.shape)
        # Forward mode: a model has few parameters and often many observations.
        jacobian = jax.jacfwd(self.model)(theta[: self.n_parameters]) / sigma[..., None]
        jacobian = jacobian.reshape(-1, self.n_parameters)
        n_noise = theta.shape[0] - self.n_parameters
        noise = jnp.full(n_noise, 2.0 * y.size / max(n_noise, 1))
        return jax.scipy.linalg.block_diag(jacobian.T @ jacobian, jnp.diag(noise))


def refuse_complex(name: str, values: Any) -> None:
    if np.iscomplexobj(values):
        raise ValueError(
            f"{name} is complex; give real numbers, for example real and imaginary parts as two "
            "outputs."
        )


def check_predictions(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Predictions must have y's shape: NumPy would broadcast others into something wrong."""
    if shape != expected:
        raise ValueError(
            f"`model` must return one prediction per observation, an array of y's shape "
            f"{expected}; it returned shape {shape}."
        )
