"""Predictions of left-out rows by a mixture of optima, and what they lose without some inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special
from scipy.spatial import KDTree

from sbnn.evidence.laplace.mixture import SparseMixture, components, precision_of
from sbnn.evidence.laplace.models.layout import Array
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.models.terms import per_row
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.regressor.posteriors.laplace_posterior import uses
from sbnn.regressor.training import Task, known_noise_of

# Rows that are left out, at random if there are more, and similar rows whose values stand in for
# those of a withheld input. Few are closer and need less extrapolation: the ranks of two seeds on
# the concrete table correlated by 1.00 with 5 rows and by 0.86 with 32. Their variance is shrunk to
# its mean over the rows, which counts as much as `PRIOR` values.
MAX_ROWS, N_SIMILAR, PRIOR = 1000, 6, 5.0
SMALL_SHARE = 0.01  # optima with less weight do not count in the loss of inputs
FEW_VALUES = 5  # of the columns of a category


class _Outputs(NamedTuple):
    """Outputs of an optimum at every row, as if the row were absent from the fit.

    Leaving a row out moves its outputs by `shift`, to first order.
    """

    f: Array  # (K, n, p), with the row
    shift: Array  # (K, n, p)
    variance: Array  # (K, n, p), without the row


@dataclass(frozen=True)
class LeftOut:
    """Leave-one-out predictions of the rows that a mixture was fitted to.

    The density of a row is Σ_k w_k(x) p_k(y|x, other rows) with the weights w_k(x) of the optima
    in predictions, and the leave-one-out density of every optimum in its linearised model.

    Attributes
    ----------
    task : Task
    mixture : SparseMixture
    """

    task: Task
    mixture: SparseMixture

    @cached_property
    def rows(self) -> Array:
        """Positions of the rows."""
        n = len(self.task.rows.x)
        return np.sort(np.random.default_rng(0).permutation(n)[:MAX_ROWS])

    @cached_property
    def counts(self) -> Array:
        """How many times every row counts, (n,)."""
        found = self.task.rows.weights
        return np.ones(len(self.rows)) if found is None else found[self.rows]

    @cached_property
    def x_t(self) -> Array:
        """Standardised inputs, (n_in, n)."""
        return np.ascontiguousarray(self._data[0][:, self.rows])

    @cached_property
    def _data(self) -> tuple[Array, Array]:
        return self.task.scaling.training(self.task.rows.x, self.task.rows.y)

    def _model(self, opt: Optimum) -> NetworkModel:
        x_t, y_t = self._data
        model = NetworkModel(
            x_t=x_t, y_t=y_t, sizes=opt.sizes, activation=opt.activation,
            likelihood=self.mixture.likelihood, noise=known_noise_of(self.task),
            weights=self.task.rows.weights,
        )  # fmt: skip
        return model.rows(self.rows)

    @cached_property
    def _outputs(self) -> list[tuple[NetworkModel, Array, _Outputs]]:
        """Model, noise and outputs of every optimum; see `RegressionModel.loo_log_density`."""
        out = []
        for opt in self.mixture.optima:
            model = self._model(opt)
            theta = per_row(opt.noise if model.noise is None else model.noise)
            term = model.data_term(model.evaluate(opt.phi, opt.layout), opt.phi, opt.layout)
            f = model.split(term.f_t)
            found = precision_of(opt).variance(term.flat).reshape(term.f_t.shape)
            variance = model.split(found)
            kept = 1.0 - np.clip(variance * model.likelihood.information(f, theta), 0.0, 0.99)
            variance = variance / kept
            shift = -variance * model.likelihood.score(model.y_t, f, theta)
            out.append((model, theta, _Outputs(f, shift, variance)))
        return out

    def _density(self, k: int, f: Array | None = None, spread: Array | float = 0.0) -> Array:
        """Log densities of the rows by optimum k, (n,), with other outputs and more variance."""
        model, theta, at = self._outputs[k]
        mean = (at.f if f is None else f) + at.shift
        one = np.ones((1, *mean.shape[:-1]))
        variance = at.variance + spread
        predictive = model.likelihood.predictive(one, mean[None], variance[None], theta[None])
        return predictive.log_density(model.y_t).sum(axis=0)

    @cached_property
    def _log_weights(self) -> Array:
        """log w_k(x) at the rows, averaged over the targets, (K, n)."""
        return np.log(components(self.mixture, self.x_t).weights.mean(axis=2) + 1e-300)

    @cached_property
    def _alone(self) -> Array:
        """Log densities of the rows by every optimum, (K, n)."""
        return np.array([self._density(k) for k in range(len(self.mixture.optima))])

    @cached_property
    def log_density(self) -> Array:
        """Log density of every row by the mixture, (n,)."""
        return special.logsumexp(self._log_weights + self._alone, axis=0)

    def mean(self, values: Array) -> tuple[float, float]:
        """Mean over the rows, repetitions included, and its standard error."""
        average = float(np.average(values, weights=self.counts))
        square = float(np.average((values - average) ** 2, weights=self.counts))
        return average, float(np.sqrt(square / max(self.counts.sum() - 1.0, 1.0)))

    def loss_alone(self) -> list[tuple[float, float]]:
        """Loss of log density per row if one optimum replaces the mixture, with its error."""
        return [self.mean(self.log_density - alone) for alone in self._alone]

    def loss_without(self, inputs: Array) -> tuple[float, float]:
        """Loss of log density per row if some inputs are withheld from the mixture.

        What is left is p(y|other inputs) = ∫ p(y|x) p(inputs|other inputs): the values of rows
        that are similar in the other inputs stand in. The function then has their mean, and its
        variance grows by theirs.

        Parameters
        ----------
        inputs : ndarray of int
            Positions of encoded inputs.

        Returns
        -------
        loss, error : float
            Exactly zero if no optimum uses the inputs.
        """
        shares = np.exp(self._log_weights).mean(axis=1)
        chosen = np.flatnonzero(shares >= SMALL_SHARE).tolist()
        using = [uses(self.mixture.optima[k])[inputs].any() for k in chosen]
        if not any(using) or len(self.rows) < 3:
            return 0.0, 0.0
        instead = self._instead(inputs, min(N_SIMILAR, len(self.rows) - 1))
        parts = [
            self._withheld(k, inputs, instead) if used else self._alone[k]
            for k, used in zip(chosen, using)
        ]
        weights = self._log_weights[chosen]
        full = special.logsumexp(weights + self._alone[chosen], axis=0)
        return self.mean(full - special.logsumexp(weights + np.array(parts), axis=0))

    def _instead(self, inputs: Array, m: int) -> Array:
        """Values of inputs in m similar rows, (n_inputs, n, m).

        Rows lend the residuals of a linear regression on the other inputs, so that inputs that the
        others determine hardly vary, and the nearest value that occurs in the table is taken: a
        content that is often zero does not become negative. Rows lend categories as they are.
        """
        own, others = self.x_t[inputs], np.delete(self.x_t, inputs, axis=0)
        # Rows are sorted: of equally similar ones, chance decides.
        noise = np.random.default_rng(0).normal(size=(max(len(others), 3), others.shape[1]))
        places = 1e-6 * noise
        places[: len(others)] += others
        # The nearest row is the row itself, or one equal to it.
        # SciPy, not scikit-learn, whose OpenMP threads hang in a forked child.
        near = KDTree(places.T).query(places.T, k=m + 1)[1]
        itself = near == np.arange(len(near))[:, None]
        itself[~itself.any(axis=1), -1] = True
        near = near[~itself].reshape(len(near), m)
        if len(own) > 1 and any(len(np.unique(values)) <= FEW_VALUES for values in own):
            return own[:, near]
        root = np.sqrt(self.counts)
        design = np.vstack([np.ones(len(root)), others])
        slopes = np.linalg.lstsq((design * root).T, (own * root).T, rcond=None)[0]
        fitted = (design.T @ slopes).T
        made = fitted[:, :, None] + (own - fitted)[:, near]
        return np.array([_nearest(values, mine) for values, mine in zip(own, made)])

    def _withheld(self, k: int, inputs: Array, instead: Array) -> Array:
        """Log densities of the rows by optimum k without some of its inputs, (n,)."""
        model, _, at = self._outputs[k]
        opt, m = self.mixture.optima[k], instead.shape[2]
        x_t = np.repeat(self.x_t, m, axis=1)
        x_t[inputs] = instead.reshape(len(inputs), -1)
        copies = replace(model, x_t=x_t, y_t=np.repeat(model.y_t, m, axis=1)).single()
        f = copies.split(copies.evaluate(opt.phi, opt.layout).output).astype(float)
        f = f.reshape(*at.f.shape[:2], m, at.f.shape[2])
        variance, n = f.var(axis=2, ddof=1), m - 1
        typical = np.average(variance, axis=1, weights=self.counts)[:, None]
        variance = (n * variance + PRIOR * typical) / (n + PRIOR)
        # The mean of m values is uncertain too.
        return self._density(k, f.mean(axis=2), (1.0 + 1.0 / m) * variance)


def _nearest(values: Array, made: Array) -> Array:
    """The elements of `values` nearest to those of `made`, of the shape of `made`."""
    known = np.unique(values)
    above = np.clip(np.searchsorted(known, made), 1, len(known) - 1) if len(known) > 1 else 0
    below = np.maximum(above - 1, 0)
    return np.where(made - known[below] < known[above] - made, known[below], known[above])
