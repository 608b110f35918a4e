"""Targets that are not numbers: errors say what they are and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sbnn import SparseBNNRegressor

X = np.arange(12.0)[:, None]


@pytest.mark.parametrize(
    ("y", "fault"),
    [
        (["low", "high"] * 6, r"`y` holds text \(such as 'low'\), not numbers.*classifier"),
        (pd.Series(["a", "b"] * 6, dtype="category"), r"holds text \(such as 'a'\)"),
        (pd.DataFrame({"u": range(12), "v": ["1,5"] * 12}), r"text \(such as '1,5'\).*to_numeric"),
        (pd.date_range("2020", periods=12), r"holds dates or times \(such as '2020-01-01"),
        ([1.0, None] * 6, r"has 6 missing values \(None\) among 12; leave these rows out"),
    ],
    ids=["text", "category", "one of two targets", "dates", "None"],
)
@pytest.mark.parametrize("frame", [False, True])
def test_targets_without_numbers_are_refused_in_our_words(y, fault, frame):
    inputs = pd.DataFrame(X, columns=["a"]) if frame else X
    with pytest.raises(ValueError, match=fault):
        SparseBNNRegressor((1,), method="laplace").fit(inputs, y)
