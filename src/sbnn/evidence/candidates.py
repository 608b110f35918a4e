"""Search for α: propose from mixtures, then refine, verify and rank by the exact evidence."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import numpy as np

from sbnn._core.keys import Key, derive_key, generator
from sbnn.evidence.closed_form import log_evidence
from sbnn.evidence.exact.ascent import Ascent, AscentStep, ascend
from sbnn.evidence.exact.cold import ExactRun, cold_evidence
from sbnn.evidence.exact.following import FollowModes
from sbnn.evidence.exact.permutations import alike
from sbnn.evidence.exact.warm_modes import around_modes, is_large, shear_near
from sbnn.evidence.laplace.models.problems import laplace_optima
from sbnn.evidence.laplace.options import MANY_STARTS, SMALL
from sbnn.evidence.mixture import GaussianMixture
from sbnn.evidence.newton import Optimum, surrogate_optima
from sbnn.evidence.relevance import relevance_from_particles
from sbnn.evidence.resolution import following
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem
from sbnn.sampling.state import Evaluate
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint
from sbnn.sampling.tmcmc import TmcmcResult

PER_START = 32  # starts of the Laplace engine for each of a large network; they take 0.03 s
LAPLACE_STARTS = 4  # for the Laplace proposal, which needs neither the sample nor the mixture
# Refinement gains a few nats; from a start further below the best than this, in nats, it would end
# in a different, worse optimum.
HOPELESS = 8.0
MAX_VERIFICATIONS = 3
FEW_PARTICLES = 256  # of exact runs from one mode of a large network
MAX_PROPOSALS = 3  # of the Laplace engine, where there is no mixture


class Proposal(NamedTuple):
    """A candidate α to evaluate."""

    origin: str  # "mixture", "cold" or "laplace"
    log_alpha: np.ndarray
    surrogate: float  # the mixture's log evidence there, or Laplace's if there is no mixture
    near: np.ndarray | None = None  # a point near the mode


class Judged(NamedTuple):
    """A proposal and the exact run at its α."""

    proposal: Proposal
    exact: ExactRun


class Refined(NamedTuple):
    """A proposal and the ascent of the exact evidence from it."""

    proposal: Proposal
    ascent: Ascent

    @property
    def objective(self) -> float:
        """Final objective of the ascent."""
        steps = self.ascent.steps
        return steps[-1].objective if steps else self.ascent.log_evidence


class Candidate(NamedTuple):
    """A refined α, verified by an exact run."""

    origin: str
    log_alpha: np.ndarray
    surrogate: float  # of the proposal
    estimate: float  # log evidence tracked along the ascent
    exact: ExactRun
    steps: tuple[AscentStep, ...]
    relevance: np.ndarray

    def objective(self, hyperprior: Hyperprior) -> float:
        """Exact log evidence plus log hyperprior."""
        return self.exact.log_evidence + float(hyperprior.log_density(self.log_alpha))

    @property
    def gap(self) -> float:
        """Estimated minus exact log evidence."""
        return self.estimate - self.exact.log_evidence


class Search(NamedTuple):
    """The refined optima, best first, and the cost of finding them."""

    optima: tuple[Candidate, ...]
    surrogate_optima: tuple[Optimum, ...]
    first_exact: float  # exact log evidence at the surrogate's best α, before refinement
    n_evaluations: int
    hyperprior: Hyperprior


def search(
    problem: Problem,
    particles: np.ndarray | None,
    mixture: GaussianMixture | None,
    hyperprior: Hyperprior | None,
    key: Key,
    *,
    n_particles: int = 2000,
    n_starts: int = 12,
    n_candidates: int = 1,
    sparsify: float = 0.75,
    tolerance: float = 1.0,
    evaluate: Evaluate | None = None,
    on_event: Callable[[str], None] | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Search:
    """Find verified optima of the exact evidence, starting from a mixture or from Laplace.

    1. Propose: optima of the mixture's evidence from several starts; the precisions of the
       particles, which need no mixture; and, if there are gradients, the optimum of the Laplace
       evidence, which needs neither and prunes whole neurons by trial.
    2. Evaluate the exact evidence at each proposal; drop those far below the best.
    3. Refine the others by particle ascent of the exact evidence; make the best as sparse as the
       evidence allows (`sbnn.evidence.exact.ascent.ascend`).
    4. Verify the evidence tracked along the ascent by a fresh run at the final α. While they
       differ by more than half the `tolerance`, the ascent continues from the fresh particles, at
       most twice.
    5. Rank by the exact evidence.

    Without a mixture, which needs a sample under the known priors, all proposals come from the
    Laplace engine, and exact runs start from modes instead of the prior. For a large network
    (`is_large`) there is one proposal, and exact runs follow its mode alone.

    Parameters
    ----------
    problem : Problem
    particles : ndarray, shape (n, n_parameters), or None
        Draws under the known priors.
    mixture : GaussianMixture or None
        Surrogate of likelihood × known prior.
    hyperprior : Hyperprior or None
        None, where there is no mixture: after the resolution of the data at the best optimum of the
        Laplace evidence (`sbnn.evidence.resolution`).
    key : int or JAX key
    n_particles : int
        Particles of the verifying runs; the runs at proposals use half as many.
    n_starts : int
        Starts for maximising the mixture's evidence, or Laplace's.
    n_candidates : int
        Number of its optima that become proposals.
    sparsify : float
        Evidence, in nats, that may be given up for a sparser optimum.
    tolerance : float
        Largest accepted gap, in nats, between the tracked and the exact log evidence.
    evaluate : callable, optional
        Log-likelihood on the host, for black-box problems.
    on_event : callable, optional
        Called with one line of text per step.
    checkpoint : Checkpoint

    Returns
    -------
    Search
    """
    keys = (derive_key(key, i) for i in itertools.count())
    rng = generator(next(keys))
    large = mixture is None and is_large(problem)
    n_particles = min(n_particles, FEW_PARTICLES) if large else n_particles
    task = _Task(
        problem, hyperprior or Hyperprior(), keys, n_particles, tolerance, evaluate,
        on_event or (lambda text: None), checkpoint, mixture is None, large,
    )  # fmt: skip

    task.report("proposing candidates")
    surrogates: list[Optimum] = []
    if mixture is None or particles is None:
        task, proposals = _from_laplace(task, rng, n_starts, hyperprior is None)
        hyperprior = task.hyperprior
    else:
        assert hyperprior is not None
        surrogates = surrogate_optima(problem, particles, mixture, hyperprior, rng, n_starts)
        proposals = _propose(task, particles, mixture, surrogates[:n_candidates], rng)
    judged = _judge(task, proposals)
    best = max(j.exact.log_evidence for j in judged)
    hopeful = [j for j in judged if j.exact.log_evidence > best - HOPELESS]
    refined = sorted(_refine(task, hopeful), key=lambda r: -r.objective)

    n_evaluations = sum(j.exact.n_evaluations for j in judged)
    n_evaluations += sum(r.ascent.n_evaluations for r in refined)
    found: list[Candidate] = []
    for i, climb in enumerate(refined):
        if sparsify > 0 and i == 0:
            climb, spent = _sparsify(task, climb, sparsify)
            n_evaluations += spent
        candidate, spent = _verify(task.part(f"verify-{i + 1}"), climb, found)
        n_evaluations += spent
        if candidate is not None:
            found.append(candidate)
    optima = _rank(found, hyperprior, sparsify, tolerance)
    first = judged[0].exact.log_evidence
    return Search(tuple(optima), tuple(surrogates), first, n_evaluations, hyperprior)


@dataclass(frozen=True)
class _Task:
    """Settings shared by all steps of a search."""

    problem: Problem
    hyperprior: Hyperprior
    keys: Iterator[jax.Array]  # one per run, in the order of the runs
    n_particles: int
    tolerance: float
    evaluate: Evaluate | None
    report: Callable[[str], None]
    checkpoint: Checkpoint
    from_modes: bool  # exact runs start from modes, not from the prior
    large: bool  # and follow one mode of a large network

    def part(self, name: str) -> _Task:
        return replace(self, checkpoint=self.checkpoint.part(name))

    def exact(
        self, log_alpha: np.ndarray, n_particles: int, part: str, near: np.ndarray | None
    ) -> ExactRun:
        """Exact evidence and particles at log α."""
        key, checkpoint = next(self.keys), self.checkpoint.part(part)
        if not self.from_modes:
            return cold_evidence(
                self.problem, log_alpha, key, n_particles=n_particles, checkpoint=checkpoint,
                evaluate=self.evaluate,
            )  # fmt: skip
        return around_modes(self.problem, log_alpha, key, also=near).sample_all(
            key, n_particles, checkpoint=checkpoint
        )

    def ascend(
        self,
        log_alpha: np.ndarray,
        start: ExactRun,
        part: str,
        *,
        sparsify: float = 0.0,
        pruned: tuple[int, ...] = (),
    ) -> Ascent:
        """Ascent of the exact evidence from log α and its particles."""
        near = start.particles.phi.mean(axis=0)
        shear = shear_near(self.problem, log_alpha, near) if self.large else None
        return ascend(
            self.problem, log_alpha, start, self.hyperprior, next(self.keys), sparsify=sparsify,
            pruned=pruned, checkpoint=self.checkpoint.part(part), evaluate=self.evaluate,
            follower=FollowModes(self.problem, shear) if self.from_modes else None,
        )  # fmt: skip


def _propose(
    task: _Task,
    particles: np.ndarray,
    mixture: GaussianMixture,
    surrogates: Sequence[Optimum],
    rng: np.random.Generator,
) -> list[Proposal]:
    problem = task.problem
    out = [Proposal("mixture", o.log_alpha, o.log_evidence) for o in surrogates]
    cold = -np.log((particles[:, problem.ard] ** 2).mean(axis=0) + 1e-12)
    out.append(Proposal("cold", cold, log_evidence(cold, mixture, problem.ard)))
    if not problem.black_box:
        task.report("proposing candidates by the Laplace method")
        # Optional: some models have no mode.
        with contextlib.suppress(ValueError, np.linalg.LinAlgError):
            best = laplace_optima(problem, task.hyperprior, rng, LAPLACE_STARTS)[0]
            log_alpha = best.resting(task.hyperprior)
            value = log_evidence(log_alpha, mixture, problem.ard)
            out.append(Proposal("laplace", log_alpha, value))
    return out


def _from_laplace(
    task: _Task, rng: np.random.Generator, n_starts: int, choose: bool
) -> tuple[_Task, list[Proposal]]:
    """The best optima of the Laplace evidence; with `choose`, the hyperprior follows from them."""
    task.report("proposing candidates by the Laplace method")
    options = SMALL
    if task.large:
        n_starts, options = PER_START * n_starts, MANY_STARTS
    optima = laplace_optima(task.problem, task.hyperprior, rng, n_starts, options)
    best = optima[0]
    if choose:
        task = replace(task, hyperprior=following(best.resolved))
    most = 1 if task.large else MAX_PROPOSALS
    return task, [
        Proposal("laplace", opt.resting(task.hyperprior, opt.resolved), opt.log_evidence, opt.phi)
        for opt in optima[:most]
        if opt.log_evidence > best.log_evidence - HOPELESS
    ]


def _judge(task: _Task, proposals: Sequence[Proposal]) -> list[Judged]:
    """Exact evidence at each proposal, with half the particles."""
    out = []
    for i, proposal in enumerate(proposals, start=1):
        task.report(f"evaluating candidate {i} of {len(proposals)}")
        n_particles = task.n_particles if task.large else max(50, task.n_particles // 2)
        exact = task.exact(proposal.log_alpha, n_particles, f"candidate-{i}", proposal.near)
        out.append(Judged(proposal, exact))
    return out


def _refine(task: _Task, judged: Sequence[Judged]) -> list[Refined]:
    """Ascent of the exact evidence from each proposal."""
    out = []
    for i, (proposal, exact) in enumerate(judged, start=1):
        task.report(f"refining candidate {i} of {len(judged)}")
        out.append(Refined(proposal, task.ascend(proposal.log_alpha, exact, f"refine-{i}")))
    return out


def _sparsify(task: _Task, refined: Refined, sparsify: float) -> tuple[Refined, int]:
    """The proposal made as sparse as the evidence allows, and the number of evaluations."""
    task.report("trying to prune further")
    ascent = refined.ascent
    here = TmcmcResult(
        particles=ascent.particles, log_evidence=ascent.log_evidence, log_evidence_error=0.0,
        stages=(), n_evaluations=0, n_rejected=0, converged=True,
    )  # fmt: skip
    sparse = task.ascend(ascent.log_alpha, here, "prune", sparsify=sparsify)
    both = sparse._replace(steps=(*ascent.steps, *sparse.steps))
    return Refined(refined.proposal, both), sparse.n_evaluations


def _verify(
    task: _Task, refined: Refined, found: Sequence[Candidate]
) -> tuple[Candidate | None, int]:
    """Verify a refined proposal with fresh particles; also return the number of evaluations.

    While the estimate and the exact run disagree, the ascent continues from the fresh particles.
    None if the optimum is already in `found`.
    """
    problem, ascent, steps = task.problem, refined.ascent, refined.ascent.steps
    gamma = relevance_from_particles(problem, ascent.particles.phi, ascent.log_alpha)
    if any(alike(problem, gamma, c.relevance) for c in found):
        return None, 0
    n_evaluations = 0
    attempts: list[Candidate] = []
    for attempt in range(1, MAX_VERIFICATIONS + 1):
        task.report("verifying by an exact run" if attempt == 1 else "verifying again")
        near = ascent.particles.phi.mean(axis=0)
        exact = task.exact(ascent.log_alpha, task.n_particles, f"exact-{attempt}", near)
        n_evaluations += exact.n_evaluations
        candidate = Candidate(
            refined.proposal.origin,
            ascent.log_alpha,
            refined.proposal.surrogate,
            ascent.log_evidence,
            exact,
            steps,
            relevance_from_particles(problem, exact.particles.phi, ascent.log_alpha),
        )
        attempts.append(candidate)
        if abs(candidate.gap) <= 0.5 * task.tolerance or attempt == MAX_VERIFICATIONS:
            break
        task.report("estimate and exact run differ; refining again")
        ascent = task.ascend(ascent.log_alpha, exact, f"refine-{attempt}", pruned=ascent.pruned)
        steps = (*steps, *ascent.steps)
        n_evaluations += ascent.n_evaluations

    def order(c: Candidate) -> tuple[bool, bool, float]:
        gap = abs(c.gap)
        return gap <= 0.5 * task.tolerance, gap <= task.tolerance, c.exact.log_evidence

    return max(attempts, key=order), n_evaluations


def _rank(
    found: list[Candidate], hyperprior: Hyperprior, sparsify: float, tolerance: float
) -> list[Candidate]:
    """Sort by exact objective, but by sparsity among candidates the data cannot distinguish.

    These are the candidates whose exact evidence is within `sparsify` plus its error of the best;
    the hyperprior's penalty on a large α does not count against sparsity. An unverified candidate
    ranks below a verified one unless it is better by more than `tolerance`.
    """
    best = max(found, key=lambda c: c.exact.log_evidence).exact
    verified = [c for c in found if abs(c.gap) <= tolerance]
    if verified:
        best_verified = max(verified, key=lambda c: c.exact.log_evidence).exact
        if best_verified.log_evidence >= best.log_evidence - tolerance:
            best = best_verified

    def order(candidate: Candidate) -> tuple[int, float]:
        error = np.hypot(candidate.exact.log_evidence_error, best.log_evidence_error)
        close = candidate.exact.log_evidence >= best.log_evidence - sparsify - error
        relevant = candidate.relevance.sum()
        held = abs(candidate.gap) <= tolerance
        if close:
            return (0, relevant) if held else (1, 0.0)
        return (2, -candidate.objective(hyperprior))

    return sorted(found, key=order)
