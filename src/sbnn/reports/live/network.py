"""The fitted network as plain values, from which a page predicts the same as `predict`.

A prediction is a mixture of networks. Each has weights, and the factored precision of those that
are uncertain; a posterior draw is a network without uncertain weights. The factors of large
networks would fill the page, so it gets the training inputs instead and computes the factors.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sbnn.evidence.laplace.mixture import SparseMixture, inflated_noise, precision_of
from sbnn.evidence.laplace.models.layout import Layout, jacobian
from sbnn.evidence.laplace.models.precision import Precision
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.likelihoods import Gaussian, Likelihood, StudentT, VaryingGaussian, VaryingStudentT
from sbnn.likelihoods.scale_mixture import SIGMA_NODES, precision_nodes
from sbnn.methods.draws_posterior import DrawsPosterior
from sbnn.methods.posterior import Posterior
from sbnn.problems.network import layer_slices
from sbnn.regressor.data.scaling import GRID
from sbnn.regressor.estimator import SparseBNNRegressor
from sbnn.regressor.last_layer import LastLayerPosterior
from sbnn.regressor.posteriors.exact_posterior import ExactPosterior
from sbnn.regressor.posteriors.laplace_posterior import LaplacePosterior

# Characters of a page that factors may take; beyond, training inputs take their place.
MAX_FACTORS = 400_000
MAX_INPUTS = 1_200_000
# Multiplications that a page may need for the factors; a browser makes about 10⁹ in a second.
MAX_WORK = 5e9
# Largest error of a standard deviation, relative to it, if the page computes the factors.
EXACT = 1e-7
BASE64 = 8 * 4 / 3  # characters of a float64
Kinds = (Gaussian, VaryingGaussian, StudentT, VaryingStudentT)


class Factor(NamedTuple):
    """Uncertain parameters and the factored precision of their normal distribution."""

    parameters: np.ndarray  # positions in φ
    precision: Precision


class Component(NamedTuple):
    """One network of the mixture."""

    sizes: tuple[int, ...]
    activation: str
    phi: np.ndarray
    theta: np.ndarray  # (n_targets, q), parameters of the likelihood
    factors: Sequence[Factor]


class Mixture(NamedTuple):
    """Networks with weights wₖ, which become wₖ vₖ(x)^−power at x."""

    components: list[Component]
    weights: np.ndarray
    power: float
    likelihood: Likelihood


def network_data(model: SparseBNNRegressor) -> dict[str, Any] | str:
    """The network and its scaling for the page's script, or the reason why there are none.

    Parameters
    ----------
    model : SparseBNNRegressor

    Returns
    -------
    dict or str
        Arrays of many numbers are base64 of float64.
    """
    mixture = _mixture(model.posterior_)
    if mixture is None:
        return "this kind of noise has no closed form for posterior draws"
    state = model.fitted_state()
    small = _n_factors(mixture) * BASE64 <= MAX_FACTORS
    if not small and not can_rebuild(mixture, state.training):
        return "the network is too large to be part of a page"
    components = [
        _component(component, mixture.likelihood, small) for component in mixture.components
    ]
    nodes, weights = np.polynomial.hermite_e.hermegauss(SIGMA_NODES)
    return {
        "components": components,
        "weights": mixture.weights.tolist(),
        "power": mixture.power,
        "outputs": len(mixture.likelihood.outputs),
        "studentT": isinstance(mixture.likelihood, StudentT | VaryingStudentT),
        "sigmaNodes": [nodes.tolist(), (weights / weights.sum()).tolist()],
        "scaling": {name: values.tolist() for name, values in state.scaling._asdict().items()},
        "reach": _reach(model.posterior_),
        "training": None if small else _training(state.training),
    }


def _reach(posterior: Posterior) -> dict[str, Any]:
    """The range of the training inputs, and slopes beyond it."""
    arrays, _ = posterior.arrays()
    return {name: arrays[f"reach_{name}"].tolist() for name in ("lower", "upper", "slope")}


def _mixture(posterior: Posterior) -> Mixture | None:
    """The posterior as a mixture of networks; None if its predictions have another form."""
    if isinstance(posterior, ExactPosterior):  # too many draws for a page
        return None
    if isinstance(posterior, LaplacePosterior):
        found = posterior.mixture
        components = [_inflated(found, opt) for opt in found.optima]
        mixture = Mixture(components, found.weights, found.precision_power, found.likelihood)
    elif isinstance(posterior, LastLayerPosterior):
        layer, network = posterior.layer, posterior.network
        mixture = Mixture(
            [
                Component(
                    network.sizes, network.activation, posterior.phi, layer.theta,
                    _last_factors(posterior),
                )
            ],
            np.ones(1), 0.0, layer.likelihood,
        )  # fmt: skip
    elif isinstance(posterior, DrawsPosterior):
        network = posterior.network
        components = [
            Component(network.sizes, network.activation, phi, theta, ())
            for phi, theta in zip(posterior.phi, posterior.theta)
        ]
        equal = np.full(len(components), 1.0 / len(components))
        mixture = Mixture(components, equal, 0.0, posterior.likelihood)
        if isinstance(mixture.likelihood, StudentT | VaryingStudentT):
            return None
    else:
        return None
    return mixture if type(mixture.likelihood) in Kinds else None


def _inflated(mixture: SparseMixture, opt: Optimum) -> Component:
    """An optimum with the inflation of the mixture as part of its parameters and factor."""
    c, phi, outputs = mixture.inflation, opt.phi.copy(), mixture.likelihood.outputs
    if "log_sigma" in outputs:
        bias = layer_slices(opt.sizes)[-1][1]
        phi[bias + outputs.index("log_sigma") :: len(outputs)] += np.log(c)
    precision = precision_of(opt)
    precision = Precision.from_factor(precision.chol, c * precision.scale)
    factors = [Factor(opt.active, precision)] if len(opt.active) else []
    return Component(opt.sizes, opt.activation, phi, inflated_noise(mixture, opt.noise), factors)


def _last_factors(posterior: LastLayerPosterior) -> list[Factor]:
    """One factor per target: its weights from the last hidden layer, and its bias."""
    start, middle, _ = layer_slices(posterior.network.sizes)[-1]
    width, out = posterior.network.sizes[-2], []
    for k, fit in enumerate(posterior.layer.fits):
        places = np.append(start + k * width + np.arange(width), middle + k)
        if len(fit.kept):
            out.append(Factor(places[fit.kept], fit.precision))
    return out


def _training(training: np.ndarray) -> dict[str, Any]:
    """Training inputs as 32-bit multiples of their grid, one row after the other, and weights."""
    inputs = np.round(training[:-1].T / GRID)
    return {
        "inputs": base64.b64encode(inputs.astype("<i4").tobytes()).decode(),
        "grid": GRID,
        "weights": packed(training[-1]),
    }


def can_rebuild(mixture: Mixture, training: np.ndarray) -> bool:
    """Whether the factors follow from training inputs, precisely enough and without long waits.

    They do not if the noise differs from row to row, or if too many inputs are needed.
    """
    n, n_outputs = training.shape[1], len(mixture.likelihood.outputs)
    grid = training[:-1] / GRID
    on_grid = bool((grid == np.round(grid)).all()) and bool((np.abs(grid) < 2**31).all())
    n_characters = BASE64 * (0.5 * training[:-1].size + n)
    if not n or not on_grid or n_characters > MAX_INPUTS:
        return False
    if n * n_outputs * _n_factors(mixture) > MAX_WORK:
        return False
    rng = np.random.default_rng(0)
    low, high = training[:-1].min(axis=1), training[:-1].max(axis=1)
    x_t = rng.uniform(low, high, size=(200, len(low))).T
    for component in mixture.components:
        for factor in component.factors:
            layout = Layout(component.sizes, factor.parameters)
            again = rebuilt(component, layout, factor.precision.scale, training, mixture.likelihood)
            f, jac = jacobian(component.phi, x_t, layout, component.activation)
            flat = jac.reshape(len(jac), -1)
            before, after = (p.variance(flat).reshape(f.shape) for p in (factor.precision, again))
            noise = 1.0 / _information(f, component.theta, mixture.likelihood)
            if (np.abs(after - before) > 2 * EXACT * (before + noise)).any():
                return False
    return True


def rebuilt(
    component: Component,
    layout: Layout,
    scale: np.ndarray,
    training: np.ndarray,
    likelihood: Likelihood,
) -> Precision:
    """The precision H = Σ Jᵀ W J + diag(α) of the uncertain weights, as the page computes it."""
    f, jac = jacobian(component.phi, training[:-1], layout, component.activation)
    weights = _information(f, component.theta, likelihood) * training[-1]
    return Precision((jac * np.sqrt(weights)).reshape(len(jac), -1), scale**-2.0).as_primal()


def _information(f: np.ndarray, theta: np.ndarray, likelihood: Likelihood) -> np.ndarray:
    """Information of the outputs, of their shape (n_targets p, n)."""
    by_target = f.reshape(len(theta), -1, f.shape[1]).transpose(0, 2, 1)
    found = np.broadcast_to(likelihood.information(by_target, theta[:, None]), by_target.shape)
    return found.transpose(0, 2, 1).reshape(f.shape)


def _component(component: Component, likelihood: Likelihood, small: bool) -> dict[str, Any]:
    out: dict[str, Any] = {
        "sizes": list(component.sizes),
        "activation": component.activation,
        "phi": packed(component.phi),
        "theta": component.theta.tolist(),
        "factors": [
            {
                "parameters": factor.parameters.tolist(),
                "scale": packed(factor.precision.scale),
                "lower": packed(_lower(factor)) if small else None,
            }
            for factor in component.factors
        ],
    }
    if isinstance(likelihood, StudentT | VaryingStudentT):
        # Nodes of the noise scale depend on ν alone, not on x.
        nu = 2.0 + np.exp(component.theta[:, -1])
        nodes, weights, _ = precision_nodes(nu)
        out |= {"nu": nu.tolist(), "nodes": nodes.T.tolist(), "shares": weights.T.tolist()}
    return out


def packed(values: np.ndarray) -> str:
    """Float64 numbers as base64 of their little-endian bytes.

    Examples
    --------
    >>> packed(np.array([1.0]))
    'AAAAAAAA8D8='
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()


def _lower(factor: Factor) -> np.ndarray:
    return factor.precision.chol[np.tril_indices(len(factor.parameters))]


def _n_factors(mixture: Mixture) -> int:
    """How many numbers the factors of all components have."""
    sizes = [len(factor.parameters) for c in mixture.components for factor in c.factors]
    return sum(n * (n + 1) // 2 for n in sizes) + sum(len(c.phi) for c in mixture.components)
