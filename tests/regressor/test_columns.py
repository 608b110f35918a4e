"""SparseBNNRegressor on DataFrames with text, dates and gaps, and on sparse matrices."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import sbnn
from sbnn import SparseBNNRegressor

QUICK = {
    "hidden_layer_sizes": (3,),
    "n_starts": 2,
    "random_state": 0,
    "noise": "constant",
    "n_jobs": 1,
}
EFFECTS = {"u": 0.0, "v": 1.5, "w": -1.0, "x": 0.7}


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    kind = rng.choice(list(EFFECTS), size=n)
    days = rng.integers(0, 1000, size=n)
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")
    season = np.sin(2 * np.pi * days / 365.25)
    y = 0.8 * a + pd.Series(kind).map(EFFECTS) + 0.5 * season + 0.2 * rng.normal(size=n)
    frame = pd.DataFrame({"a": a, "b": b, "kind": kind, "when": when})
    return frame, y.to_numpy()


def with_gaps(frame, share=0.05, seed=1):
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < share)


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    return SparseBNNRegressor(**QUICK).fit(with_gaps(X), y)


def test_text_dates_and_gaps_are_fitted(fitted):
    assert fitted.n_features_in_ == 4
    assert fitted.feature_names_in_.tolist() == ["a", "b", "kind", "when"]
    assert fitted.columns_["kind"].tolist() == ["number", "number", "category", "date"]
    assert fitted.columns_["n_encoded"].tolist() == [1, 1, 3, 5]
    assert fitted.feature_relevance_.shape == (4,)
    assert fitted.feature_relevance_.sum() == pytest.approx(1.0)
    assert fitted.feature_relevance_[2] > 0.3
    assert fitted.feature_relevance_[1] < 0.05
    assert 0.15 < fitted.noise_std_ < 0.3
    X, y = table(400, seed=5)
    mean, interval = fitted.predict(X, return_interval=0.95)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.3
    assert 0.88 <= np.mean((interval[:, 0] <= y) & (y <= interval[:, 1])) <= 0.99


def test_relevance_of_a_category_is_the_variance_of_its_effect():
    """A linear function of 1 × real, 0.38 × weak and one level that differs, against its variances.

    The sum over the one-hot columns, which was reported before, ranks the category above the input.
    """
    rng = np.random.default_rng(0)
    kind = rng.choice(list("abcd"), 300, p=[0.4, 0.2, 0.2, 0.2])
    X = pd.DataFrame({"real": rng.normal(size=300), "weak": rng.normal(size=300), "kind": kind})
    X["idle"] = rng.choice([f"k{i}" for i in range(12)], 300)
    effects = np.column_stack([X["real"], 0.38 * X["weak"], 0.6 * (kind == "a")])
    y = effects.sum(axis=1) + 0.1 * rng.normal(size=300)
    model = SparseBNNRegressor(**QUICK).fit(X, y)
    expected = effects.var(axis=0) / effects.var(axis=0).sum()
    np.testing.assert_allclose(model.feature_relevance_[:3], expected, atol=0.02)
    assert model.feature_relevance_[3] < 0.01
    shares, _ = model.posterior_.sensitivities(model._inputs, np.random.default_rng(0))
    summed = np.bincount(model.encoder_.groups, shares)
    assert summed[2] > summed[1] > 0
    assert model.feature_relevance_[2] < model.feature_relevance_[1]
    losses = model.input_relevance_["loss"].to_numpy()
    assert np.argsort(-losses, kind="stable").tolist() == [0, 1, 2, 3]


def test_categories_are_dummy_columns_without_the_most_frequent():
    """Without dates and gaps, the network sees the same numbers, so it is the same fit."""
    X, y = table(120)
    X = X[["a", "b", "kind"]]
    by_hand = pd.get_dummies(X, columns=["kind"]).drop(columns=f"kind_{X['kind'].mode()[0]}")
    ours, theirs = (
        SparseBNNRegressor(**QUICK).fit(inputs, y).predict(inputs) for inputs in (X, by_hand)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_irrelevant_category_has_no_relevance():
    """With a column for every category, their sum could act as a bias and look relevant."""
    X, y = table(200)
    rng = np.random.default_rng(8)
    X = X[["a", "kind"]].assign(noise=rng.choice(list("pqr"), size=200))
    model = SparseBNNRegressor(**QUICK).fit(X, y)
    assert model.feature_relevance_[2] < 0.03


def test_rows_with_gaps_have_wider_intervals_that_cover(fitted):
    X, y = table(600, seed=3)
    gaps = X.copy()
    gaps.loc[:199, "a"] = np.nan
    gaps.loc[200:399, "kind"] = None
    gaps.loc[400:, "when"] = pd.NaT
    mean, std, interval = fitted.predict(gaps, return_std=True, return_interval=0.95)
    narrow = fitted.predict(X, return_std=True)[1]
    inside = (interval[:, 0] <= y) & (y <= interval[:, 1])
    for part in (slice(0, 200), slice(200, 400), slice(400, 600)):
        assert (std[part] > 1.15 * narrow[part]).mean() > 0.9
        assert 0.88 <= inside[part].mean() <= 0.99
    # Wider intervals are needed: those of filled-in means miss.
    means = gaps.fillna({"a": X["a"].mean()}).head(200)
    plain = fitted.predict(means, return_interval=0.95)[1]
    assert ((plain[:, 0] <= y[:200]) & (y[:200] <= plain[:, 1])).mean() < 0.7
    np.testing.assert_allclose(
        std**2,
        fitted.noise_std_at(gaps) ** 2 + fitted.predictive(gaps, noise=False).std() ** 2,
        rtol=1e-6,
    )
    draws = fitted.sample_y(gaps, 300, random_state=1)
    np.testing.assert_allclose(draws.std(axis=1).mean(), std.mean(), rtol=0.05)
    np.testing.assert_allclose(draws.mean(), mean.mean(), atol=0.05)
    assert fitted.predictive(gaps).crps(y).mean() < 1.0
    np.testing.assert_allclose(
        fitted.log_predictive_density(gaps, y), fitted.predictive(gaps).log_density(y)
    )


def test_fits_to_tables_with_gaps_keep_effects_and_noise():
    """Means instead of draws given the target would bias the noise: it would hold the effect."""
    X, y = table(400, seed=7)
    gaps = with_gaps(X[["a", "b", "kind"]], share=0.15)
    days = (X["when"] - pd.Timestamp("2020-01-01")).dt.days
    y = y - 0.5 * np.sin(2 * np.pi * days / 365.25)
    model = SparseBNNRegressor(**QUICK).fit(gaps, y)
    assert abs(model.noise_std_ - 0.2) < 0.05
    slope = np.diff(model.predict(X[["a", "b", "kind"]].head(2).assign(a=[-1.0, 1.0], kind="u")))
    assert abs(slope[0] - 1.6) < 0.15
    by_means = SparseBNNRegressor(**QUICK).fit(gaps.fillna({"a": 0.0, "b": 0.0, "kind": "u"}), y)
    assert by_means.noise_std_ > 0.35  # negative control


def test_unseen_categories_are_flagged_and_spread(fitted):
    X, _ = table(3, seed=4)
    new = X.assign(kind=["u", "new", None])
    flags = fitted.unknown_cells(new)
    assert flags["unseen"].tolist() == [[], ["kind"], []]
    assert flags["missing"].tolist() == [[], [], ["kind"]]
    std = fitted.predict(new, return_std=True)[1]
    assert std[1] > 3 * std[0]
    assert std[2] > 2 * std[0]


def test_predictions_keep_the_index_of_a_frame(fitted):
    X, _ = table(5, seed=4)
    X.index = list("pqrst")
    found = fitted.predict_frame(X.assign(a=[np.nan, 0, 0, 0, 0]), level=0.8)
    assert list(found.columns) == ["mean", "std", "lower", "upper", "missing", "unseen"]
    assert found.index.tolist() == list("pqrst")
    assert found.loc["p", "missing"] == ["a"]
    both = SparseBNNRegressor(**QUICK).fit(table()[0][["a"]], np.column_stack([table()[1]] * 2))
    assert both.predict_frame(X[["a"]])[1].shape == (5, 6)


def test_columns_survive_files_and_pickle(fitted, tmp_path):
    fitted.save(tmp_path / "m.nc")
    again = sbnn.load(tmp_path / "m.nc")
    X, _ = table(20, seed=4)
    X.loc[3, "kind"], X.loc[4, "a"] = "new", np.nan
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    pd.testing.assert_frame_equal(again.columns_, fitted.columns_)
    small = fitted.compact()
    np.testing.assert_allclose(small.predict(X[5:]), fitted.predict(X[5:]), atol=0.05)
    with pytest.raises(ValueError, match="a compact model holds no training rows"):
        small.predict(X)


def test_missing_cells_can_be_errors():
    X, y = table(30)
    X.loc[4, "a"] = np.nan
    strict = SparseBNNRegressor(**QUICK, missing="error")
    with pytest.raises(ValueError, match="X, row 4, column 'a': 'NaN' is a missing value"):
        strict.fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        strict.fit(X[["a", "b"]].to_numpy(), y)
    with pytest.raises(ValueError, match="`missing` must be one of impute, error; got 'drop'"):
        SparseBNNRegressor(**QUICK, missing="drop").fit(X, y)


def test_order_of_rows_does_not_matter_with_gaps():
    X, y = table(80)
    X = with_gaps(X[["a", "kind"]], 0.1)
    order = np.random.default_rng(2).permutation(80)
    one = SparseBNNRegressor(**QUICK).fit(X, y)
    other = SparseBNNRegressor(**QUICK).fit(X.iloc[order], y[order])
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-9)


@pytest.mark.parametrize("given", [["code"], [0], [True, False]])
def test_codes_are_declared_by_name_position_or_mask(given):
    rng = np.random.default_rng(0)
    code = rng.integers(1, 5, size=150)
    X = pd.DataFrame({"code": code, "a": rng.normal(size=150)})
    y = np.array([0.0, 3.0, -2.0, 1.0])[code - 1] + 0.1 * rng.normal(size=150)
    model = SparseBNNRegressor(**QUICK, categorical_features=given).fit(X, y)
    assert model.columns_["kind"].tolist() == ["category", "number"]
    assert model.score(X, y) > 0.98
    gaps = X.astype(float)
    gaps.loc[0, "code"] = np.nan  # codes are floats now
    assert model.unknown_cells(gaps)["unseen"].map(len).sum() == 0
    if given != ["code"]:
        array = SparseBNNRegressor(**QUICK, categorical_features=given).fit(X.to_numpy(), y)
        np.testing.assert_allclose(array.predict(X.to_numpy()), model.predict(X))


@pytest.mark.parametrize(
    ("options", "frame", "message"),
    [
        ({"categorical_features": ["q"]}, {"a": [1.0, 2.0] * 5}, "must hold names or positions"),
        ({"categorical_features": [True]}, {"a": [1.0] * 9, "b": 1.0}, "mask of 1 column, but"),
        ({"categorical_features": "all"}, {"a": [1.0] * 9}, "must be 'from_dtype', None, or"),
        ({"categorical_features": None}, {"k": list("uv") * 5}, "'k' holds text .*from_dtype"),
        ({}, {"k": [f"r{i}" for i in range(9)]}, "'k' holds 9 different texts in 9 rows"),
        ({}, {"a": ["1", "2", "3", "4", "x"]}, "X, row 4, column 'a': 'x' is not a number"),
        ({}, {"a": [1.0, np.inf, 2.0]}, "X, row 1, column 'a': 'inf' is infinite"),
    ],
)
def test_columns_that_cannot_be_used_raise(options, frame, message):
    X = pd.DataFrame(frame)
    with pytest.raises(ValueError, match=message):
        SparseBNNRegressor(**QUICK, **options).fit(X, np.arange(len(X)))


def test_columns_of_lists_raise():
    with pytest.raises(TypeError, match="X, column 'a' holds list objects"):
        SparseBNNRegressor(**QUICK).fit(pd.DataFrame({"a": [[1], [2]]}), [0.0, 1.0])


def test_columns_of_another_kind_raise_when_predicting(fitted):
    X, _ = table(3)
    with pytest.raises(ValueError, match="'when' held dates in the fit; now it holds numbers"):
        fitted.predict(X.assign(when=1.0))
    with pytest.raises(ValueError, match="X, row 0, column 'a': 'x' is not a number"):
        fitted.predict(X.assign(a="x"))
    fitted.predict(X.assign(when=np.nan))  # all cells missing


def test_numbers_in_text_columns_and_columns_without_values_are_accepted():
    X, y = table(40)
    X = pd.DataFrame({"a": X["a"].astype(str), "nothing": None, "flag": [True, False] * 20})
    model = SparseBNNRegressor(**QUICK).fit(X, y)
    assert model.columns_["kind"].tolist() == ["number", "empty", "boolean"]
    assert np.isfinite(model.predict(X.assign(nothing="x"))).all()
    for flags in ([0, 1] * 20, [0.0, None] * 20):
        assert np.isfinite(model.predict(X.assign(flag=flags))).all()
    with pytest.raises(ValueError, match="column 'flag': '2' is neither true nor false"):
        model.predict(X.assign(flag=[0, 2] * 20))
    numbers = np.column_stack([X["a"].astype(float), np.full(40, np.nan)])
    assert np.isfinite(SparseBNNRegressor(**QUICK).fit(numbers, y).predict(numbers)).all()


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_matrices_are_accepted(form):
    X, y = table(40)
    dense = X[["a", "b"]].to_numpy() * (X[["a", "b"]].to_numpy() > 0)
    model = SparseBNNRegressor(**QUICK).fit(form(dense), y)
    again = SparseBNNRegressor(**QUICK).fit(dense, y)
    np.testing.assert_array_equal(model.predict(form(dense)), again.predict(dense))


def test_sparse_matrices_that_do_not_fit_into_memory_raise():
    huge = sparse.coo_array(([1.0], ([0], [0])), shape=(10**6, 10**4))
    with pytest.raises(ValueError, match=r"1,000,000 × 10,000 cells; .*TruncatedSVD"):
        SparseBNNRegressor(**QUICK).fit(huge, np.zeros(10**6))


def test_masked_cells_are_missing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=40)
    hidden = np.zeros(X.shape, bool)
    hidden[3, 1] = True
    gaps, masked = np.where(hidden, np.nan, X), np.ma.array(np.where(hidden, 1e6, X), mask=hidden)
    expected = SparseBNNRegressor(**QUICK).fit(gaps, y)
    found = SparseBNNRegressor(**QUICK).fit(masked, y)
    np.testing.assert_array_equal(found.predict(masked), expected.predict(gaps))
    with pytest.raises(ValueError, match="contains NaN in row 3; leave it out"):
        SparseBNNRegressor(**QUICK).fit(X, np.ma.array(y, mask=hidden[:, 1]))


def test_sparse_output_of_a_pipeline_is_accepted():
    X, y = table(60)
    encode = make_column_transformer(
        (OneHotEncoder(), ["kind"]), remainder="passthrough", sparse_threshold=1.0
    )
    model = make_pipeline(encode, SparseBNNRegressor(**QUICK))
    assert model.fit(X[["a", "kind"]], y).score(X[["a", "kind"]], y) > 0.7


def test_sample_weight_is_routed():
    X, y = table(60)
    weights = np.random.default_rng(0).integers(0, 3, size=60).astype(float)
    quick = {**QUICK, "hidden_layer_sizes": (1,), "n_starts": 1}
    with sklearn.config_context(enable_metadata_routing=True):
        model = SparseBNNRegressor(**quick).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"activation": ["tanh"]}, cv=2)
        search.fit(X[["a"]], y, sample_weight=weights)
        pipeline = make_pipeline(model).fit(X[["a"]], y, sample_weight=weights)
    direct = SparseBNNRegressor(**quick).fit(X[["a"]], y, sample_weight=weights)
    np.testing.assert_array_equal(search.predict(X[["a"]]), direct.predict(X[["a"]]))
    np.testing.assert_array_equal(pipeline.predict(X[["a"]]), direct.predict(X[["a"]]))


def test_cross_validation_takes_frames_with_gaps():
    X, y = table(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        scores = cross_val_score(SparseBNNRegressor(**QUICK), with_gaps(X[["a", "kind"]]), y, cv=2)
    assert np.isfinite(scores).all()


def test_sampling_methods_take_gaps_and_text():
    X, y = table(30)
    X = with_gaps(X[["a", "kind"]], 0.1).assign(kind=X["kind"].isin(["u", "w"]).map(str))
    options = {"n_particles": 64}
    model = SparseBNNRegressor(
        **{**QUICK, "hidden_layer_sizes": (1,)}, method="standard", method_options=options
    )
    model.fit(X, y)
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()


@pytest.mark.parametrize("named", [True, False])
def test_new_values_of_constant_columns_are_flagged(named):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=40), "batch": 7.0, "site": 3.0})
    y = X["a"] + 0.1 * rng.normal(size=40)
    X.loc[4, "site"] = np.nan
    X = X if named else X.to_numpy()
    with pytest.warns(sbnn.DataWarning, match=r"What another value would change cannot be learned"):
        model = SparseBNNRegressor((1,), n_starts=2, noise="constant", random_state=0).fit(X, y)
    rows = np.array([[0.0, 7.0, 3.0], [0.0, 8.0, 3.0], [0.0, 8.0, 4.0], [0.0, 7.0, np.nan]])
    new = pd.DataFrame(rows, columns=["a", "batch", "site"]) if named else rows
    found = model.unknown_cells(new)
    batch, site = ("batch", "site") if named else (1, 2)
    assert found["unseen"].tolist() == [[], [batch], [batch, site], []]
    assert found["missing"].tolist() == [[], [], [], [site]]
    mean = model.predict(new)
    np.testing.assert_allclose(mean, mean[0])


def test_new_values_of_constant_text_and_dates_are_flagged(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=40), "day": pd.Timestamp("2024-05-01"), "k": "x"})
    model = SparseBNNRegressor((1,), n_starts=2, noise="constant", random_state=0).fit(X, X["a"])
    model.save(tmp_path / "model.nc")
    new = X.head(3).assign(day=pd.to_datetime(["2024-05-01", "2024-05-02", None]), k=list("xzx"))
    found = sbnn.load(tmp_path / "model.nc").unknown_cells(new)
    assert found["unseen"].tolist() == [[], ["day", "k"], []]


def test_outliers_do_not_spoil_the_fills_of_gaps():
    """Fills are chosen by the noise of a first fit, which a few outliers must not enlarge."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    y = 3 * np.sin(X["a"]) + 2 * X["b"] + rng.normal(size=300)
    y[:3] += rng.choice([-60, 60], 3)
    model = SparseBNNRegressor((4,), n_starts=4, random_state=0)
    model.fit(X.mask(rng.random(X.shape) < 0.1), y)
    assert model.noise_used_ == "student_t"
    assert 0.85 < model.typical_noise_at(X).mean() < 1.15
