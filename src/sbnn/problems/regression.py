"""A model with a likelihood: predictions, observations and noise in one shape for all problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnn.likelihoods import Likelihood


@dataclass(frozen=True, eq=False)
class Regression:
    """What curvatures, the Laplace engine and predictions need of a regression problem.

    Attributes
    ----------
    outputs : callable
        ``outputs(phi, inputs)`` for φ of shape (d,) → (n, n_targets, p), written for JAX.
    inputs : array or None
        Handed to `outputs` at the observations.
    n_model : int
        How many of φ belong to the model; the likelihood's own parameters follow.
    likelihood : Likelihood
    y : ndarray, shape (n, n_targets)
    known : ndarray or None
        Known parameters of the likelihood, (n_targets, q) or (n, n_targets, q); None: inferred.
    """

    outputs: Callable[[Any, Any], Any]
    inputs: Any
    n_model: int
    likelihood: Likelihood
    y: np.ndarray
    known: np.ndarray | None

    def theta(self, phi: Any) -> Any:
        """Parameters of the likelihood at φ of shape (…, d): (…, n_targets, q), or as known."""
        if self.known is not None:
            return self.known
        own = phi[..., self.n_model :]
        return own.reshape(*phi.shape[:-1], self.y.shape[1], -1)

    def new_theta(self, phi: np.ndarray) -> np.ndarray:
        """Parameters of the likelihood for new observations, (n_draws, n_targets, q).

        Of standard deviations known row by row, the root mean square stands for new rows.
        """
        theta = self.theta(phi)
        if self.known is None:
            return theta
        if self.known.ndim == 3:
            theta = 0.5 * np.log(np.exp(2.0 * self.known).mean(axis=0))
        return np.broadcast_to(theta, (len(phi), *theta.shape))
