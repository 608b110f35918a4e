"""What the report answers in the page: predictions, rows, curves, formula; in a real browser."""

from __future__ import annotations

import datetime
import io
import json
import re
from dataclasses import replace

import browser
import numpy as np
import pandas as pd
import pytest

from sbnn import SparseBNNRegressor
from sbnn.likelihoods import Gaussian
from sbnn.methods.draws_posterior import DrawsPosterior
from sbnn.reports import page
from sbnn.reports.baselines import Baseline, baseline_scores
from sbnn.reports.fit import fit
from sbnn.reports.live import network, rows, suggested
from sbnn.reports.live.effects import _dates, effect_data, grid, with_values
from sbnn.reports.live.inputs import input_data
from sbnn.reports.live.page_data import as_script, page_data
from sbnn.reports.live.rows import row_data, worst_rows
from sbnn.reports.live.suggested import next_measurements
from sbnn.reports.validation import cross_validate
from sbnn.tables.column_types import ColumnType

OPTIONS = {
    "hidden_layer_sizes": (3,), "method": "laplace_nsbl", "noise_std": None, "n_starts": 2,
    "random_state": 0, "n_jobs": 1,
}  # fmt: skip
CLOSE = 1e-6  # largest difference between page and library, in standard deviations


@pytest.fixture(scope="module")
def typed():
    """Numbers, a category, a date and a boolean, with missing cells, and noise that varies."""
    rng = np.random.default_rng(0)
    n = 90
    data = pd.DataFrame(
        {
            "speed": rng.uniform(-2, 2, n),
            "load": rng.normal(500.0, 100.0, n),
            "city <b>": rng.choice(["Oslo", "Rome", "Kyiv"], n),
            "when": pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 800, n), unit="D"),
        }
    )
    mean = 1.5 * np.tanh(data["speed"]) + (data["city <b>"] == "Rome")
    data["y"] = mean + 0.2 * np.exp(0.4 * data["speed"]) * rng.normal(size=n)
    data.loc[::9, "load"] = np.nan
    data.loc[4::11, "city <b>"] = None
    data.index = pd.RangeIndex(2, n + 2)
    return fit(data, list(data)[:4], ["y"], {**OPTIONS, "noise": "varying"}, source="rows.csv")


@pytest.fixture(scope="module")
def report(typed, tmp_path_factory):
    path = tmp_path_factory.mktemp("live") / "report.html"
    path.write_text(page.render(typed), encoding="utf-8")
    return path


def random_settings(n: int) -> tuple[list[list[float]], pd.DataFrame]:
    """Settings of the inputs of `typed`, also outside the data, and the same as a table."""
    rng = np.random.default_rng(1)
    cities = ["Kyiv", "Oslo", "Rome"]  # levels are in alphabetical order
    speed, load = rng.uniform(-3, 3, n).tolist(), rng.uniform(100, 900, n).tolist()
    city, days = rng.integers(3, size=n).tolist(), rng.integers(18500, 19800, n).tolist()
    values = [list(row) for row in zip(speed, load, city, days)]
    table = {"speed": speed, "load": load, "city <b>": [cities[k] for k in city]}
    when = pd.Timestamp(0) + pd.to_timedelta(days, unit="D")
    return values, pd.DataFrame({**table, "when": when})


def assert_same(found: dict[str, np.ndarray], model: SparseBNNRegressor, rows) -> None:
    """Predictions of a page, each part of shape (n, n_targets), against those of the library."""
    mean, std, interval = model.predict(rows, return_std=True, return_interval=0.95)
    low, high = model.predictive(rows, noise=False).quantiles((0.025, 0.975))
    parts = {"mean": mean, "std": std, "lower": interval[..., 0], "upper": interval[..., 1]}
    std = std.reshape(found["mean"].shape)
    for name, expected in {**parts, "low": low, "high": high}.items():
        difference = np.abs(found[name] - expected.reshape(std.shape)) / std
        assert difference.max() < CLOSE, (name, difference.max())


# ----------------------------------------------------------------------------------- what if
ASK = """
const wait = () => { if (!whatif.isReady()) { setTimeout(wait, 20); return; }
  const ask = %s.map((v) => [whatif.predict(0, v.map((value, k) => [k, value]))]);
  document.title = JSON.stringify(ask); };
wait();
"""


@pytest.mark.parametrize("stored", [True, False], ids=["stored factors", "rebuilt factors"])
def test_page_predicts_the_same_as_the_library(typed, report, tmp_path, monkeypatch, stored):
    path = report
    if not stored:
        monkeypatch.setattr(network, "MAX_FACTORS", 0)
        path = tmp_path / "report.html"
        path.write_text(page.render(typed), encoding="utf-8")
    values, rows = random_settings(50)
    seen = browser.visit(path, ASK % json.dumps(values))
    assert seen.console == []
    answers = json.loads(seen.title)
    found = {part: np.array([[a[part] for a in row] for row in answers]) for part in answers[0][0]}
    assert_same(found, typed.model, rows)
    assert (network_of(path)["training"] is None) is stored


def network_of(path) -> dict:
    data = re.search(r'id="page-data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL).group(1)
    return json.loads(data)["network"]


def predicted_by_scripts(tmp_path, networks: list[dict], x: np.ndarray) -> list[dict]:
    """Predictions at numeric inputs by the script of the page, for several networks."""
    script = (page.files("sbnn.reports") / "templates" / "predictor.js").read_text("utf-8")
    ask = (
        f"const nets = {json.dumps(networks)}, rows = {json.dumps(x.tolist())};"
        "document.title = JSON.stringify(nets.map((net) => { const p = predictor.create(net); "
        "return rows.map((row) => net.scaling.y_scale.map((_, t) => p.predict(row, t))); }));"
    )
    path = tmp_path / "page.html"
    path.write_text(f"<title></title><body><script>{script}{ask}</script></body>", "utf-8")
    seen = browser.visit(path)
    assert seen.console == []
    return [
        {part: np.array([[a[part] for a in row] for row in rows]) for part in rows[0][0]}
        for rows in json.loads(seen.title)
    ]


def test_page_predicts_codes_with_hat_functions(tmp_path):
    rng = np.random.default_rng(4)
    data = pd.DataFrame({"code": rng.integers(1, 6, 120), "load": rng.normal(size=120)})
    effect = np.array([0.0, 2.0, -1.0, 1.0, 0.5])[data["code"] - 1]
    data["y"] = effect + data["load"] + 0.1 * rng.normal(size=120)
    data.index = pd.RangeIndex(2, 122)
    fitted = fit(data, ["code", "load"], ["y"], OPTIONS, source="rows.csv")
    assert fitted.model.columns_["n_encoded"].tolist() == [4, 1]
    path = tmp_path / "report.html"
    path.write_text(page.render(fitted), encoding="utf-8")
    values = np.c_[rng.uniform(0, 7, 50), rng.normal(size=50)]
    answers = json.loads(browser.visit(path, ASK % json.dumps(values.tolist())).title)
    found = {part: np.array([[a[part] for a in row] for row in answers]) for part in answers[0][0]}
    assert_same(found, fitted.model, pd.DataFrame(values, columns=["code", "load"]))


def test_every_kind_of_posterior_and_noise_is_predicted_exactly(tmp_path):
    rng = np.random.default_rng(2)
    x = rng.uniform(-2, 2, size=(60, 2))
    y = np.column_stack([np.sin(2 * x[:, 0]), x[:, 1]]) + 0.2 * rng.standard_t(4, size=(60, 2))
    make = lambda noise, **more: SparseBNNRegressor(
        (3,), noise=noise, n_starts=1, random_state=0, n_jobs=1, **more
    )
    models = [make("student_t").fit(x, y), make("varying_student_t").fit(x, y[:, 0])]
    models.append(make("student_t", method="last_layer").fit(x, y))
    state = models[0].fitted_state()
    size = models[0].network_.n_parameters
    draws = DrawsPosterior(
        models[0].network_, rng.normal(size=(50, size)), rng.normal(-1, 0.2, (50, 2, 1)),
        Gaussian(), np.full(2, 0.1), np.full(size, np.nan), np.full(size, np.nan),
    )  # fmt: skip
    draws = draws.with_reach(rng.uniform(-1, 1, size=(2, 60)))
    sampled = replace(state, posterior=draws, method_used="standard")
    models.append(SparseBNNRegressor.from_state(models[0].get_params(), sampled))
    new = rng.uniform(-3, 3, size=(20, 2))
    networks = [network.network_data(model) for model in models]
    for found, model in zip(predicted_by_scripts(tmp_path, networks, new), models):
        assert_same(found, model, new)


def test_networks_that_cannot_be_in_the_page_are_explained(typed, monkeypatch):
    monkeypatch.setattr(network, "MAX_FACTORS", 0)
    monkeypatch.setattr(network, "MAX_INPUTS", 0)
    text = page.render(typed)
    assert "the network is too large to be part of a page. Use <code>sbnn predict</code>" in text
    assert 'id="settings"' not in text


def test_factors_are_not_rebuilt_from_other_rows(typed):
    """Negative control of the check that compares rebuilt with stored factors."""
    mixture = network._mixture(typed.model.posterior_)
    training = typed.model.fitted_state().training
    assert network.can_rebuild(mixture, training)
    assert not network.can_rebuild(mixture, training[:, 1:])


KEYS = """
const slider = document.getElementById("input-0"), answer = document.getElementById("answer");
const before = answer.textContent, start = slider.valueAsNumber;
const key = new KeyboardEvent("keydown", {key: "ArrowLeft", bubbles: true});
for (let k = 0; k < 50; k++) slider.dispatchEvent(key);
const moved = slider.valueAsNumber < start && answer.textContent !== before;
const exact = slider.parentElement.querySelector("input[type=number]");
exact.value = 5; exact.dispatchEvent(new Event("input"));
const warned = answer.textContent.includes("Outside the data: speed");
document.getElementById("reset").click();
const line = document.getElementById("row-line");
line.value = 7; line.dispatchEvent(new Event("input"));
const row = document.getElementById("row-text").textContent;
document.getElementById("row-use").click();
document.getElementById("rows-y").value = "residual";
document.getElementById("rows-y").dispatchEvent(new Event("change"));
const more = document.getElementById("surface-more");
more.open = true; more.dispatchEvent(new Event("toggle"));
document.getElementById("effects-rows").click();
const single = document.querySelectorAll("#effects .single").length;
const used = Array.from(document.querySelectorAll("main :is(a, button, input, select, summary)"));
document.title = JSON.stringify({
  moved, warned, row, single, reachable: used.every((e) => e.tabIndex >= 0),
  speed: Number(slider.value), back: answer.textContent,
  across: document.getElementById("rows-x").value,
  cells: document.querySelectorAll("#surface rect").length});
"""


def test_long_names_of_inputs_do_not_widen_the_page(report, tmp_path):
    copied = tmp_path / "report.html"
    text = report.read_text(encoding="utf-8")
    assert '"name":"load"' in text
    copied.write_text(text.replace('"name":"load"', f'"name":"{"a long name " * 9}"'), "utf-8")
    content, window = browser.widths(copied, 400)
    assert content <= window == 400


CHOICES = """
const [flag, same] = [1, 3].map((k) => document.getElementById("input-" + k));
const exact = same.parentElement.querySelector("input:not([type=range])");
exact.value = 7; exact.dispatchEvent(new Event("input"));
const answer = document.getElementById("answer").textContent;
document.title = JSON.stringify({flag: Array.from(flag.options, (o) => o.text), answer});
"""


def test_page_shows_yes_and_no_and_says_that_effects_of_constants_are_unknown(tmp_path):
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.normal(size=40), "flag": rng.integers(2, size=40) * 1.0})
    data["idle"], data["batch"] = rng.normal(size=40), 5.0
    data["y"] = data["a"] + data["flag"] + 0.1 * rng.normal(size=40)
    kinds = {name: ColumnType("number") for name in ("a", "idle", "batch")}
    types = {**kinds, "flag": ColumnType("boolean", "ja/nein")}
    found = fit(data, ["a", "flag", "idle", "batch"], ["y"], OPTIONS, types=types)
    path = tmp_path / "report.html"
    path.write_text(page.render(found), encoding="utf-8")
    seen = browser.visit(path, CHOICES)
    assert seen.console == []
    shown = json.loads(seen.title)
    assert shown["flag"] == ["nein", "ja"]
    flag = next(k for k, name in enumerate(worst_rows(found)["inputs"]) if name == "flag")
    assert {row["cells"][flag] for row in worst_rows(found)["rows"]} <= {"nein", "ja"}
    assert {row[1] for row in next_measurements(found)["rows"]} <= {"nein", "ja"}
    assert effect_data(found)[1]["places"] == [0.0, 1.0]
    assert "One value in all of the data: batch. What another value changes" in shown["answer"]
    assert "extrapolates" not in shown["answer"]


def test_page_is_used_by_keyboard_and_rows_show_their_values(typed, report):
    seen = browser.visit(report, KEYS)
    assert seen.console == []
    found = json.loads(seen.title)
    assert found["moved"]
    assert found["warned"]
    assert "Outside" not in found["back"]
    assert found["reachable"]
    row = typed.data.loc[7]
    assert found["row"].startswith("line 7\n")
    assert f"city <b> = {row['city <b>']}" in found["row"]
    assert f"when = {row['when']:%Y-%m-%d}" in found["row"]
    assert found["speed"] == pytest.approx(row["speed"], rel=1e-6)  # the row became the settings
    assert found["across"] == "predicted"
    assert found["cells"] >= 28 * 3  # one of the two inputs may be the city
    assert found["single"] > 20


DOWNLOAD = """
let saved = null;
const along = document.getElementById("along");
along.value = 0;
along.dispatchEvent(new Event("change"));
URL.createObjectURL = (blob) => { saved = blob; return "#"; };
const texts = [], ids = ["curve-csv", "rows-csv", "effects-csv"];
const next = (k) => { if (k === ids.length) { document.title = JSON.stringify(texts); return; }
  document.getElementById(ids[k]).click();
  saved.text().then((text) => { texts.push(text); next(k + 1); }); };
next(0);
"""


def test_curves_and_predictions_can_be_downloaded(typed, report):
    curve, rows, effects = (
        pd.read_csv(io.StringIO(text)) for text in json.loads(browser.visit(report, DOWNLOAD).title)
    )
    assert list(curve)[:2] == ["speed", "y_mean"]
    usual = {"load": typed.x["load"].quantile(interpolation="nearest")}
    when = typed.x["when"].quantile(interpolation="nearest")
    city = typed.x["city <b>"].mode()[0]
    rest = pd.DataFrame({"speed": curve["speed"], **usual, "city <b>": city, "when": when})
    np.testing.assert_allclose(curve["y_mean"], typed.model.predict(rest[typed.features]))
    held = typed.held_out
    np.testing.assert_array_equal(rows["line"], typed.data.index[held.rows])
    np.testing.assert_allclose(rows["y_mean"], held.mean[:, 0], rtol=1e-7)
    np.testing.assert_allclose(rows["load"], typed.x["load"].iloc[held.rows], rtol=1e-7)
    used = [n for n, share in zip(typed.features, typed.model.feature_relevance_) if share > 0]
    assert set(effects["input"]) == set(used)


# ------------------------------------------------------------------------- numbers in the page
def test_partial_dependence_is_the_average_prediction(typed):
    found = {effect["input"]: effect for effect in effect_data(typed)}
    whole = typed.x.dropna()
    base = whole.iloc[np.random.default_rng(0).permutation(len(whole))[:60]]
    assert sorted(found) == np.flatnonzero(typed.model.feature_relevance_ > 0).tolist()
    assert len(found) > 1
    for j in found:
        name = typed.features[j]
        places, values = grid(typed, name, 25)
        frame = with_values(base, name, values)
        mean = typed.model.predict(frame).reshape(len(values), len(base))
        effect = found[j]["targets"][0]
        np.testing.assert_allclose(effect["mean"], mean.mean(axis=1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(effect["rows"][3], mean[:, 3], rtol=1e-4, atol=1e-5)
        assert (np.array(effect["low"]) <= effect["mean"]).all()
        assert len(places) == len(effect["high"])


def test_worst_rows_are_farthest_from_their_prediction(typed):
    held = typed.held_out
    away = ((held.y - held.mean) / held.std)[:, 0]
    inputs, found = worst_rows(typed).values()
    used = np.array(typed.features)[typed.model.feature_relevance_ > 0]
    assert set(inputs) <= set(used)
    order = np.argsort(-np.abs(away))[: len(found)]
    assert [row["line"] for row in found] == typed.data.index[held.rows[order]].tolist()
    assert [row["outside"] for row in found] == (~held.inside[order, 0]).tolist()


def test_baselines_are_scored_on_the_rows_that_the_network_did_not_see(typed):
    held = cross_validate(lambda: Baseline("mean"), typed.x, typed.y, 5, 0)
    np.testing.assert_array_equal(held.rows, typed.held_out.rows)
    scores = {one["name"]: one["scores"][0] for one in baseline_scores(typed.x, typed.y, 0)}
    assert scores["mean"]["rmse"] == pytest.approx(held.scores()["rmse"][0])
    assert typed.record.baselines[0]["scores"][0]["crps"] == pytest.approx(scores["mean"]["crps"])
    text = page.render(typed)
    assert text.index("Gaussian process</td>") < text.index('id="whatif"')


def test_names_are_plain_text_in_the_data_of_the_page(typed):
    text = as_script(page_data(typed)[0])
    assert "<" not in text
    assert json.loads(text)["inputs"][2]["name"] == "city <b>"


def test_missing_cells_stay_missing_in_the_rows_of_the_page(typed):
    found = row_data(typed)
    gaps = [k for k, v in enumerate(found["inputs"][1]) if v is None]
    expected = typed.x["load"].iloc[typed.held_out.rows].isna().to_numpy()
    assert gaps == np.flatnonzero(expected).tolist()
    assert [i["kind"] for i in input_data(typed)] == ["number", "number", "category", "date"]


@pytest.mark.slow
def test_page_of_a_thousand_rows_stays_below_three_megabytes(tmp_path):
    """With the networks that `sbnn fit` chooses for this many rows."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, size=(1000, 15))
    data = pd.DataFrame(x, columns=[f"x{k}" for k in range(15)])
    data["y"] = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.normal(size=1000)
    options = {**OPTIONS, "hidden_layer_sizes": "default", "n_starts": 8, "noise": "constant"}
    fitted = fit(data, list(data)[:15], ["y"], options)
    path = tmp_path / "report.html"
    path.write_text(page.render(fitted), encoding="utf-8")
    assert path.stat().st_size < 3e6
    assert network_of(path) is not None


def test_next_measurements_lie_within_the_table_and_remove_variance(typed):
    found = next_measurements(typed)
    assert found is not None
    assert len(found["rows"]) == 5
    assert found["titles"][-1] == "variance removed"
    gains = [float(row[-1].removesuffix(" %")) for row in found["rows"]]
    assert all(gain >= 0 for gain in gains)
    assert sum(gains) == pytest.approx(float(found["total"].removesuffix(" %")), abs=1.0)
    for k, title in enumerate(found["titles"]):
        if title in typed.features and typed.x[title].dtype == float:
            values = [float(row[k].replace("−", "-")) for row in found["rows"]]
            span = np.ptp(typed.x[title].dropna())
            assert min(values) >= typed.x[title].min() - 0.01 * span
            assert max(values) <= typed.x[title].max() + 0.01 * span


@pytest.mark.parametrize(
    ("days", "parts", "step"),
    [(900, ("elapsed", "season", "week"), 21.0), (60, ("elapsed", "week"), 60 / 49),
     (900, ("elapsed", "season"), 900 / 49), (200, ("elapsed", "day"), 4.0)],
)  # fmt: skip
def test_effects_of_dates_do_not_alias_weekdays_or_hours(days, parts, step):
    found = np.array(_dates(19000.25, 19000.25 + days, 50, parts))
    np.testing.assert_allclose(np.diff(found), step)
    assert found[0] == 19000.25
    assert abs(found[-1] - found[0] - days) <= 0.5 * step + 1e-9


def test_times_of_day_are_shown_as_times(report):
    assert browser.visit(report, "document.title = charts.timeText(12.61667);").title == "12:37"
    assert browser.visit(report, "document.title = charts.timeText(23.9999);").title == "23:59"
    assert rows._cell(datetime.time(8, 30), None) == "08:30"
    assert suggested._cell(datetime.time(8, 30), None) == "08:30"


def test_every_panel_has_at_least_two_ticks(report):
    ask = 'document.title = Math.min(...Array.from(document.querySelectorAll("#effects svg.plot"), '
    ask += "(s) => s.querySelectorAll('text.tick[text-anchor=middle]').length));"
    assert int(browser.visit(report, ask).title) >= 2
