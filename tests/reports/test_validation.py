"""Predictions of unseen rows: folds, leave-one-out by importance weights, scores of mixtures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sbnn.regressor.options import infeasible
from sbnn.reports import validation
from sbnn.reports.fit import fit
from sbnn.scores import NormalMixture


class Mean:
    """Predicts the mean and standard deviation of its training rows, and remembers them."""

    def fit(self, x, y):
        self.seen = set(x["row"])
        self.mean, self.std = y.mean(axis=0), y.std(axis=0)
        return self

    def predictive(self, x):
        assert not self.seen & set(x["row"])
        shape = (1, len(x), *np.shape(self.mean))
        return NormalMixture(np.ones(shape), np.full(shape, self.mean), self.std)

    def noise_std_at(self, x):
        return np.broadcast_to(0.8 * self.std, (len(x), *np.shape(self.mean)))


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_every_row_is_predicted_once_by_a_fit_that_did_not_see_it(n_outputs):
    y = np.random.default_rng(0).normal(size=(13, n_outputs))
    folds = []
    held = validation.cross_validate(
        Mean, pd.DataFrame({"row": range(13)}), y, 5, on_fold=lambda k, n: folds.append((k, n))
    )
    np.testing.assert_array_equal(held.rows, np.arange(13))
    np.testing.assert_array_equal(held.y, y)
    assert held.mean.shape == held.pit.shape == y.shape
    assert folds == [(k, 5) for k in range(6)]
    assert "5-fold" in held.how


def test_single_fold_of_a_long_table_is_labelled_held_out():
    y = np.zeros((50, 1)) + np.arange(50)[:, None]
    held = validation.cross_validate(Mean, pd.DataFrame({"row": range(50)}), y, 5, n_run=1)
    assert len(held.rows) == 10
    assert held.how.startswith("10 held-out rows")


class Draws:
    """Posterior draws of a constant under a flat prior and known noise: N(ȳ, σ²/n)."""

    def __init__(self, y, noise, n_draws, rng):
        self.shape = (n_draws, len(y))
        draws = rng.normal(y.mean(), noise / np.sqrt(len(y)), size=(n_draws, 1))
        self.means, self.noise = np.broadcast_to(draws, self.shape), noise

    def predictive(self, x):
        return NormalMixture.of_draws(self.means, self.noise)

    def noise_std_at(self, x):
        return np.full(self.shape[1], self.noise)


def test_leave_one_out_agrees_with_the_closed_form():
    """p(yᵢ|y₋ᵢ) = N(ȳ₋ᵢ, σ² + σ²/(n − 1)) for a constant under a flat prior."""
    rng = np.random.default_rng(1)
    y = rng.normal(2.0, 0.5, size=30)
    held = validation.leave_one_out(Draws(y, 0.5, 8000, rng), y, y[:, None])
    others = (y.sum() - y) / (len(y) - 1)
    exact = stats.norm(others, 0.5 * np.sqrt(1 + 1 / (len(y) - 1)))
    # The Monte Carlo error of a mean of 8000 draws with spread 0.09 is 0.001; weights double it.
    np.testing.assert_allclose(held.mean[:, 0], others, atol=0.01)
    np.testing.assert_allclose(held.log_density[:, 0], exact.logpdf(y), atol=0.02)
    np.testing.assert_allclose(held.pit[:, 0], exact.cdf(y), atol=0.01)
    np.testing.assert_allclose(held.lower[:, 0], exact.ppf(0.025), atol=0.02)
    assert held.how.startswith("leave-one-out")


def test_leave_one_out_differs_from_in_sample_prediction():
    """Negative control: an outlier is judged more severely when it is left out."""
    rng = np.random.default_rng(2)
    y = np.append(rng.normal(size=9), 4.0)
    model = Draws(y, 1.0, 4000, rng)
    inside = stats.norm(y.mean(), np.sqrt(1 + 0.1)).logpdf(4.0)
    assert validation.leave_one_out(model, y, y[:, None]).log_density[-1, 0] < inside - 0.2


def test_two_outputs_are_left_out_together():
    """With equal outputs, a row counts twice: as if its noise were √2 smaller."""
    rng = np.random.default_rng(5)
    y = rng.normal(size=12)
    model = Draws(y, 1.0, 4000, rng)
    one = model.predictive(None)
    both = NormalMixture.of_draws(np.stack([one.means] * 2, axis=2), 1.0)
    model.predictive, model.noise_std_at = lambda x: both, lambda x: np.ones((12, 2))
    held = validation.leave_one_out(model, y, np.stack([y, y], axis=1))
    assert held.mean.shape == (12, 2)
    np.testing.assert_allclose(held.mean[:, 0], held.mean[:, 1])
    # The draws weigh every row with precision 1 and its removal with −2: −1 is left.
    expected = (y.sum() - 2 * y) / (12 - 2)
    np.testing.assert_allclose(held.mean[:, 0], expected, atol=0.05)


def test_scores_match_their_definitions():
    y = np.array([[0.0], [1.0], [2.0], [3.0]])
    mean = y + np.array([[0.1], [-0.1], [0.1], [-0.1]])
    lower, upper = mean - 0.05, mean + np.array([[1], [1], [1], [0.2]])
    held = validation.HeldOut("", np.arange(4), y, mean, y, lower, upper, y, -y, 2 * y, y, y)
    scores = held.scores()
    assert scores["rmse"] == pytest.approx([0.1])
    assert scores["r2"] == pytest.approx([1 - 0.01 / 1.25])
    assert scores["nlpd"] == [1.5]
    assert scores["coverage_95"] == [0.5]


def test_sampling_is_feasible_for_small_networks_only():
    assert not any(infeasible((2,), 1, 1).values())
    large = infeasible((20,), 3, 1)
    assert large["laplace_nsbl"] == large["laplace"] == ""
    assert large["nsbl"] == ""
    assert "101 parameters are more than 30" in large["standard"]


def test_constant_target_has_no_r2():
    y = np.column_stack([np.arange(4.0), np.ones(4)])
    held = validation.HeldOut("", np.arange(4), y, y + 0.1, y, y, y, y, y, y, y, y)
    first, second = held.scores()["r2"]
    assert first == pytest.approx(1 - 0.01 / 1.25)
    assert np.isnan(second)


def test_std_of_held_out_rows_has_two_parts():
    y = np.random.default_rng(0).normal(size=(13, 2))
    held = validation.cross_validate(Mean, pd.DataFrame({"row": range(13)}), y, 5)
    np.testing.assert_allclose(held.noise_std, 0.8 * held.std)
    np.testing.assert_allclose(held.noise_std**2 + held.function_std**2, held.std**2)


class Known(Mean):
    """Keeps the errors and weights it was fitted with; predicts with those of the new rows."""

    def fit(self, x, y, noise_std, sample_weight):
        # Row i has the error 1 + i and the weight 2 + i.
        np.testing.assert_array_equal(noise_std, 1.0 + x[["row"]].to_numpy())
        np.testing.assert_array_equal(sample_weight, 2.0 + x["row"].to_numpy())
        return super().fit(x, y)

    def predictive(self, x, noise_std):
        mean = np.full((1, len(x)), self.mean)
        return NormalMixture(np.ones_like(mean), mean, noise_std[:, 0])


def test_refits_and_held_out_rows_use_their_own_errors_and_weights():
    x = pd.DataFrame({"row": range(10)})
    y = np.random.default_rng(0).normal(size=(10, 1))
    known = validation.PerRow(1.0 + x.to_numpy(), 2.0 + x["row"].to_numpy())
    held = validation.cross_validate(Known, x, y, 5, per_row=known)
    np.testing.assert_allclose(held.std, known.noise_std)
    np.testing.assert_array_equal(held.noise_std, known.noise_std)
    np.testing.assert_array_equal(held.function_std, 0.0)
    np.testing.assert_array_equal(held.weights, known.weights)
    expected = stats.norm(held.mean, known.noise_std).logpdf(y)
    np.testing.assert_allclose(held.log_density, expected)


def test_weights_count_rows_in_the_scores_as_repetitions_do():
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=(6, 2)) for _ in range(10)]
    weights = np.array([1, 2, 3, 1, 1, 4])
    held = validation.HeldOut("", np.arange(6), *arrays, weights=weights)
    repeated = validation.HeldOut(
        "", np.arange(12), *(np.repeat(a, weights, axis=0) for a in arrays)
    )
    for name, values in held.scores().items():
        np.testing.assert_allclose(values, repeated.scores()[name])


def test_coverage_counts_rows_by_their_weights():
    low, high = np.zeros((4, 1)), np.ones((4, 1))
    y = np.array([[0.5], [0.5], [2.0], [0.5]])
    arrays = dict.fromkeys(("mean", "std", "pit", "log_density", "crps"), low)
    make = lambda weights: validation.HeldOut(
        "", np.arange(4), y, lower=low, upper=high, noise_std=low, function_std=low,
        weights=weights, **arrays,
    )  # fmt: skip
    assert make(None).coverage(0) == (0.75, 4)
    assert make(np.full(4, 7.0)).coverage(0) == (0.75, 4)
    share, n = make(np.array([1.0, 1.0, 2.0, 0.0])).coverage(0)
    assert (share, n) == (0.5, 3)  # 4²/6 = 2.7
    assert make(None).coverage(0, np.array([2, 3])) == (0.5, 2)


def test_standard_errors_match_their_definition_without_weights():
    rng = np.random.default_rng(4)
    held = validation.HeldOut("", np.arange(9), *(rng.normal(size=(9, 1)) for _ in range(10)))
    expected = held.log_density.std(axis=0) / 3
    np.testing.assert_allclose(validation.standard_errors(held)["nlpd"], expected)
    one = validation.HeldOut(**{**vars(held), "weights": np.full(9, 5.0)})
    np.testing.assert_allclose(validation.standard_errors(one)["nlpd"], expected)


def test_left_out_row_of_weight_two_is_removed_twice():
    """p(y₁|others) for a constant: removing row 1 of weight 2 leaves n − 2 of n rows."""
    rng = np.random.default_rng(6)
    y = rng.normal(size=12)
    weights = np.ones(11)
    weights[0] = 2.0
    y[1] = y[0]  # the draws see row 0 twice
    model = Draws(y, 1.0, 8000, rng)
    model.means = model.means[:, :11]
    model.shape = (8000, 11)
    rows = np.delete(y, 1)[:, None]
    held = validation.leave_one_out(model, rows, rows, validation.PerRow(weights=weights))
    assert held.mean[0, 0] == pytest.approx(y[2:].mean(), abs=0.03)
    assert held.mean[1, 0] == pytest.approx((y.sum() - y[2]) / 11, abs=0.03)


def test_quick_fit_scores_about_100_rows_and_says_so():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.uniform(-1, 1, size=300)})
    data["y"] = data["a"] + 0.1 * rng.normal(size=300)
    options = {
        "hidden_layer_sizes": (1,), "method": "laplace", "noise": "constant", "n_starts": 1,
        "random_state": 0,
    }  # fmt: skip
    folds = []
    found = fit(
        data, ["a"], ["y"], options, quick=True, on_fold=lambda done, n: folds.append((done, n))
    )
    assert folds == [(0, 2), (1, 2), (2, 2)]
    assert len(found.held_out.rows) == 120
    assert found.record.validation.startswith("120 held-out rows, each predicted by a fit that did")
    assert "without --quick" in found.record.validation
    few = fit(data.head(60), ["a"], ["y"], options, quick=True)
    assert len(few.held_out.rows) == 60  # small tables are quick anyway, and need every row
    assert "quick" not in few.record.validation
