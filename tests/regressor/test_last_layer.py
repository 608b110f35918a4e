"""SparseBNNRegressor(method="last_layer"): exact output layer on trained hidden layers."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_mean_within_errors, assert_within_errors, rng

import sbnn
from sbnn import SparseBNNRegressor
from sbnn.regressor import last_layer
from sbnn.regressor.last_layer import Hidden


def table(n=250, salt=1):
    r = rng(80, salt)
    X = r.uniform(-2, 2, size=(n, 3))
    return X, 10.0 * np.sin(2 * X[:, 0]) + 2.0 * X[:, 1] + r.normal(size=n)


def model(**options):
    given = {"hidden_layer_sizes": (8,), "n_starts": 4, "random_state": 0, "n_jobs": 1}
    return SparseBNNRegressor(method="last_layer", **(given | options))


@pytest.fixture(scope="module")
def fitted():
    return model(noise="constant").fit(*table())


def test_output_layer_is_that_of_the_function_on_the_hidden_features(fitted):
    X, y = table()
    posterior = fitted.posterior_
    order = np.lexsort((y, *X.T[::-1]))
    x_t, y_t = fitted._scaling.training(X[order], y[order, None])
    hidden = Hidden(posterior.network, posterior.phi)
    result = sbnn.last_layer(hidden, y_t[0], x=x_t.T)
    assert result.log_evidence == pytest.approx(posterior.layer.log_evidence, rel=1e-8)
    np.testing.assert_allclose(posterior.layer.fits[0].mean, result.mean, rtol=1e-6, atol=1e-8)
    mean, std = fitted.predict(X, return_std=True)
    expected = result.predict(fitted._scaling.inputs(X).T)
    scale = fitted._scaling.y_scale[0]
    np.testing.assert_allclose(mean, expected[0] * scale + fitted._scaling.y_centre[0], rtol=1e-6)
    np.testing.assert_allclose(std, expected[1] * scale, rtol=1e-6)


def test_predictions_are_close_and_calibrated(fitted):
    X, y = table(2000, salt=2)
    mean, interval = fitted.predict(X, return_interval=0.9)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 1.2  # the noise has standard deviation 1
    inside = ((y > interval[:, 0]) & (y < interval[:, 1])).mean()
    # Trained features are taken as known, so intervals are a little too narrow.
    assert 0.84 < inside < 0.93
    assert fitted.feature_relevance_.argmax() == 0
    assert fitted.noise_std_ == pytest.approx(1.0, abs=0.1)


def test_hidden_parameters_have_no_precision_and_no_spread(fitted):
    hidden = fitted.posterior_.n_hidden
    assert np.isnan(fitted.log_alpha_[:hidden]).all()
    assert np.isfinite(fitted.relevance_[hidden:]).all()
    centre, spread = fitted.posterior_.centre_and_spread
    assert not spread[:hidden].any()
    assert len(fitted.summary()) == len(centre) == fitted.network_.n_parameters
    draws = fitted.posterior_.parameter_draws(3000, rng(81))
    random = spread > 0
    assert_mean_within_errors(draws[:, random], centre[random])
    assert_within_errors(draws[:, random].std(axis=0), spread[random], spread[random] / 75.0)


def test_draws_of_functions_agree_with_the_network_of_drawn_parameters(fitted):
    from sbnn.problems.network import push_forward

    x_t = fitted._scaling.inputs(table(5, salt=3)[0])
    draws = fitted.posterior_.parameter_draws(10, rng(82))
    found = fitted.posterior_.sample(x_t, 10, rng(82))
    np.testing.assert_allclose(found, push_forward(fitted.network_, draws, x_t.T), rtol=1e-9)
    many = fitted.posterior_.sample(x_t, 4000, rng(83), noise=True)
    predictive = fitted.posterior_.predictive(x_t)
    assert_mean_within_errors(many, predictive.mean())
    spread = predictive.std()
    assert_within_errors(many.std(axis=0), spread, spread / np.sqrt(8000))


def test_saved_and_compact_models_predict_the_same(fitted, tmp_path):
    X, _ = table(50, salt=4)
    small = fitted.compact()
    for name, estimator in (("whole", fitted), ("small", small)):
        estimator.save(tmp_path / f"{name}.nc")
        again = sbnn.load(tmp_path / f"{name}.nc")
        for one, other in zip(fitted.predict(X, True, 0.9), again.predict(X, True, 0.9)):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        assert again.method_used_ == "last_layer"
        np.testing.assert_array_equal(again.relevance_, estimator.relevance_)
    assert small.compact() is not small
    assert small.n_parameters_ == small.n_parameters_kept_ <= fitted.n_parameters_


def test_compact_drops_neurons_whose_output_weight_is_pruned():
    X, y = table(120)
    fitted = model(hidden_layer_sizes=(20, 12)).fit(X, y)
    fits = fitted.posterior_.layer.fits
    assert np.isinf(fits[0].log_alpha[:-1]).any()
    small = fitted.compact()
    assert sum(small.network_.sizes) < sum(fitted.network_.sizes)
    np.testing.assert_allclose(small.predict(X), fitted.predict(X), rtol=1e-9, atol=1e-9)


def test_outliers_make_auto_choose_student_t_noise():
    X, y = table()
    y[::25] += 60.0
    fitted = model().fit(X, y)
    assert fitted.noise_used_ == "student_t"
    assert "lower bound" in " ".join(map(str, fitted.messages_))
    X, y = table(500, salt=5)
    assert np.sqrt(np.mean((fitted.predict(X) - y) ** 2)) < 1.6


def test_several_targets_with_known_noise_and_weights():
    X, y = table(100)
    both = np.column_stack([y, -y])
    counts = rng(84).integers(1, 3, size=100)
    std = np.tile([1.0, 2.0], (100, 1))
    fitted = model().fit(X, both, sample_weight=counts, noise_std=std)
    mean, interval = fitted.predict(X[:7], return_interval=0.9)
    assert mean.shape == (7, 2)
    assert interval.shape == (7, 2, 2)
    np.testing.assert_allclose(fitted.noise_std_, [1.0, 2.0], rtol=1e-9)
    repeated = model().fit(np.repeat(X, counts, axis=0), np.repeat(both, counts, axis=0),
                           noise_std=np.repeat(std, counts, axis=0))  # fmt: skip
    np.testing.assert_allclose(repeated.predict(X[:7]), mean, rtol=1e-6)


def test_hidden_layers_learn_from_some_rows_and_the_output_layer_from_all(monkeypatch):
    monkeypatch.setattr(last_layer, "FEATURE_ROWS", 100)
    X, y = table()
    fitted = model(noise="constant").fit(X, y)
    assert fitted.posterior_.layer.n_rows == 250
    assert np.sqrt(np.mean((fitted.predict(X) - y) ** 2)) < 1.6


def test_varying_noise_is_a_clear_error():
    with pytest.raises(ValueError, match="'constant' or 'student_t', not 'varying'"):
        model(noise="varying").fit(*table(30))
