"""Results specific to each method, beyond the common part of a `Result`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np

from sbnn.evidence.mixture import GaussianMixture

D = TypeVar("D", bound="Details")
_MIXTURE = ("log_weights", "means", "covariances", "log_normaliser")


class Details:
    """Base class: the fields are arrays, numbers and mixtures, or None."""

    kinds: ClassVar[dict[str, type[Details]]] = {}

    def __init_subclass__(cls) -> None:
        Details.kinds[cls.__name__] = cls

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields as arrays by name; a mixture m becomes m_log_weights, m_means, …"""
        out: dict[str, np.ndarray] = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, GaussianMixture):
                out |= {f"{field.name}_{n}": np.asarray(getattr(value, n)) for n in _MIXTURE}
            elif value is not None:
                out[field.name] = np.asarray(value)
        return out

    @classmethod
    def from_arrays(cls: type[D], arrays: Mapping[str, np.ndarray]) -> D:
        """The inverse of `arrays`."""
        plain: dict[str, Any] = {
            name: float(value) if np.ndim(value) == 0 else np.asarray(value)
            for name, value in arrays.items()
        }
        values: dict[str, Any] = {}
        for field in fields(cls):  # type: ignore[arg-type]
            if f"{field.name}_{_MIXTURE[0]}" in plain:
                parts = [plain.pop(f"{field.name}_{n}") for n in _MIXTURE]
                values[field.name] = GaussianMixture(*parts)
            elif field.name in plain:
                values[field.name] = plain.pop(field.name)
        if plain:
            raise ValueError(f"{cls.__name__} has no {min(plain)!r}")
        return cls(**values)


@dataclass(frozen=True, eq=False)
class NsblDetails(Details):
    """The steps of `sbnn.nsbl`: sample, approximate, search, verify, average.

    Attributes
    ----------
    optima_log_alpha, optima_relevance : ndarray, shape (n_optima, n_ard)
        log α and γ of the optima in `Result.optima`.
    best_phi : ndarray, shape (n_particles, n_parameters)
        Draws of the exact posterior at α* alone.
    log_alpha_draws : ndarray, shape (n_particles, n_ard), or None
        Draws of log α that belong to `Result.phi`; None with average=False.
    standard_phi : ndarray, shape (n_particles, n_parameters), or None
        Draws under the known priors, from which the mixture is made. This and what follows is None
        where the search started from Laplace optima instead.
    standard_log_evidence, standard_log_evidence_error : float
        Their log evidence and its standard error.
    mixture : GaussianMixture
        The surrogate of likelihood × known prior.
    newton_log_alpha, newton_relevance : ndarray, shape (n_steps, n_ard)
        Newton's path to the best optimum of the mixture's evidence.
    newton_iterations : ndarray, shape (n_mixture_optima,)
        Iterations of each of its optima.
    mixture_log_evidence : float
        The mixture's log evidence at its best α.
    mixture_exact_log_evidence : float
        The exact log evidence at the same α, before refinement.
    """

    optima_log_alpha: np.ndarray
    optima_relevance: np.ndarray
    best_phi: np.ndarray
    log_alpha_draws: np.ndarray | None = None
    standard_phi: np.ndarray | None = None
    standard_log_evidence: float | None = None
    standard_log_evidence_error: float | None = None
    mixture: GaussianMixture | None = None
    newton_log_alpha: np.ndarray | None = None
    newton_relevance: np.ndarray | None = None
    newton_iterations: np.ndarray | None = None
    mixture_log_evidence: float | None = None
    mixture_exact_log_evidence: float | None = None


@dataclass(frozen=True, eq=False)
class HierarchicalDetails(Details):
    """The joint draws of `sbnn.hierarchical`.

    Attributes
    ----------
    log_alpha_draws : ndarray, shape (n_particles, n_ard)
        Draws of log α that belong to `Result.phi`.
    joint : ndarray, shape (n_particles, n_parameters + n_ard)
        The sampled coordinates: z, with φ = z exp(−½ log α), and log α.
    """

    log_alpha_draws: np.ndarray
    joint: np.ndarray


@dataclass(frozen=True, eq=False)
class LaplaceDetails(Details):
    """The Gaussian of `sbnn.laplace` and `sbnn.laplace_nsbl`.

    Attributes
    ----------
    mode : ndarray, shape (n_parameters,)
    precision : ndarray, shape (n_parameters, n_parameters)
        Of the likelihood × known prior at the mode, without the ARD prior.
    covariance : ndarray, shape (n_parameters, n_parameters)
        Of the posterior. The square roots of its diagonal are standard deviations.
    newton_log_alpha : ndarray, shape (n_steps, n_ard), or None
        The path of log α, where it is learned.
    """

    mode: np.ndarray
    precision: np.ndarray
    covariance: np.ndarray
    newton_log_alpha: np.ndarray | None = None
