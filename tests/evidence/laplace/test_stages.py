"""Stages of a fit."""

import numpy as np
from threadpoolctl import threadpool_limits

from sbnn.evidence.laplace.models.layout import forward
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import initial
from sbnn.evidence.laplace.options import DEFAULT
from sbnn.evidence.laplace.stages import BLOCK, dense, settle
from sbnn.evidence.starts import Start


def _started(x, y) -> Start:
    """A network after 30 dense iterations."""
    model = NetworkModel(x_t=x.T.copy(), y_t=y[None], sizes=(x.shape[1], 12, 6, 1))
    rng = np.random.default_rng(0)
    start = Start(0, model, initial(model, rng), rng)
    return start.at(dense(start, 30, DEFAULT))


def _error(opt, x, truth) -> float:
    return float(np.std(forward(opt.phi, x.T, opt.layout, "tanh").ravel() - truth(x)))


@threadpool_limits.wrap(limits=1)
def test_settle_learns_on_where_there_is_little_noise():
    rng = np.random.default_rng(1)
    truth = lambda v: np.sin(3 * v[:, 0] * v[:, 1]) + np.abs(v[:, 2])
    x, new = rng.uniform(-1, 1, (300, 3)), rng.uniform(-1, 1, (500, 3))
    start = _started(x, truth(x) + 0.01 * rng.normal(size=300))
    after = settle(start, DEFAULT)
    assert _error(after, new, truth) < 0.8 * _error(start.optimum, new, truth)


@threadpool_limits.wrap(limits=1)
def test_settle_stops_where_noise_is_left_to_learn():
    truth = lambda v: np.sin(2 * v[:, 0]) * v[:, 1]
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, new = rng.uniform(-2, 2, (150, 3)), rng.uniform(-2, 2, (500, 3))
        start = _started(x, truth(x) + 0.3 * rng.normal(size=150))
        on = dense(start, BLOCK * DEFAULT.settle, DEFAULT)
        ratios.append(_error(on, new, truth) / _error(settle(start, DEFAULT), new, truth))
    assert np.mean(ratios) > 1.03
