"""Tables: what is wrong is said in one line that names the file, the line and the column."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest

from sbnn import tables
from sbnn.columns import MAX_FEATURES, TableError


def read(*args, **options):
    return tables.read(*args, **options).numbers


def write(folder, text, name="data.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


ROWS = "".join(f"{i},{i * 0.5},{i - 3}\n" for i in range(6))


def test_columns_come_as_features_then_targets_with_the_line_of_the_file(tmp_path):
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


def test_excel_s_byte_order_mark_quotes_and_windows_line_ends_are_understood(tmp_path):
    text = '﻿"load, kN","y"\r\n' + "".join(f'"{i}",{i}\r\n' for i in range(6))
    assert list(read(write(tmp_path, text), ["y"]).columns) == ["load, kN", "y"]


def test_decimal_commas_are_read_where_they_do_not_separate_cells(tmp_path):
    rows = "".join(f"{i},25;-1,5e1;{i}\n" for i in range(6))
    table = tables.read(write(tmp_path, "a, m;b, m;y\n" + rows), ["y"])
    assert table.decimal_comma
    assert list(table.numbers.columns) == ["a, m", "b, m", "y"]
    np.testing.assert_array_equal(table.numbers["a, m"], np.arange(6) + 0.25)
    np.testing.assert_array_equal(table.numbers["b, m"], -15.0)
    tabs = tables.read(write(tmp_path, "a\ty\n" + "1,234\t2,5\n" * 5), ["y"])
    assert tabs.numbers.iloc[0].tolist() == [1.234, 2.5]
    points = tables.read(write(tmp_path, "a;y\n" + "1.5;2\n" * 5), ["y"])
    assert not points.decimal_comma
    assert points.numbers["a"].iloc[0] == 1.5


def test_all_columns_of_text_are_named_at_once(tmp_path):
    rows = "".join(f"r{i},u,{i},p,?,{i}\n" for i in range(6))
    path = write(tmp_path, 'id,kind,a,"site, north",gap,y\n' + rows)
    with pytest.raises(TableError) as caught:
        read(path, ["y"])
    told = str(caught.value)
    assert "3 columns: 'id' (such as 'r0'), 'kind' (such as 'u'), 'site, north'" in told
    assert told.endswith("--exclude id,kind --exclude 'site, north'")
    # what is told can be typed: the options are split as the shell and the command do
    options = shlex.split(told[told.index("--exclude") :])[1::2]
    with pytest.raises(TableError, match="column 'gap': '\\?' is a missing value"):
        read(path, ["y"], exclude=options)
    assert list(read(path, ["y"], exclude=[*options, "gap"])) == ["a", "y"]


def test_several_targets_in_one_option_are_told_how(tmp_path):
    path = write(tmp_path, "a,b,y\n" + "1,2,3\n" * 6)
    with pytest.raises(TableError, match="no column 'b,y'; give --target once for each column"):
        read(path, ["b,y"])


def test_the_columns_of_a_file_are_told(tmp_path):
    assert tables.columns(write(tmp_path, "a;b c;y\n1;2;3\n")) == ["a", "b c", "y"]
    with pytest.raises(TableError, match="does not exist"):
        tables.columns(tmp_path / "nowhere.csv")


def test_features_are_lists_or_names_with_commas_and_some_can_be_excluded(tmp_path):
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
    with pytest.raises(TableError, match="'y' cannot be a target and excluded"):
        read(path, ["y"], ["a"], exclude=["y"])
    with pytest.raises(TableError, match="--exclude takes names"):
        read(path, ["y"], exclude=["a,,b"])


def test_the_whole_table_keeps_order_and_text_of_the_other_columns(tmp_path):
    path = write(tmp_path, "id,b,,a,y\n" + "007,1,,2,n/a\n" * 5)
    found = tables.read(path, (), ["a", "b"], whole=True)
    assert list(found.numbers) == ["a", "b"]
    assert list(found.whole.columns) == ["id", "b", "", "a", "y"]
    assert found.whole.iloc[0].tolist() == ["007", 1.0, "", 2.0, "n/a"]


def test_columns_that_are_not_asked_for_may_hold_anything(tmp_path):
    text = "city,a,y\n" + "".join(f"Ottawa,{i},{i}\n" for i in range(6))
    assert list(read(write(tmp_path, text), ["y"], ["a"]).columns) == ["a", "y"]


GOOD = "".join(f"{i},{i}\n" for i in range(6))
BAD = {
    "empty": (b"", "is empty"),
    "blank": (b"\n\n \n", "blank lines only"),
    "no header": (GOOD, "line 1.*no header"),
    "no such target": ("a,b\n" + GOOD, r"no column 'y'; it has 'a', 'b'\."),
    "text": ("a,y\n" + GOOD + "six,6\n", r"line 8, column 'a': 'six' is not a number.*--exclude"),
    "missing": ("a,y\n" + GOOD + ",6\n", r"line 8, column 'a': an empty cell is a missing value"),
    "nan": ("a,y\n" + GOOD + "6,NaN\n", r"line 8, column 'y': 'NaN' is a missing value"),
    "infinite": ("a,y\n" + GOOD + "inf,6\n", r"line 8, column 'a': 'inf' is infinite"),
    "one row": ("a,y\n1,2\n", r"1 row\(s\) of data; at least 5"),
    "ragged": ("a,y\n" + GOOD + "1,2,3\n", r"line 8: 3 cells, but the header has 2"),
    "decimal comma": ('a,y\n"1,5",2\n' + GOOD, r"line 2, column 'a': '1,5' has a comma; write"),
    "cells cut by decimal commas": ("a,y\n1,5,2,5\n", "line 2: 4 cells.*separate.*semicolons"),
    "commas and points": ("a;y\n1,5;2.5\n", r"line 2, column 'a': '1,5' has a comma; write"),
    "thousands and decimals": ("a;y\n1.234,5;2\n", r"column 'a': '1.234,5' has a comma"),
    "perhaps thousands": ("a\ty\n1,234\t2\n", r"column 'a': '1,234' has a comma"),
    "thousands": ("a,y\n1_000,2\n" + GOOD, r"line 2, column 'a': '1_000' is not a number"),
    "twice": ("y,y\n" + GOOD, r"line 1, column 2: the name 'y' is there twice"),
    "unnamed": (",y\n" + GOOD, r"line 1, column 1: no name"),
    "only the target": ("y\n1\n2\n", "nothing to predict from"),
    "latin-1": (b"a,y\n1,2\n" + "é,1\n".encode("latin-1"), r"not UTF-8.*0xe9.*line 3"),
    "utf-16": ("a,y\n1,2\n".encode("utf-16"), "UTF-16"),
    "binary": (b"\x00\x01\x02", "not a text table"),
    "a million columns": (
        ",".join(["y", *(f"c{i}" for i in range(10**6 - 1))]) + "\n",
        rf"999,999 input columns, more than the {MAX_FEATURES:,}",
    ),
    "an endless quotation": ('a,y\n"' + "1,2\n" * 300_000, "line .*field larger"),
    "control characters": ("a,y\n\x1b[31mred,2\n" + GOOD, r"'\\x1b\[31mred' is not a number"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_tables_are_refused_in_one_clear_line(tmp_path, fault):
    text, message = BAD[fault]
    with pytest.raises(TableError, match=message) as caught:
        read(write(tmp_path, text), ["y"])
    assert len(str(caught.value).splitlines()) == 1
    assert str(tmp_path / "data.csv") in str(caught.value)


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(TableError, match="does not exist"):
        read(tmp_path / "none.csv", ["y"])
    with pytest.raises(TableError, match="is a folder"):
        read(tmp_path, ["y"])


def test_a_misspelt_column_of_many_is_answered_with_the_nearest(tmp_path):
    names = [f"sensor_{i}" for i in range(20)]
    path = write(tmp_path, ",".join(names) + "\n")
    with pytest.raises(TableError, match=r"did you mean 'sensor_7'"):
        read(path, ["Sensor_7"])
    few = write(tmp_path, "Temp,load\n")
    with pytest.raises(TableError, match=r"did you mean 'Temp'\? It has 'Temp', 'load'\.$"):
        read(few, ["tmp"])


def test_a_column_cannot_be_target_and_feature(tmp_path):
    with pytest.raises(TableError, match="target and a feature"):
        read(write(tmp_path, "a,y\n" + GOOD), ["y"], ["a", "y"])


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    def absent(*args, **kwargs):
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_parquet", absent)
    with pytest.raises(TableError, match="pip install pyarrow"):
        read(write(tmp_path, b"PAR1", "t.parquet"), ["y"])


def frame_from_parquet(tmp_path, monkeypatch, frame):
    """pyarrow is optional: what pandas returns is put in its place."""
    monkeypatch.setattr(pd, "read_parquet", lambda path: frame)
    return read(write(tmp_path, b"PAR1", "t.parquet"), ["y"])


def test_parquet_tables_are_checked_like_text(tmp_path, monkeypatch):
    good = pd.DataFrame({"a": range(6), "flag": [True, False] * 3, "y": np.arange(6.0)})
    read_back = frame_from_parquet(tmp_path, monkeypatch, good)
    assert list(read_back.columns) == ["a", "flag", "y"]
    assert read_back["flag"].dtype == float
    with pytest.raises(TableError, match=r"line 4, column 'y'.*missing"):
        frame_from_parquet(tmp_path, monkeypatch, good.assign(y=[0, 1, np.nan, 3, 4, 5]))
    with pytest.raises(TableError, match=r"not numbers in 1 column: 'a' \(.*--exclude a"):
        frame_from_parquet(tmp_path, monkeypatch, good.assign(a=list("abcdef")))


def test_a_real_parquet_file_is_read(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": range(6), "y": np.arange(6.0)}).to_parquet(path)
    assert read(path, ["y"]).shape == (6, 2)
    with pytest.raises(TableError, match="not a Parquet file"):
        read(write(tmp_path, b"PAR1 broken", "b.parquet"), ["y"])
