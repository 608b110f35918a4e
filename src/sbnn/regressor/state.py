"""FittedState: everything `fit` of `SparseBNNRegressor` learned, apart from derived attributes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from sbnn._core.messages import Message
from sbnn.methods.posterior import Posterior
from sbnn.regressor.data.scaling import Scaling
from sbnn.tables.encoder import ColumnEncoder


@dataclass(frozen=True, eq=False)
class FittedState:
    """The state that an estimator needs to predict and report; files store it.

    Attributes
    ----------
    posterior : Posterior
        For standardised inputs and targets.
    scaling : Scaling
        Of the encoded inputs and of the targets.
    encoder : ColumnEncoder
    one_dimensional : bool
        Whether y had the shape (n,), not (n, n_outputs).
    inputs : ndarray, shape (n_encoded, m)
        Some standardised training inputs, at which `compact` checks predictions.
    feature_names : list of str or None
    method_used : str
    method_reason : Message
    log_evidence : float
        For y in original units.
    trials : DataFrame
    noise_used : str
    noise_reason : Message
    noise_trials : DataFrame
    feature_relevance, feature_relevance_std : ndarray, shape (n_features,)
    input_relevance : DataFrame
    training : ndarray, shape (n_encoded + 1, n)
        Standardised training inputs, gaps filled, and how many times each counts; empty if there
        are many.
    """

    posterior: Posterior
    scaling: Scaling
    encoder: ColumnEncoder
    one_dimensional: bool
    inputs: np.ndarray
    feature_names: list[str] | None
    method_used: str
    method_reason: Message
    log_evidence: float
    trials: pd.DataFrame
    noise_used: str
    noise_reason: Message
    noise_trials: pd.DataFrame
    feature_relevance: np.ndarray
    feature_relevance_std: np.ndarray
    input_relevance: pd.DataFrame
    training: np.ndarray
