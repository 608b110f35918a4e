"""Results: what every method returns; summaries, predictions, the ArviZ tree, files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from sbnn import __version__
from sbnn._core.netcdf import FORMAT, write_tree
from sbnn._core.text import decimals_of
from sbnn.problems.network import check_inputs, push_forward
from sbnn.problems.network_regression import NetworkProblem
from sbnn.problems.problem import Problem

if TYPE_CHECKING:
    import xarray as xr

    from sbnn.evidence.relevance import Pruned
    from sbnn.methods.draws_posterior import DrawsPosterior


class Orbit(NamedTuple):
    """A mode and its images under the network's symmetries."""

    phi: np.ndarray  # the representative, shape (d,)
    log_posterior: float
    images: np.ndarray  # distinct points of the orbit, shape (n_images, d)
    masses: np.ndarray  # fraction of the posterior draws nearest to each image


@dataclass(frozen=True, eq=False)
class Result:
    """Posterior draws with the evidence, and how they came about.

    Attributes
    ----------
    method : str
    problem : Problem
        None after loading a problem whose function is not stored; see `sbnn.load`.
    phi : ndarray, shape (n_draws, n_parameters)
        Equally weighted posterior draws.
    log_likelihood : ndarray, shape (n_draws,)
    log_evidence, log_evidence_error : float
        The log evidence, normalised over the data, and its standard error.
    log_alpha, relevance : ndarray or None
        Per parameter (NaN where the prior is known): log α at the optimum and γ in [0, 1].
    verified : bool or None
        Whether the exact evidence at α* agrees with the method's own; None where nothing is to
        be verified.
    evidence_gap : float or None
        The estimate carried along by the search minus the exact one, at the final α.
    optima : DataFrame or None
    history : dict of DataFrame
        Records of the run, by name ("stages", "newton", "refine", …).
    arrays : dict of ndarray
        Further arrays of the method (draws of log α, the mixture, …).
    settings : dict
        What the method was called with.
    n_rejected, n_failed : int
        Evaluations at which the likelihood was zero or not a number; of a black box, those that
        raised an error or killed their worker (see `failures`).
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
    reason: str
    key: tuple[int, ...]
    settings: dict[str, Any]
    n_rejected: int = 0
    n_failed: int = 0
    log_alpha: np.ndarray | None = None
    relevance: np.ndarray | None = None
    verified: bool | None = None
    evidence_gap: float | None = None
    optima: pd.DataFrame | None = None
    messages: tuple[str, ...] = ()
    history: dict[str, pd.DataFrame] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    description: dict[str, Any] = field(default_factory=dict)
    version: str = __version__

    def __repr__(self) -> str:
        verified = "" if self.verified is None else f", verified={self.verified}"
        known = decimals_of(self.log_evidence_error)  # None: Laplace's estimate has no error
        digits = max(known or 0, 2)
        error = " (estimate)" if known is None else f" ± {self.log_evidence_error:.{digits}f}"
        return (
            f"<sbnn {self.method}: {self.phi.shape[1]} parameters, {len(self.phi)} draws, "
            f"log evidence {self.log_evidence:.{digits}f}{error}{verified}>"
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.description["names"])

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.description["labels"])

    @property
    def network_problem(self) -> NetworkProblem:
        if not isinstance(self.problem, NetworkProblem):
            raise TypeError(
                "Predictions need a network problem; this result is of a model of your own. Apply "
                "it to the draws: np.array([model(theta) for theta in result.draws(500)])."
            )
        return self.problem

    def draws(self, n: int | None = None, seed: int = 0) -> np.ndarray:
        """n posterior draws of φ (all of them when n is None), shape (n, n_parameters).

        Without replacement while there are enough particles, in random order.
        """
        if n is None:
            return self.phi
        return self.phi[self._rows(n, seed)]

    def _rows(self, n: int, seed: int) -> np.ndarray:
        if n < 1:
            raise ValueError(f"`n` must be at least 1; got {n}.")
        rng = np.random.default_rng([seed, 11])
        return rng.choice(len(self.phi), size=n, replace=n > len(self.phi))

    def push_forward(self, x, n: int = 1000, seed: int = 0) -> np.ndarray:
        """n draws of the network's output at x: parameter uncertainty only.

        Shape (n, m), or (n, m, n_outputs) for several outputs.
        """
        problem = self.network_problem
        x = check_inputs(problem.network, x)
        values = push_forward(problem.network, self.draws(n, seed), x)
        return values[..., 0] if problem.network.n_outputs == 1 else values

    def predictive(self, x, n: int = 1000, seed: int = 0) -> np.ndarray:
        """n draws of new observations at x: parameter uncertainty and noise."""
        problem = self.network_problem
        phi = self.draws(n, seed)
        values = push_forward(problem.network, phi, check_inputs(problem.network, x))
        noise = np.random.default_rng([seed, 12]).normal(size=values.shape)
        values = values + problem.noise_of(phi)[:, None, :] * noise
        return values[..., 0] if problem.network.n_outputs == 1 else values

    def predict(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of new observations at x (noise included)."""
        problem = self.network_problem
        values = push_forward(problem.network, self.phi, check_inputs(problem.network, x))
        noise = (problem.noise_of(self.phi) ** 2).mean(axis=0)
        mean, std = values.mean(axis=0), np.sqrt(values.var(axis=0) + noise)
        return (mean[:, 0], std[:, 0]) if problem.network.n_outputs == 1 else (mean, std)

    def summary(self) -> pd.DataFrame:
        """One row per parameter: mean, std, 2.5 %, 50 %, 97.5 % and, where learned, log α and γ."""
        low, median, high = np.quantile(self.phi, [0.025, 0.5, 0.975], axis=0)
        table = pd.DataFrame(
            {
                "mean": self.phi.mean(axis=0),
                "std": self.phi.std(axis=0),
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
        return DrawsPosterior(
            problem.network,
            self.phi[:, :d],
            np.array(problem.noise_of(self.phi)),
            unknown if self.log_alpha is None else self.log_alpha[:d],
            unknown if self.relevance is None else self.relevance[:d],
        )

    def neuron_relevance(self) -> list[np.ndarray]:
        """Relevance of the hidden neurons, one array per hidden layer."""
        from sbnn.evidence.relevance import neuron_relevance

        return neuron_relevance(self.network_problem.network, self._relevance())

    def prune(self, threshold: float = 0.1) -> Pruned:
        """Name what is irrelevant (γ < threshold), set it to zero, drop the neurons it leaves idle.

        Everything irrelevant is a valid answer: the network is then its output bias.
        """
        from sbnn.evidence.relevance import prune

        if self.problem is None:
            raise ValueError(
                "Pruning needs the problem, which is not stored in this file; give it when "
                "loading: sbnn.load(path, problem=problem)."
            )
        return prune(self.problem, self.phi, self._relevance(), threshold)

    @property
    def failures(self) -> pd.DataFrame:
        """Where a black-box function failed, at most the first 1,000 times: φ and the error."""
        phi = self.arrays.get("failed_phi", np.zeros((0, len(self.names))))
        table = pd.DataFrame(phi, columns=list(self.names))
        return table.assign(error=self.history["failures"]["error"] if len(phi) else [])

    def _relevance(self) -> np.ndarray:
        if self.relevance is None:
            raise ValueError(f"The method {self.method!r} learns no relevance; use sbnn.nsbl.")
        return self.relevance

    def modes(self, n_starts: int = 20) -> list[Orbit]:
        """Local maxima of the posterior reached from the draws, one per orbit, best first."""
        from sbnn.methods.orbits import find_orbits

        if self.problem is None:
            raise ValueError(
                "Modes need the problem's function, which is not stored in files; give it when "
                "loading: sbnn.load(path, problem=problem)."
            )
        return find_orbits(self, n_starts)

    def datatree(self) -> xr.DataTree:
        """The result as an xarray DataTree in the ArviZ schema."""
        import xarray as xr

        draw = np.arange(len(self.phi))
        tree: dict[str, xr.Dataset] = {
            "posterior": xr.Dataset(
                {"phi": (("chain", "draw", "parameter"), self.phi[None])},
                coords={"chain": [0], "draw": draw, "parameter": list(self.names)},
            ),
            "sample_stats": xr.Dataset(
                {"log_likelihood": (("chain", "draw"), self.log_likelihood[None])},
                coords={"chain": [0], "draw": draw},
            ),
        }
        learned = {
            name: (("parameter",), value)
            for name, value in (("log_alpha", self.log_alpha), ("relevance", self.relevance))
            if value is not None
        }
        if learned:
            tree["learned"] = xr.Dataset(learned, coords={"parameter": list(self.names)})
        if isinstance(self.problem, NetworkProblem):
            tree["observed_data"] = xr.Dataset({"y": (("row", "output"), self.problem.y)})
            tree["constant_data"] = xr.Dataset({"X": (("row", "input"), self.problem.x)})
        for name, table in {**self.history, "optima": self.optima}.items():
            if table is not None:
                tree[f"history/{name}"] = xr.Dataset(
                    {c: (("step",), np.asarray(table[c])) for c in table.columns}
                )
        if self.arrays:
            tree["arrays"] = xr.Dataset(
                {
                    name: (tuple(f"{name}_{i}" for i in range(np.ndim(value))), value)
                    for name, value in self.arrays.items()
                }
            )
        root = xr.Dataset(
            attrs={"sbnn_format": FORMAT, "sbnn": json.dumps(self._metadata(), default=_plain)}
        )
        root.attrs["creation_library"] = "sbnn"
        return xr.DataTree.from_dict({"/": root, **tree})

    def _metadata(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "log_evidence": self.log_evidence,
            "log_evidence_error": self.log_evidence_error,
            "n_evaluations": self.n_evaluations,
            "seconds": self.seconds,
            "converged": self.converged,
            "reason": self.reason,
            "key": list(self.key),
            "settings": self.settings,
            "n_rejected": self.n_rejected,
            "n_failed": self.n_failed,
            "verified": self.verified,
            "evidence_gap": self.evidence_gap,
            "messages": list(self.messages),
            "description": self.description,
            "version": self.version,
        }

    def save(self, path: str | os.PathLike, overwrite: bool = False) -> None:
        """Write one NetCDF file, whole or not at all; `sbnn.load` reads it.

        The name ends in .nc, or has no ending; another ending is refused. A file that is
        there already is replaced only if `overwrite` says so.
        """
        write_tree(self.datatree(), path, overwrite)

    def equals(self, other: Result) -> bool:
        """Whether two results hold the same numbers, bit by bit."""
        mine, theirs = self.datatree(), other.datatree()
        return self._metadata() == other._metadata() and mine.identical(theirs)


def _plain(value: Any) -> Any:
    """NumPy's scalars and arrays as JSON knows them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be stored in a result's settings.")
