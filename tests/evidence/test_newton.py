"""Multistart Newton ascent: distinct optima, history and reason for stopping."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import rng

from sbnn.evidence import newton as optimise
from sbnn.evidence.closed_form import evaluate, log_evidence
from sbnn.evidence.mixture import GaussianMixture, expectation_maximisation
from sbnn.priors import Hyperprior
from sbnn.problems.network import Network
from sbnn.problems.symmetry import Symmetry

HYPERPRIOR = Hyperprior()


def two_explanations() -> GaussianMixture:
    """Either φ₁ or φ₂ explains the data: two optima of α, the first one better."""
    means = np.array([[[3.0, 0.0]], [[0.0, 2.0]]])
    covariances = np.array([np.diag([0.01, 0.04]), np.diag([0.04, 0.01])])
    return GaussianMixture(np.log([[0.8], [0.2]]), means, covariances)


BOTH = np.ones(2, bool)


def test_every_optimum_of_a_two_mode_evidence_is_found_and_ranked():
    starts = np.array([[0.0, 0.0], [-2.0, 6.0], [6.0, -2.0], [-3.0, 7.0]])
    found = optimise.multistart(starts, two_explanations(), BOTH, HYPERPRIOR)
    assert len(found) == 2
    assert found[0].objective > found[1].objective
    axis = np.linspace(-4, 8, 37)
    values = np.array(
        [[evaluate(np.array([a, b]), two_explanations(), BOTH, HYPERPRIOR).objective for b in axis]
         for a in axis]
    )  # fmt: skip
    assert values.max() <= found[0].objective + 1e-9
    best = np.unravel_index(values.argmax(), values.shape)
    np.testing.assert_allclose(found[0].log_alpha, axis[list(best)], atol=0.34)


def test_optimum_records_its_history_and_reason():
    start = np.array([-2.0, 6.0])
    optimum = optimise.maximise(start, two_explanations(), BOTH, HYPERPRIOR)
    assert optimum.converged
    assert optimum.reason == "gradient below 1e-6"
    assert optimum.gradient_norm <= 1e-6
    assert len(optimum.history) == optimum.n_iterations + 1
    np.testing.assert_array_equal(optimum.history[0].log_alpha, start)
    np.testing.assert_array_equal(optimum.history[-1].log_alpha, optimum.log_alpha)
    objectives = [step.objective for step in optimum.history]
    assert (np.diff(objectives) >= -1e-12).all()
    assert all(((s.relevance >= 0) & (s.relevance <= 1)).all() for s in optimum.history)
    assert np.isclose(
        optimum.log_evidence, log_evidence(optimum.log_alpha, two_explanations(), BOTH)
    )
    curvature = evaluate(optimum.log_alpha, two_explanations(), BOTH, HYPERPRIOR).hessian
    assert np.linalg.eigvalsh(curvature).max() < 0


def test_stopping_early_is_reported():
    optimum = optimise.maximise(
        np.array([-8.0, 9.0]), two_explanations(), BOTH, HYPERPRIOR, max_iterations=2
    )
    assert not optimum.converged
    assert "stopped after 2 iterations; raise `max_iterations`" in optimum.reason


def test_maximise_converges_from_distant_starts():
    for start in (np.full(2, -20.0), np.full(2, 25.0)):
        assert optimise.maximise(start, two_explanations(), BOTH, HYPERPRIOR).converged


@pytest.fixture(scope="module")
def symmetric():
    """Mixture of a 1-2-1 net over all permutations: every optimum appears twice."""
    network = Network((1, 2, 1))
    particles = np.array([1.0, -2.0, 0.5, 1.0, 3.0, 0.3, 0.5]) + 0.2 * rng(30).normal(size=(80, 7))
    group = Symmetry(network, flip=False)
    return group, particles, expectation_maximisation(particles, 1).expand(group)


def test_symmetric_images_count_as_one_optimum(symmetric):
    group, particles, mixture = symmetric
    ard = np.ones(7, bool)
    base = -np.log(particles.mean(axis=0) ** 2)
    starts = group.expand(base)
    assert len(optimise.multistart(starts, mixture, ard, HYPERPRIOR)) == 2
    assert len(optimise.multistart(starts, mixture, ard, HYPERPRIOR, group)) == 1


def test_log_alpha_is_compared_up_to_permutation_and_capped_at_six(symmetric):
    group, _, _ = symmetric
    ard = np.ones(7, bool)
    a = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0])
    image = group.expand(a)[1]
    assert not np.allclose(a, image)
    assert optimise.same_optimum(a, image, ard, group)
    assert not optimise.same_optimum(a, image, ard, None)
    assert optimise.same_optimum(np.array([7.0]), np.array([12.0]), np.ones(1, bool), None)
    assert not optimise.same_optimum(np.array([4.0]), np.array([12.0]), np.ones(1, bool), None)


def test_starts_are_zero_and_the_precisions_of_particles():
    particles = rng(31).normal(size=(6, 3))
    ard = np.array([True, False, True])
    starts = optimise.starting_points(rng(32), particles, ard, 9)
    assert starts.shape == (9, 2)
    np.testing.assert_array_equal(starts[0], 0.0)
    known = -np.log(particles[:, ard] ** 2 + 1e-3)
    assert all(any(np.allclose(s, k) for k in known) for s in starts[1:])
