"""Laplace-engine models of problems: networks, JAX models with a likelihood, densities."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.float64 import float64
from sbnn.evidence.curvature import curvatures
from sbnn.evidence.laplace.fit import fit_sparse
from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.known_priors import KnownPriors
from sbnn.evidence.laplace.models.layout import Array, FlatLayout
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.models.regression import RegressionModel
from sbnn.evidence.laplace.optimum import Optimum, information_diagonal, linearise
from sbnn.evidence.laplace.options import SMALL, Options
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem, prunable_units
from sbnn.problems.regression import Regression
from sbnn.problems.target import Target


def model_of(problem: Problem, hyperprior: Hyperprior) -> Model:
    """Laplace-engine model of a differentiable problem.

    Its φ does not contain the parameters of the likelihood.

    Parameters
    ----------
    problem : Problem
    hyperprior : Hyperprior

    Returns
    -------
    Model
    """
    regression = problem.regression
    if regression is None:
        known = _known_priors(problem, problem.n_parameters)
        return DensityModel(problem=problem, hyperprior=hyperprior, known_priors=known)
    y_t, known = np.ascontiguousarray(regression.y.T), _known_priors(problem, regression.n_model)
    likelihood, noise = regression.likelihood, _known_noise(regression)
    if problem.network is None:
        return JaxModel(
            y_t=y_t, likelihood=likelihood, noise=noise, hyperprior=hyperprior, known_priors=known,
            problem=problem,
        )  # fmt: skip
    return NetworkModel(
        y_t=y_t, likelihood=likelihood, noise=noise, hyperprior=hyperprior, known_priors=known,
        x_t=np.ascontiguousarray(regression.inputs.T),
        sizes=problem.network.sizes,
        activation=problem.network.activation,
        x_scale=_positive(regression.inputs.std(axis=0)),
        y_scale=_output_scale(regression),
    )  # fmt: skip


def box_log_alpha(problem: Problem) -> np.ndarray:
    """log α of the Gaussian with the variance of each ARD parameter's uniform box, width²/12."""
    widths = [p.high - p.low for p, a in zip(problem.priors, problem.ard) if a]  # type: ignore[union-attr]
    return math.log(12.0) - 2.0 * np.log(np.array(widths))


def _positive(spread: Array) -> Array:
    return np.where(spread > 0, spread, 1.0)


def _output_scale(regression: Regression) -> Array:
    """Spread of every output: that of y for the centre, one for logarithms."""
    scale = np.ones((regression.y.shape[1], len(regression.likelihood.outputs)))
    scale[:, 0] = _positive(regression.y.std(axis=0))
    return scale.ravel()


def _known_noise(regression: Regression) -> Array | None:
    """Known parameters of the likelihood in the engine's layout, (K, q) or (K, n, q)."""
    if regression.known is None:
        return None
    known = np.asarray(regression.known)
    return known.transpose(1, 0, 2) if known.ndim == 3 else known


def _known_priors(problem: Problem, n: int) -> KnownPriors | None:
    positions = np.flatnonzero(~problem.ard[:n])
    if not len(positions):
        return None
    return KnownPriors([problem.priors[i] for i in positions], positions)


def _random_start(problem: Problem, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A draw from the priors, shrunk towards zero for ARD parameters, and α from the box."""
    draw = problem.known_prior().sample(int(rng.integers(2**31)), 1)[0]
    log_alpha = np.zeros(problem.n_parameters)
    log_alpha[problem.ard] = box_log_alpha(problem)
    return (draw * np.where(problem.ard, 0.25, 1.0))[:n], log_alpha[:n]


def _units(problem: Problem) -> list[Array]:
    ard = np.flatnonzero(problem.ard)
    return [ard[members] for _, members in prunable_units(problem)]


class Outputs(NamedTuple):
    """Predictions at one φ, (K p, n)."""

    output: Array


@dataclass(frozen=True, kw_only=True)
class JaxModel(RegressionModel):
    """A model written with `jax.numpy`, with its Jacobian by forward-mode differentiation."""

    problem: Problem

    @property
    def regression(self) -> Regression:
        assert self.problem.regression is not None
        return self.problem.regression

    def layout(self) -> FlatLayout:
        return FlatLayout(np.arange(self.regression.n_model))

    def units(self) -> list[Array]:
        return _units(self.problem)

    def start(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        return (*_random_start(self.problem, rng, self.regression.n_model), self.initial_noise())

    @float64
    def evaluate(self, phi: Array, layout: FlatLayout) -> Outputs:
        f = np.asarray(_outputs(self.regression.outputs, phi))
        return Outputs(f.reshape(len(f), -1).T)

    @float64
    def jacobian(self, outputs: Outputs, phi: Array, layout: FlatLayout) -> Array:
        found = np.asarray(_jacobian(self.regression.outputs, phi))
        found = found.reshape(len(found), -1, len(phi)).transpose(2, 1, 0)
        return np.ascontiguousarray(found[layout.active])


@functools.partial(jax.jit, static_argnums=0)
def _outputs(outputs: Callable[[Any, Any], Any], phi: Any) -> Any:
    return outputs(phi, None)


@functools.partial(jax.jit, static_argnums=0)
def _jacobian(outputs: Callable[[Any, Any], Any], phi: Any) -> Any:
    # Forward mode: a model has few parameters and often many observations.
    return jax.jacfwd(lambda p: outputs(p, None))(phi)


@dataclass(frozen=True, eq=False, kw_only=True)
class DensityModel(Model):
    """A log-likelihood without predictions; its curvature is the positive part of the Hessian."""

    problem: Problem

    @property
    def shape(self) -> tuple[int, int]:
        return 0, 0

    def layout(self) -> FlatLayout:
        return FlatLayout(np.arange(self.problem.n_parameters))

    def units(self) -> list[Array]:
        return _units(self.problem)

    def start(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        start = _random_start(self.problem, rng, self.problem.n_parameters)
        return (*start, np.zeros((0, 0)))

    @float64
    def evaluate(self, phi: Array, layout: FlatLayout) -> float:
        return float(_log_likelihood(self.problem.target(), phi))

    def misfit(self, outputs: float, noise: Array) -> float:
        return -outputs

    def mark(self, phi: Array, layout: FlatLayout, noise: Array) -> Array:
        """The log-likelihood, the same for all symmetric images of an optimum."""
        return np.array([self.evaluate(phi, layout)])

    @float64
    def data_term(self, outputs: float, phi: Array, layout: FlatLayout) -> DensityTerm:
        gradient = np.asarray(_gradient(self.problem.target(), phi))[layout.active]
        precision = curvatures(self.problem, phi, known_priors=False)[0]
        return DensityTerm(-outputs, gradient, precision[np.ix_(layout.active, layout.active)])


class DensityTerm:
    """Value, gradient and curvature Λ of a log-likelihood at one point."""

    def __init__(self, misfit: float, gradient: Array, gram: Array):
        self._misfit, self._gradient, self.gram = misfit, gradient, gram

    def misfit(self, noise: Array) -> float:
        return self._misfit

    def correction(self, noise: Array, variance: Array | None) -> float:
        return 0.0

    def gradient(self, noise: Array, variance: Array | None = None) -> Array:
        return self._gradient

    @property
    def without_effect(self) -> Array:
        return np.asarray(~self.gram.any(axis=1))

    def weighted(self, noise: Array) -> tuple[Array, Array]:
        """Λ, also in place of its factor, of which only the shape is used."""
        return self.gram, self.gram


@jax.jit
def _log_likelihood(target: Target, phi: Any) -> Any:
    return target.evaluate(phi[None])[0]


@jax.jit
def _gradient(target: Target, phi: Any) -> Any:
    return jax.grad(lambda p: target.evaluate(p[None])[0])(jnp.asarray(phi))


class SparseOptimum(NamedTuple):
    """An optimum of the Laplace evidence over α."""

    log_alpha: np.ndarray  # (n_alpha,), inf where pruned
    phi: np.ndarray  # (n_parameters,), its mode
    log_evidence: float
    resolved: float  # largest precision that the data give to an ARD parameter

    def resting(self, hyperprior: Hyperprior, resolved: float = 1.0) -> np.ndarray:
        """log α, (n_alpha,), with `resting_log_alpha` where pruned."""
        rest = resting_log_alpha(hyperprior, resolved)
        return np.where(np.isinf(self.log_alpha), rest, self.log_alpha)


def laplace_optima(
    problem: Problem,
    hyperprior: Hyperprior,
    rng: np.random.Generator,
    n_starts: int,
    options: Options = SMALL,
) -> list[SparseOptimum]:
    """Sparse optima of the Laplace evidence, best first.

    Parameters
    ----------
    problem : Problem
    hyperprior : Hyperprior
    rng : numpy.random.Generator
    n_starts : int
    options : Options

    Returns
    -------
    list of SparseOptimum
    """
    model = model_of(problem, hyperprior)
    ard = problem.ard[: len(model.layout().active)]
    return [
        SparseOptimum(
            opt.log_alpha[ard],
            np.concatenate([opt.phi, opt.noise.ravel()])[: problem.n_parameters],
            opt.log_evidence,
            _resolved(model, opt, ard),
        )
        for opt in fit_sparse(model, rng, n_starts, options)
    ]


def _resolved(model: Model, opt: Optimum, ard: np.ndarray) -> float:
    """Largest precision that the data give to an ARD parameter, all others fixed."""
    whole = replace(opt, layout=model.layout())
    diagonal = information_diagonal(*linearise(model, whole).weighted(opt.noise))
    return float(diagonal[ard].max())


def resting_log_alpha(hyperprior: Hyperprior, resolved: float = 1.0) -> float:
    """Stationary log α of an irrelevant parameter that the data resolve to the precision Λ.

    ½ Λ/(Λ + α) = r α. For the study's rate e⁻²⁵ and Λ = 1 it is 12.1534.
    """
    rate = max(hyperprior.rate, math.exp(-30.0))
    return math.log(0.5 * resolved * (math.sqrt(1.0 + 2.0 / (rate * resolved)) - 1.0))


def has_mode(problem: Problem) -> bool:
    """Whether the Laplace engine finds a mode of the problem, from one start."""
    with contextlib.suppress(ValueError, np.linalg.LinAlgError):
        return bool(laplace_optima(problem, Hyperprior(), np.random.default_rng(0), 1))
    return False
