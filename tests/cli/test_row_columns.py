"""Kinds of noise, standard errors and weights on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from command_line import QUICK, run

import sbnn
from sbnn.cli import row_columns
from sbnn.reports import comparison, fit_folder

COLUMNS = ["--noise-column", "error", "--weight-column", "times"]
FIT = ["--target", "y", "--exclude", "z", *COLUMNS]


def table(n=40, seed=0):
    rng = np.random.default_rng(seed)
    error = np.exp(rng.normal(-2, 0.8, size=n))
    a = rng.uniform(-1, 1, size=n)
    y = np.tanh(2 * a) + error * rng.normal(size=n)
    times = rng.integers(0, 3, size=n)
    return pd.DataFrame({"a": a, "y": y, "z": -a, "error": error, "times": times})


# ------------------------------------------------------------------------------ before any work
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--noise", "loud"], "--noise must be one of auto, constant, varying"),
        (["--noise", "varying", "--noise-std", "1"], "cannot be combined with --noise-std"),
        (["--noise", "student-t", "--noise-column", "error"], "--noise student_t cannot be"),
        (["--noise-std", "1", "--noise-column", "error"], "cannot be combined"),
        (["--noise-column", "eror"], "no column 'eror'; did you mean 'error'?"),
        (
            ["--noise", "varying", "--method", "last_layer"],
            "cannot be combined with --method last_l",
        ),
        (["--weight-column", "time"], "no column 'time'; did you mean 'times'?"),
        (["--target", "z", "--noise-column", "error"], "1 column given with --noise-column for 2"),
        (["--noise-column", "y"], "'y' cannot hold both a target and errors"),
        (["--noise-column", "error", "--features", "a,error"], "and a feature"),
        (["--weight-column", "times", "--exclude", "times"], "and excluded"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_wrong_options_are_one_line_before_any_work(place, command, options, message):
    out = place / "never"
    error = run(command, place / "data.csv", "--target", "y", *options, "--out", out, code=2).stderr
    assert message in error
    assert len(error.splitlines()) == 1
    assert not out.exists()


WRONG_CELLS = [
    ("error", "0", "line 5, column 'error': a standard error must be above zero; got 0."),
    ("error", "-0.5", "line 5, column 'error': a standard error must be above zero; got -0.5."),
    ("error", "", "line 5, column 'error': an empty cell is a missing value"),
    ("error", "inf", "line 5, column 'error': 'inf' is infinite"),
    ("error", "n.a.", "line 5, column 'error': 'n.a.' is not a number."),
    ("error", "1e30", "line 5, column 'error': this standard error does not suit 'y'"),
    ("times", "-1", "line 5, column 'times': a weight must not be negative; got -1."),
    ("times", "1e-300", "a weight must be zero or at least 1e-09; got 1e-300."),
    ("times", "nan", "line 5, column 'times': 'nan' is a missing value"),
]
# A column of numbers in a Parquet file cannot hold text, and NaN is an empty cell there.
IN_PARQUET = [
    *(wrong for wrong in WRONG_CELLS if wrong[1] not in ("", "n.a.", "nan")),
    ("times", "nan", "line 5, column 'times': an empty cell is a missing value"),
]


@pytest.mark.parametrize(
    ("suffix", "column", "cell", "message"),
    [*(("csv", *wrong) for wrong in WRONG_CELLS), *(("parquet", *wrong) for wrong in IN_PARQUET)],
)
def test_wrong_cells_are_named_before_any_work(tmp_path, suffix, column, cell, message):
    data = table().astype(object)
    data.loc[3, column] = cell
    path = tmp_path / f"wrong.{suffix}"
    if suffix == "csv":
        data.to_csv(path, index=False)
    else:
        data.astype(float).to_parquet(path)
    option = "--noise-column" if column == "error" else "--weight-column"
    error = run(
        "fit", path, "--target", "y", option, column, "--out", tmp_path / "x", code=2
    ).stderr
    assert len(error.splitlines()) == 1
    assert message in error


def test_weights_must_leave_some_rows(tmp_path):
    path = tmp_path / "data.csv"
    table().assign(times=0).to_csv(path, index=False)
    error = run("fit", path, "--target", "y", "--weight-column", "times", code=2).stderr
    assert "0 rows with a positive weight; at least 5 are needed" in error


def test_sampling_needs_whole_weights(tmp_path):
    path = tmp_path / "data.csv"
    table().assign(times=1.5).to_csv(path, index=False)
    options = ["--weight-column", "times", "--method", "nsbl", "--hidden", "1"]
    error = run("fit", path, "--target", "y", *options, "--out", tmp_path / "x", code=2).stderr
    assert "methods that sample need whole numbers as weights; got 1.5." in error


def test_noise_names_ignore_case_and_hyphens():
    assert row_columns.check_noise("Varying-Student-T", False) == "varying_student_t"


# ---------------------------------------------------------------------------------------- results
def test_fit_uses_errors_and_weights(fitted, place):
    out, result = fitted
    assert "The noise is known: the standard errors in “error”." in result.stdout
    assert "rows of weight zero left out" in result.stderr
    found = fit_folder.load(out)
    data = table()
    used = data[data["times"] > 0]
    assert found.record.features == ["a"]
    assert found.record.noise_columns == ["error"]
    assert found.record.weight_column == "times"
    assert found.record.data.rows == len(used)
    assert found.data.index.tolist() == (used.index + 2).tolist()
    model = sbnn.SparseBNNRegressor((1,), method="laplace", random_state=0)
    model.fit(used[["a"]], used["y"], used["times"], used["error"])
    assert found.model.log_evidence_ == pytest.approx(model.log_evidence_, abs=1e-6)


def test_predict_uses_the_errors_of_the_new_rows(fitted, place):
    out, _ = fitted
    new = table(6, seed=1)
    new.to_csv(place / "new.csv", index=False)
    answer = json.loads(run("predict", out, place / "new.csv", "--json").stdout)
    model = sbnn.load(out / "model.nc")
    _, std = model.predict(new[["a"]], return_std=True, noise_std=new["error"].to_numpy())
    found = answer["predictions"]["y"]
    np.testing.assert_allclose(found["std"], std)
    np.testing.assert_allclose(found["noise_std"], new["error"])
    squares = np.square(found["noise_std"]) + np.square(found["function_std"])
    np.testing.assert_allclose(squares, std**2)
    new.loc[2, "error"] = 0.0
    new.to_csv(place / "wrong.csv", index=False)
    error = run("predict", out, place / "wrong.csv", code=2).stderr
    assert "line 4, column 'error': a standard error must be above zero" in error


def test_predict_without_errors_uses_their_root_mean_square_and_says_so(fitted, place):
    out, _ = fitted
    table(6, seed=1)[["a"]].to_csv(place / "bare.csv", index=False)
    result = run("predict", out, place / "bare.csv", "--json")
    assert "has no column 'error' with standard errors" in result.stderr
    assert "root mean square" in result.stderr
    model = sbnn.load(out / "model.nc")
    noise = json.loads(result.stdout)["predictions"]["y"]["noise_std"]
    np.testing.assert_allclose(noise, model.noise_std_)


def test_every_target_has_its_own_errors(place):
    data = place / "two.csv"
    table().assign(e=0.5).to_csv(data, index=False)
    out = place / "two"
    columns = ["--noise-column", "error", "--noise-column", "e", "--exclude", "times"]
    run("fit", data, "--target", "y", "--target", "z", *columns, *QUICK, "--out", out)
    found = fit_folder.load(out)
    assert found.record.features == ["a"]
    np.testing.assert_allclose(found.held_out.noise_std[:, 0], table()["error"])
    np.testing.assert_allclose(found.held_out.noise_std[:, 1], 0.5)
    assert found.record.options["noise"] == "constant"
    new = table(6, seed=1)[["a", "error"]]
    new.to_csv(place / "one_error.csv", index=False)
    result = run("predict", out, place / "one_error.csv", "--json")
    assert "has no column 'e' with standard errors; intervals for z are" in result.stderr
    predicted = json.loads(result.stdout)["predictions"]
    np.testing.assert_allclose(predicted["y"]["noise_std"], new["error"])
    np.testing.assert_allclose(predicted["z"]["noise_std"], 0.5)


def test_requested_noise_is_used(place):
    out = place / "requested"
    options = ["--features", "a", "--noise", "student_t", *QUICK]
    answer = run("fit", place / "data.csv", "--target", "y", *options, "--out", out, "--json")
    record = json.loads(answer.stdout)
    assert record["options"]["noise"] == record["noise"] == "student_t"
    assert record["noise_reason"] == "requested"
    assert record["noise_gain"] is None


def test_compare_passes_errors_and_weights_to_every_fit(place, monkeypatch):
    seen = []

    def remember(methods, options, x, y, folds, *rest):
        seen.append(rest[-1])
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "compare_methods", remember)
    run("compare", place / "data.csv", "--target", "y", *COLUMNS, code=130)
    used = table()[table()["times"] > 0]
    np.testing.assert_allclose(seen[0].noise_std[:, 0], used["error"])
    np.testing.assert_array_equal(seen[0].weights, used["times"])
