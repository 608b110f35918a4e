"""Layers learned one at a time: exact where a layer is linear, and the depth the data ask for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import rng

from sbnn.evidence.laplace import layer_wise
from sbnn.evidence.laplace.fit import fit
from sbnn.evidence.laplace.layer_wise import (
    activations,
    added_layer,
    folded,
    grow,
    layer_problem,
    sweep,
    with_layer,
)
from sbnn.evidence.laplace.models.layout import forward, jacobian
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import initial, linearise, log_evidence, prior_term
from sbnn.evidence.laplace.options import Options
from sbnn.evidence.linear.factor import Factor
from sbnn.evidence.linear.learning import fit_at

OPTIONS = Options(n_starts=4)


def model(sizes=(2, 5, 4, 1), n=60, activation="tanh"):
    r = rng(90)
    x = r.normal(size=(sizes[0], n))
    y = np.tanh(x[:1] - x[1:2]) + 0.1 * r.normal(size=(1, n))
    return NetworkModel(x_t=x, y_t=y, sizes=sizes, activation=activation)


def pruned_start(whole):
    opt = initial(whole, rng(91))
    dead = rng(92).choice(len(opt.phi), len(opt.phi) // 4, replace=False)
    return opt.without(np.sort(dead))


@pytest.mark.parametrize("k", [0, 1, 2])
def test_layer_problem_has_the_outputs_and_the_jacobian_of_the_whole_network(k):
    whole = model()
    opt = pruned_start(whole)
    part, mine = layer_problem(whole, opt, k)
    outputs = part.evaluate(mine.phi, mine.layout)
    expected, jac = jacobian(opt.phi, whole.x_t, opt.layout, "tanh")
    np.testing.assert_allclose(outputs.output, expected, rtol=1e-12, atol=1e-12)
    start = len(opt.phi) - len(mine.phi)
    rows = np.isin(opt.active, mine.active + start)
    assert rows.sum() == len(mine.active)
    found = part.jacobian(outputs, mine.phi, mine.layout)
    np.testing.assert_allclose(found, jac[rows], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("k", [0, 1, 2])
def test_removing_a_weight_from_a_layer_removes_it_from_the_network(k):
    whole = model()
    opt = pruned_start(whole)
    part, mine = layer_problem(whole, opt, k)
    gone = mine.active[[0, -1]]
    merged = with_layer(opt, mine.without(gone), k)
    start = len(opt.phi) - len(mine.phi)
    expected = opt.without(gone + start)
    np.testing.assert_array_equal(merged.active, expected.active)
    np.testing.assert_array_equal(merged.phi, expected.phi)
    np.testing.assert_array_equal(merged.log_alpha, expected.log_alpha)
    shorter = mine.without(gone)
    np.testing.assert_allclose(
        part.evaluate(shorter.phi, shorter.layout).output,
        forward(expected.phi, whole.x_t, expected.layout, "tanh"),
        rtol=1e-12,
        atol=1e-12,
    )


def test_evidence_of_the_output_layer_is_exact():
    whole = model()
    opt = pruned_start(whole)
    part, mine = layer_problem(whole, opt, 2)
    kept = mine.active
    features = np.vstack([part.x_t, np.ones(part.x_t.shape[1])])[kept].T
    rows = np.column_stack([features, whole.y_t[0]])
    data = Factor.empty(len(kept), 1).added(rows, None, None).models()[0]
    exact = fit_at(data, mine.log_alpha[kept], -2.0 * float(mine.noise[0, 0]))
    mine.phi[kept] = exact.mean
    assert log_evidence(part, mine)[0] == pytest.approx(exact.log_evidence, rel=1e-10)


def test_evidence_of_all_layers_bounds_the_product_of_the_layers_from_above():
    """log|H| ≤ Σ log|H_k| over diagonal blocks (Fischer's inequality)."""
    whole = model()
    opt = pruned_start(whole)
    joint = log_evidence(whole, opt)[1].log_det
    layers = 0.0
    for k in range(3):
        part, mine = layer_problem(whole, opt, k)
        layers += log_evidence(part, mine)[1].log_det
    assert joint < layers
    energies = [prior_term(*layer_problem(whole, opt, k)).energy for k in range(3)]
    assert prior_term(whole, opt).energy == pytest.approx(sum(energies))


def test_sweeps_never_return_less_evidence_than_they_started_with():
    whole = model()
    opt = fit([[whole]], rng(93), replace(OPTIONS, iterations=3)).optima[0]
    before = log_evidence(whole, opt)[0]
    after = sweep(whole, opt, OPTIONS)
    assert after.log_evidence >= before
    assert after.log_evidence == pytest.approx(log_evidence(whole, after)[0], rel=1e-12)
    assert len(after.active) <= len(opt.active)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_added_layer_keeps_the_layers_below(activation):
    shallow = model((2, 6, 1), activation=activation)
    opt = fit([[shallow]], rng(94), OPTIONS).optima[0]
    deeper, grown = added_layer(shallow, opt, 5, rng(95), OPTIONS)
    assert deeper.sizes == grown.sizes == (2, 6, 5, 1)
    n_below = 6 * 2 + 6
    np.testing.assert_array_equal(grown.phi[:n_below], opt.phi[:n_below])
    alive = opt.layout.alive[1]
    np.testing.assert_allclose(
        activations(deeper, grown, 1)[grown.layout.alive[1]],
        activations(shallow, opt, 1)[grown.layout.alive[1]],
    )
    assert set(grown.layout.alive[1]) <= set(alive)
    assert np.isfinite(log_evidence(deeper, grown)[0])
    assert linearise(deeper, grown).gradient(grown.noise).shape == grown.active.shape


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("activation", ["identity", "tanh"])
def test_a_linear_layer_is_folded_without_a_change(k, activation):
    """And one that is not linear, as a control, with a change."""
    whole = model((2, 5, 4, 3, 1), activation=activation)
    opt = initial(whole, rng(91)).without(np.array([0, 3, 11, 20, 30, 41]))
    fewer, new = folded(whole, opt, k)
    sizes = [2, 5, 4, 3, 1]
    del sizes[k]
    assert fewer.sizes == new.sizes == new.layout.sizes == tuple(sizes)
    assert np.isfinite(new.log_alpha[new.active]).all()
    assert (new.phi[np.setdiff1d(np.arange(len(new.phi)), new.active)] == 0.0).all()
    before = forward(opt.phi, whole.x_t, opt.layout, activation)
    after = forward(new.phi, whole.x_t, new.layout, activation)
    assert before.std() > 0.1
    assert np.allclose(before, after, rtol=1e-10) == (activation == "identity")


def test_networks_from_random_starts_compete_with_grown_ones(monkeypatch):
    """The second layer of a sine of steps needs other neurons below than a single layer does."""
    r = rng(90)
    x = r.uniform(-2, 2, size=(2, 300))
    f = np.sin(3 * np.tanh(2 * x).sum(axis=0))
    y = (f + 0.1 * r.normal(size=300))[None]
    shallow = NetworkModel(x_t=x, y_t=y, sizes=(2, 10, 1))
    first = fit([[shallow]], rng(97), OPTIONS).optima[0]
    both = grow(shallow, first, (10, 10), rng(98), OPTIONS)
    assert len(both.optimum.sizes) == 4
    monkeypatch.setattr(layer_wise, "FROM_SCRATCH", 0)
    grown = grow(shallow, first, (10, 10), rng(98), OPTIONS)
    assert both.tried[1][1] > grown.tried[1][1] + 10


def bump(x):
    return 0.5 * (np.tanh(4 * (x + 1)) - np.tanh(4 * (x - 1)))


def truth(name, n=400):
    r = rng(96)
    x = r.uniform(-3, 3, size=(1 if name == "boxcar" else 2, n))
    f = 2 * bump(x[0]) if name == "boxcar" else np.tanh(4 * (bump(x).sum(axis=0) - 1.5))
    y = f + 0.1 * r.normal(size=n)
    return x / x.std(axis=1, keepdims=True), (y - y.mean())[None] / y.std()


@pytest.mark.parametrize(("name", "depth"), [("boxcar", 1), ("boxcar in two dimensions", 2)])
def test_network_grows_to_the_depth_of_the_truth(name, depth):
    x, y = truth(name)
    shallow = NetworkModel(x_t=x, y_t=y, sizes=(len(x), 12, 1))
    first = fit([[shallow]], rng(97), OPTIONS).optima[0]
    growth = grow(shallow, first, (12, 12), rng(98), OPTIONS)
    assert len(growth.optimum.sizes) - 2 == depth
    assert [len(widths) for widths, _ in growth.tried] == [1, 2]
    assert growth.optimum.log_evidence == pytest.approx(
        log_evidence(growth.model, growth.optimum)[0]
    )
