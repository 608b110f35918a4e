"""Paths to sparse networks: recovery after removals, fewer neurons, fewer inputs, prices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import Optimum, initial, log_evidence
from sbnn.evidence.laplace.options import DEFAULT, TIE
from sbnn.evidence.laplace.pruning import evolve, removed, value
from sbnn.evidence.laplace.thinning import drop_inputs, recover, thin, without_doubtful_inputs
from sbnn.likelihoods import Gaussian, StudentT, VaryingStudentT


def data(n: int = 150, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two bends in the first of three inputs; the others have no effect."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, n))
    return x, (np.tanh(2 * x[:1]) - np.tanh(x[:1] - 1)) + 0.1 * rng.normal(size=(1, n))


def dense_fit(kind=None, width: int = 12) -> tuple[NetworkModel, Optimum]:
    x, y = data()
    kind = kind or Gaussian()
    model = NetworkModel(x_t=x, y_t=y, sizes=(3, width, len(kind.outputs)), likelihood=kind)
    start = initial(model, np.random.default_rng(1))
    return model, evolve(model, start, 45, model.groups())


def outputs(model: NetworkModel, opt: Optimum) -> np.ndarray:
    return model.split(model.evaluate(opt.phi, opt.layout).output)


@pytest.mark.parametrize("kind", [Gaussian(), StudentT(), VaryingStudentT()], ids=repr)
def test_smaller_network_recovers_the_outputs_of_the_larger_one(kind):
    model, opt = dense_fit(kind)
    half = np.unique(np.concatenate(model.units()[::2]))
    smaller = removed(model, opt, log_evidence(model, opt)[1], np.intersect1d(half, opt.active))
    again = recover(model, opt, smaller, 40)
    assert np.array_equal(again.active, smaller.active)
    assert np.array_equal(again.noise, opt.noise)
    information = model.likelihood.information(outputs(model, opt), opt.noise[:, None])
    distance = lambda o: np.sqrt(
        np.mean(information * (outputs(model, o) - outputs(model, opt)) ** 2)
    )
    # in units of the noise; the removal itself moves the outputs by much more
    assert distance(again) < 0.5
    assert distance(again) < 0.5 * distance(opt.without(np.intersect1d(half, opt.active)))


def test_path_reaches_higher_evidence_with_fewer_weights():
    model, opt = dense_fit()
    plain, path = evolve(model, opt, 60), thin(model, opt, 8)
    assert len(path.active) < len(plain.active)
    assert path.log_evidence > plain.log_evidence - 0.1
    # Two neurons with one input each suffice: 2 · 3 weights and a bias.
    assert len(evolve(model, path, 60).active) <= 12


def test_inputs_without_effect_are_dropped_and_those_with_an_effect_are_kept():
    model, opt = dense_fit(width=3)
    noisy = model.inputs()[1:]
    assert all(np.isin(opt.active, member).any() for member in noisy)  # otherwise no test
    fewer = drop_inputs(model, opt, TIE)
    assert np.isin(fewer.active, model.inputs()[0]).any()
    assert not any(np.isin(fewer.active, member).any() for member in noisy)
    # Each removal costs at most the price.
    assert fewer.log_evidence > opt.log_evidence - len(noisy) * TIE
    assert drop_inputs(model, opt, -np.inf) is opt  # nothing is free


def test_inputs_that_most_networks_do_without_are_removed_unless_they_matter():
    model, opt = dense_fit(width=3)
    used = lambda pair: [bool(np.isin(i, pair[1].active).any()) for i in model.inputs()]
    assert used((model, opt)) == [True, True, True]
    without = opt.without(np.intersect1d(np.concatenate(model.inputs()[1:]), opt.active))
    pairs, most = [(model, opt), (model, without)], np.array([0.3, 0.7])
    found = without_doubtful_inputs(pairs, most, DEFAULT)
    assert [used(pair) for pair in found] == [[True, False, False]] * 2
    # An input that most of the networks use is not tried.
    assert without_doubtful_inputs(pairs, most[::-1], DEFAULT) is pairs
    # Only the first network uses the first input, but the data do not let it go.
    blind = opt.without(np.intersect1d(np.concatenate(model.inputs()), opt.active))
    found = without_doubtful_inputs([(model, without), (model, blind)], most, DEFAULT)
    assert found[0][1] is without


def test_weights_are_removed_for_their_price():
    model, opt = dense_fit()
    opt = evolve(model, thin(model, opt, 8), 120)
    priced = replace(model, price=DEFAULT.price)
    new = evolve(priced, opt, 120)
    assert len(new.active) <= len(opt.active)
    assert value(priced, new) >= value(priced, opt) - 0.1
    # At an absurd price, nothing is worth keeping.
    assert len(evolve(replace(model, price=1e6), opt, 120).active) == 0


def test_price_is_the_excess_of_the_maximum_over_the_mean():
    """For a well-determined weight φ = 10 ± 0.1 and log α ~ N(λ*, 5²) around the best λ*."""
    log_p = lambda v: stats.norm.logpdf(10.0, scale=np.sqrt(0.01 + np.exp(-v)))
    best = optimize.minimize_scalar(lambda v: -log_p(v), bounds=(-15, 5), method="bounded").x
    weighted = lambda v: np.exp(log_p(v) - log_p(best)) * stats.norm.pdf(v, best, 5.0)
    mean = integrate.quad(weighted, best - 40, best + 40, points=[best], limit=200)[0]
    # Laplace's approximation of the integral gives log(5 √½); it is not exactly Gaussian.
    assert np.log(5 * np.sqrt(0.5)) == pytest.approx(DEFAULT.price, abs=0.02)
    assert -np.log(mean) == pytest.approx(DEFAULT.price, abs=0.5)
