"""Rows in a standard form: weights, repetitions and the order of rows."""

from __future__ import annotations

import numpy as np
import pytest

from sbnn import SparseBNNRegressor
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import initial, log_evidence, relax, update_noise
from sbnn.likelihoods import Gaussian, StudentT, VaryingGaussian, VaryingStudentT
from sbnn.regressor.data.rows import Rows, check_weights

RNG = np.random.default_rng(4)
X = RNG.uniform(-2, 2, size=(40, 2))
Y = np.sin(X[:, 0]) + 0.2 * RNG.normal(size=40)
COUNTS = RNG.integers(0, 4, size=40)
GRID = RNG.uniform(-3, 3, size=(30, 2))


def fitted(x, y, noise="auto", **arguments):
    model = SparseBNNRegressor((4,), noise=noise, n_starts=4, random_state=0)
    return model.fit(x, y, **arguments)


def same(one, other):
    for a, b in zip(one.predict(GRID, True, 0.9), other.predict(GRID, True, 0.9)):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(one.log_evidence_, other.log_evidence_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("noise", ["auto", "constant", "varying_student_t"])
def test_whole_weights_are_the_same_as_repeated_rows(noise):
    weighted = fitted(X, Y, noise, sample_weight=COUNTS)
    repeated = fitted(np.repeat(X, COUNTS, axis=0), np.repeat(Y, COUNTS), noise)
    same(weighted, repeated)
    plain = fitted(X[COUNTS > 0], Y[COUNTS > 0], noise)
    assert abs(plain.predict(GRID) - weighted.predict(GRID)).max() > 1e-3  # weights matter


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_order_of_rows_changes_nothing():
    order = RNG.permutation(len(Y))
    one, other = fitted(X, Y), fitted(X[order], Y[order])
    np.testing.assert_array_equal(one.predict(GRID), other.predict(GRID))


@pytest.mark.parametrize(
    "likelihood", [Gaussian(), StudentT(), VaryingGaussian(), VaryingStudentT()], ids=repr
)
def test_sums_over_weighted_rows_equal_sums_over_repeated_rows(likelihood):
    """A few steps of the Laplace engine on both forms of the table."""
    counts, found, start = np.maximum(COUNTS, 1), [], None
    again = np.repeat(np.arange(40), counts)
    for index, weights in ((np.arange(40), counts.astype(float)), (again, None)):
        model = NetworkModel(
            x_t=X[index].T, y_t=Y[None, index], sizes=(2, 3, len(likelihood.outputs)),
            likelihood=likelihood, weights=weights,
        )  # fmt: skip
        start = start or initial(model, np.random.default_rng(0))
        opt = start.copy()
        for _ in range(3):
            term, precision = relax(model, opt, 5, tol=0.0)
            update_noise(model, opt, term, precision.relevance(), precision)
        value, precision = log_evidence(model, opt)
        left_out = model.loo_log_density(opt.phi, opt.layout, opt.noise, precision)
        total = (left_out * (1.0 if weights is None else weights)).sum()
        found.append((value, total, *opt.phi, *opt.noise.ravel()))
    # Variances of the outputs, on which varying noise depends, have single precision.
    tol = 1e-4 if likelihood.needs_row_variances else 1e-7
    np.testing.assert_allclose(found[0], found[1], rtol=tol, atol=tol)


def test_weights_of_a_half_count_half():
    """Twice the rows at half the weight are the same table."""
    rows = Rows.of(np.tile(X, (2, 1)), np.tile(Y, 2)[:, None], None, np.full(80, 0.5))
    assert rows.weights is None
    assert len(rows.x) == 40


def test_negative_zero_is_zero():
    rows = Rows.of(np.array([[0.0], [-0.0]]), np.zeros((2, 1)))
    np.testing.assert_array_equal(rows.weights, [2.0])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(40, -1.0), "row 0 .counted from 0. has -1"),
        (np.r_[np.ones(39), np.nan], "row 39 .counted from 0. has nan"),
        (np.r_[np.ones(39), np.inf], "row 39 .counted from 0. has inf"),
        (np.ones(39), r"one number per row, 40 in all; got shape \(39,\)"),
        (np.zeros(40), "above zero for at least two rows; it is zero for 40 of 40 weights"),
        (["a"] * 40, "must hold numbers"),
        (np.full(40, 1e-300), "zero or at least 1e-09; row 0 .counted from 0. has 1e-300"),
        (np.r_[np.ones(39), 1e12], r"at most 1e\+09 times; row 39 .counted from 0. has 1e\+12"),
    ],
)
def test_impossible_weights_raise(weights, message):
    with pytest.raises(ValueError, match=message):
        fitted(X, Y, sample_weight=weights)


def test_one_number_is_the_weight_of_every_row():
    np.testing.assert_array_equal(check_weights(2, 3), [2.0, 2.0, 2.0])


def test_sampling_needs_whole_weights():
    rows = Rows.of(X, Y[:, None], None, np.full(40, 1.5))
    with pytest.raises(ValueError, match="whole numbers"):
        rows.repeated()
    assert len(Rows.of(X, Y[:, None], None, np.full(40, 2.0)).repeated().x) == 80


# ------------------------------------------------------------------- known standard errors per row
def test_rows_with_small_errors_count_more():
    x = np.linspace(-1, 1, 40)[:, None]
    errors = np.where(np.arange(40) % 2, 0.05, 2.0)
    y = x[:, 0] + errors * np.random.default_rng(0).normal(size=40)
    known = SparseBNNRegressor((), random_state=0, n_starts=2).fit(x, y, noise_std=errors)
    wrong = SparseBNNRegressor((), random_state=0, n_starts=2).fit(x, y, noise_std=errors[::-1])
    error = lambda model: np.sqrt(np.mean((model.predict(x) - x[:, 0]) ** 2))
    assert error(known) < 0.03 < 0.2 < error(wrong)
    assert str(known.noise_reason_) == "its standard deviation is known"
    expected = np.sqrt((errors**2).mean())
    np.testing.assert_allclose(known.noise_std_at(x), expected, rtol=1e-9)
    np.testing.assert_allclose(known.noise_std_, expected, rtol=1e-9)


def test_linear_fit_with_known_errors_has_the_exact_evidence():
    """Against the multivariate normal density of y at the fitted precisions."""
    from scipy import stats

    x = np.linspace(-1, 1, 30)[:, None]
    errors = np.linspace(0.1, 0.5, 30)
    y = 1.0 + x[:, 0] + errors * np.random.default_rng(1).normal(size=30)
    model = SparseBNNRegressor((), random_state=0, n_starts=2).fit(x, y, noise_std=errors)
    z, t = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    design = np.column_stack([z, np.ones(30)])
    alpha = np.exp(model.log_alpha_)
    cov = design @ np.diag(1 / alpha) @ design.T + np.diag((errors / y.std()) ** 2)
    truth = stats.multivariate_normal(np.zeros(30), cov).logpdf(t) - 30 * np.log(y.std())
    np.testing.assert_allclose(model.log_evidence_, truth, atol=1e-4)


def test_noise_of_new_rows_counts_repetitions():
    errors, counts = np.linspace(0.1, 1.0, 40), np.arange(1, 41)
    model = fitted(X, Y, noise_std=errors, sample_weight=counts)
    expected = np.sqrt(np.average(errors**2, weights=counts))
    np.testing.assert_allclose(model.noise_std_at(GRID), expected, rtol=1e-9)


def test_new_rows_can_have_known_errors():
    errors = np.full(40, 0.2)
    model = fitted(X, Y, noise_std=errors)
    function = model.predictive(GRID, noise=False).std()
    _, std = model.predict(GRID, return_std=True, noise_std=np.full(30, 3.0))
    np.testing.assert_allclose(std, np.hypot(function, 3.0), rtol=1e-9)
    with pytest.raises(ValueError, match="fitted with known standard errors"):
        fitted(X, Y, "constant").predict(GRID, noise_std=1.0)


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        (np.r_[np.ones(39), 0.0], "finite and above zero; got 0 in row 39"),
        (np.r_[-1.0, np.ones(39)], "finite and above zero; got -1 in row 0"),
        (np.r_[np.ones(39), np.nan], "finite and above zero; got nan in row 39"),
        (np.ones(7), r"one number per row, shape \(40,\); got shape \(7,\)"),
        (0.5, "one number per row"),
    ],
)
def test_impossible_standard_errors_raise(errors, message):
    with pytest.raises(ValueError, match=message):
        fitted(X, Y, noise_std=errors)


def test_known_errors_contradict_other_noise():
    with pytest.raises(ValueError, match="noise='constant'"):
        fitted(X, Y, "student_t", noise_std=np.ones(40))
    with pytest.raises(ValueError, match="not to both"):
        SparseBNNRegressor(noise_std=0.2).fit(X, Y, noise_std=np.ones(40))
