"""Student-t noise: heavy tails, with constant or varying scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

from sbnn._core.arrays import Array, namespace
from sbnn.likelihoods.base import Likelihood
from sbnn.likelihoods.gaussian import VARIANCE_FLOOR, Gaussian, spread_of

if TYPE_CHECKING:
    from sbnn.priors import KnownPrior

# Prior of log(ν − 1): median ν = 11, 95 % between 2.4 and 72. ν → ∞ is Gaussian noise, which data
# hardly distinguish from ν ≈ 30; for ν ≤ 1 there is no mean.
NU_PRIOR = (math.log(10.0), 1.0)


def _nu(log_excess: Array) -> Array:
    return 1.0 + namespace(log_excess).exp(log_excess)


def log_density(residual: Array, log_sigma: Array, nu: Array) -> Array:
    """log t_ν(r/σ) − log σ."""
    xp = namespace(residual, log_sigma, nu)
    if xp is np:
        gammaln = special.gammaln
    else:
        from jax.scipy.special import gammaln
    constant = gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu) - 0.5 * xp.log(math.pi * nu)
    z = residual * xp.exp(-log_sigma)
    return constant - log_sigma - 0.5 * (nu + 1) * xp.log1p(z**2 / nu)


def _std(log_sigma: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """σ √(ν/(ν − 2)); infinite for ν ≤ 2, where intervals still exist."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(nu > 2, nu / (nu - 2), np.inf)
    return np.exp(log_sigma) * np.sqrt(ratio)


@dataclass(frozen=True)
class StudentT(Likelihood):
    """y = f + σ t_ν with constant σ and ν > 1; θ = (log σ, log(ν − 1)).

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.likelihoods import StudentT
    >>> float(StudentT().std(np.zeros(1), np.array([0.0, np.log(3.0)])).round(3))  # ν = 4
    1.414
    """

    outputs = ("mean",)
    parameters = ("log_sigma", "log_nu_minus_1")
    constant_information = True

    def log_density(self, y: Array, f: Array, theta: Array) -> Array:
        return log_density(y - f[..., 0], theta[..., 0], _nu(theta[..., 1]))

    def information(self, f: Array, theta: Array) -> Array:
        """(ν + 1) / ((ν + 3) σ²)."""
        xp, nu = namespace(f, theta), _nu(theta[..., 1:])
        return xp.broadcast_to((nu + 1) / (nu + 3) * xp.exp(-2.0 * theta[..., :1]), f.shape)

    def score(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        residual, nu = y[..., None] - f, _nu(theta[..., 1:])
        return (nu + 1) * residual / (nu * np.exp(2.0 * theta[..., :1]) + residual**2)

    def std(self, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return np.broadcast_to(_std(theta[..., 0], _nu(theta[..., 1])), f.shape[:-1])

    def sample(self, rng: np.random.Generator, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        draws = rng.standard_t(np.broadcast_to(_nu(theta[..., 1]), f.shape[:-1]))
        return f[..., 0] + np.exp(theta[..., 0]) * draws

    def cdf(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return stats.t.cdf((y - f[..., 0]) * np.exp(-theta[..., 0]), _nu(theta[..., 1]))

    def priors(self, y: np.ndarray) -> tuple[KnownPrior, ...]:
        from sbnn.priors import Normal

        return (*Gaussian().priors(y), Normal(*NU_PRIOR))

    def update(
        self, y: np.ndarray, f: np.ndarray, theta: np.ndarray, variance: np.ndarray
    ) -> np.ndarray:
        """The default step, with a floor for the scale: exact interpolation would send it to 0."""
        new = super().update(y, f, theta, variance)
        floor = 0.5 * math.log(VARIANCE_FLOOR) + math.log(spread_of(y))
        return np.array([max(new[0], floor), new[1]])

    def start(self, y: np.ndarray) -> np.ndarray:
        """Scale from the median absolute deviation, which is robust to outliers; ν = 11."""
        spread = 1.4826 * float(np.median(np.abs(y - np.median(y))))
        spread = spread if spread > 0 else spread_of(y)
        return np.array([0.5 * math.log(0.1) + math.log(spread), NU_PRIOR[0]])


@dataclass(frozen=True)
class VaryingStudentT(Likelihood):
    """y = f₁ + exp(f₂) t_ν: the scale is a second output of the model; θ = log(ν − 1).

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.likelihoods import VaryingStudentT
    >>> VaryingStudentT().information(np.zeros(2), np.log([2.0])).tolist()  # ν = 3
    [0.6666666666666666, 1.0]
    """

    outputs = ("mean", "log_sigma")
    parameters = ("log_nu_minus_1",)

    def log_density(self, y: Array, f: Array, theta: Array) -> Array:
        return log_density(y - f[..., 0], f[..., 1], _nu(theta[..., 0]))

    def information(self, f: Array, theta: Array) -> Array:
        """((ν + 1) / ((ν + 3) σ²), 2ν / (ν + 3))."""
        xp, nu = namespace(f, theta), _nu(theta[..., 0])
        first = (nu + 1) / (nu + 3) * xp.exp(-2.0 * f[..., 1])
        return xp.stack([first, xp.broadcast_to(2 * nu / (nu + 3), first.shape)], axis=-1)

    def score(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        nu, z = _nu(theta[..., 0]), (y - f[..., 0]) * np.exp(-f[..., 1])
        weight = (nu + 1) / (nu + z**2)
        return np.stack([weight * z * np.exp(-f[..., 1]), weight * z**2 - 1.0], axis=-1)

    def std(self, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return _std(f[..., 1], _nu(theta[..., 0]))

    def sample(self, rng: np.random.Generator, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        draws = rng.standard_t(np.broadcast_to(_nu(theta[..., 0]), f.shape[:-1]))
        return f[..., 0] + np.exp(f[..., 1]) * draws

    def cdf(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return stats.t.cdf((y - f[..., 0]) * np.exp(-f[..., 1]), _nu(theta[..., 0]))

    def priors(self, y: np.ndarray) -> tuple[KnownPrior, ...]:
        from sbnn.priors import Normal

        return (Normal(*NU_PRIOR),)

    def start(self, y: np.ndarray) -> np.ndarray:
        return np.array([NU_PRIOR[0]])

    def output_start(self, y: np.ndarray) -> np.ndarray:
        return np.array([0.0, StudentT().start(y)[0]])
