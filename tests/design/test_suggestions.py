"""`SparseBNNRegressor.suggest`: rows, ranges, goals, errors."""

import numpy as np
import pandas as pd
import pytest

from sbnn import SparseBNNRegressor

QUICK = {
    "n_starts": 2,
    "noise": "constant",
    "random_state": 0,
    "method_options": {"group_iterations": 15, "iterations": 10, "neuron_moves": 0},
}


@pytest.fixture(scope="module")
def gap():
    """A parabola with a gap between −1 and 1, and a minimum of the target at 0."""
    rng = np.random.default_rng(0)
    x = np.r_[rng.uniform(-2, -1, 25), rng.uniform(1, 2, 25)][:, None]
    return SparseBNNRegressor((4,), **QUICK).fit(x, x[:, 0] ** 2 + 0.05 * rng.normal(size=50))


@pytest.fixture(scope="module")
def typed():
    rng = np.random.default_rng(1)
    n = 60
    frame = pd.DataFrame(
        {
            "heat": rng.uniform(20, 30, n).round(2),
            "parts": rng.integers(1, 6, n),
            "city": rng.choice(["Rome", "Oslo", "Bonn"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
            "on": rng.random(n) > 0.5,
        }
    )
    y = 0.1 * frame["heat"] + frame["parts"] * (frame["city"] == "Rome") + frame["on"]
    return SparseBNNRegressor((3,), **QUICK).fit(frame, y + 0.1 * rng.normal(size=n)), frame


def test_suggestions_lie_where_the_function_is_uncertain(gap):
    found = gap.suggest(2)
    assert (found[0].abs() < 1).all()
    assert found["gain"].between(0, 1).all()
    mean, std = gap.predict(found[[0]].to_numpy(), return_std=True)
    np.testing.assert_allclose(found[["predicted_mean", "predicted_std"]], np.c_[mean, std])
    grid = np.linspace(-2, 2, 50)[:, None]
    assert found["predicted_std"].iloc[0] > np.median(gap.predict(grid, return_std=True)[1])


def test_the_same_seed_gives_the_same_rows(gap):
    pd.testing.assert_frame_equal(gap.suggest(3), gap.suggest(3))


def test_minimum_and_maximum_are_looked_for_on_their_own_sides(gap):
    """Between 1 and 2 the parabola is known and rises."""
    low = gap.suggest(1, goal="minimum", ranges={0: (1.0, 2.0)})
    high = gap.suggest(1, goal="maximum", ranges={0: (1.0, 2.0)})
    assert low.loc[0, 0] < 1.2
    assert high.loc[0, 0] > 1.8


def test_columns_keep_their_types_and_ranges(typed):
    model, frame = typed
    found = model.suggest(8)
    assert list(found.columns[:5]) == list(frame.columns)
    assert found["heat"].between(frame["heat"].min() - 0.01, frame["heat"].max() + 0.01).all()
    assert found["parts"].isin(range(1, 6)).all()
    assert found["city"].isin(["Rome", "Oslo", "Bonn"]).all()
    assert found["day"].between(frame["day"].min(), frame["day"].max()).all()
    assert (found["day"].dt.normalize() == found["day"]).all()
    assert found["on"].dtype == bool
    assert not found.iloc[:, :5].duplicated().any()


def test_given_ranges_are_respected(typed):
    model, _ = typed
    ranges = {
        "heat": (25.0, 25.5), "parts": (2, 3), "city": ["Oslo"],
        "day": ("2024-03-01", "2024-03-05"), "on": (1, 1),
    }  # fmt: skip
    found = model.suggest(6, ranges=ranges)
    assert found["heat"].between(25.0, 25.5).all()
    assert found["parts"].isin([2, 3]).all()
    assert (found["city"] == "Oslo").all()
    assert found["day"].between("2024-03-01", "2024-03-05").all()
    assert found["on"].all()


@pytest.mark.parametrize("yes", ["yes", ["yes"], [True], True, 1.0])
def test_one_value_is_held(typed, yes):
    model, _ = typed
    found = model.suggest(3, ranges={"on": yes, "heat": 22.5, "day": "2024-02-01"})
    assert found["on"].all()
    assert (found["heat"] == 22.5).all()
    assert (found["day"] == pd.Timestamp("2024-02-01")).all()


def test_candidates_are_chosen_from_and_filtered_by_ranges(typed):
    model, frame = typed
    found = model.suggest(4, candidates=frame, ranges={"parts": (1, 2)})
    assert (found["parts"] <= 2).all()
    rows = frame.loc[found["index"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(found[list(frame)], rows)
    assert not found["index"].duplicated().any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "`n` must be a whole number"),
        ({"goal": "best"}, "`goal` must be one of 'accuracy'"),
        ({"ranges": {"height": (0, 1)}}, "names the column 'height'"),
        ({"ranges": {"Heats": (0, 1)}}, "'Heats', .* did you mean 'heat'"),
        ({"ranges": {"heat": (2, 1)}}, "low ≤ high"),
        ({"ranges": {"heat": ("hot", 1)}}, "takes numbers; got 'hot'"),
        ({"ranges": {"day": ("soon", "2024-01-01")}}, "takes dates; got 'soon'"),
        ({"ranges": {"city": ["Paris"]}}, "categories of the fit .* got 'Paris'"),
        (
            {"ranges": {"parts": (1, 1), "city": ["Oslo"], "heat": (20, 20), "on": (0, 0),
                        "day": ("2024-02-01", "2024-02-02")}},
            "There are 2 different candidates",
        ),
    ],
)  # fmt: skip
def test_bad_arguments_are_one_clear_line(typed, arguments, message):
    with pytest.raises(ValueError, match=message):
        typed[0].suggest(**arguments)


def test_candidates_with_missing_cells_are_refused(typed):
    model, frame = typed
    frame = frame.assign(heat=frame["heat"].where(frame.index != 7))
    with pytest.raises(ValueError, match="row 7 has a missing cell"):
        model.suggest(candidates=frame)
    with pytest.raises(ValueError, match="row 7 has a missing cell"):
        model.suggest(candidates=frame.loc[[3, 7]])  # the index is an array of integers


def test_compact_models_have_nothing_to_start_from(gap):
    with pytest.raises(ValueError, match="compact model holds no training rows"):
        gap.compact().suggest()


def test_several_targets_are_measured_together_but_not_optimised(gap):
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (40, 1))
    y = np.c_[x[:, 0] ** 2, np.sin(2 * x[:, 0])] + 0.05 * rng.normal(size=(40, 2))
    model = SparseBNNRegressor((3,), **QUICK).fit(x, y)
    found = model.suggest(2)
    assert {"predicted_mean_0", "predicted_std_1"} <= set(found.columns)
    with pytest.raises(ValueError, match="needs a model with one target"):
        model.suggest(goal="minimum")
