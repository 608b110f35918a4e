"""Posterior draws of a network as a `Posterior`: predictions, sensitivities, summaries, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from sbnn._core.messages import Message
from sbnn.evidence.laplace.models.layout import Array, Layout, exchange
from sbnn.evidence.reach import Reach, WeightedNetwork, some_rows
from sbnn.likelihoods import Likelihood, from_description, noise_distribution
from sbnn.methods.posterior import effect_shares
from sbnn.problems.mirror_images import counted_once
from sbnn.problems.network import Network, push_forward
from sbnn.problems.symmetry import Symmetry
from sbnn.scores import NormalMixture, Predictive

# Change of predictions by `compact`, in predictive stds: three times less than the 1 % promised,
# because it is checked at training inputs only.
COMPACT_TOL = 0.003
# Sampled weights of smaller relevance γ count as pruned.
PRUNED_BELOW = 0.1


@dataclass(frozen=True)
class DrawsPosterior:
    """Equally weighted posterior draws of a network and its noise, from a sampling method."""

    network: Network
    phi: Array  # (n_draws, n_parameters)
    theta: Array  # (n_draws, n_targets, q), parameters of the likelihood
    likelihood: Likelihood
    noise_variance: Array  # (n_targets,), averaged over the draws and the training inputs
    log_alpha: Array  # (n_parameters,), NaN if not learned
    relevance: Array
    compacted: bool = False
    reach: Reach | None = None  # uncertainty outside the range of the training inputs

    kind = "draws"
    sampled = True

    @property
    def representatives(self) -> Array:
        """The draws, each replaced by the mirror image closest to the others: the same function.

        Neurons are not exchanged if their α distinguish them.
        """
        alike = bool(np.isnan(self.log_alpha).all())
        return counted_once(Symmetry(self.network, permute=alike), self.phi)

    @property
    def centre_and_spread(self) -> tuple[Array, Array]:
        """Median and half the width of the central 68 %: unlike the std, robust to heavy tails."""
        low, median, high = np.quantile(self.representatives, [0.16, 0.5, 0.84], axis=0)
        return median, (high - low) / 2

    @property
    def pruned(self) -> Array:
        """Weights that are zero, of γ below `PRUNED_BELOW`, or not connected to the output."""
        gone = np.nan_to_num(self.relevance, nan=1.0) < PRUNED_BELOW
        gone |= (self.phi == 0).all(axis=0)
        layout = Layout(self.network.sizes, np.flatnonzero(~gone))
        gone[layout.active[layout.unseen]] = True
        return gone

    @property
    def counts(self) -> tuple[int, int]:
        return int((~self.pruned).sum()), self.phi.shape[1]

    @property
    def inputs_used(self) -> Array:
        return used_inputs(self.network.sizes, self.pruned)

    def table(self) -> pd.DataFrame:
        """One row: the network that was sampled."""
        return pd.DataFrame(
            {
                "hidden_layer_sizes": [self.network.sizes[1:-1]],
                "weight": [1.0],
                "n_kept": [self.counts[0]],
                "n_parameters": [self.counts[1]],
            }
        )

    def messages(self) -> list[Message]:
        return []

    @property
    def evidence_history(self) -> Array:
        return np.zeros(0)

    def parameter_draws(self, n: int, rng: np.random.Generator) -> Array:
        """All draws, of each set of mirror images one."""
        return self.representatives

    def predictive(
        self, x_t: Array, noise: bool = True, noise_std: Array | None = None
    ) -> Predictive:
        """Equally weighted components, one per draw, points (m, n_targets)."""
        f = self._outputs(self.phi, x_t)
        variance = np.zeros_like(f)
        if self.reach is not None:
            variance[..., 0] = self.reach.variance(x_t)
        if not noise:
            return NormalMixture.of_draws(f[..., 0], np.sqrt(variance[..., 0]))
        theta = self.theta[:, None] if noise_std is None else np.log(noise_std)[None, ..., None]
        return self.likelihood.predictive(_equal(f), f, variance, theta)

    def noise_at(self, x_t: Array) -> Predictive:
        f = self._outputs(self.phi, x_t)
        nothing, theta = np.zeros_like(f), self.theta[:, None]
        return noise_distribution(self.likelihood, _equal(f), f, nothing, theta)

    def sample(self, x_t: Array, n: int, rng: np.random.Generator, noise: bool = False) -> Array:
        """n draws of functions at x_t, with `noise` of observations, shape (n, m, n_targets)."""
        rows = rng.choice(len(self.phi), size=n, replace=n > len(self.phi))
        f = self._outputs(self.phi[rows], x_t)
        if self.reach is not None:
            f[..., 0] += self.reach.draws(x_t, n, rng)
        if not noise:
            return f[..., 0]
        return self.likelihood.sample(rng, f, self.theta[rows][:, None])

    def _outputs(self, phi: Array, x_t: Array) -> Array:
        """Outputs of the network, shape (n_draws, m, n_targets, p)."""
        outputs = np.array(push_forward(self.network, phi, x_t.T))
        outputs = outputs.reshape(*outputs.shape[:2], self.theta.shape[1], -1)
        if self.reach is not None and outputs.shape[-1] > 1:
            # Noise does not go on beyond the range of the data.
            inside = push_forward(self.network, phi, self.reach.inside(x_t).T)
            outputs[..., 1:] = np.reshape(inside, outputs.shape)[..., 1:]
        return outputs

    def with_reach(self, x_t: Array, n_draws: int = 50) -> DrawsPosterior:
        """The posterior with uncertainty outside the range of its training inputs, (n_in, n)."""
        rng, layout = np.random.default_rng(0), Layout(self.network.sizes)
        rows = rng.permutation(len(self.phi))[:n_draws]
        networks = [
            WeightedNetwork(1.0 / len(rows), self.phi[r], layout, self.network.activation)
            for r in rows
        ]
        some = some_rows(x_t.shape[1])
        return replace(self, reach=Reach.of(networks, x_t, len(self.likelihood.outputs), some))

    def sensitivities(
        self,
        x_t: Array,
        rng: np.random.Generator,
        groups: Array | None = None,
        n_draws: int = 100,
    ) -> tuple[Array, Array]:
        """Share of every input in the sum of total effects: mean over draws, and its std."""
        rows = rng.choice(len(self.phi), size=min(n_draws, len(self.phi)), replace=False)
        layout = Layout(self.network.sizes)
        name = self.network.activation
        p = len(self.likelihood.outputs)  # the first output of each target is its centre
        changes = (exchange(self.phi[r], x_t, layout, name, groups)[:, ::p] for r in rows)
        shares = [effect_shares(change) for change in changes]
        return np.mean(shares, axis=0), np.std(shares, axis=0)

    def compact(self, x_t: Array) -> DrawsPosterior:
        """Drop irrelevant weights while predictions change by at most `COMPACT_TOL` of their std.

        The threshold on γ is lowered until they do; γ alone does not bound the change.
        """
        from sbnn.evidence.relevance import drop_dead_neurons

        if self.compacted:
            return self
        before = self._outputs(self.phi, x_t)[..., 0]
        std = np.sqrt(before.var(axis=0) + self.noise_variance)
        for threshold in (0.3, 0.1, 0.03, 0.01, 0.003, 0.0):
            gone = np.nan_to_num(self.relevance, nan=1.0) < threshold
            network, phi, _ = drop_dead_neurons(self.network, np.where(gone, 0.0, self.phi))
            unknown = np.full(network.n_parameters, np.nan)
            small = replace(
                self, network=network, phi=phi, log_alpha=unknown, relevance=unknown,
                compacted=True,
            )  # fmt: skip
            after = small._outputs(phi, x_t)[..., 0]
            shift = np.abs(after.mean(axis=0) - before.mean(axis=0))
            spread = np.abs(np.sqrt(after.var(axis=0) + self.noise_variance) - std)
            if max((shift / std).max(), (spread / std).max()) < COMPACT_TOL:
                return small
        return self

    def arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays by name, and plain values, for a file."""
        arrays = {
            "phi": self.phi,
            "theta": self.theta,
            "noise_variance": self.noise_variance,
            "log_alpha": self.log_alpha,
            "relevance": self.relevance,
        }
        if self.reach is not None:
            arrays |= self.reach.arrays()
        plain: dict[str, Any] = {
            "sizes": list(self.network.sizes),
            "activation": self.network.activation,
        }
        plain |= {"likelihood": self.likelihood.describe(), "compacted": self.compacted}
        return arrays, plain

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], plain: Mapping[str, Any]) -> DrawsPosterior:
        """The inverse of `arrays`."""
        network = Network(tuple(plain["sizes"]), plain["activation"])
        if arrays["phi"].shape[1:] != (network.n_parameters,):
            raise ValueError(f"the draws have shape {arrays['phi'].shape}")
        return cls(
            network,
            arrays["phi"],
            arrays["theta"],
            from_description(plain["likelihood"]),
            arrays["noise_variance"],
            arrays["log_alpha"],
            arrays["relevance"],
            plain["compacted"],
            Reach.from_arrays(arrays),
        )


def used_inputs(sizes: tuple[int, ...], pruned: Array) -> Array:
    """Inputs that weights which are not pruned connect to the output, bool (n_in,)."""
    out = np.zeros(sizes[0], bool)
    out[Layout(sizes, np.flatnonzero(~pruned)).alive[0]] = True
    return out


def _equal(f: Array) -> Array:
    """Equal weights of the draws, for outputs of shape (n_draws, …, p)."""
    return np.full(f.shape[:-1], 1.0 / len(f))
