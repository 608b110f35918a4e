"""Resolution of the data and rate of the hyperprior: which parameters could be pruned at all."""

from __future__ import annotations

import numpy as np

from sbnn._core.messages import HyperpriorTooCoarse
from sbnn.evidence.exact.warm_modes import is_large
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem


def default_hyperprior(problem: Problem) -> Hyperprior | None:
    """The study's hyperprior for problems like its own; None: after the data's resolution.

    These are small networks with known noise. With inferred noise, the study's rate kept weights of
    irrelevant inputs (γ = 0.2), which a smaller one prunes, and the evidence was lower.
    """
    if problem.network is None or is_large(problem):
        return None
    return Hyperprior() if problem.n_parameters == problem.network.n_parameters else None


def resolving(covariances: np.ndarray, ard: np.ndarray) -> Hyperprior:
    """`following` the best resolved parameter of a mixture.

    Parameters
    ----------
    covariances : ndarray, shape (n_components, n_parameters, n_parameters)
        Of a mixture that approximates the likelihood.
    ard : ndarray of bool, shape (n_parameters,)

    Returns
    -------
    Hyperprior
    """
    variances = np.diagonal(covariances, axis1=1, axis2=2)[:, ard]
    return following(1.0 / max(float(variances.min()), 1e-300))


def following(resolved: float) -> Hyperprior:
    """The default hyperprior, with a smaller rate where it would keep parameters from being pruned.

    An irrelevant parameter that the data resolve to the precision Λ stays at γ/(1 − γ) = √(2rΛ).
    The rate is lowered until γ stays near 0.04, also for the best resolved one.

    Parameters
    ----------
    resolved : float
        The largest precision Λ that the data give to an ARD parameter.

    Returns
    -------
    Hyperprior
    """
    return Hyperprior(rate=min(_pruning_rate(resolved), Hyperprior().rate))


def _pruning_rate(resolved: float) -> float:
    """A rate at which the γ of an irrelevant parameter of precision Λ stays near 0.04."""
    return float(10.0 ** np.floor(np.log10(0.001 / resolved)))


def too_coarse(
    problem: Problem, log_alpha: np.ndarray, relevance: np.ndarray, hyperprior: Hyperprior
) -> HyperpriorTooCoarse | None:
    """A message where the hyperprior's rate, not the data, keeps a parameter from being pruned.

    At an optimum ½γ = ½αE[φ]² + rα. Where the rate's share rα is the larger one, the parameter is
    irrelevant but its γ stays at γ/(1 − γ) = √(2rΛ), Λ the precision that the data resolve it to.
    """
    alpha = np.exp(log_alpha)
    held = (relevance > 0.1) & (2 * hyperprior.rate * alpha > 0.5 * relevance)
    if not held.any():
        return None
    resolved = float((alpha * relevance / np.maximum(1 - relevance, 1e-3))[held].max())
    smaller = _pruning_rate(resolved)
    names = np.array(problem.names)[problem.ard][held]
    return HyperpriorTooCoarse(tuple(map(str, names)), float(hyperprior.rate), smaller)
