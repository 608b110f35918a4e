"""Posteriors of fitted networks in standardised units: Laplace mixtures and posterior draws.

Both answer the same questions: the predictive Gaussian mixture at a point, joint draws, the
sensitivity to every input, a smaller posterior with the same predictions, arrays to be stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from sbnn._core.messages import Message, OptimaNotConverged
from sbnn.evidence.laplace.layout import Array, Layout, input_gradient, n_parameters
from sbnn.evidence.laplace.mixture import (
    SparseMixture,
    compacted,
    gaussian_components,
    moments,
    needed,
    precision_of,
    sample,
    shares_at,
)
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.evidence.laplace.precision import Precision
from sbnn.problems.network import Network, push_forward
from sbnn.problems.symmetry import Symmetry

# Change of predictions by `compact`, in predictive stds: three times less than the 1 % promised,
# because it is checked at training inputs only.
COMPACT_TOL = 0.003
# Sampled weights of smaller relevance γ count as pruned.
PRUNED_BELOW = 0.1


@dataclass(frozen=True)
class LaplacePosterior:
    """A mixture over sparse Laplace optima, each self-contained (no data needed to predict).

    `shares` (K, n_out) are the parts of the optima in predictions, averaged over training inputs.
    `compacted` says that the weights kept are all there is: nothing else is counted.
    """

    mixture: SparseMixture
    shares: Array
    compacted: bool = False

    kind = "laplace"

    @classmethod
    def of(cls, mixture: SparseMixture, x_t: Array) -> LaplacePosterior:
        for opt in mixture.optima:
            assert opt.precision is not None
            opt.precision = opt.precision.as_primal()
        return cls(mixture, shares_at(mixture, x_t))

    @property
    def best(self) -> Optimum:
        return self.mixture.optima[0]

    @property
    def network(self) -> Network:
        return Network(self.best.sizes, self.best.activation)

    @property
    def log_alpha(self) -> Array:
        return self.best.log_alpha

    @property
    def relevance(self) -> Array:
        """γ of the best optimum at full length, zero where pruned."""
        gamma = np.zeros(len(self.best.phi))
        gamma[self.best.active] = precision_of(self.best).relevance()
        return gamma

    @property
    def centre_and_spread(self) -> tuple[Array, Array]:
        """Median and half the central 68 % of φ at the best optimum: a Gaussian's mean and std."""
        gamma = 1.0 - self.relevance[self.best.active]
        std = np.zeros(len(self.best.phi))
        std[self.best.active] = np.sqrt(gamma) * np.exp(-0.5 * self.log_alpha[self.best.active])
        return self.best.phi, std

    @property
    def pruned(self) -> Array:
        """Weights of the best optimum that are zero, or without a way to the output."""
        gone = np.isinf(self.log_alpha)
        gone[self.best.active[self.best.layout.unseen]] = True
        return gone

    @property
    def noise_variance(self) -> Array:
        """Mean of σ² over the optima by their shares, shape (n_out,)."""
        variances = np.array([np.exp(2.0 * o.noise[:, 0]) for o in self.mixture.optima])
        return (self.shares * variances).sum(axis=0)

    @property
    def counts(self) -> tuple[float, float]:
        """Parameters kept and in total, averaged over the optima."""
        table = self.table()
        return float(table["n_kept"].mean()), float(table["n_parameters"].mean())

    def table(self) -> pd.DataFrame:
        """One row per optimum, best first; kept are weights with a way to the output."""
        optima = self.mixture.optima
        kept = [len(o.active) - int(o.layout.unseen.sum()) for o in optima]
        return pd.DataFrame(
            {
                "hidden_layer_sizes": [o.sizes[1:-1] for o in optima],
                "log_evidence": [o.log_evidence for o in optima],
                "weight": self.shares.mean(axis=1),
                "n_kept": kept,
                "n_parameters": kept if self.compacted else [len(o.phi) for o in optima],
                "iterations": [o.iterations for o in optima],
                "converged": [o.converged for o in optima],
            }
        )

    def components(self, x_t: Array, noise: bool = True) -> tuple[Array, Array, Array]:
        """Weights, means and stds of the predictive mixture, components first."""
        return gaussian_components(self.mixture, x_t, noise)

    def sample(self, x_t: Array, n: int, rng: np.random.Generator, noise: bool) -> Array:
        return sample(self.mixture, x_t, n, rng, noise)

    def sensitivities(self, x_t: Array, rng: np.random.Generator, n_draws: int = 4):
        """Share of every input in Σⱼ E[(∂f/∂xⱼ)²]: mean over the optima, and its spread.

        The standard deviation, like the mean of shape (n_in,), is taken over optima and over draws
        within them. As in predictions the network is linearised in φ, by a difference quotient.
        Optima that follow no input, constants, take no part.
        """
        modes, draws, small = [], [], 1e-4
        for opt in self.mixture.optima:
            gradient = input_gradient(opt.phi, x_t, opt.layout, opt.activation)
            modes.append(_shares(gradient))
            for delta in precision_of(opt).draw(rng, n_draws).T:
                phi = opt.phi.copy()
                phi[opt.active] += small * delta
                moved = input_gradient(phi, x_t, opt.layout, opt.activation)
                draws.append(_shares(gradient + (moved - gradient) / small))
        own = self.shares.mean(axis=1) * np.any(modes, axis=1)
        own = own / max(own.sum(), 1e-300)
        mean = own @ np.array(modes)
        weights = np.repeat(own if own.any() else self.shares.mean(axis=1), n_draws)
        return mean, np.sqrt(np.average((np.array(draws) - mean) ** 2, axis=0, weights=weights))

    def messages(self) -> list[Message]:
        optima = self.mixture.optima
        late = [o for o in optima if not o.converged]
        if not late:
            return []
        longest = max(o.iterations for o in late)
        changes = [abs(o.history[-1] - o.history[-11]) for o in late if len(o.history) > 10]
        change = float(max(changes)) if changes else None
        return [OptimaNotConverged(len(late), len(optima), longest, change)]

    def compact(self, x_t: Array) -> LaplacePosterior:
        """Every optimum in the smallest network that holds the weights it needs.

        Weights that hardly move a prediction at `x_t` are dropped: the threshold is lowered until
        all that goes changes no mean and no std by more than `COMPACT_TOL` of the latter.
        """
        if self.compacted:
            return self
        mean, std = moments(*self.components(x_t))
        weights = self.mixture.weights
        heavy = weights > 1e-6
        heavy[0] = True  # what is reported of the best optimum stays true
        share = weights[heavy] / weights[heavy].sum()
        optima = [opt for opt, keep in zip(self.mixture.optima, heavy) if keep]
        for threshold in (0.03, 0.01, 0.003, 0.001, 0.0):
            small = tuple(compacted(needed(opt, x_t, threshold)) for opt in optima)
            mixture = replace(self.mixture, optima=small, weights=share)
            new_mean, new_std = moments(*gaussian_components(mixture, x_t))
            change = np.maximum(np.abs(new_mean - mean), np.abs(new_std - std)) / std
            if change.max() <= COMPACT_TOL:
                break
        return LaplacePosterior(mixture, shares_at(mixture, x_t), compacted=True)

    def arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """What a file needs: arrays by name, and plain values."""
        arrays: dict[str, Array] = {"weights": self.mixture.weights, "shares": self.shares}
        plain: list[dict[str, Any]] = []
        for k, opt in enumerate(self.mixture.optima):
            precision = precision_of(opt)
            arrays |= {
                f"phi_{k}": opt.phi[opt.active],
                f"log_alpha_{k}": opt.log_alpha[opt.active],
                f"noise_{k}": opt.noise,
                f"active_{k}": opt.active,
                f"factor_{k}": precision.chol,
                f"scale_{k}": precision.scale,
                f"history_{k}": np.array(opt.history),
            }
            plain.append(
                {
                    "sizes": list(opt.sizes),
                    "activation": opt.activation,
                    "log_evidence": opt.log_evidence,
                    "iterations": opt.iterations,
                    "converged": bool(opt.converged),
                }
            )
        power = self.mixture.precision_power
        return arrays, {"optima": plain, "precision_power": power, "compacted": self.compacted}

    @classmethod
    def from_arrays(cls, arrays, plain) -> LaplacePosterior:
        optima = []
        for k, described in enumerate(plain["optima"]):
            layout = Layout(tuple(described["sizes"]), np.asarray(arrays[f"active_{k}"], int))
            d = n_parameters(layout.sizes)
            phi, log_alpha = np.zeros(d), np.full(d, np.inf)
            if arrays[f"phi_{k}"].shape != layout.active.shape:
                raise ValueError(f"optimum {k} has {len(arrays[f'phi_{k}'])} weights")
            phi[layout.active] = arrays[f"phi_{k}"]
            log_alpha[layout.active] = arrays[f"log_alpha_{k}"]
            optimum = Optimum(
                phi,
                log_alpha,
                arrays[f"noise_{k}"],
                layout,
                described["activation"],
                described["log_evidence"],
                iterations=described["iterations"],
                converged=described["converged"],
                history=arrays[f"history_{k}"].tolist(),
                precision=Precision.from_factor(arrays[f"factor_{k}"], arrays[f"scale_{k}"]),
            )
            optima.append(optimum)
        mixture = SparseMixture(
            tuple(optima), arrays["weights"], precision_power=plain["precision_power"]
        )
        return cls(mixture, arrays["shares"], plain["compacted"])


@dataclass(frozen=True)
class DrawsPosterior:
    """Equally weighted posterior draws of a network and its noise, from a sampling method."""

    network: Network
    phi: Array  # (n_draws, n_parameters)
    noise: Array  # (n_draws, n_outputs), standard deviations
    log_alpha: Array  # (n_parameters,), NaN where there is none
    relevance: Array

    kind = "draws"

    @property
    def representatives(self) -> Array:
        """The draws, each by one of its mirror images, which are the same function.

        Signs are chosen so that the outgoing weights of a neuron sum to a positive number. Neurons
        come in increasing order of a weight, unless their own α tell them apart.
        """
        alike = bool(np.isnan(self.log_alpha).all())
        return Symmetry(self.network, permute=alike).fold(self.phi)

    @property
    def centre_and_spread(self) -> tuple[Array, Array]:
        """Median and half the central 68 %: unlike the std, it says something of heavy tails."""
        low, median, high = np.quantile(self.representatives, [0.16, 0.5, 0.84], axis=0)
        return median, (high - low) / 2

    @property
    def pruned(self) -> Array:
        """Weights that are zero, of γ below `PRUNED_BELOW`, or without a way to the output."""
        gone = np.nan_to_num(self.relevance, nan=1.0) < PRUNED_BELOW
        gone |= (self.phi == 0).all(axis=0)
        layout = Layout(self.network.sizes, np.flatnonzero(~gone))
        gone[layout.active[layout.unseen]] = True
        return gone

    @property
    def noise_variance(self) -> Array:
        return (self.noise**2).mean(axis=0)

    @property
    def counts(self) -> tuple[float, float]:
        return float((~self.pruned).sum()), float(self.phi.shape[1])

    def table(self) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "hidden_layer_sizes": [self.network.sizes[1:-1]],
                "weight": [1.0],
                "n_kept": [int(self.counts[0])],
                "n_parameters": [self.phi.shape[1]],
            }
        )

    def messages(self) -> list[Message]:
        return []

    def components(self, x_t: Array, noise: bool = True) -> tuple[Array, Array, Array]:
        means = push_forward(self.network, self.phi, x_t.T).transpose(0, 2, 1)
        stds = np.broadcast_to((self.noise if noise else 0.0 * self.noise)[:, :, None], means.shape)
        return np.full_like(means, 1.0 / len(means)), means, stds

    def sample(self, x_t: Array, n: int, rng: np.random.Generator, noise: bool) -> Array:
        rows = rng.choice(len(self.phi), size=n, replace=n > len(self.phi))
        values = push_forward(self.network, self.phi[rows], x_t.T).transpose(0, 2, 1)
        if noise:
            values = values + self.noise[rows][:, :, None] * rng.standard_normal(values.shape)
        return values

    def sensitivities(self, x_t: Array, rng: np.random.Generator, n_draws: int = 100):
        rows = rng.choice(len(self.phi), size=min(n_draws, len(self.phi)), replace=False)
        layout = Layout(self.network.sizes)
        name = self.network.activation
        shares = [_shares(input_gradient(self.phi[r], x_t, layout, name)) for r in rows]
        return np.mean(shares, axis=0), np.std(shares, axis=0)

    def compact(self, x_t: Array) -> DrawsPosterior:
        """Without the weights of no relevance, as far as predictions stay within 1 % of their std.

        The threshold on γ is lowered until they do; γ itself says nothing about predictions.
        """
        from sbnn.evidence.relevance import drop_dead_neurons

        _, before, _ = self.components(x_t, noise=False)
        std = np.sqrt(before.var(axis=0) + self.noise_variance[:, None])
        for threshold in (0.3, 0.1, 0.03, 0.01, 0.003, 0.0):
            gone = np.nan_to_num(self.relevance, nan=1.0) < threshold
            network, phi, _ = drop_dead_neurons(self.network, np.where(gone, 0.0, self.phi))
            small = DrawsPosterior(network, phi, self.noise, *_unknown(network))
            _, after, _ = small.components(x_t, noise=False)
            shift = np.abs(after.mean(axis=0) - before.mean(axis=0))
            spread = np.abs(np.sqrt(after.var(axis=0) + self.noise_variance[:, None]) - std)
            if max((shift / std).max(), (spread / std).max()) < COMPACT_TOL:
                return small
        return self

    def arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        arrays = {
            "phi": self.phi,
            "noise": self.noise,
            "log_alpha": self.log_alpha,
            "relevance": self.relevance,
        }
        return arrays, {"sizes": list(self.network.sizes), "activation": self.network.activation}

    @classmethod
    def from_arrays(cls, arrays, plain) -> DrawsPosterior:
        network = Network(tuple(plain["sizes"]), plain["activation"])
        if arrays["phi"].shape[1:] != (network.n_parameters,):
            raise ValueError(f"the draws have shape {arrays['phi'].shape}")
        return cls(
            network, arrays["phi"], arrays["noise"], arrays["log_alpha"], arrays["relevance"]
        )


Posterior = LaplacePosterior | DrawsPosterior
KINDS: dict[str, Any] = {"laplace": LaplacePosterior, "draws": DrawsPosterior}


def _unknown(network: Network) -> tuple[Array, Array]:
    nothing = np.full(network.n_parameters, np.nan)
    return nothing, nothing


def _shares(gradient: Array) -> Array:
    squares = (gradient**2).mean(axis=(1, 2))
    total = squares.sum()
    return squares / total if total > 0 else squares
