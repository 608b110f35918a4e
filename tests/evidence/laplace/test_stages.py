"""Stages of a fit."""

from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from sbnn.evidence.laplace.models.layout import forward
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import initial
from sbnn.evidence.laplace.options import DEFAULT, FOR_FEW_ROWS
from sbnn.evidence.laplace.stages import (
    BLOCK,
    PER_WEIGHT,
    dense,
    distinct,
    not_hopeless,
    settle,
    without_hidden_layers,
)
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


def _at(evidence: float, model: NetworkModel, moved: float = 0.0) -> Start:
    rng = np.random.default_rng(0)
    opt = initial(model, rng)
    opt.log_evidence = evidence
    opt.phi[-1] += moved  # the output bias
    return Start(0, model, opt, rng)


def _network(n=40) -> NetworkModel:
    x = np.linspace(-1, 1, n)[None]
    return NetworkModel(x_t=x, y_t=np.sin(x), sizes=(1, 3, 1))


def test_networks_far_behind_one_without_hidden_layers_are_dropped():
    network = _network()
    line = without_hidden_layers(network)
    assert line.sizes == (1, 1)
    least = 100.0 - PER_WEIGHT * 10  # the network has ten weights
    starts = [_at(100.0, line), _at(least + 0.1, network), _at(least - 0.1, network)]
    assert [s.optimum.log_evidence for s in not_hopeless(starts)] == [100.0, least + 0.1]
    assert len(not_hopeless(starts[1:])) == 2
    far_ahead = [_at(100.0, line), _at(500.0, network)]
    assert len(not_hopeless(far_ahead)) == 2


def test_of_optima_within_a_part_of_the_standard_error_the_best_is_kept():
    network = _network(n=40)
    sigma = float(np.exp(initial(network, np.random.default_rng(0)).noise[0, 0]))
    error = sigma * np.sqrt(10 / 40)
    few = replace(DEFAULT, **FOR_FEW_ROWS)
    near = [_at(1.0, network), _at(2.0, network, 0.2 * error), _at(0.0, network, -0.3 * error)]
    kept = sorted(s.optimum.log_evidence for s in distinct(near, few))
    assert kept == [0.0, 2.0]
    assert len(distinct(near, DEFAULT)) == 3
