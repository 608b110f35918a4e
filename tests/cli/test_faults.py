"""The command line in odd environments: closed streams, taken names, damaged folders."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import PROGRAM, run
from typer.testing import CliRunner

from sbnn._core.files.digests import seal_mapping
from sbnn._core.json_text import dumps
from sbnn.cli import streams
from sbnn.cli.app import app
from sbnn.reports import fit as fits
from sbnn.reports import fit_folder, page

FIT = ["--target", "y"]
SAY = (
    "from sbnn.cli.streams import prepare_streams; prepare_streams(); "
    "from sbnn.cli import terminal; "
)


def one_line(result) -> str:
    (line,) = result.stderr.splitlines()
    assert line.startswith("sbnn: ")
    assert "failed:" not in line
    assert not line.endswith("..")
    return line


def table():
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, size=20)
    return pd.DataFrame({"a": a, "y": a + 0.1 * rng.normal(size=20)})


@pytest.fixture(scope="module")
def place(place, fitted) -> Path:
    """The table, the rows to predict in new.csv, and a fit."""
    (place / "new.csv").write_text("a\n0.5\n")
    return place


@pytest.fixture
def copy(place, tmp_path) -> Path:
    return shutil.copytree(place / "fit", tmp_path / "copy")


@pytest.fixture
def instant(place, monkeypatch):
    """A fit that takes no time, during which `meanwhile` is called."""
    known = fit_folder.load(place / "fit")
    acts = []

    def again(*rest):
        for act in acts:
            act()
        return known

    monkeypatch.setattr(fits, "fit", again)
    monkeypatch.setattr(page, "render", lambda fit: "a page")
    return acts


# ------------------------------------------------------------------------- names that are taken
def test_fit_keeps_files_that_appear_in_its_folder_during_the_run(place, tmp_path, instant):
    out = tmp_path / "out"

    def appear():
        out.mkdir()
        (out / "precious.txt").write_text("mine")

    instant.append(appear)
    result = run("fit", place / "data.csv", "--target", "y", "--out", out, code=1)
    assert os.listdir(out) == ["precious.txt"]
    assert result.stderr.splitlines()[-1] == (
        f"sbnn: {out} exists and is not replaced; the finished result is in {out}-2."
    )
    assert fit_folder.load(tmp_path / "out-2").targets == ["y"]
    assert sorted(os.listdir(tmp_path)) == ["out", "out-2"]


def test_force_keeps_other_files_that_appear_during_the_run(place, tmp_path, instant):
    out = tmp_path / "out"
    shutil.copytree(place / "fit", out)
    instant.append((out / "precious.txt").touch)
    arguments = ["fit", place / "data.csv", "--target", "y", "--out", out, "--force"]
    run(*arguments, code=1)
    assert (out / "precious.txt").exists()
    assert fit_folder.load(tmp_path / "out-2").targets == ["y"]
    instant.clear()
    (out / "precious.txt").unlink()
    run(*arguments)
    assert (out / "report.html").read_text() == "a page"


def test_force_keeps_a_folder_with_the_name_of_a_file_of_the_fit(place, tmp_path, instant):
    precious = tmp_path / "out" / "report.html" / "precious.txt"
    precious.parent.mkdir(parents=True)
    precious.touch()
    arguments = ["fit", place / "data.csv", "--target", "y", "--out", tmp_path / "out", "--force"]
    assert "holds 'report.html', which sbnn did not write" in one_line(run(*arguments, code=2))
    assert precious.exists()


def test_predict_keeps_a_file_that_appears_during_the_run(place, tmp_path, monkeypatch):
    out = tmp_path / "out.csv"
    real = fit_folder.read_model

    def slow(folder):
        out.write_text("mine")
        return real(folder)

    monkeypatch.setattr(fit_folder, "read_model", slow)
    arguments = ["predict", place / "fit", place / "new.csv", "--out", out]
    assert "is in" in one_line(run(*arguments, code=1))
    assert out.read_text() == "mine"
    assert (tmp_path / "out-2.csv").read_text().startswith("a,y_mean")
    run(*arguments, "--force")
    assert out.read_text().startswith("a,y_mean")


def test_report_replaces_a_link_and_not_the_file_it_points_to(copy, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("precious")
    (copy / "report.html").unlink()
    (copy / "report.html").symlink_to(other)
    run("report", copy)
    assert other.read_text() == "precious"
    assert not (copy / "report.html").is_symlink()
    assert (copy / "report.html").read_text().startswith("<!doctype html>")


# ------------------------------------------------------------------------------------- streams
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "utf-8", "idna"])
def test_any_encoding_of_stdout_works(encoding):
    say = SAY + "terminal.echo('−1.5 ± 2 “β” é 漢 \\udcff'); terminal.note('−1 漢')"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", say], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode("utf-8" if encoding == "idna" else encoding).strip()
    expected = {
        "ascii": '-1.5 +/- 2 "beta" ? ? ?',
        "cp1252": "-1.5 ± 2 “beta” é ? ?",
        "latin-1": '-1.5 ± 2 "beta" é ? ?',
        "utf-8": "−1.5 ± 2 “β” é 漢 �",
        "idna": "−1.5 ± 2 “β” é 漢 �",  # no encoding for text: UTF-8 is used
    }
    assert shown == expected[encoding]


def test_json_is_ascii(place, tmp_path):
    table = tmp_path / "größe.csv"
    table.write_text("a\n0.5\n")
    out = run("predict", place / "fit", table, "--out", tmp_path / "é.csv", "--json").stdout
    assert out.isascii()
    assert json.loads(out)["out"] == str(tmp_path / "é.csv")


def test_table_on_stdout_is_utf_8_in_any_locale(place, tmp_path):
    (tmp_path / "new.csv").write_text("a,größe\n0.5,漢\n", encoding="utf-8")
    done = subprocess.run(
        [*PROGRAM, "predict", place / "fit", tmp_path / "new.csv"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True,
    )  # fmt: skip
    assert done.stdout.decode("utf-8").splitlines()[1].startswith("0.5,漢,")


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "0>&- 1>&- 2>&-"])
def test_closed_streams_do_not_matter(place, tmp_path, closed):
    words = [*PROGRAM, "predict", place / "fit", place / "new.csv", "--out", tmp_path / "p.csv"]
    command = " ".join(f"'{word}'" for word in words)
    done = subprocess.run(["sh", "-c", f"{command} {closed}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.csv").read_text().count("\n") == 2  # and no messages in it


def test_full_stdout_is_a_one_line_error():
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    say = SAY + "\nwith terminal.error_handling(False):\n    terminal.echo('text')"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", say], stdout=full, stderr=-1, text=True)
    assert "standard output: No space left on device." in done.stderr
    assert "Exception ignored" not in done.stderr


def test_progress_that_nobody_reads_does_not_end_a_run(monkeypatch):
    class Gone:
        def write(self, text):
            raise BrokenPipeError

        flush = write

    monkeypatch.setattr(sys, "stderr", Gone())
    streams.write_note("fold 1 of 5")


# ------------------------------------------------------------------------- names and options
@pytest.mark.parametrize(
    "out", ["/", "x" * 300, "/proc/x", "x/" + "y" * 300, "/dev/null/x", "x/" * 1000 + "y"]
)
@pytest.mark.parametrize("command", ["fit", "compare", "predict"])
def test_impossible_output_names_are_usage_errors(place, tmp_path, monkeypatch, command, out):
    if out.startswith("/proc") and not Path("/proc/self").exists():
        pytest.skip("needs /proc")
    monkeypatch.chdir(tmp_path)
    data = [place / "fit", place / "new.csv"] if command == "predict" else [place / "data.csv"]
    target = [] if command == "predict" else ["--target", "y"]
    assert "--out" in one_line(run(command, *data, *target, "--out", out, code=2))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments", [["fit"], ["fit", "--target", "y"], ["report"]])
def test_names_that_are_too_long_are_usage_errors(arguments):
    result = run(arguments[0], "x" * 300, *arguments[1:], code=2)
    assert "File name too long" in one_line(result)


@pytest.mark.parametrize("encoding", ["punycode", "undefined", "hex", "nonsense"])
def test_unsuitable_encodings_are_usage_errors(place, encoding):
    arguments = ["fit", place / "data.csv", "--target", "y", "--encoding", encoding]
    assert encoding in one_line(run(*arguments, code=2))


@pytest.mark.parametrize("noise", ["1e-300", "1e300"])
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_absurd_noise_is_a_usage_error(place, tmp_path, command, noise):
    arguments = [place / "data.csv", "--target", "y", "--noise-std", noise, "--out", tmp_path / "o"]
    assert "--noise-std" in one_line(run(command, *arguments, code=2))


# --------------------------------------------------------------------------- damaged folders
def edited(folder: Path, sealed: bool, **changes) -> None:
    found = {**json.loads((folder / "fit.json").read_text(encoding="utf-8")), **changes}
    text = json.dumps(seal_mapping(found) if sealed else found)
    (folder / "fit.json").write_text(text, encoding="utf-8")


EDITS = {
    "data": [None, {}, {"rows": "many"}, {"rows": 20, "more": 1}],
    "format": [None, True, "8", [], float("inf"), 1e400, -1, fits.FORMAT + 1],
    "targets": [[], None, ["other"], [1], ["y", "y"]],
    "features": [[], "a", ["a", "b"], ["a", "a"]],
    "scores": [{}, None, {"y": {}}, {"y": {"rmse": "x"}}],
    "verdict": [None, ["text"], [{"tone": 1, "text": "x"}], [{"text": "x"}]],
    "warnings": ["text", [None]],
    "seconds": ["long", {}, None],
    "run": ["text", {"verified": 3}],
    "options": [None, []],
    "validation": [None, 3],
    "command": [None, ["a"]],
    "files": [{}, {"model.nc": "0" * 64}],
}


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in EDITS.items() for value in values]
)
def test_edited_records_are_one_line_errors(copy, name, value, sealed):
    edited(copy, sealed, **{name: value})
    line = one_line(run("report", copy, code=2))
    assert "damaged" in line or "sbnn (" in line


@pytest.mark.parametrize("which", ["inputs", "targets"])
def test_record_of_other_columns_than_the_model_is_detected(copy, tmp_path, which):
    found = json.loads((copy / "fit.json").read_text(encoding="utf-8"))
    if which == "inputs":
        changes = {"features": ["z"], "columns": {"z": found["columns"]["a"]}}
    else:
        scores = {**found["scores"], "z": found["scores"]["y"]}
        changes = {"targets": ["y", "z"], "scores": scores}
    edited(copy, True, **changes)
    (tmp_path / "new.csv").write_text("a,z\n0.5,0.5\n")
    line = one_line(run("predict", copy, tmp_path / "new.csv", code=2))
    assert "its columns are not those of model.nc" in line


def test_edit_of_a_harmless_value_is_detected(copy, place):
    edited(copy, False, seconds=1.0)
    for command in (["report", copy], ["predict", copy, place / "new.csv"]):
        line = one_line(run(*command, code=2))
        assert "the content does not match its checksum" in line


def test_newer_folder_of_the_same_version_is_explained(copy):
    edited(copy, True, format=fits.FORMAT + 1)
    line = one_line(run("report", copy, code=2))
    assert f"format {fits.FORMAT + 1}); sbnn" in line
    assert f"reads format {fits.FORMAT}. Upgrade sbnn." in line


@pytest.mark.parametrize("name", ["fit.json", "training.csv", "held_out.csv", "model.nc"])
def test_any_changed_byte_is_detected(copy, name):
    content = (copy / name).read_bytes()
    before = (copy / "report.html").read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(len(content), size=12):
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        (copy / name).write_bytes(changed)
        result = CliRunner().invoke(app, ["report", str(copy)])
        if name == "fit.json" and result.exit_code == 0:  # a blank between two values
            assert chr(content[place]).isspace()
            continue
        assert result.exit_code == 2, (place, result.output)
        assert len(result.stderr.splitlines()) == 1
        assert (copy / "report.html").read_bytes() == before


def test_predict_checks_the_training_table(copy, place):
    text = (copy / "training.csv").read_text()
    (copy / "training.csv").write_text(text.replace("1", "2", 1))
    assert "training.csv is damaged" in one_line(run("predict", copy, place / "new.csv", code=2))
    (copy / "training.csv").unlink()  # not needed for predictions
    run("predict", copy, place / "new.csv")


def test_model_of_another_fit_is_detected(copy, place, tmp_path):
    known = fit_folder.load(place / "fit")
    known.model.random_state = 99
    known.model.save(copy / "model.nc", overwrite=True)
    line = one_line(run("predict", copy, place / "new.csv", code=2))
    assert "model.nc is damaged or was changed" in line


def test_file_names_that_are_not_utf_8_are_stored(place, tmp_path):
    known = fit_folder.load(place / "fit")
    source = replace(known.record.data, file="bad-\udcff.csv")
    known = replace(known, record=replace(known.record, data=source))
    fit_folder.save(known, tmp_path)
    assert fit_folder.load(tmp_path).record.data.file == "bad-\udcff.csv"
    page.write(known, tmp_path)
    assert "bad-�.csv" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert json.loads(dumps({"a": "\udcff"})) == {"a": "\udcff"}
