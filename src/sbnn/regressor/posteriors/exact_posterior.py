"""A mixture of optima with exact posterior draws of each as a `Posterior`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from sbnn._core.messages import Message
from sbnn.evidence.laplace.mixture import (
    SparseMixture,
    inflated_noise,
    inflated_outputs,
    local_weights,
)
from sbnn.evidence.laplace.models.layout import Array, exchange
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.likelihoods import noise_distribution
from sbnn.methods.posterior import effect_shares
from sbnn.problems.network import Network, push_forward
from sbnn.regressor.posteriors.laplace_posterior import LaplacePosterior
from sbnn.scores import NormalMixture, Predictive

N_EFFECTS = 8  # draws of each optimum for the sensitivities


@dataclass(frozen=True)
class DrawsNotMixed(Message, code="draws_not_mixed"):
    """The sampler did not converge at some optima."""

    n_bad: int
    n_optima: int

    def __str__(self) -> str:
        return f"{self.for_command_line()} Increase `n_particles`."

    def for_command_line(self) -> str:
        return (
            f"The draws of {self.n_bad} of {self.n_optima} optima have not converged; their exact "
            "evidence may be off by more than its error."
        )


@dataclass(frozen=True)
class Outputs:
    """Outputs of all draws at m points, for K optima with S draws each and T targets."""

    weights: Array  # (K, m, T), of the optima
    f: Array  # (K, S, m, T, p)
    theta: Array  # (K, 1, T, q), parameters of the likelihood
    beyond: Array  # (m, T), variance outside the range of the training inputs

    @property
    def variance(self) -> Array:
        """Of the outputs of one draw, (K S, m, T, p)."""
        k, s, *rest = self.f.shape
        out = np.zeros((k * s, *rest))
        out[..., 0] = self.beyond
        return out

    @property
    def components(self) -> tuple[Array, Array]:
        """Weights (K S, m, T) and outputs (K S, m, T, p) of the draws."""
        k, s, *rest = self.f.shape
        shares = np.broadcast_to(self.weights[:, None] / s, (k, s, *self.weights.shape[1:]))
        return shares.reshape(k * s, *rest[:-1]), self.f.reshape(k * s, *rest)

    @property
    def theta_of_draws(self) -> Array:
        """(K S, 1, T, q)."""
        return np.repeat(self.theta, self.f.shape[1], axis=0)


@dataclass(frozen=True)
class ExactPosterior(LaplacePosterior):
    """A mixture of optima, each with draws of its exact posterior.

    Predictions use the draws where `LaplacePosterior` linearises the network. Modes and Gaussian
    approximations remain for what is said about single optima.

    Attributes
    ----------
    draws : tuple of ndarray, each of shape (n, n_active)
        Of the active weights of every optimum, the same number for all.
    checks : ndarray, shape (K, 3)
        For every optimum: the Laplace log evidence, the standard error of the exact one, and 1 if
        the sampler converged and its estimates agree.
    """

    draws: tuple[Array, ...] = ()
    checks: Array = field(default_factory=lambda: np.zeros((0, 3)))

    kind = "exact_draws"

    @classmethod
    def of_draws(
        cls,
        mixture: SparseMixture,
        draws: tuple[Array, ...],
        checks: Array,
        x_t: Array,
        rows: Array | None = None,
    ) -> ExactPosterior:
        """The posterior, with shares averaged over inputs `x_t` that count `rows` times."""
        n, nothing = len(mixture.optima), np.zeros(0)
        found = cls(mixture, nothing, nothing, np.full((n, 2), np.nan), False, draws, checks)
        at = found._outputs(x_t)
        shares = np.average(at.weights, axis=1, weights=rows)
        noise = np.average(found._noise(at).std() ** 2, axis=0, weights=rows)
        return replace(found, shares=shares, noise_variance=noise)

    def _phi(self, k: int) -> Array:
        """Draws of all weights of optimum k, zero where pruned."""
        opt = self.mixture.optima[k]
        phi = np.zeros((len(self.draws[k]), len(opt.phi)))
        phi[:, opt.active] = self.draws[k]
        return phi

    def _outputs(self, x_t: Array) -> Outputs:
        mixture, reach, f = self.mixture, self.mixture.reach, self._raw_outputs(x_t)
        beyond = np.zeros(f.shape[2:4])
        if reach is not None:
            beyond = reach.variance(x_t)
            if f.shape[-1] > 1:  # noise does not go on beyond the range of the data
                f[..., 1:] = self._raw_outputs(reach.inside(x_t))[..., 1:]
        centre = f[..., 0].mean(axis=1, keepdims=True)
        f[..., 0] = centre + mixture.inflation * (f[..., 0] - centre)
        f = inflated_outputs(mixture, f)
        theta = inflated_noise(mixture, np.array([opt.noise for opt in mixture.optima]))[:, None]
        noise = 1.0 / mixture.likelihood.information(f.mean(axis=1), theta)[..., 0]
        # As for the linearised mixture: one noise level for all optima.
        total = f[..., 0].var(axis=1) + beyond + np.tensordot(mixture.weights, noise, axes=1)
        return Outputs(local_weights(mixture, total), f, theta, beyond)

    def _raw_outputs(self, x_t: Array) -> Array:
        """Outputs of the networks of all draws, (K, S, m, T, p)."""
        p = len(self.mixture.likelihood.outputs)
        optima = enumerate(self.mixture.optima)
        return np.stack([outputs_of(opt, self._phi(k), x_t, p) for k, opt in optima])

    def _noise(self, at: Outputs) -> Predictive:
        weights, f = at.components
        nothing = np.zeros_like(f)
        return noise_distribution(self.mixture.likelihood, weights, f, nothing, at.theta_of_draws)

    @property
    def relevance(self) -> Array:
        """γ = 1 − α Var[φ] of the best optimum, zero where pruned."""
        gamma = np.zeros(len(self.best.phi))
        alpha = np.exp(self.best.log_alpha[self.best.active])
        gamma[self.best.active] = np.clip(1.0 - alpha * self.draws[0].var(axis=0), 0.0, 1.0)
        return gamma

    @property
    def centre_and_spread(self) -> tuple[Array, Array]:
        """Median of φ at the best optimum, and half the width of its central 68 %."""
        low, median, high = np.quantile(self._phi(0), [0.16, 0.5, 0.84], axis=0)
        return median, (high - low) / 2

    def table(self) -> pd.DataFrame:
        """One row per optimum, best first, with the error of the exact log evidence."""
        found = super().table()
        at = found.columns.get_loc("log_evidence")
        assert isinstance(at, int)
        found.insert(at + 1, "log_evidence_error", self.checks[:, 1])
        found.insert(at + 2, "laplace", self.checks[:, 0])
        return found

    def messages(self) -> list[Message]:
        """Notes on the optima, and how many were not sampled well."""
        bad = int((self.checks[:, 2] == 0).sum())
        return [*super().messages(), *([DrawsNotMixed(bad, len(self.checks))] if bad else [])]

    def parameter_draws(self, n: int, rng: np.random.Generator) -> Array:
        """All draws of the best optimum."""
        return self._phi(0)

    def predictive(
        self, x_t: Array, noise: bool = True, noise_std: Array | None = None
    ) -> Predictive:
        """One component per draw, points (m, n_out)."""
        at = self._outputs(x_t)
        weights, f = at.components
        if not noise:
            return NormalMixture(weights, f[..., 0], np.sqrt(at.variance[..., 0]))
        theta = at.theta_of_draws if noise_std is None else np.log(noise_std)[None, ..., None]
        return self.mixture.likelihood.predictive(weights, f, at.variance, theta)

    def noise_at(self, x_t: Array) -> Predictive:
        return self._noise(self._outputs(x_t))

    def sample(self, x_t: Array, n: int, rng: np.random.Generator, noise: bool = False) -> Array:
        """n draws of functions at x_t, with `noise` of observations, shape (n, m, n_out).

        A function stays with one draw of one optimum for all x. Optima are drawn with their local
        weights averaged over the points, for each target its own.
        """
        at = self._outputs(x_t)
        edges = np.cumsum(at.weights.mean(axis=1), axis=0)  # (K, T)
        level = (rng.permutation(n) + rng.random(n)) / n
        which = (level[:, None, None] > edges[:-1].T).sum(axis=2)  # (n, T)
        row = rng.integers(at.f.shape[1], size=n)
        reach = self.mixture.reach
        beyond = np.zeros((n, *at.beyond.shape)) if reach is None else reach.draws(x_t, n, rng)
        out = np.empty((n, x_t.shape[1], which.shape[1]))
        for t in range(which.shape[1]):
            f = at.f[which[:, t], row][:, :, t : t + 1].copy()  # (n, m, 1, p)
            f[..., 0] += beyond[:, :, t : t + 1]
            theta = at.theta[which[:, t]][:, :, t : t + 1]
            values = self.mixture.likelihood.sample(rng, f, theta) if noise else f[..., 0]
            out[:, :, t] = values[..., 0]
        return out

    def sensitivities(
        self,
        x_t: Array,
        rng: np.random.Generator,
        groups: Array | None = None,
        n_draws: int = N_EFFECTS,
    ) -> tuple[Array, Array]:
        """Share of every input in the sum of total effects: mean over optima and draws, and std."""
        p = len(self.mixture.likelihood.outputs)  # the first output of each target is its centre
        found, weights = [], []
        for k, opt in enumerate(self.mixture.optima):
            phi = self._phi(k)
            for r in rng.choice(len(phi), size=min(n_draws, len(phi)), replace=False):
                change = exchange(phi[r], x_t, opt.layout, opt.activation, groups)
                found.append(effect_shares(change[:, ::p]))
                weights.append(self.shares[k].mean() * bool(found[-1].any()))
        shares, own = np.array(found), np.array(weights)
        own = own / own.sum() if own.any() else np.full(len(own), 1.0 / len(own))
        mean = own @ shares
        return mean, np.sqrt(own @ (shares - mean) ** 2)

    def alone(self, k: int, x_t: Array) -> ExactPosterior:
        """The posterior at optimum k only; `x_t` are inputs to average its noise over."""
        mixture = replace(self.mixture, optima=(self.mixture.optima[k],), weights=np.ones(1))
        found = self.of_draws(mixture, (self.draws[k],), self.checks[[k]], x_t)
        return replace(found, losses=np.zeros((1, 2)), compacted=self.compacted)

    def arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays by name, and plain values, for a file."""
        arrays, plain = super().arrays()
        arrays["checks"] = self.checks
        return arrays | {f"draws_{k}": draws for k, draws in enumerate(self.draws)}, plain

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], plain: Mapping[str, Any]) -> ExactPosterior:
        """The inverse of `arrays`."""
        found = super().from_arrays(arrays, plain)
        draws = tuple(arrays[f"draws_{k}"] for k in range(len(plain["optima"])))
        for k, (opt, mine) in enumerate(zip(found.mixture.optima, draws)):
            if mine.shape[1:] != opt.active.shape:
                raise ValueError(f"the draws of optimum {k} have shape {mine.shape}")
        assert isinstance(found, cls)
        return replace(found, draws=draws, checks=arrays["checks"])


def outputs_of(opt: Optimum, phi: Array, x_t: Array, p: int) -> Array:
    """Outputs of draws φ (S, n_parameters) of a network, (S, m, T, p)."""
    f = push_forward(Network(opt.sizes, opt.activation), phi, x_t.T)
    return f.reshape(*f.shape[:2], -1, p)
