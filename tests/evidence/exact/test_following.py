"""Particles that follow α along trajectories, against the closed form and from other images."""

from __future__ import annotations

import numpy as np
from closed_forms import linear
from helpers import assert_within_errors, keys, rng

import sbnn
from sbnn.evidence.closed_form import evaluate, posterior
from sbnn.evidence.exact.ascent import ascend
from sbnn.evidence.exact.following import FollowModes
from sbnn.evidence.newton import maximise
from sbnn.priors import Hyperprior
from sbnn.sampling.state import Particles
from sbnn.sampling.tmcmc import TmcmcResult

HYPERPRIOR = Hyperprior()


def exact_draws(problem, mixture, log_alpha, n):
    """Draws of the linear model's posterior and its log evidence, as a run would return them."""
    at = posterior(log_alpha, mixture, problem.ard)
    phi = rng(98).multivariate_normal(at.means[0, 0], at.covariances[0], size=n)
    value = float(evaluate(log_alpha, mixture, problem.ard, HYPERPRIOR).log_evidence)
    particles = Particles(phi, problem.log_likelihood(phi), np.arange(n))
    return TmcmcResult(particles, value, 0.0, (), 0, 0, True)


def test_particles_follow_alpha_to_the_optimum_of_sparse_bayesian_learning():
    problem, mixture = linear()
    start, n = np.zeros(3), 480
    found = ascend(
        problem, start, exact_draws(problem, mixture, start, n), HYPERPRIOR, keys(1)[0],
        follower=FollowModes(problem),
    )  # fmt: skip
    optimum = maximise(np.zeros(3), mixture, problem.ard, HYPERPRIOR)
    reached = evaluate(found.log_alpha, mixture, problem.ard, HYPERPRIOR)
    assert found.converged
    assert 0 <= optimum.objective - reached.objective < 0.1
    error = np.sqrt(len(found.steps) / n)
    assert_within_errors(found.log_evidence, reached.log_evidence, error, "tracked evidence")


def test_particles_of_several_images_are_folded_to_one():
    x, y = sbnn.datasets.boxcar()
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(2,), noise_std=0.5)
    follower, prior = FollowModes(problem), problem.prior_at(np.zeros(7))
    mode = np.array([2.0, 2.0, -2.0, 2.0, 1.0, -1.0, 0.3])
    phi = mode + 0.1 * rng(99).normal(size=(200, 7))
    flipped = phi.copy()
    flipped[:60, [0, 2, 4]] *= -1.0  # the first neuron of every third particle
    folded = follower._fold(prior, flipped)
    np.testing.assert_allclose(problem.log_likelihood(folded), problem.log_likelihood(phi))
    assert (folded[:, 0] > 0).all()
