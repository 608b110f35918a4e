"""Student-t noise: heavy tails, with constant or varying scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special, stats

from sbnn._core.arrays import Array, namespace
from sbnn.likelihoods.base import Likelihood
from sbnn.likelihoods.gaussian import VARIANCE_FLOOR, Gaussian, spread_of
from sbnn.likelihoods.varying import scale_information, scale_slope

if TYPE_CHECKING:
    from sbnn.priors import KnownPrior
    from sbnn.scores import Predictive

# Prior of log(ν − 2): median ν = 10, 95 % between 3.1 and 59. ν → ∞ is Gaussian noise, which data
# hardly distinguish from ν ≈ 30; for ν ≤ 2 there is no standard deviation.
NU_PRIOR = (math.log(8.0), 1.0)


def _nu(log_excess: Array) -> Array:
    return 2.0 + namespace(log_excess).exp(log_excess)


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
    """σ √(ν/(ν − 2))."""
    return np.exp(log_sigma) * np.sqrt(nu / (nu - 2.0))


class _Slopes(NamedTuple):
    """Derivatives of the log evidence with respect to log σ and ν, and their information."""

    log_sigma: float
    nu: float
    information: np.ndarray  # (2, 2)


def _slopes(z2: np.ndarray, used: float, nu: float, weights: np.ndarray | None) -> _Slopes:
    """Slopes of Σ log t(z) − ½ log|H|, for squared residuals in units of σ, shape (n,).

    `used` is Σ v W, the number of parameters that the data determine; W depends on σ and ν.
    """
    w = np.ones(len(z2)) if weights is None else weights
    total, pull = float(w.sum()), (nu + 1) * z2 / (nu + z2)
    by_sigma = float((w * pull).sum()) - total + used
    constant = special.psi(0.5 * (nu + 1)) - special.psi(0.5 * nu) - 1.0 / nu
    each = constant - np.log1p(z2 / nu) + pull / nu
    by_nu = 0.5 * float((w * each).sum()) - used / ((nu + 1) * (nu + 3))
    trigamma = special.polygamma(1, 0.5 * nu) - special.polygamma(1, 0.5 * (nu + 1))
    own = 0.25 * trigamma - 0.5 * (nu + 5) / (nu * (nu + 1) * (nu + 3))
    mixed = -2.0 / ((nu + 1) * (nu + 3))
    information = total * np.array([[2.0 * nu / (nu + 3), mixed], [mixed, float(own)]])
    return _Slopes(by_sigma, by_nu, information)


@dataclass(frozen=True)
class StudentT(Likelihood):
    """y = f + σ t_ν with constant σ and ν > 2; θ = (log σ, log(ν − 2)).

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.likelihoods import StudentT
    >>> float(StudentT().std(np.zeros(1), np.array([0.0, np.log(2.0)])).round(3))  # ν = 4
    1.414
    """

    outputs = ("mean",)
    parameters = ("log_sigma", "log_nu_minus_2")
    constant_information = True
    separable_information = True
    needs_row_variances = False

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
        self,
        y: np.ndarray,
        f: np.ndarray,
        theta: np.ndarray,
        variance: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """One step of Fisher scoring; exact interpolation would send the scale to zero."""
        nu, sigma2 = float(_nu(theta[1])), math.exp(2.0 * theta[0])
        z2 = (y - f[..., 0]) ** 2 / sigma2
        information = (nu + 1) / ((nu + 3) * sigma2)
        spread = variance[..., 0] if weights is None else weights * variance[..., 0]
        slopes = _slopes(z2, information * float(spread.sum()), nu, weights)
        chain = np.array([1.0, nu - 2.0])
        centre, width = NU_PRIOR
        slope = chain * (slopes.log_sigma, slopes.nu) + (0.0, (centre - theta[1]) / width**2)
        precision = chain[:, None] * slopes.information * chain
        precision[1, 1] += width**-2
        new = theta + np.clip(np.linalg.solve(precision, slope), -1.0, 1.0)
        floor = 0.5 * math.log(VARIANCE_FLOOR) + math.log(spread_of(y))
        return np.array([max(new[0], floor), new[1]])

    def predictive(
        self, weights: np.ndarray, f: np.ndarray, variance: np.ndarray, theta: np.ndarray
    ) -> Predictive:
        if not variance.any():
            return super().predictive(weights, f, variance, theta)
        from sbnn.likelihoods.scale_mixture import student_mixture

        mean, spread = f[..., 0], variance[..., 0]
        nothing = np.zeros_like(mean)
        return student_mixture(
            weights, mean, spread, theta[..., 0], nothing, np.asarray(_nu(theta[..., 1]))
        )

    def start(self, y: np.ndarray) -> np.ndarray:
        """Scale from the median absolute deviation, which is robust to outliers; ν = 10."""
        spread = 1.4826 * float(np.median(np.abs(y - np.median(y))))
        spread = spread if spread > 0 else spread_of(y)
        return np.array([0.5 * math.log(0.1) + math.log(spread), NU_PRIOR[0]])


@dataclass(frozen=True)
class VaryingStudentT(Likelihood):
    """y = f₁ + exp(f₂) t_ν: the scale is a second output of the model; θ = log(ν − 2).

    Examples
    --------
    >>> import numpy as np
    >>> from sbnn.likelihoods import VaryingStudentT
    >>> VaryingStudentT().information(np.zeros(2), np.zeros(1)).tolist()  # ν = 3
    [0.6666666666666666, 1.0]
    """

    outputs = ("mean", "log_sigma")
    parameters = ("log_nu_minus_2",)
    separable_information = True

    def log_density(self, y: Array, f: Array, theta: Array) -> Array:
        return log_density(y - f[..., 0], f[..., 1], _nu(theta[..., 0]))

    def information(self, f: Array, theta: Array) -> Array:
        """((ν + 1) / ((ν + 3) σ²), 2ν / (ν + 3))."""
        xp, nu = namespace(f, theta), _nu(theta[..., 0])
        first = (nu + 1) / (nu + 3) * xp.exp(-2.0 * f[..., 1])
        return scale_information(xp, first, 2 * nu / (nu + 3))

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

    def information_slope(self, f: np.ndarray, theta: np.ndarray, factor: np.ndarray) -> np.ndarray:
        return scale_slope(factor[..., 0] * self.information(f, theta)[..., 0])

    def update(
        self,
        y: np.ndarray,
        f: np.ndarray,
        theta: np.ndarray,
        variance: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """One step of Fisher scoring for ν."""
        nu = float(_nu(theta[0]))
        z2 = ((y - f[..., 0]) * np.exp(-f[..., 1])) ** 2
        spread = variance if weights is None else weights[:, None] * variance
        used = float((spread[:, 0] * self.information(f, theta)[:, 0]).sum())
        slopes = _slopes(z2, used, nu, weights)
        # The information of log σ, 2ν/(ν + 3), depends on ν as well.
        by_nu = slopes.nu - 3.0 * float(spread[:, 1].sum()) / (nu + 3) ** 2
        centre, width = NU_PRIOR
        slope = (nu - 2.0) * by_nu + (centre - theta[0]) / width**2
        precision = (nu - 2.0) ** 2 * slopes.information[1, 1] + width**-2
        return theta + np.clip(slope / precision, -1.0, 1.0)

    def predictive(
        self, weights: np.ndarray, f: np.ndarray, variance: np.ndarray, theta: np.ndarray
    ) -> Predictive:
        if not variance.any():
            return super().predictive(weights, f, variance, theta)
        from sbnn.likelihoods.scale_mixture import student_mixture

        return student_mixture(
            weights, f[..., 0], variance[..., 0], f[..., 1], variance[..., 1],
            np.asarray(_nu(theta[..., 0])),
        )  # fmt: skip

    def start(self, y: np.ndarray) -> np.ndarray:
        return np.array([NU_PRIOR[0]])

    def output_start(self, y: np.ndarray) -> np.ndarray:
        return np.array([0.0, StudentT().start(y)[0]])
