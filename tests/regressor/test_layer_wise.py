"""SparseBNNRegressor(method="layer_wise"): a posterior like that of the other methods."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import rng

import sbnn
from sbnn import SparseBNNRegressor


def table(n=150):
    r = rng(85)
    X = r.uniform(-2, 2, size=(n, 2))
    return X, 5.0 + np.tanh(2 * X[:, 0]) + 0.1 * r.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    model = SparseBNNRegressor(
        (6, 5), method="layer_wise", noise="constant", n_starts=4, random_state=0, n_jobs=1
    )
    return model.fit(*table())


def test_depths_tried_are_reported(fitted):
    assert fitted.method_used_ == "layer_wise"
    assert list(fitted.trials_["hidden_layer_sizes"]) == [((6,),), ((6, 5),)]
    assert len(fitted.network_.sizes) == 3  # one hidden layer suffices
    assert fitted.log_evidence_ == pytest.approx(fitted.trials_["log_evidence"].iloc[0], abs=1e-6)
    assert fitted.n_parameters_kept_ < fitted.n_parameters_ == 25
    assert fitted.feature_relevance_[0] > 0.95


def test_model_predicts_and_is_saved_like_any_other(fitted, tmp_path):
    X, y = table()
    mean, std, interval = fitted.predict(X, return_std=True, return_interval=0.95)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.13
    inside = (interval[:, 0] < y) & (y < interval[:, 1])
    assert inside.mean() > 0.88
    fitted.save(tmp_path / "model.nc")
    again = sbnn.load(tmp_path / "model.nc")
    np.testing.assert_array_equal(again.predict(X, return_std=True)[1], std)
    np.testing.assert_allclose(fitted.compact().predict(X), mean, atol=0.01)


def test_student_t_noise_and_known_noise_are_accepted():
    X, y = table(80)
    for options, fit_options in (
        ({"noise": "student_t"}, {}),
        ({}, {"noise_std": np.full(80, 0.1), "sample_weight": np.full(80, 2.0)}),
    ):
        model = SparseBNNRegressor(
            (4, 3), method="layer_wise", n_starts=2, random_state=0, n_jobs=1, **options
        ).fit(X, y, **fit_options)
        assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 0.2


@pytest.mark.parametrize(
    ("sizes", "error"), [([(3,), (4,)], "needs one architecture"), ((), "at least one")]
)
def test_unsuitable_architectures_are_clear_errors(sizes, error):
    with pytest.raises(ValueError, match=error):
        SparseBNNRegressor(sizes, method="layer_wise").fit(*table(20))
