"""Checks on DataFrames: duplicated and near-duplicated inputs are found, and only those."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sbnn.tables.column_checks import (
    about_alike_categories,
    about_repeated_columns,
    about_row_numbers,
    about_similar_columns,
    repeated_columns,
)


def table(n=40, d=6, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, d))
    return pd.DataFrame(x, columns=list("abcdefgh")[:d])


def by_all_pairs(X):
    """Pairs whose correlation is ±1, by NumPy's own formula."""
    r = np.abs(np.corrcoef(X.to_numpy().T))
    return {(i, j) for i in range(len(r)) for j in range(i) if 1 - r[i, j] < 1e-10}


def test_columns_identical_up_to_scale_and_offset_are_found():
    x = table()
    assert repeated_columns(x) == []
    x["f"] = x["b"]
    x["fahrenheit"] = 1.8 * x["a"] + 32
    x["minus"] = -1e-9 * x["a"]
    x["constant"] = x["zero"] = 0.0
    groups = repeated_columns(x)
    assert groups == [[0, 6, 7], [1, 5]]
    pairs = {(i, j) for group in groups for i in group for j in group if j < i}
    assert by_all_pairs(x.drop(columns=["constant", "zero"])) == pairs


@pytest.mark.parametrize("noise", [1e-5, 1e-2])
def test_columns_with_small_differences_are_not_identical(noise):
    """Negative control, with the rounding of single precision on the other side."""
    x = table(d=1)
    x["b"] = x["a"] + noise * np.random.default_rng(1).normal(size=len(x))
    assert repeated_columns(x) == []
    x["c"] = x["a"].astype(np.float32)
    assert repeated_columns(x) == [[0, 2]]


def test_many_copies_among_many_columns_are_found():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, size=(50, 300)).astype(float)
    copies = rng.permutation(300)[:40].reshape(20, 2)
    for k, (i, j) in enumerate(copies):
        x[:, j] = x[:, i] if k % 2 else 1.0 - x[:, i]
    frame = pd.DataFrame(x)
    pairs = {(i, j) for g in repeated_columns(frame) for i in g for j in g if j < i}
    assert pairs == by_all_pairs(frame)
    assert len(pairs) >= 20


def test_huge_and_tiny_numbers_are_compared():
    a = np.array([1.0, 2.0, 4.0, 7.0, 1.5])
    x = pd.DataFrame({"a": a, "huge": a * 2e307, "tiny": a * 1e-300, "other": a**2})
    assert repeated_columns(x) == [[0, 1, 2]]


def test_two_rows_are_too_few_to_call_columns_identical():
    assert repeated_columns(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, -4.0]})) == []


def test_warnings_name_the_inputs():
    x = table(d=2)
    assert about_repeated_columns(x) == []
    x["c"], x["d"] = x["a"], 2 * x["b"]
    end = ": the fit cannot tell which of them matters. Keep only one."
    assert about_repeated_columns(x) == [
        "The inputs “a”, “c” are identical" + end,
        "The inputs “b”, “d” are identical up to scale and offset" + end,
    ]
    assert about_repeated_columns(x, n_shown=1)[1] == "And 1 more such group of inputs."


def test_warnings_about_similar_inputs_give_their_correlation():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 400))
    X = pd.DataFrame({"a": a, "b": b, "near": -2 * a + 0.02 * c, "same": 3 * b + 1, "c": c})
    (message,) = about_similar_columns(X)
    r = np.corrcoef(X["a"], X["near"])[0, 1]
    assert -1 < r < -0.9999
    assert f"“a” and “near” are nearly the same (correlation −{-r:.4f})" in message
    assert about_similar_columns(X.assign(near=a + 0.5 * c)) == []  # correlation 0.9
    assert about_similar_columns(X.assign(near=1.0)) == []
    many = pd.DataFrame({f"x{k}": a + 0.01 * k * c for k in range(5)})
    assert about_similar_columns(many)[-1] == "And 7 more such pairs of inputs."


def test_inputs_that_count_the_rows_get_a_warning():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": np.arange(1, 31), "a": rng.normal(size=30)})
    (message,) = about_row_numbers(X)
    assert message.startswith("The input “id” counts the rows;")
    assert about_row_numbers(X[["id"]]) == []  # the only input is probably time
    assert about_row_numbers(X.assign(id=rng.permutation(30))) == []
    assert about_row_numbers(X.assign(id=np.arange(5, 35))) == []


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        (np.arange(60) + 88_000, True),
        (np.delete(np.arange(60), [10, 40]) + 1, True),
        (np.arange(60) + 1960, False),
        (np.arange(60) * 2, False),
        (np.arange(60) + 0.5, False),
        (np.arange(60)[::-1], False),
    ],
    ids=["large", "rows left out", "years", "steps of two", "halves", "backwards"],
)
def test_row_numbers_may_be_large_and_have_gaps(values, counts):
    frame = pd.DataFrame({"id": values, "a": np.sin(values)})
    assert bool(about_row_numbers(frame)) == counts


def test_categories_that_differ_in_case_or_spaces_only_are_named():
    counts = {"city": {"Oslo": 40, "oslo": 1, "New  York": 2, "New York": 3, "Rome": 9}, "x": {}}
    first, second = about_alike_categories(counts)
    assert "“Oslo” (40 rows) and “oslo” (1 row)" in first
    assert "“New York” (3 rows) and “New  York” (2 rows)" in second
    assert about_alike_categories({"type": {"A1": 3, "A2": 4}}) == []
