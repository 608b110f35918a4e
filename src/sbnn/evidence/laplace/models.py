"""Interface between models and the Laplace engine, and the network model.

A model provides the data term, the negative log-likelihood, around a point: value, gradient and
Gauss–Newton curvature in the parameters that are not pruned. Arrays follow the engine's layout:
outputs (K p, n) for K targets with p outputs each, one column per observation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from sbnn.evidence.laplace.known_priors import KnownPriors
from sbnn.evidence.laplace.layout import (
    Array,
    FlatLayout,
    Layout,
    Pass,
    backward_pass,
    forward_pass,
    layer_groups,
    n_parameters,
)
from sbnn.evidence.laplace.precision import Precision
from sbnn.evidence.laplace.terms import RegressionTerm, per_row
from sbnn.likelihoods import Gaussian, Likelihood
from sbnn.priors import Hyperprior
from sbnn.problems.network import Network


class DataTerm(Protocol):
    """The data term at one point: value, gradient and curvature of the active parameters."""

    @property
    def without_effect(self) -> Array:
        """Parameters whose Jacobian is zero, (d_active,)."""
        ...

    def misfit(self, noise: Array) -> float:
        """Negative log-likelihood, without `Model.normaliser`."""
        ...

    def correction(self, noise: Array, variance: Array | None) -> float:
        """See `Model.correction`."""
        ...

    def gradient(self, noise: Array, variance: Array | None = None) -> Array:
        """Gradient of the log-likelihood, minus that of the correction, (d_active,)."""
        ...

    def weighted(self, noise: Array) -> tuple[Array, Array | None]:
        """J̃ᵀ with Λ = J̃ᵀJ̃, and Λ itself if it has been computed (d ≤ n)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Model(ABC):
    """Data, predictions, likelihood and priors, fixed during the optimisation.

    Attributes
    ----------
    hyperprior : Hyperprior
        Hyperprior of the ARD precisions.
    known_priors : KnownPriors, optional
        Priors of the parameters without ARD.
    price : float
        Log evidence that a parameter must add to be kept, see `PRICE`.
    """

    hyperprior: Hyperprior = field(default_factory=Hyperprior)
    known_priors: KnownPriors | None = None
    price: float = 0.0

    likelihood: ClassVar[Likelihood | None] = None
    activation: ClassVar[str] = ""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(number of targets, observations per target); (0, 0) without observations."""

    @abstractmethod
    def layout(self) -> Layout | FlatLayout:
        """Layout with all parameters active."""

    @abstractmethod
    def start(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """A random start: φ, log α, and the parameters of the likelihood."""

    @abstractmethod
    def evaluate(self, phi: Array, layout: Any) -> Any:
        """Outputs at φ, in the form that `misfit` and `data_term` take."""

    @abstractmethod
    def misfit(self, outputs: Any, noise: Array) -> float:
        """Negative log-likelihood of the outputs, without `normaliser`."""

    @abstractmethod
    def data_term(self, outputs: Any, phi: Array, layout: Any) -> DataTerm:
        """The data term at the point where `outputs` were evaluated."""

    @abstractmethod
    def mark(self, phi: Array, layout: Any, noise: Array) -> Array:
        """Numbers that identify an optimum up to symmetry."""

    @abstractmethod
    def units(self) -> list[Array]:
        """Groups of parameters that can be pruned together."""

    def unit_layers(self) -> Array | None:
        """Layer of each of `units`, if they are neurons."""
        return None

    def inputs(self) -> list[Array]:
        """Parameters that lead from each input, for networks."""
        return []

    def groups(self) -> Array | None:
        """Group numbers of parameters that share one α in the first stage, (d,)."""
        return None

    def rows(self, index: Array) -> Model:
        """The same model on a subset of the observations, if possible."""
        return self

    def single(self) -> Model:
        """The same model in single precision, if that is faster."""
        return self

    def economical(self, opt: Any) -> Model:
        """The same model in single precision if that is faster and accurate enough."""
        return self

    def normaliser(self, noise: Array) -> float:
        """Terms omitted by `misfit`."""
        return 0.0

    def correction(self, outputs: Any, noise: Array, variance: Array | None) -> float:
        """½ Σ v W for fixed variances v of the outputs: ½ log|H| up to a constant, to first order.

        Zero unless the information W depends on the outputs. Without it, an output log σ would be
        fitted to residuals that are too small, since f has been fitted to them as well.
        """
        return 0.0

    def output_variance(self, term: Any, noise: Array, gamma: Array, precision: Precision) -> Any:
        """Posterior variance of the outputs at the observations, (K, n, p), or None."""
        return None

    def updated_noise(self, term: Any, noise: Array, variance: Array | None) -> Array:
        """Re-estimated parameters of the likelihood."""
        return noise

    def loo_log_density(self, phi: Array, layout: Any, noise: Array, precision: Precision) -> Array:
        """Leave-one-out log predictive density of each row in the linearised model, (n,)."""
        raise TypeError("A model without observations has no leave-one-out densities.")


FEW_INPUTS, STEEP = 3, 12.0
MANY_ROWS, NOISY = 4000, 100.0  # NOISY is 1/σ² for targets of variance one
CALM = 0.1  # scale of random weights into outputs such as log σ, which start close to constants


@dataclass(frozen=True, kw_only=True)
class RegressionModel(Model):
    """Observations and a likelihood; subclasses add the predictions.

    Attributes
    ----------
    y_t : array, shape (K, n)
    likelihood : Likelihood
    noise : array or None
        Known parameters of the likelihood, (K, q) or (K, n, q); None infers them by the evidence.
    weights : array, shape (n,), or None
        How many times every observation counts; None counts each once.
    """

    y_t: Array
    likelihood: Likelihood = field(default_factory=Gaussian)  # type: ignore[misc]
    noise: Array | None = None
    weights: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.y_t.shape  # type: ignore[return-value]

    def split(self, f_t: Array) -> Array:
        """(K p, n) → (K, n, p), the shape that the likelihood takes."""
        k, n = self.y_t.shape
        return f_t.reshape(k, -1, n).transpose(0, 2, 1)

    @property
    def n_rows(self) -> float:
        """Number of observations per target, repetitions included."""
        return self.y_t.shape[1] if self.weights is None else float(self.weights.sum())

    def misfit(self, outputs: Any, noise: Array) -> float:
        return self.misfit_of(self.split(outputs.output), noise)

    def misfit_of(self, f: Array, noise: Array) -> float:
        """Negative log-likelihood of outputs (K, n, p), without `normaliser`."""
        if self.weights is None:
            return self.likelihood.misfit(self.y_t, f, per_row(noise))
        y, f = (a.astype(float, copy=False) for a in (self.y_t, f))
        return -float((self.weights * self.likelihood.log_density(y, f, per_row(noise))).sum())

    def normaliser(self, noise: Array) -> float:
        if self.weights is not None:
            return 0.0
        return self.likelihood.normaliser(noise, self.y_t.shape[1])

    def correction(self, outputs: Any, noise: Array, variance: Array | None) -> float:
        return self.correction_of(self.split(outputs.output), noise, variance)

    def correction_of(self, f: Array, noise: Array, variance: Array | None) -> float:
        """`correction` of outputs (K, n, p)."""
        if variance is None or self.likelihood.constant_information:
            return 0.0
        terms = variance * self.likelihood.information(f, per_row(noise))
        return 0.5 * float((terms if self.weights is None else self.weights[:, None] * terms).sum())

    def mark(self, phi: Array, layout: Any, noise: Array) -> Array:
        """Predictions in units of the noise: the same for all symmetric images of an optimum."""
        f = self.split(self.evaluate(phi, layout).output)
        return f * np.sqrt(self.likelihood.information(f, per_row(noise)))

    def initial_noise(self) -> Array:
        """Known parameters, or a start from the data, (K, q) or (K, n, q)."""
        if self.noise is not None:
            return self.noise
        return np.array([self.likelihood.start(y) for y in self.y_t])

    def data_term(self, outputs: Any, phi: Array, layout: Any) -> RegressionTerm:
        return RegressionTerm(self, outputs.output, self.jacobian(outputs, phi, layout))

    @abstractmethod
    def jacobian(self, outputs: Any, phi: Array, layout: Any) -> Array:
        """∂f/∂φ of the active parameters, (d_active, K p, n)."""

    def loo_log_density(self, phi: Array, layout: Any, noise: Array, precision: Precision) -> Array:
        """Leave-one-out log predictive density of each row in the linearised model, (n,).

        Without row i, its outputs are normal with variance v/(1 − vW) and mean f − g v/(1 − vW),
        where v = J H⁻¹Jᵀ, W is the information and g the score of the row, for each output
        separately. For Gaussian noise: residual r/(1 − h) and variance σ²/(1 − h) with leverage
        h = vW.
        """
        term = self.data_term(self.evaluate(phi, layout), phi, layout)
        theta, f = per_row(noise), self.split(term.f_t)
        variance = self.split(precision.variance(term.flat).reshape(term.f_t.shape))
        kept = 1.0 - np.clip(variance * self.likelihood.information(f, theta), 0.0, 0.99)
        variance = variance / kept
        f = f - variance * self.likelihood.score(self.y_t, f, theta)
        one = np.ones((1, *f.shape[:-1]))
        predictive = self.likelihood.predictive(one, f[None], variance[None], theta[None])
        return predictive.log_density(self.y_t).sum(axis=0)

    def output_variance(
        self, term: RegressionTerm, noise: Array, gamma: Array, precision: Precision
    ) -> Array | None:
        likelihood, f = self.likelihood, self.split(term.f_t)
        updated = self.noise is None and noise.size
        if likelihood.constant_information and not updated:
            return None
        if likelihood.needs_row_variances or len(self.y_t) > 1:
            # Single precision is enough for a correction and takes half the time.
            found = precision.variance(term.flat.astype(np.float32, copy=False)).astype(float)
            return self.split(found.reshape(term.f_t.shape))
        # The update needs only the sum over rows, Σ J H⁻¹Jᵀ W = Σγ.
        weight = likelihood.information(f[:1, :1], per_row(noise))[0, 0]
        return np.full(f.shape, gamma.sum() / (self.n_rows * weight))

    def updated_noise(self, term: RegressionTerm, noise: Array, variance: Array | None) -> Array:
        """Parameters of the likelihood from `Likelihood.update`, target by target."""
        if self.noise is not None or not noise.size:
            return noise
        assert variance is not None
        f, y = (a.astype(float, copy=False) for a in (self.split(term.f_t), self.y_t))
        new = [
            self.likelihood.update(y[i], f[i], noise[i], variance[i], self.weights)
            for i in range(len(y))
        ]
        return noise + np.clip(np.array(new) - noise, -0.5, 0.5)


@dataclass(frozen=True, kw_only=True)
class NetworkModel(RegressionModel):
    """A network with its closed-form Jacobian, in NumPy.

    Attributes
    ----------
    x_t : array, shape (n_in, n)
    sizes : tuple of int
        (n_in, hidden…, K p).
    activation : str
    x_scale, y_scale : array or None
        Standard deviations used to scale random starts; None for standardised data.
    columns : array of int or None
        Inputs that are used; the weights of all others are zero. None: all.
    """

    x_t: Array
    sizes: tuple[int, ...]
    activation: str = "tanh"  # type: ignore[misc]
    x_scale: Array | None = None
    y_scale: Array | None = None
    columns: Array | None = None

    def layout(self) -> Layout:
        if self.columns is None:
            return Layout(self.sizes)
        n_in, width = self.sizes[:2]
        used = np.ones(n_parameters(self.sizes), bool)
        used[: n_in * width] = np.tile(np.isin(np.arange(n_in), self.columns), width)
        return Layout(self.sizes, np.flatnonzero(used))

    def groups(self) -> Array:
        return layer_groups(self.sizes, len(self.likelihood.outputs))

    def units(self) -> list[Array]:
        return [neuron.members for neuron in Network(self.sizes).neurons()]

    def inputs(self) -> list[Array]:
        n_in, width = self.sizes[:2]
        return list(np.arange(n_in * width).reshape(width, n_in).T)

    def unit_layers(self) -> Array:
        hidden = self.sizes[1:-1]
        return np.repeat(np.arange(len(hidden)), hidden)

    def rows(self, index: Array) -> NetworkModel:
        """The same model on a subset of the observations."""
        x_t, y_t = self.x_t[:, index], self.y_t[:, index]
        noise = self.noise
        if noise is not None and noise.ndim == 3:
            noise = noise[:, index]
        weights = None if self.weights is None else self.weights[index]
        x_t, y_t = np.ascontiguousarray(x_t), np.ascontiguousarray(y_t)
        return replace(self, x_t=x_t, y_t=y_t, noise=noise, weights=weights)

    def single(self) -> NetworkModel:
        """The same model with data, Jacobians and Gram matrices in single precision."""
        return replace(self, x_t=self.x_t.astype(np.float32), y_t=self.y_t.astype(np.float32))

    def economical(self, opt: Any) -> NetworkModel:
        # In single precision the log evidence is exact to 0.02 if σ is 0.1 of the spread of y.
        if self.y_t.size < MANY_ROWS:
            return self
        f = self.split(self.evaluate(opt.phi, opt.layout).output)
        information = self.likelihood.information(f, per_row(opt.noise))[..., 0]
        return self.single() if np.mean(information) <= NOISY else self

    def with_likelihood(self, likelihood: Likelihood) -> NetworkModel:
        """The same network with inferred noise of another kind."""
        n_outputs = len(self.y_t) * len(likelihood.outputs)
        return replace(self, likelihood=likelihood, sizes=(*self.sizes[:-1], n_outputs), noise=None)

    def evaluate(self, phi: Array, layout: Layout) -> Pass:
        return forward_pass(phi, self.x_t, layout, self.activation)

    def jacobian(self, outputs: Pass, phi: Array, layout: Layout) -> Array:
        return backward_pass(outputs, layout, self.activation)

    def start(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """A random start: W ~ N(0, 1/n_in), b ~ N(0, 1), with α to match.

        With few inputs, every second start on average has a first layer up to `STEEP` times as
        steep: smooth starts do not reach functions with many bends.
        """
        if self.columns is not None:
            return self._start_of_columns(rng, self.columns)
        phi_parts, alpha_parts = [], []
        for n_in, width in zip(self.sizes[:-1], self.sizes[1:]):
            phi_parts += [
                rng.standard_normal(n_in * width) / np.sqrt(n_in), rng.standard_normal(width)
            ]  # fmt: skip
            alpha_parts += [np.full(n_in * width, np.log(n_in)), np.zeros(width)]
        if self.sizes[0] <= FEW_INPUTS and len(self.sizes) > 2 and rng.random() < 0.5:
            steepness = np.exp(rng.uniform(0.0, np.log(STEEP)))
            for k in (0, 1):
                phi_parts[k] *= steepness
                alpha_parts[k] -= 2.0 * np.log(steepness)
        if self.x_scale is not None:
            unit = np.tile(self.x_scale, self.sizes[1])
            phi_parts[0], alpha_parts[0] = phi_parts[0] / unit, alpha_parts[0] + 2 * np.log(unit)
        if self.y_scale is not None:
            unit = np.repeat(self.y_scale, self.sizes[-2])
            phi_parts[-2], alpha_parts[-2] = (
                phi_parts[-2] * unit,
                alpha_parts[-2] - 2 * np.log(unit),
            )
            alpha_parts[-1] = alpha_parts[-1] - 2 * np.log(self.y_scale)
        self._calm(phi_parts[-2], alpha_parts[-2])
        phi_parts[-1] = np.concatenate([self.likelihood.output_start(y) for y in self.y_t])
        phi, log_alpha = np.concatenate(phi_parts), np.concatenate(alpha_parts)
        return phi, log_alpha, self.initial_noise()

    def _start_of_columns(
        self, rng: np.random.Generator, columns: Array
    ) -> tuple[Array, Array, Array]:
        """A random start of the network with some of the inputs."""
        scale = None if self.x_scale is None else self.x_scale[columns]
        sizes = (len(columns), *self.sizes[1:])
        few = replace(self, x_t=self.x_t[columns], sizes=sizes, x_scale=scale, columns=None)
        d, active = n_parameters(self.sizes), self.layout().active
        phi, log_alpha = np.zeros(d), np.full(d, np.inf)
        phi[active], log_alpha[active], noise = few.start(rng)
        return phi, log_alpha, noise

    def _calm(self, weights: Array, log_alpha: Array) -> None:
        """Start outputs after the first of each target close to constants, in place."""
        kind = np.arange(self.sizes[-1]) % len(self.likelihood.outputs)
        further = np.repeat(kind > 0, self.sizes[-2])
        weights[further] *= CALM
        log_alpha[further] -= 2.0 * np.log(CALM)
