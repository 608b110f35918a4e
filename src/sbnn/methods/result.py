"""`Result`: the return value of every method, with summaries and predictions."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sbnn import __version__
from sbnn._core.messages import Message
from sbnn._core.text import decimals_of
from sbnn.methods.details import HierarchicalDetails, LaplaceDetails, NsblDetails
from sbnn.problems.model_outputs import likelihood_of, outputs_at
from sbnn.problems.network import push_forward
from sbnn.problems.network_regression import NetworkProblem
from sbnn.problems.problem import Problem

if TYPE_CHECKING:
    import xarray as xr

    from sbnn.evidence.relevance import Pruned
    from sbnn.methods.draws_posterior import DrawsPosterior
    from sbnn.methods.orbits import Orbit


def full_length(problem: Problem, values: np.ndarray) -> np.ndarray:
    """Values of the ARD parameters at full length, NaN where the prior is known."""
    out = np.full(problem.n_parameters, np.nan)
    out[problem.ard] = values
    return out


NO_NETWORK = "This needs a network problem; this result has a user-defined model."


@dataclass(frozen=True, eq=False)
class Result:
    """Posterior draws with the evidence, and a record of the run.

    Attributes
    ----------
    method : str
    problem : Problem or None
        None after loading if its function is not stored; see `sbnn.load`.
    phi : ndarray, shape (n_draws, n_parameters)
        Equally weighted posterior draws.
    log_likelihood : ndarray, shape (n_draws,)
    log_evidence, log_evidence_error : float
        The log evidence, normalised over the data, and its standard error.
    n_evaluations : int
        Evaluations of the log-likelihood.
    seconds : float
        Duration, including that of interrupted runs that were continued.
    converged : bool
    reason : Message
        How the run ended; `str(result.reason)` is a phrase.
    key : tuple of int
    settings : dict
        The arguments of the method.
    n_rejected, n_failed : int
        Evaluations with a likelihood of zero or NaN; failures of a black box (see `failures`).
    log_alpha, relevance : ndarray, shape (n_parameters,), or None
        log α at the optimum and γ in [0, 1]; NaN where the prior is known.
    verified : bool or None
        Whether the exact evidence at α* agrees with the estimate; None if there is nothing to
        verify.
    evidence_gap : float or None
        The estimated minus the exact log evidence at the final α.
    optima : DataFrame or None
        The optima found, best first.
    messages : tuple of Message
        Notes on the run; `str(message)` is a sentence. Those about convergence and failures are
        also issued as warnings.
    history : dict of DataFrame
        Records of the run by name ("stages", "newton", "refine").
    details : NsblDetails, HierarchicalDetails, LaplaceDetails or None
        Results specific to the method.
    failed_phi, failed_errors : ndarray, shape (n, n_parameters), and tuple of str
        See `failures`.
    description : dict
        The problem in words and numbers, as stored in files.
    version : str
        Version of sbnn.
    """

    method: str
    problem: Problem | None
    phi: np.ndarray
    log_likelihood: np.ndarray
    log_evidence: float
    log_evidence_error: float
    n_evaluations: int
    seconds: float
    converged: bool
    reason: Message
    key: tuple[int, ...]
    settings: dict[str, Any]
    n_rejected: int = 0
    n_failed: int = 0
    log_alpha: np.ndarray | None = None
    relevance: np.ndarray | None = None
    verified: bool | None = None
    evidence_gap: float | None = None
    optima: pd.DataFrame | None = None
    messages: tuple[Message, ...] = ()
    history: dict[str, pd.DataFrame] = field(default_factory=dict)
    details: NsblDetails | HierarchicalDetails | LaplaceDetails | None = None
    failed_phi: np.ndarray | None = None
    failed_errors: tuple[str, ...] = ()
    description: dict[str, Any] = field(default_factory=dict)
    version: str = __version__

    def __repr__(self) -> str:
        verified = "" if self.verified is None else f", verified={self.verified}"
        known = decimals_of(self.log_evidence_error)  # None: Laplace's estimate has no error
        digits = max(known or 0, 2)
        converged = "" if self.converged else ", not converged"
        error = " (estimate)" if known is None else f" ± {self.log_evidence_error:.{digits}f}"
        return (
            f"<sbnn {self.method}: {self.phi.shape[1]} parameters, {len(self.phi)} draws, "
            f"log evidence {self.log_evidence:.{digits}f}{error}{verified}{converged}>"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self.description["names"])

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the parameters for figures."""
        return tuple(self.description["labels"])

    @property
    def network_problem(self) -> NetworkProblem:
        """The problem, if it is that of a network; a TypeError otherwise."""
        if not isinstance(self.problem, NetworkProblem):
            raise TypeError(NO_NETWORK)
        return self.problem

    def draws(self, n: int | None = None, seed: int = 0) -> np.ndarray:
        """Posterior draws of φ.

        Parameters
        ----------
        n : int, optional
            Number of draws, in random order, without replacement if there are enough; all if None.
        seed : int

        Returns
        -------
        ndarray, shape (n, n_parameters)
        """
        if n is None:
            return self.phi
        return self.phi[self._rows(n, seed)]

    def _rows(self, n: int, seed: int) -> np.ndarray:
        if n < 1:
            raise ValueError(f"`n` must be at least 1; got {n}.")
        rng = np.random.default_rng([seed, 11])
        return rng.choice(len(self.phi), size=n, replace=n > len(self.phi))

    def push_forward(self, x: Any = None, n: int = 1000, seed: int = 0) -> np.ndarray:
        """Draws of the model's output at x: parameter uncertainty without noise.

        Parameters
        ----------
        x : array, shape (m, n_inputs), optional
            Passed on to a user-defined model. Default: the inputs of the observations.
        n : int
        seed : int

        Returns
        -------
        ndarray, shape (n, m), or (n, m, n_outputs) for several outputs
        """
        f, _ = outputs_at(self.problem, self.draws(n, seed), x)
        values = f.reshape(*f.shape[:2], -1)
        return values[..., 0] if values.shape[-1] == 1 else values

    def predictive(self, x: Any = None, n: int = 1000, seed: int = 0) -> np.ndarray:
        """Draws of new observations at x: parameter uncertainty and noise.

        Parameters
        ----------
        x : array, shape (m, n_inputs), optional
            See `push_forward`.
        n : int
        seed : int

        Returns
        -------
        ndarray, shape (n, m), or (n, m, n_outputs) for several outputs
        """
        f, theta = outputs_at(self.problem, self.draws(n, seed), x)
        rng = np.random.default_rng([seed, 12])
        draws = likelihood_of(self.problem).sample(rng, f, theta)
        return draws[..., 0] if draws.shape[-1] == 1 else draws

    def predict(self, x: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of new observations at x, noise included.

        Parameters
        ----------
        x : array, shape (m, n_inputs), optional
            See `push_forward`.

        Returns
        -------
        mean, std : ndarray, shape (m,), or (m, n_outputs) for several outputs
        """
        f, theta = outputs_at(self.problem, self.phi, x)
        likelihood = likelihood_of(self.problem)
        centre, noise = likelihood.centre(f, theta), likelihood.std(f, theta)
        mean = centre.mean(axis=0)
        std = np.sqrt(centre.var(axis=0) + (noise**2).mean(axis=0))
        return (mean[:, 0], std[:, 0]) if mean.shape[-1] == 1 else (mean, std)

    def summary(self) -> pd.DataFrame:
        """Posterior summaries of the parameters.

        Returns
        -------
        DataFrame
            One row per parameter: mean, std, 2.5 %, 50 %, 97.5 % and, where learned, log α and γ.
            Mirror images of a network count once. Weights that `laplace_nsbl` pruned have std 0.
        """
        from sbnn.methods.orbits import without_mirror_images

        phi = without_mirror_images(self)
        low, median, high = np.quantile(phi, [0.025, 0.5, 0.975], axis=0)
        table = pd.DataFrame(
            {
                "mean": phi.mean(axis=0),
                "std": phi.std(axis=0),
                "2.5%": low,
                "50%": median,
                "97.5%": high,
            },
            index=pd.Index(self.names, name="parameter"),
        )
        if self.log_alpha is not None:
            table["log_alpha"] = self.log_alpha
        if self.relevance is not None:
            table["relevance"] = self.relevance
        return table

    def posterior(self) -> DrawsPosterior:
        """The network's posterior draws as the `Posterior` that reports use.

        Returns
        -------
        DrawsPosterior
            In the units of the problem.
        """
        from sbnn.methods.draws_posterior import DrawsPosterior

        problem = self.network_problem
        d = problem.network.n_parameters
        unknown = np.full(d, np.nan)
        outputs = push_forward(problem.network, self.phi, problem.x)
        _, noise = problem.centre_and_noise(self.phi, outputs)
        return DrawsPosterior(
            problem.network,
            self.phi[:, :d],
            problem.regression.new_theta(self.phi),
            problem.likelihood,
            (noise**2).mean(axis=(0, 1)),
            unknown if self.log_alpha is None else self.log_alpha[:d],
            unknown if self.relevance is None else self.relevance[:d],
        )

    def neuron_relevance(self) -> list[np.ndarray]:
        """Relevance of the hidden neurons.

        Returns
        -------
        list of ndarray
            One array per hidden layer.
        """
        from sbnn.evidence.relevance import neuron_relevance

        return neuron_relevance(self.network_problem.network, self._relevance())

    def prune(self, threshold: float = 0.1) -> Pruned:
        """Set irrelevant parameters to zero and remove neurons that this disconnects.

        If everything is irrelevant, the network is its output bias.

        Parameters
        ----------
        threshold : float
            Parameters with γ below it are irrelevant.

        Returns
        -------
        Pruned
            Its `names` are those of the parameters that were removed; `kept` and `borderline` name
            the others and those with γ between 0.3 and 0.7. Print it to see all three.

        Raises
        ------
        ValueError
            If the method learns no relevance, or the problem is unknown (see `sbnn.load`).
        """
        from sbnn.evidence.relevance import prune

        if self.problem is None:
            raise ValueError(
                "Pruning needs the problem, which is not stored in this file; pass it when "
                "loading: sbnn.load(path, problem=problem)."
            )
        return prune(self.problem, self.phi, self._relevance(), threshold)

    @property
    def failures(self) -> pd.DataFrame:
        """Where a black-box function failed, at most the first 1,000 times: φ and the error."""
        phi = np.zeros((0, len(self.names))) if self.failed_phi is None else self.failed_phi
        return pd.DataFrame(phi, columns=list(self.names)).assign(error=list(self.failed_errors))

    def _relevance(self) -> np.ndarray:
        if self.relevance is None:
            raise ValueError(f"The method {self.method!r} learns no relevance; use sbnn.nsbl.")
        return self.relevance

    def modes(self, n_starts: int = 20) -> list[Orbit]:
        """Local maxima of the posterior reached from the best draws.

        Parameters
        ----------
        n_starts : int
            Number of draws to climb from.

        Returns
        -------
        list of Orbit
            One per orbit of the symmetry group, best first.

        Raises
        ------
        ValueError
            If the problem is a black box or unknown (see `sbnn.load`).
        """
        from sbnn.methods.orbits import find_orbits

        if self.problem is None:
            raise ValueError(
                "Modes need the problem's function, which is not stored in files; pass it when "
                "loading: sbnn.load(path, problem=problem)."
            )
        return find_orbits(self, n_starts)

    def datatree(self) -> xr.DataTree:
        """The result as an xarray DataTree in the ArviZ schema.

        Returns
        -------
        DataTree
            Groups posterior, sample_stats, learned, observed_data, constant_data, history, details.
        """
        from sbnn.methods.files import tree_of

        return tree_of(self)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write one NetCDF file atomically; `sbnn.load` reads it.

        Parameters
        ----------
        path : path
            With the suffix .nc, or without a suffix.
        overwrite : bool
            Replace an existing file.

        Raises
        ------
        ValueError
            If the name has another suffix.
        FileExistsError
            If the file exists and `overwrite` is False.
        """
        from sbnn._core.files.netcdf import write_tree

        write_tree(self.datatree(), path, overwrite)

    def equals(self, other: Result) -> bool:
        """Whether two results hold the same numbers, bit by bit.

        Parameters
        ----------
        other : Result

        Returns
        -------
        bool
        """
        return bool(self.datatree().identical(other.datatree()))
