"""`sbnn next` and `sbnn export` on a table with text and missing cells."""

import json
import runpy

import numpy as np
import pandas as pd
import pytest
from command_line import run

import sbnn
from sbnn.cli.commands.next import _answer
from sbnn.reports.fit import Record, Source

FIT = ["--target", "y", "--noise", "constant"]


def table():
    rng = np.random.default_rng(0)
    n = 40
    frame = pd.DataFrame({"heat": rng.uniform(20, 30, n), "city": rng.choice(["Oslo", "Rome"], n)})
    frame["batch"] = 7
    frame["y"] = 0.3 * frame["heat"] + (frame["city"] == "Rome") + 0.1 * rng.normal(size=n)
    frame.loc[3, "heat"] = np.nan
    return frame


def test_next_prints_rows_and_what_to_expect_from_them(fitted):
    out, _ = fitted
    printed = run("next", out, "--n", "2", "--range", "heat=24:26", "--range", "city=Rome").stdout
    header, *rows, empty, sentence, held = printed.splitlines()
    assert header.split() == ["heat", "city", "batch", "y_mean", "y_std", "gain"]
    assert len(rows) == 2
    assert all("Rome" in row and 24 <= float(row.split()[0]) <= 26 for row in rows)
    assert empty == ""
    assert sentence.startswith("Measuring these 2 rows would reduce the average variance")
    assert all(row.split()[2] == "7" for row in rows)
    assert held.startswith("Leave 'batch' as in all rows of the fit: what another value of it")


def test_next_agrees_with_the_estimator_in_json_and_in_a_file(fitted, place):
    out, _ = fitted
    model = sbnn.load(out / "model.nc")
    expected = model.suggest(3, goal="minimum")
    answer = json.loads(run("next", out, "--n", "3", "--goal", "minimum", "--json").stdout)
    assert [row["city"] for row in answer["suggestions"]] == expected["city"].tolist()
    gains = [row["gain"] for row in answer["suggestions"]]
    np.testing.assert_allclose(gains, expected["gain"])
    run("next", out, "--n", "3", "--goal", "minimum", "--out", place / "next.csv")
    written = pd.read_csv(place / "next.csv")
    np.testing.assert_allclose(written["y_mean"], expected["predicted_mean"], rtol=1e-5)


def test_next_chooses_from_candidates_by_line(fitted, place):
    out, _ = fitted
    table().drop(columns="y").to_csv(place / "rows.csv", index=False)
    given = ["--candidates", place / "rows.csv", "--json"]
    result = run("next", out, "--n", "2", *given)
    assert "1 candidate with missing cells" in result.stderr
    answer = json.loads(result.stdout)
    lines = [row["line"] for row in answer["suggestions"]]
    rows = pd.read_csv(place / "rows.csv")
    heat = [rows["heat"].iloc[line - 2] for line in lines]  # the first row is on line 2
    np.testing.assert_allclose([row["heat"] for row in answer["suggestions"]], heat)


def test_next_keeps_the_other_columns_of_candidates_and_their_cells(fitted, place):
    out, _ = fitted
    rows = table().drop(columns="y").dropna().head(6)
    rows["heat"] = [f"{value:.7f}" for value in rows["heat"]]
    rows.insert(0, "id", [f"S-{k}" for k in range(6)])
    rows.to_csv(place / "ids.csv", index=False)
    given = ["next", out, "--n", "2", "--candidates", place / "ids.csv"]
    run(*given, "--out", place / "chosen.csv")
    found = pd.read_csv(place / "chosen.csv", dtype=str)
    assert list(found)[:5] == ["line", "id", "heat", "city", "batch"]
    expected = rows.set_index("id").loc[found["id"], "heat"]
    assert found["heat"].tolist() == expected.tolist()
    answer = json.loads(run(*given, "--json").stdout)["suggestions"]
    assert [row["id"] for row in answer] == found["id"].tolist()
    assert run(*given).stdout.split()[:2] == ["line", "id"]


def test_next_holds_one_value(fitted):
    out, _ = fitted
    result = run("next", out, "--n", "2", "--range", "heat=24.5", "--json")
    assert [row["heat"] for row in json.loads(result.stdout)["suggestions"]] == [24.5, 24.5]


def test_next_shows_a_held_value_as_given(fitted, place):
    out, _ = fitted
    given = ["next", out, "--n", "2", "--range", "heat=24.1234567"]
    assert [row.split()[0] for row in run(*given).stdout.splitlines()[1:3]] == ["24.1234567"] * 2
    run(*given, "--out", place / "held.csv")
    assert pd.read_csv(place / "held.csv", dtype=str)["heat"].tolist() == ["24.1234567"] * 2


def test_predict_needs_no_column_that_the_model_does_not_use(fitted, place):
    out, _ = fitted
    rows = table().drop(columns="y").dropna().head(4)
    rows.to_csv(place / "whole.csv", index=False)
    rows.drop(columns="batch").to_csv(place / "part.csv", index=False)
    rows.drop(columns="heat").to_csv(place / "less.csv", index=False)
    whole = run("predict", out, place / "whole.csv", "--json")
    part = run("predict", out, place / "part.csv", "--json")
    mean, expected = (json.loads(r.stdout)["predictions"]["y"]["mean"] for r in (part, whole))
    np.testing.assert_allclose(mean, expected, rtol=1e-9)
    assert "has no column 'batch'; the model does not use it." in part.stderr
    assert part.stderr.count("batch") == 1
    failed = run("predict", out, place / "less.csv", code=2)
    assert "has no column 'heat'" in failed.stderr


def test_predict_asks_about_a_misspelt_category(fitted, place):
    out, _ = fitted
    rows = table().drop(columns="y").dropna().head(4)
    rows["city"] = ["oslo", "Rome", "Paris", "Oslo"]
    rows.to_csv(place / "slip.csv", index=False)
    message = run("predict", out, place / "slip.csv").stderr
    assert "'city' has 'oslo': did you mean 'Oslo'?" in message
    assert "Paris" not in message


def test_next_keeps_candidates_with_unknown_cells_that_do_not_matter(fitted, place):
    out, _ = fitted
    rows = table().drop(columns="y").dropna().head(6)
    rows["batch"] = np.nan
    rows.to_csv(place / "gaps.csv", index=False)
    result = run("next", out, "--n", "3", "--candidates", place / "gaps.csv", "--json")
    assert "left out" not in result.stderr
    assert "the model does not use this column" in result.stderr
    suggested = json.loads(result.stdout)["suggestions"]
    assert len(suggested) == 3
    assert all(np.isfinite(row["gain"]) for row in suggested)


def test_next_warns_about_rows_outside_the_training_data(fitted, place):
    out, _ = fitted
    rows = table().drop(columns="y").dropna().head(6)
    rows.loc[rows.index[:2], "heat"] = 99.0
    rows.loc[rows.index[:3], "batch"] = 8
    rows.to_csv(place / "far.csv", index=False)
    message = run("next", out, "--n", "2", "--candidates", place / "far.csv").stderr
    assert "2 of 6 candidates are outside the range of the fit ('heat': 2)" in message
    assert "3 of 6 candidates have new values in columns that were the same" in message
    message = run("next", out, "--n", "2", "--range", "heat=50:60").stderr
    assert "2 of 2 suggested rows are outside the range of the fit ('heat': 2)" in message
    assert run("next", out, "--n", "2").stderr == ""


def test_predict_warns_about_new_values_of_constant_columns(fitted, place):
    out, _ = fitted
    rows = table().drop(columns="y").dropna().head(4)
    rows.loc[rows.index[0], "batch"] = 8
    rows.to_csv(place / "batch.csv", index=False)
    result = run("predict", out, place / "batch.csv", "--json")
    answer = json.loads(result.stdout)
    assert answer["unseen"] == [["batch"], [], [], []]
    assert answer["extrapolates"] == [[], [], [], []]
    assert (
        "1 of 4 rows has a new value in a column that was the same in all rows of the fit "
        "('batch': 1); the model cannot know the effect"
    ) in result.stderr


def test_predict_flags_only_columns_that_the_model_uses_as_extrapolated(tmp_path):
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(size=(60, 2)), columns=["used", "idle"])
    y = data["used"] + 0.05 * rng.normal(size=60)
    data.assign(y=y).to_csv(tmp_path / "data.csv", index=False)
    run("fit", tmp_path / "data.csv", *FIT, "--hidden", "1", "--out", tmp_path / "fit")
    assert (sbnn.load(tmp_path / "fit" / "model.nc").feature_relevance_ == [1, 0]).all()
    pd.DataFrame({"used": [0.5, 9.0], "idle": 9.0}).to_csv(tmp_path / "new.csv", index=False)
    answer = run("predict", tmp_path / "fit", tmp_path / "new.csv", "--json")
    assert json.loads(answer.stdout)["extrapolates"] == [[], ["used"]]
    assert "idle" not in answer.stderr


def test_next_leaves_out_columns_that_the_model_does_not_use(capsys):
    found = pd.DataFrame({"a": [1.0], "b": [2.0], "y_mean": [0.0], "y_std": [1.0], "gain": [0.25]})
    found = pd.concat([found, found.assign(b=3.0)])
    record = Record(Source(1), ["a", "b"], ["y"], {}, "", {})
    _answer(found, record, "accuracy", None, False, False, ["b"])
    header, row, _, _, _, repeated, rest = capsys.readouterr().out.splitlines()
    assert header.split() == ["a", "y_mean", "y_std", "gain"]
    assert row.endswith("25.0 %")
    assert repeated.startswith("Rows with the same inputs are repeated measurements")
    assert rest == "Any value will do for 'b': the model does not use it."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n", "many"], "--n must be a whole number"),
        (["--n", "0"], "--n must be a whole number ≥ 1"),
        (["--goal", "best"], "--goal must be one of accuracy, minimum, maximum"),
        (["--range", "heat"], "--range takes COLUMN=LOW:HIGH"),
        (["--range", "cold=1:2"], "has no input 'cold'"),
        (["--range", "heat=9:8"], "with low ≤ high; got (9.0, 8.0)."),
        (["--range", "heat=24:25", "--range", "heat=26"], "--range is given twice for 'heat'"),
        (["--range", "heat=20,300"], "write heat=20:300 for the range, or heat=20,300:20,300"),
        (["--range", "heat=2000,2500"], "for a range, write heat=2000:2500"),
        (["--range", "city=Paris"], "categories of the fit"),
    ],
)
def test_next_explains_bad_options_in_one_line(fitted, arguments, message):
    error = run("next", fitted[0], *arguments, code=2).stderr
    assert message in error
    assert error.startswith("sbnn: ")
    assert error.count("\n") == 1


def test_export_writes_a_file_that_predicts(fitted, place):
    out, _ = fitted
    run("export", out, place / "model.py")
    new = table().dropna().drop(columns="y")
    predict = runpy.run_path(str(place / "model.py"))["predict"]
    np.testing.assert_allclose(predict(new), sbnn.load(out / "model.nc").predict(new), rtol=1e-9)
    assert "exists; add --force" in run("export", out, place / "model.py", code=2).stderr
    run("export", out, place / "model.py", "--force")
    assert "must end in one of" in run("export", out, place / "model.txt", code=2).stderr
    assert "does not exist" in run("export", place / "none", place / "m.py", code=2).stderr
