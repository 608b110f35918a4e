"""The exact evidence around Laplace optima, by warm-start SMC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnn.evidence.laplace.mixture import compacted, precision_of
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.models.terms import per_row
from sbnn.evidence.laplace.optimum import Optimum
from sbnn.priors import JointPrior, Normal
from sbnn.problems.many_networks import gradient_of_many, log_likelihood_of_many
from sbnn.problems.network import Network
from sbnn.problems.output_layer import Output, output_weights
from sbnn.problems.symmetry import flip_walls
from sbnn.problems.target import Target, restricted
from sbnn.sampling.storage import NO_CHECKPOINT, Checkpoint
from sbnn.sampling.warm_start import (
    Reference,
    Shear,
    WarmStartResult,
    straightened,
    warm_start,
)
from sbnn.sampling.warm_start.sampler import WarmStage

LARGEST = 50.0  # log precision of a weight in the coordinates below
ROWS_PER_WEIGHT = 8  # of an output, from which the coordinates of its weights are computed


@dataclass(frozen=True)
class Local:
    """A posterior restricted to the free parameters around one or more modes.

    Attributes
    ----------
    target : Target
        On the free parameters.
    reference : Reference
    walls : ndarray, shape (n_walls, d)
        Half-spaces that hold one of the 2^k images under sign flips, k the number of rows that are
        not zero.
    positions : ndarray of int, shape (d,)
        Of the free parameters in φ.
    n_parameters : int
        Length of φ.
    shear : Shear, optional
        To the coordinates of the reference, if they are not φ itself.
    complete : bool
        Whether the reference has all images of its best mode under permutations that leave the
        posterior unchanged.
    """

    target: Target
    reference: Reference
    walls: np.ndarray
    positions: np.ndarray
    n_parameters: int
    shear: Shear | None = None
    complete: bool = True

    @property
    def log_images(self) -> float:
        """Logarithm of the number of images under sign flips."""
        return int(self.walls.any(axis=1).sum()) * float(np.log(2.0))

    def full(self, phi: np.ndarray) -> np.ndarray:
        """Draws of the free parameters → φ, (n, n_parameters); pruned ones are zero."""
        out = np.zeros((len(phi), self.n_parameters))
        out[:, self.positions] = phi
        return out

    def sample(
        self,
        key: Any,
        n_particles: int,
        on_stage: Callable[[WarmStage], None] | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> WarmStartResult:
        """Exact draws and log evidence of one image."""
        return warm_start(
            self.target, self.reference, key, n_particles=n_particles, walls=self.walls,
            shear=self.shear, on_stage=on_stage, checkpoint=checkpoint,
        )  # fmt: skip

    def sample_all(
        self,
        key: Any,
        n_particles: int,
        on_stage: Callable[[WarmStage], None] | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> WarmStartResult:
        """Exact draws of all parameters, and the log evidence of all images."""
        run = self.sample(key, n_particles, on_stage, checkpoint)
        return run._replace(
            particles=run.particles._replace(phi=self.full(run.particles.phi)),
            log_evidence=run.log_evidence + self.log_images,
            forward=run.forward + self.log_images,
            backward=run.backward + self.log_images,
        )


def around_optimum(model: NetworkModel, opt: Optimum) -> Local:
    """The posterior of a network at an optimum's α and noise, around its mode.

    Parameters
    ----------
    model : NetworkModel
    opt : Optimum
        With its `precision`.

    Returns
    -------
    Local
        In the smallest network that holds the weights kept, with `positions` in its φ.
    """
    opt = compacted(opt)
    network, active = Network(opt.sizes, opt.activation), opt.active
    precision = precision_of(opt)
    scale = precision.scale
    covariance = precision.covariance(np.arange(len(active))) * scale[:, None] * scale
    theta = opt.noise.transpose(1, 0, 2) if opt.noise.ndim == 3 else opt.noise
    data = [np.asarray(a, float) for a in (model.x_t.T, model.y_t.T, theta)]
    if model.weights is not None:
        data.append(np.asarray(model.weights, float))
    kind = (network, model.likelihood, False)
    std = np.exp(-0.5 * opt.log_alpha[active])
    prior = JointPrior(
        [(Normal, np.arange(len(active)), (np.zeros(len(active)), std))], len(active)
    )
    whole = Target(tuple(data), prior, log_likelihood_of_many(*kind), None, gradient_of_many(*kind))
    n = network.n_parameters
    shear = output_shear(model, opt, network, active) if len(active) else None
    mean, own = straightened(shear, opt.phi[active], covariance)
    spread = np.zeros((n, n))
    spread[np.ix_(active, active)] = covariance
    return Local(
        restricted(whole, prior, np.zeros(n), active),
        Reference.of(mean[None], own[None]),
        flip_walls(network, opt.phi, spread)[:, active],
        active,
        n,
        shear,
    )


def output_shear(
    model: NetworkModel, opt: Optimum, network: Network, positions: np.ndarray
) -> Shear:
    """Output weights measured from those that fit the mode's outputs best, given the others.

    With little noise the output weights follow every change of the weights below them: the
    posterior is a thin sheet that bends. On a network of 65 weights with σ = 0.01, the particles
    spread over 116 standard deviations of the Gaussian at the mode, in these coordinates over 11,
    and the run takes an eighth of the gradients. Some of the rows are enough, as any shear is
    exact.

    Parameters
    ----------
    model : NetworkModel
    opt : Optimum
    network : Network
        Of `opt`.
    positions : ndarray of int
        Of the free weights in φ.

    Returns
    -------
    Shear
        Of these weights, and of further parameters behind them, which it leaves alone.
    """
    n, n_out = model.x_t.shape[1], network.n_outputs
    few = min(n, ROWS_PER_WEIGHT * (network.sizes[-2] + 1))
    rows = np.sort(np.random.default_rng(0).permutation(n)[:few])
    f_t = model.evaluate(opt.phi, opt.layout).output
    information = model.likelihood.information(model.split(f_t), per_row(opt.noise))
    if model.weights is not None:
        information = information * model.weights[:, None]
    information_t = np.moveaxis(information, 2, 1).reshape(n_out, n)[:, rows] * (n / few)
    weights, biases = (np.arange(network.n_parameters)[part] for part in network.slices[-1])
    order = np.c_[weights.reshape(n_out, -1), biases]
    outputs = []
    for k, mine in enumerate(order):
        columns = np.flatnonzero(np.isin(mine, positions))
        if not len(columns):
            continue
        precision = np.exp(np.minimum(opt.log_alpha[mine[columns]], LARGEST))
        responses = f_t[k, rows].astype(float)
        outputs.append(Output(columns, mine[columns], precision, information_t[k], responses))
    data = (np.asarray(model.x_t[:, rows].T, float), tuple(outputs), positions)
    return Shear(data, output_weights(network))
