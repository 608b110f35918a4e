"""Noise in the Laplace engine: updates maximise the evidence, log σ is not biased, kinds change."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import rng

from sbnn.evidence.laplace import optimum as lo
from sbnn.evidence.laplace.fit import fit
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.noise_choice import adapted
from sbnn.evidence.laplace.options import Options
from sbnn.likelihoods import NAMES, Gaussian, StudentT, VaryingGaussian, VaryingStudentT
from sbnn.likelihoods.base import Likelihood
from sbnn.likelihoods.student_t import NU_PRIOR


def linear(likelihood, n=25, d=6, heavy=False):
    """A linear model with few observations per parameter, and its start with α = 1."""
    r = rng(420)
    x_t = r.normal(size=(d, n))
    noise = r.standard_t(3, size=n) if heavy else r.normal(size=n)
    y_t = (x_t.sum(axis=0) + 0.5 * noise)[None]
    model = NetworkModel(
        x_t=x_t, y_t=y_t, sizes=(d, len(likelihood.outputs)), likelihood=likelihood
    )
    opt = lo.initial(model, r)
    opt.log_alpha[:] = 0.0
    return model, opt


def settle(model, opt, rounds=200):
    for _ in range(rounds):
        term, precision = lo.relax(model, opt, 50, tol=1e-12)
        lo.update_noise(model, opt, term, precision.relevance(), precision)
    return opt


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("likelihood", [Gaussian(), StudentT()])
def test_updates_of_the_noise_maximise_the_evidence(likelihood, heavy):
    """The slope of the evidence (and the prior of ν) vanishes; away from there it does not."""
    model, opt = linear(likelihood, heavy=heavy)
    settle(model, opt)

    def slope(noise):
        out = []
        for q in range(noise.shape[1]):
            step = np.zeros_like(noise)
            step[0, q] = 1e-5
            value = []
            for sign in (1, -1):
                here = opt.copy()
                here.noise = noise + sign * step
                total = lo.log_evidence(model, here)[0]
                if q == 1:
                    total -= 0.5 * ((here.noise[0, 1] - NU_PRIOR[0]) / NU_PRIOR[1]) ** 2
                value.append(total)
            out.append((value[0] - value[1]) / 2e-5)
        return np.array(out)

    np.testing.assert_allclose(slope(opt.noise), 0.0, atol=2e-5)
    assert np.abs(slope(opt.noise + 0.3)).max() > 0.1


@pytest.mark.parametrize("likelihood", [StudentT(), VaryingStudentT()])
def test_closed_form_update_has_the_fixed_point_of_the_default(likelihood):
    """The Newton step by automatic differentiation stays where Fisher scoring has arrived.

    The default uses the prior of log σ as well, which moves the scale a little.
    """
    r = rng(421)
    f = r.normal(0, 0.3, size=(400, len(likelihood.outputs)))
    theta = np.log(np.full(len(likelihood.parameters), 2.0))
    y = likelihood.sample(r, f, theta)
    variance = np.full(f.shape, 0.05)
    for _ in range(300):
        theta = likelihood.update(y, f, theta, variance)
    again = Likelihood.update(likelihood, y, f, theta, variance)
    np.testing.assert_allclose(again, theta, atol=0.01)
    assert (
        np.abs(Likelihood.update(likelihood, y, f, theta + 0.3, variance) - theta - 0.3).max() > 0.1
    )


@pytest.mark.parametrize("likelihood", [VaryingGaussian(), VaryingStudentT()])
def test_slope_of_the_information_is_the_derivative(likelihood):
    r = rng(422)
    f, factor = r.normal(size=(2, 9, 2)), r.uniform(size=(2, 9, 2))
    theta = r.normal(size=(2, 1, len(likelihood.parameters)))
    expected = Likelihood.information_slope(likelihood, f, theta, factor)
    found = likelihood.information_slope(f, theta, factor)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("weights", [None, np.full(25, 2.0)])
def test_step_too_far_is_rejected_without_a_warning(monkeypatch, weights):
    model, opt = linear(VaryingStudentT())
    model = replace(model, weights=weights)
    far = SimpleNamespace(solve=lambda gradient: np.full(len(gradient), 1e4))
    monkeypatch.setattr(lo, "factorise", lambda *_: (far,))
    before, term = opt.phi.copy(), lo.linearise(model, opt)
    assert lo.lm_step(model, opt, term) == (term, 0.0)
    np.testing.assert_array_equal(opt.phi, before)


def test_constant_log_sigma_output_is_mackays_noise():
    """A log σ output with a bias alone reaches the σ of constant noise, despite 7 parameters."""
    constant = settle(*linear(Gaussian()))
    model, opt = linear(VaryingGaussian())
    opt.log_alpha[-1] = -18.0  # a flat prior of the bias
    opt = opt.without(np.arange(6, 12))
    varying = settle(model, opt)
    np.testing.assert_allclose(varying.phi[-1], constant.noise[0, 0], atol=1e-5)
    opt.variance = None
    biased = opt.copy()
    lo.relax(model, biased, 200, tol=1e-12)  # without the correction, degrees of freedom are lost
    assert biased.phi[-1] < constant.noise[0, 0] - 0.05


@pytest.mark.parametrize("new", NAMES.values())
@pytest.mark.parametrize("old", [StudentT, VaryingStudentT, Gaussian])
def test_a_change_of_the_noise_keeps_the_mean_and_the_level(old, new):
    r = rng(423)
    x_t = r.normal(size=(2, 30))
    y_t = np.stack([np.sin(x_t[0]), x_t[1]]) + 0.1 * r.normal(size=(2, 30))
    before = NetworkModel(x_t=x_t, y_t=y_t, sizes=(2, 4, 2 * len(old().outputs)), likelihood=old())
    opt = lo.initial(before, r).without(np.array([0, 5]))
    after = before.with_likelihood(new())
    moved = adapted(opt, before, after, r)
    f = before.split(before.evaluate(opt.phi, opt.layout).output)
    g = after.split(after.evaluate(moved.phi, moved.layout).output)
    np.testing.assert_allclose(g[..., 0], f[..., 0], rtol=1e-12)
    assert {0, 5}.isdisjoint(moved.active)
    z = (y_t - g[..., 0]) * np.sqrt(after.likelihood.information(g, moved.noise[:, None])[..., 0])
    if "log_sigma" in set(new().outputs) - set(old().outputs):
        # A regression of the residuals; the information of Student-t noise is 11/13 of σ⁻².
        np.testing.assert_allclose((z**2).mean(axis=1), 0.92, atol=0.1)
    elif old is StudentT and new is Gaussian:
        np.testing.assert_allclose(moved.noise[:, :1], opt.noise[:, :1])


def test_the_evidence_tells_whether_the_noise_varies():
    r = rng(424)
    x_t = r.uniform(-1, 1, size=(1, 150))
    scale = {"constant": 0.1, "varying": 0.02 + 0.15 * (x_t > 0)}
    options = Options(n_starts=2)
    for kind, sigma in scale.items():
        y_t = np.sin(3 * x_t) + sigma * r.normal(size=x_t.shape)
        model = NetworkModel(x_t=x_t, y_t=y_t, sizes=(1, 5, 1))
        kinds = {name: likelihood() for name, likelihood in NAMES.items()}
        found = fit([[model]], np.random.default_rng(0), options, kinds)
        assert ("log_sigma" in found.likelihood.outputs) == (kind == "varying")
        assert [trial.noise for trial in found.noise_trials] == list(NAMES)
        if kind == "constant":  # the fit is the same as without a choice
            alone = fit([[model]], np.random.default_rng(0), options)
            assert alone.optima[0].log_evidence == found.optima[0].log_evidence
            np.testing.assert_array_equal(alone.optima[0].phi, found.optima[0].phi)
