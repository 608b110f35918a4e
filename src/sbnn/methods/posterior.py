"""`Posterior` protocol: the interface of results and fitted estimators to reports."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pandas as pd

from sbnn._core.messages import Message
from sbnn.problems.network import Network
from sbnn.scores import Predictive


class Posterior(Protocol):
    """The posterior of a network's parameters φ and of the functions they make.

    Inputs `x_t` have shape (n_in, m), one column per point, in the units the network sees.
    `Result.posterior()` gives one in the units of the problem, `SparseBNNRegressor.posterior_` one
    for standardised inputs and targets.

    Attributes
    ----------
    kind : str
        Name under which it is stored in files.
    sampled : bool
        Whether it consists of posterior draws (and not of Gaussian approximations).
    compacted : bool
        Whether it holds only the parameters needed for predictions.
    network : Network
        Network of the best optimum.
    log_alpha, relevance : ndarray, shape (n_parameters,)
        log α and γ of its parameters; NaN where the method has none.
    centre_and_spread : tuple of two ndarray, each of shape (n_parameters,)
        Median of φ and half the width of its central 68 %: for a Gaussian, mean and std.
    pruned : ndarray of bool, shape (n_parameters,)
        Zero, irrelevant, or not connected to the output.
    noise_variance : ndarray, shape (n_outputs,)
    counts : tuple of two int
        Parameters of all optima together: kept, and before pruning.
    inputs_used : ndarray of bool, shape (n_in,)
        Inputs that are connected to the output, in at least one optimum.
    evidence_history : ndarray
        Log evidence after each iteration that led to the best optimum, minus that of the optimum;
        empty for draws.
    """

    @property
    def kind(self) -> str: ...

    @property
    def sampled(self) -> bool: ...

    @property
    def compacted(self) -> bool: ...

    @property
    def network(self) -> Network: ...

    @property
    def log_alpha(self) -> np.ndarray: ...

    @property
    def relevance(self) -> np.ndarray: ...

    @property
    def centre_and_spread(self) -> tuple[np.ndarray, np.ndarray]: ...

    @property
    def pruned(self) -> np.ndarray: ...

    @property
    def noise_variance(self) -> np.ndarray: ...

    @property
    def counts(self) -> tuple[int, int]: ...

    @property
    def inputs_used(self) -> np.ndarray: ...

    @property
    def evidence_history(self) -> np.ndarray: ...

    def table(self) -> pd.DataFrame:
        """One row per optimum, best first."""
        ...

    def messages(self) -> list[Message]:
        """Messages about the fit."""
        ...

    def parameter_draws(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws of φ at the best optimum.

        Parameters
        ----------
        n : int
            A hint: posterior draws are returned in full.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (about n, n_parameters)
        """
        ...

    def predictive(
        self, x_t: np.ndarray, noise: bool = True, noise_std: np.ndarray | None = None
    ) -> Predictive:
        """Predictive distribution at `x_t`.

        Parameters
        ----------
        x_t : ndarray, shape (n_in, m)
        noise : bool
            Include the noise; if False, the distribution is that of the function.
        noise_std : ndarray, shape (m, n_out), optional
            Known standard deviations of Gaussian noise at these points.

        Returns
        -------
        Predictive
            With points of shape (m, n_out).
        """
        ...

    def noise_at(self, x_t: np.ndarray) -> Predictive:
        """Distribution of the noise of new observations at `x_t`, points (m, n_out)."""
        ...

    def sample(
        self, x_t: np.ndarray, n: int, rng: np.random.Generator, noise: bool = False
    ) -> np.ndarray:
        """Joint draws of functions at `x_t`.

        Parameters
        ----------
        x_t : ndarray, shape (n_in, m)
        n : int
        rng : numpy.random.Generator
        noise : bool
            Draw observations instead of functions.

        Returns
        -------
        ndarray, shape (n, m, n_out)
        """
        ...

    def sensitivities(
        self, x_t: np.ndarray, rng: np.random.Generator, groups: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Share of every input in the sum of their total effects; see `effect_shares`.

        Parameters
        ----------
        x_t : ndarray, shape (n_in, m)
        rng : numpy.random.Generator
        groups : ndarray of int, shape (n_in,), optional
            Inputs with the same number are one input, such as a category.

        Returns
        -------
        mean, std : ndarray, shape (n_in,) or (n_groups,)
            Posterior mean and standard deviation of the shares.
        """
        ...

    def compact(self, x_t: np.ndarray) -> Posterior:
        """A smaller posterior with the same predictions at `x_t`."""
        ...

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays by name, and plain values, for a file."""
        ...


def summary(posterior: Posterior) -> pd.DataFrame:
    """One row per parameter of the best network.

    Parameters
    ----------
    posterior : Posterior

    Returns
    -------
    DataFrame
        Indexed by the names of the parameters, with the columns median, spread (half the width of
        the central 68 %), log_alpha, relevance and pruned.
    """
    centre, spread = posterior.centre_and_spread
    return pd.DataFrame(
        {
            "median": centre,
            "spread": spread,
            "log_alpha": posterior.log_alpha,
            "relevance": posterior.relevance,
            "pruned": posterior.pruned,
        },
        index=pd.Index(posterior.network.names, name="parameter"),
    )


def effect_shares(changes: np.ndarray) -> np.ndarray:
    """Shares of the inputs in the sum of their total effects; zeros stay zero.

    The total effect of an input is ½ E[(f(x) − f(x'))²], where x' differs from x in this input
    only, which is that of another row. It is the variance of f that is left when all other inputs
    are known, if the inputs are independent.

    Parameters
    ----------
    changes : ndarray, shape (n_in, n_out, m)
        f(x') − f(x) at m pairs of rows; see `exchange`.

    Returns
    -------
    ndarray, shape (n_in,)
    """
    squares = (changes**2).mean(axis=(1, 2))
    total = squares.sum()
    return squares / total if total > 0 else squares
