"""Interface between models and the Laplace engine.

A model provides the data term, the negative log-likelihood, around a point: value, gradient and
Gauss–Newton curvature in the parameters that are not pruned. Arrays follow the engine's layout:
outputs (K p, n) for K targets with p outputs each, one column per observation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from sbnn.evidence.laplace.models.known_priors import KnownPriors
from sbnn.evidence.laplace.models.layout import Array, FlatLayout, Layout
from sbnn.evidence.laplace.models.precision import Precision
from sbnn.likelihoods import Likelihood
from sbnn.priors import Hyperprior


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
