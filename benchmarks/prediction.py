"""What a method of the comparison returns: a point, a Gaussian mixture, quantiles or draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Midpoints of 100 equal intervals: an average over them is the midpoint rule of an integral over
# the levels, and 2.5 % and 97.5 % are among them.
LEVELS = (np.arange(100) + 0.5) / 100


@dataclass(frozen=True)
class Prediction:
    """Prediction at m points, in the units of y.

    Parameters
    ----------
    mean : ndarray, shape (m,)
    mixture : tuple of three ndarrays of shape (n_components, m), optional
        Weights, means and standard deviations of Gaussian components.
    quantiles : ndarray, shape (100, m), optional
        At `LEVELS`, from a method without a density.
    draws : ndarray, shape (n_draws, m), optional
        From a method without a density.
    predictive : sbnn.scores.Predictive, optional
    parameters : int, optional
        Number of fitted numbers that predictions use.
    note : str
    extra : dict
        More columns of the CSV file.
    """

    mean: np.ndarray
    mixture: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    quantiles: np.ndarray | None = None
    draws: np.ndarray | None = None
    predictive: Any = None
    parameters: int | None = None
    note: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


def gaussian(mean, std, parameters: int | None = None, note: str = "") -> Prediction:
    """One Gaussian per point."""
    mean, std = np.ravel(mean), np.ravel(std)
    mixture = (np.ones((1, len(mean))), mean[None], std[None])
    return Prediction(mean, mixture=mixture, parameters=parameters, note=note)


def mixture_of_draws(means, stds, parameters: int | None = None, note: str = "") -> Prediction:
    """Equally weighted Gaussians, one per draw; arrays of shape (n_draws, m)."""
    means = np.asarray(means, dtype=float)
    stds = np.broadcast_to(np.asarray(stds, dtype=float), means.shape)
    weights = np.full(means.shape, 1.0 / len(means))
    return Prediction(
        means.mean(axis=0), mixture=(weights, means, stds), parameters=parameters, note=note
    )


def standardised(x, y, x_test):
    """Training inputs and targets and test inputs, by means and deviations of the training part."""
    centre, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale == 0] = 1.0
    return (x - centre) / scale, (y - y.mean()) / y.std(), (x_test - centre) / scale
