"""Random starts of networks."""

import numpy as np
import pytest

from sbnn.evidence.laplace.models.network import EDGE, RIDGE, NetworkModel
from sbnn.likelihoods import Gaussian, VaryingStudentT

WIDTH = 30


def bent_start(likelihood, weights=None):
    """A model with one input, its start from the regression, hidden layer and output weights."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.7, 1.7, size=(1, 80))
    y = np.sin(9 * x) + 0.1 * rng.normal(size=(1, 80))
    y[0, 3] = 50.0
    outputs = len(likelihood.outputs)
    model = NetworkModel(
        x_t=x, y_t=y, sizes=(1, WIDTH, outputs), likelihood=likelihood, weights=weights
    )
    for seed in range(20):  # every second start on average
        phi, log_alpha, _ = model.start(np.random.default_rng(seed))
        first, bias = phi[:WIDTH, None], phi[WIDTH : 2 * WIDTH]
        bends = -bias / first[:, 0]
        if np.isin(np.round(bends, 9), np.round(x, 9)).all():
            hidden = np.tanh(first @ x + bias[:, None])
            last = phi[2 * WIDTH : -outputs].reshape(outputs, WIDTH)
            assert log_alpha.shape == phi.shape
            assert np.isfinite(log_alpha).all()
            return model, hidden, last, phi[-outputs:]
    raise AssertionError("no start had its bends at rows of the data")


@pytest.mark.parametrize("likelihood", [Gaussian(), VaryingStudentT()])
@pytest.mark.parametrize("weighted", [False, True])
def test_bent_starts_minimise_the_penalised_sum_of_squares(likelihood, weighted):
    """Its slopes in the output weights vanish: Σ w h (y − f) = RIDGE · w_out, Σ w (y − f) = 0."""
    weights = np.random.default_rng(2).integers(1, 4, 80).astype(float) if weighted else None
    model, hidden, last, bias = bent_start(likelihood, weights)
    low, middle, high = np.quantile(model.y_t[0], (0.25, 0.5, 0.75))
    limit = EDGE * (high - low) / 1.349
    y = np.clip(model.y_t[0], middle - limit, middle + limit)
    assert y[3] < 5.0  # the outlier
    residual = y - last[0] @ hidden - bias[0]
    counts = np.ones(80) if weights is None else weights
    np.testing.assert_allclose(hidden @ (counts * residual), RIDGE * last[0], atol=1e-6)
    assert (counts * residual).sum() == pytest.approx(0.0, abs=1e-4)


def test_bent_starts_leave_the_noise_level_nearly_constant():
    _, hidden, last, _ = bent_start(VaryingStudentT())
    assert np.std(last[1] @ hidden) < 0.3
