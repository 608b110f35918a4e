"""`sbnn.nsbl`: nonlinear sparse Bayesian learning. Sample, approximate, search, verify, average."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from sbnn._core.float64 import float64
from sbnn._core.keys import Key, derive_key, generator, key_words
from sbnn._core.messages import FirstRunStuck, Message, NotVerified, SearchEnded
from sbnn.evidence.candidates import Candidate, Search, search
from sbnn.evidence.exact.permutations import expand_permutations, multiplicity
from sbnn.evidence.exact.warm_modes import is_large
from sbnn.evidence.laplace.models.problems import has_mode
from sbnn.evidence.mixture import GaussianMixture, expectation_maximisation, kernel_density
from sbnn.evidence.resolution import default_hyperprior, resolving, too_coarse
from sbnn.methods._standard import sample_posterior
from sbnn.methods.details import NsblDetails
from sbnn.methods.result import Result, full_length
from sbnn.methods.resume import Call, CheckpointPath, Resources, carry_out
from sbnn.methods.sampler_report import optima_table, rejections_of, search_history
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem, require_ard
from sbnn.problems.symmetry import invariant_symmetry
from sbnn.sampling.annealing import heat_and_cool, lowest_log_alpha
from sbnn.sampling.evaluator import Executor
from sbnn.sampling.joint import join_log_alpha, joint_symmetry, to_parameters
from sbnn.sampling.moves import relabel
from sbnn.sampling.progress import Progress, events
from sbnn.sampling.state import Particles
from sbnn.sampling.tmcmc import TmcmcResult, check_options

NO_RUN = TmcmcResult(
    Particles(np.zeros((0, 0)), np.zeros(0), np.zeros(0, int)), -np.inf, np.inf, (), 0, 0, False
)


@float64
def nsbl(
    problem: Problem,
    key: Key = 0,
    n_particles: int = 2000,
    mixture: str | GaussianMixture = "auto",
    hyperprior: Hyperprior | None = None,
    n_starts: int = 12,
    sparsify: float = 0.75,
    tolerance: float = 1.0,
    average: bool = True,
    progress: Progress = False,
    executor: Executor = None,
    on_failure: str = "retry",
    checkpoint: CheckpointPath = None,
) -> Result:
    """Nonlinear sparse Bayesian learning, verified against the exact evidence.

    The likelihood is sampled once by TMCMC and approximated by a Gaussian mixture, whose evidence
    is maximised over log α in closed form; where that sample cannot be had, optima of the Laplace
    evidence take its place (`mixture`). Optima are then judged, refined and ranked by the exact
    evidence (`sbnn.evidence.candidates`); the draws come from the exact posterior.

    Parameters
    ----------
    problem : Problem
        With at least one ARD parameter.
    key : int or JAX key
        The same key gives the same numbers.
    n_particles : int
        Number of posterior draws.
    mixture : {"auto", "kde", "em"} or GaussianMixture
        A kernel density with shared bandwidth; EM with the number of kernels chosen by BIC; or a
        given mixture. A poor one costs time, not accuracy: its proposals are verified. "auto" is
        "kde", unless sampling under the known priors gets stuck, as it does for most networks with
        inferred noise or more than about ten weights: where there are gradients, the search then
        starts from optima of the Laplace evidence, and warm-start SMC verifies them. Networks
        of more than 30 parameters (20 with inferred noise) start so, at one mode, 256 particles.
    hyperprior : Hyperprior, optional
        Default: rate e⁻¹⁰ and, for models other than small networks with known noise, less where it
        would keep parameters from being pruned that the data resolve finely.
    n_starts : int
        Number of starts of the Newton ascent.
    sparsify : float
        Log evidence, in nats, to trade for a sparser result; 0 keeps the maximum. Noise alone gains
        more than the default one time in twenty.
    tolerance : float
        Largest difference between estimated and exact log evidence at which a result is verified.
    average : bool
        Draws include the uncertainty of log α: starting at the optima, weighted by their exact
        evidence, they are moved to p(φ, log α|D). With False they come from the exact posterior at
        α* alone, which is `Result.details.best_phi` in either case.
    progress, executor, on_failure, checkpoint
        As for `sbnn.standard`.

    Returns
    -------
    Result
        With `log_alpha`, `relevance`, `verified`, `evidence_gap`, `optima` and, as `details`,
        `NsblDetails`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, before anything runs.

    Warns
    -----
    ConvergenceWarning
        If the result is not verified, or if an optimum may have been missed because the first run
        got stuck. Also in `Result.messages`.
    RuntimeWarning
        If a black-box function failed at some points.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import sbnn
    >>> def log_likelihood(theta):
    ...     return -50.0 * jnp.sum((theta - jnp.array([1.0, 0.0])) ** 2)
    >>> problem = sbnn.Problem(log_likelihood, ["a", "b"], ard=["a", "b"], bound=3.0)
    >>> result = sbnn.nsbl(problem, key=0, n_particles=200, n_starts=2, average=False)
    >>> bool(result.relevance[0] > 0.9 > result.relevance[1])
    True
    """
    require_ard(problem, "nsbl")
    options = Options(
        n_particles,
        mixture,
        hyperprior or default_hyperprior(problem),
        n_starts,
        sparsify,
        tolerance,
        average,
    )
    options.check(problem)
    settings = {field.name: getattr(options, field.name) for field in fields(options)}
    return carry_out(
        Call("nsbl", problem, key, {**settings, "on_failure": on_failure}),
        lambda resources: _run(problem, key, options, progress, resources),
        executor=executor,
        on_failure=on_failure,
        checkpoint=checkpoint,
    )


@dataclass(frozen=True)
class Options:
    """The settings of `nsbl` that its numbers depend on."""

    n_particles: int
    mixture: str | GaussianMixture
    hyperprior: Hyperprior | None  # None: chosen once the resolution of the data is known
    n_starts: int
    sparsify: float
    tolerance: float
    average: bool

    def check(self, problem: Problem) -> None:
        """Raise a ValueError if a setting is invalid."""
        check_options(self.n_particles, "auto", 1, None)
        if isinstance(self.mixture, GaussianMixture):
            if self.mixture.dimension != problem.n_parameters:
                raise ValueError(
                    f"`mixture` has {self.mixture.dimension} dimensions; the problem has "
                    f"{problem.n_parameters} parameters."
                )
        elif self.mixture not in ("auto", "kde", "em"):
            raise ValueError(
                f"`mixture` must be 'auto', 'kde', 'em' or a GaussianMixture; got {self.mixture!r}."
            )
        if self.n_starts < 1:
            raise ValueError(f"`n_starts` must be at least 1; got {self.n_starts}.")
        if not self.tolerance > 0:
            raise ValueError(f"`tolerance` must be above zero; got {self.tolerance}.")
        if not self.sparsify >= 0:
            raise ValueError(f"`sparsify` must not be negative; got {self.sparsify}.")

    def record(self) -> dict[str, Any]:
        """The settings as stored in a result."""
        return {
            "n_particles": self.n_particles,
            "mixture": self.mixture if isinstance(self.mixture, str) else "given",
            "hyperprior": self.hyperprior and [self.hyperprior.shape, self.hyperprior.rate],
            "n_starts": self.n_starts,
            "sparsify": self.sparsify,
            "tolerance": self.tolerance,
            "average": self.average,
        }


class Draws(NamedTuple):
    """Posterior draws and what they cost."""

    phi: np.ndarray
    log_likelihood: np.ndarray
    log_alpha: np.ndarray | None  # None: all at α*
    n_evaluations: int


def _run(
    problem: Problem, key: Key, options: Options, progress: Progress, resources: Resources
) -> Result:
    """Sample, approximate, search and verify, average."""
    started = time.perf_counter()
    key_sample, key_search, key_average = (derive_key(key, i) for i in range(3))
    sample = _first_run(problem, key_sample, options, progress, resources)
    folded = mixture = None
    hyperprior = options.hyperprior
    if sample.beta >= 1.0:
        folded = sample.particles.phi
        folded = folded if problem.symmetry is None else problem.symmetry.fold(folded)
        mixture = _approximate(problem, options.mixture, folded, sample.log_evidence)
        hyperprior = options.hyperprior or resolving(np.asarray(mixture.covariances), problem.ard)
    found = search(
        problem,
        folded,
        mixture,
        hyperprior,
        key_search,
        n_particles=options.n_particles,
        n_starts=options.n_starts,
        sparsify=options.sparsify,
        tolerance=options.tolerance,
        evaluate=resources.evaluate,
        on_event=events(progress),
        checkpoint=resources.checkpoint.part("search"),
    )
    hyperprior, options = found.hyperprior, replace(options, hyperprior=found.hyperprior)
    best = found.optima[0]
    shares = _shares(problem, found, hyperprior)
    if options.average:
        draws = _average(problem, found, shares, options, key_average, resources.part("average"))
    else:
        n = options.n_particles
        at = np.arange(n) % len(best.exact.particles.phi)  # large networks have fewer particles
        phi = _random_images(problem, best.log_alpha, best.exact.particles.phi[at], key_average)
        draws = Draws(phi, best.exact.particles.log_likelihood[at], None, 0)
    return Result(
        method="nsbl",
        problem=problem,
        phi=draws.phi,
        log_likelihood=draws.log_likelihood,
        log_evidence=best.exact.log_evidence,
        log_evidence_error=best.exact.log_evidence_error,
        n_evaluations=sample.n_evaluations + found.n_evaluations + draws.n_evaluations,
        seconds=time.perf_counter() - started,
        converged=best.exact.converged and all(o.converged for o in found.surrogate_optima[:1]),
        reason=_reason(found),
        key=key_words(key),
        settings=options.record(),
        n_rejected=sample.n_rejected,
        log_alpha=full_length(problem, best.log_alpha),
        relevance=full_length(problem, best.relevance),
        verified=abs(best.gap) <= options.tolerance and best.exact.agreeing,
        evidence_gap=best.gap,
        optima=optima_table(found, shares, hyperprior),
        messages=_messages(problem, sample, best, options),
        history=search_history(sample, found),
        details=_details(sample, mixture, found, draws),
        description=problem.description(),
    )


def _first_run(
    problem: Problem, key: Key, options: Options, progress: Progress, resources: Resources
) -> TmcmcResult:
    """Draws under the known priors; stopped before β = 1 if Laplace optima are to replace them.

    Under uniform boxes, networks of more than about ten weights, or with inferred noise, have
    posteriors that a random walk cannot follow. Where there are gradients, the search then starts
    from Laplace optima; for large networks it is not even tried.
    """
    n, may_stop = options.n_particles, options.mixture == "auto" and not problem.black_box
    if may_stop and is_large(problem) and has_mode(problem):
        return NO_RUN
    if may_stop:
        run = sample_posterior(
            problem, key, n, resources.part("standard"), progress, move="random_walk", give_up=True
        )
        if run.beta >= 1.0 or has_mode(problem):
            return run
    part = resources.part("standard-hmc" if may_stop else "standard")
    return sample_posterior(problem, key, n, part, progress)


def _approximate(
    problem: Problem, mixture: str | GaussianMixture, particles: np.ndarray, log_evidence: float
) -> GaussianMixture:
    """A mixture that approximates likelihood × known prior."""
    log_normaliser = log_evidence + problem.log_box_volume()
    if isinstance(mixture, GaussianMixture):
        return mixture
    if mixture != "em":
        folded = kernel_density(particles, log_normaliser)
    else:
        distinct = len(np.unique(particles, axis=0))
        sizes = [k for k in (1, 2, 4, 8, 16, 32, 64) if k <= distinct]
        folded = expectation_maximisation(particles, sizes, log_normaliser)
    return expand_permutations(problem, folded)


def _shares(problem: Problem, found: Search, hyperprior: Hyperprior) -> np.ndarray:
    """Share of each optimum: its exact objective times the number of its symmetric images."""
    log_shares = np.array([c.objective(hyperprior) for c in found.optima])
    log_shares += np.log([multiplicity(problem, c.relevance) for c in found.optima])
    shares = np.exp(log_shares - log_shares.max())
    return shares / shares.sum()


def _average(
    problem: Problem,
    found: Search,
    shares: np.ndarray,
    options: Options,
    key: Key,
    resources: Resources,
) -> Draws:
    """Draws that include the uncertainty of log α.

    Particles of the exact posteriors at the optima, in proportion to their shares, are heated and
    cooled again under the hierarchical posterior (`sbnn.sampling.annealing`). Where neurons can be
    exchanged, each draw then has its neurons in the order that fits the best α.
    """
    rng = generator(key)
    n, hyperprior = options.n_particles, options.hyperprior
    assert hyperprior is not None
    parts = [c.exact.particles.phi for c in found.optima]
    counts = np.floor(shares * n).astype(int)
    counts[0] += n - counts.sum()
    rows = [rng.choice(len(p), size=k, replace=k > len(p)) for p, k in zip(parts, counts)]
    phi = np.concatenate([p[r] for p, r in zip(parts, rows)])
    joint, log_likelihood, n_evaluations = heat_and_cool(
        problem, hyperprior, phi, key, resources.evaluate, resources.checkpoint
    )
    phi = np.asarray(to_parameters(joint, problem.ard))
    if joint_symmetry(problem) is not None:
        prior = problem.prior_at(found.optima[0].log_alpha)
        phi = relabel(rng, phi, prior, problem.symmetry)
        joint = join_log_alpha(rng, problem, phi, hyperprior, lowest_log_alpha(problem))
    return Draws(phi, log_likelihood, joint[:, problem.n_parameters :], n_evaluations)


def _random_images(
    problem: Problem, log_alpha: np.ndarray, phi: np.ndarray, key: Key
) -> np.ndarray:
    """Each draw at a random point of its orbit: exact runs may hold one image of every mode."""
    symmetry = invariant_symmetry(problem.symmetry, problem.prior_at(log_alpha), 0)
    return phi if symmetry is None else symmetry.apply_random(generator(key, 1), phi)


# ------------------------------------------------------------------------ what the result reports
def _messages(
    problem: Problem, sample: TmcmcResult, best: Candidate, options: Options
) -> tuple[Message, ...]:
    out, hyperprior = list(rejections_of(sample)), options.hyperprior
    assert hyperprior is not None
    if sample.stuck and sample.beta >= 1.0:
        out.append(FirstRunStuck(sample.reason))
    if abs(best.gap) > options.tolerance or not best.exact.agreeing:
        exact = best.exact
        out.append(
            NotVerified(
                best.estimate, exact.log_evidence, exact.log_evidence_error, options.tolerance
            )
        )
    coarse = too_coarse(problem, best.log_alpha, best.relevance, hyperprior)
    return (*out, coarse) if coarse is not None else tuple(out)


def _reason(found: Search) -> Message:
    """How the search ended."""
    outcome, newton = found.optima[0].exact.reason, found.surrogate_optima[:1]
    return SearchEnded(newton[0].reason, outcome) if newton else outcome


def _details(
    sample: TmcmcResult, mixture: GaussianMixture | None, found: Search, draws: Draws
) -> NsblDetails:
    common = NsblDetails(
        optima_log_alpha=np.array([c.log_alpha for c in found.optima]),
        optima_relevance=np.array([c.relevance for c in found.optima]),
        best_phi=found.optima[0].exact.particles.phi,
        log_alpha_draws=draws.log_alpha,
    )
    if mixture is None:
        return common
    newton = found.surrogate_optima[0]
    return replace(
        common,
        standard_phi=sample.particles.phi,
        standard_log_evidence=sample.log_evidence,
        standard_log_evidence_error=sample.log_evidence_error,
        mixture=mixture,
        newton_log_alpha=np.array([s.log_alpha for s in newton.history]),
        newton_relevance=np.array([s.relevance for s in newton.history]),
        newton_iterations=np.array([o.n_iterations for o in found.surrogate_optima]),
        mixture_log_evidence=newton.log_evidence,
        mixture_exact_log_evidence=found.first_exact,
    )
