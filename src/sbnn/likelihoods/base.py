"""Base class `Likelihood`: the noise model used by inference and prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sbnn._core.arrays import Array

if TYPE_CHECKING:
    from sbnn.priors import KnownPrior
    from sbnn.scores import Predictive


class Likelihood(ABC):
    """The distribution of one observation y given the outputs f of a model.

    All methods work elementwise on arrays of any shape. With shape (…) for y, `f` has shape (…, p),
    one entry for each of `outputs`, and `theta` broadcasts to (…, q), one entry for each of
    `parameters`. Several targets are independent: each has its own p outputs of the model and its
    own q parameters.

    A subclass defines `log_density`, `information`, `std`, `sample` and `cdf`, and, if it has
    parameters, `priors` and `start`. JAX differentiates `log_density`, so write it with operators
    and functions from `sbnn.likelihoods.namespace(y, f, theta)`, which is `numpy` or `jax.numpy`.

    Attributes
    ----------
    outputs : tuple of str
        Names of the model's outputs for each target; the first is the centre of y.
    parameters : tuple of str
        Names of the likelihood's parameters, on the whole real line (hence ``log_sigma``).

    Examples
    --------
    >>> from sbnn.likelihoods import VaryingStudentT
    >>> VaryingStudentT().outputs, VaryingStudentT().parameters
    (('mean', 'log_sigma'), ('log_nu_minus_2',))
    """

    outputs: ClassVar[tuple[str, ...]] = ("mean",)
    parameters: ClassVar[tuple[str, ...]] = ()
    # Shortcuts for speed: the information does not depend on f; it is a product of a function of f
    # and one of θ; `update` needs the variance of every row, not only their sum.
    constant_information: ClassVar[bool] = False
    separable_information: ClassVar[bool] = False
    needs_row_variances: ClassVar[bool] = True

    @abstractmethod
    def log_density(self, y: Array, f: Array, theta: Array) -> Array:
        """log p(y | f, θ), shape (…)."""

    @abstractmethod
    def information(self, f: Array, theta: Array) -> Array:
        """Diagonal of the Fisher information of f, −E ∂² log p / ∂f², shape (…, p), ≥ 0.

        The weight of a row in Gauss–Newton curvatures.
        """

    @abstractmethod
    def std(self, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Standard deviation of y given f and θ, shape (…)."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """One draw of y for each f, shape (…)."""

    @abstractmethod
    def cdf(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """P(Y ≤ y | f, θ), shape (…)."""

    def priors(self, y: np.ndarray) -> tuple[KnownPrior, ...]:
        """Priors of the parameters, given the observations of one target, shape (n,)."""
        return ()

    def start(self, y: np.ndarray) -> np.ndarray:
        """Parameters to start an optimisation from, shape (q,)."""
        return np.zeros(len(self.parameters))

    def output_start(self, y: np.ndarray) -> np.ndarray:
        """Outputs around which an optimisation starts, for one target, shape (p,)."""
        return np.zeros(len(self.outputs))

    def centre(self, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Expected value of y given f and θ, shape (…)."""
        return f[..., 0]

    # ------------------------------------------- defaults that a subclass can override for speed
    def log_likelihood(self, y: Array, f: Array, theta: Array) -> Array:
        """Sum of `log_density` over all observations."""
        return self.log_density(y, f, theta).sum()

    def score(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """∂ log p / ∂f, shape (…, p)."""
        from sbnn.likelihoods.estimation import score

        return score(self, y, f, theta)

    def misfit(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> float:
        """Negative log-likelihood of all observations, up to terms that depend on θ alone."""
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is rejected
            return -float(np.sum(self.log_density(y, f, theta)))

    def normaliser(self, theta: np.ndarray, n_rows: int) -> float:
        """Terms omitted by `misfit`, for θ of shape (n_targets, q) or (n_targets, n_rows, q)."""
        return 0.0

    def parameter_information(self, y: Array, f: Array, theta: Array) -> Array:
        """Information of the parameters of one target, (n,), (n, p), (q,) → (q, q), for JAX.

        The Hessian of the negative log-likelihood with negative eigenvalues set to zero.
        """
        from sbnn.likelihoods.estimation import positive_hessian

        return positive_hessian(self, y, f, theta)

    def sensitivity(self, theta: np.ndarray) -> float:
        """Largest |∂ log p / ∂f| for typical y, or ∞ if no bound is known.

        Random walks evaluate a network in single precision only if this bound shows that rounding
        does not matter.
        """
        return np.inf

    # Random walks sum the log-likelihood row by row, for many θ at a time. Arrays have shape
    # (n_targets, n_draws), followed by p for f and q for θ.
    def fast_setup(self, theta: Array, precision: str) -> Array:
        """Precompute what `fast_row` needs from θ."""
        return theta

    def fast_row(self, y: Array, f: Array, setup: Array) -> Array:
        """Contribution of one row to the sum, shape (n_draws,)."""
        return self.log_density(y[:, None], f, setup).sum(axis=0)

    def fast_total(self, total: Array, theta: Array, n_rows: int) -> Array:
        """The log-likelihood from the sum over rows, shape (n_draws,)."""
        return total

    def information_slope(self, f: np.ndarray, theta: np.ndarray, factor: np.ndarray) -> np.ndarray:
        """∂ Σ factor · information / ∂f, shape (…, p), for `factor` of the shape of f.

        With the variances of the outputs as factors, half of it is the slope of ½ log|H|, by which
        the Laplace approximation integrates over the parameters.
        """
        from sbnn.likelihoods.estimation import information_slope

        return information_slope(self, f, theta, factor)

    def update(
        self,
        y: np.ndarray,
        f: np.ndarray,
        theta: np.ndarray,
        variance: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """One update of the parameters of one target, for the Laplace approximation, shape (q,).

        Its fixed point maximises the Laplace evidence over θ, that is Σ log p(y | f, θ) − ½ Σ v W
        + log p(θ) with the information W of the outputs and their variances v, `variance` of shape
        (n, p): ½ Σ v W has the slope of ½ log|H|. `weights` (n,) count the rows. The default is
        one Newton step.
        """
        from sbnn.likelihoods.estimation import newton_update

        return newton_update(self, y, f, theta, variance, weights)

    def predictive(
        self, weights: np.ndarray, f: np.ndarray, variance: np.ndarray, theta: np.ndarray
    ) -> Predictive:
        """Predictive distribution of y when f has a mixture of normal distributions.

        Parameters
        ----------
        weights : ndarray, shape (K, …)
            Sum to one over the K components.
        f, variance : ndarray, shape (K, …, p)
            Mean and variance of the outputs in each component.
        theta : ndarray, broadcastable to (K, …, q)

        Returns
        -------
        Predictive
        """
        from sbnn.likelihoods.estimation import IntegratedPredictive

        return IntegratedPredictive.of(self, weights, f, variance, theta)

    def describe(self) -> dict[str, Any]:
        """Description for files: the class name and, for dataclasses, the fields."""
        return {"kind": type(self).__name__, **dict(sorted(vars(self).items()))}
