"""Larger networks join where the first ones keep most of their weights, and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest

from sbnn import SparseBNNRegressor
from sbnn.evidence.laplace.fit import fit
from sbnn.evidence.laplace.growth import grow
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import initial
from sbnn.evidence.laplace.options import DEFAULT
from sbnn.evidence.starts import Start
from sbnn.likelihoods import Gaussian, StudentT, VaryingStudentT
from sbnn.regressor.architectures import LARGER, LARGER_FEW, larger

OPTIONS = replace(DEFAULT, n_starts=4, larger=(6, 6))
KINDS = {
    "constant": Gaussian(),
    "student_t": StudentT(),
    "varying_student_t": VaryingStudentT(),
}


def model_of(bends, n=150, width=3):
    rng = np.random.default_rng(4)
    x = np.linspace(-2, 2, n)
    y = np.sin(bends * x) + 0.1 * rng.standard_normal(n)
    return NetworkModel(x_t=x[None], y_t=y[None] / y.std(), sizes=(1, width, 1))


def start_of(model, removed=0):
    rng = np.random.default_rng(1)
    opt = initial(model, rng)
    return Start(0, model, opt.without(opt.active[:removed]), rng)


def depths(mixture):
    return {len(opt.sizes) - 2 for opt in mixture.optima}


def test_larger_networks_join_where_a_small_one_keeps_all_its_weights():
    """Three neurons cannot follow four bends."""
    model, rng = model_of(bends=3.0), np.random.default_rng(0)
    small = fit([[model]], rng, replace(OPTIONS, larger=()))
    grown = fit([[model]], np.random.default_rng(0), OPTIONS)
    assert depths(small) == {1}
    assert 2 in depths(grown)
    assert max(o.log_evidence for o in grown.optima) > small.optima[0].log_evidence + 50


def test_no_larger_network_where_neurons_are_left_over():
    model = model_of(bends=0.5, width=6)
    grown = fit([[model]], np.random.default_rng(0), OPTIONS)
    same = fit([[model]], np.random.default_rng(0), replace(OPTIONS, larger=()))
    assert depths(grown) == {1}
    np.testing.assert_array_equal(grown.optima[0].phi, same.optima[0].phi)


@pytest.mark.parametrize(("removed", "grows"), [(0, True), (2, True), (4, False), (7, False)])
def test_share_of_weights_decides(removed, grows):
    """Of ten weights, more than seven must be kept."""
    quick = replace(OPTIONS, n_starts=1, group_iterations=3, settle=0, path_iterations=1)
    assert bool(grow([start_of(model_of(3.0), removed)], quick)) is grows


def test_larger_networks_have_the_noise_of_the_first_ones():
    model = model_of(3.0).with_likelihood(StudentT())
    quick = replace(OPTIONS, n_starts=2, group_iterations=6, settle=0, path_iterations=2)
    (found, *_) = grow([start_of(model)], quick)
    assert isinstance(found.model.likelihood, StudentT)
    assert found.model.sizes == (1, 6, 6, 1)


def test_known_noise_is_kept():
    noise = np.full((1, 150, 1), np.log(0.1))
    model = replace(model_of(3.0), noise=noise)
    quick = replace(OPTIONS, n_starts=1, group_iterations=6, settle=0, path_iterations=2)
    (found, *_) = grow([start_of(model)], quick)
    assert found.model.noise is noise


def test_growth_with_a_choice_of_noise():
    grown = fit([[model_of(3.0)]], np.random.default_rng(0), OPTIONS, KINDS)
    assert 2 in depths(grown)


@pytest.mark.parametrize(
    "change", [{"larger": ()}, {"sparse": False}, {"max_rows": 100}], ids=["none", "dense", "rows"]
)
def test_no_growth(change):
    assert grow([start_of(model_of(3.0))], replace(OPTIONS, **change)) == []


def test_only_defaults_with_enough_rows_grow():
    assert larger("default", 1000) == LARGER
    assert larger("default", 500) == LARGER_FEW
    assert not larger("default", 100)
    assert not larger("auto", 1000)
    assert not larger((5,), 1000)


def test_regressor_asks_for_larger_networks(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "sbnn.evidence.laplace.fit.grow", lambda starts, options: asked.append(options.larger) or []
    )
    x = np.random.default_rng(0).uniform(-2, 2, (520, 1))
    for n in (40, 520):
        SparseBNNRegressor(n_starts=1, random_state=0, noise="constant").fit(x[:n], x[:n, 0])
    assert asked == [(), LARGER]
