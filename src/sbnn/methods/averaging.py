"""Around NSBL's search: the mixture it starts from, and the draws it ends with."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from sbnn._core.keys import generator
from sbnn.evidence.candidates import Candidate, Search, expand_permutations, multiplicity
from sbnn.evidence.mixture import GaussianMixture, expectation_maximisation, kernel_density
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem
from sbnn.sampling.annealing import heat_and_cool, lowest_log_alpha
from sbnn.sampling.joint import join_log_alpha, joint_symmetry, to_parameters
from sbnn.sampling.moves import relabel
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint


def check_nsbl(problem: Problem, mixture, n_starts, sparsify, tolerance) -> None:
    """Refuse settings that cannot work, before anything runs."""
    if isinstance(mixture, GaussianMixture):
        if mixture.dimension != problem.n_parameters:
            raise ValueError(
                f"`mixture` has {mixture.dimension} dimensions; the problem has "
                f"{problem.n_parameters} parameters."
            )
    elif mixture not in ("kde", "em"):
        raise ValueError(f"`mixture` must be 'kde', 'em' or a GaussianMixture; got {mixture!r}.")
    if n_starts < 1:
        raise ValueError(f"`n_starts` must be at least 1; got {n_starts}.")
    if not tolerance > 0:
        raise ValueError(f"`tolerance` must be above zero; got {tolerance}.")
    if not sparsify >= 0:
        raise ValueError(f"`sparsify` must not be negative; got {sparsify}.")


def make_mixture(problem, mixture, particles: np.ndarray, log_evidence: float) -> GaussianMixture:
    log_normaliser = log_evidence + problem.log_box_volume()
    if isinstance(mixture, GaussianMixture):
        return mixture
    if mixture == "kde":
        folded = kernel_density(particles, log_normaliser)
    else:
        distinct = len(np.unique(particles, axis=0))
        sizes = [k for k in (1, 2, 4, 8, 16, 32, 64) if k <= distinct]
        folded = expectation_maximisation(particles, sizes, log_normaliser)
    return expand_permutations(problem, folded)


def too_fine(problem: Problem, best: Candidate, hyperprior: Hyperprior) -> list[str]:
    """Say where the hyperprior's rate, not the data, keeps a parameter from being pruned.

    At an optimum ½γ = ½αE[φ]² + rα. Where the rate's share rα is the larger one, the parameter is
    irrelevant but its γ rests at γ/(1 − γ) = √(2rΛ), Λ the precision that the data resolve it to.
    """
    alpha, gamma = np.exp(best.log_alpha), best.relevance
    held = (gamma > 0.1) & (2 * hyperprior.rate * alpha > 0.5 * gamma)
    if not held.any():
        return []
    resolved = float((alpha * gamma / np.maximum(1 - gamma, 1e-3))[held].max())
    rate = 10.0 ** np.floor(np.log10(0.001 / resolved))  # there γ rests near 0.04
    return [
        f"The data resolve {', '.join(np.array(problem.names)[problem.ard][held])} more finely "
        f"than the hyperprior's rate {hyperprior.rate:.2g} lets a precision grow, so they cannot "
        f"be pruned. Rescale them, or give a smaller rate: sbnn.priors.Hyperprior(rate={rate:.0e})."
    ]


def first_run(messages: tuple[str, ...]) -> list[str]:
    """Messages of the run that candidates come from; later runs, not it, judge the answer."""
    stuck = re.compile(r"The sampler got stuck: it (.*?)\. The log evidence may be off.*")
    instead = (
        r"The first run got stuck: it \1. It only proposes what later runs judge, but an optimum "
    )
    instead += "may have been missed; try another key, or raise `n_particles`."
    return [stuck.sub(instead, text) for text in messages]


def shares_of(problem: Problem, found: Search, hyperprior: Hyperprior) -> np.ndarray:
    """Share of each optimum: its exact objective times the number of its symmetric images."""
    log_shares = np.array([c.objective(hyperprior) for c in found.optima])
    log_shares += np.log([multiplicity(problem, c.relevance) for c in found.optima])
    shares = np.exp(log_shares - log_shares.max())
    return shares / shares.sum()


def optima_table(found: Search, shares: np.ndarray, hyperprior: Hyperprior) -> pd.DataFrame:
    """The optima found, best first: exact evidence, estimates of it, and shares."""
    return pd.DataFrame(
        {
            "origin": [c.origin for c in found.optima],
            "log_evidence": [c.exact.log_evidence for c in found.optima],
            "log_evidence_error": [c.exact.log_evidence_error for c in found.optima],
            "objective": [c.objective(hyperprior) for c in found.optima],
            "estimate": [c.estimate for c in found.optima],
            "gap": [c.gap for c in found.optima],
            "surrogate": [c.surrogate for c in found.optima],
            "share": shares,
        }
    )


def average_draws(
    problem: Problem, found: Search, shares, hyperprior, key, n: int, evaluate,
    checkpoint: Checkpoint = NO_CHECKPOINT,
):  # fmt: skip
    """Draws that know how uncertain log α is: φ, its log-likelihood, log α, evaluations.

    Particles of the exact posteriors at the optima, each optimum by its share, are heated and
    cooled again under the hierarchical posterior (`annealing`). Where neurons can take each
    other's place, each draw then has its neurons in the order that fits the best α.
    """
    rng = generator(key)
    parts = [c.exact.particles.phi for c in found.optima]
    counts = np.floor(shares * n).astype(int)
    counts[0] += n - counts.sum()
    rows = [rng.choice(len(p), size=k, replace=k > len(p)) for p, k in zip(parts, counts)]
    phi = np.concatenate([p[r] for p, r in zip(parts, rows)])
    joint, log_likelihood, n_evaluations = heat_and_cool(
        problem, hyperprior, phi, key, evaluate, checkpoint
    )
    phi, log_alpha = np.asarray(to_parameters(joint, problem.ard)), joint[:, problem.n_parameters :]
    if joint_symmetry(problem) is not None:
        prior = problem.prior_at(found.optima[0].log_alpha)
        phi = relabel(rng, phi, prior, problem.symmetry)
        joint = join_log_alpha(rng, problem, phi, hyperprior, lowest_log_alpha(problem))
        log_alpha = joint[:, problem.n_parameters :]
    return phi, log_likelihood, log_alpha, n_evaluations
