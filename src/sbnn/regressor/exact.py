"""NSBL on tables: exact posterior draws of every optimum of the Laplace mixture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from sbnn._core.float64 import float64
from sbnn._core.keys import derive_key
from sbnn._core.parallel import run_all
from sbnn.evidence.exact.refined import ExactOptimum, exact_optimum
from sbnn.evidence.laplace.mixture import SparseMixture, for_new_rows, mixture_weights
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.evidence.reach import some_rows
from sbnn.likelihoods import Likelihood
from sbnn.regressor.posteriors.exact_posterior import ExactPosterior, outputs_of
from sbnn.regressor.posteriors.laplace_posterior import LaplacePosterior
from sbnn.regressor.training import Task, Trained, known_noise_of, train
from sbnn.sampling.progress import Progress, reporter
from sbnn.sampling.warm_start.sampler import WarmStage

# Components of predictions: draws of all optima together, and the fewest of each.
N_COMPONENTS, FEWEST = 1024, 64


@float64
def train_exact(
    task: Task, *, n_particles: int = 256, refine: bool = True, progress: Progress = False
) -> Trained:
    """The mixture of `laplace_nsbl`, with exact draws and refined α of every optimum.

    Parameters
    ----------
    task : Task
        With the method "nsbl".
    n_particles : int
        Draws of every optimum; predictions use fewer if there are many optima.
    refine : bool
        Whether α climbs the exact evidence.
    progress : bool or callable
        As for `sbnn.nsbl`.

    Returns
    -------
    Trained
    """
    found = train(replace(task, method="laplace_nsbl"))
    posterior = found.posterior
    assert isinstance(posterior, LaplacePosterior)
    mixture = posterior.mixture
    with reporter(progress, "Exact draws") as on_stage:
        exact = exact_optima(task, mixture, n_particles, refine, on_stage)
    exact = sorted(exact, key=lambda e: -e.run.log_evidence)
    weights = weights_of(task, mixture, exact)
    return Trained(
        posterior_of(task, mixture, exact, weights), exact[0].run.log_evidence, found.noise,
        found.trials, found.noise_trials,
    )  # fmt: skip


def exact_optima(
    task: Task,
    mixture: SparseMixture,
    n_particles: int,
    refine: bool,
    on_stage: Callable[[WarmStage], None] | None = None,
) -> list[ExactOptimum]:
    """Exact draws of every optimum of a mixture."""

    def one(k: int) -> ExactOptimum:
        model, opt = _at(task, mixture.optima[k], mixture.likelihood)
        return exact_optimum(
            model, opt, derive_key(task.seed, k), n_particles=n_particles, refine=refine,
            on_stage=on_stage,
        )  # fmt: skip

    return run_all(one, list(range(len(mixture.optima))))


def weights_of(task: Task, mixture: SparseMixture, exact: Sequence[ExactOptimum]) -> np.ndarray:
    """Weights of the optima in predictions, as in the Laplace mixture (`mixture_weights`).

    By default the mean of stacking weights and of the evidence's root of order 4√n, here with exact
    evidences and with leave-one-out densities from the draws.
    """
    evidences = np.array([e.run.log_evidence for e in exact])
    loo = np.array([_left_out(task, e, mixture.likelihood) for e in exact])
    return mixture_weights(task.options.weighting, evidences, loo, task.rows.weights)


def posterior_of(
    task: Task, mixture: SparseMixture, exact: Sequence[ExactOptimum], weights: np.ndarray
) -> ExactPosterior:
    """The optima with their draws and weights as a posterior."""
    optima = tuple(replace(e.optimum, log_evidence=e.run.log_evidence) for e in exact)
    checks = [
        (e.optimum.log_evidence, e.run.log_evidence_error, e.run.converged and e.run.agreeing)
        for e in exact
    ]
    n = int(np.clip(N_COMPONENTS // len(exact), FEWEST, min(len(e.draws) for e in exact)))
    rng = np.random.default_rng([task.seed, 4])
    draws = tuple(e.draws[np.sort(rng.permutation(len(e.draws))[:n])] for e in exact)
    sampled = for_new_rows(replace(mixture, optima=optima, weights=weights), task.rows.weights)
    x_t = task.scaling.training(task.rows.x, task.rows.y)[0]
    some = some_rows(x_t.shape[1])
    rows = None if task.rows.weights is None else task.rows.weights[some]
    return ExactPosterior.of_draws(
        sampled, draws, np.array(checks, dtype=float), x_t[:, some], rows
    )


def _at(task: Task, opt: Optimum, likelihood: Likelihood) -> tuple[NetworkModel, Optimum]:
    """The model of an optimum on all rows, and the optimum with the noise of these rows."""
    x_t, y_t = task.scaling.training(task.rows.x, task.rows.y)
    noise = known_noise_of(task)
    model = NetworkModel(
        x_t=x_t, y_t=y_t, sizes=opt.sizes, activation=opt.activation, noise=noise,
        likelihood=likelihood, weights=task.rows.weights,
    )  # fmt: skip
    return model, opt if noise is None else opt.with_noise(noise)


def _left_out(task: Task, exact: ExactOptimum, likelihood: Likelihood) -> np.ndarray:
    """Leave-one-out log densities of the rows, (n,), from draws of the whole posterior."""
    opt = exact.optimum
    x_t, y_t = task.scaling.training(task.rows.x, task.rows.y)
    phi = np.zeros((len(exact.draws), len(opt.phi)))
    phi[:, opt.active] = exact.draws
    f = outputs_of(opt, phi, x_t, len(likelihood.outputs))
    theta = opt.noise.transpose(1, 0, 2) if opt.noise.ndim == 3 else opt.noise
    log_density = np.asarray(likelihood.log_density(y_t.T, f, theta)).sum(axis=-1)
    return left_out(log_density, task.rows.weights)


def left_out(log_density: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Leave-one-out log densities by truncated importance sampling.

    Without row i a draw counts 1/p(yᵢ|φ); weights above √S times their mean are cut to that
    (Ionides 2008), so that no draw decides alone.

    Parameters
    ----------
    log_density : ndarray, shape (S, n)
        Of every row at every draw.
    rows : ndarray, shape (n,), optional
        How many times every row counts.

    Returns
    -------
    ndarray, shape (n,)
    """
    n_draws = len(log_density)
    log_w = -log_density * (1.0 if rows is None else rows)
    most = logsumexp(log_w, axis=0) - 0.5 * np.log(n_draws)
    log_w = np.minimum(log_w, most)
    return logsumexp(log_w + log_density, axis=0) - logsumexp(log_w, axis=0)
