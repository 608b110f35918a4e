"""Training of `SparseBNNRegressor`: from the rows of a table to a posterior, by one method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sbnn.evidence.columns import relevant_columns
from sbnn.evidence.laplace.fit import fit
from sbnn.evidence.laplace.mixture import NoiseTrial, Trial, for_new_rows
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.noise_choice import has_outliers
from sbnn.evidence.laplace.options import Options
from sbnn.likelihoods import CANDIDATES, NAMES, Likelihood
from sbnn.methods.posterior import Posterior
from sbnn.methods.registry import METHODS, SAMPLING
from sbnn.regressor.architectures import Family
from sbnn.regressor.data.rows import Rows
from sbnn.regressor.data.scaling import Scaling
from sbnn.regressor.noise import name_of
from sbnn.regressor.options import samples_optima
from sbnn.regressor.posteriors.laplace_posterior import LaplacePosterior

_FLEXIBLE = {NAMES[name] for name in CANDIDATES if name != "constant"}


@dataclass(frozen=True)
class Task:
    """What to fit and how.

    Attributes
    ----------
    rows : Rows
        In the units of the table.
    scaling : Scaling
    known : ndarray or None
        Known standard deviations in the units of y, (n_outputs,) or (n_rows, n_outputs).
    kinds : mapping of Likelihood
        Kinds of noise to choose between, from simple to flexible.
    architectures : sequence of Family
    activation, method : str
    options : Options
        Of the Laplace engine.
    method_options : mapping
        Of a sampling method.
    seed : int
    """

    rows: Rows
    scaling: Scaling
    known: np.ndarray | None
    kinds: Mapping[str, Likelihood]
    architectures: Sequence[Family]
    activation: str
    method: str
    options: Options
    method_options: Mapping[str, Any]
    seed: int

    def log_known(self) -> np.ndarray | None:
        """Logarithm of the known standard deviations, for standardised targets."""
        return None if self.known is None else np.log(self.known / self.scaling.y_scale)


@dataclass(frozen=True)
class Trained:
    """What training found, for standardised inputs and targets."""

    posterior: Posterior
    log_evidence: float
    noise: str
    trials: tuple[Trial, ...] = ()
    noise_trials: tuple[NoiseTrial, ...] = field(default=())
    result: Any = None  # of a sampling method


def train(task: Task) -> Trained:
    """Fit by the task's method."""
    if task.method == "last_layer":
        from sbnn.regressor.last_layer import train_last_layer

        posterior, noise = train_last_layer(task)
        return Trained(posterior, posterior.layer.log_evidence, noise)
    if samples_optima(task.method, task.architectures, task.rows.x.shape[1], task.rows.y.shape[1]):
        from sbnn.regressor.exact import train_exact

        return train_exact(task, **task.method_options)
    return _sampled(task) if task.method in SAMPLING else _laplace(task)


def quick_posterior(task: Task) -> Posterior:
    """A posterior by the Laplace method: one family, one kind of noise, a quarter of the starts.

    The noise is the simplest, or Student-t noise if that is one of the kinds and the target has
    outliers: Gaussian noise would be far too large.

    Parameters
    ----------
    task : Task

    Returns
    -------
    Posterior
    """
    name = next(iter(task.kinds))
    if "student_t" in task.kinds and has_outliers(task.rows.y.T):
        name = "student_t"
    options = replace(task.options, n_starts=max(2, task.options.n_starts // 4))
    simple = replace(
        task, architectures=task.architectures[-1:], kinds={name: task.kinds[name]}, options=options
    )
    return _laplace(simple).posterior


def known_noise_of(task: Task) -> np.ndarray | None:
    """Known log σ of standardised targets in the engine's layout, (K, 1) or (K, n, 1), or None."""
    noise = task.log_known()
    if noise is None:
        return None
    return noise[:, None] if noise.ndim == 1 else np.ascontiguousarray(noise.T)[..., None]


def columns_of(task: Task, likelihood: Likelihood) -> np.ndarray | None:
    """The inputs that a sparse network starts with: None for all, fewer if there are many."""
    x_t, y_t = task.scaling.training(task.rows.x, task.rows.y)
    if len(x_t) <= task.options.max_columns or not task.options.sparse:
        return None
    model = NetworkModel(
        x_t=x_t, y_t=y_t, sizes=(len(x_t), 1, len(y_t) * len(likelihood.outputs)),
        activation=task.activation, likelihood=likelihood, noise=known_noise_of(task),
        weights=task.rows.weights,
    )  # fmt: skip
    rng = np.random.default_rng([task.seed, 2])
    return relevant_columns(model, rng, task.options.n_threads, task.options.watch)


def _laplace(task: Task) -> Trained:
    x_t, y_t = task.scaling.training(task.rows.x, task.rows.y)
    names, kinds = list(task.kinds), list(task.kinds.values())
    noise, columns = known_noise_of(task), columns_of(task, kinds[0])
    models = [
        [
            NetworkModel(
                x_t=x_t, y_t=y_t, sizes=(len(x_t), *widths, len(y_t) * len(kinds[0].outputs)),
                activation=task.activation, likelihood=kinds[0], noise=noise,
                weights=task.rows.weights, columns=columns,
            )
            for widths in family
        ]
        for family in task.architectures
    ]  # fmt: skip
    # Even a single kind, unless constant, is best approached by the paths of a choice.
    simple = task.known is not None or type(kinds[0]) not in _FLEXIBLE
    choice = None if len(kinds) == 1 and simple else task.kinds
    if task.method == "layer_wise":
        from sbnn.regressor.deep import train_layer_wise

        mixture = train_layer_wise(task, columns)
    else:
        mixture = fit(models, np.random.default_rng(task.seed), task.options, choice)
    mixture = for_new_rows(mixture, task.rows.weights)
    posterior = LaplacePosterior.of(mixture, x_t, task.rows.weights)
    used = names[[type(k) for k in kinds].index(type(mixture.likelihood))]
    return Trained(
        posterior, float(mixture.optima[0].log_evidence), used, mixture.trials, mixture.noise_trials
    )


def _sampled(task: Task) -> Trained:
    from sbnn.problems import network_regression as regression

    likelihood, noise_trials = _likelihood(task)
    rows, known = task.rows.repeated(), task.log_known()
    x_t, y_t = task.scaling.training(rows.x, rows.y)
    if known is not None and known.ndim == 2:
        known = np.log(np.asarray(rows.noise_std) / task.scaling.y_scale)
    network = regression.network_problem(
        np.ascontiguousarray(x_t.T),
        np.ascontiguousarray(y_t.T),
        hidden_layer_sizes=task.architectures[0][0],
        activation=task.activation,
        noise_std=None if known is None else np.exp(known),
        noise=likelihood,
    )
    result = METHODS[task.method].load()(network, key=task.seed, **task.method_options)
    return Trained(
        result.posterior().with_reach(x_t), float(result.log_evidence), name_of(likelihood),
        noise_trials=noise_trials, result=result,
    )  # fmt: skip


def _likelihood(task: Task) -> tuple[Likelihood, tuple[NoiseTrial, ...]]:
    """The kind of noise; if there is a choice, the one the Laplace approximation prefers."""
    if len(task.kinds) == 1:
        return next(iter(task.kinds.values())), ()
    quick = _laplace(task)
    return task.kinds[quick.noise], quick.noise_trials
