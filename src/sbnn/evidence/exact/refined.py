"""One Laplace optimum made exact: posterior draws, and α refined on the exact evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sbnn._core.keys import derive_key
from sbnn.evidence.exact.ascent import ascend
from sbnn.evidence.exact.following import along, first_trajectories
from sbnn.evidence.exact.restoring import restored
from sbnn.evidence.exact.warm import Local, around_optimum
from sbnn.evidence.laplace.mixture import compacted, precision_of, restricted
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import Optimum, relax
from sbnn.priors import JointPrior, Normal
from sbnn.problems.network import Network
from sbnn.sampling.state import MoveInfo, Particles, Tuning
from sbnn.sampling.tempering import systematic_resample
from sbnn.sampling.warm_start import Reference, WarmStartResult, straight
from sbnn.sampling.warm_start.path import Path
from sbnn.sampling.warm_start.sampler import WarmStage

MAX_TRAJECTORIES = 20  # per change of α
MAX_STEPS = 12  # of an ascent: the optimum starts near its end
RELAXATIONS = 50  # Levenberg–Marquardt steps to the mode at a refined α
# Evidence, in nats, that may be given up to remove a neuron; as in `sbnn.nsbl`.
SPARSIFY = 0.75


@dataclass(frozen=True)
class ExactOptimum:
    """An optimum with draws of its exact posterior.

    Attributes
    ----------
    optimum : Optimum
        With the refined α. All its active weights are connected to the output.
    draws : ndarray, shape (n, n_active)
        Of its active weights.
    run : WarmStartResult
        The run that gave the draws, with the log evidence of one image under sign flips.
    first : WarmStartResult
        The run at the α of the Laplace engine; the same one if that was kept.
    before : Optimum
        The optimum with that α.
    """

    optimum: Optimum
    draws: np.ndarray
    run: WarmStartResult
    first: WarmStartResult

    before: Optimum

    @property
    def refined(self) -> bool:
        """Whether another α than that of the Laplace engine was taken."""
        return self.run is not self.first

    def better_of(self, other: tuple[Optimum, WarmStartResult], margin: float) -> ExactOptimum:
        """This or another optimum, whose log evidence may be lower by an error and `margin`."""
        opt, run = other
        allowed = np.hypot(run.log_evidence_error, self.run.log_evidence_error) + margin
        if run.beta < 1.0 or run.log_evidence < self.run.log_evidence - allowed:
            return self
        return replace(self, optimum=opt, draws=run.particles.phi, run=run)

    def unrefined(self) -> ExactOptimum:
        """The optimum at the α of the Laplace engine."""
        return replace(self, optimum=self.before, draws=self.first.particles.phi, run=self.first)


def connected(opt: Optimum) -> Optimum:
    """The optimum without weights that have no path to the output."""
    return restricted(opt, ~opt.layout.unseen)


def exact_optimum(
    model: NetworkModel,
    opt: Optimum,
    key: Any,
    *,
    n_particles: int = 256,
    refine: bool = True,
    sparsify: float = SPARSIFY,
    on_stage: Callable[[WarmStage], None] | None = None,
) -> ExactOptimum:
    """Exact draws at an optimum, and at a better α if the exact evidence finds one.

    Pruned weights that would add strong evidence come back (`restored`). Then the particles climb
    the exact evidence in log α (`ascend`), and neurons whose removal costs less than `sparsify`
    nats are removed. As the particles that choose a step also estimate its gain, a fresh run from
    the Laplace approximation decides about each of the two: the change is kept if the log
    evidence, plus what may be given up for removed neurons, is not lower by more than one standard
    error.

    Parameters
    ----------
    model : NetworkModel
    opt : Optimum
        With its `precision`.
    key : int or JAX key
    n_particles : int
    refine : bool
        False samples at the optimum's own α only.
    sparsify : float
        Evidence, in nats, that may be given up for fewer neurons.
    on_stage : callable, optional
        Called with every stage of the runs.

    Returns
    -------
    ExactOptimum
    """
    opt = connected(opt)
    first = around_optimum(model, opt).sample(derive_key(key, 0), n_particles, on_stage)
    found = ExactOptimum(opt, first.particles.phi, first, first, opt)
    if not refine or not len(opt.active) or first.beta < 1.0:
        return found
    more = restored(model, opt, found.draws)
    if more is not None:
        run = _sample(model, relaxed(model, more), derive_key(key, 3), n_particles, on_stage)
        found = found.better_of(run, margin=0.0)
    return _climbed(model, found, key, n_particles, sparsify, on_stage)


def _sample(
    model: NetworkModel,
    opt: Optimum,
    key: Any,
    n_particles: int,
    on_stage: Callable[[WarmStage], None] | None,
) -> tuple[Optimum, WarmStartResult]:
    return opt, around_optimum(model, opt).sample(key, n_particles, on_stage)


def _climbed(
    model: NetworkModel,
    found: ExactOptimum,
    key: Any,
    n_particles: int,
    sparsify: float,
    on_stage: Callable[[WarmStage], None] | None,
) -> ExactOptimum:
    """The optimum after an ascent of its α, if a fresh run confirms that it is better."""
    opt = found.optimum
    local = around_optimum(model, opt)
    ascent = ascend(
        LocalProblem(local, _network(opt)), opt.log_alpha[opt.active], found.run,
        model.hyperprior, derive_key(key, 1), max_steps=MAX_STEPS, sparsify=sparsify,
        follower=FollowLocal(local),
    )  # fmt: skip
    if not ascent.steps:
        return found
    new = opt.copy()
    new.log_alpha[opt.active] = ascent.log_alpha
    new = relaxed(model, new.without(opt.active[np.array(ascent.pruned, int)]))
    run = _sample(model, new, derive_key(key, 2), n_particles, on_stage)
    return found.better_of(run, margin=sparsify if ascent.pruned else 0.0)


def _network(opt: Optimum) -> Network:
    """The smallest network that holds the weights kept, as `around_optimum` takes it."""
    small = compacted(opt)
    return Network(small.sizes, small.activation)


def relaxed(model: NetworkModel, opt: Optimum) -> Optimum:
    """The optimum at its mode for its α, without weights that are not connected."""
    new = opt.copy()
    _, new.precision = relax(model, new, RELAXATIONS)
    new.precision = precision_of(new).as_primal()
    return connected(new)


@dataclass(frozen=True)
class LocalProblem:
    """What `ascend` needs to know of the free weights around an optimum."""

    local: Local
    network: Network  # of `local`

    @property
    def ard(self) -> np.ndarray:
        """All free weights have an ARD prior."""
        return np.full(len(self.local.positions), True)

    def prior_at(self, log_alpha: np.ndarray) -> JointPrior:
        """N(0, 1/α) for every weight."""
        d = len(log_alpha)
        scale = np.exp(-0.5 * np.asarray(log_alpha))
        return JointPrior([(Normal, np.arange(d), (np.zeros(d), scale))], d)

    def prunable_units(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Hidden neurons: free weights that lead out of each, and all of its free weights."""
        place = np.full(self.local.n_parameters, -1)
        place[self.local.positions] = np.arange(len(self.local.positions))
        units = []
        for neuron in self.network.neurons():
            gate, members = place[neuron.outgoing], place[neuron.members]
            units.append((gate[gate >= 0], members[members >= 0]))
        return units


@dataclass(frozen=True)
class FollowLocal:
    """Particles around one mode that follow α, on one side of the walls."""

    local: Local

    # See `FollowModes`: fewer errors add evidence that is not there.
    n_errors: ClassVar[float] = 4.0

    def start(self, n_parameters: int) -> Tuning:
        """Tuning of the first moves."""
        return first_trajectories(n_parameters)

    def follow(
        self,
        key: Any,
        rng: np.random.Generator,
        prior: JointPrior,
        before: Particles,
        weights: np.ndarray,
        tuning: Tuning,
    ) -> tuple[Particles, MoveInfo, Tuning]:
        """Resample and move under the new prior."""
        chosen = systematic_resample(rng, weights)
        u, target = straight(self.local.shear, before.phi), replace(self.local.target, prior=prior)
        reference = Reference.of(u[chosen].mean(axis=0)[None], _covariance(u, weights)[None])
        path = Path.between(reference, target, self.local.walls, self.local.shear)
        return along(path, key, before.phi[chosen], chosen, tuning)


def _covariance(phi: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted covariance, shrunk by d/(n + d) towards its diagonal so that it has full rank."""
    n, d = phi.shape
    covariance = np.atleast_2d(np.cov(phi.T, aweights=weights, ddof=0))
    diagonal = np.diag(np.maximum(np.diag(covariance), 1e-300))
    return n / (n + d) * covariance + d / (n + d) * diagonal
