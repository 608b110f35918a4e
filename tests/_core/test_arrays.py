"""Arrays of real numbers from what users give."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sbnn._core.arrays import unmasked


@pytest.mark.parametrize(
    "values",
    [[1, 2], [1.5, 2.5], [True, False], ["a", "b"], [None, "b"], [1j, 2j]],
    ids=["integers", "floats", "booleans", "text", "objects", "complex"],
)
def test_masked_cells_become_missing_and_the_others_stay(values):
    found = unmasked(np.ma.array(values, mask=[True, False]))
    assert not isinstance(found, np.ma.MaskedArray)
    assert pd.isna(found).tolist() == [True, False]
    assert found[1] == values[1]


def test_masked_dates_become_missing():
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    found = unmasked(np.ma.array(days, mask=[True, False]))
    assert np.isnat(found).tolist() == [True, False]
    assert found[1] == days[1]


def test_arrays_without_masked_cells_stay_as_they_are():
    for values in ([1, 2], np.ma.array([1, 2]), None, "text"):
        assert unmasked(values) is values
