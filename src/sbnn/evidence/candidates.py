"""The search for α: candidates from mixtures, judged, refined and ranked by the exact evidence."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sbnn._core.keys import derive_key, generator
from sbnn.evidence.ascent import Ascent, AscentStep, ascend
from sbnn.evidence.closed_form import log_evidence
from sbnn.evidence.exact import exact_evidence
from sbnn.evidence.laplace.problem_models import laplace_log_alpha
from sbnn.evidence.mixture import GaussianMixture
from sbnn.evidence.newton import Optimum, multistart, starting_points
from sbnn.evidence.relevance import relevance_from_particles
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem
from sbnn.problems.symmetry import Symmetry
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint
from sbnn.sampling.tmcmc import TmcmcResult

LAPLACE_STARTS = 4  # of the climb that adds a candidate which no sample and no mixture chose


class Candidate(NamedTuple):
    """An α on its way: where it came from, what the surrogate said, what is true."""

    origin: str
    log_alpha: np.ndarray
    surrogate: float
    estimate: float  # of the log evidence, tracked along the ascent
    exact: TmcmcResult
    steps: tuple[AscentStep, ...]
    relevance: np.ndarray

    def objective(self, hyperprior: Hyperprior) -> float:
        return self.exact.log_evidence + float(hyperprior.log_density(self.log_alpha))

    @property
    def gap(self) -> float:
        return self.estimate - self.exact.log_evidence


class Search(NamedTuple):
    """The refined optima, best first, and what was spent."""

    optima: tuple[Candidate, ...]
    surrogate_optima: tuple[Optimum, ...]
    first_exact: float  # exact log evidence at the surrogate's best α, before refinement
    n_evaluations: int


def surrogate_optima(
    problem: Problem,
    particles: np.ndarray,
    mixture: GaussianMixture,
    hyperprior: Hyperprior,
    rng: np.random.Generator,
    n_starts: int,
) -> list[Optimum]:
    """Distinct optima of the closed-form evidence from several starts."""
    starts = starting_points(rng, particles, problem.ard, n_starts)
    symmetry = _permutations(problem)
    return multistart(starts, mixture, problem.ard, hyperprior, symmetry)


def _permutations(problem: Problem) -> Symmetry | None:
    """The part of the group that moves precisions: permutations, where all that move are ARD."""
    symmetry = problem.symmetry
    if symmetry is None or not problem.ard[: symmetry.network.n_parameters].any():
        return None
    return Symmetry(symmetry.network, symmetry.n_extra, flip=False)


def expand_permutations(problem: Problem, mixture: GaussianMixture) -> GaussianMixture:
    """The folded mixture over all permutations of neurons, where they are few enough.

    Sign flips need no images: the ARD prior is even, so each image has the same evidence.
    """
    symmetry = _permutations(problem)
    if symmetry is None or symmetry.order > 24 or symmetry.order * len(mixture.means) > 5000:
        return mixture
    return mixture.expand(symmetry)


def search(
    problem: Problem,
    particles: np.ndarray,
    mixture: GaussianMixture,
    hyperprior: Hyperprior,
    key,
    *,
    n_particles: int = 2000,
    n_starts: int = 12,
    n_candidates: int = 1,
    sparsify: float = 0.75,
    tolerance: float = 1.0,
    evaluate: Callable | None = None,
    on_event: Callable[[str], None] | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Search:
    """From a mixture of the likelihood to verified optima of the exact evidence.

    1. Optima of the mixture's evidence from several starts; one cold start at the precisions of
       the particles as they are, which needs no mixture; and, where there are gradients, the
       optimum of Laplace's evidence, which needs neither and prunes whole neurons by trial.
    2. The exact evidence at each; those hopelessly below the best are dropped.
    3. Particle ascent of the exact evidence from the rest; the best is then made as sparse as the
       evidence allows (`sbnn.evidence.ascent.ascend`).
    4. A fresh run at the final α judges the estimate that the ascent carried along. While they
       differ by more than half the `tolerance`, the ascent continues from the fresh particles, up
       to twice.
    """
    say = on_event or (lambda text: None)
    keys = (derive_key(key, i) for i in itertools.count())
    rng = generator(next(keys))
    evaluations = 0

    say("proposing what to prune")
    surrogates = surrogate_optima(problem, particles, mixture, hyperprior, rng, n_starts)
    starts = [("mixture", o.log_alpha, o.log_evidence) for o in surrogates[:n_candidates]]
    cold = -np.log((particles[:, problem.ard] ** 2).mean(axis=0) + 1e-12)
    starts.append(("cold", cold, log_evidence(cold, mixture, problem.ard)))
    if not problem.black_box:
        say("proposing what to prune, by Laplace's method")
        # It is one candidate of several: a model without a mode to climb to does without it.
        with contextlib.suppress(ValueError, np.linalg.LinAlgError):
            at_mode = laplace_log_alpha(problem, hyperprior, rng, LAPLACE_STARTS)
            starts.append(("laplace", at_mode, log_evidence(at_mode, mixture, problem.ard)))

    judged = []
    for i, (origin, log_alpha, surrogate) in enumerate(starts):
        say(f"judging proposal {i + 1} of {len(starts)} by an exact run")
        exact = exact_evidence(
            problem, log_alpha, next(keys), n_particles=max(50, n_particles // 2),
            checkpoint=checkpoint.part(f"candidate-{i + 1}"), evaluate=evaluate,
        )  # fmt: skip
        evaluations += exact.n_evaluations
        judged.append((origin, log_alpha, surrogate, exact))
    first_exact = judged[0][3].log_evidence
    best = max(j[3].log_evidence for j in judged)
    # Refinement gains a few nats from a fair start; from one far below the best it would end in
    # another, worse, optimum.
    hopeful = [j for j in judged if j[3].log_evidence > best - 8.0]

    climbed: list[tuple[str, float, Ascent]] = []
    for i, (origin, log_alpha, surrogate, exact) in enumerate(hopeful):
        say(f"refining the best proposals: {i + 1} of {len(hopeful)}")
        ascent = ascend(
            problem, log_alpha, exact, hyperprior, next(keys),
            checkpoint=checkpoint.part(f"refine-{i + 1}"), evaluate=evaluate,
        )  # fmt: skip
        evaluations += ascent.n_evaluations
        climbed.append((origin, surrogate, ascent))
    climbed.sort(key=lambda c: -c[2].steps[-1].objective if c[2].steps else -c[2].log_evidence)

    finished: list[Candidate] = []
    for i, (origin, surrogate, ascent) in enumerate(climbed):
        if sparsify > 0 and i == 0:
            say("trying to prune more")
            here = TmcmcResult(ascent.particles, ascent.log_evidence, 0.0, (), 0, 0, True, "")
            sparse = ascend(
                problem, ascent.log_alpha, here, hyperprior, next(keys), sparsify=sparsify,
                checkpoint=checkpoint.part("prune"), evaluate=evaluate,
            )  # fmt: skip
            evaluations += sparse.n_evaluations
            ascent = sparse._replace(steps=(*ascent.steps, *sparse.steps))
        candidate, spent = _verify(
            problem, hyperprior, origin, surrogate, ascent, keys, n_particles, tolerance,
            finished, say, evaluate, checkpoint.part(f"verify-{i + 1}"),
        )  # fmt: skip
        evaluations += spent
        if candidate is not None:
            finished.append(candidate)
    finished = _rank(finished, hyperprior, sparsify, tolerance)
    return Search(tuple(finished), tuple(surrogates), first_exact, evaluations)


def _rank(
    found: list[Candidate], hyperprior: Hyperprior, sparsify: float, tolerance: float
) -> list[Candidate]:
    """By exact objective, the sparser first among those the data cannot tell apart.

    These are the ones whose exact evidence is within `sparsify` and its error of the best; the
    hyperprior's own price of a large α does not count against sparsity. One whose estimate did not
    hold gives way to one whose estimate did, unless it is better by more than `tolerance`.
    """
    best = max(found, key=lambda c: c.exact.log_evidence).exact
    verified = [c for c in found if abs(c.gap) <= tolerance]
    if verified:
        best_verified = max(verified, key=lambda c: c.exact.log_evidence).exact
        if best_verified.log_evidence >= best.log_evidence - tolerance:
            best = best_verified

    def order(candidate: Candidate):
        error = np.hypot(candidate.exact.log_evidence_error, best.log_evidence_error)
        close = candidate.exact.log_evidence >= best.log_evidence - sparsify - error
        relevant = candidate.relevance.sum()
        held = abs(candidate.gap) <= tolerance
        if close:
            return (0, relevant) if held else (1, 0.0)
        return (2, -candidate.objective(hyperprior))

    return sorted(found, key=order)


def _verify(
    problem, hyperprior, origin, surrogate, ascent: Ascent, keys, n_particles, tolerance,
    finished, say, evaluate, checkpoint: Checkpoint,
):  # fmt: skip
    """Judge an ascent by fresh particles, and continue from them while it does not hold."""
    evaluations = 0
    steps = ascent.steps
    found: list[Candidate] = []
    for attempt in range(3):
        gamma = relevance_from_particles(problem, ascent.particles.phi, ascent.log_alpha)
        if attempt == 0 and any(_alike(problem, gamma, c.relevance) for c in finished):
            return None, evaluations
        say("verifying by an exact run" if attempt == 0 else "verifying again")
        exact = exact_evidence(
            problem, ascent.log_alpha, next(keys), n_particles=n_particles,
            checkpoint=checkpoint.part(f"exact-{attempt + 1}"), evaluate=evaluate,
        )  # fmt: skip
        evaluations += exact.n_evaluations
        gamma = relevance_from_particles(problem, exact.particles.phi, ascent.log_alpha)
        candidate = Candidate(
            origin, ascent.log_alpha, surrogate, ascent.log_evidence, exact, steps, gamma
        )
        found.append(candidate)
        if abs(candidate.gap) <= 0.5 * tolerance or attempt == 2:
            break
        say("estimate and exact run differ; refining from fresh draws")
        ascent = ascend(
            problem, ascent.log_alpha, exact, hyperprior, next(keys), pruned=ascent.pruned,
            checkpoint=checkpoint.part(f"refine-{attempt + 1}"), evaluate=evaluate,
        )  # fmt: skip
        steps = (*steps, *ascent.steps)
        evaluations += ascent.n_evaluations

    def order(c: Candidate):
        return abs(c.gap) <= 0.5 * tolerance, abs(c.gap) <= tolerance, c.exact.log_evidence

    return max(found, key=order), evaluations


def _alike(problem: Problem, a: np.ndarray, b: np.ndarray, tolerance: float = 0.3) -> bool:
    """Whether two optima are one: their relevances agree up to a permutation of neurons."""
    symmetry = _permutations(problem)
    if symmetry is None:  # no two parameters can take each other's place
        return bool(np.abs(a - b).max() <= tolerance)
    if symmetry.order > 5000:
        return bool(np.abs(np.sort(a) - np.sort(b)).max() <= tolerance)
    full = np.ones(problem.n_parameters)
    full[problem.ard] = a
    images = symmetry.expand(full)[:, problem.ard]
    return bool(np.abs(images - b).max(axis=1).min() <= tolerance)


def multiplicity(problem: Problem, gamma: np.ndarray) -> int:
    """How many distinct optima the permutations make of one (which neuron is pruned)."""
    symmetry = _permutations(problem)
    if symmetry is None or symmetry.order > 5000:
        return 1
    full = np.ones(problem.n_parameters)
    full[problem.ard] = np.round(gamma)
    return len(np.unique(symmetry.expand(full), axis=0))
