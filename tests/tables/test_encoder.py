"""ColumnEncoder: one-hot categories, parts of dates, groups, and files without pickle."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from sbnn.tables import encoder as encoders
from sbnn.tables.column_types import label, read_series, read_text
from sbnn.tables.encoder import ColumnEncoder, table
from sbnn.tables.input_column import BLANK, MAX_CATEGORIES, OTHER, InputColumn


def columns(frame, encoder=None):
    types = [None] * frame.shape[1] if encoder is None else [c.type for c in encoder.columns]
    return [read_series(frame[name], known) for name, known in zip(frame, types)]


def fitted(frame):
    return ColumnEncoder.of(columns(frame))


def test_encoding_equals_dummy_columns():
    frame = pd.DataFrame({"a": np.arange(60.0), "k": list("uvwv") * 15, "two": ["x", "y"] * 30})
    encoder = fitted(frame)
    found = encoder.encode(columns(frame))
    expected = pd.get_dummies(frame, columns=["k", "two"]).drop(columns=["k_v", "two_x"])
    np.testing.assert_array_equal(found.values, expected.to_numpy(dtype=float))
    assert encoder.names(list(frame)) == ["a", "k = u", "k = w", "two = y"]
    assert encoder.groups.tolist() == [0, 1, 1, 2]
    assert not found.gaps.any()


def test_rare_categories_share_a_column():
    names = [f"c{i:02d}" for i in range(60)]
    cells = [name for k, name in enumerate(names) for _ in range(k + 1)]
    (column,) = fitted(pd.DataFrame({"k": cells})).columns
    assert len(column.level_names) == MAX_CATEGORIES
    assert column.level_names[-1] == OTHER
    assert column.level_names[:-1] == names[-MAX_CATEGORIES + 1 :]
    few = fitted(pd.DataFrame({"k": ["u"] * 50 + ["v"] * 50 + ["w"] * 4})).columns[0]
    assert few.levels == {"u": "u", "v": "v", "w": OTHER}
    np.testing.assert_array_equal(few.level_codes(), [[0, 0], [1, 0], [0, 1]])
    assert few.names == ["v", OTHER]
    rare = fitted(pd.DataFrame({"k": [f"c{i // 3}" for i in range(300)]})).columns[0]
    assert rare.level_names == rare.names == [OTHER]
    one = fitted(pd.DataFrame({"k": ["u"] * 30})).columns[0]
    assert one.names == ["u"]


def test_more_equally_frequent_categories_than_columns_are_encoded():
    frame = pd.DataFrame({"k": [f"c{i // 5:02d}" for i in range(5 * (MAX_CATEGORIES + 10))]})
    encoder = fitted(frame)
    (column,) = encoder.columns
    found = encoder.encode(columns(frame)).values
    assert found.shape[1] == len(column.names) == MAX_CATEGORIES - 1
    assert column.reference in column.level_names[:-1]
    assert (found.sum(axis=1) == (frame["k"] != column.reference)).all()


def test_category_named_like_the_rare_ones_keeps_a_column_of_its_own():
    frame = pd.DataFrame({"k": [OTHER] * 15 + ["p"] * 20 + ["q"] * 13 + ["r", "s"]})
    encoder = fitted(frame)
    (column,) = encoder.columns
    assert column.names == [OTHER, "q", f"all {OTHER}"]
    found = encoder.encode(columns(frame)).values
    np.testing.assert_array_equal(found.sum(axis=0), [15, 13, 2])


def test_unseen_categories_and_gaps_are_unknown_and_flagged():
    frame = pd.DataFrame({"a": [1.0, 2.0] * 10, "k": ["u", "v"] * 10, "n": list("pqrs") * 5})
    encoder = fitted(frame)
    new = pd.DataFrame({"a": [np.nan, 1.0, 1.0], "k": ["u", None, "z"], "n": ["p", "q", "r"]})
    found = encoder.encode(columns(new, encoder))
    assert found.missing.tolist() == [[True, False, False], [False, True, False], [False] * 3]
    assert found.unseen.tolist() == [[False] * 3, [False] * 3, [False, True, False]]
    assert found.gaps.all()
    np.testing.assert_array_equal(np.isnan(found.values).sum(axis=1), [1, 1, 1])


def test_indicator_says_that_a_cell_is_missing():
    frame = pd.DataFrame({"a": [1.0, np.nan] * 10, "k": ["u", "v"] * 10})
    encoder = fitted(frame).with_indicators(np.array([True, False]))
    found = encoder.encode(columns(frame))
    np.testing.assert_array_equal(found.values[:, 1], [0.0, 1.0] * 10)
    assert encoder.names(["a", "k"]) == ["a", "a, missing", "k = v"]
    assert encoder.is_indicator.tolist() == [False, True, False]
    numbers = ColumnEncoder.of_numbers(frame[["a"]].to_numpy())
    numbers = numbers.with_indicators(np.array([True]))
    np.testing.assert_array_equal(
        numbers.encode_numbers(frame[["a"]].to_numpy()).values, found.values[:, :2]
    )


@pytest.mark.parametrize(
    ("dates", "parts"),
    [
        (pd.date_range("2020-01-01", periods=10, freq="D"), ("elapsed",)),
        (pd.date_range("2020-01-01", periods=30, freq="D"), ("elapsed", "week")),
        (pd.date_range("2020-01-01", periods=30, freq="7D"), ("elapsed",)),
        (pd.date_range("2020-01-01", periods=500, freq="D"), ("elapsed", "season", "week")),
        (pd.date_range("2020-01-01", periods=30, freq="5h"), ("elapsed", "day")),
    ],
)
def test_dates_have_the_parts_that_the_table_covers(dates, parts):
    encoder = fitted(pd.DataFrame({"t": dates}))
    assert encoder.columns[0].parts == parts
    values = encoder.encode(columns(pd.DataFrame({"t": dates}), encoder)).values
    days = (dates - pd.Timestamp(0)) / pd.Timedelta(days=1)
    np.testing.assert_allclose(values[:, 0], days)
    for k in range(1, values.shape[1], 2):  # points on circles
        np.testing.assert_allclose((values[:, k : k + 2] ** 2).sum(axis=1), 1.0)
    if "week" in parts:
        k = values.shape[1] - 2
        np.testing.assert_allclose(values[:-7, k:], values[7:, k:], atol=1e-9)


def test_encoder_survives_json():
    frame = pd.DataFrame(
        {
            "a": [1.0, np.nan] * 20,
            "k": pd.Categorical([1, 2, 3, 4] * 10),
            "t": pd.date_range("2020-01-01", periods=40, freq="13h"),
            "nothing": np.nan,
        }
    )
    encoder = fitted(frame).with_indicators(np.array([True, False, False, False]))
    again = ColumnEncoder.from_json(json.loads(json.dumps(encoder.as_json())))
    assert again == encoder
    np.testing.assert_array_equal(
        again.encode(columns(frame)).values, encoder.encode(columns(frame)).values
    )
    assert table(encoder, list(frame))["kind"].tolist() == ["number", "category", "date", "empty"]
    assert table(encoder, list(frame)).loc["a"].tolist() == ["number", 0, 20, True, 2]


def test_columns_without_values_are_constant_and_never_gaps():
    frame = pd.DataFrame({"nothing": [None] * 10, "a": np.arange(10.0)})
    encoder = fitted(frame)
    for new in (frame, frame.assign(nothing=1.0)):
        found = encoder.encode(
            [c._replace(missing=new["nothing"].isna().to_numpy()) for c in columns(frame)[:1]]
            + columns(frame)[1:]
        )
        assert not found.gaps.any()
        np.testing.assert_array_equal(found.values[:, 0], 0.0)


def test_numbers_that_are_codes_match_however_they_are_written():
    assert {label(v) for v in (3, 3.0, "3", "3.0", np.float64(3))} == {"3"}
    encoder = ColumnEncoder((InputColumn("category", counts={"1": 10, "2": 10}),))
    floats = pd.DataFrame({"k": [1.0, 2.0, np.nan]})  # as pandas reads codes with a gap
    found = encoder.encode(columns(floats, encoder))
    np.testing.assert_array_equal(found.values[:, 0], [0.0, 1.0, np.nan])
    assert not found.unseen.any()


def test_the_empty_cell_is_a_category_if_most_cells_are_empty():
    """A remark that is rarely made; filling the blanks would invent remarks."""
    cells = ["late", "", "", "", "crack", "crack", "", "", "late", "", "", ""]
    column = read_text(cells)
    encoder = ColumnEncoder.of([column])
    encoded = encoder.encode([column])
    assert encoder.columns[0].reference == BLANK
    assert encoder.names(["remark"]) == ["remark = crack", "remark = late"]
    assert not encoded.missing.any()
    np.testing.assert_array_equal(encoded.values[:2], [[0.0, 1.0], [0.0, 0.0]])
    few = ColumnEncoder.of([read_text(["late", "crack", ""] * 4)])
    assert not few.columns[0].has_blanks  # negative control: a third is missing
    frame = pd.DataFrame({"remark": pd.Categorical([None, "late"])})
    assert encoder.with_blanks(frame)["remark"].tolist() == [BLANK, "late"]


def with_hats(values):
    plain = ColumnEncoder.of_numbers(values)
    return plain.with_hats(plain.encode_numbers(values))


def test_codes_get_hat_functions_that_span_all_functions_of_them():
    """Any function of the codes, linear between them, is a sum of the inputs and a constant."""
    values = np.tile([2.0, 3.0, 4.0, 5.0, 6.0], 12)[:, None]
    encoder = with_hats(values)
    assert encoder.names(["k"]) == ["k", "k, near 3", "k, near 4", "k, near 5"]
    assert encoder.groups.tolist() == [0, 0, 0, 0]
    grid = np.array([1.0, 2.0, 2.25, 3.5, 5.9, 6.0])
    wanted = np.array([0.3, -1.0, 2.0, 0.7, 0.1])
    at = encoder.encode_numbers(values).values
    weights = np.linalg.lstsq(
        np.c_[at, np.ones(len(at))], wanted[values[:, 0].astype(int) - 2], rcond=None
    )[0]
    found = np.c_[encoder.encode_numbers(grid[:, None]).values, np.ones(len(grid))] @ weights
    np.testing.assert_allclose(found[1:], np.interp(grid[1:], np.arange(2.0, 7.0), wanted))
    # Beyond the codes, the number alone goes on.
    np.testing.assert_array_equal(encoder.encode_numbers(grid[:1, None]).values, [[1, 0, 0, 0]])


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.0] * 30,  # two values: a line is enough
        [0.1, 0.2, 0.3] * 30,  # measured
        [2.0, 4.0, 8.0] * 30,  # not in a row
        [1.0, 2.0, 3.0] * 30 + [4.0] * 9,  # one in too few rows
        list(range(9)) * 20,  # too many
    ],
)
def test_other_numbers_get_no_hat_functions(values):
    values = np.array(values, dtype=float)[:, None]
    assert with_hats(values).plain


def test_many_columns_get_no_hat_functions(monkeypatch):
    values = np.tile(np.arange(3.0), 20)[:, None].repeat(3, axis=1)
    assert len(with_hats(values).groups) == 6
    monkeypatch.setattr(encoders, "MAX_INPUTS", 5)
    assert with_hats(values).plain


def test_hat_functions_of_missing_cells_are_missing_and_survive_a_file():
    values = np.tile([1.0, 2.0, 3.0, np.nan], 15)[:, None]
    encoder = with_hats(values).with_indicators(np.array([True]))
    again = ColumnEncoder.from_json(json.loads(json.dumps(encoder.as_json())))
    assert again == encoder
    found = again.encode_numbers(values[:4]).values
    np.testing.assert_array_equal(found, [[1, 0, 0], [2, 1, 0], [3, 0, 0], [np.nan, np.nan, 1]])
    frame = again.encode(columns(pd.DataFrame({"k": values[:4, 0]}))).values
    np.testing.assert_array_equal(frame, found)
