"""Linear layers as arrays and plain values, for files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sbnn.evidence.laplace.models.precision import Precision
from sbnn.evidence.linear.layer import Layer
from sbnn.evidence.linear.learning import LinearFit
from sbnn.likelihoods import from_description

_ARRAYS = ("mean", "log_alpha", "relevance")
_PLAIN = ("log_beta", "log_evidence", "converged", "interpolates")


def layer_arrays(layer: Layer) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays by name, and values that JSON can store.

    Parameters
    ----------
    layer : Layer

    Returns
    -------
    arrays, plain : dict
    """
    arrays: dict[str, np.ndarray] = {"theta": layer.theta}
    for k, fit in enumerate(layer.fits):
        arrays |= {f"{name}_{k}": getattr(fit, name) for name in _ARRAYS}
        arrays |= {f"factor_{k}": fit.precision.chol, f"scale_{k}": fit.precision.scale}
    return arrays, {
        "fits": [{name: getattr(fit, name) for name in _PLAIN} for fit in layer.fits],
        "likelihood": layer.likelihood.describe(),
        "log_evidence": layer.log_evidence,
        "n_rows": layer.n_rows,
        "converged": layer.converged,
    }


def layer_from_arrays(arrays: Mapping[str, np.ndarray], plain: Mapping[str, Any]) -> Layer:
    """The inverse of `layer_arrays`.

    Parameters
    ----------
    arrays, plain : mapping

    Returns
    -------
    Layer

    Raises
    ------
    KeyError, ValueError
        If something is missing, NaN or of the wrong shape.
    """
    fits = []
    for k, described in enumerate(plain["fits"]):
        own = {name: np.asarray(arrays[f"{name}_{k}"]) for name in (*_ARRAYS, "factor", "scale")}
        if any(np.isnan(values).any() for values in own.values()):
            raise ValueError("an array contains NaN")
        kept = int(np.isfinite(own["log_alpha"]).sum())
        if own["factor"].shape != (kept, kept) or own["scale"].shape != (kept,):
            raise ValueError(f"the factor has shape {own['factor'].shape}, not ({kept}, {kept})")
        values: dict[str, Any] = {name: own[name] for name in _ARRAYS}
        values |= {name: described[name] for name in _PLAIN}
        precision = Precision.from_factor(own["factor"], own["scale"])
        fits.append(LinearFit(precision=precision, **values))
    return Layer(
        tuple(fits),
        from_description(plain["likelihood"]),
        np.asarray(arrays["theta"]),
        plain["log_evidence"],
        plain["n_rows"],
        plain["converged"],
    )
