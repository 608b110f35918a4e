"""The command line: exit codes, one-line errors, complete files or none, JSON."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import typer
from command_line import PROGRAM, QUICK, run

import sbnn
from sbnn.cli import comparison_table, progress, terminal
from sbnn.reports import fit as fits
from sbnn.reports import fit_folder, validation
from sbnn.reports import output_paths as outputs
from sbnn.reports import page as report
from sbnn.reports.cautions import cautions
from sbnn.reports.sentences.verdict import Sentence
from sbnn.tables import reader as tables
from sbnn.tables.header import TableError

PARTS = ("mean", "std", "lower", "upper", "noise_std", "function_std")
FIT = ["--target", "y", "--target", "z"]
# Threads gain nothing on such small matrices.
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def table(n=24, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 2))
    y = np.tanh(2 * x[:, 0]) + 0.1 * rng.normal(size=n)
    z = 10 * x[:, 1] + rng.normal(size=n)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y, "z": z})


@pytest.fixture(scope="module")
def known(fitted):
    return fit_folder.load(fitted[0])


@pytest.fixture
def instant(known, monkeypatch):
    """Fits that take no time: the one above again, with the options of the command."""

    def again(data, features, targets, options, *rest):
        return replace(known, record=replace(known.record, options=options))

    monkeypatch.setattr(fits, "fit", again)
    monkeypatch.setattr(report, "render", lambda fit: "a page")


def test_fit_writes_model_record_data_and_report(fitted, place):
    out, result = fitted
    assert {p.name for p in out.iterdir()} == set(outputs.FIT_FILES)
    record = json.loads((out / "fit.json").read_text())
    assert record["features"] == ["a", "b"]
    assert record["targets"] == ["y", "z"]
    assert record["version"] == sbnn.__version__
    assert record["options"]["random_state"] == 0
    assert record["scores"]["z"]["rmse"] < 4  # the standard deviation of z is 5.8
    held = pd.read_csv(out / "held_out.csv", index_col="line")
    data = pd.read_csv(place / "data.csv")
    np.testing.assert_allclose(held["z_observed"], data["z"])  # line 2 is the first row
    assert held.index.tolist() == list(range(2, 26))
    rmse = np.sqrt(((held["z_mean"] - data["z"].to_numpy()) ** 2).mean())
    assert rmse == pytest.approx(record["scores"]["z"]["rmse"])
    assert "5-fold cross-validation" in record["validation"]
    assert f"report: {out / 'report.html'}" in result.stdout
    assert "95 % intervals" in result.stdout
    assert "fold 5 of 5" in result.stderr
    assert not [p for p in place.iterdir() if p.name.startswith(".")]


def test_predict_writes_the_predictions_of_the_model(fitted, place):
    out, _ = fitted
    new = table(7, seed=1)
    new.assign(note="text").to_csv(place / "new.csv", index=False)
    printed = run("predict", out, place / "new.csv").stdout
    run("predict", out, place / "new.csv", "--out", place / "p" / "predicted.csv")
    assert (place / "p" / "predicted.csv").read_text() == printed
    got = pd.read_csv(place / "p" / "predicted.csv")
    assert list(got.columns) == [
        *("a", "b", "y", "z", "note"),
        *(f"y_{part}" for part in PARTS),
        *(f"z_{part}" for part in PARTS),
        *("extrapolates", "missing", "unseen"),
    ]
    pd.testing.assert_frame_equal(got[["a", "b", "y", "z"]], new)
    assert set(got["note"]) == {"text"}
    model = sbnn.load(out / "model.nc")
    mean, std, interval = model.predict(new[["a", "b"]], return_std=True, return_interval=0.95)
    function_std = model.predictive(new[["a", "b"]], noise=False).std()
    # rounded to the decimal below a thousandth of the standard deviation, and no further
    for columns, exact, scale in (
        (["y_mean", "z_mean"], mean, std),
        (["y_std", "z_std"], std, std),
        (["y_lower", "y_upper"], interval[:, 0], std[:, :1]),
        (["z_lower", "z_upper"], interval[:, 1], std[:, 1:]),
        (["y_noise_std", "z_noise_std"], model.noise_std_at(new[["a", "b"]]), std),
        (["y_function_std", "z_function_std"], function_std, std),
    ):
        off = np.abs(got[columns].to_numpy() - exact) / scale
        assert off.max() <= 0.5e-3
        assert off.max() > 1e-6
    answer = json.loads(run("predict", out, place / "new.csv", "--json").stdout)
    np.testing.assert_allclose(answer["predictions"]["z"]["upper"], interval[:, 1, 1])


def test_predict_keeps_the_text_of_the_new_table(fitted, place):
    out, _ = fitted
    lines = ["id ,b, a,note", "007,0.10,1,n/a", '1_0,+1e-1,.50,"x, ""y"""', " é ,-0,1.,nan"]
    (place / "odd.csv").write_text("\n".join(lines) + "\n")
    printed = run("predict", out, place / "odd.csv").stdout.splitlines()
    for line, expected in zip(printed, lines, strict=True):
        assert line.startswith(expected + ",")
    assert printed[0].startswith("id ,b, a,note,y_mean,")


def test_predict_keeps_the_separator_and_decimal_sign(fitted, place):
    out, _ = fitted
    (place / "points.csv").write_text("a,b\n0.50,0.25\n1,0\n")
    points = pd.read_csv(io.StringIO(run("predict", out, place / "points.csv").stdout))
    (place / "german.csv").write_bytes("Größe;a;b\n1;0,50;0,25\n2;1;0\n".encode("cp1252"))
    result = run("predict", out, place / "german.csv", code=2)
    assert "not UTF-8 text (byte 0xf6 on line 1)" in result.stderr
    assert "or add --encoding cp1252" in result.stderr
    given = ("--encoding", "cp1252", "--out", place / "german-out.csv")
    run("predict", out, place / "german.csv", *given)
    text = (place / "german-out.csv").read_bytes().decode("utf-8")
    assert "\n1;0,50;0,25;" in text
    assert "." not in text
    found = pd.read_csv(io.StringIO(text), sep=";", decimal=",")
    pd.testing.assert_frame_equal(found.drop(columns="Größe"), points)
    run("predict", out, place / "points.csv", "--out", place / "points-out.tsv")
    assert (place / "points-out.tsv").read_text().startswith("a\tb\ty_mean\t")
    message = run("predict", out, place / "points.csv", "--out", place / "p.parquet", code=2).stderr
    assert "would be a CSV file; give a name that ends in .csv" in message


def test_predict_warns_about_rows_outside_the_range_of_the_fit(fitted, place):
    out, _ = fitted
    new = table(7, seed=1).clip(-0.1, 0.1)
    new.to_csv(place / "within.csv", index=False)
    assert run("predict", out, place / "within.csv").stderr == ""
    new.loc[:1, "b"] = 1e3
    new.to_csv(place / "beyond.csv", index=False)
    message = run("predict", out, place / "beyond.csv").stderr
    assert "outside the range of the fit" in message
    assert "'b'" in message
    assert "'a'" not in message
    printed = run("predict", out, place / "beyond.csv").stdout
    rows = pd.read_csv(io.StringIO(printed), keep_default_na=False)["extrapolates"]
    assert rows.tolist() == ["b", "b", "", "", "", "", ""]


def test_predict_never_replaces_columns_of_the_new_table(fitted, place):
    out, _ = fitted
    new = table(3, seed=1).assign(id=["007", "x,y", "é"], y_mean=-1.0, extrapolates="mine")
    new.to_csv(place / "taken.csv", index=False)
    run("predict", out, place / "taken.csv", "--out", place / "taken-out.csv")
    got = pd.read_csv(place / "taken-out.csv", dtype={"id": str}, keep_default_na=False)
    assert got.columns.is_unique
    pd.testing.assert_frame_equal(got[new.columns], new)
    added = [c for c in got.columns if c not in set(new.columns)]
    assert added == [
        *(f"y_predicted_{part}" for part in PARTS),
        *(f"z_{part}" for part in PARTS),
        *("extrapolates_predicted", "missing", "unseen"),
    ]


def test_fit_excludes_columns_and_reports_decimal_commas(place, instant):
    path = place / "european.csv"
    new = table().assign(id=[f"r{i}" for i in range(24)])
    new.to_csv(path, index=False, sep=";", decimal=",")
    arguments = ["fit", path, "--target", "y", "--out", place / "european"]
    message = run(*arguments, "--exclude", "z").stderr
    assert "decimal comma" in message
    assert "ignoring column 'id'" in message
    assert "2 inputs, 1 target" in message
    message = run(*arguments, "--force", "--exclude", "id", "--exclude", "z").stderr
    assert "ignoring" not in message
    assert "2 inputs, 1 target" in message


def test_json_output_is_one_object_and_nothing_else(place, instant):
    out = place / "json-fit"
    result = run("fit", place / "data.csv", "--target", "y", "--out", out, "--json")
    record = json.loads(result.stdout)
    assert record["out"] == str(out)
    assert record["features"] == ["a", "b"]
    assert result.stderr == ""
    assert json.loads(run("report", out, "--json").stdout)["report"] == str(out / "report.html")


def test_report_rewrites_the_same_page(fitted):
    out, _ = fitted
    before = (out / "report.html").read_text(encoding="utf-8")
    (out / "report.html").unlink()
    run("report", out)
    assert (out / "report.html").read_text(encoding="utf-8") == before


def test_output_paths_are_checked_before_any_work(place, tmp_path, monkeypatch):
    """The table is not even read."""
    (tmp_path / "file").write_text("precious")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years of work")
    monkeypatch.setattr(tables, "read", None)
    for command in ("fit", "compare"):
        start = [command, place / "data.csv", "--target", "y", "--out"]
        assert "exists; add --force" in run(*start, tmp_path / "full", code=2).stderr
        assert (
            "which sbnn did not write" in run(*start, tmp_path / "full", "--force", code=2).stderr
        )
        assert "is not a folder" in run(*start, tmp_path / "file", code=2).stderr
        message = run(*start, tmp_path / "file" / "below", code=2).stderr
        assert f"{tmp_path / 'file'} is not a folder" in message
    message = run(
        "predict", "nowhere", "no.csv", "--out", tmp_path / "file" / "x.csv", code=2
    ).stderr
    assert "is not a folder" in message
    (tmp_path / "mine" / "results").mkdir(parents=True)
    (tmp_path / "mine" / "results" / "thesis.tex").write_text("years of work")
    message = run("paper", "--out", tmp_path / "mine", code=2).stderr
    assert "was not written by 'sbnn paper'" in message
    assert (tmp_path / "mine" / "results" / "thesis.tex").exists()


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_missing_target_lists_the_columns(place, command):
    message = run(command, place / "data.csv", code=2).stderr
    assert "--target is missing" in message
    assert "has 'a', 'b', 'y', 'z'." in message
    assert len(message.splitlines()) == 1
    assert "does not exist" in run(command, place / "nowhere.csv", code=2).stderr


def test_recorded_command_can_be_typed_again(tmp_path, monkeypatch):
    """A shell splits it into the original arguments, whatever the columns are called."""
    names = ["a, b", "it's", 'say "x"', "$HOME `ls`", "5 %", "-c", "é;#"]
    arguments = ["fit", "my data.csv", *(p for name in names for p in ("--target", name))]
    monkeypatch.setattr(sys, "argv", ["/somewhere/sbnn", *arguments])
    message = terminal.command_line()
    assert message.startswith("sbnn fit 'my data.csv'")
    show = message.replace("sbnn", shlex.quote(sys.executable) + " -c 'import sys, json; "
                        "print(json.dumps(sys.argv[1:]))'", 1)  # fmt: skip
    done = subprocess.run(["sh", "-c", show], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == arguments


def test_nothing_is_overwritten_without_force(fitted, place, instant):
    out, _ = fitted
    arguments = ["fit", place / "data.csv", "--target", "y", *QUICK, "--out", out]
    before = (out / "fit.json").read_bytes()
    assert "--force" in run(*arguments, code=2).stderr
    assert (out / "fit.json").read_bytes() == before
    precious = place / "precious.csv"
    precious.write_text("keep me")
    assert "--force" in run("predict", out, place / "data.csv", "--out", precious, code=2).stderr
    assert precious.read_text() == "keep me"
    run("predict", out, place / "data.csv", "--out", precious, "--force")
    assert precious.read_text().startswith("a,b,y,z,y_mean")


def test_force_replaces_a_fit_but_not_a_folder_with_other_files(place, instant):
    out = place / "again"
    arguments = ["fit", place / "data.csv", "--target", "y", *QUICK, "--out", out]
    run(*arguments)
    run(*arguments, "--force", "--seed", "1")
    assert json.loads((out / "fit.json").read_text())["options"]["random_state"] == 1
    (out / "thesis.tex").write_text("years of work")
    message = run(*arguments, "--force", code=2).stderr
    assert "'thesis.tex', which sbnn did not write" in message
    assert (out / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_interruption_while_writing_leaves_the_old_folder(place, instant, monkeypatch, error):
    out = place / f"interrupted-{error.__name__}"
    arguments = ["fit", place / "data.csv", "--target", "y", *QUICK, "--out", out]

    def stop(*args):
        raise error("stop")

    code = 130 if error is KeyboardInterrupt else 1
    with monkeypatch.context() as patch:
        patch.setattr(report, "write", stop)
        result = run(*arguments, code=code)
        assert len(result.stderr.splitlines()[-1:]) == 1
        assert not out.exists()
    run(*arguments)
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    monkeypatch.setattr(report, "write", stop)
    run(*arguments, "--force", code=code)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert not [p for p in place.iterdir() if p.name.startswith(".")]


def test_interrupt_during_garbage_collection_is_not_lost(capsys):
    """Python ignores exceptions in its callbacks."""
    interrupt = lambda phase, info: signal.raise_signal(signal.SIGINT)
    before = sys.unraisablehook, signal.getsignal(signal.SIGALRM)

    def work():
        gc.callbacks.append(interrupt)
        try:
            gc.collect()
        finally:
            gc.callbacks.remove(interrupt)
        time.sleep(20)

    # Worker processes of the test runner may ignore Ctrl-C.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(typer.Exit) as end, terminal.error_handling(False):
            work()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert end.value.exit_code == 130
    assert capsys.readouterr().err == "sbnn: interrupted; nothing was written.\n"
    assert (sys.unraisablehook, signal.getsignal(signal.SIGALRM)) == before


def interrupted_fit(place, out):
    """A fit that has been sent Ctrl-C after its first line of progress."""
    process = subprocess.Popen(
        [*PROGRAM, "fit", str(place / "data.csv"), "--target", "y", "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ONE_THREAD,
        # Background jobs of a shell, and their children, ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stderr is not None
    assert "fitting 24 rows" in process.stderr.readline()
    assert "training: 0 of" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert "stopping with the best result so far" in process.stderr.readline()
    return process


def test_ctrl_c_during_a_fit_reports_the_best_result_so_far(place):
    out = place / "stopped"
    process = interrupted_fit(place, out)
    found, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "! The fit was stopped after" in found
    assert any("The fit was stopped" in text for text in fit_folder.load(out).record.warnings)


def test_second_ctrl_c_writes_nothing_and_shows_no_traceback(place):
    out = place / "killed"
    process = interrupted_fit(place, out)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted; nothing was written." in errors
    assert "Traceback" not in errors
    assert not out.exists()
    assert not [p for p in place.iterdir() if p.name.startswith(".")]


def test_time_limit_and_quick_reach_the_fit(place, monkeypatch):
    seen = {}

    def stop(data, features, targets, options, *rest):
        seen.update(options=options, time_limit=rest[-3], quick=rest[-1])
        raise terminal.UsageError("enough")

    monkeypatch.setattr(fits, "fit", stop)
    arguments = ["--target", "y", "--quick", "--time-limit", "2.5", "--out", place / "limited"]
    run("fit", place / "data.csv", *arguments, code=2)
    assert (seen["options"]["n_starts"], seen["time_limit"], seen["quick"]) == (4, 150.0, True)


@pytest.mark.parametrize("limit", ["0", "-1", "soon", "inf", "nan"])
def test_time_limit_that_is_no_time_is_a_usage_error(place, limit):
    result = run("fit", place / "data.csv", "--target", "y", "--time-limit", limit, code=2)
    assert "--time-limit takes minutes above zero, such as 5" in result.output


def test_time_limit_is_refused_for_sampling_methods(place):
    arguments = ["--target", "y", "--time-limit", "1", "--method", "nsbl"]
    result = run("fit", place / "data.csv", *arguments, code=2)
    assert "nsbl samples" in result.output


def test_time_limit_is_shared_by_the_fit_and_its_scores(place):
    data = pd.read_csv(place / "data.csv")
    options = {"method": "laplace", "random_state": 0, "hidden_layer_sizes": (1,)}
    limits = []

    @contextlib.contextmanager
    def watched(model):
        limits.append(model.time_limit)
        yield

    fitted = fits.fit(data, ["a", "b"], ["y"], options, time_limit=1e4, watched=watched)
    assert limits == [5e3]
    assert fitted.model.time_limit is None
    assert not fitted.model.ended_early
    assert not any("cut short" in text for text in fitted.record.warnings)


def test_scores_of_fits_that_were_cut_short_say_so(place, monkeypatch):
    def refits(n_rows, quick):
        return 10**9  # so that each has no time

    data = pd.read_csv(place / "data.csv")
    options = {"method": "laplace", "random_state": 0, "hidden_layer_sizes": (1,)}
    monkeypatch.setattr(fits, "n_refits", refits)
    monkeypatch.setattr(fits, "held_out", lambda *a: validation.held_out(*a[:-1], 2))
    monkeypatch.setattr(fits, "_with_baselines", lambda fitted, *rest: fitted)
    fitted = fits.fit(data, ["a", "b"], ["y"], options, time_limit=1e4)
    assert any("cut short" in text for text in fitted.record.warnings)


GOOD = "".join(f"{i},{i}\n" for i in range(6))
BAD = {
    "empty": b"",
    "no header": GOOD.encode(),
    "no target": ("a,b\n" + GOOD).encode(),
    "text": ("a,y\n" + GOOD + "six,6\n").encode(),
    "infinite": ("a,y\n" + GOOD + "6,inf\n").encode(),
    "one row": b"a,y\n1,2\n",
    "the same target": b"a,y\n" + b"1,2\n3,2\n" * 4,
    "a million columns": (",".join(["y", *(f"c{i}" for i in range(10**6 - 1))]) + "\n").encode(),
    "encoding": ("a,y\n" + GOOD + "é,1\n").encode("latin-1"),
    "no encoding": ("a,y\n" + GOOD).encode() + b"\xff\xfe\x81,1\n",
    "missing": None,
    "a directory": None,
}


@pytest.mark.parametrize("command", ["fit", "compare"])
@pytest.mark.parametrize("fault", BAD)
def test_bad_tables_give_one_line_and_exit_code_2(tmp_path, fault, command):
    path = tmp_path / "bad.csv"
    if fault == "a directory":
        path.mkdir()
    elif BAD[fault] is not None:
        path.write_bytes(BAD[fault])
    result = run(command, path, "--target", "y", "--out", tmp_path / "out", code=2)
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith(f"sbnn: {path}")
    assert not (tmp_path / "out").exists()
    assert "Traceback" not in result.stderr
    traced = run(command, path, "--target", "y", "--debug", code=2).stderr
    assert "Traceback (most recent call last)" in traced
    assert traced.splitlines()[-1] == result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hidden", "many"], "--hidden takes 20"),
        (["--hidden", "0"], "widths from 1"),
        (["--method", "magic"], "--method must be one of"),
        (["--noise-std", "-1"], "above zero"),
        (["--noise-std", "1,2"], "2 numbers for 1 target"),
        (["--seed", "-1"], "--seed must be between 0 and 2147483647; got -1."),
        (["--seed", "x"], "--seed must be a whole number; got 'x'."),
        (["--sed", "1"], "there is no option --sed; did you mean --seed?"),
        (["--missing", "skip"], "--missing must be one of impute, drop, error; got 'skip'."),
        (["--categorical", "q"], "--categorical 'q' is not one of the inputs."),
        (["more.csv"], "unexpected argument 'more.csv'; see 'sbnn fit --help'."),
        (["--out"], "--out needs a value; see"),
        (["--json=3"], "--json takes no value; see"),
        (["--features", "a,,b"], "names of columns"),
        (["--features", "y"], "target and a feature"),
    ],
)
def test_wrong_options_give_one_line_errors(place, arguments, message):
    result = run("fit", place / "data.csv", "--target", "y", *arguments, code=2)
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_wrong_usage_has_exit_code_2(place):
    run("fit", place / "data.csv", code=2)
    run("fit", place / "data.csv", "--target", "y", "--no-such-option", code=2)
    assert run("dance", code=2).stderr == "sbnn: there is no command 'dance'; see 'sbnn --help'.\n"
    message = run("fit", code=2).stderr
    assert message == "sbnn: DATA.csv is missing; see 'sbnn fit --help'.\n"


def test_sbnn_without_arguments_prints_the_help():
    assert run().stdout == run("--help").stdout


@pytest.mark.parametrize("command", ["", "fit", "predict", "compare", "report", "paper"])
def test_help_uses_the_words_of_users(command):
    text = run(*command.split(), "--help").stdout
    assert "--help" in text
    for python_type in ("list[", "<str>", "<bool>", "int range"):
        assert python_type not in text
    if command in ("fit", "compare"):
        for word in ("--target COLUMN", "--exclude COLUMNS", "or auto", "laplace_nsbl"):
            assert word in text


def test_predict_needs_a_fit_folder_and_its_columns(fitted, place):
    out, _ = fitted
    assert "has no fit.json" in run("predict", place, place / "data.csv", code=2).stderr
    message = run("report", place / "nowhere", code=2).stderr
    assert "nowhere does not exist. Give a folder that 'sbnn fit' wrote." in message
    message = run("predict", place / "Fit1", place / "data.csv", code=2).stderr
    assert f"Fit1 does not exist; did you mean '{out}'? Give a folder" in message
    assert "not a folder" in run("report", place / "data.csv", code=2).stderr
    pd.DataFrame({"a": [1.0]}).to_csv(place / "less.csv", index=False)
    assert "no column 'b'" in run("predict", out, place / "less.csv", code=2).stderr
    pd.DataFrame({"a": ["x"], "b": [1]}).to_csv(place / "text.csv", index=False)
    message = run("predict", out, place / "text.csv", code=2).stderr
    assert "line 2, column 'a': 'x' is not a number." in message


def test_compare_scores_all_methods_and_writes_them(place):
    out = place / "compared"
    arguments = ["compare", place / "data.csv", "--target", "y", "--features", "a"]
    arguments += [
        "--hidden",
        "1",
        "--folds",
        "2",
        "--method",
        "laplace",
        "--method",
        "laplace_nsbl",
    ]
    found = json.loads(run(*arguments, "--out", out, "--json").stdout)
    assert {m["method"] for m in found["methods"]} == {"laplace", "laplace_nsbl"}
    for record in found["methods"]:
        assert 0 < record["rmse"] < 1
        assert record["crps"] > 0
        assert np.isfinite([record["nlpd"], record["log_evidence"]]).all()
    assert list(pd.read_csv(out / "compare.csv")["method"]) == [
        m["method"] for m in found["methods"]
    ]
    assert "--force" in run(*arguments, "--out", out, code=2).stderr


def test_compare_includes_baselines(place):
    arguments = ["compare", place / "data.csv", "--target", "y", *QUICK[:2], "--folds", "2"]
    chosen = ["laplace", "mean", "Bayesian-Ridge", "gaussian_process"]
    arguments += [word for name in chosen for word in ("--method", name)]
    result = run(*arguments, "--out", place / "baselines")
    assert "gaussian_process" in result.stdout
    found = json.loads((place / "baselines" / "compare.json").read_text())["methods"]
    by_name = {m["method"]: m for m in found}
    assert set(by_name) == {"laplace", "mean", "bayesian_ridge", "gaussian_process"}
    assert by_name["mean"]["rmse"] > by_name["bayesian_ridge"]["rmse"]
    assert by_name["mean"]["log_evidence"] is None
    row = pd.read_csv(place / "baselines" / "compare.csv").set_index("method").loc["mean"]
    assert np.isnan(row["n_parameters"])
    line = next(text for text in result.stdout.splitlines() if text.startswith("mean "))
    assert line.split()[-4:-1] == ["–", "–", "–"]
    message = run(*arguments[:4], "--method", "median", code=2).stderr
    assert "--method must be one of" in message
    assert "gaussian_process; got 'median'" in message


def test_folds_must_be_between_two_and_the_number_of_rows(place):
    message = run("compare", place / "data.csv", "--target", "y", "--folds", "25", code=2).stderr
    assert message.splitlines() == [
        f"sbnn: --folds 25 exceeds the 24 rows of {place / 'data.csv'}; give at most 24, which "
        "holds out one row at a time."
    ]
    message = run("compare", place / "data.csv", "--target", "y", "--folds", "1", code=2).stderr
    assert message == "sbnn: --folds must be at least 2; got 1.\n"
    message = run("compare", place / "data.csv", "--target", "y", "--folds", "2.5", code=2).stderr
    assert message == "sbnn: --folds must be a whole number; got '2.5'.\n"


def test_many_folds_print_ten_plain_lines(monkeypatch):
    def lines():
        with progress.show_progress() as shown:
            message: list[str] = []
            monkeypatch.setattr(shown, "step", message.append)
            for k in range(200):
                shown.on_fold(k, 199)
        return message

    assert len(lines()) == 10
    assert lines()[0] == "held-out rows: fold 1 of 199"
    assert lines()[-1].startswith("held-out rows: fold 181 of 199, about")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert len(lines()) == 199


def test_method_names_ignore_case_and_hyphens(place, instant):
    arguments = ["fit", place / "data.csv", "--target", "y", "--json", "--hidden", "1"]
    for k, method in enumerate(("Laplace-NSBL", "LAPLACE_nsbl")):
        answer = run(*arguments, "--method", method, "--out", place / f"capitals-{k}").stdout
        assert json.loads(answer)["options"]["method"] == "laplace_nsbl"


def test_comparison_is_sorted_by_nlpd():
    scores = dict.fromkeys(comparison_table.COLUMNS, 0.5)
    # 4 rows, worse by 1, 2, 1, 2: mean 1.5, standard error √(1/3)/√4 = 0.289
    densities = np.array([-0.5, -0.4, -0.6, -0.5]), np.array([-1.5, -2.4, -1.6, -2.5])
    records = [
        {**scores, "method": "laplace", "nlpd": 2.0, "log_density": densities[1]},
        {**scores, "method": "nsbl", "log_density": densities[0]},
        {
            **scores,
            "method": "near",
            "nlpd": 0.6,
            "log_density": densities[0] + [0.1, -0.3, 0.1, 0],
        },
    ]
    records[0]["warnings"] = ["It got stuck.", "It got stuck again."]
    left_out = {"standard": "samples too much", "hierarchical": "samples too much"}
    found = comparison_table.summary(records, left_out, "d.csv", ["y", "z"], ["a"], {}, 5, 100)
    lines = comparison_table.lines(found)
    assert lines[1].startswith("nsbl ")
    assert lines[2].startswith("near ")
    assert lines[3].startswith("laplace ")
    assert found["methods"][2]["nlpd_above_best"] == pytest.approx(1.5)
    assert found["methods"][2]["nlpd_above_best_error"] == pytest.approx(np.sqrt(1 / 3) / 2)
    assert "Best on held-out rows by NLPD: nsbl." in lines
    assert "! laplace: It got stuck. (and 1 more, see --json)" in lines
    assert "laplace is worse by 1.5 ± 0.3 nat per row, more than chance explains." in lines
    assert "No clear difference from nsbl: near (within 2 standard errors)." in lines
    assert " 50 % " in lines[1]
    assert "skipped: standard, hierarchical (samples too much)" in lines


def test_sampling_methods_are_compared_on_request_only():
    reasons = {"laplace": "", "nsbl": "", "standard": "is too large"}
    chosen, left_out = comparison_table.choose(None, reasons, folds=3)
    assert chosen == ["laplace", "mean", "bayesian_ridge", "gaussian_process"]
    assert left_out["nsbl"].startswith("sampling takes 4 runs of a minute or more")
    assert left_out["standard"] == "is too large"
    assert comparison_table.choose(["nsbl", "nsbl"], reasons) == (["nsbl"], {})
    assert comparison_table.choose(["mean"], reasons) == (["mean"], {})
    assert comparison_table.cost(["laplace"], 3) == ""
    assert comparison_table.cost(["laplace", "nsbl", "standard"], 3).startswith(
        "nsbl, standard: 8 runs of a sampler, a minute or more each; reduce it with --folds 2"
    )
    with pytest.raises(TableError, match="standard is too large; give a smaller --hidden"):
        comparison_table.choose(["standard"], reasons)
    with pytest.raises(TableError, match="--method must be one of"):
        comparison_table.choose(["magic"], reasons)


@pytest.mark.parametrize("name", ["held_out.csv", "training.csv"])
def test_truncated_tables_of_a_fit_are_errors(fitted, tmp_path, name):
    out, _ = fitted
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    page = (copy / "report.html").read_bytes()
    lines = (copy / name).read_text().splitlines(keepends=True)
    (copy / name).write_text("".join(lines[: len(lines) // 2]))
    assert "is damaged" in run("report", copy, code=2).stderr
    assert (copy / "report.html").read_bytes() == page
    (tmp_path / "new.csv").write_text("a,b\n0.5,0.25\n")
    if name == "training.csv":
        message = run("predict", copy, tmp_path / "new.csv", code=2).stderr
        assert "training.csv is damaged" in message


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("fit.json", "{", "fit.json is damaged"),
        ("fit.json", "[]", "fit.json is damaged"),
        ("fit.json", '{"format": 99, "features": [], "targets": [], "validation": ""}', "Upgrade"),
        (
            "fit.json",
            '{"format": 1, "features": [], "targets": [], "validation": ""}',
            "older sbnn",
        ),
        (
            "fit.json",
            f'{{"format": {fits.FORMAT}, "features": [], "targets": [], "validation": ""}}',
            "it has no 'data'",
        ),
        ("fit.json", '{"format": "x"}', "fit.json is damaged"),
        ("model.nc", "nonsense", "model.nc cannot be read"),
        ("training.csv", "a,b\n1,2\n", "training.csv is damaged"),
        ("held_out.csv", "", "held_out.csv is damaged"),
        ("held_out.csv", None, "has no held_out.csv"),
    ],
)
def test_damaged_fit_folders_give_one_line_errors(fitted, tmp_path, name, text, message):
    copy = tmp_path / "copy"
    shutil.copytree(fitted[0], copy)
    if text is None:
        (copy / name).unlink()
    else:
        (copy / name).write_text(text)
    result = run("report", copy, code=2)
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_sampling_methods_reject_large_networks(place):
    arguments = ["--target", "y", "--hidden", "20", "--method", "standard"]
    result = run("compare", place / "data.csv", *arguments, code=2)
    assert "101 parameters are more than 30" in result.stderr


def test_version_is_printed_within_half_a_second():
    times = []
    for _ in range(3):
        started = time.perf_counter()
        done = subprocess.run([*PROGRAM, "--version"], capture_output=True, text=True, check=True)
        times.append(time.perf_counter() - started)
        assert done.stdout.strip() == f"sbnn {sbnn.__version__}"
        if times[-1] < 0.5:
            return
    heavy = "('jax', 'pandas', 'sklearn', 'scipy', 'numpy')"
    code = f"import sys, sbnn.cli.app; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # A busy machine may be slow; heavy imports would be our fault.
    assert done.stdout.strip() == "[]", times


def test_column_names_cannot_send_escape_codes(place, known, monkeypatch):
    names = ["\x1b[31mred", "[/bold]"]
    said = replace(known.record, verdict=[Sentence("plain", f"It follows {' and '.join(names)}.")])
    monkeypatch.setattr(fits, "fit", lambda *rest: replace(known, record=said))
    monkeypatch.setattr(report, "render", lambda fit: "a page")
    monkeypatch.setattr(fit_folder, "save", lambda fit, out: None)
    path = place / "escape.csv"
    table().rename(columns=dict(zip("ab", names))).to_csv(path, index=False)
    result = run("fit", path, "--target", "y", "--out", place / "escape")
    assert "\x1b" not in result.output
    assert "[/bold]" in result.output


def end(error, debug=False):
    with pytest.raises(typer.Exit) as caught, terminal.error_handling(debug):
        raise error
    return caught.value.exit_code


def test_failures_are_one_line_and_exit_code_1(capsys):
    assert end(OSError(28, "No space left on device", "out.csv")) == 1
    assert capsys.readouterr().err == "sbnn: out.csv: No space left on device.\n"
    assert end(MemoryError()) == 1
    assert "out of memory" in capsys.readouterr().err
    assert end(ValueError("two\nlines")) == 1
    message = "sbnn: failed: ValueError: two lines (--debug shows where)\n"
    assert capsys.readouterr().err == message
    assert end(ValueError("x"), debug=True) == 1
    assert "Traceback" in capsys.readouterr().err
    assert end(terminal.UsageError("wrong")) == 2


def test_lines_are_wrapped_on_a_terminal_only(monkeypatch, capsys):
    text = "! Try a smaller --hidden, or --method laplace_nsbl, which does not sample at all."
    terminal.echo(text)
    assert capsys.readouterr().out == f"{text}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "44")
    terminal.echo(text)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) > 1
    assert all(len(line) <= 44 for line in shown)
    assert " ".join(map(str.strip, shown)) == text
    assert not any(line.endswith("-") for line in shown)


def test_progress_is_live_on_a_terminal_and_plain_elsewhere(monkeypatch, capsys):
    stage = SimpleNamespace(beta=1.0)

    def show(quiet=False):
        with progress.show_progress(quiet) as shown:
            shown.step("fitting [/bold] things")
            for k in range(3):
                shown.on_fold(k, 2)
            shown(stage)
            shown.event("verifying")
        return capsys.readouterr()

    plain = show()
    assert plain.out == ""
    assert plain.err.splitlines() == [
        "fitting [/bold] things",
        "held-out rows: fold 1 of 2",
        "held-out rows: fold 2 of 2, about 0.0 s left",
        "sampling, 100 % of this step, 0.0 s so far",
        "verifying, 0.0 s so far",
    ]
    assert show(quiet=True).err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    lively = show()
    assert lively.out == ""
    assert "verifying" in lively.err  # the last step
    assert "\x1b[" in lively.err


def test_fit_warns_about_duplicate_inputs(known, place, instant, monkeypatch):
    told = cautions(replace(known, data=known.data.assign(b=1.8 * known.data["a"] + 32)))
    again = replace(known, record=replace(known.record, warnings=told))
    monkeypatch.setattr(fits, "fit", lambda *args: again)
    out = run("fit", place / "data.csv", "--target", "y", "--out", place / "twice").stdout
    assert "! The inputs “a”, “b” are identical up to scale and offset: the fit cannot tell" in out
    monkeypatch.setattr(fits, "fit", lambda *args: known)
    out = run("fit", place / "data.csv", "--target", "y", "--out", place / "once").stdout
    assert "are identical" not in out


def test_unreadable_file_is_a_one_line_error(fitted, place, monkeypatch):
    """Without permission; root may read everything, so the answer of the system is replaced."""
    (out, _), data = fitted, place / "data.csv"
    access, read = os.access, tables.Path.read_bytes

    def is_allowed(path, mode):
        return access(path, mode) and (mode != os.R_OK or tables.Path(path) != data)

    def read_bytes(path):
        if path == data:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(os, "access", is_allowed)
    monkeypatch.setattr(tables.Path, "read_bytes", read_bytes)
    for command in (["fit", data, "--target", "y"], ["fit", data], ["predict", out, data]):
        message = run(*command, code=2).stderr.splitlines()
        assert message == [f"sbnn: {data} cannot be read: Permission denied."]
