"""The report of a fit: its words, its escaping, and its life in a browser."""

from __future__ import annotations

import copy
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import browser
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from sbnn._core import text as formats
from sbnn._core.messages import SamplerStuck, SamplingFinished, SamplingSlow, SearchEnded
from sbnn.regressor.posteriors import DrawsPosterior
from sbnn.reports import figures as report_figures
from sbnn.reports import fit as folder
from sbnn.reports import network_graph as report_network
from sbnn.reports import page as report
from sbnn.reports import validation
from sbnn.reports.glossary import GLOSSARY

EVIL = "<script>alert(1)</script>"
DOLLAR = "$x^{"
OPTIONS = {
    "hidden_layer_sizes": (2,),
    "method": "laplace_nsbl",
    "noise_std": None,
    "n_starts": 2,
    "random_state": 0,
    "n_jobs": 1,
}


@pytest.fixture(scope="module")
def several():
    """Three inputs with awkward names, one of which matters, and two targets."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(40, 3))
    data = pd.DataFrame(x, columns=[EVIL, DOLLAR, "speed"])
    data["y"] = 2 * x[:, 0] + 0.1 * rng.normal(size=40)
    data["</title><b>z"] = x[:, 0] + 0.1 * rng.normal(size=40)
    command = f"sbnn fit data.csv --target y --features '{EVIL}'"
    return folder.fit(
        data, [EVIL, DOLLAR, "speed"], ["y", "</title><b>z"], OPTIONS, command=command
    )


@pytest.fixture(scope="module")
def page(several, tmp_path_factory):
    path = tmp_path_factory.mktemp("several") / "report.html"
    path.write_text(report.render(several), encoding="utf-8")
    return path


class Outline(HTMLParser):
    """Tags with their attributes, the text, and what is left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def all(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.tags if name == tag]


# ---------------------------------------------------------------------------- without a browser
def test_names_of_columns_are_text_and_not_code(page):
    text = page.read_text(encoding="utf-8")
    outline = Outline(text)
    assert len(outline.all("script")) == 1  # our own
    assert "alert(1)" not in text[text.index("<script>") :]
    assert EVIL not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 5
    assert not [a for tag, a in outline.tags if tag == "b" and a.get("class") == "evil"]
    assert len(outline.all("title")) >= 1
    assert "</title><b>z" not in text


def test_the_page_needs_no_network_and_says_what_its_pictures_show(page):
    text = page.read_text(encoding="utf-8")
    outline = Outline(text)
    addresses = [a for _, tag in outline.tags for k, a in tag.items() if k in ("src", "href")]
    assert addresses
    assert all(a.startswith(("data:", "#")) for a in addresses)
    assert not re.search(r"url\(|@import|https?://", text)
    images = outline.all("img")
    assert len(images) >= 7
    assert all(len(image["alt"]) > 30 for image in images)
    assert outline.all("html")[0]["lang"] == "en"
    ids = [a["id"] for _, a in outline.tags if "id" in a]
    assert len(set(ids)) == len(ids)
    anchors = [a[1:] for a in addresses if a.startswith("#")]
    assert set(anchors) <= set(ids)


def test_the_verdict_says_how_good_how_sure_what_is_pruned_and_what_matters(several):
    words = " ".join(s.text for s in report.verdict(several))
    assert "explains nearly all of “y” in rows it did not see" in words
    assert "95 % intervals for “y” held" in words
    assert f"“{EVIL}”" in words
    shares = several.model.feature_relevance_
    order = np.argsort(-shares)
    idle = [f"“{several.features[j]}”" for j in order if shares[j] < report.UNUSED]
    assert {"“$x^{”", "“speed”"} >= set(idle)
    assert ("Next to no influence: " + ", ".join(idle) in words) == bool(idle)
    # Every input is in one of the classes, in the order of their shares.
    places = [words.index(f"“{several.features[j]}”", words.index("follows")) for j in order]
    assert places == sorted(places)
    assert re.search(r"keeps \d+ of its 14 parameters; \d+ were pruned", words)
    assert "Not verified by sampling" in words
    own = report_figures.own_uncertainty(several)
    assert f"own uncertainty, {formats.number(float(own[0]), 2)} for a typical row" in words


def test_the_band_of_the_function_is_the_predicted_distribution_without_its_noise(several):
    weights, means, stds = report_figures.function_mixture(several, several.x)
    mean, std = several.model.predict(several.x, return_std=True)
    np.testing.assert_allclose((weights * means).sum(axis=0), mean)
    spread = (weights * (stds**2 + (means - mean) ** 2)).sum(axis=0)
    # what is left is the noise, a mean over the optima that predict
    optima = several.model._posterior.mixture.optima
    noise = np.array([np.exp(o.log_variance) for o in optima]) * several.y.var(axis=0)
    assert (std**2 - spread >= noise.min(axis=0) * (1 - 1e-9)).all()
    assert (std**2 - spread <= noise.max(axis=0) * (1 + 1e-9)).all()


def test_how_many_rows_chance_allows_is_said(several):
    # 95 % of 40 rows, central 95 % of the binomial distribution: 35 to 40 rows
    held = several.held_out
    wide = replace(held, lower=held.y - 1.0, upper=held.y + 1.0)
    sentence = report.verdict(replace(several, held_out=wide))[2]
    assert "100 % of 40 such rows, within what chance allows (88 to 100 %)" in sentence.text


def test_narrow_intervals_bad_predictions_and_awkward_tables_are_called_so(several):
    held = several.held_out
    narrow = replace(held, lower=held.mean - 1e-6, upper=held.mean + 1e-6)
    sure = [s for s in report.verdict(replace(several, held_out=narrow)) if "intervals" in s.text]
    assert sure[0].tone == "bad"
    assert "surer than it should be" in sure[0].text
    useless = replace(held, mean=np.zeros_like(held.mean) + held.y.mean(axis=0))
    poor = report.verdict(replace(several, held_out=useless))[0]
    assert poor.tone == "bad"
    assert "hardly better than the mean" in poor.text
    odd = several.data.assign(speed=1.0)
    odd.iloc[1] = odd.iloc[0]
    texts = " ".join(report.cautions(replace(several, data=odd.iloc[:20])))
    assert "same value in every row: “speed”" in texts
    assert "Only 20 rows" in texts
    assert "repeat another one" in texts


def test_what_a_constant_optimum_and_an_unpruned_network_are_called(several):
    table = several.model.optima_
    total = several.model.network_.n_parameters

    def sentence(kept, gone):
        summary = several.model.summary().assign(pruned=np.arange(total) < gone)
        model = copy.copy(several.model)
        model.optima_ = table.iloc[:1].loc[[0] * len(kept)].assign(n_kept=kept)
        model.summary = lambda: summary
        return report._sparsity(replace(several, model=model)).text

    assert (
        sentence([0, 0], total)
        == f"All {total} parameters were pruned: the prediction is a constant."
    )
    assert f"keeps none of its {total} parameters; {total} were pruned" in sentence([0, 3], total)
    assert "averages 2 optima" in sentence([0, 3], total)  # of which one is no constant
    assert sentence([total], 0).endswith(
        f"keeps {total} of its {total} parameters; none was pruned."
    )


def test_a_fold_worse_than_the_mean_is_called_so(several):
    held = several.held_out
    worse = replace(held, mean=held.mean + 3 * held.y.std(axis=0))
    assert "worse than the mean does" in report._goodness(replace(several, held_out=worse), 0).text
    as_mean = replace(held, mean=np.broadcast_to(held.y.mean(axis=0), held.y.shape))
    text = report._goodness(replace(several, held_out=as_mean), 0).text
    assert "hardly better than the mean does" in text


def test_classes_and_far_errors_are_told(several):
    held = several.held_out
    far = held.mean.copy()
    far[3, 0] += 6.5 * held.std[3, 0]
    told = report.cautions(replace(several, held_out=replace(held, y=far)))
    (text,) = (t for t in told if "standard deviations" in t)
    assert text.startswith("1 unseen row lies more than 6 standard deviations from the “y”")
    near = held.mean + 5.9 * held.std
    told = report.cautions(replace(several, held_out=replace(held, y=near)))
    assert not any("standard deviations" in t for t in told)
    classes = several.data.assign(y=(several.data["y"] > 0).astype(float))
    (text,) = (t for t in report.cautions(replace(several, data=classes)) if "two values" in t)
    assert text.startswith("“y” takes two values only")
    assert not any("two values" in t for t in report.cautions(several))


def test_sampled_fits_are_called_verified_or_not(several):
    run = {
        "verified": True, "evidence_gap": 0.1, "log_evidence_error": 0.2, "converged": False,
        "reason": "a stage hit its cap", "slow": True, "messages": [], "optima": [], "newton": [],
        "stages": [],
    }  # fmt: skip
    fitted = replace(several, record={**several.record, "run": run})
    assert "with a reservation" in report.verdict(fitted)[-1].text
    assert report.verdict(fitted)[-1].tone == "plain"
    calm = replace(several, record={**several.record, "run": {**run, "converged": True}})
    assert report.verdict(calm)[-1].text.startswith("Verified: the log evidence")
    slow = "The last run of the sampler mixed slowly: a stage hit its cap."
    assert any(text.startswith(slow) for text in report.cautions(fitted))
    mixed = replace(several, record={**several.record, "run": {**run, "slow": False}})
    assert not any("mixed slowly" in text for text in report.cautions(mixed))
    fitted = replace(several, record={**several.record, "run": {**run, "verified": False}})
    assert report.verdict(fitted)[-1].tone == "bad"
    twice = {**several.record, "run": {**run, "messages": ["stuck"]}, "warnings": ["stuck"]}
    assert report.cautions(replace(several, record=twice)).count("stuck") == 1
    fitted = replace(several, record={**several.record, "run": {**run, "verified": None}})
    assert "nothing to verify" in report.verdict(fitted)[-1].text


def test_a_slow_run_is_reported_unless_a_message_says_so():
    slow = SamplingSlow(2, 0.3)
    assert folder._slow(SimpleNamespace(reason=slow, messages=()))
    assert folder._slow(SimpleNamespace(reason=SearchEnded("converged", slow), messages=()))
    assert not folder._slow(SimpleNamespace(reason=slow, messages=(SamplerStuck(slow),)))
    assert not folder._slow(SimpleNamespace(reason=SamplingFinished(), messages=()))


def test_evidence_that_had_not_settled_is_said_so(several):
    best = several.model._posterior.best
    before = best.converged, list(best.history)
    best.converged, best.history = False, [*range(20)]
    try:
        several.model._set_learned()
        n = len(several.model.optima_)
        (told,) = (text for text in report.cautions(several) if "had not converged" in text)
        assert f"1 of {n} optima had not converged" in told
        assert "still changed by up to 10.0 nat in the last ten" in told
        assert "rough" in told
        assert "method_options" not in told  # there is no such option on the command line
        best.history = [0.01 * k for k in range(20)]
        several.model._set_learned()
        (calm,) = (text for text in report.cautions(several) if "had not converged" in text)
        assert "rough" not in calm
        best.history = [0.001 * k for k in range(20)]
        several.model._set_learned()
        assert any("changed by less than 0.1 nat" in text for text in report.cautions(several))
    finally:
        best.converged, best.history = before
        several.model._set_learned()
    assert not any("had not converged" in text for text in report.cautions(several))


def test_every_word_is_explained_in_the_report_and_in_the_documentation(page):
    text = html.unescape(page.read_text(encoding="utf-8"))
    docs = Path(__file__).parents[2] / "docs" / "reference" / "glossary.md"
    shown = docs.read_text(encoding="utf-8")
    for word, meaning in GLOSSARY.items():
        assert f"<dt>{word}</dt><dd>{meaning}</dd>" in text
        assert f"| {word} | {meaning} |" in shown


@pytest.mark.parametrize("method", ["standard", "nsbl"])
def test_fits_by_sampling_have_a_report_of_their_own(several, method):
    """Draws in place of the Laplace mixture: the page tells γ where it is learned."""
    rng = np.random.default_rng(0)
    model = copy.copy(several.model)
    network = model.network_
    phi = rng.normal(size=(300, network.n_parameters))
    learned = np.linspace(0, 1, network.n_parameters) if method == "nsbl" else np.full(14, np.nan)
    noise = np.full((300, 2), 0.3)
    model._posterior = DrawsPosterior(network, phi, noise, 5 - 5 * learned, learned)
    model.method_used_ = method
    model._set_learned()
    held = validation.leave_one_out(model, several.x, several.y)
    run = {
        "verified": None, "evidence_gap": None, "log_evidence_error": 0.2, "converged": True,
        "reason": "", "messages": ["3 draws failed"], "stages": [],
        "newton": [{"objective": 1.0}, {"objective": 2.0}],
        "refine": [{"log_evidence": -4.0}, {"log_evidence": -3.0}],
        "optima": [{"origin": "mixture", "log_evidence": -3.0, "share": 1.0, "gap": 0.1}],
    }  # fmt: skip
    record = {**several.record, "run": run, "method": method, "validation": held.how}
    text = report.render(replace(several, model=model, held_out=held, record=record))
    assert ("learns no relevance" in text) is (method == "standard")
    assert ("Line width is the relevance" in text) is (method == "nsbl")
    assert ("what is pruned stays as all rows chose it" in text) is (method == "nsbl")
    assert "3 draws failed" in text
    assert "steps of the refinement" in text
    assert text.count("leave-one-out: each row predicted") == 1
    assert "<button>median</button>" in text


def test_mirror_images_of_draws_are_counted_once_and_dead_weights_are_not_kept(several):
    """Half of the draws with one neuron's signs flipped: the function, and the summary, stay."""
    rng = np.random.default_rng(1)
    network = several.model.network_  # 3-2-2
    phi = rng.normal(size=network.n_parameters) + 0.1 * rng.normal(size=(400, 14))
    names = list(network.names)
    own = [k for k, name in enumerate(names) if name in ("W[1][1,1]", "W[1][1,2]", "W[1][1,3]")]
    own += [names.index(name) for name in ("b[1][1]", "W[2][1,1]", "W[2][2,1]")]
    flipped = phi.copy()
    flipped[::2, own] *= -1
    noise, gamma = np.full((400, 2), 0.3), np.ones(14)
    one, both = (
        DrawsPosterior(network, draws, noise, np.zeros(14), gamma) for draws in (phi, flipped)
    )
    x_t = rng.normal(size=(3, 5))
    np.testing.assert_allclose(one.components(x_t)[1], both.components(x_t)[1], atol=1e-12)
    assert np.abs(np.median(flipped, axis=0) - np.median(phi, axis=0)).max() > 0.1
    for before, after in zip(one.centre_and_spread, both.centre_and_spread):
        np.testing.assert_allclose(after, before)
    np.testing.assert_allclose(one.centre_and_spread[1], 0.1, rtol=0.2)  # as for a Gaussian
    # Neuron 1 without its way out: its own weights are of no use, whatever their γ.
    gamma = gamma.copy()
    gamma[[names.index("W[2][1,1]"), names.index("W[2][2,1]")]] = 0.0
    cut = DrawsPosterior(network, phi, noise, np.zeros(14), gamma)
    assert sorted(np.flatnonzero(cut.pruned)) == sorted(own)
    assert cut.counts == (8.0, 14.0)
    assert not one.pruned.any()


def test_options_in_warnings_stay_on_one_line_and_all_else_is_escaped():
    text = str(report.with_options(f"{EVIL}: try --hidden 3, or --noise-std"))
    assert text == (
        "&lt;script&gt;alert(1)&lt;/script&gt;: try "
        '<code class="whole">--hidden</code> 3, or <code class="whole">--noise-std</code>'
    )


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.01, 0.02, "below 0.1 %"),
        (2.34, 0.01, "2.3 ± below 0.1 %"),
        (78.2, 3.4, "78 ± 3 %"),
        (0.01, 0.3, "0.0 ± 0.3 %"),
    ],
)
def test_shares_say_how_sure_they_are(value, error, text):
    assert report._share(value, error) == text


def test_one_input_is_shown_as_a_curve(tmp_path):
    x = np.linspace(-1, 1, 12)
    data = pd.DataFrame({"x": x, "y": x + 0.01 * np.cos(9 * x)})
    options = {**OPTIONS, "hidden_layer_sizes": (1,), "method": "laplace", "n_starts": 1}
    fitted = folder.fit(data, ["x"], ["y"], options)
    text = report.render(fitted)
    assert "y as a function of x" in text
    assert "against each input" not in text
    assert "#inputs" not in text
    assert "this method does not prune" in text


def test_scores_have_the_errors_of_means_over_rows(several):
    """Against the spread of the scores of resampled rows."""
    held, errors = several.held_out, report._errors(several)
    rng = np.random.default_rng(0)
    rmse, nlpd = [], []
    for _ in range(4000):
        rows = rng.integers(len(held.y), size=len(held.y))
        rmse.append(np.sqrt(((held.y - held.mean)[rows] ** 2).mean(axis=0)))
        nlpd.append(-held.log_density[rows].mean(axis=0))
    # the bootstrap's own standard deviation is known to 1/√8000, and the RMSE is a little bent
    np.testing.assert_allclose(errors["nlpd"], np.std(nlpd, axis=0), rtol=0.05)
    np.testing.assert_allclose(errors["rmse"], np.std(rmse, axis=0), rtol=0.15)
    shown = report._scores(several)[0]
    assert shown["rmse"].replace(formats.NO_BREAK, " ") == formats.with_error(
        several.scores["rmse"][0], errors["rmse"][0]
    )


@pytest.mark.parametrize(("n", "bins"), [(40, 5), (70, 8), (1000, 20)])
def test_the_grey_band_holds_a_bar_with_the_probability_that_is_told(n, bins):
    low, high = binom.ppf(report_figures.BAND, n, 1 / bins)
    inside = binom.pmf(np.arange(low, high + 1), n, 1 / bins).sum()
    assert 0.95 <= inside < 0.985
    narrower = binom.pmf(np.arange(low + 1, high), n, 1 / bins).sum()
    assert narrower < 0.95


def test_a_changed_fit_is_told_apart_from_slow_falls():
    rise = np.r_[-500, -600, np.linspace(-50, -10, 20)]  # a random start may fall
    assert report_figures.falls(rise).tolist() == []
    slow = np.r_[rise, np.linspace(-10, -14, 20)]
    assert report_figures.falls(slow).tolist() == []
    changed = np.r_[slow, -2500, -300, -12, -5, -5]
    assert report_figures.falls(changed).tolist() == [len(slow)]


def test_log_evidences_of_optima_are_in_the_units_of_the_target(several):
    """Where y is multiplied by c, log evidences fall by n log c: by 40 log 10 per target here."""
    scaled = several.data.copy()
    scaled[several.targets] *= 10.0
    again = folder.fit(scaled, several.features, several.targets, OPTIONS)
    shift = -2 * 40 * np.log(10.0)
    before, after = (f.model.optima_["log_evidence"] for f in (several, again))
    np.testing.assert_allclose(after, before + shift, rtol=1e-6)
    assert again.model.log_evidence_ == pytest.approx(after[0])
    assert report._optima(again)["rows"][0][1] == formats.fixed(after[0], 1)
    assert formats.fixed(after[0], 1) in report.verdict(again)[-1].text


def test_coverage_counts_as_right_within_what_chance_allows():
    low, high = report.coverage_range(100)
    assert (low, high) == pytest.approx((0.90, 0.99))


def test_the_graph_draws_every_edge_of_a_small_net_and_kept_ones_of_a_large(several, monkeypatch):
    graph = report_network.network_graph(several)
    n = several.model.network_.n_parameters
    assert len(graph["edges"]) == n == 14
    assert sum(not e["pruned"] for e in graph["edges"]) == graph["n_kept"]
    kept = [e for e in graph["edges"] if not e["pruned"]]
    assert all(0.6 <= e["width"] <= 4.6 for e in kept)
    assert all("γ = " in e["tip"] and "log α = " in e["tip"] for e in graph["edges"])
    monkeypatch.setattr(report_network, "MAX_PRUNED", 5)
    large = report_network.network_graph(several)
    assert len(large["edges"]) == graph["n_kept"]
    assert not large["all_drawn"]


# -------------------------------------------------------------------------------- in a browser
HOVER = """
const edge = document.querySelector(".edge:not(.pruned) .hit");
const at = {bubbles: true, clientX: 200, clientY: 200};
edge.dispatchEvent(new MouseEvent("mousemove", at));
const tip = document.getElementById("tip");
const shown = getComputedStyle(tip).display + "|" + tip.textContent;
edge.parentNode.dispatchEvent(new MouseEvent("mouseleave", at));
document.title = shown + "|" + getComputedStyle(tip).display;
"""
SORT = """
const rows = () => Array.from(document.querySelectorAll("#table tbody tr")).filter(r => !r.hidden);
const column = k => rows().map(r => Number(r.cells[k].dataset.sort));
const head = document.querySelectorAll("#table th")[5];
head.querySelector("button").click();
const up = column(5), arrow = head.getAttribute("aria-sort");
head.querySelector("button").click();
const down = column(5);
document.querySelectorAll("#table th")[0].querySelector("button").click();
const names = column(0);
const show = document.getElementById("show"), find = document.getElementById("find");
show.value = "kept";
show.dispatchEvent(new Event("change"));
const kept = rows().length;
show.value = "";
find.value = "SPEED";
find.dispatchEvent(new Event("input"));
const found = rows().map(r => r.cells[1].textContent.includes("speed"));
document.title = JSON.stringify(
  {up, arrow, down, names, kept, found, count: document.getElementById("count").textContent});
"""
CONTRAST = """
const channel = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const light = c => { const [r, g, b] = c.match(/[0-9.]+/g).map(Number);
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
const ground = e => { for (; e; e = e.parentElement) {
  const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; }
  return "rgb(255, 255, 255)"; };
let worst = 99, where = "";
for (const e of document.querySelectorAll("main *, nav *")) {
  if (!e.innerText || e.closest("svg")) continue;
  const pair = [light(getComputedStyle(e).color), light(ground(e))].sort((a, b) => b - a);
  const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
  if (ratio < worst) { worst = ratio; where = e.tagName + " " + e.className; }
}
const page = getComputedStyle(document.body).backgroundColor;
document.title = worst.toFixed(2) + " " + where + " " + page;
"""


HINTS = """
const on = () => document.querySelectorAll(".hint.on").length;
const wide = on();
for (const box of document.querySelectorAll(".scroll")) box.style.width = "120px";
window.dispatchEvent(new Event("resize"));
// pictures shrink with their box, tables and the graph do not
const narrow = on(), boxes = document.querySelectorAll(".scroll > table, .scroll > svg").length;
const cells = Array.from(document.querySelectorAll("td")).filter(c => c.textContent.includes("%"));
const lines = cells.map(c => c.getClientRects().length && c.clientHeight);
document.title = JSON.stringify({wide, narrow, boxes, heights: Array.from(new Set(lines)).length});
"""


@pytest.fixture(scope="module")
def chromium():
    return browser.require()


def test_errors_of_a_page_would_be_seen(chromium, tmp_path):
    """Negative control: the helper does catch them."""
    path = tmp_path / "broken.html"
    path.write_text("<title>t</title><body><script>nonsense()</script></body>")
    assert "nonsense" in " ".join(browser.visit(path).console)


def test_the_console_stays_empty_and_nothing_is_run_from_the_table(chromium, page):
    seen = browser.visit(page)
    assert seen.console == []
    assert "parameters" in seen.dom
    assert "14 of 14 parameters" in seen.dom
    assert seen.title == "y, </title><b>z: a sparse Bayesian neural network"


def test_pointing_at_an_edge_shows_its_parameter(chromium, page):
    seen = browser.visit(page, HOVER)
    assert seen.console == []
    before, text, after = seen.title.split("|")
    assert (before, after) == ("block", "none")
    assert re.search(r"[Wb]\[\d\]\[", text)
    assert "γ = " in text
    assert "log α = " in text


def test_the_table_sorts_and_filters(chromium, page, several):
    seen = browser.visit(page, SORT)
    assert seen.console == []
    found = json.loads(seen.title)
    assert found["up"] == sorted(found["up"])
    assert found["down"] == sorted(found["down"], reverse=True)
    assert found["up"] != found["down"]
    assert found["arrow"] == "ascending"
    assert found["names"] == list(range(14))
    assert found["kept"] == int((~several.model.summary()["pruned"]).sum())
    assert found["found"] == [True, True]
    assert found["count"] == "2 of 14 parameters"


def test_what_scrolls_sideways_says_so_and_nothing_else_does(chromium, page):
    seen = browser.visit(page, HINTS)
    assert seen.console == []
    found = json.loads(seen.title)
    assert found["wide"] < found["narrow"] == found["boxes"] == 4
    assert found["heights"] == 1  # no cell breaks a number from its unit


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_fits_its_window(chromium, page, width):
    content, window = browser.widths(page, width)
    assert window == width
    assert content <= width


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast_in_light_and_dark(chromium, page, dark):
    ratio, *where = browser.visit(page, CONTRAST, dark=dark).title.split(" ", 1)
    assert float(ratio) >= 4.5, where
    assert ("rgb(22, 24, 28)" in where[0]) is dark


def test_it_prints_and_can_be_pictured(chromium, page, tmp_path):
    printed = browser.pdf(page, tmp_path / "report.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 30
    light = browser.picture(page, tmp_path / "light.png", 1400).read_bytes()
    dark = browser.picture(page, tmp_path / "dark.png", 400, dark=True).read_bytes()
    assert light.startswith(b"\x89PNG")
    assert light != dark
