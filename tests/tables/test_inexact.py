"""Numbers that may not be what the file means come with a note that names the column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sbnn.tables import reader as tables


def notes_of(folder, text, **options):
    path = folder / "data.csv"
    path.write_text(text)
    return tables.read(path, ["y"], min_rows=2, **options).notes


def test_points_that_may_mark_thousands_in_a_semicolon_file_are_noted(tmp_path):
    (note,) = notes_of(tmp_path, "a;b;y\n1.234;7;1\n12.500;8;2\n999;9;3\n")
    assert "column 'a': 1.234 is read with a decimal point" in note
    assert "if the points mark thousands, remove them" in note


def test_commas_that_may_mark_thousands_in_a_semicolon_file_are_noted(tmp_path):
    commas, doubt = notes_of(tmp_path, "a;b;y\n1,234;7;1\n12,500;8;2\n999;9;3\n")
    assert "decimal commas" in commas
    assert "column 'a': 1,234 is read with a decimal comma" in doubt
    assert "if the commas mark thousands, remove them" in doubt


@pytest.mark.parametrize(
    "text",
    [
        "a;y\n1.234;1.5\n12.500;2\n",  # 1.5 shows that points are decimal
        "a;y\n0.234;1\n1.500;2\n",  # no thousands begin with zero
        "a;y\n1234;1\n1500;2\n",
        "a,y\n1.234,1\n12.500,2\n",  # commas separate cells, so points are decimal
    ],
)
def test_points_that_are_clearly_decimal_are_not_noted(tmp_path, text):
    assert notes_of(tmp_path, text) == ()


def test_unused_columns_do_not_cause_a_note(tmp_path):
    text = "a;date;y\n1;1.234;1\n2;2.345;2\n"
    assert notes_of(tmp_path, text, exclude=["date"]) == ()


def test_integers_that_lose_digits_are_noted_with_line_and_column(tmp_path):
    text = f"id,y\n{2**53},1\n{2**53 + 1},2\n-{2**60 + 1},3\n"
    (note,) = notes_of(tmp_path, text)
    assert "line 3, column 'id': 9007199254740993 is read as 9007199254740992" in note
    assert "1 more cell" in note


@pytest.mark.parametrize(
    "cell", ["9007199254740993.0", "9007199254740993.", '"9,007,199,254,740,993"']
)
def test_integers_with_points_and_commas_are_checked_too(tmp_path, cell):
    (note,) = notes_of(tmp_path, f"id,y\n1,1\n{cell},2\n")
    assert "line 3, column 'id': 9007199254740993 is read as 9007199254740992" in note


def test_numbers_that_become_zero_are_noted(tmp_path):
    (note,) = notes_of(tmp_path, "p,y\n0,1\n0e5,1\n2e-400,2\n1,2\n")
    assert "line 4, column 'p': 2e-400 is read as 0" in note


def test_large_integers_that_are_exact_are_not_noted(tmp_path):
    assert notes_of(tmp_path, f"a,y\n{2**53},1\n{2**60},2\n1e100,3\n") == ()


def test_integers_of_a_parquet_file_are_checked_too(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "data.parquet"
    frame = pd.DataFrame({"id": np.array([1, 2**53 + 1, 3]), "y": [1.0, 2.0, 3.0]})
    frame.to_parquet(path)
    (note,) = tables.read(path, ["y"], min_rows=2).notes
    assert "line 3, column 'id': 9007199254740993" in note
