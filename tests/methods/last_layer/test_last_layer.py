"""`sbnn.last_layer`: exact, the same for every kind of rows, clear about bad input."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers import assert_mean_within_errors, assert_within_errors, rng
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

import sbnn


def rows(n=600, d=8, salt=1):
    r = rng(50, salt)
    features = r.normal(size=(n, d))
    y = features[:, :2] @ np.array([1.0, -2.0]) + 0.5 + 0.3 * r.normal(size=n)
    return features, y


def assert_same(one, other, tolerance=1e-9):
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=tolerance)
    np.testing.assert_allclose(one.mean, other.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-7, atol=tolerance)
    np.testing.assert_allclose(one.relevance, other.relevance, rtol=tolerance, atol=tolerance)
    assert one.noise_std == pytest.approx(other.noise_std, rel=tolerance)


@pytest.fixture(scope="module")
def fitted():
    return sbnn.last_layer(*rows())


def test_log_evidence_is_exact_for_a_linear_gaussian_model(fitted):
    features, y = rows()
    phi = np.column_stack([features, np.ones(len(y))])
    covariance = fitted.noise_std**2 * np.eye(len(y)) + (phi * np.exp(-fitted.log_alpha)) @ phi.T
    exact = stats.multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)
    assert fitted.log_evidence == pytest.approx(exact, rel=1e-10)
    beta = fitted.noise_std**-2
    kept = np.isfinite(fitted.log_alpha)
    inverse = beta * phi[:, kept].T @ phi[:, kept] + np.diag(np.exp(fitted.log_alpha[kept]))
    expected = np.linalg.inv(inverse)
    np.testing.assert_allclose(
        fitted.covariance[np.ix_(kept, kept)], expected, rtol=1e-10, atol=1e-16
    )
    mean = beta * expected @ phi[:, kept].T @ y
    np.testing.assert_allclose(fitted.mean[kept], mean, rtol=1e-10)
    gamma = 1 - np.exp(fitted.log_alpha[kept]) * np.diag(expected)
    np.testing.assert_allclose(fitted.relevance[kept], gamma, rtol=1e-9)


def test_predictions_are_those_of_the_posterior(fitted):
    features, _ = rows(20, salt=2)
    phi = np.column_stack([features, np.ones(20)])
    mean, std, interval = fitted.predict(features, return_interval=0.9)
    np.testing.assert_allclose(mean, phi @ fitted.mean, rtol=1e-10)
    variance = np.einsum("ij,jk,ik->i", phi, fitted.covariance, phi)
    np.testing.assert_allclose(std, np.sqrt(variance + fitted.noise_std**2), rtol=1e-10)
    np.testing.assert_allclose(interval[:, 1], mean + stats.norm.ppf(0.95) * std, rtol=1e-9)
    function = fitted.distribution(features, noise=False)
    np.testing.assert_allclose(function.std(), np.sqrt(variance), rtol=1e-9)


def test_intervals_cover_new_rows(fitted):
    features, y = rows(4000, salt=3)
    interval = fitted.predict(features, return_interval=0.9)[2]
    inside = ((y > interval[:, 0]) & (y < interval[:, 1])).astype(float)
    # The posterior itself is one draw: its spread adds about a hundredth.
    assert_within_errors(inside.mean(), 0.9, np.sqrt(0.09 / 4000) + 0.005)


def test_draws_have_the_posterior_moments(fitted):
    features, _ = rows(3, salt=4)
    draws = fitted.draws(4000, seed=1)
    assert_mean_within_errors(draws[:, fitted.relevance > 0], fitted.mean[fitted.relevance > 0])
    values = fitted.push_forward(features, n=4000)
    assert_mean_within_errors(values, fitted.predict(features)[0])
    noisy = fitted.predictive(features, n=4000)
    spread = fitted.predict(features)[1]
    assert_within_errors(noisy.std(axis=0), spread, spread / np.sqrt(2 * 4000))


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_block_size_does_not_change_the_result(fitted, size):
    assert_same(sbnn.last_layer(*rows(), block_rows=size), fitted)


def test_iterables_of_blocks_give_the_result_of_the_array(fitted):
    features, y = rows()
    cuts = [slice(0, 17), slice(17, 400), slice(400, 600)]
    assert_same(sbnn.last_layer([(features[c], y[c]) for c in cuts]), fitted)
    assert_same(sbnn.last_layer((features[c], y[c]) for c in cuts), fitted)


def test_empty_blocks_are_skipped(fitted):
    x, y = rows()
    blocks = [(x[:0], y[:0]), (x[:250], y[:250]), (x[:0], y[:0]), (x[250:], y[250:])]
    assert_same(sbnn.last_layer(iter(blocks)), fitted)


def test_memory_mapped_files_give_the_result_of_the_array(fitted, tmp_path):
    features, y = rows()
    np.save(tmp_path / "features.npy", features)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    assert_same(sbnn.last_layer(mapped, y, block_rows=100), fitted)
    np.testing.assert_array_equal(mapped, features)


def test_dask_arrays_and_frames_give_the_result_of_the_array(fitted):
    array = pytest.importorskip("dask.array")
    frames = pytest.importorskip("dask.dataframe")
    features, y = rows()
    cut = array.from_array(features, chunks=(130, 3))
    assert_same(sbnn.last_layer(cut, array.from_array(y, chunks=77)), fitted)
    assert_same(sbnn.last_layer(cut, y), fitted)
    frame = pd.DataFrame(features, columns=list("abcdefgh")).assign(y=y)
    table = frames.from_pandas(frame, npartitions=3)
    result = sbnn.last_layer(table[list("abcdefgh")], table["y"])
    assert_same(result, fitted)
    assert result.names == (*"abcdefgh", "b")


def centres(x):
    return np.exp(-((x - np.linspace(-2, 2, 15)) ** 2))


def jax_centres(x):
    return jnp.exp(-((x - jnp.linspace(-2, 2, 15)) ** 2))


def test_feature_functions_of_numpy_and_jax_give_the_result_of_the_matrix():
    x = rng(51).uniform(-2, 2, size=(300, 1))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng(52).normal(size=300)
    matrix = sbnn.last_layer(centres(x), y)
    by_numpy, by_jax = (sbnn.last_layer(f, y, x=x) for f in (centres, jax_centres))
    assert_same(by_numpy, matrix)
    assert_same(by_jax, matrix, 1e-8)
    new = np.array([[0.3], [1.0]])
    np.testing.assert_allclose(by_jax.predict(new)[0], matrix.predict(centres(new))[0], rtol=1e-8)
    assert np.abs(by_numpy.predict(new)[0] - np.sin(2 * new[:, 0])).max() < 0.1
    blocks = [(x[:100], y[:100]), (x[100:], y[100:])]
    assert_same(sbnn.last_layer(centres, x=blocks), matrix)


def test_sample_weights_count_rows():
    features, y = rows(100)
    counts = rng(53).integers(0, 4, size=100)
    weighted = sbnn.last_layer(features, y, sample_weight=counts)
    repeated = sbnn.last_layer(np.repeat(features, counts, axis=0), np.repeat(y, counts))
    assert_same(weighted, repeated)


def test_known_noise_per_row_gives_the_evidence_of_weighted_regression():
    features, y = rows(80)
    std = rng(54).uniform(0.1, 1.0, size=80)
    result = sbnn.last_layer(features, y, noise_std=std)
    phi = np.column_stack([features, np.ones(80)])
    covariance = np.diag(std**2) + (phi * np.exp(-result.log_alpha)) @ phi.T
    exact = stats.multivariate_normal(np.zeros(80), covariance).logpdf(y)
    assert result.log_evidence == pytest.approx(exact, rel=1e-10)
    assert result.noise_std == pytest.approx(np.sqrt(np.mean(std**2)))
    wide = result.predict(features[:2], noise_std=[1.0, 10.0])[1]
    function = result.distribution(features[:2], noise=False).std()
    np.testing.assert_allclose(wide, np.hypot(function, [1.0, 10.0]))


def test_several_targets_are_several_fits():
    features, y = rows()
    both = np.column_stack([y, rows(salt=5)[1]])
    result = sbnn.last_layer(features, both)
    parts = [sbnn.last_layer(features, column) for column in both.T]
    assert result.log_evidence == pytest.approx(sum(p.log_evidence for p in parts), rel=1e-9)
    np.testing.assert_allclose(result.mean, np.concatenate([p.mean for p in parts]), atol=1e-9)
    assert result.names[:2] == ("w[1][1]", "w[2][1]")
    assert result.predict(features[:5], return_interval=0.9)[2].shape == (5, 2, 2)
    std = np.array([0.3, 0.4])
    one = sbnn.last_layer(features, both, noise_std=std)
    many = sbnn.last_layer(features, both, noise_std=np.tile(std, (len(y), 1)))
    assert one.log_evidence == pytest.approx(many.log_evidence, rel=1e-10)


def test_student_t_noise_is_the_same_from_blocks():
    features, y = rows()
    y[::40] += 20.0
    whole = sbnn.last_layer(features, y, noise="student_t")
    blocks = [(features[:250], y[:250]), (features[250:], y[250:])]
    assert_same(sbnn.last_layer(blocks, noise="student_t"), whole, 1e-8)
    assert np.abs(whole.mean[:2] - (1.0, -2.0)).max() < 0.06
    assert "lower bound" in str(whole.messages[0])
    with pytest.raises(ValueError, match="can be read once"):
        sbnn.last_layer(iter(blocks), noise="student_t")


def test_saved_result_is_read_back_bit_by_bit(fitted, tmp_path):
    features, y = rows(300)
    for name, result in (
        ("gauss", fitted),
        ("heavy", sbnn.last_layer(features, np.column_stack([y, -y]), noise="student_t")),
    ):
        result.save(tmp_path / f"{name}.nc")
        loaded = sbnn.load(tmp_path / f"{name}.nc")
        assert loaded.equals(result)
        np.testing.assert_array_equal(loaded.predict(features)[1], result.predict(features)[1])
        assert repr(loaded) == repr(result)
    with pytest.raises(TypeError, match="needs no `problem`"):
        sbnn.load(tmp_path / "gauss.nc", problem=object())


def test_damaged_file_is_an_error(fitted, tmp_path):
    path = tmp_path / "result.nc"
    fitted.save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        sbnn.load(path)


def test_loaded_result_takes_its_feature_function_again(tmp_path):
    x = rng(55).uniform(-2, 2, size=(200, 1))
    result = sbnn.last_layer(centres, np.sin(x[:, 0]) + 0.1 * rng(56).normal(size=200), x=x)
    result.save(tmp_path / "result.nc")
    loaded = sbnn.load(tmp_path / "result.nc")
    expected = result.predict(x)[0]
    np.testing.assert_array_equal(loaded.predict(centres(x))[0], expected)
    again = replace(loaded, feature_function=centres)
    np.testing.assert_array_equal(again.predict(x)[0], expected)


def test_summary_has_one_row_per_parameter(fitted):
    table = fitted.summary()
    assert list(table.index) == [*(f"w[{i}]" for i in range(1, 9)), "b"]
    assert (table["2.5%"] <= table["mean"]).all()
    assert (table["relevance"] > 0.9)[["w[1]", "w[2]", "b"]].all()
    assert str(fitted.reason) == "reached a maximum of the evidence"
    assert "9 parameters" in repr(fitted)


def test_intercept_can_be_left_out():
    features, y = rows()
    phi = np.column_stack([features, np.ones(len(y))])
    own = sbnn.last_layer(phi, y, intercept=False)
    assert own.log_evidence == pytest.approx(sbnn.last_layer(features, y).log_evidence, rel=1e-9)


def test_exact_interpolation_warns():
    features, _ = rows(30)
    with pytest.warns(ConvergenceWarning, match="grows without bound"):
        sbnn.last_layer(features, features[:, 0])


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ((np.ones((3, 2)), np.ones(4)), {}, "3 rows and 4 values of y"),
        ((np.ones(3), np.ones(3)), {}, r"shape \(n, n_columns\)"),
        ((np.ones((3, 2)), [1.0, np.nan, 2.0]), {}, "y must be finite; row 1"),
        (([[1.0], [np.inf], [2.0]], np.ones(3)), {}, "features of row 1 .* are not finite"),
        ((np.array([["a"], ["b"]]), np.ones(2)), {}, "array of numbers"),
        ((centres, np.ones(3)), {}, "needs the rows"),
        ((np.ones((3, 2)), np.ones(3)), {"x": np.ones((3, 1))}, "belongs to a feature function"),
        ((np.ones((3, 2)), np.ones(3)), {"noise": "varying"}, "'constant' or 'student_t'"),
        ((np.ones((3, 2)), np.ones(3)), {"noise": "odd"}, "must be one of"),
        ((np.ones((3, 2)), np.ones(3)), {"noise_std": -1.0}, "above zero"),
        ((np.ones((3, 2)), np.ones(3)), {"noise_std": [1.0, 2.0]}, "one number, one per output"),
        (
            (np.ones((3, 2)), np.ones(3)),
            {"noise": "student_t", "noise_std": 1.0},
            "standard deviation of Gaussian noise",
        ),
        ((np.ones((3, 2)), np.ones(3)), {"sample_weight": [1.0, 2.0]}, "one value per row"),
        ((np.ones((3, 2)), np.ones(3)), {"sample_weight": [1.0, -2.0, 1.0]}, "≥ 0 per row"),
        ((np.ones((3, 2)), np.ones(3)), {"block_rows": 0}, "whole number ≥ 1"),
        ((np.ones((1, 2)), np.ones(1)), {}, "At least two rows"),
        ((np.ones((0, 2)), np.ones(0)), {}, "At least two rows"),
        ((np.ones((3, 2)), np.ones((3, 0))), {}, "y must have the shape"),
        ((lambda x: x[:2], np.ones(3)), {"x": np.ones((3, 1))}, "features of 3 rows"),
    ],
)
def test_bad_input_is_a_clear_error(arguments, options, error):
    with pytest.raises(ValueError, match=error):
        sbnn.last_layer(*arguments, **options)


def test_missing_y_and_odd_blocks_are_clear_errors():
    with pytest.raises(TypeError, match="`y` is missing"):
        sbnn.last_layer(np.ones((3, 2)))
    with pytest.raises(TypeError, match="pairs"):
        sbnn.last_layer([np.ones((3, 2))])
    with pytest.raises(ValueError, match="same number of features"):
        sbnn.last_layer([(np.ones((3, 2)), np.ones(3)), (np.ones((3, 3)), np.ones(3))])


def test_predictions_need_as_many_features(fitted):
    with pytest.raises(ValueError, match="must have 8 features; got 2"):
        fitted.predict(np.ones((3, 2)))
    with pytest.raises(ValueError, match="needs a result with known noise"):
        fitted.predict(np.ones((3, 8)), noise_std=1.0)
    with pytest.raises(ValueError, match="probability between 0 and 1"):
        fitted.predict(np.ones((3, 8)), return_interval=95)
