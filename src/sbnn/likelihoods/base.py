"""The `Likelihood` seam: what inference and prediction need to know about the noise."""

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
    parameters of its own, `priors` and `start`. Write `log_density` with operators and
    `sbnn.likelihoods.namespace(y, f, theta)`, which is `numpy` or `jax.numpy`: JAX differentiates
    it.

    Attributes
    ----------
    outputs : tuple of str
        What the model predicts for each target; the first is the centre of y.
    parameters : tuple of str
        Names of the likelihood's own parameters, on the whole real line (hence ``log_sigma``).
    """

    outputs: ClassVar[tuple[str, ...]] = ("mean",)
    parameters: ClassVar[tuple[str, ...]] = ()
    # Set where they hold, to save time: the information does not depend on f; `update` uses only
    # the sum of the variances over rows.
    constant_information: ClassVar[bool] = False
    needs_row_variances: ClassVar[bool] = True

    @abstractmethod
    def log_density(self, y: Array, f: Array, theta: Array) -> Array:
        """log p(y | f, θ), shape (…)."""

    @abstractmethod
    def information(self, f: Array, theta: Array) -> Array:
        """Diagonal of the Fisher information of f, −E ∂² log p / ∂f², shape (…, p), ≥ 0.

        It is the weight of a row in Gauss–Newton curvatures.
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
        """Outputs for which an optimisation starts around, of one target, shape (p,)."""
        return np.zeros(len(self.outputs))

    def centre(self, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Expected value of y given f and θ, shape (…)."""
        return f[..., 0]

    # ------------------------------------------------- defaults that a subclass may make faster
    def log_likelihood(self, y: Array, f: Array, theta: Array) -> Array:
        """Sum of `log_density` over all observations."""
        return self.log_density(y, f, theta).sum()

    def score(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """∂ log p / ∂f, shape (…, p)."""
        from sbnn.likelihoods.estimation import score

        return score(self, y, f, theta)

    def misfit(self, y: np.ndarray, f: np.ndarray, theta: np.ndarray) -> float:
        """Negative log-likelihood up to what depends on θ alone, a sum over all observations."""
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is rejected
            return -float(np.sum(self.log_density(y, f, theta)))

    def normaliser(self, theta: np.ndarray, n_rows: int) -> float:
        """What `misfit` leaves out, for θ of shape (n_targets, q) or (n_targets, n_rows, q)."""
        return 0.0

    def parameter_information(self, y: Array, f: Array, theta: Array) -> Array:
        """Information of the parameters of one target, (n,), (n, p), (q,) → (q, q), for JAX.

        The Hessian of the negative log-likelihood, its negative eigenvalues set to zero.
        """
        from sbnn.likelihoods.estimation import positive_hessian

        return positive_hessian(self, y, f, theta)

    def sensitivity(self, theta: np.ndarray) -> float:
        """Largest |∂ log p / ∂f| for typical y, or ∞ where no bound is known.

        Random walks evaluate a network in single precision only where a bound shows that rounding
        does not matter.
        """
        return np.inf

    # A random walk adds up one row of the data after the other, for many θ at a time: arrays have
    # shape (n_targets, n_draws), with p or q behind where f or θ.
    def fast_setup(self, theta: Array, precision: str) -> Array:
        """What `fast_row` needs of θ, computed once."""
        return theta

    def fast_row(self, y: Array, f: Array, setup: Array) -> Array:
        """What one row adds to the sum, shape (n_draws,)."""
        return self.log_density(y[:, None], f, setup).sum(axis=0)

    def fast_total(self, total: Array, theta: Array, n_rows: int) -> Array:
        """The log-likelihood from the sum over rows, shape (n_draws,)."""
        return total

    def update(
        self, y: np.ndarray, f: np.ndarray, theta: np.ndarray, variance: np.ndarray
    ) -> np.ndarray:
        """Parameters of one target a step further on, for the Laplace approximation, shape (q,).

        Its fixed point maximises Σ E[log p(y | f, θ)] + log p(θ) over θ, where the outputs are
        independent normals with means `f` and variances `variance`, both of shape (n, p): the M
        step of EM for the evidence. By default one Newton step; the expectation is a product
        Gauss–Hermite rule with five nodes per output.
        """
        from sbnn.likelihoods.estimation import newton_update

        return newton_update(self, y, f, theta, variance)

    def predictive(
        self, weights: np.ndarray, f: np.ndarray, variance: np.ndarray, theta: np.ndarray
    ) -> Predictive:
        """The predictive distribution of y for a mixture of normal distributions of f.

        Parameters
        ----------
        weights : ndarray, shape (K, …)
            Sum to one over the K components.
        f, variance : ndarray, shape (K, …, p)
            Mean and variance of the outputs in each component.
        theta : ndarray, broadcastable to (K, …, q)
        """
        from sbnn.likelihoods.estimation import IntegratedPredictive

        return IntegratedPredictive.of(self, weights, f, variance, theta)

    def describe(self) -> dict[str, Any]:
        """What identifies the likelihood in files: its class and, for dataclasses, its fields."""
        return {"kind": type(self).__name__, **dict(sorted(vars(self).items()))}
