"""method="last_layer": a network trained as a whole, then NSBL on its output layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sbnn._core.messages import Message
from sbnn.evidence.laplace.fit import fit
from sbnn.evidence.laplace.models.layout import Array, Layout, exchange, forward_pass
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.evidence.laplace.options import Options
from sbnn.evidence.laplace.pruning import evolve
from sbnn.evidence.linear.blocks import Block, LocalSource, Reader
from sbnn.evidence.linear.layer import KnownNoise, Layer, learn_layer
from sbnn.evidence.linear.storage import layer_arrays, layer_from_arrays
from sbnn.evidence.reach import Reach, WeightedNetwork, some_rows
from sbnn.likelihoods import Likelihood, noise_distribution
from sbnn.methods.draws_posterior import used_inputs
from sbnn.methods.last_layer.learn import messages
from sbnn.methods.last_layer.messages import FeaturesFitted
from sbnn.methods.posterior import effect_shares
from sbnn.problems.network import Network, layer_slices
from sbnn.regressor.deep import network_model, noise_choice
from sbnn.scores import NormalMixture, Predictive

if TYPE_CHECKING:
    from sbnn.regressor.training import Task

KIND_NAMES = ("constant", "student_t")
FEATURE_ROWS = 8192  # rows that train the hidden layers; all rows train the output layer
FINAL_ITERATIONS = 20  # of the best network, on all rows that train it
# Rows per weight of the hidden layers below which intervals are too narrow: with 2, 5, 10 and 20,
# intervals of 95 % covered 77, 88, 93 and 93 % of new rows (two layers of ten, three inputs).
ROWS_PER_WEIGHT = 10


@dataclass(frozen=True)
class LastLayerPosterior:
    """A network with fixed hidden layers and the exact posterior of its output layer.

    Attributes
    ----------
    network : Network
    phi : array, shape (n_parameters,)
        Trained hidden layers, and the posterior mean of the output layer.
    layer : Layer
        Weights of the last hidden neurons and the bias, for every target.
    noise_variance : array, shape (n_targets,)
    reach : Reach
        Uncertainty outside the range of the training inputs.
    compacted : bool
    """

    network: Network
    phi: Array
    layer: Layer
    noise_variance: Array
    reach: Reach
    compacted: bool = False

    kind = "last_layer"
    sampled = False

    @property
    def n_hidden(self) -> int:
        """Number of parameters of the hidden layers, which come first."""
        return layer_slices(self.network.sizes)[-1][0]

    def _of_output(self, name: str, start: float) -> Array:
        """Values of the output layer at full length, `start` in the hidden layers."""
        fits = [getattr(fit, name) for fit in self.layer.fits]
        weights, biases = np.array([f[:-1] for f in fits]), np.array([f[-1] for f in fits])
        return np.concatenate([np.full(self.n_hidden, start), weights.ravel(), biases])

    @property
    def log_alpha(self) -> Array:
        """NaN in the hidden layers, which have no precision of their own."""
        return self._of_output("log_alpha", np.nan)

    @property
    def relevance(self) -> Array:
        return self._of_output("relevance", np.nan)

    @property
    def centre_and_spread(self) -> tuple[Array, Array]:
        return self.phi, self._of_output("std", 0.0)

    @property
    def pruned(self) -> Array:
        """Pruned output weights, and hidden weights that no longer reach the output."""
        gone = np.isinf(self.log_alpha)
        layout = Layout(self.network.sizes, np.flatnonzero(~gone))
        gone[layout.active[layout.unseen]] = True
        return gone

    @property
    def counts(self) -> tuple[int, int]:
        kept = int((~self.pruned).sum())
        return kept, kept if self.compacted else len(self.phi)

    @property
    def inputs_used(self) -> Array:
        return used_inputs(self.network.sizes, self.pruned)

    @property
    def evidence_history(self) -> Array:
        return np.zeros(0)

    def table(self) -> pd.DataFrame:
        """One row: the network."""
        return pd.DataFrame(
            {
                "hidden_layer_sizes": [self.network.sizes[1:-1]],
                "log_evidence": [self.layer.log_evidence],
                "weight": [1.0],
                "n_kept": [self.counts[0]],
                "n_parameters": [self.counts[1]],
                "converged": [self.layer.converged],
            }
        )

    def messages(self) -> list[Message]:
        out, n_rows = messages(self.layer), self.layer.n_rows
        if n_rows < ROWS_PER_WEIGHT * self.n_hidden and not self.compacted:
            out.append(FeaturesFitted(self.n_hidden, n_rows))
        return out

    def features(self, x_t: Array) -> Array:
        """Activations of the last hidden layer and a constant, shape (m, d)."""
        return Hidden(self.network, self.phi).with_constant(x_t)

    def parameter_draws(self, n: int, rng: np.random.Generator) -> Array:
        """n draws of φ; the hidden layers are the same in all of them."""
        out = np.tile(self.phi, (n, 1))
        draws = np.stack([fit.draws(rng, n) for fit in self.layer.fits], axis=1)
        out[:, self.n_hidden :] = np.concatenate(
            [draws[:, :, :-1].reshape(n, -1), draws[:, :, -1]], axis=1
        )
        return out

    def predictive(
        self, x_t: Array, noise: bool = True, noise_std: Array | None = None
    ) -> Predictive:
        mean, _ = self.layer.outputs(self.features(x_t))
        _, variance = self.layer.outputs(self.features(self.reach.inside(x_t)))
        variance = variance + self.reach.variance(x_t)
        weights = np.ones((1, *mean.shape))
        if not noise:
            return NormalMixture(weights, mean[None], np.sqrt(variance)[None])
        theta = self.layer.theta if noise_std is None else np.log(noise_std)[..., None]
        return self.layer.likelihood.predictive(
            weights, mean[None, ..., None], variance[None, ..., None], theta[None]
        )

    def noise_at(self, x_t: Array) -> Predictive:
        shape = (1, x_t.shape[1], len(self.layer.fits))
        nothing = np.zeros((*shape, 1))
        return noise_distribution(
            self.layer.likelihood, np.ones(shape), nothing, nothing, self.layer.theta[None]
        )

    def sample(self, x_t: Array, n: int, rng: np.random.Generator, noise: bool = False) -> Array:
        mean, _ = self.layer.outputs(self.features(x_t))
        inside = self.features(self.reach.inside(x_t)).T
        deviations = [(fit.draws(rng, n) - fit.mean) @ inside for fit in self.layer.fits]
        values = mean + np.stack(deviations, axis=2) + self.reach.draws(x_t, n, rng)
        if not noise:
            return values
        return self.layer.likelihood.sample(rng, values[..., None], self.layer.theta)

    def sensitivities(
        self,
        x_t: Array,
        rng: np.random.Generator,
        groups: Array | None = None,
        n_draws: int = 8,
    ) -> tuple[Array, Array]:
        layout, name = Layout(self.network.sizes), self.network.activation
        shares = lambda phi: effect_shares(exchange(phi, x_t, layout, name, groups))
        mean = shares(self.phi)
        draws = np.array([shares(phi) for phi in self.parameter_draws(n_draws, rng)])
        return mean, np.sqrt(((draws - mean) ** 2).mean(axis=0))

    def compact(self, x_t: Array) -> LastLayerPosterior:
        """The same function without neurons that do not reach the output."""
        sizes = self.network.sizes
        alive = Layout(sizes, np.flatnonzero(~self.pruned)).alive
        if self.compacted or any(len(neurons) == 0 for neurons in alive[1:-1]):
            return self
        alive[0] = np.arange(sizes[0])
        parts = []
        for k, (s, m, e) in enumerate(layer_slices(sizes)):
            matrix = self.phi[s:m].reshape(sizes[k + 1], sizes[k])
            parts += [matrix[np.ix_(alive[k + 1], alive[k])].ravel(), self.phi[m:e][alive[k + 1]]]
        columns = np.append(alive[-2], sizes[-2])  # the bias is last
        cut = {name: lambda fit, name=name: getattr(fit, name)[columns] for name in _VECTORS}
        fits = tuple(
            replace(fit, **{name: take(fit) for name, take in cut.items()})
            for fit in self.layer.fits
        )
        network = Network(tuple(len(a) for a in alive), self.network.activation)
        layer = replace(self.layer, fits=fits)
        return replace(
            self, network=network, phi=np.concatenate(parts), layer=layer, compacted=True
        )

    def arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays by name, and plain values, for a file."""
        arrays, plain = layer_arrays(self.layer)
        arrays |= {"phi": self.phi, "noise_variance": self.noise_variance, **self.reach.arrays()}
        return arrays, {
            "layer": plain,
            "sizes": list(self.network.sizes),
            "activation": self.network.activation,
            "compacted": self.compacted,
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, Array], plain: Mapping[str, Any]
    ) -> LastLayerPosterior:
        """The inverse of `arrays`."""
        network = Network(tuple(plain["sizes"]), plain["activation"])
        if arrays["phi"].shape != (network.n_parameters,):
            raise ValueError(f"the network has {network.n_parameters} parameters")
        layer, reach = layer_from_arrays(arrays, plain["layer"]), Reach.from_arrays(arrays)
        assert reach is not None
        return cls(
            network, arrays["phi"], layer, arrays["noise_variance"], reach, plain["compacted"]
        )


_VECTORS = ("mean", "log_alpha", "relevance")


@dataclass(frozen=True)
class Hidden:
    """The feature function of a network: activations of its last hidden layer."""

    network: Network
    phi: Array

    def __call__(self, x: Array) -> Array:
        """(m, n_in) → (m, n_hidden)."""
        layout = Layout(self.network.sizes)
        done = forward_pass(self.phi, np.ascontiguousarray(x.T), layout, self.network.activation)
        return done.layers[-1][1].T

    def with_constant(self, x_t: Array) -> Array:
        """(n_in, m) → (m, n_hidden + 1)."""
        return np.column_stack([self(x_t.T), np.ones(x_t.shape[1])])


def allowed(kinds: Mapping[str, Likelihood]) -> dict[str, Likelihood]:
    """The kinds of noise that a linear layer can have; a ValueError if there is none."""
    found = {name: kind for name, kind in kinds.items() if name in KIND_NAMES}
    if not found:
        raise ValueError(
            "method='last_layer' has noise 'constant' or 'student_t', not "
            f"{', '.join(map(repr, kinds))}; use one of them or method='laplace_nsbl'."
        )
    return found


def train_last_layer(task: Task) -> tuple[LastLayerPosterior, str]:
    """Train a network, then learn its output layer on all rows; the posterior and the noise.

    Parameters
    ----------
    task : Task

    Returns
    -------
    posterior : LastLayerPosterior
    noise : str
        Name of the kind of noise.
    """
    kinds = allowed(task.kinds)
    x_t, y_t = task.scaling.training(task.rows.x, task.rows.y)
    log_known, counts = task.log_known(), task.rows.weights
    best, likelihood = _trained(task, kinds)
    network = Network(best.sizes, best.activation)
    known = None
    if log_known is not None:
        known = KnownNoise(np.exp(log_known), per_row=log_known.ndim == 2)
    precision = None if known is None else known.precision
    block = Block(x_t.T, y_t.T, counts, precision)
    reader = Reader(Hidden(network, best.phi), intercept=True, block_rows=None)
    layer = learn_layer(LocalSource((block,)), reader, likelihood, known, counts)
    means = np.array([fit.mean for fit in layer.fits])
    phi = best.phi.copy()
    phi[layer_slices(best.sizes)[-1][0] :] = np.concatenate([means[:, :-1].ravel(), means[:, -1]])
    noise = layer.likelihood.std(np.zeros((len(means), 1)), layer.theta) ** 2
    name = next(name for name, kind in kinds.items() if kind == likelihood)
    whole = WeightedNetwork(1.0, phi, Layout(best.sizes), best.activation)
    reach = Reach.of([whole], x_t, 1, some_rows(x_t.shape[1]))
    return LastLayerPosterior(network, phi, layer, noise, reach), name


def _trained(task: Task, kinds: Mapping[str, Likelihood]) -> tuple[Optimum, Likelihood]:
    """The best dense network, with one α per weight matrix and bias vector, and its noise."""
    rng = np.random.default_rng(task.seed)
    some = np.arange(len(task.rows.x))
    if len(some) > FEATURE_ROWS:
        some = np.sort(rng.choice(some, FEATURE_ROWS, replace=False))
    kind = next(iter(kinds.values()))
    models = [
        [network_model(task, widths, kind).rows(some) for widths in family]
        for family in task.architectures
    ]
    options: Options = replace(task.options, sparse=False)
    mixture = fit(models, rng, options, noise_choice(task, kinds))
    best = mixture.optima[0]
    model = next(m for family in models for m in family if m.sizes == best.sizes)
    if task.known is None:
        model = model.with_likelihood(mixture.likelihood)
    best = evolve(model.single(), best, FINAL_ITERATIONS, model.groups(), options.step, options.tol)
    return best, mixture.likelihood
