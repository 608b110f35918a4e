"""A mixture of sparse Laplace optima as a `Posterior`: predictions, sensitivities, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from sbnn._core.messages import Message, OptimaNotConverged
from sbnn.evidence.columns import SCREENED
from sbnn.evidence.laplace.mixture import (
    SparseMixture,
    compacted,
    noise_at,
    precision_of,
    predictive,
    sample,
    shares_at,
)
from sbnn.evidence.laplace.models.layout import Array, Layout, exchange, n_parameters
from sbnn.evidence.laplace.models.precision import Precision
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.evidence.laplace.options import Options
from sbnn.evidence.reach import Reach, WeightedNetwork, some_rows
from sbnn.likelihoods import from_description
from sbnn.methods.posterior import effect_shares
from sbnn.problems.network import Network
from sbnn.scores import Predictive


def _reach(mixture: SparseMixture, x_t: Array, some: Array) -> Reach:
    networks = [
        WeightedNetwork(weight, opt.phi, opt.layout, opt.activation)
        for weight, opt in zip(mixture.weights, mixture.optima)
    ]
    return Reach.of(networks, x_t, len(mixture.likelihood.outputs), some)


def uses(opt: Optimum) -> Array:
    """Inputs with a path to the output of an optimum, bool (n_in,)."""
    out = np.zeros(opt.sizes[0], bool)
    out[opt.layout.alive[0]] = True
    return out


@dataclass(frozen=True)
class InputsChosen(Message, code="inputs_chosen"):
    """A table has many inputs, and those without evidence of an effect are not used."""

    n_used: int
    n_inputs: int

    def __str__(self) -> str:
        text = f"{self.n_used:,} of {self.n_inputs:,} inputs are used; the evidence removed others."
        if self.n_inputs > SCREENED:
            text += (
                f" A screening, in which each input was scored alone, left {SCREENED} of them: "
                "effects that only show in combination may be missed."
            )
        return text


@dataclass(frozen=True)
class LaplacePosterior:
    """A mixture over sparse Laplace optima, each self-contained (no data needed to predict).

    `shares` (K, n_out) are the weights of the optima in predictions, averaged over training inputs,
    and `noise_variance` (n_out,) is the variance of the noise, averaged in the same way.
    `losses` (K, 2) is what left-out rows lose if one optimum predicts alone, in nats per row, with
    its standard error; NaN if not known. If `compacted`, only the weights kept are stored.
    """

    mixture: SparseMixture
    shares: Array
    noise_variance: Array
    losses: Array
    compacted: bool = False

    kind = "laplace"
    sampled = False

    @classmethod
    def of(cls, mixture: SparseMixture, x_t: Array, rows: Array | None = None) -> LaplacePosterior:
        """The posterior of a mixture fitted at inputs `x_t`, (n_in, n).

        Shares are averaged over some of the inputs; `rows` says how many times each counts.
        """
        some = some_rows(x_t.shape[1])
        for opt in mixture.optima:
            assert opt.precision is not None
            opt.precision = opt.precision.as_primal()
        own = None if rows is None else rows[some]
        noise = np.average(noise_at(mixture, x_t[:, some]).std() ** 2, axis=0, weights=own)
        reach = _reach(mixture, x_t, some).with_error_of_slopes(noise, x_t, rows)
        mixture, x_t, rows = replace(mixture, reach=reach), x_t[:, some], own
        losses = np.full((len(mixture.optima), 2), np.nan)
        return cls(mixture, shares_at(mixture, x_t, rows), noise, losses)

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
        """Median and half the central 68 % of φ at the best optimum: its mean and std."""
        gamma = 1.0 - self.relevance[self.best.active]
        std = np.zeros(len(self.best.phi))
        std[self.best.active] = np.sqrt(gamma) * np.exp(-0.5 * self.log_alpha[self.best.active])
        return self.best.phi, std

    @property
    def pruned(self) -> Array:
        """Weights of the best optimum that are zero or not connected to the output."""
        gone = np.isinf(self.log_alpha)
        gone[self.best.active[self.best.layout.unseen]] = True
        return gone

    @property
    def counts(self) -> tuple[int, int]:
        """Parameters of all optima together: kept, and before pruning."""
        table = self.table()
        return int(table["n_kept"].sum()), int(table["n_parameters"].sum())

    @property
    def inputs_used(self) -> Array:
        """Inputs with a path to the output of some optimum."""
        return np.any([uses(opt) for opt in self.mixture.optima], axis=0)

    def table(self) -> pd.DataFrame:
        """One row per optimum, best first; kept weights are connected to the output."""
        optima = self.mixture.optima
        kept = [len(o.active) - int(o.layout.unseen.sum()) for o in optima]
        return pd.DataFrame(
            {
                "hidden_layer_sizes": [o.sizes[1:-1] for o in optima],
                "log_evidence": [o.log_evidence for o in optima],
                "weight": self.shares.mean(axis=1),
                "loss": self.losses[:, 0],
                "loss_error": self.losses[:, 1],
                "n_kept": kept,
                "n_parameters": kept if self.compacted else [len(o.phi) for o in optima],
                "iterations": [o.iterations for o in optima],
                "converged": [o.converged for o in optima],
            }
        )

    @property
    def evidence_history(self) -> Array:
        return np.asarray(self.best.history) - self.best.log_evidence

    def parameter_draws(self, n: int, rng: np.random.Generator) -> Array:
        """n draws of φ from the Gaussian at the best optimum, shape (n, n_parameters)."""
        draws = np.repeat(self.best.phi[:, None], n, axis=1)
        draws[self.best.active] += precision_of(self.best).draw(rng, n)
        return draws.T

    def predictive(
        self, x_t: Array, noise: bool = True, noise_std: Array | None = None
    ) -> Predictive:
        """One component per optimum (and node of its noise), points (m, n_out)."""
        return predictive(self.mixture, x_t, noise, noise_std)

    def noise_at(self, x_t: Array) -> Predictive:
        return noise_at(self.mixture, x_t)

    def sample(self, x_t: Array, n: int, rng: np.random.Generator, noise: bool = False) -> Array:
        """n draws of functions at x_t, with `noise` of observations, shape (n, m, n_out)."""
        return sample(self.mixture, x_t, n, rng, noise).swapaxes(1, 2)

    def sensitivities(
        self,
        x_t: Array,
        rng: np.random.Generator,
        groups: Array | None = None,
        n_draws: int = 4,
    ) -> tuple[Array, Array]:
        """Share of every input in the sum of total effects: mean over the optima, and its std.

        The standard deviation is taken over optima and over draws within them. As in predictions,
        the network is linearised in φ, by a difference quotient. Constant optima are ignored.
        """
        modes, draws, small = [], [], 1e-4
        p = len(self.mixture.likelihood.outputs)  # the first output of each target is its centre
        for opt in self.mixture.optima:
            change = exchange(opt.phi, x_t, opt.layout, opt.activation, groups)
            modes.append(effect_shares(change[:, ::p]))
            for delta in precision_of(opt).draw(rng, n_draws).T:
                phi = opt.phi.copy()
                phi[opt.active] += small * delta
                moved = exchange(phi, x_t, opt.layout, opt.activation, groups)
                drawn = change + (moved - change) / small
                draws.append(effect_shares(drawn[:, ::p]))
        own = self.shares.mean(axis=1) * np.any(modes, axis=1)
        own = own / max(own.sum(), 1e-300)
        mean = own @ np.array(modes)
        weights = np.repeat(own if own.any() else self.shares.mean(axis=1), n_draws)
        return mean, np.sqrt(np.average((np.array(draws) - mean) ** 2, axis=0, weights=weights))

    def messages(self) -> list[Message]:
        """Whether all optima converged, and how many inputs of a wide table are used."""
        optima, out = self.mixture.optima, list[Message]()
        used = np.unique(np.concatenate([o.layout.alive[0] for o in optima]))
        if optima[0].sizes[0] > Options.max_columns and len(used) < optima[0].sizes[0]:
            out.append(InputsChosen(len(used), optima[0].sizes[0]))
        late = [o for o in optima if not o.converged]
        if not late:
            return out
        longest = max(o.iterations for o in late)
        changes = [abs(o.history[-1] - o.history[-11]) for o in late if len(o.history) > 10]
        change = float(max(changes)) if changes else None
        sparse = any(len(o.active) < len(o.phi) for o in optima)
        return [*out, OptimaNotConverged(len(late), len(optima), longest, change, sparse)]

    def compact(self, x_t: Array) -> LaplacePosterior:
        """Every optimum in the smallest network that holds the weights it keeps."""
        if self.compacted:
            return self
        optima = tuple(compacted(opt) for opt in self.mixture.optima)
        return replace(self, mixture=replace(self.mixture, optima=optima), compacted=True)

    def alone(self, k: int, x_t: Array) -> LaplacePosterior:
        """The posterior at optimum k only; `x_t` are inputs to average its noise over."""
        mixture = replace(self.mixture, optima=(self.mixture.optima[k],), weights=np.ones(1))
        noise = (noise_at(mixture, x_t).std() ** 2).mean(axis=0)
        shares, losses = np.ones((1, self.shares.shape[1])), np.zeros((1, 2))
        return replace(self, mixture=mixture, shares=shares, noise_variance=noise, losses=losses)

    def arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays by name, and plain values, for a file."""
        arrays: dict[str, Array] = {
            "weights": self.mixture.weights,
            "shares": self.shares,
            "noise_variance": self.noise_variance,
            "losses": self.losses,
        }
        if self.mixture.reach is not None:
            arrays |= self.mixture.reach.arrays()
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
        return arrays, {
            "optima": plain,
            "likelihood": self.mixture.likelihood.describe(),
            "precision_power": self.mixture.precision_power,
            "inflation": self.mixture.inflation,
            "compacted": self.compacted,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], plain: Mapping[str, Any]) -> LaplacePosterior:
        """The inverse of `arrays`."""
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
        likelihood = from_description(plain["likelihood"])
        mixture = SparseMixture(
            tuple(optima), arrays["weights"], likelihood, plain["precision_power"],
            reach=Reach.from_arrays(arrays), inflation=plain["inflation"],
        )  # fmt: skip
        shares, noise, losses = (arrays[n] for n in ("shares", "noise_variance", "losses"))
        return cls(mixture, shares, noise, losses, plain["compacted"])
