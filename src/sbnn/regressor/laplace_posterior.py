"""A mixture of sparse Laplace optima as a `Posterior`: predictions, sensitivities, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from sbnn._core.messages import Message, OptimaNotConverged
from sbnn.evidence.laplace.layout import Array, Layout, input_gradient, n_parameters
from sbnn.evidence.laplace.mixture import (
    SparseMixture,
    compacted,
    needed,
    noise_std_at,
    precision_of,
    predictive,
    sample,
    shares_at,
)
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.evidence.laplace.precision import Precision
from sbnn.likelihoods import from_description
from sbnn.methods.draws_posterior import COMPACT_TOL
from sbnn.methods.posterior import gradient_shares
from sbnn.problems.network import Network
from sbnn.scores import Predictive


@dataclass(frozen=True)
class LaplacePosterior:
    """A mixture over sparse Laplace optima, each self-contained (no data needed to predict).

    `shares` (K, n_out) are the weights of the optima in predictions, averaged over training inputs,
    and `noise_variance` (n_out,) is the variance of the noise, averaged in the same way.
    If `compacted`, only the weights kept are stored and counted.
    """

    mixture: SparseMixture
    shares: Array
    noise_variance: Array
    compacted: bool = False

    kind = "laplace"
    sampled = False

    @classmethod
    def of(cls, mixture: SparseMixture, x_t: Array, rows: Array | None = None) -> LaplacePosterior:
        """The posterior of a fitted mixture, with shares averaged over the inputs `x_t`.

        `rows` says how many times each input counts.
        """
        for opt in mixture.optima:
            assert opt.precision is not None
            opt.precision = opt.precision.as_primal()
        noise = np.average(noise_std_at(mixture, x_t) ** 2, axis=0, weights=rows)
        return cls(mixture, shares_at(mixture, x_t, rows), noise)

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
    def counts(self) -> tuple[float, float]:
        """Parameters kept and in total, averaged over the optima."""
        table = self.table()
        return float(table["n_kept"].mean()), float(table["n_parameters"].mean())

    def table(self) -> pd.DataFrame:
        """One row per optimum, best first; kept weights are connected to the output."""
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

    def noise_std_at(self, x_t: Array) -> Array:
        return noise_std_at(self.mixture, x_t)

    def sample(self, x_t: Array, n: int, rng: np.random.Generator, noise: bool = False) -> Array:
        """n draws of functions at x_t, with `noise` of observations, shape (n, m, n_out)."""
        return sample(self.mixture, x_t, n, rng, noise).swapaxes(1, 2)

    def sensitivities(
        self, x_t: Array, rng: np.random.Generator, n_draws: int = 4
    ) -> tuple[Array, Array]:
        """Share of every input in Σⱼ E[(∂f/∂xⱼ)²]: mean over the optima, and its std, each (n_in,).

        The standard deviation is taken over optima and over draws within them. As in predictions,
        the network is linearised in φ, by a difference quotient. Constant optima are ignored.
        """
        modes, draws, small = [], [], 1e-4
        p = len(self.mixture.likelihood.outputs)  # the first output of each target is its centre
        for opt in self.mixture.optima:
            gradient = input_gradient(opt.phi, x_t, opt.layout, opt.activation)
            modes.append(gradient_shares(gradient[:, ::p]))
            for delta in precision_of(opt).draw(rng, n_draws).T:
                phi = opt.phi.copy()
                phi[opt.active] += small * delta
                moved = input_gradient(phi, x_t, opt.layout, opt.activation)
                draws.append(gradient_shares((gradient + (moved - gradient) / small)[:, ::p]))
        own = self.shares.mean(axis=1) * np.any(modes, axis=1)
        own = own / max(own.sum(), 1e-300)
        mean = own @ np.array(modes)
        weights = np.repeat(own if own.any() else self.shares.mean(axis=1), n_draws)
        return mean, np.sqrt(np.average((np.array(draws) - mean) ** 2, axis=0, weights=weights))

    def messages(self) -> list[Message]:
        """Whether all optima converged."""
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

        Weights that hardly affect predictions at `x_t` are dropped: the threshold is lowered until
        all dropped weights together change no mean and no std by more than `COMPACT_TOL` stds.
        """
        if self.compacted:
            return self
        before = self.predictive(x_t)
        mean, std = before.mean(), before.std()
        weights = self.mixture.weights
        heavy = weights > 1e-6
        heavy[0] = True  # the reported values of the best optimum stay valid
        share = weights[heavy] / weights[heavy].sum()
        optima = [opt for opt, keep in zip(self.mixture.optima, heavy) if keep]
        for threshold in (0.03, 0.01, 0.003, 0.001, 0.0):
            small = tuple(compacted(needed(self.mixture, opt, x_t, threshold)) for opt in optima)
            mixture = replace(self.mixture, optima=small, weights=share)
            after = predictive(mixture, x_t)
            change = np.maximum(np.abs(after.mean() - mean), np.abs(after.std() - std)) / std
            if change.max() <= COMPACT_TOL:
                break
        shares, noise = shares_at(mixture, x_t), self.noise_variance
        return LaplacePosterior(mixture, shares, noise, compacted=True)

    def arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays by name, and plain values, for a file."""
        arrays: dict[str, Array] = {
            "weights": self.mixture.weights,
            "shares": self.shares,
            "noise_variance": self.noise_variance,
        }
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
            tuple(optima), arrays["weights"], likelihood, plain["precision_power"]
        )
        return cls(mixture, arrays["shares"], arrays["noise_variance"], plain["compacted"])
