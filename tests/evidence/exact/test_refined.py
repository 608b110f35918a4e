"""Exact draws at an optimum and α refined on the exact evidence, against closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import assert_within_errors, keys, rng

from sbnn.evidence.exact.refined import FollowLocal, LocalProblem, exact_optimum
from sbnn.evidence.exact.warm import around_optimum
from sbnn.evidence.laplace.models.layout import Layout
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import Optimum, relax
from sbnn.problems.network import Network

NOISE = np.log(np.array([[0.3]]))


def linear(log_alpha):
    """y = Xφ + noise with two weights that matter: model, and its optimum at a given α."""
    r = rng(120)
    x = r.normal(size=(40, 3))
    y = x @ [1.5, -0.7, 0.4] + 0.5 + 0.3 * r.normal(size=40)
    model = NetworkModel(x_t=x.T, y_t=y[None], sizes=(3, 1))
    return model, at(model, Layout((3, 1)), np.zeros(4), np.asarray(log_alpha, float))


def at(model, layout, phi, log_alpha):
    """The mode near φ."""
    opt = Optimum(phi, log_alpha, NOISE, layout)
    opt.precision = relax(model, opt, 100)[1].as_primal()
    return opt


def test_draws_of_a_linear_model_have_its_gaussian_posterior():
    model, opt = linear(np.zeros(4))
    found = exact_optimum(model, opt, keys(1)[0], refine=False)
    std = np.sqrt(np.diag(opt.precision.covariance(np.arange(4)))) * opt.precision.scale
    n = len(found.draws)
    assert_within_errors(found.draws.mean(axis=0), opt.phi, std / np.sqrt(n))
    assert_within_errors(found.draws.std(axis=0), std, std / np.sqrt(n))
    assert abs(found.run.log_evidence - opt.log_evidence) < 1e-3
    assert not found.refined


def test_refined_precisions_maximise_the_closed_form_evidence():
    model, off = linear(np.full(4, 4.0))
    found = exact_optimum(model, off, keys(1)[0])
    assert found.refined
    assert found.run.log_evidence > found.first.log_evidence + 1.0
    # MacKay's updates α = γ/φ² lead to the maximum of the evidence, which is exact here.
    best = off
    for _ in range(200):
        gamma = best.precision.relevance()
        best = at(model, best.layout, best.phi, np.log(gamma / best.phi**2))
    assert best.log_evidence - found.run.log_evidence < 0.3
    assert found.unrefined().run is found.first


def test_an_optimum_at_its_best_precisions_is_left_alone():
    model, opt = linear(np.zeros(4))
    for _ in range(200):
        gamma = opt.precision.relevance()
        opt = at(model, opt.layout, opt.phi, np.log(gamma / opt.phi**2))
    found = exact_optimum(model, opt, keys(1)[0])
    assert abs(found.run.log_evidence - opt.log_evidence) < 0.3


@pytest.fixture(scope="module")
def spare():
    """A 1-2-1 net on data of one neuron: the second one is not supported by the data."""
    r = rng(121)
    x = r.uniform(-2, 2, size=50)
    y = np.tanh(2 * x) + 0.3 * r.normal(size=50)
    model = NetworkModel(x_t=x[None], y_t=y[None], sizes=(1, 2, 1))
    phi = np.array([2.0, 0.3, 0.0, 0.2, 1.0, 0.1, 0.0])
    return model, at(model, Layout((1, 2, 1)), phi, np.zeros(7))


@pytest.mark.slow
def test_a_neuron_without_support_is_removed_by_the_exact_evidence(spare):
    model, opt = spare
    found = exact_optimum(model, opt, keys(1)[0])
    assert len(found.optimum.active) <= 4
    assert found.run.log_evidence > found.first.log_evidence - 0.75
    assert found.draws.shape[1] == len(found.optimum.active)


def test_units_are_the_free_weights_of_every_neuron(spare):
    model, opt = spare
    local = around_optimum(model, opt)
    units = LocalProblem(local, Network((1, 2, 1))).prunable_units()
    assert [gate.tolist() for gate, _ in units] == [[4], [5]]
    assert [sorted(members.tolist()) for _, members in units] == [[0, 2, 4], [1, 3, 5]]
    part = replace(local, positions=np.array([0, 1, 3, 4, 5, 6]))
    units = LocalProblem(part, Network((1, 2, 1))).prunable_units()
    assert [gate.tolist() for gate, _ in units] == [[3], [4]]
    assert [sorted(members.tolist()) for _, members in units] == [[0, 3], [1, 2, 4]]


def test_particles_that_follow_stay_inside_the_walls(spare):
    model, opt = spare
    local = around_optimum(model, opt)
    run = local.sample(keys(1)[0], 64)
    follower, problem = FollowLocal(local), LocalProblem(local, Network((1, 2, 1)))
    now, info, _ = follower.follow(
        keys(1)[0], np.random.default_rng(0), problem.prior_at(np.full(7, 0.5)), run.particles,
        np.full(64, 1 / 64), follower.start(7),
    )  # fmt: skip
    assert (now.phi @ local.walls.T >= 0).all()
    assert info.acceptance > 0.3
