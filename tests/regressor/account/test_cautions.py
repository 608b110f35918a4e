"""Warnings about a table in Python: the same that the command line gives."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import sbnn
from sbnn import SparseBNNRegressor
from sbnn.regressor.account.cautions import about_table
from sbnn.regressor.data.inputs import read_training

QUICK = {"group_iterations": 6, "iterations": 3}


def texts(X, y):
    encoder, encoded, y = read_training(SparseBNNRegressor(), X, y, "from_dtype", "impute")
    return [str(m) for m in about_table(encoder, encoded, y, [str(name) for name in X])]


def frame(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    return X, X["a"].to_numpy() + 0.1 * rng.normal(size=n)


def test_a_sound_table_gives_no_warning():
    X, y = frame()
    assert texts(X, y) == []
    assert (
        texts(X.assign(city=["Rome", "Oslo"] * 20, when=pd.date_range("2020", periods=40)), y) == []
    )


def test_fit_warns_about_few_rows():
    X, y = frame(12)
    model = SparseBNNRegressor((1,), noise="constant", n_starts=1, method_options=QUICK)
    with pytest.warns(sbnn.DataWarning, match="Only 12 rows") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert issubclass(sbnn.DataWarning, UserWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sbnn.DataWarning)
        with pytest.raises(sbnn.DataWarning, match="depends on chance"):
            model.fit(X, y)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda X: X.assign(c=1.0), "same value in every row: “c”"),
        (lambda X: X.assign(c=2 * X["a"] + 1), "“a”, “c” are identical up to scale and offset"),
        (lambda X: X.assign(c=X["a"] + 0.02 * X["b"]), "“a” and “c” are nearly the same"),
        (lambda X: X.assign(a=X["a"].where(X["b"] < 1), c=1.0), "every row: “c”"),
    ],
)
def test_columns_that_say_nothing_new_are_named(change, text):
    X, y = frame()
    (found,) = texts(change(X), y)
    assert text in found


def test_repeated_rows_and_class_labels_are_named():
    X, y = frame()
    (found,) = texts(pd.concat([X, X.iloc[:3]]), np.append(y, y[:3]))
    assert found.startswith("3 rows are exact duplicates")
    assert texts(pd.concat([X, X.iloc[:3]]), np.append(y, y[:3] + 1)) == []  # repeated measurements
    (label,) = texts(X, (y > 0).astype(float))
    assert label.startswith("“y” has only two values")
