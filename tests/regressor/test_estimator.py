"""SparseBNNRegressor: scikit-learn interface, units, awkward tables, files."""

from __future__ import annotations

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import check_estimator

import sbnn
from sbnn import SparseBNNRegressor
from sbnn.regressor.files import parts

QUICK = {"hidden_layer_sizes": (5,), "method": "laplace_nsbl", "n_starts": 3, "random_state": 0}


def table(n=80, n_features=3, noise=0.1, seed=0):
    """y depends on the first two columns only."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, n_features))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.normal(size=n)
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    return SparseBNNRegressor(**QUICK).fit(X, y), X, y


def test_scikit_learn_accepts_it_as_an_estimator():
    small = {"group_iterations": 30, "iterations": 15}
    options = {**QUICK, "hidden_layer_sizes": (3,), "n_starts": 2, "noise": "constant"}
    check_estimator(SparseBNNRegressor(**options, method_options=small))


@pytest.mark.slow
def test_scikit_learn_accepts_the_defaults():
    check_estimator(SparseBNNRegressor())


def test_it_works_in_pipelines_searches_and_cross_validation():
    X, y = table(60)
    model = SparseBNNRegressor(**QUICK)
    pipeline = make_pipeline(PolynomialFeatures(2, include_bias=False), model)
    assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.5
    search = GridSearchCV(model, {"hidden_layer_sizes": [(2,), (4,)]}, cv=2).fit(X, y)
    assert search.best_params_["hidden_layer_sizes"] in [(2,), (4,)]
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "network_")


def test_pandas_columns_are_remembered_and_checked():
    X, y = table(40)
    frame = pd.DataFrame(X, columns=["load", "speed", "age"])
    model = SparseBNNRegressor(**QUICK).fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == ["load", "speed", "age"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["age", "speed", "load"]])


def test_predictions_come_with_standard_deviations_and_intervals(fitted):
    model, X, y = fitted
    mean, std, interval = model.predict(X, return_std=True, return_interval=0.95)
    assert mean.shape == std.shape == y.shape
    assert interval.shape == (*y.shape, 2)
    assert ((interval[:, 0] < mean) & (mean < interval[:, 1])).all()
    assert (std > 0).all()
    assert model.score(X, y) > 0.9
    narrow = model.predict(X, return_interval=0.5)[1]
    assert (np.diff(narrow) < np.diff(interval)).all()
    with pytest.raises(ValueError, match=r"return_interval.*got 95"):
        model.predict(X, return_interval=95)


def test_draws_agree_with_the_predictive_moments(fitted):
    model, X, _ = fitted
    mean, std = model.predict(X[:5], return_std=True)
    n = 4000
    draws = model.sample_y(X[:5], n_samples=n, random_state=1)
    assert draws.shape == (5, n)
    # Shares of the optima are averaged over the points in joint draws, so means differ by a
    # fraction of the spread between optima.
    assert np.abs(draws.mean(axis=1) - mean).max() < 0.15 * std.max()
    np.testing.assert_allclose(draws.std(axis=1), std, rtol=0.15)
    calm = model.sample_y(X[:5], n_samples=n, random_state=1, noise=False)
    assert (calm.std(axis=1) < draws.std(axis=1)).all()


def test_log_predictive_density_is_that_of_the_mixture(fitted):
    model, X, y = fitted
    weights, means, stds = model.predictive_mixture(X[:7])
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)
    density = (weights * stats.norm.pdf(y[:7], means, stds)).sum(axis=0)
    np.testing.assert_allclose(model.log_predictive_density(X[:7], y[:7]), np.log(density))
    np.testing.assert_allclose((weights * means).sum(axis=0), model.predict(X[:7]))


def test_intervals_cover_new_data_and_noise_is_recovered():
    X, y = table(200)
    model = SparseBNNRegressor((8,), method="laplace_nsbl", n_starts=4, random_state=0).fit(X, y)
    X_new, y_new = table(1000, seed=1)
    _, interval = model.predict(X_new, return_interval=0.95)
    inside = ((interval[:, 0] <= y_new) & (y_new <= interval[:, 1])).mean()
    assert 0.92 <= inside <= 0.98
    assert model.noise_std_ == pytest.approx(0.1, rel=0.2)


def test_learned_attributes_have_their_documented_shapes(fitted):
    model, _, _ = fitted
    d = model.network_.n_parameters
    assert model.relevance_.shape == model.log_alpha_.shape == (d,)
    assert ((model.relevance_ >= 0) & (model.relevance_ <= 1)).all()
    pruned = np.isinf(model.log_alpha_)
    assert (model.relevance_[pruned] == 0).all()
    assert model.feature_relevance_.shape == model.feature_relevance_std_.shape == (3,)
    assert model.feature_relevance_.sum() == pytest.approx(1.0)
    assert model.n_parameters_kept_ <= model.n_parameters_ == d * len(model.optima_)
    assert list(model.summary().index) == list(model.network_.names)
    assert np.isfinite(model.log_evidence_)
    assert model.optima_["log_evidence"].is_monotonic_decreasing


def spurious(seed, n_starts):
    X, y = table(100, n_features=6, noise=0.2, seed=seed)
    model = SparseBNNRegressor((10,), n_starts=n_starts, random_state=seed).fit(X, y)
    return model.feature_relevance_


@pytest.mark.parametrize("seed", range(2))
def test_spurious_inputs_have_no_relevance(seed):
    shares = spurious(seed, 6)
    assert (shares[2:] < 0.05).all(), shares
    assert (shares[:2] > 0.1).all(), shares


@pytest.mark.slow
def test_spurious_inputs_have_no_relevance_over_many_seeds():
    shares = np.array([spurious(seed, 16) for seed in range(20)])
    assert (shares[:, 2:] < 0.05).all(), shares.round(3)
    assert (shares[:, :2] > 0.1).all(), shares.round(3)


@pytest.mark.parametrize(
    ("x_scale", "x_shift", "y_scale", "y_shift"),
    [
        (1000.0, 0.0, 1.0, 0.0),
        (3.7e-8, 5e-7, 1.0, 0.0),
        (1.0, 0.0, 9.3e6, -1e7),
        (7.0, 40.0, 0.1, 3.0),
    ],
)
def test_changing_units_changes_only_the_units(fitted, x_scale, x_shift, y_scale, y_shift):
    model, X, y = fitted
    other = SparseBNNRegressor(**QUICK).fit(X * x_scale + x_shift, y * y_scale + y_shift)
    mean, std = model.predict(X, return_std=True)
    new_mean, new_std = other.predict(X * x_scale + x_shift, return_std=True)
    np.testing.assert_allclose((new_mean - y_shift) / y_scale, mean, atol=1e-5)
    np.testing.assert_allclose(new_std / y_scale, std, rtol=1e-5)
    np.testing.assert_allclose(other.feature_relevance_, model.feature_relevance_, atol=1e-5)
    expected = model.log_evidence_ - len(y) * np.log(y_scale)
    assert other.log_evidence_ == pytest.approx(expected, abs=1e-3)


def awkward():
    X, y = table(40)
    huge = 1e200
    return {
        "constant column": (np.column_stack([X, np.full(40, 5.0)]), y),
        "only constant columns": (np.ones((40, 2)), y),
        "duplicated rows": (np.tile(X, (3, 1)), np.tile(y, 3)),
        "more features than rows": (np.random.default_rng(0).normal(size=(12, 30)), y[:12]),
        "one feature": (X[:, :1], y),
        "five rows": (X[:5], y[:5]),
        "two rows": (X[:2], y[:2]),
        "huge scales": (X * huge, y * 1e150),
        "tiny scales": (X / huge, y / 1e150),
        "integers": ((10 * X).astype(int), (10 * y).astype(int)),
        "float32": (X.astype(np.float32), y.astype(np.float32)),
        "constant target": (X, np.full(40, 3.0)),
        "booleans": (X > 0, y),
    }


@pytest.mark.parametrize("case", list(awkward()))
def test_awkward_tables_give_finite_predictions(case):
    X, y = awkward()[case]
    model = SparseBNNRegressor(**QUICK).fit(X, y)
    mean, std, interval = model.predict(X, return_std=True, return_interval=0.9)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert np.isfinite(interval).all()
    assert np.isfinite(model.feature_relevance_).all()
    assert mean.dtype == float
    if case == "constant target":
        np.testing.assert_allclose(mean, 3.0, atol=1e-3)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[np.inf], [1.0]], [1.0, 2.0], "infinity"),
        ([[0.0], [1.0]], [1.0, np.nan], "NaN"),
        ([[1.0], [2.0]], [1.0, 2.0, 3.0], "inconsistent"),
        ([[1.0]], [1.0], "minimum of 2"),
    ],
)
def test_unusable_tables_raise_with_a_reason(X, y, words):
    with pytest.raises(ValueError, match=words):
        SparseBNNRegressor(**QUICK).fit(X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, "`method` must be one of"),
        ({"activation": "step"}, "`activation` must be one of"),
        ({"n_starts": 0}, "`n_starts`"),
        ({"noise_std": -1.0}, "above zero"),
        ({"noise_std": [0.1, 0.2]}, "one per output"),
        ({"hidden_layer_sizes": (0,)}, "`hidden_layer_sizes`"),
        ({"hidden_layer_sizes": "wide"}, "`hidden_layer_sizes`"),
        ({"hidden_layer_sizes": [(2,), (3,)], "method": "standard"}, "needs one architecture"),
    ],
)
def test_invalid_options_raise_and_name_valid_values(options, words):
    X, y = table(20)
    with pytest.raises(ValueError, match=words):
        SparseBNNRegressor(**{**QUICK, **options}).fit(X, y)


def test_several_outputs_have_their_own_noise():
    X, y = table(150)
    rng = np.random.default_rng(1)
    Y = np.column_stack([y, 100 * X[:, 0] + 30 * rng.normal(size=150)])
    model = SparseBNNRegressor(**QUICK).fit(X, Y)
    mean, std, interval = model.predict(X[:9], return_std=True, return_interval=0.9)
    assert mean.shape == std.shape == (9, 2)
    assert interval.shape == (9, 2, 2)
    assert model.sample_y(X[:9], 4).shape == (9, 2, 4)
    assert model.log_predictive_density(X, Y).shape == (150, 2)
    np.testing.assert_allclose(model.noise_std_, [0.1, 30.0], rtol=0.3)


def test_known_noise_is_taken_in_the_units_of_y():
    X, y = table(60)
    model = SparseBNNRegressor(**{**QUICK, "noise_std": 25.0}).fit(X, 100 * y)
    assert model.noise_std_ == pytest.approx(25.0)
    Y = np.column_stack([y, 100 * y])
    model = SparseBNNRegressor(**{**QUICK, "noise_std": [0.2, 25.0]}).fit(X, Y)
    np.testing.assert_allclose(model.noise_std_, [0.2, 25.0])


def test_compact_estimator_is_smaller_and_predicts_the_same(fitted):
    model, X, _ = fitted
    small = model.compact()
    X_new = table(200, seed=3)[0]
    mean, std = model.predict(X_new, return_std=True)
    new_mean, new_std = small.predict(X_new, return_std=True)
    np.testing.assert_allclose(new_mean, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(new_std, std, rtol=1e-9)
    assert small.n_parameters_ < model.n_parameters_
    assert small.n_parameters_ == small.n_parameters_kept_ == model.n_parameters_kept_
    assert small.n_parameters_ == sum(len(o.active) for o in small.posterior_.mixture.optima)
    assert small.compact().n_parameters_ == small.n_parameters_
    assert small.get_params() == model.get_params()
    assert small.sample_y(X, 3).shape == (len(X), 3)


def test_compact_estimator_has_a_smaller_file(fitted, tmp_path):
    model, X, _ = fitted
    model.save(tmp_path / "full.nc")
    model.compact().save(tmp_path / "small.nc")
    full, small = ((tmp_path / name).stat().st_size for name in ("full.nc", "small.nc"))
    assert small < full
    sizes = [sum(a.nbytes for a in parts(m)[0].values()) for m in (model.compact(), model)]
    assert sizes[0] <= sizes[1] - X.nbytes  # at least by the inputs, which are no longer needed
    loaded = sbnn.load(tmp_path / "small.nc")
    np.testing.assert_array_equal(loaded.predict(X), model.compact().predict(X))
    assert loaded.compact().n_parameters_ == loaded.n_parameters_


@pytest.mark.parametrize("method", ["laplace_nsbl", "layer_wise"])
def test_noise_on_fewer_rows_than_columns_gives_a_constant(method):
    """A network that fits every row is less probable than a constant."""
    r = np.random.default_rng(40)
    x, y, new, unseen = (r.normal(size=s) for s in ((20, 30), 20, (500, 30), 500))
    model = SparseBNNRegressor((6, 6), method=method, n_starts=4, random_state=0)
    mean, interval = model.fit(x, y).predict(new, return_interval=0.95)
    assert np.ptp(mean) == 0.0
    inside = np.mean((interval[:, 0] < unseen) & (unseen < interval[:, 1]))
    assert inside > 0.85  # with 20 rows, the scale has an error of a sixth


def test_a_model_of_pure_noise_can_be_compacted():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    model = SparseBNNRegressor((3,), method="laplace_nsbl", n_starts=4, random_state=0).fit(X, y)
    small = model.compact()
    assert small.n_parameters_ < model.n_parameters_
    assert small.n_parameters_ == model.n_parameters_kept_
    np.testing.assert_allclose(small.predict(X), model.predict(X), atol=1e-9)


def same(one, other, X):
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_array_equal(
        one.predict(X, return_interval=0.9)[1], other.predict(X, return_interval=0.9)[1]
    )
    np.testing.assert_array_equal(one.log_alpha_, other.log_alpha_)
    np.testing.assert_array_equal(one.feature_relevance_, other.feature_relevance_)
    assert one.log_evidence_ == other.log_evidence_
    assert one.get_params() == other.get_params()
    pd.testing.assert_frame_equal(one.optima_, other.optima_)


def test_saved_estimator_round_trips(fitted, tmp_path):
    model, X, _ = fitted
    model.save(tmp_path / "model.nc")
    assert [p.name for p in tmp_path.iterdir()] == ["model.nc"]
    loaded = sbnn.load(tmp_path / "model.nc")
    assert isinstance(loaded, SparseBNNRegressor)
    same(model, loaded, X)
    same(model.compact(), loaded.compact(), X)


def test_feature_names_and_several_architectures_survive_a_file(tmp_path):
    X, y = table(30)
    options = {**QUICK, "hidden_layer_sizes": [(2,), (2, 2)]}
    model = SparseBNNRegressor(**options).fit(pd.DataFrame(X, columns=list("abc")), y)
    model.save(tmp_path / "model.nc")
    loaded = sbnn.load(tmp_path / "model.nc")
    assert list(loaded.feature_names_in_) == list("abc")
    assert loaded.hidden_layer_sizes == [(2,), (2, 2)]
    assert set(model.optima_["hidden_layer_sizes"]) == {(2,), (2, 2)}


def test_damaged_file_raises(fitted, tmp_path):
    path = tmp_path / "model.nc"
    fitted[0].save(path)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ValueError, match="not a readable"):
        sbnn.load(path)


def test_pickle_and_joblib_keep_the_predictions(fitted):
    model, X, _ = fitted
    same(model, pickle.loads(pickle.dumps(model)), X)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    same(model, joblib.load(buffer), X)


def test_same_seed_gives_the_same_result_for_any_n_jobs(fitted):
    model, X, y = fitted
    other = SparseBNNRegressor(**QUICK, n_jobs=3).fit(X, y)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


@pytest.mark.slow
def test_auto_chooses_wide_networks_only_if_the_evidence_improves():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 1))
    wiggly = np.sin(16 * X[:, 0]) + 0.05 * rng.normal(size=300)  # ten bends need ten neurons
    flat = X[:, 0] + 0.3 * rng.normal(size=300)
    widths = {}
    for name, y in (("wiggly", wiggly), ("flat", flat)):
        model = SparseBNNRegressor("auto", n_starts=4, random_state=0, noise="constant").fit(X, y)
        widths[name] = max(map(sum, model.optima_["hidden_layer_sizes"]))
        assert model.method_used_ == "laplace_nsbl"
    assert widths["flat"] < widths["wiggly"]


def test_auto_does_not_sample_and_its_reason_says_how_to():
    X, y = table(30)
    model = SparseBNNRegressor((2,), n_starts=2, random_state=0).fit(X, y)
    assert model.method_used_ == "laplace_nsbl"
    assert "method='nsbl'" in str(model.method_reason_)


def test_laplace_keeps_every_weight():
    X, y = table(60)
    model = SparseBNNRegressor(**{**QUICK, "method": "laplace"}).fit(X, y)
    assert model.n_parameters_kept_ == model.n_parameters_
    assert np.unique(model.log_alpha_.round(9)).size == 4  # one per matrix and bias vector
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("method", ["standard", pytest.param("nsbl", marks=pytest.mark.slow)])
def test_sampling_methods_predict_and_compact(method, tmp_path):
    x, y = sbnn.datasets.boxcar()
    X = x.reshape(-1, 1)
    options = {"n_particles": 200}
    model = SparseBNNRegressor(
        (2,), method=method, noise_std=0.5, random_state=0, method_options=options
    ).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert model.score(X, y) > 0.8
    assert model.noise_std_ == pytest.approx(0.5)
    assert (std > 0.49).all()
    small = model.compact()
    assert (np.abs(small.predict(X) - mean) < 0.01 * std).all()
    model.save(tmp_path / "model.nc")
    np.testing.assert_array_equal(sbnn.load(tmp_path / "model.nc").predict(X), mean)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), mean)
    assert model.feature_relevance_ == pytest.approx([1.0])
    assert model.sample_y(X, 10).shape == (len(y), 10)
    assert model.result_.method == method


def test_predictive_distribution_agrees_with_every_other_prediction(fitted):
    model, X, y = fitted
    predictive = model.predictive(X)
    mean, std, interval = model.predict(X, return_std=True, return_interval=0.9)
    np.testing.assert_allclose(predictive.mean(), mean)
    np.testing.assert_allclose(predictive.std(), std)
    np.testing.assert_allclose(predictive.quantiles([0.05, 0.95]).T, interval)
    np.testing.assert_array_equal(predictive.log_density(y), model.log_predictive_density(X, y))
    calm = model.predictive(X, noise=False)
    np.testing.assert_allclose(calm.mean(), mean)
    assert (calm.std() < std).all()


def test_estimator_is_rebuilt_from_parameters_and_state(fitted):
    model, X, _ = fitted
    same(model, SparseBNNRegressor.from_state(model.get_params(), model.fitted_state()), X)
