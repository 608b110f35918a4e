"""Sentences on accuracy: rows that dominate the errors, and rows with missing cells."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from sbnn.reports.sentences.accuracy import about_accuracy, about_gaps
from sbnn.reports.validation import HeldOut
from sbnn.tables.encoder import ColumnEncoder


def made_up(errors, gaps=0, outliers=(), weights=None, relevance=1.0):
    """A fit of y = a with these errors in unseen rows; the first rows have no a."""
    n = len(errors)
    a = np.linspace(0.0, 10.0, n)
    data = pd.DataFrame({"a": np.where(np.arange(n) < gaps, np.nan, a), "y": a + errors})
    data.index = pd.RangeIndex(2, n + 2, name="line")
    y, mean = data[["y"]].to_numpy(), a[:, None]
    held = HeldOut("", np.arange(n), y, mean, *[mean] * 8, weights=weights)
    model = SimpleNamespace(
        feature_relevance_=np.array([relevance]),
        encoder_=ColumnEncoder.of_numbers(data[["a"]].to_numpy()),
    )
    record = SimpleNamespace(outliers=[{"line": line, "target": "y"} for line in outliers])
    return SimpleNamespace(
        held_out=held, targets=["y"], features=["a"], data=data, x=data[["a"]], model=model,
        record=record,
    )  # fmt: skip


ERRORS = np.tile([0.1, -0.1, 0.11, -0.09], 25)


def test_scores_without_dominant_outliers_come_first():
    errors = ERRORS.copy()
    errors[3] = 1000.0
    tone, text = about_accuracy(made_up(errors, outliers=[5]), 0)
    assert tone == "good"
    assert text.startswith("Apart from one row that does not fit the rest, the model explains")
    assert "That row makes up more than 99 % of the squared errors" in text
    assert "its typical error is 0.1" in text
    assert text.endswith("; with it, the typical error is 100.")


def test_outliers_that_do_not_dominate_are_named_last():
    errors = ERRORS.copy()
    errors[3] = 0.7
    _, text = about_accuracy(made_up(errors, outliers=[5]), 0)
    assert text.startswith("The model explains nearly all of “y”")
    assert "Without the row that does not fit the rest" in text


def test_outliers_that_were_not_scored_are_mentioned():
    text = about_accuracy(made_up(ERRORS, outliers=[500]), 0)[1]
    assert text.endswith(". The row that does not fit the rest is not among these rows.")
    assert "not among" not in about_accuracy(made_up(ERRORS), 0)[1]


def test_weights_count_rows():
    errors = np.where(np.arange(100) == 3, 5.0, ERRORS)
    assert "makes up" in about_accuracy(made_up(errors, outliers=[5]), 0)[1]
    weights = np.where(np.arange(100) == 3, 1e-3, 1.0)
    assert "makes up" not in about_accuracy(made_up(errors, outliers=[5], weights=weights), 0)[1]


@pytest.mark.parametrize(
    ("gaps", "relevance", "larger", "said"),
    [(20, 1.0, 20, True), (20, 1.0, 1, False), (20, 0.0, 20, False), (0, 1.0, 20, False)],
    ids=["large errors", "equal errors", "input without effect", "no gaps"],
)
def test_larger_errors_of_rows_with_missing_cells_are_explained(gaps, relevance, larger, said):
    errors = np.where(np.arange(100) < gaps, larger * ERRORS, ERRORS)
    text = about_gaps(made_up(errors, gaps, relevance=relevance), 0)
    expected = "2 in the 20 rows with gaps in inputs that the model uses, 0.1 in the others."
    assert (expected in text) == bool(text) == said
