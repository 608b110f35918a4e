"""Student-t noise by iterated re-weighting: a rising lower bound, robust to outliers."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import rng
from scipy import integrate, stats

from sbnn.evidence.linear.blocks import Block, LocalSource, Reader
from sbnn.evidence.linear.layer import learn_layer
from sbnn.evidence.linear.learning import learn
from sbnn.evidence.linear.student_t import fit_student_t
from sbnn.likelihoods import Gaussian, StudentT

READER = Reader(None, intercept=False, block_rows=None)


def source(features, y, counts=None):
    return LocalSource((Block(features, y[:, None], counts),))


def contaminated(n=400, d=4, salt=1):
    r = rng(salt)
    features = r.normal(size=(n, d))
    y = features @ np.array([1.0, -1.0, *np.zeros(d - 2)]) + 0.2 * r.normal(size=n)
    wild = r.choice(n, n // 20, replace=False)
    y[wild] += 10.0 * r.normal(size=len(wild))
    return features, y


def start(features, y):
    rows = source(features, y)
    model = rows.factors(READER)[0].models()[0]
    return rows, [learn(model, np.zeros(features.shape[1], int))]


def test_bound_rises_in_every_iteration():
    features, y = contaminated()
    rows, fits = start(features, y)
    fit = fit_student_t(rows, READER, np.zeros(4, int), fits, None)
    assert fit.converged
    assert (np.diff(fit.bounds[1:]) > -1e-6).all()
    assert len(fit.bounds) > 3


def test_bound_lies_below_the_exact_evidence_and_close_to_it():
    r = rng(2)
    x = r.normal(size=(25, 1))
    y = 1.5 * x[:, 0] + 0.3 * r.standard_t(3.0, size=25)
    layer = learn_layer(source(x, y), READER, StudentT())
    sigma, nu = np.exp(layer.theta[0, 0]), 2.0 + np.exp(layer.theta[0, 1])
    prior = stats.norm(0.0, np.exp(-0.5 * layer.fits[0].log_alpha[0]))
    value = lambda w: stats.t.logpdf(y - w * x[:, 0], nu, scale=sigma).sum() + prior.logpdf(w)
    centre, top = layer.fits[0].mean[0], value(layer.fits[0].mean[0])
    area = integrate.quad(
        lambda w: np.exp(value(w) - top), centre - 2, centre + 2, points=[centre], limit=200
    )[0]
    exact = top + np.log(area)
    assert layer.log_evidence < exact
    assert layer.log_evidence == pytest.approx(exact, abs=0.3)


def test_outliers_spoil_gaussian_weights_but_not_those_of_student_t():
    features, y = contaminated()
    truth = np.array([1.0, -1.0, 0.0, 0.0])
    errors = {}
    for noise in (Gaussian(), StudentT()):
        layer = learn_layer(source(features, y), READER, noise)
        errors[noise] = np.abs(layer.fits[0].mean - truth).max()
    assert errors[StudentT()] < 0.05 < errors[Gaussian()]


def test_student_t_gains_nothing_on_gaussian_noise():
    r = rng(3)
    features = r.normal(size=(2000, 3))
    y = features[:, 0] + 0.2 * r.normal(size=2000)
    normal, heavy = (
        learn_layer(source(features, y), READER, noise) for noise in (Gaussian(), StudentT())
    )
    assert heavy.log_evidence < normal.log_evidence + 1.0
    assert heavy.log_evidence > normal.log_evidence - 5.0
    np.testing.assert_allclose(heavy.fits[0].mean, normal.fits[0].mean, atol=0.01)


def test_rows_that_count_twice_are_rows_that_come_twice():
    features, y = contaminated(150)
    counts = rng(4).integers(1, 3, size=150)
    weighted = learn_layer(
        source(features, y, counts.astype(float)), READER, StudentT(), counts=counts.astype(float)
    )
    repeated = learn_layer(
        source(np.repeat(features, counts, axis=0), np.repeat(y, counts)), READER, StudentT()
    )
    assert weighted.log_evidence == pytest.approx(repeated.log_evidence, abs=1e-6)
    np.testing.assert_allclose(weighted.theta, repeated.theta, atol=1e-6)
