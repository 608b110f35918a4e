"""Tables of the documentation say what the measured CSV files say."""

import importlib
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import tables  # noqa: E402

REFRESH = "run 'python benchmarks/tables.py'"


def test_the_page_is_up_to_date_with_the_files():
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page(), REFRESH


def test_the_readme_is_up_to_date_with_the_files():
    text = tables.README.read_text(encoding="utf-8")
    assert tables.readme(text) == text, REFRESH


@pytest.fixture
def measured(tmp_path):
    """Two splits of one data set: RMSE 1 and 2 for us, 3 and 3 for a method without densities."""
    pd.DataFrame(
        {
            "dataset": "yacht",
            "method": ["catboost", "sbnn", "catboost", "sbnn"],
            "split": [0, 0, 1, 1],
            "rmse": [3.0, 1.0, 3.0, 2.0],
            "log_likelihood": [None, -0.5, None, -1.5],
            "crps": [None, 0.1, None, 0.1],
            "coverage": [None, 0.9, None, 1.0],
            "parameters": [None, 20.0, None, 20.0],
            "compact_parameters": [None, 6.0, None, 8.0],
            "cpu": 2.0,
        }
    ).to_csv(tmp_path / "uci.csv", index=False)
    return tmp_path


def test_means_and_standard_errors_are_those_of_the_splits(measured):
    text = tables.page(measured)
    # mean of 1 and 2, and its standard error: 0.7071 / √2
    scores = "1.500 ± 0.500 | −1.000 ± 0.500 | 0.100 ± 0.000 | 95 %"
    ours = f"| **sbnn** | {scores} | 7 of 20 | 2.0 | 2 |"
    theirs = "| CatBoost | 3.000 ± 0.000 | – | – | – | – | 2.0 | 2 |"
    assert f"{ours}\n{theirs}" in text
    assert "| **sbnn** | 1.50 / −1.00 |" in tables.readme_table(measured)
    assert "| CatBoost | 3.00 / – |" in tables.readme_table(measured)
    assert "| --- | --- |" in tables.readme_table(measured)


def test_the_short_table_compares_the_same_splits(measured):
    """A split that one method has not run counts for none."""
    table = pd.read_csv(measured / "uci.csv")
    table = table[(table["method"] != "catboost") | (table["split"] == 0)]
    table.to_csv(measured / "uci.csv", index=False)
    text = tables.readme_table(measured)
    assert "yacht (1 splits)" in text
    assert "| **sbnn** | 1.00 / −0.50 |" in text


def test_what_was_not_measured_is_left_out(tmp_path):
    assert tables.page(tmp_path) == tables.INTRODUCTION
    text = f"a\n{tables.START}\n| old |\n{tables.END}\nb"
    assert tables.readme(text, tmp_path) == f"a\n{tables.START}\n{tables.END}\nb"


def test_a_file_nobody_described_is_shown_as_it_is(tmp_path):
    table = pd.DataFrame({"n": range(30), "a|time_s": 0.12345})
    table.to_csv(tmp_path / "new_thing.csv", index=False)
    text = tables.page(tmp_path)
    assert "## New thing\n\n| n | a\\|time s |\n| --- | --- |\n| 0 | 0.123 |" in text
    assert "| 19 | 0.123 |\n\nThe first 20 of 30 rows." in text


def test_a_script_says_what_its_numbers_are_for():
    assert tables.purpose("verified").startswith("Truth on the study's 1-3-1 problem")
    assert tables.purpose("no_such_script") == ""


@pytest.mark.parametrize(
    "path", sorted(Path(tables.__file__).parent.glob("*.py")), ids=lambda p: p.stem
)
def test_a_script_fits_the_package(path):
    """Every name that a script takes from sbnn is there; peers are imported when they are run."""
    importlib.import_module(path.stem)
