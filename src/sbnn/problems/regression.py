"""`Regression`: predictions, observations and noise of a problem in one common form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnn.likelihoods import Likelihood


@dataclass(frozen=True, eq=False)
class Regression:
    """The parts of a regression problem used by curvatures, Laplace fits and predictions.

    Attributes
    ----------
    outputs : callable
        ``outputs(phi, inputs)`` for φ of shape (d,) → (n, n_targets, p), written for JAX.
    inputs : array or None
        Passed to `outputs` at the observations.
    n_model : int
        Number of model parameters in φ; the parameters of the likelihood follow.
    likelihood : Likelihood
    y : ndarray, shape (n, n_targets)
    known : ndarray or None
        Known parameters of the likelihood, (n_targets, q) or (n, n_targets, q); None if inferred.
    model : callable or None
        A user's ``model(theta)``, or ``model(theta, x)`` if it takes inputs.
    takes_inputs : bool
    """

    outputs: Callable[[Any, Any], Any]
    inputs: Any
    n_model: int
    likelihood: Likelihood
    y: np.ndarray
    known: np.ndarray | None
    model: Callable[..., Any] | None = None
    takes_inputs: bool = False

    def theta(self, phi: Any) -> Any:
        """Parameters of the likelihood at φ of shape (…, d): (…, n_targets, q), or as known."""
        if self.known is not None:
            return self.known
        own = phi[..., self.n_model :]
        return own.reshape(*phi.shape[:-1], self.y.shape[1], -1)

    def new_theta(self, phi: np.ndarray) -> np.ndarray:
        """Parameters of the likelihood for new observations, (n_draws, n_targets, q).

        If standard deviations are known per row, new rows get their root mean square.
        """
        theta = self.theta(phi)
        if self.known is None:
            return theta
        if self.known.ndim == 3:
            theta = 0.5 * np.log(np.exp(2.0 * self.known).mean(axis=0))
        return np.broadcast_to(theta, (len(phi), *theta.shape))
