"""Evidence of pruned weights from draws without them, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import keys, rng

from sbnn.evidence.exact.refined import exact_optimum
from sbnn.evidence.exact.restoring import gains, restored
from sbnn.evidence.laplace.models.layout import Layout
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import Optimum, relax

NOISE = np.log(np.array([[0.3]]))


def linear(weight, active):
    """y = 1.5 x₁ + `weight` x₂ + ½ + noise, with x₁ and x₂ correlated, and an optimum."""
    r = rng(130)
    x = r.normal(size=(40, 2)) @ [[1.0, 0.2], [0.0, 1.0]]
    y = x @ [1.5, weight] + 0.5 + 0.3 * r.normal(size=40)
    model = NetworkModel(x_t=x.T, y_t=y[None], sizes=(2, 1))
    return model, at(model, active, np.zeros(3))


def at(model, active, log_alpha):
    layout = Layout((2, 1), np.asarray(active))
    full = np.full(3, np.inf)
    full[layout.active] = log_alpha[layout.active]
    opt = Optimum(np.zeros(3), full, NOISE, layout)
    opt.precision = relax(model, opt, 50)[1].as_primal()
    return opt


def draws_of(opt, n):
    return opt.phi[opt.active] + opt.precision.draw(rng(131), n).T


def test_gain_of_a_weight_is_its_bayes_factor_in_a_linear_model():
    model, without = linear(0.2, [0, 2])
    log_alpha = np.array([0.0, 1.3, 0.0])
    with_it = at(model, [0, 1, 2], log_alpha)
    pruned, gain, best = gains(model, without, draws_of(without, 4000), log_alpha[1:2])
    assert pruned.tolist() == [1]
    assert best.tolist() == [1.3]
    assert abs(gain[0] - (with_it.log_evidence - without.log_evidence)) < 0.05


def test_a_weight_that_matters_is_restored_and_an_idle_one_is_not():
    model, without = linear(0.6, [0, 2])
    new = restored(model, without, draws_of(without, 64))
    assert new.active.tolist() == [0, 1, 2]
    assert np.isfinite(new.log_alpha).all()
    model, without = linear(0.0, [0, 2])
    assert restored(model, without, draws_of(without, 64)) is None


@pytest.mark.slow
def test_the_exact_evidence_undoes_a_wrong_pruning():
    model, without = linear(0.6, [0, 2])
    found = exact_optimum(model, without, keys(1)[0])
    assert found.optimum.active.tolist() == [0, 1, 2]
    assert found.run.log_evidence > found.first.log_evidence + 3.0
    assert found.unrefined().optimum.active.tolist() == [0, 2]
