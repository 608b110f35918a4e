"""Outputs of a problem's model for posterior draws: networks and models that users define."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from sbnn._core.arrays import as_real
from sbnn._core.float64 import float64
from sbnn.likelihoods import Likelihood
from sbnn.problems.model_checks import as_inputs
from sbnn.problems.network import check_inputs, push_forward
from sbnn.problems.network_regression import NetworkProblem
from sbnn.problems.problem import Problem
from sbnn.problems.regression import Regression


def outputs_at(problem: Problem | None, phi: np.ndarray, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of the model and parameters of the likelihood.

    Parameters
    ----------
    problem : Problem or None
    phi : ndarray, shape (n_draws, n_parameters)
    x : array or None
        Inputs; None for those of the observations.

    Returns
    -------
    f : ndarray, shape (n_draws, m, n_targets, p)
    theta : ndarray, broadcastable to (n_draws, m, n_targets, q)

    Raises
    ------
    TypeError
        If the problem has no model, or one that takes no inputs while `x` is given.
    ValueError
        If the problem is unknown (see `sbnn.load`).
    """
    regression = _regression(problem)
    n_targets = regression.y.shape[1]
    if isinstance(problem, NetworkProblem):
        inputs = problem.x if x is None else check_inputs(problem.network, x)
        values = push_forward(problem.network, phi, inputs)
    else:
        if x is not None and not regression.takes_inputs:
            raise TypeError(
                "The model takes no inputs, so it predicts at the observations only: leave out "
                "`x`. For other inputs, write it as model(theta, x) and use "
                "sbnn.Problem.from_model(model, y, x=x, …)."
            )
        values = _values(problem, regression, phi, x)
    f = values.reshape(len(phi), -1, n_targets, len(regression.likelihood.outputs))
    if x is None and regression.known is not None:
        return f, regression.known[None]
    return f, regression.new_theta(phi)[:, None]


def likelihood_of(problem: Problem | None) -> Likelihood:
    """The likelihood of a problem with a model of the observations."""
    return _regression(problem).likelihood


def _regression(problem: Problem | None) -> Regression:
    if problem is None:
        raise ValueError(
            "Predictions need the problem, which is not stored in this file; pass it when "
            "loading: sbnn.load(path, problem=problem)."
        )
    if problem.regression is None:
        raise TypeError(
            "Predictions need a model of the observations; this problem has a log-likelihood only. "
            "Make it with sbnn.Problem.from_model, or apply your own function to result.draws()."
        )
    return problem.regression


def _values(problem: Any, regression: Regression, phi: np.ndarray, x: Any) -> np.ndarray:
    """Predictions of a user's model, one row per draw."""
    model, own = regression.model, phi[:, : regression.n_model]
    assert model is not None
    x = as_inputs(x, traced=not problem.black_box)
    at = problem.function.model if x is None else lambda theta: model(theta, x)
    if problem.black_box:
        with np.errstate(all="ignore"):
            return np.array([as_real("model(theta)", at(theta)) for theta in own])
    return np.asarray(_mapped(at, own))


@float64
def _mapped(model: Any, theta: np.ndarray) -> Any:
    return jax.vmap(model)(theta)
