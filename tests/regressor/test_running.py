"""A running fit: progress, time limit, stopping, wide tables."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from helpers import rng

import sbnn
from sbnn import SparseBNNRegressor
from sbnn._core.messages import from_json


def table(n=120, p=2):
    r = rng(20)
    x = r.normal(size=(n, p))
    return x, np.sin(2 * x[:, 0]) + 0.1 * r.normal(size=n)


SMALL = {"hidden_layer_sizes": (4,), "n_starts": 4, "noise": "constant", "random_state": 0}


def test_progress_counts_the_starts_of_every_stage():
    seen = []
    SparseBNNRegressor(**SMALL, n_jobs=1, verbose=seen.append).fit(*table())
    stages = dict.fromkeys(progress.stage for progress in seen)
    assert list(stages) == [
        "training",
        "training the better",
        "training on",
        "pruning",
        "finishing",
    ]
    for stage in stages:
        mine = [progress for progress in seen if progress.stage == stage]
        assert [p.done for p in mine] == list(range(mine[0].total + 1))
    assert seen[-1].left == pytest.approx(0.0, abs=1e-6)


def test_verbose_prints_to_stderr(capsys):
    SparseBNNRegressor(**SMALL, verbose=True).fit(*table())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "training: 4 of 4 networks" in captured.err


def test_time_limit_ends_with_a_model_that_predicts():
    x, y = table(400, 3)
    model = SparseBNNRegressor(n_starts=1000, random_state=0, time_limit=0.3)
    started = time.process_time()
    model.fit(x, y)
    assert time.process_time() - started < 30  # a thousand starts take minutes
    assert model.ended_early
    assert model.score(x, y) > 0.5
    mean, std = model.predict(x, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def test_no_layer_is_added_when_the_time_is_over():
    x, y = table()
    model = SparseBNNRegressor((8, 8, 8), method="layer_wise", n_starts=1000, time_limit=0.3)
    model.set_params(random_state=0).fit(x, y)
    assert model.ended_early
    assert "allow more time" in str(model.messages_[-1])
    assert len(model.trials_) == 1
    assert np.isfinite(model.predict(x)).all()


def test_generous_time_limit_changes_nothing():
    x, y = table()
    free, limited = (
        SparseBNNRegressor(**SMALL, time_limit=limit).fit(x, y) for limit in (None, 1e6)
    )
    assert not limited.ended_early
    np.testing.assert_array_equal(free.predict(x), limited.predict(x))


def test_stop_from_another_thread_ends_the_fit():
    x, y = table(400, 3)
    model = SparseBNNRegressor(n_starts=1000, random_state=0)
    begun = threading.Event()
    model.verbose = lambda progress: begun.set()
    stopper = threading.Thread(target=lambda: (begun.wait(60), model.stop()))
    stopper.start()
    model.fit(x, y)
    stopper.join()
    assert model.ended_early
    assert model.score(x, y) > 0.5


@pytest.mark.parametrize("limit", [0, -1.0, "5", True, float("nan")])
def test_time_limit_must_be_seconds_above_zero(limit):
    with pytest.raises(ValueError, match="`time_limit` must be seconds above 0"):
        SparseBNNRegressor(time_limit=limit).fit(*table())


def test_time_limit_is_refused_for_sampling_methods():
    with pytest.raises(ValueError, match="methods without sampling, not to 'nsbl'"):
        SparseBNNRegressor((2,), method="nsbl", time_limit=5).fit(*table())


def test_wide_table_uses_few_columns_and_says_so(tmp_path):
    x, y = table(300, 42)
    y = y + x[:, 7] * x[:, 8]
    model = SparseBNNRegressor(**SMALL).fit(x, y)
    used = np.flatnonzero(model.feature_relevance_)
    assert {0, 7, 8} <= set(used)
    assert len(used) <= 5
    (message,) = (m for m in model.messages_ if m.code == "inputs_chosen")
    assert str(message).startswith(f"{message.n_used} of 42 inputs are used")
    assert message.n_used >= len(used)
    assert from_json(message.as_json()) == message
    model.save(tmp_path / "model.nc")
    loaded = sbnn.load(tmp_path / "model.nc")
    np.testing.assert_allclose(loaded.predict(x), model.predict(x), rtol=1e-10)
    assert message in loaded.messages_


def test_dense_networks_use_all_columns():
    x, y = table(60, 45)
    options = {**SMALL, "hidden_layer_sizes": (2,), "n_starts": 1}
    codes = lambda model: [message.code for message in model.fit(x, y).messages_]
    assert "inputs_chosen" not in codes(SparseBNNRegressor(**options, method="laplace"))
