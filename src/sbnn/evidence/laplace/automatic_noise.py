"""The kind of noise of a network problem, chosen by the Laplace evidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sbnn.evidence.laplace.fit import fit
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.options import Options
from sbnn.likelihoods import CANDIDATES, NAMES, Likelihood


def preferred_noise(
    x: np.ndarray,
    y: np.ndarray,
    hidden_layer_sizes: Sequence[int],
    activation: str,
) -> Likelihood:
    """The kind of noise that `SparseBNNRegressor` would choose for one network.

    Parameters
    ----------
    x, y : ndarray, shapes (n, n_in) and (n, n_targets)
    hidden_layer_sizes : sequence of int
    activation : str

    Returns
    -------
    Likelihood
    """
    x_t, y_t = (_standardised(values).T.copy() for values in (x, y))
    sizes = (len(x_t), *hidden_layer_sizes, len(y_t))
    model = NetworkModel(x_t=x_t, y_t=y_t, sizes=sizes, activation=activation)
    kinds = {name: NAMES[name]() for name in CANDIDATES}
    return fit([[model]], np.random.default_rng(0), Options(), kinds).likelihood


def _standardised(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
