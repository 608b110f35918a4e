"""Comments, rows of units and signs of currency in text tables."""

from __future__ import annotations

import numpy as np
import pytest

from sbnn.exports import portable
from sbnn.tables import reader as tables
from sbnn.tables.header import TableError

ROWS = "".join(f"{i},{20 + i}.5,{'AB'[i % 2]},{i * i}\n" for i in range(1, 9))


def read(tmp_path, text, targets=("y",), **options):
    path = tmp_path / "t.csv"
    path.write_text(text)
    return tables.read(path, targets, **options)


def test_comments_above_and_below_the_table_are_left_out(tmp_path):
    text = f"# Instrument: X, exported 2024\n#\n\nrun,temp,kind,y\n{ROWS}# end of file\n"
    found = read(tmp_path, text)
    assert list(found.frame) == ["run", "temp", "kind", "y"]
    assert found.frame.index.tolist() == list(range(5, 13))
    assert found.notes[0].endswith("t.csv: 3 lines of comments (#) left out.")


@pytest.mark.parametrize("header", ["#,temp,kind,y", "# run,temp,kind,y"])
def test_header_may_begin_with_a_hash(tmp_path, header):
    found = read(tmp_path, f"{header}\n{ROWS}")
    assert list(found.frame) == header.split(",")
    assert found.notes == ()


def test_lines_of_errors_count_comments(tmp_path):
    with pytest.raises(TableError, match=r"line 13, column 'temp': 'hot' is not a number"):
        read(tmp_path, f"# one\n# two\n\nrun,temp,kind,y\n{ROWS}9,hot,A,5\n")


@pytest.mark.parametrize("units", ["-,°C,-,%", "[1],[°C],,[m/s]"])
def test_row_of_units_is_left_out(tmp_path, units):
    found = read(tmp_path, f"run,temp,kind,y\n{units}\n{ROWS}")
    assert [t.kind for t in found.types.values()] == ["number", "number", "category"]
    assert found.frame.index[0] == 3
    assert len(found.frame) == 8
    assert "line 2: left out, because it holds units (" in found.notes[0]


def test_first_row_with_a_wrong_cell_is_not_taken_for_units(tmp_path):
    with pytest.raises(TableError, match=r"line 2, column 'temp': 'l2' is not a number"):
        read(tmp_path, f"run,temp,kind,y\n1,l2,A,5\n{ROWS}")
    gaps = read(tmp_path, f"run,temp,kind,y\nNA,NA,A,5\n{ROWS}")
    assert len(gaps.frame) == 9


@pytest.mark.parametrize(
    ("cells", "separator", "values"),
    [
        (["$1,234.50", "-$5", "$0.25", "7"], ",", [1234.5, -5, 0.25, 7]),
        (["1.234,50 €", "-5 €", "0,25€", "7"], ";", [1234.5, -5, 0.25, 7]),
        (["CHF 1'234.50", "CHF -5", "CHF 0.25", "7"], ";", [1234.5, -5, 0.25, 7]),
    ],
)
def test_amounts_of_money_are_numbers(tmp_path, cells, separator, values):
    rows = "".join(f'"{cell}"{separator}{i}\n' for i, cell in enumerate(cells * 2))
    found = read(tmp_path, f"a{separator}y\n{rows}")
    assert found.types["a"].kind == "number"
    np.testing.assert_array_equal(found.frame["a"], values * 2)
    if separator == ",":
        assert [portable._number(cell, "number") for cell in cells] == values


def test_several_currencies_are_not_one_number(tmp_path):
    with pytest.raises(TableError, match=r"'€6' is an amount in €, but the column is in \$; corr"):
        read(tmp_path, "a,y\n" + "$5,1\n€6,2\n" * 4)


def test_names_and_signs_of_a_currency_are_one(tmp_path):
    found = read(tmp_path, "a,y\n" + "$5,1\nUSD 6,2\nUS$7,3\n" * 4)
    assert found.frame["a"].tolist() == [5.0, 6.0, 7.0] * 4
    assert found.types["a"] == ("number", "$")


def test_amounts_in_another_currency_than_the_fit_are_refused(tmp_path):
    types = {"a": read(tmp_path, "a,y\n" + "€5,1\n6 EUR,2\n" * 4).types["a"]}

    def read_new(text):
        (tmp_path / "new.csv").write_text(f"a\n{text}")
        return tables.read(tmp_path / "new.csv", (), ["a"], min_rows=1, types=types)

    assert read_new("15 EUR\n€3\n12\n").frame["a"].tolist() == [15, 3, 12]
    with pytest.raises(
        TableError, match=r"'\$15' is an amount in \$, but the fit had amounts in €"
    ):
        read_new("$15\n")
    types = {"a": types["a"]._replace(format="")}  # the fit had numbers alone
    assert read_new("$15\n").frame["a"].tolist() == [15]
    with pytest.raises(
        TableError, match=r"line 3, .* '£16' is an amount in £, but the column is in \$"
    ):
        read_new("$15\n£16\n$17\n")


def test_target_that_is_not_a_number_can_be_left_empty(tmp_path):
    with pytest.raises(TableError, match="'<LOD' is not a number; correct it, or empty the cell"):
        read(tmp_path, f"run,temp,kind,y\n{ROWS}9,3.5,A,<LOD\n")
