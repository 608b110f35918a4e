"""Decimal signs and thousands of the fit's table in `predict`, `next` and exported files."""

from __future__ import annotations

import json
import runpy

import numpy as np
import pandas as pd
import pytest
from command_line import QUICK, run

from sbnn.cli.terminal import UsageError
from sbnn.cli.written_cells import check_comma


def german(value, digits):
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def table(n=60):
    """A German table: prices above a thousand with points, sizes with decimal commas."""
    rng = np.random.default_rng(3)
    price, size = rng.integers(2001, 9999, n), rng.uniform(1, 9, n)
    y = 0.002 * price + size + 0.1 * rng.normal(size=n)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    return pd.DataFrame(
        {
            "price": [german(v, 0) for v in price],
            "size": [german(v, 2) for v in size],
            "share": [german(v, 1) + " %" for v in 10 * size + rng.normal(size=n)],
            "day": day.strftime("%d.%m.%Y"),
            "neu": rng.choice(["ja", "nein"], n),
            "y": [german(v, 3) for v in y],
        }
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("signs")
    table().to_csv(path / "data.csv", sep=";", index=False)
    run("fit", path / "data.csv", "--target", "y", *QUICK, "--out", path / "fit")
    return path


def predicted(place, text, **options):
    (place / "new.csv").write_text(text)
    return run("predict", place / "fit", place / "new.csv", "--json", **options)


def mean(result):
    return json.loads(result.stdout)["predictions"]["y"]["mean"]


HEADER = "price;size;share;day;neu\n"
CERTAIN = HEADER + "5465;3,5;30,5 %;01.02.2024;ja\n"


@pytest.mark.parametrize(
    ("size", "certain"), [("3", "3,0"), ("3,500", "3,5")], ids=["points alone", "points and commas"]
)
def test_predict_reads_numbers_that_could_be_either_as_the_fit_did(place, size, certain):
    expected = mean(predicted(place, f"{HEADER}5465;{certain};30 %;01.02.2024;ja\n"))
    found = predicted(place, f"{HEADER}5.465;{size};30 %;01.02.2024;ja\n")
    np.testing.assert_allclose(mean(found), expected, rtol=1e-9)
    assert "1.234 is above a thousand), as in the fit" in found.stderr


@pytest.mark.parametrize("separator", [";", ","])
def test_predict_says_where_a_file_contradicts_the_fit(place, separator):
    text = f"{HEADER}5465;3.5;30.5 %;01.02.2024;ja\n".replace(";", separator)
    found = predicted(place, text)
    np.testing.assert_allclose(mean(found), mean(predicted(place, CERTAIN)), rtol=1e-9)
    note = "(1.5 is one and a half), unlike those of the fit, which have decimal commas"
    assert note in " ".join(found.stderr.split())


def test_predict_refuses_a_comma_where_the_fit_had_points_and_no_thousands(tmp_path):
    rows = "".join(f"{i}.5;{i % 7}.25;{i + 3 * (i * i % 5)}\n" for i in range(30))
    (tmp_path / "data.csv").write_text("a;b;y\n" + rows)
    run("fit", tmp_path / "data.csv", "--target", "y", *QUICK, "--out", tmp_path / "fit")
    (tmp_path / "new.csv").write_text("a;b\n1,250;3\n")
    error = run("predict", tmp_path / "fit", tmp_path / "new.csv", code=2).stderr
    assert "'1,250' has a comma; write 1250 if it separates thousands" in error
    assert "The numbers of the fit have decimal points." in error


def test_exported_file_reads_numbers_as_the_fit_did(place):
    run("export", place / "fit", place / "model.py", "--force")
    predict = runpy.run_path(str(place / "model.py"))["predict"]
    expected = mean(predicted(place, CERTAIN))
    cells = [
        ["5.465", "3,5", "30,5 %", "01.02.2024", "ja"],
        ["5 465", "3,50", "30,5%", "01.02.2024", "ja"],
    ]
    np.testing.assert_allclose(predict(cells), expected * 2, rtol=1e-6)
    frame = pd.DataFrame(cells, columns=["price", "size", "share", "day", "neu"])
    np.testing.assert_allclose(predict(frame), expected * 2, rtol=1e-6)
    numbers = [[5465, 3.5, "30,5 %", "01.02.2024", "ja"]]
    np.testing.assert_allclose(predict(numbers), expected, rtol=1e-6)
    with pytest.raises(
        ValueError, match=r"'3\.5' has a point, but the numbers of the fit have dec"
    ):
        predict([["5.465", "3.5", "30,5 %", "01.02.2024", "ja"]])


def test_next_prints_and_writes_cells_as_the_table_has_them(place):
    given = ["--n", "3", "--range", "size=2,5:3,5", "--range", "price=2.500:3500"]
    header, *rows = run("next", place / "fit", *given).stdout.split("\n\n")[0].splitlines()
    assert header.split()[:2] == ["price", "size"]
    assert all(row.count(".") == row.count("2024") * 2 for row in rows)  # in dates only
    run("next", place / "fit", *given, "--range", "day=01.02.2024:03.02.2024", "--out",
        place / "next.csv", "--force")  # fmt: skip
    text = (place / "next.csv").read_text()
    found = pd.read_csv(place / "next.csv", sep=";", decimal=",")
    assert found["price"].between(2500, 3500).all()
    assert found["size"].between(2.5, 3.5).all()
    assert found["share"].str.endswith(" %").all()
    assert set(found["day"]) <= {"01.02.2024", "02.02.2024", "03.02.2024"}
    assert set(found["neu"]) <= {"ja", "nein"}
    (place / "more.csv").write_text(text)
    assert len(mean(run("predict", place / "fit", place / "more.csv", "--json"))) == 3


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("size=a:b", "'a' is not a number as in the column 'size' of the fit"),
        ("day=soon:later", "'soon' is not a date as in the column 'day' of the fit"),
    ],
)
def test_next_names_ends_of_ranges_that_it_cannot_read(place, given, fault):
    assert fault in run("next", place / "fit", "--range", given, code=2).stderr


@pytest.mark.parametrize("given", ["size=2,5", "price=2500,4000"])
def test_next_refuses_a_value_that_may_be_a_range(place, given):
    name, value = given.split("=")
    error = run("next", place / "fit", "--range", given, code=2).stderr
    colon = value.replace(",", ":")
    assert f"{value} may be one value or a range; write {name}={colon} for the range" in error
    assert f"or {name}={value}:{value} for the value" in error


@pytest.mark.parametrize("given", ["size=2,50", "size=5,2", "size=2,5:2,5"])
def test_next_holds_a_value_with_a_decimal_comma(place, given):
    table = run("next", place / "fit", "--n", "1", "--range", given).stdout.splitlines()
    column = table[0].split().index("size")
    assert table[1].split()[column] == given.removeprefix("size=").split(":")[0].rstrip("0")


@pytest.mark.parametrize(
    ("text", "value", "meant"),
    [("1,200", 1200.0, True), ("2500,4000", 2500.4, False), ("20,300", 20300.0, False),
     ("0,250", 0.25, True), ("4000,2500", 4000.25, True)],
)  # fmt: skip
def test_comma_in_one_value_is_judged_by_the_range_of_the_column(text, value, meant):
    seen = [800.0, 9000.0] if value > 1 else [0.1, 0.9]
    if meant:
        check_comma("a", text, value, seen)
    else:
        with pytest.raises(UsageError, match="may be one value or a range"):
            check_comma("a", text, value, seen)


def test_predict_and_exported_file_read_iso_dates_in_any_table(place):
    expected = mean(predicted(place, CERTAIN))
    found = predicted(place, CERTAIN.replace("01.02.2024", "2024-02-01"))
    np.testing.assert_allclose(mean(found), expected, rtol=1e-12)
    run("export", place / "fit", place / "model.py", "--force")
    predict = runpy.run_path(str(place / "model.py"))["predict"]
    cells = [["5465", "3,5", "30,5 %", "2024-02-01", "ja"]]
    np.testing.assert_allclose(predict(cells), expected, rtol=1e-6)


def test_predict_ignores_unreadable_cells_of_columns_that_the_model_does_not_use(tmp_path):
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"used": rng.uniform(size=60).round(4)})
    data["share"] = [f"{v:.1f} %" for v in rng.uniform(0, 100, 60)]
    data["same"] = 7
    y = data["used"] + 0.05 * rng.normal(size=60)
    data.assign(y=y).to_csv(tmp_path / "data.csv", index=False)
    given = [tmp_path / "fit", tmp_path / "new.csv"]
    sparse = ["--hidden", "1", "--noise", "constant"]
    run("fit", tmp_path / "data.csv", "--target", "y", *sparse, "--out", given[0])
    (tmp_path / "new.csv").write_text("used,share,same\n0.5,12 %,7\n0.5,12,7\n")
    result = run("predict", *given, "--json")
    assert len(set(mean(result))) == 1
    assert json.loads(result.stdout)["missing"] == [[], []]
    assert "cells of 'share' are missing, new or cannot be read; the model does not" in (
        " ".join(result.stderr.split())
    )
    (tmp_path / "new.csv").write_text("used,share,same\n0.5,12 %,seven\n")
    assert "'seven' is not a number" in run("predict", *given, code=2).stderr


def test_predict_refuses_a_percentage_without_its_sign_in_a_column_that_the_model_uses(tmp_path):
    rng = np.random.default_rng(0)
    share = rng.uniform(0, 100, 60).round(1)
    data = pd.DataFrame({"share": [f"{v:.1f} %" for v in share], "y": share + rng.normal(size=60)})
    data.to_csv(tmp_path / "data.csv", index=False)
    given = [tmp_path / "fit", tmp_path / "new.csv"]
    quick = ["--hidden", "1", "--noise", "constant"]
    run("fit", tmp_path / "data.csv", "--target", "y", *quick, "--out", given[0])
    expected = mean(run("predict", given[0], tmp_path / "data.csv", "--json"))
    assert mean(run("predict", given[0], given[0] / "training.csv", "--json")) == expected
    (tmp_path / "new.csv").write_text("share\n12 %\n12\n")
    result = run("predict", *given, "--out", tmp_path / "out.csv", code=2)
    assert "'12' has no percent sign, but the column holds percentages" in (
        " ".join(result.stderr.split())
    )
    assert "; write 12 % if it is one" in " ".join(result.stderr.split())
    assert "line 3" in result.stderr
    assert not (tmp_path / "out.csv").exists()


def test_amounts_in_another_currency_than_the_fit_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    price = rng.uniform(10, 20, 60).round(2)
    data = pd.DataFrame({"price": [f"{german(v, 2)} €" for v in price], "size": price.astype(int)})
    y = [german(v, 3) for v in price + 0.3 * rng.normal(size=60)]
    data.assign(y=y).to_csv(tmp_path / "d.csv", sep=";", index=False)
    given = [tmp_path / "fit", tmp_path / "new.csv"]
    run("fit", tmp_path / "d.csv", "--target", "y", *QUICK, "--out", given[0])
    (tmp_path / "new.csv").write_text("price;size\n$15,05;12\n")
    fault = "'$15,05' is an amount in $, but the fit had amounts in € there; convert it."
    assert fault in run("predict", *given, code=2).stderr
    (tmp_path / "new.csv").write_text("price;size\n15,05 EUR;12\n€15,05;12\n15,05;12\n")
    expected = mean(run("predict", *given, "--json"))
    run("export", given[0], tmp_path / "model.py")
    predict = runpy.run_path(str(tmp_path / "model.py"))["predict"]
    cells = [["15,05 EUR", "12"], ["€15,05", "12"], ["15,05", "12"]]
    np.testing.assert_allclose(predict(cells), expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"'\$15,05' is in \$, but the column is in €"):
        predict([["$15,05", "12"]])
    error = run("next", given[0], "--range", "price=$11:$12", code=2).stderr
    assert "'$11' is not a number in € as in the column 'price' of the fit." in error
