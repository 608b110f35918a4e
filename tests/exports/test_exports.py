"""Exported models predict what the estimator predicts."""

import json
import runpy
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from sbnn import SparseBNNRegressor
from sbnn._core.extras import MissingExtraError
from sbnn.exports import portable
from sbnn.tables import dates

QUICK = {"group_iterations": 15, "iterations": 10, "neuron_moves": 0}
NOISE = ("constant", "student_t", "varying", "varying_student_t")
NEW = np.random.default_rng(5).normal(size=(1000, 2)) * 1.5


def quick(noise, widths=(4,), method="laplace_nsbl", **options):
    given = {"method_options": QUICK} if method == "laplace_nsbl" else {}
    return SparseBNNRegressor(
        widths, noise=noise, n_starts=3, random_state=0, method=method, **given, **options
    )


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = np.c_[np.sin(x[:, 0]), x[:, 1] ** 2] + 0.1 * rng.standard_t(4, size=(60, 2))
    return x, y


@pytest.fixture(scope="module")
def typed():
    """A model of a table with text, dates, yes or no and missing cells, and complete new rows."""
    rng = np.random.default_rng(1)
    n = 80
    frame = pd.DataFrame(
        {
            "heat": rng.uniform(20, 30, n),
            "city": rng.choice(["Rome", "Oslo", "Bonn"], n),
            "day": pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "on": rng.random(n) > 0.5,
            "mean": rng.normal(size=n),
        }
    )
    y = 0.1 * frame["heat"] + (frame["city"] == "Rome") + frame["on"] + 0.1 * rng.normal(size=n)
    y += 2.0 * (np.arange(n) < 15)
    new = frame.sample(1000, replace=True, random_state=0).reset_index(drop=True)
    frame.loc[:14, "heat"] = np.nan  # missing cells that say something: with an indicator
    model = quick("constant", (3,)).fit(frame, y)
    assert model.columns_["indicator"].any()
    return model, new


def predicted(model, x, level=0.95):
    mean, std, interval = model.predict(x, return_std=True, return_interval=level)
    return mean, std, interval[..., 0], interval[..., 1]


def assert_same(found, expected):
    """To 1e-6 of the predictive standard deviation."""
    for mine, other in zip(found, expected):
        assert (np.abs(mine - other) < 1e-6 * expected[1]).all()


def of_python(path, x, level=0.95):
    exported = runpy.run_path(str(path))
    mean, std, interval = exported["predict"](x, return_std=True, return_interval=level)
    return mean, std, interval[..., 0], interval[..., 1]


def of_onnx(path, x, level=0.95):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path))
    inputs = {"X": x}
    if isinstance(x, pd.DataFrame):
        days = (x["day"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
        cells = x.assign(day=days, on=x["on"].astype(float)).rename(columns={"mean": "mean_input"})
        inputs = {c: cells[c].to_numpy()[:, None] for c in cells if c != "city"}
        inputs["city"] = cells["city"].to_numpy(dtype=object)[:, None]
    return session.run(["mean", "std", "lower", "upper"], {**inputs, "level": np.array(level)})


@pytest.fixture(params=["py", "onnx"])
def read(request):
    """Suffix of a format, and how to predict with such a file."""
    if request.param == "onnx":
        pytest.importorskip("onnx")
    return request.param, {"py": of_python, "onnx": of_onnx}[request.param]


@pytest.mark.parametrize("noise", NOISE)
def test_exports_equal_predict_for_every_noise_and_several_targets(noise, read, tmp_path):
    suffix, of = read
    model = quick(noise).fit(*data())
    path = tmp_path / f"model.{suffix}"
    model.export(path)
    assert_same(of(path, NEW), predicted(model, NEW))


@pytest.mark.parametrize("activation", ["relu", "logistic", "softplus", "sin", "identity"])
def test_exports_equal_predict_for_every_activation(activation, read, tmp_path):
    suffix, of = read
    x, y = data()
    model = quick("constant", [(3,), (2, 2)], activation=activation).fit(x, y[:, 0])
    path = tmp_path / f"model.{suffix}"
    model.export(path)
    assert_same(of(path, NEW, 0.5), predicted(model, NEW, 0.5))


def test_exports_equal_predict_for_codes_with_hat_functions(read, tmp_path):
    suffix, of = read
    rng = np.random.default_rng(4)
    x = np.c_[rng.integers(1, 6, 120), rng.normal(size=120)]
    y = np.array([0.0, 2.0, -1.0, 1.0, 0.5])[x[:, 0].astype(int) - 1] + x[:, 1]
    model = quick("constant").fit(x, y + 0.1 * rng.normal(size=120))
    assert model.columns_["n_encoded"].tolist() == [4, 1]
    path = tmp_path / f"model.{suffix}"
    model.export(path)
    new = np.c_[rng.uniform(0, 7, 200), rng.normal(size=200)]  # between and beyond the codes
    assert_same(of(path, new), predicted(model, new))


def test_exports_equal_predict_for_a_typed_table(typed, read, tmp_path):
    suffix, of = read
    model, new = typed
    path = tmp_path / f"model.{suffix}"
    model.export(path)
    assert_same(of(path, new), predicted(model, new))


@pytest.fixture(scope="module")
def written():
    """A model of cells as people write them; only `load` and `city` have an effect."""
    rng = np.random.default_rng(2)
    n = 80
    load, city = rng.uniform(900, 2000, n), rng.choice(["Rome", "Oslo"], n)
    days = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    frame = pd.DataFrame(
        {
            "load": [f"{v:,.1f}" for v in load],
            "city": city,
            "humidity": [f"{v:.1f} %" for v in rng.uniform(0, 100, n)],
            "day": days.strftime("%d.%m.%Y"),
            "on": rng.choice(["yes", "no"], n),
            "clock": [f"{h:02d}:{m:02d}" for h, m in rng.integers(0, 24, (n, 2))],
            "grade": rng.choice(["a", "b", "c"], n),
        }
    )
    y = 0.01 * load + 3.0 * (city == "Rome") + 0.1 * rng.normal(size=n)
    model = quick("constant", (3,)).fit(frame, y)
    return model, frame


def test_python_file_reads_cells_as_predict_does(written, tmp_path):
    model, frame = written
    assert dict(model.columns_["kind"]) == {
        "load": "number", "city": "category", "humidity": "percent", "day": "date",
        "on": "boolean", "clock": "time", "grade": "category",
    }  # fmt: skip
    model.export(tmp_path / "model.py")
    for rows in (frame, frame.assign(humidity=12.5, load=1234, on=True)):
        assert_same(of_python(tmp_path / "model.py", rows), predicted(model, rows))
    cells = frame.head(3).to_numpy()
    found = runpy.run_path(str(tmp_path / "model.py"))["predict"](cells.tolist())
    np.testing.assert_allclose(found, model.predict(frame.head(3)), rtol=1e-9)


def test_python_file_accepts_unknown_cells_of_inputs_without_effect(written, tmp_path):
    model, frame = written
    assert (model.feature_relevance_[2:] == 0).all()
    model.export(tmp_path / "model.py")
    rows = frame.assign(grade="new", on=None, clock="n/a", humidity="", day=pd.NaT)
    rows.loc[::2, "humidity"] = "7 %"
    assert_same(of_python(tmp_path / "model.py", rows), predicted(model, rows))
    with pytest.raises(ValueError, match="'load' has missing cells"):
        of_python(tmp_path / "model.py", rows.assign(load=""))


@pytest.mark.parametrize(
    ("column", "cell", "fault"),
    [
        ("humidity", "12", r"'humidity' \(percent\).*'12' has no percent sign"),
        ("load", "7 %", "'7 %' has a percent sign"),
        ("load", "1,5", "could not convert"),
        ("on", "2", "neither true nor false"),
        ("day", "soon", "'soon' is not a date"),
        ("clock", "noon", "'noon' is not a time of day"),
    ],
)
def test_python_file_refuses_wrong_cells(written, tmp_path, column, cell, fault):
    model, frame = written
    model.export(tmp_path / "model.py")
    with pytest.raises(ValueError, match=fault):
        of_python(tmp_path / "model.py", frame.assign(**{column: cell}))


@pytest.mark.parametrize(
    "text",
    ["2020-01-31", "2020-1-5", "2020-01", "2020-01-31 14:30", "2020-01-31T14:30:05.25Z",
     "2020-01-31T14:30+02:00", "2020-01-31 14:30:00 -0330"],
)  # fmt: skip
def test_python_file_reads_iso_dates_as_predict_does(text):
    expected = dates.parse([text], dates.ISO)[0]
    assert np.datetime64(portable._moment(text, dates.ISO), "us") == expected


def test_onnx_ignores_inputs_without_effect(tmp_path):
    pytest.importorskip("onnx")
    x, y = data()
    model = quick("constant", (3,)).fit(np.c_[x, x[:, 0] ** 0], y[:, 0])
    model.export(tmp_path / "model.onnx")
    rows = np.c_[x, np.full(len(x), np.nan)]
    assert_same(of_onnx(tmp_path / "model.onnx", rows), predicted(model, rows))


def test_exports_equal_predict_with_an_exact_output_layer(read, tmp_path):
    suffix, of = read
    model = quick("student_t", (4,), "last_layer").fit(*data())
    path = tmp_path / f"model.{suffix}"
    model.export(path)
    assert_same(of(path, NEW), predicted(model, NEW))


def test_python_file_needs_numpy_only(typed, tmp_path):
    model, new = typed
    model.export(tmp_path / "model.py")
    rows = new.head(3).astype({"day": str}).to_dict("list")
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['sbnn', 'scipy', 'pandas', 'sklearn']));"
        f"from model import predict; print(predict({rows!r}).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), model.predict(new.head(3)))


def test_python_file_refuses_what_it_cannot_predict(typed, tmp_path):
    model, new = typed
    model.export(tmp_path / "model.py")
    predict = runpy.run_path(str(tmp_path / "model.py"))["predict"]
    with pytest.raises(ValueError, match="'heat' has missing cells"):
        predict(new.assign(heat=np.nan))
    unknown = r"'city' \(category\) has a cell that is not known: 'Paris' in row 1; known: \['"
    with pytest.raises(ValueError, match=unknown):
        predict(new.assign(city="Paris"))
    with pytest.raises(ValueError, match="X has no column 'on'"):
        predict(new.drop(columns="on"))


def test_python_file_warns_about_new_values_of_constant_columns(tmp_path):
    x, y = data()
    frame = pd.DataFrame({"a": x[:, 0], "same": 7.5, "site": "Rome"})
    model = quick("constant", (2,)).fit(frame, y[:, 0])
    model.export(tmp_path / "model.py")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of_python(tmp_path / "model.py", frame)
    for column, cell in {"same": 8.0, "site": "Oslo"}.items():
        with pytest.warns(UserWarning, match=f"'{column}' was the same in all rows") as caught:
            of_python(tmp_path / "model.py", frame.assign(**{column: cell}))
        assert caught[0].filename == __file__


def test_onnx_returns_nan_for_new_categories(typed, tmp_path):
    pytest.importorskip("onnx")
    model, new = typed
    model.export(tmp_path / "model.onnx")
    mean, *_ = of_onnx(tmp_path / "model.onnx", new.head(2).assign(city=["Paris", "Rome"]))
    assert np.isnan(mean).tolist() == [True, False]


def test_json_holds_the_networks(tmp_path):
    x, y = data()
    model = quick("constant", (3,)).fit(x, y[:, 0])
    model.export(tmp_path / "model.json")
    found = json.loads((tmp_path / "model.json").read_text())
    assert found["format"].startswith("sbnn mixture of networks")
    assert len(found["groups"]) == len(model.optima_)
    # The first network as a formula: W₂ tanh(W₁ z + b₁) + b₂ for standardised inputs.
    first, second = found["groups"][0]["layers"]
    z = (x - found["x_centre"]) / np.array(found["x_scale"])
    hidden = np.tanh(z @ np.array(first["weights"][0]).T + first["biases"][0])
    f = hidden @ np.array(second["weights"][0]).T + second["biases"][0]
    component = model.posterior_.predictive(z.T, noise=False).means[0]
    np.testing.assert_allclose(f, component, rtol=1e-9, atol=1e-12)


def test_names_and_existing_files_are_checked_first(typed, tmp_path):
    model, _ = typed
    with pytest.raises(ValueError, match=r"must end in one of \.py .*got 'model\.txt'"):
        model.export("model.txt")
    (tmp_path / "model.py").write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.export(tmp_path / "model.py")
    assert (tmp_path / "model.py").read_text() == "mine"


def test_onnx_names_its_extra(typed, tmp_path, monkeypatch):
    monkeypatch.setattr("sbnn._core.extras.is_installed", lambda name: name != "onnx")
    with pytest.raises(MissingExtraError, match=r'pip install "sbnn\[onnx\]"'):
        typed[0].export(tmp_path / "model.onnx")


def test_empty_cells_that_are_a_category_are_predicted(tmp_path):
    """Most remarks are empty: the model learns from that, and exports predict the same."""
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(3)
    remark = np.where(rng.random(80) < 0.3, "x", None)
    frame = pd.DataFrame({"a": rng.normal(size=80), "remark": remark})
    y = frame["a"] + 2.0 * frame["remark"].notna() + 0.1 * rng.normal(size=80)
    model = quick("constant", (3,)).fit(frame, y)
    assert model.encoder_.columns[1].has_blanks
    expected = predicted(model, frame)
    assert expected[0][frame["remark"].notna()].mean() - expected[0].mean() > 0.5
    model.export(tmp_path / "model.py")
    assert_same(of_python(tmp_path / "model.py", frame), expected)
    model.export(tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    texts = frame["remark"].fillna("").to_numpy(dtype=object)[:, None]
    cells = {"a": frame[["a"]].to_numpy(), "remark": texts, "level": np.array(0.95)}
    assert_same(session.run(["mean", "std", "lower", "upper"], cells), expected)
