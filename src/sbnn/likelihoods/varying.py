"""Gaussian noise whose standard deviation varies with the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from sbnn._core.arrays import Array, namespace
from sbnn.likelihoods.base import Likelihood
from sbnn.likelihoods.gaussian import LOG_2PI, Gaussian

if TYPE_CHECKING:
    from sbnn.scores import Predictive


def scale_slope(weighted: np.ndarray) -> np.ndarray:
    """∂ Σ c W / ∂f for W = k exp(−2 f₂): (0, −2 c W), from c W of shape (…)."""
    return np.stack([np.zeros_like(weighted), -2.0 * weighted], axis=-1)


def scale_information(xp: Any, first: Array, second: Array) -> Array:
    """(W₁, W₂) of shape (…, 2) from W₁ (…) and W₂ that broadcasts; faster than a stack in NumPy."""
    if xp is not np:
        return xp.stack([first, xp.broadcast_to(second, first.shape)], axis=-1)
    out = np.empty((*first.shape, 2), dtype=first.dtype)
    out[..., 0], out[..., 1] = first, second
    return out


@dataclass(frozen=True)
class VaryingGaussian(Likelihood):
    """y ~ N(f₁, exp(2 f₂)): log σ is a second output of the model.

    With ARD weights, constant noise is the special case in which all weights into f₂ are pruned.

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.likelihoods import VaryingGaussian
    >>> VaryingGaussian().information(np.zeros(2), np.zeros(0)).tolist()
    [1.0, 2.0]
    """

    outputs = ("mean", "log_sigma")
    separable_information = True

    def log_density(self, y: Array, f: Array, theta: Array) -> Array:
        z = (y - f[..., 0]) * namespace(y, f).exp(-f[..., 1])
        return -0.5 * z**2 - f[..., 1] - 0.5 * LOG_2PI

    def information(self, f: Array, theta: Array) -> Array:
        """(1/σ², 2)."""
        xp = namespace(f)
        return scale_information(xp, xp.exp(-2.0 * f[..., 1]), 2.0)

    def score(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        z = (y - f[..., 0]) * np.exp(-f[..., 1])
        return np.stack([z * np.exp(-f[..., 1]), z**2 - 1.0], axis=-1)

    def std(self, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return np.exp(f[..., 1])

    def sample(self, rng: np.random.Generator, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return f[..., 0] + np.exp(f[..., 1]) * rng.normal(size=f.shape[:-1])

    def cdf(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return special.ndtr((y - f[..., 0]) * np.exp(-f[..., 1]))

    def information_slope(self, f: np.ndarray, theta: np.ndarray, factor: np.ndarray) -> np.ndarray:
        return scale_slope(factor[..., 0] * np.exp(-2.0 * f[..., 1]))

    def predictive(
        self, weights: np.ndarray, f: np.ndarray, variance: np.ndarray, theta: np.ndarray
    ) -> Predictive:
        from sbnn.likelihoods.scale_mixture import uncertain_sigma
        from sbnn.scores import NormalMixture

        shares, nodes = uncertain_sigma(weights, f[..., 1], variance[..., 1])
        n = len(nodes) // len(f)
        means, spread = (np.tile(a[..., 0], (n, *(1,) * (f.ndim - 2))) for a in (f, variance))
        return NormalMixture(shares, means, np.sqrt(spread + np.exp(2.0 * nodes)))

    def output_start(self, y: np.ndarray) -> np.ndarray:
        """σ² a tenth of the variance of y."""
        return np.array([0.0, *Gaussian().start(y)])
