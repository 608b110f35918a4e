"""Text, dates, percentages, codes and gaps on the command line."""

from __future__ import annotations

import datetime
import io
import json
import runpy

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sbnn
from sbnn.cli.app import app
from sbnn.reports import fit_folder

EFFECTS = {"Rome": 0.0, "Oslo": 1.2, "Lima": -0.8, "Cairo": 0.5, "Perth": -1.5, "Quito": 2.0}
GRADES = {"low": -0.6, "mid": 0.0, "high": 0.9}
NOISE = 0.3


def spreadsheet(n, seed, missing=0.05):
    """A table as people keep it, the same without gaps, and the target's mean."""
    rng = np.random.default_rng(seed)
    city = rng.choice(list(EFFECTS), n, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    grade, days = rng.choice(list(GRADES), n), rng.integers(0, 1095, n)
    a, b, c = rng.normal(size=(3, n))
    b = 0.7 * a + 0.7 * b
    season = np.sin(2 * np.pi * days / 365.25)
    mean = np.sin(1.5 * a) + 0.5 * b + pd.Series(city).map(EFFECTS) + 0.0005 * days + 0.8 * season
    mean = (mean + pd.Series(grade).map(GRADES) * (1 + 0.3 * c)).to_numpy()
    whole = pd.DataFrame({"a": a, "b": b, "c": c, "city": city, "grade": grade})
    whole["date"] = (pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")).strftime("%Y-%m-%d")
    y = mean + NOISE * rng.normal(size=n)
    gaps = rng.random(whole.shape) < missing
    return whole.mask(gaps).assign(y=y), whole.assign(y=y), mean


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("columns")
    table, _, _ = spreadsheet(140, 0)
    rng = np.random.default_rng(9)
    table["id"] = [f"r{i}" for i in range(140)]
    table["zone"] = rng.integers(1, 4, size=140)
    table["share"] = [f"{v:.1f} %" for v in rng.uniform(0, 100, size=140)]
    table["yes"] = rng.choice(["yes", "no"], size=140)
    table.loc[7, "y"] = np.nan
    table.to_csv(path / "data.csv", index=False)
    out = path / "fit"
    arguments = ["fit", path / "data.csv", "--target", "y", "--categorical", "zone"]
    result = run(*arguments, "--hidden", "2", "--noise", "constant", "--out", out)
    return path, out, result, table


def test_fit_of_a_spreadsheet_needs_no_options(fitted):
    _, out, result, _ = fitted
    assert "ignoring column 'id', which holds 139 different texts" in result.stderr
    assert "1 row without a value of the target left out" in result.stderr
    assert "cells (" in result.stdout
    record = json.loads((out / "fit.json").read_text())
    assert record["features"] == ["a", "b", "c", "city", "grade", "date", "zone", "share", "yes"]
    kinds = {name: column["kind"] for name, column in record["columns"].items()}
    assert kinds == {
        "a": "number", "b": "number", "c": "number", "city": "category", "grade": "category",
        "date": "date", "zone": "category", "share": "percent", "yes": "boolean",
    }  # fmt: skip
    assert record["data"]["rows"] == 139
    shares = record["feature_relevance"]
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["city"] > 0.1
    assert max(shares["zone"], shares["share"], shares["yes"]) < 0.1
    page = (out / "report.html").read_text()
    assert "Columns and missing cells" in page
    assert "city = Lima" in page


def test_training_table_survives_the_folder(fitted):
    path, out, _, table = fitted
    again = fit_folder.load(out)
    table = table.drop(index=7).reset_index(drop=True)
    data = again.data.reset_index(drop=True)
    np.testing.assert_array_equal(data["a"], table["a"])
    assert data["city"].astype(object).where(data["city"].notna(), None).tolist() == (
        table["city"].astype(object).where(table["city"].notna(), None).tolist()
    )
    days = pd.to_datetime(table["date"]).astype(data["date"].dtype)  # pandas 2 reads nanoseconds
    pd.testing.assert_series_equal(data["date"], days, check_names=False)
    assert data["zone"].tolist() == table["zone"].astype(str).tolist()
    assert data["share"].tolist() == [float(v.removesuffix(" %")) for v in table["share"]]
    before = (out / "report.html").read_text()
    run("report", out)
    assert (out / "report.html").read_text() == before
    assert again.model.columns_.loc["city", "n_categories"] == 6
    model = sbnn.load(out / "model.nc")
    np.testing.assert_array_equal(model.predict(again.x), again.model.predict(again.x))
    assert path.exists()


def test_predict_flags_gaps_and_unseen_categories(fitted):
    path, out, _, table = fitted
    new = table.dropna().head(4).astype(object).reset_index(drop=True)
    new.loc[1, "a"] = new.loc[1, "date"] = ""
    new.loc[2, "city"] = "Paris"
    new.loc[3, "grade"] = "n/a"
    new.loc[3, "date"] = "2031-01-01"
    new.drop(columns="y").to_csv(path / "new.csv", index=False)
    result = run("predict", out, path / "new.csv")
    got = pd.read_csv(io.StringIO(result.stdout), keep_default_na=False)
    assert got["missing"].tolist() == ["", "a; date", "", "grade"]
    assert got["unseen"].tolist() == ["", "", "city", ""]
    assert got["extrapolates"].tolist() == ["", "", "", "date"]
    assert got["city"].tolist()[2] == "Paris"
    assert "2 of 4 rows have missing cells ('a': 1, 'date': 1, 'grade': 1)" in result.stderr
    assert "1 of 4 rows has a category that the fit did not have ('city': 1)" in result.stderr
    known = new.copy()
    known.loc[1, ["a", "date"]] = table.dropna().iloc[1][["a", "date"]].to_numpy()
    known.loc[2, "city"] = "Oslo"
    known.drop(columns="y").to_csv(path / "known.csv", index=False)
    std = pd.read_csv(io.StringIO(run("predict", out, path / "known.csv").stdout))["y_std"]
    # Not knowing a and the date, or the city, leaves a spread of 0.85 or 0.93 in the table's true
    # mean. At least half of it is asked for: a fit by this seed may miss the curve in a.
    unknown = np.sqrt(got["y_std"][1:3] ** 2 - std[1:3] ** 2)
    assert (unknown > [0.43, 0.47]).all()
    assert got["y_std"][0] == pytest.approx(std[0])
    answer = json.loads(run("predict", out, path / "new.csv", "--json").stdout)
    assert answer["unseen"] == [[], [], ["city"], []]


def test_exported_file_reads_cells_as_in_the_fit(fitted):
    """Percentages, yes and no, and dates are text in the file and numbers in the model."""
    path, out, _, table = fitted
    new = table.dropna().drop(columns=["y", "id"]).astype(str)
    new.to_csv(path / "cells.csv", index=False)
    expected = json.loads(run("predict", out, path / "cells.csv", "--json").stdout)
    run("export", out, path / "model.py")
    predict = runpy.run_path(str(path / "model.py"))["predict"]
    mean, std = predict(new.to_dict("list"), return_std=True)
    predicted = expected["predictions"]["y"]
    assert (np.abs(mean - predicted["mean"]) < 1e-6 * np.array(predicted["std"])).all()
    np.testing.assert_allclose(std, predicted["std"], rtol=1e-6)


def test_predict_reads_cells_as_in_the_fit(fitted):
    path, out, _, table = fitted
    new = table.dropna().head(3).astype(object).reset_index(drop=True)
    new.loc[1, "share"] = "0.25"
    new.to_csv(path / "bad.csv", index=False)
    message = run("predict", out, path / "bad.csv").stderr
    assert "cells of 'share' are missing, new or cannot be read; the model does not use" in message
    new.loc[1, "share"], new.loc[2, "date"] = "25 %", "tomorrow"
    new.to_csv(path / "bad.csv", index=False)
    message = run("predict", out, path / "bad.csv", code=2).stderr
    assert "line 4, column 'date': 'tomorrow' is not a date" in message
    assert "such as 2023-12-31" in message


def test_missing_cells_are_errors_or_dropped_on_request(fitted, tmp_path):
    path, *_ = fitted
    arguments = ["fit", path / "data.csv", "--target", "y", "--features", "a", "--hidden", "1"]
    message = run(*arguments, "--missing", "error", "--out", tmp_path / "o", code=2).stderr
    assert "an empty cell is a missing value" in message
    quick = ["--method", "laplace", "--noise", "constant"]
    result = run(*arguments, *quick, "--missing", "drop", "--out", tmp_path / "o")
    assert "rows with missing cells left out" in result.stderr
    (tmp_path / "new.csv").write_text("a\n1\n\n?\n")
    got = pd.read_csv(io.StringIO(run("predict", tmp_path / "o", tmp_path / "new.csv").stdout))
    assert got["y_std"][1] > got["y_std"][0]


def test_times_of_day_are_on_a_circle(tmp_path):
    hours = np.arange(48) % 24
    y = np.cos(2 * np.pi * hours / 24) + 0.05 * np.sin(np.arange(48.0))
    table = pd.DataFrame({"t": [f"{h}:15" for h in hours], "y": y})
    table.loc[5, "t"] = ""
    table.to_csv(tmp_path / "data.csv", index=False)
    arguments = ["--target", "y", "--hidden", "1", "--method", "laplace", "--noise", "constant"]
    run("fit", tmp_path / "data.csv", *arguments, "--out", tmp_path / "fit")
    again = fit_folder.load(tmp_path / "fit")
    assert again.model.encoder_.names(["t"]) == ["t, elapsed", "t, day (sin)", "t, day (cos)"]
    assert again.data["t"].iloc[0] == datetime.time(0, 15)
    assert again.data["t"].isna().sum() == 1
    before = (tmp_path / "fit" / "report.html").read_text()
    run("report", tmp_path / "fit")
    assert (tmp_path / "fit" / "report.html").read_text() == before
    (tmp_path / "new.csv").write_text("t\n0:15\n23:59\n?\n")
    result = run("predict", tmp_path / "fit", tmp_path / "new.csv", "--json")
    answer = json.loads(result.stdout)
    assert answer["extrapolates"] == [[], ["t"], []]
    assert answer["missing"] == [[], [], ["t"]]


@pytest.mark.slow
def test_spreadsheet_of_3000_rows_is_fitted_and_predicted_without_options(tmp_path):
    table, whole, _ = spreadsheet(3000, 0)
    table.to_csv(tmp_path / "data.csv", index=False)
    run("fit", tmp_path / "data.csv", "--target", "y", "--out", tmp_path / "fit")
    model = sbnn.load(tmp_path / "fit" / "model.nc")
    new, complete, _ = spreadsheet(3000, 1)
    complete["date"] = pd.to_datetime(complete["date"])
    inputs = complete.drop(columns="y")

    def numeric(frame):
        days = (pd.to_datetime(frame["date"]) - pd.Timestamp("2020-01-01")).dt.days
        angle = 2 * np.pi * days / 365.25
        out = pd.get_dummies(frame.drop(columns=["date", "y"]), dtype=float)
        return out.assign(days=days, sin=np.sin(angle), cos=np.cos(angle))

    by_hand = sbnn.SparseBNNRegressor(random_state=0).fit(numeric(whole), whole["y"])
    rmse = lambda predicted: np.sqrt(np.mean((predicted - complete["y"]) ** 2))
    assert rmse(model.predict(inputs)) < 1.05 * rmse(by_hand.predict(numeric(complete)))
    # the effect of the text column, against the truth
    base = inputs.head(200)
    found = {city: model.predict(base.assign(city=city)).mean() for city in EFFECTS}
    centre = np.mean(list(found.values())) - np.mean(list(EFFECTS.values()))
    assert all(abs(found[city] - centre - effect) < 0.15 for city, effect in EFFECTS.items())
    # gaps, and new cities from the same population of effects
    rng = np.random.default_rng(5)
    rows = np.flatnonzero(rng.random(3000) < 0.05)
    effects = np.array(list(EFFECTS.values()))
    drawn = rng.normal(effects.mean(), effects.std(ddof=1), len(rows))
    new.loc[rows, "y"] += drawn - complete["city"].map(EFFECTS).to_numpy()[rows]
    new.loc[rows, "city"] = [f"new {k}" for k in range(len(rows))]
    new.to_csv(tmp_path / "new.csv", index=False)
    run("predict", tmp_path / "fit", tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    got = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    assert (np.flatnonzero(got["unseen"] == "city") == rows).all()
    used = [name for name, share in zip(inputs, model.feature_relevance_) if share > 0]
    gaps = new[used].isna().any(axis=1).to_numpy()
    assert ((got["missing"] != "") == gaps).all()
    flagged = gaps | (got["unseen"] != "")
    for which in (flagged, ~flagged):
        inside = got[which]["y"].between(got[which]["y_lower"], got[which]["y_upper"])
        assert 0.90 <= inside.mean() <= 0.99
