"""Rows of text tables: pandas' parser and `csv.reader` agree, and line numbers are true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sbnn.tables.header import TableError
from sbnn.tables.text import Header, parse_by_line, parse_quickly, read_header, read_rows

PATH = Path("data.csv")


def header(body, width=2, line=1):
    names = [f"c{k}" for k in range(width)]
    return Header(",", names, names, line, body)


def test_both_parsers_agree_on_random_text():
    """Whatever the quick parser accepts, `csv.reader` reads the same way, line by line."""
    rng = np.random.default_rng(0)
    accepted = rejected = 0
    pieces = np.array(["1", "x", ",", ",", "\n", "\n", "\r\n", "\r", '"', '""', " ", "\t", "é"])
    for _ in range(4000):
        rows = ["1,2\n" for _ in range(rng.integers(0, 3))]
        body = "".join([*rows, *rng.choice(pieces, size=rng.integers(1, 12))])
        quick = parse_quickly(header(body))
        if quick is None:
            rejected += 1
            continue
        accepted += 1
        exact = parse_by_line(PATH, header(body))
        assert quick.lines == exact.lines, repr(body)
        assert quick.cells.to_numpy().tolist() == exact.cells.to_numpy().tolist(), repr(body)
    assert accepted > 300
    assert rejected > 300


@pytest.mark.parametrize(
    "body",
    [
        '"1\n",2\n3,4\n',  # a cell spans two lines
        "1\n3,4\n",  # a short row, which pandas pads
        "3,4\n1\n",
        "1,2\n3,4,5\n",
        '1,"2\n',
        "1,2\n , \n3,4\n",  # an empty row
    ],
)
def test_unusual_rows_are_left_to_csv_reader(body):
    assert parse_quickly(header(body)) is None


def test_usual_tables_are_read_by_pandas():
    rows = parse_quickly(header(' a,1\n\n"x, y",2\n  \n-,3'))
    assert rows.lines == [2, 4, 6]
    assert rows.cells.to_numpy().tolist() == [[" a", "1"], ["x, y", "2"], ["-", "3"]]


def test_lines_are_true_below_cells_that_span_lines():
    text = 'a,"y\n(m)"\n\n1,2\n"3\n",4\n5,6\n'
    found = read_header(PATH, text)
    assert found.names == ["a", "y\n(m)"]
    assert read_rows(PATH, found).lines == [4, 6, 7]
    with pytest.raises(TableError, match=r"line 8: 1 cell, but the header has 2\."):
        read_rows(PATH, read_header(PATH, text + "7\n"))


def test_importing_the_reader_leaves_the_csv_module_alone():
    code = "import csv; n = csv.field_size_limit(); import sbnn.tables.reader; "
    code += "print(csv.field_size_limit() == n)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
