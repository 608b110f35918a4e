"""Networks with their closed-form Jacobian, as models of the Laplace engine."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sbnn.evidence.laplace.models.layout import (
    Array,
    Layout,
    Pass,
    backward_pass,
    forward_pass,
    layer_groups,
    n_parameters,
)
from sbnn.evidence.laplace.models.regression import RegressionModel
from sbnn.evidence.laplace.models.terms import per_row
from sbnn.likelihoods import Likelihood
from sbnn.problems.activations import ACTIVATIONS
from sbnn.problems.network import Network

FEW_INPUTS, STEEP = 3, 40.0
# Penalty of output weights in the regression of targets of variance one: noise of variance 0.1,
# weights of variance ⅓. `FREE` is small enough to have no effect.
RIDGE, FREE, EDGE = 0.3, 1e-6, 3.0
MANY_ROWS, NOISY = 4000, 100.0  # NOISY is 1/σ² for targets of variance one
CALM = 0.1  # scale of random weights into outputs such as log σ, which start close to constants


@functools.lru_cache(maxsize=64)
def _neurons(sizes: tuple[int, ...]) -> list[Array]:
    """Positions in φ of the parameters of every hidden neuron."""
    return [neuron.members for neuron in Network(sizes).neurons()]


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
        return _neurons(self.sizes)

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
        steep: smooth starts do not reach functions with many bends. With one hidden layer, its
        neurons bend at rows of the data, and the targets are regressed on them.
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
            if len(self.sizes) == 3 and self.x_scale is None:
                return self._bent(rng, phi_parts[0].reshape(self.sizes[1::-1]), alpha_parts[0])
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

    def _bent(
        self, rng: np.random.Generator, first: Array, first_alpha: Array
    ) -> tuple[Array, Array, Array]:
        """A start whose neurons, with weights `first` (width, n_in), bend at rows of the data.

        The weights into the first output of each target are those of a ridge regression: if they
        were random, the first updates of α and the noise would treat a function with many bends as
        noise. Outliers are moved to `EDGE` standard deviations of the middle half of the targets.
        """
        (width, _), (n_out, p) = first.shape, (self.sizes[-1], len(self.likelihood.outputs))
        at = rng.choice(self.x_t.shape[1], width, replace=width > self.x_t.shape[1])
        bias = -np.einsum("ij,ji->i", first, self.x_t[:, at])
        hidden = ACTIVATIONS[self.activation].value(first @ self.x_t + bias[:, None])
        features = np.vstack([hidden, np.ones(self.x_t.shape[1])])
        counted = features if self.weights is None else features * self.weights
        penalty = np.diag(np.append(np.full(width, RIDGE), FREE))
        low, middle, high = np.quantile(self.y_t, (0.25, 0.5, 0.75), axis=1, keepdims=True)
        reach = np.where(high > low, EDGE * (high - low) / 1.349, np.inf)
        targets = np.clip(self.y_t, middle - reach, middle + reach)
        found = np.linalg.solve(counted @ features.T + penalty, counted @ targets.T)
        last, out_bias = rng.standard_normal((n_out, width)) / np.sqrt(width), np.zeros(n_out)
        last_alpha = np.full((n_out, width), np.log(width))
        self._calm(last.reshape(-1), last_alpha.reshape(-1))
        out_bias[:] = np.concatenate([self.likelihood.output_start(y) for y in self.y_t])
        last[::p], out_bias[::p] = found[:-1].T, found[-1]
        last_alpha[::p] = -np.log(np.mean(last[::p] ** 2, axis=1, keepdims=True) + FREE)
        phi = np.concatenate([first.ravel(), bias, last.ravel(), out_bias])
        spread = np.full(width, -np.log(np.mean(bias**2) + FREE))
        log_alpha = [first_alpha, spread, last_alpha.ravel(), np.zeros(n_out)]
        return phi, np.concatenate(log_alpha), self.initial_noise()

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
