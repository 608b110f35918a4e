"""Noise in reports: what it gains, what it depends on, coverage by fifths, outliers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.metrics import r2_score

from sbnn._core.text import explained, number, unbroken
from sbnn.regressor.noise import NoiseChosen, NoiseKnown, NoiseNotCompared, NoiseRequested
from sbnn.reports import fit_folder, noise, page, score_tables, validation
from sbnn.reports.cautions import cautions
from sbnn.reports.drawing import noise_figures
from sbnn.reports.fit import Fit, Record, Source, fit
from sbnn.reports.sentences import verdict
from sbnn.tables.encoder import ColumnEncoder

OPTIONS = {
    "hidden_layer_sizes": (3,),
    "method": "laplace_nsbl",
    "noise_std": None,
    "n_starts": 2,
    "random_state": 0,
    "n_jobs": 1,
}


class Model:
    """f = 0 with noise of standard deviation σ(x), without uncertainty of the function."""

    noise_std = None
    method_used_ = "laplace_nsbl"
    encoder_ = ColumnEncoder.of_numbers(np.zeros((1, 2)))

    def __init__(self, std, noise_used="varying", relevance=(0.9, 0.1)):
        self.std, self.noise_used_ = std, noise_used
        self.feature_relevance_ = np.array(relevance)

    def noise_std_at(self, x):
        return self.std(x["a"].to_numpy())

    def predict(self, x, return_std=False):
        mean = 2.0 * x["b"].to_numpy()
        return (mean, self.noise_std_at(x)) if return_std else mean


def made_up(n=500, std=np.ones_like, claimed=np.ones_like, seed=0, held=None, **options):
    """A fit to y = 2 b + σ(a) noise whose intervals assume the noise `claimed`."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.uniform(0, 1, size=(n, 2)), columns=["a", "b"])
    data["y"] = 2 * data["b"] + std(data["a"].to_numpy()) * rng.normal(size=n)
    data.index = pd.RangeIndex(2, n + 2, name="line")
    rows = np.arange(n) if held is None else held
    y, mean = data[["y"]].to_numpy()[rows], 2 * data[["b"]].to_numpy()[rows]
    s = claimed(data[["a"]].to_numpy()[rows])
    out = validation.HeldOut(
        "", rows, y, mean, s, mean - 1.96 * s, mean + 1.96 * s, y, y, y, s, np.zeros_like(s)
    )
    record = Record(Source(n), ["a", "b"], ["y"], {}, "", {}, **options)
    return Fit(Model(claimed), ["a", "b"], ["y"], data, out, record)


def shifted(fitted, lines, by=10.0):
    """The same fit with some observations shifted."""
    data, held = fitted.data.copy(), fitted.held_out
    data.loc[lines, "y"] += by
    return replace(fitted, data=data, held_out=replace(held, y=data[["y"]].to_numpy()[held.rows]))


# ------------------------------------------------------------------------------------- outliers
def test_shifted_rows_are_the_outliers_with_their_lines():
    found = noise.outliers(shifted(made_up(150), [5, 77, 151]))
    assert sorted(row["line"] for row in found) == [5, 77, 151]
    assert all(row["scales"] > 6 for row in found)
    assert found == sorted(found, key=lambda row: -row["scales"])
    first = found[0]
    assert first["observed"] - first["predicted"] > 6


@pytest.mark.parametrize("n", [10, 30, 150])
def test_gaussian_noise_rarely_has_outliers(n):
    """One in a hundred tables: of 400, at most 11 (binomial, probability 0.9997)."""
    assert sum(bool(noise.outliers(made_up(n, seed=seed))) for seed in range(400)) <= 11


def test_outliers_do_not_hide_each_other():
    """Negative control: in units of the standard deviation, the last would be only 2.4 away."""
    lines = list(range(2, 26))  # 24 of 150 rows
    fitted = shifted(made_up(150), lines)
    assert sorted(row["line"] for row in noise.outliers(fitted)) == lines
    error = np.abs(fitted.held_out.y - fitted.held_out.mean)
    assert error[:24].min() / error.std() < 3


def test_distance_is_relative_to_the_noise_of_the_row():
    """A shift of 10 is nothing where σ = 10 and very far where σ = 0.1."""
    std = lambda a: np.where(a < 0.5, 0.1, 10.0)
    fitted = made_up(200, std, std)
    quiet, loud = (fitted.data.index[(fitted.data["a"] < 0.5) == side][3] for side in (True, False))
    assert [row["line"] for row in noise.outliers(shifted(fitted, [quiet, loud]))] == [quiet]


def test_uncertainty_of_the_function_enlarges_the_scale():
    fitted = shifted(made_up(150), [5])
    wide = replace(fitted.held_out, function_std=np.full((150, 1), 5.0))
    assert noise.outliers(fitted)
    assert not noise.outliers(replace(fitted, held_out=wide))


def test_rows_that_were_not_left_out_are_examined_too():
    fitted = made_up(150, held=np.arange(30))
    found = noise.outliers(shifted(fitted, [4, 120]))
    assert sorted(row["line"] for row in found) == [4, 120]


# ------------------------------------------------------------------------------------- coverage
def test_fifths_match_their_definition():
    fitted = made_up(500)
    found = noise.coverage_by_fifths(fitted)
    assert [f["by"] for f in found[::5]] == [noise.PREDICTED, "a", "b"]
    assert all(f["rows"] == 100 for f in found)
    lowest = fitted.data["a"] <= found[5]["high"]
    assert lowest.sum() == 100
    assert found[5]["coverage"] == fitted.held_out.inside[lowest].mean()
    low, high = binom.ppf([0.025 / 15, 1 - 0.025 / 15], 100, 0.95) / 100
    assert (found[0]["allowed_low"], found[0]["allowed_high"]) == (low, high)


def test_right_intervals_seldom_lead_to_a_warning():
    """At most 5 % of tables, less because fifths overlap: of 200, at most 18 (binomial, 0.997)."""
    warned = [
        any(map(noise.is_improbable, noise.coverage_by_fifths(made_up(250, seed=seed))))
        for seed in range(200)
    ]
    assert sum(warned) <= 18


def test_constant_noise_where_it_varies_leads_to_a_warning_for_the_ends():
    """Noise from 0.1 to 1.9 with intervals for 1: too wide at one end, too narrow at the other."""
    fitted = made_up(2500, lambda a: 0.1 + 1.8 * a)
    fifths = noise.coverage_by_fifths(fitted)
    bad = {(f["by"], f["fifth"]) for f in fifths if noise.is_improbable(f)}
    assert {("a", "lowest"), ("a", "highest")} <= bad
    assert ("a", "middle") not in bad  # σ ≈ 1
    texts = noise.about_fifths(fifths)
    assert any("too narrow in the highest fifth of “a”" in text for text in texts)
    assert len(texts) <= 4


def test_warnings_of_a_fit_include_those_about_fifths(monkeypatch):
    fitted = made_up(500, lambda a: 0.1 + 1.8 * a)
    record = replace(fitted.record, coverage_by_fifths=noise.coverage_by_fifths(fitted))
    model = fitted.model
    model.account_ = SimpleNamespace(most=3)
    model.noise_std_, model.messages_ = 1.0, []
    texts = cautions(replace(fitted, record=record))
    assert any("too narrow in the highest fifth of “a”" in text for text in texts)


def test_parts_of_a_yes_or_no_column_have_the_words_of_the_table():
    columns = {"b": {"kind": "boolean", "format": "ja/nein"}}
    fifths = noise.coverage_by_fifths(made_up(500, claimed=lambda a: 9.0 + a, columns=columns))
    mine = [f for f in fifths if f["by"] == "b"]
    assert [(f["fifth"], f["kind"]) for f in mine] == [("nein", "category"), ("ja", "category")]
    assert any("too wide where “b” is “nein”: they" in t for t in noise.about_fifths(mine))


def test_equal_values_stay_in_one_group():
    values = np.array([0.0, 1.0] * 50)
    groups = noise.quantile_groups(values, 5)
    assert [set(values[rows]) for rows in groups] == [{0.0}, {1.0}]
    assert sum(map(len, groups)) == 100


def test_few_rows_have_no_fifths():
    assert noise.coverage_by_fifths(made_up(24)) == []


# ---------------------------------------------------------------------------------------- level
def test_noise_depends_most_on_the_variable_that_explains_it():
    fitted = made_up(300, claimed=lambda a: np.exp(a))
    level = noise.noise_levels(fitted)[:, 0]
    driver = noise.noise_driver(fitted, level, 0)
    assert driver.name == "a"
    assert driver.explained > 0.98
    assert len(noise_figures.levels(fitted)) == 1


def test_noise_that_grows_with_the_prediction_is_shown_against_it():
    fitted = made_up(300)
    level = np.exp(fitted.model.predict(fitted.x))
    # b determines the prediction, and explains as much: the predicted value comes first.
    assert noise.noise_driver(fitted, level, 0).name == noise.PREDICTED


def test_constant_noise_has_no_figure_of_its_level():
    assert noise_figures.levels(made_up(100)) == []
    assert noise.noise_driver(made_up(100), np.ones(100), 0) is None


def test_gain_is_the_difference_to_constant_noise_in_log_evidence():
    trials = pd.DataFrame({"noise": ["constant", "varying"], "log_evidence": [-10.0, 2.5]})
    model = SimpleNamespace(noise_trials_=trials, noise_used_="varying")
    assert noise.gain_over_constant(model) == 12.5
    model.noise_used_ = "Laplace"
    assert noise.gain_over_constant(model) is None


# ------------------------------------------------------------------------------------- sentences
@pytest.mark.parametrize(
    ("reason", "kind", "words"),
    [
        (NoiseChosen("varying", 50.0), "varying", "varies with the inputs"),
        (NoiseChosen("student_t", 50.0), "student_t", "has heavy tails"),
        (NoiseChosen("constant", 0.0), "constant", "Constant Gaussian noise suffices"),
        (NoiseRequested(), "varying", "as requested"),
        (NoiseNotCompared(), "constant", "ended before kinds of noise were compared"),
    ],
)
def test_verdict_names_the_noise(reason, kind, words):
    fitted = made_up(100, noise=kind, noise_gain=50.0)
    fitted.model.noise_reason_ = reason
    text = verdict._noise(fitted).text
    assert words in text
    assert ("50 nat in log evidence (0.5 nat per row) when they were compared" in text) == (
        "the data" in text
    )


def test_verdict_names_the_columns_of_known_errors():
    fitted = made_up(100, noise="constant", noise_columns=["error"])
    fitted.model.noise_reason_ = NoiseKnown()
    assert "standard errors in “error”" in verdict._noise(fitted).text


def test_verdict_names_the_lines_of_outliers():
    fitted = shifted(made_up(150, noise="student_t"), [5, 77, 151])
    assert verdict._outliers(fitted) == []
    judged = replace(fitted, record=replace(fitted.record, outliers=noise.outliers(fitted)))
    (sentence,) = verdict._outliers(judged)
    assert sentence.tone == "bad"
    assert sentence.text.startswith("3 rows do not fit the rest: lines ")
    assert {"5", "77", "151"} <= set(sentence.text.replace(",", "").split())
    assert "little influence" in sentence.text


# ------------------------------------------------------------------------------------ whole fits
@pytest.fixture(scope="module")
def contaminated():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(-2, 2, size=(100, 2)), columns=["a", "b"])
    data["y"] = data["a"] ** 2 - data["b"] + 0.2 * rng.normal(size=100)
    data.loc[[7, 40, 90], "y"] += 50
    data.index = pd.RangeIndex(2, 102, name="line")
    return fit(data, ["a", "b"], ["y"], {**OPTIONS, "n_starts": 4})


def test_fit_names_its_outliers_everywhere(contaminated, tmp_path):
    record = contaminated.record
    assert sorted(row["line"] for row in record.outliers) == [9, 42, 92]
    assert record.noise == "student_t"
    assert record.noise_gain > 100
    texts = [sentence.text for sentence in record.verdict]
    assert any(text.startswith("3 rows do not fit the rest: lines 9, 42 and 92") for text in texts)
    rest = np.delete(np.arange(100), [7, 40, 90])
    y, mean = contaminated.held_out.y[rest], contaminated.held_out.mean[rest]
    r2 = explained(r2_score(y, mean))
    assert texts[0].startswith("Apart from 3 rows that do not fit the rest, ")
    assert "make up more than 99 % of the squared errors" in texts[0]
    assert "the model explains nearly all of “y” in rows it did not see" in texts[0]
    assert f"({r2} of the variance)" in texts[0]
    assert "with them, the typical error is 8." in texts[0]
    assert record.verdict[0].tone == "good"
    assert any("(68 % of it is within this distance; with its tails, the" in t for t in texts)
    assert record.typical_noise == pytest.approx([0.2], rel=0.25)
    assert record.noise_std[0] > 2 * record.typical_noise[0]
    without, with_them = score_tables.scores_table(contaminated)
    assert without["title"] == "y, without 3 rows that do not fit the rest"
    assert with_them["title"] == "y, all rows"
    assert without["own"]["r2"] == unbroken(r2)
    for found, shown in zip(record.baselines, without["simple"]):
        scores, near = found["scores"][0], found["without_outliers"][0]
        # The mean of the table is 1.5 away from that of the other rows, which spread by 1.6.
        assert near["rmse"] < 0.5 * scores["rmse"]
        assert shown["rmse"] == unbroken(number(near["rmse"]))
    html = page.render(contaminated)
    assert "Typical noise of “y”: 0.2" in html
    assert "Rows that do not fit the rest" in html
    assert all(f"<tr><td>{line}</td>" in html for line in (9, 42, 92))
    fit_folder.save(contaminated, tmp_path)
    again = fit_folder.load(tmp_path)
    assert again.record.outliers == record.outliers
    assert again.record.coverage_by_fifths == record.coverage_by_fifths
    names = [row["name"] for row in score_tables.noise_table(again)]
    assert "constant Student-t noise, chosen" in names


def test_known_errors_and_weights_are_saved_with_a_fit(tmp_path):
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"a": rng.uniform(-1, 1, size=40)})
    data["y"] = 2 * data["a"]
    data["error"] = np.exp(rng.normal(-2, 0.7, size=40))
    data["y"] += data["error"] * rng.normal(size=40)
    data["times"] = rng.integers(1, 4, size=40).astype(float)
    options = {**OPTIONS, "hidden_layer_sizes": (1,)}
    fitted = fit(data, ["a"], ["y"], options, noise_columns=["error"], weight_column="times")
    np.testing.assert_array_equal(fitted.held_out.noise_std[:, 0], data["error"])
    np.testing.assert_array_equal(fitted.held_out.weights, data["times"])
    fit_folder.save(fitted, tmp_path)
    again = fit_folder.load(tmp_path)
    np.testing.assert_array_equal(again.per_row.noise_std, fitted.per_row.noise_std)
    assert again.held_out.scores() == fitted.held_out.scores()
    assert noise_figures.levels(again) == []
    weighted = np.average(fitted.held_out.crps[:, 0], weights=data["times"])
    assert fitted.record.scores["y"]["crps"] == pytest.approx(weighted)
