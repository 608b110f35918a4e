"""Tables: an error is one line that names the file, the line and the column."""

from __future__ import annotations

import datetime
import os
import re
import threading
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from sbnn.exports import portable
from sbnn.tables import reader as tables
from sbnn.tables.cells import fault
from sbnn.tables.column_types import WORDS, ColumnType
from sbnn.tables.header import MAX_FEATURES, TableError


def read(*args, **options):
    return tables.read(*args, **options).frame


def write(folder, text, name="data.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


ROWS = "".join(f"{i},{i * 0.5},{i - 3}\n" for i in range(6))


def test_features_come_before_targets_and_the_index_is_the_line(tmp_path):
    frame = read(write(tmp_path, "a,y,b\n\n" + ROWS), ["y"])
    assert list(frame.columns) == ["a", "b", "y"]
    assert list(frame.index) == [3, 4, 5, 6, 7, 8]
    np.testing.assert_array_equal(frame["y"], np.arange(6) * 0.5)


@pytest.mark.parametrize(
    ("separator", "name"), [(",", "t.csv"), (";", "t.csv"), ("\t", "t.tsv"), ("\t", "t.txt")]
)
def test_separators_are_found(tmp_path, separator, name):
    text = ("a,y,b\n" + ROWS).replace(",", separator)
    assert read(write(tmp_path, text, name), ["y"]).shape == (6, 3)


def test_byte_order_mark_quotes_and_windows_line_ends_are_read(tmp_path):
    text = '﻿"load, kN","y"\r\n' + "".join(f'"{i}",{i}\r\n' for i in range(6))
    assert list(read(write(tmp_path, text), ["y"]).columns) == ["load, kN", "y"]


def test_decimal_commas_are_read_unless_commas_separate_cells(tmp_path):
    rows = "".join(f"{i},25;-1,5e1;{i}\n" for i in range(6))
    table = tables.read(write(tmp_path, "a, m;b, m;y\n" + rows), ["y"])
    assert table.decimal_comma
    assert list(table.frame.columns) == ["a, m", "b, m", "y"]
    np.testing.assert_array_equal(table.frame["a, m"], np.arange(6) + 0.25)
    np.testing.assert_array_equal(table.frame["b, m"], -15.0)
    tabs = tables.read(write(tmp_path, "a\ty\n" + "1,234\t2,5\n" * 5), ["y"])
    assert tabs.frame.iloc[0].tolist() == [1.234, 2.5]
    points = tables.read(write(tmp_path, "a;y\n" + "1.5;2\n" * 5), ["y"])
    assert not points.decimal_comma
    assert points.frame["a"].iloc[0] == 1.5


def test_text_and_gaps_are_read_and_identifiers_left_out(tmp_path):
    rows = "".join(f"r{i},{'uv'[i % 2]},{i},?,{i}\n" for i in range(6)) + ",u,,?,6\n"
    path = write(tmp_path, "id,kind,a,gap,y\n" + rows)
    found = tables.read(path, ["y"])
    assert list(found.frame) == ["kind", "a", "y"]
    assert found.frame["kind"].tolist() == ["u", "v"] * 3 + ["u"]
    assert found.frame["kind"].dtype == "category"
    assert found.frame["a"].isna().tolist() == [False] * 6 + [True]
    assert {name: kind for name, (kind, _) in found.types.items()} == {
        "kind": "category",
        "a": "number",
    }
    assert found.notes == (
        f"{path}: ignoring column 'id', which holds 6 different texts in 6 rows, such as names or "
        "identifiers, from which nothing can be learned.",
        f"{path}: ignoring column 'gap', which is empty.",
    )
    with pytest.raises(TableError, match=r"column 'id' holds 6 .*; leave it out of --features"):
        read(path, ["y"], ["id", "a"])
    with pytest.raises(TableError, match="column 'gap' is empty; leave it out"):
        read(path, ["y"], ["gap"])
    assert list(read(path, ["y"], categorical=["id"])) == ["id", "kind", "a", "y"]
    with pytest.raises(TableError, match="no column is left to predict from"):
        read(path, ["y"], exclude=["kind,a"])


def test_codes_are_categories_if_declared(tmp_path):
    path = write(tmp_path, "zone,b,y\n" + "07,1,1\n7.0,1,2\n7,,3\n" * 3)
    found = read(path, ["y"], categorical=["zone", "b"])
    assert found["zone"].tolist() == ["07", "7", "7"] * 3
    assert found["b"].isna().tolist() == [False, False, True] * 3
    with pytest.raises(TableError, match=r"--categorical 'zon' is not one of the inputs; .*'zone'"):
        read(path, ["y"], categorical=["zon"])
    with pytest.raises(TableError, match="--categorical 'y' is not one of the inputs"):
        read(path, ["y"], categorical=["y"])


def test_missing_cells_are_kept_dropped_or_errors(tmp_path):
    path = write(tmp_path, "a,k,y\n" + "1,u,2\n2,v,3\n" * 4 + "n/a,u,1\n3,,1\n4,v,?\n")
    kept = tables.read(path, ["y"])
    assert kept.frame.shape == (10, 3)
    assert kept.frame.isna().sum().tolist() == [1, 1, 0]
    assert kept.notes == (f"{path}: 1 row without a value of the target left out.",)
    dropped = tables.read(path, ["y"], missing="drop", whole=True)
    assert dropped.frame.shape == dropped.whole.shape == (8, 3)
    assert dropped.notes[-1] == f"{path}: 2 rows with missing cells left out."
    with pytest.raises(TableError) as caught:
        read(path, ["y"], missing="error")
    assert str(caught.value).endswith(
        "line 10, column 'a': 'n/a' is a missing value; fill it in or remove the row. And 2 more "
        "cells: line 11, column 'k'; line 12, column 'y'."
    )
    with pytest.raises(TableError, match=r"line 10, column 'a': 'n/a' is a missing value"):
        read(path, ["y"], others=["a"])  # a weight cannot be guessed


def column(tmp_path, cells, separator=",", **options):
    rows = "".join(f'"{cell}"{separator}{i}\n' for i, cell in enumerate(cells))
    return tables.read(write(tmp_path, f"a{separator}y\n{rows}"), ["y"], **options)


KINDS_OF_TEXT = {
    "percent": (["5 %", "7.5%", "", "100%"] * 2, [5, 7.5, np.nan, 100] * 2),
    "number": (["1,234", "1,234,567.5", "12", "0.5"] * 2, [1234, 1234567.5, 12, 0.5] * 2),
    "spaces": (["1 234", "12\u202f345", "1'000", "7"] * 2, [1234, 12345, 1000, 7] * 2),
    "boolean": (["yes", "No", "YES", ""] * 2, [1, 0, 1, np.nan] * 2),
    "words": (["True", "FALSE"] * 4, [1, 0] * 4),
}


@pytest.mark.parametrize("kind", KINDS_OF_TEXT)
def test_percentages_thousands_and_booleans_are_read(tmp_path, kind):
    cells, values = KINDS_OF_TEXT[kind]
    found = column(tmp_path, cells)
    np.testing.assert_allclose(found.frame["a"], values)
    expected = {"spaces": "number", "words": "boolean"}.get(kind, kind)
    assert found.types["a"].kind == expected


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["ja", "Nein"], "ja/Nein"),
        (["WAHR", "FALSCH"], "WAHR/FALSCH"),
        (["oui", "non"], "oui/non"),
        (["sí", "no"], "sí/no"),
        (["yes", "no"], "yes/no"),
    ],
)
def test_yes_and_no_are_read_in_several_languages(tmp_path, cells, words):
    found = column(tmp_path, cells * 3)
    assert found.types["a"] == ColumnType("boolean", words)
    assert found.frame["a"].tolist() == [1.0, 0.0] * 3
    assert [portable._number(cell, "boolean") for cell in cells] == [1.0, 0.0]


def test_exported_files_know_the_same_words_for_yes_and_no():
    assert portable._WORDS == WORDS


def test_times_of_day_are_read(tmp_path):
    found = column(tmp_path, ["14:30", "09:00:36", "", "23:59:59.9999999"] * 2)
    hours = [datetime.time(14, 30), datetime.time(9, 0, 36), None, datetime.time.max]
    assert found.types["a"].kind == "time"
    assert found.frame["a"].tolist() == hours * 2


def test_points_mark_thousands_beside_decimal_commas(tmp_path):
    found = column(tmp_path, ["1.234,5", "1.000", "7,25", "12"] * 2, ";")
    assert found.decimal_comma
    np.testing.assert_array_equal(found.frame["a"], [1234.5, 1000, 7.25, 12] * 2)


def test_points_mark_thousands_in_all_columns_once_one_is_beyond_doubt(tmp_path):
    rows = "".join(f"1.{i}00;1.234,5;{i}\n" for i in range(6))
    found = tables.read(write(tmp_path, "a;b;y\n" + rows), ["y"]).frame
    np.testing.assert_array_equal(found["a"], 1000 + 100 * np.arange(6))
    np.testing.assert_array_equal(found["b"], 1234.5)


MARKED = {
    "commas, a point in the cell": (
        ["1,234.5", "2,000", "999.5"],
        [1234.5, 2000, 999.5],
        [1, 2, 3],
    ),
    "points, a comma in the cell": (
        ["1.234,5", "2.000", "999,5"],
        [1234.5, 2000, 999.5],
        [1, 2, 3],
    ),
    "commas twice": (["1,234,567", "2,345", "999"], [1234567, 2345, 999], [1, 2, 3]),
    "points twice": (["1.234.567", "2.345", "999"], [1234567, 2345, 999], [1, 2, 3]),
    "commas beside points": (["1,234", "2,345", "999"], [1234, 2345, 999], ["1.5", "2.5", "3"]),
    "points beside commas": (["1.234", "2.345", "999"], [1234, 2345, 999], ["1,5", "2,5", "3"]),
    "one number decides": (["1,234", "2,345", "999"], [1234, 2345, 999], ["0.25", "2", "3"]),
}


@pytest.mark.parametrize("kind", MARKED)
def test_thousands_are_read_where_semicolons_separate_cells(tmp_path, kind):
    cells, values, others = MARKED[kind]
    rows = "".join(f"{cell};{other};{i}\n" for i, (cell, other) in enumerate(zip(cells, others)))
    path = write(tmp_path, "a;b;y\n" + rows * 3)
    found = tables.read(path, ["y"])
    assert [t.kind for t in found.types.values()] == ["number", "number"]
    np.testing.assert_array_equal(found.frame["a"], values * 3)
    expected = [float(str(other).replace(",", ".")) for other in others]
    np.testing.assert_array_equal(found.frame["b"], expected * 3)
    assert "mark thousands" in found.notes[0]


def test_wrong_cell_is_named_rather_than_the_thousands_beside_it(tmp_path):
    with pytest.raises(TableError, match=r"line 7, column 'a': '1,5' has a comma") as caught:
        column(tmp_path, ["12,345.6", "2,345.5", "999.5", "0.25", "7", "1,5"], ";")
    assert "more cell" not in str(caught.value)
    with pytest.raises(TableError, match=r"'1\.234,5' has a decimal comma, but other numbers"):
        column(tmp_path, ["1.234,5", "0.5", "2.5", "3.5", "4.5", "5.5"], ";")
    with pytest.raises(TableError, match=r"'1\.234\.567' has 2 points; write 1234567 if"):
        column(tmp_path, ["1.234.567", "0.5", "2.5", "3.5", "4.5", "5.5"], ";")


def test_no_thousands_begin_with_zero(tmp_path):
    with pytest.raises(TableError, match="'0,250' has a comma"):
        column(tmp_path, ["0,250", "0,500", "0,125", "0,750", "0,100"])


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ("21O,5", "'21O,5' is not a number; correct it"),
        ("210.5", "'210.5' has a point, but the numbers of this table have decimal commas; corr"),
        ("1.234", "'1.234' has a point, but"),
        ("2,5,6", "'2,5,6' is not a number"),
    ],
)
def test_one_bad_cell_does_not_change_how_the_other_numbers_are_read(tmp_path, cell, fault):
    rows = "".join(f"{i},5;{i},25\n" for i in range(6))
    with pytest.raises(TableError, match=re.escape(f"line 8, column 'a': {fault}")) as caught:
        tables.read(write(tmp_path, f"a;y\n{rows}{cell};7,5\n"), ["y"])
    assert "more cell" not in str(caught.value)


def test_empty_rows_are_kept_except_at_the_end(tmp_path):
    path = write(tmp_path, "a;b;y\n1;2;3\n;;\n\n4;5;6\n; ;\n;;\n")
    found = tables.read(path, (), ["a", "b"], min_rows=1, whole=True)
    assert found.frame.index.tolist() == [2, 3, 5]
    assert found.frame.loc[3].isna().all()
    assert found.whole.loc[3].tolist() == ["", "", ""]
    assert found.notes == (f"{path}: 2 empty rows at the end left out.",)
    fitted = tables.read(path, ["y"], min_rows=1)
    assert fitted.frame.index.tolist() == [2, 5]
    assert "1 row without a value of the target left out" in fitted.notes[-1]


def test_commas_in_text_do_not_hide_decimal_commas(tmp_path):
    rows = "".join(f"{i},5;Smith, {'AB'[i % 2]};{i}\n" for i in range(6))
    found = tables.read(write(tmp_path, "a;who;y\n" + rows), ["y"])
    assert found.decimal_comma
    assert found.frame["who"].tolist() == ["Smith, A", "Smith, B"] * 3


@pytest.mark.parametrize(
    ("cells", "form", "first"),
    [
        (["2020-01-31", "2020-12-01"], "ISO8601", "2020-01-31"),
        (["2020-01-31 14:30", "2020-12-01T00:00:05Z"], "ISO8601", "2020-01-31T14:30"),
        (["2020-01", "2021-12"], "ISO8601", "2020-01-01"),
        (["31.01.2020", "1.12.2020"], "%d.%m.%Y", "2020-01-31"),
        (["31/01/2020", "01/12/2020"], "%d/%m/%Y", "2020-01-31"),
        (["01/31/2020", "12/01/2020"], "%m/%d/%Y", "2020-01-31"),
        (["31 Jan 2020", "1 Dec 2020"], "%d %b %Y", "2020-01-31"),
        (["31.01.2020 14:30", "1.12.2020 00:00"], "%d.%m.%Y %H:%M", "2020-01-31T14:30"),
    ],
)
def test_dates_are_read_in_many_formats(tmp_path, cells, form, first):
    found = column(tmp_path, [*cells * 3, "n/a"])
    assert found.types["a"] == ("date", form)
    assert found.frame["a"].iloc[0] == pd.Timestamp(first)
    assert pd.isna(found.frame["a"].iloc[-1])
    assert found.notes == ()


def test_ambiguous_dates_are_noted_and_keep_their_format(tmp_path):
    found = column(tmp_path, ["01/02/2020", "03/04/2021"] * 3)
    assert "dates are read as day/month/year" in found.notes[0]
    assert found.frame["a"].iloc[0] == pd.Timestamp("2020-02-01")
    month = {"a": ColumnType("date", "%m/%d/%Y")}
    again = column(tmp_path, ["01/02/2020"] * 6, types=month)
    assert again.frame["a"].iloc[0] == pd.Timestamp("2020-01-02")
    assert again.notes == ()


STRAY = {
    "number": (["1.5", "2", "3", "12,5x"], "'12,5x' is not a number; correct it, leave the column"),
    "percent": (["5%", "6 %", "7 %", "0.08"], "'0.08' has no percent sign, but"),
    "not percent": (["5", "6", "7", "8 %"], "'8 %' has a percent sign, but"),
    "date": (["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04", "soon"], "'soon' is not a d"),
    "impossible date": (["2020-01-01"] * 5 + ["2020-02-30"], "'2020-02-30' is not a date"),
    "far date": (["2020-01-01"] * 5 + ["9999-12-31"], "'9999-12-31' is outside the years 1678 to"),
    "early date": (["01.01.1490", "02.01.1820"] * 3, "'01.01.1490' is outside the years"),
    "time": (["14:30", "15:00", "16:00", "9:15", "noon"], "'noon' is not a time of day"),
    "ambiguous": (["1,5", "2", "3,25"], r"'1,5' has a comma"),
}


@pytest.mark.parametrize("kind", STRAY)
def test_one_stray_word_does_not_make_a_column_of_text(tmp_path, kind):
    cells, message = STRAY[kind]
    with pytest.raises(TableError, match=message) as caught:
        column(tmp_path, cells * (2 if kind != "date" else 1))
    assert "column 'a'" in str(caught.value)


@pytest.mark.parametrize("cell", ["2020-01-01", "3", "word", "9:30", "7 %"])
def test_column_without_a_value_in_the_rows_that_are_kept_is_left_out(tmp_path, cell):
    rows = "".join(f"{i},{cell if i < 3 else ''},{i if i > 2 else ''}\n" for i in range(9))
    path = write(tmp_path, "a,b,y\n" + rows)
    found = tables.read(path, ["y"])
    assert list(found.frame) == ["a", "y"]
    assert "ignoring column 'b', which is empty" in found.notes[0]
    with pytest.raises(TableError, match="column 'b' is empty; leave it out of --features"):
        tables.read(path, ["y"], ["b"])


def test_numbers_with_thousands_of_digits_do_not_break_the_checks(tmp_path):
    digits = "0" * 5000 + "9007199254740993"
    found = column(tmp_path, [digits] * 6)
    assert "9007199254740993 is read as 9007199254740992" in found.notes[0]
    rows = "".join(f"{'9' * 5000},{i},{i}\n" for i in range(6))
    with pytest.raises(TableError, match="column 1 has no name"):
        tables.read(write(tmp_path, ",a,y\n" + rows), ["y"])


def test_types_of_a_fit_decide_how_new_cells_are_read(tmp_path):
    types = {"a": ColumnType("category")}
    assert column(tmp_path, ["1", "2"] * 3, types=types).frame["a"].tolist() == ["1", "2"] * 3
    types = {"a": ColumnType("boolean")}
    assert column(tmp_path, ["1", "0"] * 3, types=types).frame["a"].tolist() == [1, 0] * 3
    with pytest.raises(TableError, match=r"line 2, column 'a': 'x' is not a number\. And 5 more"):
        column(tmp_path, ["x"] * 6, types={"a": ColumnType("number")})
    empty = column(tmp_path, [""] * 6, types={"a": ColumnType("date", "ISO8601")})
    assert empty.frame["a"].isna().all()


def test_error_explains_how_to_give_several_targets(tmp_path):
    path = write(tmp_path, "a,b,y\n" + "1,2,3\n" * 6)
    with pytest.raises(TableError, match="no column 'b,y'; give --target once for each column"):
        read(path, ["b,y"])


def test_columns_lists_the_column_names(tmp_path):
    assert tables.columns(write(tmp_path, "a;b c;y\n1;2;3\n")) == ["a", "b c", "y"]
    with pytest.raises(TableError, match="does not exist"):
        tables.columns(tmp_path / "nowhere.csv")


def test_features_and_exclusions_are_names_or_comma_separated_lists(tmp_path):
    header = '"load, kN",id,a,b,y\n'
    path = write(tmp_path, header + "1,x,2,3,4\n" * 5)
    assert list(read(path, ["y"], ["load, kN", "a,b"])) == ["load, kN", "a", "b", "y"]
    assert list(read(path, ["y"], ['"load, kN", b'])) == ["load, kN", "b", "y"]
    assert list(read(path, ["y"], exclude=["id", "b"])) == ["load, kN", "a", "y"]
    assert list(read(path, ["y"], ["a,b"], exclude=["a"])) == ["b", "y"]
    with pytest.raises(TableError, match="no column 'load, kg'; did you mean 'load, kN'"):
        read(path, ["y"], ["load, kg"])
    with pytest.raises(TableError, match="no column 'c'"):
        read(path, ["y"], exclude=["c"])
    with pytest.raises(TableError, match="'y' cannot be both a target and excluded"):
        read(path, ["y"], ["a"], exclude=["y"])
    with pytest.raises(TableError, match="--exclude takes names"):
        read(path, ["y"], exclude=["a,,b"])


def test_whole_table_is_the_text_of_the_file(tmp_path):
    path = write(tmp_path, "id,b ,, a,y\n" + '007,1, ,0.10,"n/a, nan"\n' * 5)
    found = tables.read(path, (), ["a", "b"], whole=True)
    assert list(found.frame) == ["a", "b"]
    assert found.frame.iloc[0].tolist() == [0.1, 1.0]
    assert list(found.whole.columns) == ["id", "b ", "", " a", "y"]
    assert found.whole.iloc[0].tolist() == ["007", "1", " ", "0.10", "n/a, nan"]


@pytest.mark.parametrize(
    ("row", "comma"), [("1;2,5", True), ("1;2,5,6", False), ("1.0;2,5", False), ("1;x", False)]
)
def test_other_columns_decide_the_decimal_sign_of_whole_numbers(tmp_path, row, comma):
    path = write(tmp_path, "a;note\n" + f"{row}\n" * 5)
    assert tables.read(path, (), ["a"], whole=True).decimal_comma is comma


def test_all_cells_that_are_not_numbers_are_counted(tmp_path):
    text = "a,b,y\n" + "".join(f"{i},{i},{i}\n" for i in range(6))
    path = write(tmp_path, text + "1,x,2\nz,2,3\n")
    with pytest.raises(
        TableError, match=r"line 8, column 'b': 'x' .* 1 more cell: line 9, col.*'a'"
    ):
        read(path, ["y"])
    path = write(tmp_path, text + "1,1,1\n" * 2394 + "1,2,nan\nx,x,?\n" + "1,x,2\n" * 2000)
    with pytest.raises(TableError) as caught:
        read(path, ["y"], missing="error")
    assert str(caught.value).endswith(
        "column 'y': 'nan' is a missing value; fill it in or remove the row. And 2,003 more cells, "
        "such as line 2403, column 'a'; line 2403, column 'b'; line 2403, column 'y'."
    )


def test_all_rows_of_the_wrong_length_are_counted(tmp_path):
    path = write(tmp_path, "a,y\n" + GOOD + "1\n1,2,3\n" * 3)
    with pytest.raises(TableError) as caught:
        read(path, ["y"])
    assert str(caught.value).endswith(
        "line 8: 1 cell, but the header has 2. And 5 more rows, such as line 9, line 10, line 11."
    )
    path = write(tmp_path, "a,y\n" + "r1,1,2\n" * 6)
    with pytest.raises(TableError) as caught:
        read(path, ["y"])
    text = ": 3 cells, but the header has 2, in every row. Does every column have a name? And 5"
    assert text in str(caught.value)


@pytest.mark.parametrize("start", [0, 1])
def test_pandas_index_column_is_ignored_with_a_note(tmp_path, start):
    path = tmp_path / "data.csv"
    frame = pd.DataFrame({"a": range(6), "y": range(6)}, index=np.arange(6) + start)
    frame.to_csv(path)
    found = tables.read(path, ["y"])
    assert list(found.frame) == ["a", "y"]
    assert found.notes == (
        f"{path}: ignoring the first column, which has no name and counts the rows (the index that "
        "pandas writes).",
    )


@pytest.mark.parametrize("index", [[0, 2, 1, 3, 4], [5, 6, 7, 8, 9], [0.5, 1, 2, 3, 4]])
def test_unnamed_column_is_an_error_unless_excluded(tmp_path, index):
    path = tmp_path / "data.csv"
    frame = pd.DataFrame({"a": range(5), "y": range(5)}, index=index)
    frame.to_csv(path)
    with pytest.raises(TableError, match=r'column 1 has no name; perhaps .*index.* --exclude ""'):
        read(path, ["y"])
    assert list(read(path, ["y"], exclude=[""])) == ["a", "y"]
    frame.reset_index().set_axis(["a", "", "y"], axis=1).to_csv(path, index=False)
    with pytest.raises(TableError, match="column 2 has no name; name it"):
        read(path, ["y"])
    trailing = write(tmp_path, "a,y,,\n" + "1,2,,\n" * 5)
    assert list(read(trailing, ["y"], exclude=[""])) == ["a", "y"]


def test_other_encodings_are_suggested_and_read_on_request(tmp_path):
    text = "größe;straße €;y\n" + "1,5;2;3\n" * 4 + "2,5;1;1\n"
    path = write(tmp_path, text.encode("cp1252"))
    for of in (tables.columns, lambda path: tables.read(path, ["y"])):
        with pytest.raises(TableError) as caught:
            of(path)
        assert str(caught.value) == (
            f"{path} is not UTF-8 text (byte 0xf6 on line 1); save it as UTF-8 (in Excel: 'CSV "
            "UTF-8'), or add --encoding cp1252 if that byte is meant to be 'ö'."
        )
    found = tables.read(path, ["y"], encoding="cp1252")
    assert list(found.frame) == ["größe", "straße €", "y"]
    assert tables.columns(path, "cp1252") == ["größe", "straße €", "y"]
    for encoding in ("utf-16-le", "utf-16-be"):
        data = ("\ufeff" + text.replace(";", "\t").replace("\n", "\r\n")).encode(encoding)
        path = write(tmp_path, data)
        with pytest.raises(TableError, match=r"UTF-16 text; .* or add --encoding utf-16"):
            read(path, ["y"])
        assert list(read(path, ["y"], encoding="utf-16")) == ["größe", "straße €", "y"]
    with pytest.raises(TableError, match=r"not utf-8 text \(byte 0x8c"):
        read(write(tmp_path, b"a,y\n1,\x8c\n"), ["y"], encoding="utf-8")
    with pytest.raises(TableError, match="control characters when read as cp1252"):
        read(write(tmp_path, b"a,y\n1,\x00\n"), ["y"], encoding="cp1252")
    for unknown in ("klingon", "hex"):
        with pytest.raises(TableError, match=f"--encoding '{unknown}' is not known"):
            read(path, ["y"], encoding=unknown)
    for codec in ("utf-8", "utf-8-sig", "UTF8"):  # with or without a mark in front
        path = write(tmp_path, ("\ufeff" + text).encode())
        assert list(read(path, ["y"], encoding=codec)) == ["größe", "straße €", "y"]
    assert list(read(write(tmp_path, "PK,y\n" + GOOD), ["y"])) == ["PK", "y"]  # not a zip file


@pytest.mark.parametrize(("end", "line"), [("\n", 3), ("\r\n", 3), ("\r", 3)])
def test_error_gives_the_line_that_is_not_utf_8(tmp_path, end, line):
    text = f"a,y{end}1,2{end}1,é{end}".encode("cp1252")
    with pytest.raises(TableError, match=rf"byte 0xe9 on line {line}\).* meant to be 'é'"):
        read(write(tmp_path, text), ["y"])


def test_pipes_are_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(("a,y\n" + GOOD).encode(),))
    writer.start()
    assert read(path, ["y"]).shape == (6, 2)
    writer.join()


def test_all_line_ends_quotes_and_blank_lines_are_read(tmp_path):
    for end in ("\n", "\r\n", "\r"):
        text = '\n"a\nb" ,"say ""y"""\n\n' + "1e5,2\n +1.,-.5\n\n,\n , ,\n" * 3
        frame = read(write(tmp_path, text.replace("\n", end)), ['say "y"'])
        assert list(frame) == [f"a{end}b", 'say "y"']
        assert frame.iloc[:2].to_numpy().tolist() == [[1e5, 2.0], [1.0, -0.5]]


def test_misspelt_file_name_gets_a_suggestion(tmp_path):
    (tmp_path / "Data_2.csv").mkdir()
    write(tmp_path, "a,y\n", "Data_1.csv")
    with pytest.raises(
        TableError, match=r"data1\.csv does not exist; did you mean '.*Data_1\.csv'\?$"
    ):
        read(tmp_path / "data1.csv", ["y"])
    with pytest.raises(TableError, match=r"does not exist\.$"):
        read(tmp_path / "nothing" / "data1.csv", ["y"])
    (tmp_path / "data1.csv").symlink_to("gone.csv")
    with pytest.raises(TableError, match=r"data1\.csv is a link to a file that does not exist\.$"):
        read(tmp_path / "data1.csv", ["y"])


def test_files_that_share_only_the_suffix_are_not_suggested(tmp_path):
    write(tmp_path, "a,y\n", "cars.csv")
    with pytest.raises(TableError, match=r"rows\.csv does not exist\.$"):
        read(tmp_path / "rows.csv", ["y"])


def test_one_error_names_all_unknown_columns(tmp_path):
    path = write(tmp_path, "a,b,c,y\n")
    with pytest.raises(TableError) as caught:
        read(path, ["Y"], ["A,C", "other"])
    assert str(caught.value) == (
        f"{path} has no columns 'Y', 'A', 'C', 'other'; did you mean 'y', 'a', 'c'? "
        "It has 'a', 'b', 'c', 'y'."
    )


def test_unused_columns_may_hold_anything(tmp_path):
    text = "city,a,y\n" + "".join(f"Ottawa,{i},{i}\n" for i in range(6))
    assert list(read(write(tmp_path, text), ["y"], ["a"]).columns) == ["a", "y"]


GOOD = "".join(f"{i},{i}\n" for i in range(6))
BAD = {
    "empty": (b"", "is empty"),
    "blank": (b"\n\n \n", "blank lines only"),
    "no header": (GOOD, "line 1.*no header"),
    "no such target": ("a,b\n" + GOOD, r"no column 'y'; it has 'a', 'b'\."),
    "text": ("a,y\n" + GOOD + "six,6\n", r"line 8, column 'a': 'six' is not a number.*--exclude"),
    "infinite": ("a,y\n" + GOOD + "inf,6\n", r"line 8, column 'a': 'inf' is infinite"),
    "classes": ("a,y\n" + "1,yes\n3,no\n" * 4, r"the target 'y' holds text \(such as 'yes'\)"),
    "one row": ("a,y\n1,2\n", r"1 row of data; at least 5 rows are needed"),
    "ragged": ("a,y\n" + GOOD + "1,2,3\n", r"line 8: 3 cells, but the header has 2"),
    "decimal comma": ('a,y\n"1,5",2\n' + GOOD, r"line 2, column 'a': '1,5' has a comma; write"),
    "cells cut by decimal commas": ("a,y\n1,5,2,5\n", "line 2: 4 cells.*separate.*semicolons"),
    "commas and points": ("a;y\n1,5;2.5\n", r"line 2, column 'a': '1,5' has a comma; write"),
    "dates": ("a,y\n" + "1,2020-01-01\n" * 6, r"target 'y' holds dates \(such as '2020-01-01'\)"),
    "no target": ("a,y\n" + "1,\n" * 6, "the target 'y' is empty"),
    "perhaps thousands": ("a\ty\n1,234\t2\n", r"column 'a': '1,234' has a comma"),
    "thousands": ("a,y\n1_000,2\n" + GOOD, r"line 2, column 'a': '1_000' is not a number"),
    "spaces": ("a b y\n" + "1 2 3\n" * 6, r"no column 'y'; it has one, 'a b y': separate cells"),
    "twice": ("y,y\n" + GOOD, r"line 1, column 2: the name 'y' appears twice"),
    "unnamed": (",y\n" + GOOD[4:] * 2, r"column 1 has no name"),
    "only the target": ("y\n1\n2\n", "nothing to predict from"),
    "no encoding": (b"a,y\n1,2\n\xe9\x81,1\n", r"not UTF-8 text \(byte 0xe9 on line 3\); save"),
    "garbage": (b"a,y\n1,2\n\xe9\x02,1\n", r"not UTF-8 text \(byte 0xe9 on line 3\); save"),
    "half of utf-16": ("a,y\n1,2\n".encode("utf-16")[:-1], "looks like UTF-16 text; save"),
    "utf-32": ("a,y\n1,2\n".encode("utf-32"), "looks like UTF-16 text; save"),
    "zipped": (b"PK\x03\x04\x14\x00\x00\x00a,y\n1,2\n", "not a text table"),
    "binary": (b"\x00\x01\x02", "not a text table"),
    "nul": ("a,y\n" + GOOD * 1000 + "1\0,2\n", "not a text table"),
    "too large": ("a,y\n" + GOOD + "-1e309,2\n", "'-1e309' exceeds the limit of 1e150"),
    "too large to square": ("a,y\n" + GOOD + "1,1e151\n", r"line 8, column 'y': '1e151' exceeds t"),
    "too small to square": (
        "a,y\n" + "1,0\n" * 6 + "1,1e-160\n",
        "column 'y' varies by only 1e-160",
    ),
    "hexadecimal": ("a,y\n" + GOOD + "0x10,2\n", "'0x10' is not a number"),
    "a million columns": (
        ",".join(["y", *(f"c{i}" for i in range(10**6 - 1))]) + "\n",
        rf"999,999 input columns, more than the {MAX_FEATURES:,}",
    ),
    "an endless quotation": ('a,y\n"' + "1,2\n" * 300_000, "line .*field larger"),
    "control characters": ("a,y\n\x1b[31mred,2\n" + GOOD, r"'\\x1b\[31mred' is not a number"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_tables_give_one_line_errors(tmp_path, fault):
    text, message = BAD[fault]
    with pytest.raises(TableError, match=message) as caught:
        read(write(tmp_path, text), ["y"])
    assert len(str(caught.value).splitlines()) == 1
    assert str(tmp_path / "data.csv") in str(caught.value)


def test_missing_files_folders_and_devices_are_errors(tmp_path):
    with pytest.raises(TableError, match="does not exist"):
        read(tmp_path / "none.csv", ["y"])
    with pytest.raises(TableError, match="is a folder"):
        read(tmp_path, ["y"])
    with pytest.raises(TableError, match="cannot be read: File name too long"):
        read(tmp_path / ("x" * 300), ["y"])
    with pytest.raises(TableError, match="is a device"):
        read("/dev/zero", ["y"])


def test_misspelt_column_gets_a_suggestion(tmp_path):
    names = [f"sensor_{i}" for i in range(20)]
    path = write(tmp_path, ",".join(names) + "\n")
    with pytest.raises(TableError, match=r"did you mean 'sensor_7'"):
        read(path, ["Sensor_7"])
    few = write(tmp_path, "Temp,load\n")
    with pytest.raises(TableError, match=r"did you mean 'Temp'\? It has 'Temp', 'load'\.$"):
        read(few, ["tmp"])


def test_column_cannot_be_target_and_feature(tmp_path):
    with pytest.raises(TableError, match="both a target and a feature"):
        read(write(tmp_path, "a,y\n" + GOOD), ["y"], ["a", "y"])


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    def absent(*args, **kwargs):
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_parquet", absent)
    with pytest.raises(TableError, match=r'pip install "sbnn\[parquet\]"'):
        read(write(tmp_path, b"PAR1", "t.parquet"), ["y"])


def parquet(tmp_path, frame):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    return path


GOOD_FRAME = pd.DataFrame({"a": range(6), "flag": [True, False] * 3, "y": np.arange(6.0)})
KINDS = {
    "uint8": np.arange(6, dtype="uint8"),
    "float16": np.arange(6, dtype="float16"),
    "Int64": pd.array(range(6), dtype="Int64"),
    "Float64": pd.array(np.arange(6.0), dtype="Float64"),
    "boolean": pd.array([False, True] * 3, dtype="boolean"),
    "decimal": [Decimal(f"{i}.25") for i in range(6)],
}
OTHERS = {
    "text": (list("ababab"), "category", list("ababab")),
    "figures as text": (list("123456"), "number", [1, 2, 3, 4, 5, 6]),
    "category": (pd.Categorical(list("ababab")), "category", list("ababab")),
    "dates": (pd.date_range("2020-01-01", periods=6), "date", pd.date_range("2020", periods=6)),
    "days": ([datetime.date(2020, 1, 1)] * 6, "date", [pd.Timestamp("2020-01-01")] * 6),
    "zone": (
        pd.date_range("2020-01-01", periods=6, tz="Asia/Tokyo"),
        "date",
        pd.date_range("2019-12-31 15:00", periods=6),
    ),
    "times": ([datetime.time(14, 30)] * 6, "time", [datetime.time(14, 30)] * 6),
    "durations": (pd.to_timedelta(range(6), unit="h"), "number", np.arange(6) / 24),
}


def test_parquet_tables_are_checked_like_text(tmp_path):
    found = tables.read(parquet(tmp_path, GOOD_FRAME), ["y"])
    pd.testing.assert_frame_equal(
        found.frame.reset_index(drop=True), GOOD_FRAME.astype(float), check_dtype=True
    )
    assert list(found.frame.index) == [2, 3, 4, 5, 6, 7]
    assert found.notes == ()
    with pytest.raises(TableError, match="line 7, column 'a': '-1e\\+151' exceeds the limit"):
        read(parquet(tmp_path, GOOD_FRAME.assign(a=[0.0] * 5 + [-1e151])), ["y"])
    gaps = GOOD_FRAME.assign(y=[0, 1, np.nan, 3, np.inf, 5], a=pd.array([None, *range(5)], "Int64"))
    with pytest.raises(
        TableError, match=r"line 2, column 'a'.*missing.* 2 more cells: line 4, col"
    ):
        read(parquet(tmp_path, gaps), ["y"], missing="error")
    with pytest.raises(TableError, match="line 6, column 'y': 'inf' is infinite"):
        read(parquet(tmp_path, gaps), ["y"])
    with pytest.raises(TableError, match="0 rows of data; at least 5 rows are needed"):
        read(parquet(tmp_path, GOOD_FRAME[:0]), ["y"])
    with pytest.raises(TableError, match="has no columns"):
        read(parquet(tmp_path, pd.DataFrame()), ["y"])
    with pytest.raises(TableError, match=r"no column 'Y'; did you mean 'y'\?"):
        read(parquet(tmp_path, GOOD_FRAME), ["Y"])


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_every_kind_are_read_from_parquet(tmp_path, kind):
    frame = GOOD_FRAME.assign(a=KINDS[kind])
    found = read(parquet(tmp_path, frame), ["y"])["a"]
    assert found.dtype == float
    assert found.tolist() == [float(v) for v in KINDS[kind]]


@pytest.mark.parametrize("kind", OTHERS)
def test_text_dates_and_times_are_read_from_parquet(tmp_path, kind):
    values, expected, read_as = OTHERS[kind]
    found = tables.read(parquet(tmp_path, GOOD_FRAME.assign(a=values)), ["y"])
    assert found.types["a"].kind == expected
    assert found.frame["a"].tolist() == list(read_as)


def test_parquet_columns_of_lists_are_named(tmp_path):
    path = parquet(tmp_path, GOOD_FRAME.assign(a=[[1, 2]] * 6))
    with pytest.raises(TableError, match=r"in 1 column: 'a' \(such as '\[1 2\]'\); .*--exclude a$"):
        read(path, ["y"])
    assert list(read(path, ["y"], exclude=["a"])) == ["flag", "y"]
    with pytest.raises(TableError, match=r"\)$"):
        read(path, ["y"], ["a"])


def test_row_groups_and_an_index_make_no_difference(tmp_path):
    many = pd.DataFrame({"a": np.arange(1000.0), "y": np.arange(1000.0)})
    path = tmp_path / "t.parquet"
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    many.to_parquet(path, row_group_size=70)
    np.testing.assert_array_equal(read(path, ["y"])["a"], many["a"])
    labelled = GOOD_FRAME.set_axis(list("uvwxyz"))
    assert list(read(parquet(tmp_path, labelled), ["y"])) == ["a", "flag", "y"]
    path = parquet(tmp_path, GOOD_FRAME.set_index("a"))
    found = tables.read(path, ["y"], whole=True)
    assert list(found.frame) == ["flag", "y"]
    assert list(found.whole) == ["a", "flag", "y"]
    assert found.notes == (f"{path}: the index 'a' is ignored; use it with --features.",)
    assert list(read(path, ["y"], ["a"])) == ["a", "y"]
    assert tables.read(path, ["y"], ["flag"]).notes == ()
    assert list(read(path, ["a"])) == ["flag", "y", "a"]


def test_damaged_parquet_file_is_a_one_line_error(tmp_path):
    whole = parquet(tmp_path, GOOD_FRAME).read_bytes()
    for broken in (whole[: len(whole) // 2], whole[:40] + bytes(20) + whole[60:], b"a,y\n1,2\n"):
        with pytest.raises(TableError, match="not a readable Parquet file: ") as caught:
            read(write(tmp_path, broken, "b.parquet"), ["y"])
        assert len(str(caught.value).splitlines()) == 1
    assert read(write(tmp_path, whole, "t.dat"), ["y"]).shape == (6, 3)


@pytest.mark.parametrize("cell", ["nan", "-nan", "+NaN"])
def test_signed_nan_is_a_missing_value(cell):
    assert fault(cell) == f"'{cell}' is a missing value; fill it in or remove the row."
