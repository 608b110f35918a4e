"""The report of a fit: wording, escaping, and behaviour in a browser."""

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
from sbnn._core.json_text import dumps
from sbnn._core.messages import SamplerStuck, SamplingFinished, SamplingSlow, SearchEnded
from sbnn.likelihoods import Gaussian
from sbnn.methods.draws_posterior import DrawsPosterior
from sbnn.problems.network import Network
from sbnn.regressor.account.counts import Account, Single
from sbnn.regressor.account.relevance import unknown_relevance
from sbnn.reports import (
    account,
    fit_folder,
    page,
    score_tables,
    validation,
)
from sbnn.reports import fit as fits
from sbnn.reports.account import about_inputs, about_weights, order_of_inputs, relevance_table
from sbnn.reports.cautions import cautions
from sbnn.reports.drawing import figures, network_graph
from sbnn.reports.fit import Run, fit, judged
from sbnn.reports.page import GLOSSARY
from sbnn.reports.sentences import verdict
from sbnn.reports.sentences.accuracy import about_accuracy

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
    return fit(data, [EVIL, DOLLAR, "speed"], ["y", "</title><b>z"], OPTIONS, command=command)


@pytest.fixture(scope="module")
def report(several, tmp_path_factory):
    path = tmp_path_factory.mktemp("several") / "report.html"
    path.write_text(page.render(several), encoding="utf-8")
    return path


class Outline(HTMLParser):
    """Tags with their attributes, the text, and unclosed tags."""

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
def test_verification_without_a_pareto_shape_is_shown(several):
    """The shape is −inf if nothing was left to sample; a file holds null for it."""
    names = ("laplace", "exact", "error", "gap", "forward", "backward", "seconds")
    row = {"optimum": 0, "n_kept": 0, "verified": True, "weight": 1.0} | dict.fromkeys(names, 1.25)
    shown = [
        page.render(replace(several, record=replace(several.record, verification=[row | shape])))
        for shape in ({"k_hat": -np.inf}, {"k_hat": None}, {"k_hat": 0.3})
    ]
    assert shown[0] == shown[1] != shown[2]
    assert "<td>1.25</td><td>–</td><td>1.25</td>" in shown[0]


def test_column_names_are_escaped(report):
    text = report.read_text(encoding="utf-8")
    outline = Outline(text)
    assert [s.get("type") for s in outline.all("script")] == ["application/json", None]  # our own
    assert "alert(1)" not in text[text.index("<script>") :]
    assert "\\u003cscript\\u003ealert(1)" in text  # in the data of our script, not as markup
    assert EVIL not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 5
    assert not [a for tag, a in outline.tags if tag == "b" and a.get("class") == "evil"]
    assert len(outline.all("title")) >= 1
    assert "</title><b>z" not in text


def test_page_loads_nothing_from_the_network_and_images_have_alt_text(report):
    text = report.read_text(encoding="utf-8")
    outline = Outline(text)
    addresses = [a for _, tag in outline.tags for k, a in tag.items() if k in ("src", "href")]
    assert addresses
    assert all(a.startswith(("data:", "#")) for a in addresses)
    assert not re.search(r"url\(|@import|https?://", text)
    images = outline.all("img")
    assert len(images) >= 3
    assert all(len(image["alt"]) > 30 for image in images)
    assert outline.all("html")[0]["lang"] == "en"
    ids = [a["id"] for _, a in outline.tags if "id" in a]
    assert len(set(ids)) == len(ids)
    anchors = [a[1:] for a in addresses if a.startswith("#")]
    assert set(anchors) <= set(ids)


def test_verdict_covers_accuracy_calibration_pruning_and_inputs(several):
    words = " ".join(s.text for s in verdict.verdict(several))
    assert "explains nearly all of “y” in rows it did not see" in words
    assert "95 % intervals for “y” cover" in words
    assert f"“{EVIL}”" in words
    found = several.model.account_
    table = several.model.input_relevance_
    loss, error = table.loc[EVIL, "loss"], table.loc[EVIL, "error"]
    assert f"depends on “{EVIL}” ({formats.with_error(loss, error)})" in words
    idle = [f"“{name}”" for name in several.features if name not in found.inputs]
    assert (f"Not used: {', '.join(idle)}." in words) == bool(idle)
    assert f"keep {found.n_kept} of {found.n_parameters} parameters" in words.replace(
        "keeps", "keep"
    ).replace("of its", "of")
    assert "Not verified by sampling" in words
    own = verdict.own_uncertainty(several)
    assert f"own uncertainty, {formats.number(float(own[0]), 2)} for a typical row" in words


def test_function_band_is_the_predictive_distribution_without_noise(several):
    function = several.model.predictive(several.x, noise=False)
    mean, std = several.model.predict(several.x, return_std=True)
    np.testing.assert_allclose(function.mean(), mean)
    # the rest is the noise, a mean over the optima that predict
    mixture = several.model.posterior_.mixture
    scale = mixture.inflation**2 * several.y.var(axis=0)
    noise = np.array([np.exp(2 * o.noise[:, 0]) for o in mixture.optima]) * scale
    assert (std**2 - function.std() ** 2 >= noise.min(axis=0) * (1 - 1e-9)).all()
    assert (std**2 - function.std() ** 2 <= noise.max(axis=0) * (1 + 1e-9)).all()


def test_verdict_gives_the_coverage_range_allowed_by_chance(several):
    # 95 % of 40 rows, central 95 % of the binomial distribution: 35 to 40 rows
    held = several.held_out
    wide = replace(held, lower=held.y - 1.0, upper=held.y + 1.0)
    sentence = verdict.verdict(replace(several, held_out=wide))[2]
    assert "100 % of 40 unseen rows, within what chance allows (88 to 100 %)" in sentence.text


def test_verdict_flags_narrow_intervals_bad_predictions_and_awkward_tables(several):
    held = several.held_out
    narrow = replace(held, lower=held.mean - 1e-6, upper=held.mean + 1e-6)
    sure = [s for s in verdict.verdict(replace(several, held_out=narrow)) if "intervals" in s.text]
    assert sure[0].tone == "bad"
    assert "overconfident" in sure[0].text
    useless = replace(held, mean=np.zeros_like(held.mean) + held.y.mean(axis=0))
    poor = verdict.verdict(replace(several, held_out=useless))[0]
    assert poor.tone == "bad"
    assert "hardly better than the mean" in poor.text
    odd = several.data.assign(speed=1.0)
    odd.iloc[1] = odd.iloc[0]
    texts = " ".join(cautions(replace(several, data=odd.iloc[:20])))
    assert "same value in every row: “speed”" in texts
    assert "Only 20 rows" in texts
    assert "exact duplicates" in texts


def test_verdict_describes_the_networks_that_predict():
    def sentence(method="laplace_nsbl", sampled=False, relevance=0.5, inputs=("a",), **account):
        counts = {"n_optima": 1, "n_kept": 8, "n_parameters": 37, "fewest": 8, "most": 8}
        counts |= {"single": None, "inputs": inputs, **account}
        model = SimpleNamespace(
            account_=Account(**counts),
            network_=Network((10, 3, 1)),
            relevance_=np.full(37, relevance),
            method_used_=method,
            posterior_=SimpleNamespace(sampled=sampled),
            optima_=pd.DataFrame({"hidden_layer_sizes": [(3,), (4, 2)]}),
        )
        return about_weights(SimpleNamespace(model=model))

    start = "The 10-3-1 network keeps "
    end = "29 were pruned: the data do not support them."
    assert sentence() == ("plain", f"{start}8 of its 37 parameters; {end}")
    assert sentence(n_kept=37)[1].endswith("37 of its 37 parameters; none was pruned.")
    assert sentence(n_kept=36)[1].endswith("1 was pruned: the data do not support it.")
    assert sentence(inputs=())[0] == "bad"
    assert "is a constant" in sentence(inputs=())[1]
    assert sentence("laplace", n_kept=37)[1] == (
        f"{start}all 37 parameters: this method does not prune."
    )
    assert sentence(sampled=True)[1].startswith("The data support 8 of the 37 parameters")
    several = {"n_optima": 2, "n_kept": 30, "n_parameters": 98, "most": 22}
    text = sentence(**several)[1]
    assert "averages 2 networks, which together keep 30 of 98 parameters, 8 to 22 each" in text
    assert "One of them" not in text
    assert "parameters, 15 each;" in sentence(**{**several, "fewest": 15, "most": 15})[1]
    one = sentence(**several, single=Single(1, 22, 0.004, 0.01))[1]
    assert "One of them, a 10-4-2-1 network with 22 parameters, predicts left-out rows" in one


def test_bars_of_the_inputs_show_losses_with_errors(several):
    table = relevance_table(several)
    assert table["losses"]
    rows = {row["name"]: row for row in table["rows"]}
    assert next(iter(rows)) == EVIL
    first = rows[EVIL]
    assert float(first["low"]) < float(first["percent"]) < float(first["high"]) == 100.0
    unused = set(several.features) - set(several.model.account_.inputs)
    assert all(rows[name]["text"] == "not used" for name in unused)
    shares = copy.copy(several.model)
    shares.input_relevance_ = unknown_relevance(several.features)
    other = relevance_table(replace(several, model=shares))
    assert not other["losses"]
    assert other["rows"][0]["text"].endswith("%")
    assert "depends on “" in about_inputs(replace(several, model=shares))


def test_collinear_inputs_count_as_one_in_the_verdict(several):
    model = copy.copy(several.model)
    group = f"{EVIL}, speed"
    model.input_relevance_ = several.model.input_relevance_.assign(
        loss=[0.5, 0.001, 0.5], error=[0.1, 0.002, 0.1], group=[group, "", group]
    )
    text = about_inputs(replace(several, model=model))
    assert f"“{EVIL}” or “speed” (0.5 ± 0.1)" in text.replace("0.50 ± 0.10", "0.5 ± 0.1")
    assert "say much the same and count as one" in text
    assert order_of_inputs(model).tolist()[-1] == 1


def test_record_verdict_and_compact_model_give_the_same_counts(several):
    model, record = several.model, several.record
    kept, total = model.n_parameters_kept_, model.n_parameters_
    assert (record.n_parameters_kept, record.n_parameters) == (kept, total)
    assert (record.account["n_kept"], record.account["n_parameters"]) == (kept, total)
    assert model.optima_["n_kept"].sum() == kept == model.compact().n_parameters_
    assert len([p for p in score_tables.parameter_table(several) if p["kept"] == "kept"]) == kept
    assert record.input_relevance[EVIL]["loss"] == model.input_relevance_.loc[EVIL, "loss"]


def test_verdict_flags_predictions_worse_than_the_mean(several):
    held = several.held_out
    worse = replace(held, mean=held.mean + 3 * held.y.std(axis=0))
    assert "worse than the mean does" in about_accuracy(replace(several, held_out=worse), 0)[1]
    as_mean = replace(held, mean=np.broadcast_to(held.y.mean(axis=0), held.y.shape))
    text = about_accuracy(replace(several, held_out=as_mean), 0)[1]
    assert "hardly better than the mean does" in text


def test_cautions_flag_class_labels(several):
    classes = several.data.assign(y=(several.data["y"] > 0).astype(float))
    (text,) = (t for t in cautions(replace(several, data=classes)) if "two values" in t)
    assert text.startswith("“y” has only two values")
    assert not any("two values" in t for t in cautions(several))


def with_run(fitted, **changes):
    """The fit as if a sampling method had made it."""
    run = Run(True, 0.1, 0.2, False, "a stage hit its cap", slow=True)
    return replace(fitted, record=replace(fitted.record, run=replace(run, **changes)))


def test_verdict_states_whether_a_sampled_fit_was_verified(several):
    last = lambda **changes: verdict.verdict(with_run(several, **changes))[-1]
    assert "with a reservation" in last().text
    assert last().tone == "plain"
    assert last(converged=True).text.startswith("Verified: the log evidence")
    assert last(verified=False).tone == "bad"
    assert "nothing to verify" in last(verified=None).text


def test_messages_of_a_run_are_shown_once(several):
    slow = "The last run of the sampler mixed slowly: a stage hit its cap."
    assert any(text.startswith(slow) for text in cautions(with_run(several)))
    assert not any("mixed slowly" in text for text in cautions(with_run(several, slow=False)))
    assert cautions(with_run(several, messages=["stuck"]), ["stuck"]).count("stuck") == 1


def test_verdict_and_warnings_are_part_of_the_record_and_of_the_page(several):
    assert several.record.verdict == verdict.verdict(several)
    assert several.record.warnings == cautions(several)
    record = replace(
        several.record, verdict=[verdict.Sentence("good", "All is well.")], warnings=["Or is it?"]
    )
    text = page.render(replace(several, record=record))
    assert '<li class="good">All is well.</li>' in text
    assert "Or is it?" in text
    assert several.record.verdict[0].text.split()[0] not in text[: text.index('<h2 id="whatif">')]


def test_fit_folder_round_trips(several, tmp_path):
    fitted = with_run(several, optima=[{"origin": "mixture", "log_evidence": -3.0}])
    fit_folder.save(fitted, tmp_path)
    loaded = fit_folder.load(tmp_path)
    assert dumps(loaded.record.as_json()) == dumps(fitted.record.as_json())
    assert loaded.record.run == fitted.record.run
    assert loaded.record.verdict == fitted.record.verdict
    pd.testing.assert_frame_equal(loaded.data, fitted.data, check_names=False)
    np.testing.assert_array_equal(loaded.held_out.crps, fitted.held_out.crps)
    assert page.render(loaded) == page.render(fitted)


@pytest.mark.parametrize(
    ("step", "change", "rough"),
    [
        (1.0, "changed by up to 10.0 nat in the last ten", True),
        (0.01, "changed by up to 0.1 nat in the last ten", False),
        (0.001, "changed by less than 0.1 nat", False),
    ],
)
def test_unconverged_optima_are_reported(several, step, change, rough):
    state = several.model.fitted_state()
    mixture = state.posterior.mixture
    best = replace(mixture.optima[0], converged=False, history=[step * k for k in range(20)])
    late = replace(mixture, optima=(best, *mixture.optima[1:]))
    changed = replace(state, posterior=replace(state.posterior, mixture=late))
    model = several.model.from_state(several.model.get_params(), changed)
    texts = cautions(replace(several, model=model))
    (shown,) = (text for text in texts if "had not converged" in text)
    assert f"1 of {len(mixture.optima)} optima had not converged" in shown
    assert change in shown
    assert ("rough" in shown) is rough
    assert "method_options" not in shown  # there is no such option on the command line
    assert not any("had not converged" in text for text in cautions(several))


def test_slow_mixing_is_reported_once():
    slow = SamplingSlow(2, 0.3)
    assert fits._slow(SimpleNamespace(reason=slow, messages=()))
    assert fits._slow(SimpleNamespace(reason=SearchEnded("converged", slow), messages=()))
    assert not fits._slow(SimpleNamespace(reason=slow, messages=(SamplerStuck(slow),)))
    assert not fits._slow(SimpleNamespace(reason=SamplingFinished(), messages=()))


def test_glossary_is_complete_in_report_and_documentation(report):
    text = html.unescape(report.read_text(encoding="utf-8"))
    docs = Path(__file__).parents[2] / "docs" / "reference" / "glossary.md"
    shown = docs.read_text(encoding="utf-8")
    for word, meaning in GLOSSARY.items():
        assert f"<dt>{word}</dt><dd>{meaning}</dd>" in text
        assert f"| {word} | {meaning} |" in shown


@pytest.mark.parametrize("method", ["standard", "nsbl"])
def test_sampled_fits_have_a_complete_report(several, method):
    """Draws instead of the Laplace mixture: the page shows γ if it is learned."""
    rng = np.random.default_rng(0)
    state = several.model.fitted_state()
    network = several.model.network_
    phi = rng.normal(size=(300, network.n_parameters))
    learned = np.linspace(0, 1, network.n_parameters) if method == "nsbl" else np.full(14, np.nan)
    theta = np.full((300, 2, 1), np.log(0.3))
    draws = DrawsPosterior(
        network, phi, theta, Gaussian(), np.full(2, 0.09), 5 - 5 * learned, learned
    )
    draws = draws.with_reach(rng.normal(size=(network.sizes[0], 50)))
    sampled = replace(state, posterior=draws, method_used=method)
    model = several.model.from_state(several.model.get_params(), sampled)
    held = validation.leave_one_out(model, several.x, several.y)
    run = Run(
        None, None, 0.2, True, messages=["3 draws failed"],
        newton=[{"objective": 1.0}, {"objective": 2.0}],
        refine=[{"log_evidence": -4.0}, {"log_evidence": -3.0}],
        optima=[{"origin": "mixture", "log_evidence": -3.0, "share": 1.0, "gap": 0.1}],
    )  # fmt: skip
    record = replace(several.record, run=run, method=method, validation=held.how)
    text = page.render(judged(replace(several, model=model, held_out=held, record=record)))
    assert ("learns no relevance" in text) is (method == "standard")
    assert ("Line width is the relevance" in text) is (method == "nsbl")
    assert ("pruning is based on all rows" in text) is (method == "nsbl")
    assert "3 draws failed" in text
    assert "steps of the refinement" in text
    assert text.count("leave-one-out: each row predicted") == 1
    assert "<button>median</button>" in text


def test_mirror_images_of_draws_are_counted_once_and_dead_weights_are_not_kept(several):
    """Flip the signs of one neuron in half of the draws: function and summary do not change."""
    rng = np.random.default_rng(1)
    network = several.model.network_  # 3-2-2
    phi = rng.normal(size=network.n_parameters) + 0.1 * rng.normal(size=(400, 14))
    names = list(network.names)
    own = [k for k, name in enumerate(names) if name in ("W[1][1,1]", "W[1][1,2]", "W[1][1,3]")]
    own += [names.index(name) for name in ("b[1][1]", "W[2][1,1]", "W[2][2,1]")]
    flipped = phi.copy()
    flipped[::2, own] *= -1
    rest = (np.full((400, 2, 1), np.log(0.3)), Gaussian(), np.full(2, 0.09), np.zeros(14))
    gamma = np.ones(14)
    one, both = (DrawsPosterior(network, draws, *rest, gamma) for draws in (phi, flipped))
    x_t = rng.normal(size=(3, 5))
    np.testing.assert_allclose(one.predictive(x_t).means, both.predictive(x_t).means, atol=1e-12)
    assert np.abs(np.median(flipped, axis=0) - np.median(phi, axis=0)).max() > 0.1
    for before, after in zip(one.centre_and_spread, both.centre_and_spread):
        np.testing.assert_allclose(after, before)
    np.testing.assert_allclose(one.centre_and_spread[1], 0.1, rtol=0.2)  # as for a Gaussian
    # Neuron 1 disconnected from the output: its weights are useless, whatever their γ.
    gamma = gamma.copy()
    gamma[[names.index("W[2][1,1]"), names.index("W[2][2,1]")]] = 0.0
    cut = DrawsPosterior(network, phi, *rest, gamma)
    assert sorted(np.flatnonzero(cut.pruned)) == sorted(own)
    assert cut.counts == (8.0, 14.0)
    assert not one.pruned.any()


def test_options_in_warnings_do_not_wrap_and_other_text_is_escaped():
    text = str(page.with_options(f"{EVIL}: try --hidden 3, or --noise-std"))
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
def test_relevance_shares_show_their_uncertainty(value, error, text):
    assert account._share(value, error) == text


def test_one_input_is_shown_as_a_curve(tmp_path):
    x = np.linspace(-1, 1, 12)
    data = pd.DataFrame({"x": x, "y": x + 0.01 * np.cos(9 * x)})
    options = {**OPTIONS, "hidden_layer_sizes": (1,), "method": "laplace", "n_starts": 1}
    fitted = fit(data, ["x"], ["y"], options)
    text = page.render(fitted)
    assert "y as a function of x" in text
    assert "against each input" not in text
    assert "#inputs" not in text
    assert "this method does not prune" in text


def test_scores_have_the_errors_of_means_over_rows(several):
    """Against the spread of the scores of resampled rows."""
    held, errors = several.held_out, validation.standard_errors(several.held_out)
    rng = np.random.default_rng(0)
    rmse, nlpd = [], []
    for _ in range(4000):
        rows = rng.integers(len(held.y), size=len(held.y))
        rmse.append(np.sqrt(((held.y - held.mean)[rows] ** 2).mean(axis=0)))
        nlpd.append(-held.log_density[rows].mean(axis=0))
    # the bootstrap's own standard deviation is known to 1/√8000, and the RMSE is slightly nonlinear
    np.testing.assert_allclose(errors["nlpd"], np.std(nlpd, axis=0), rtol=0.05)
    np.testing.assert_allclose(errors["rmse"], np.std(rmse, axis=0), rtol=0.15)
    shown = score_tables.scores_table(several)[0]["own"]
    assert shown["rmse"].replace(formats.NO_BREAK, " ") == formats.with_error(
        several.held_out.scores()["rmse"][0], errors["rmse"][0]
    )


@pytest.mark.parametrize(("n", "bins"), [(40, 5), (70, 8), (1000, 20)])
def test_grey_band_contains_each_bar_with_the_stated_probability(n, bins):
    low, high = binom.ppf(figures.BAND, n, 1 / bins)
    inside = binom.pmf(np.arange(low, high + 1), n, 1 / bins).sum()
    assert 0.95 <= inside < 0.985
    narrower = binom.pmf(np.arange(low + 1, high), n, 1 / bins).sum()
    assert narrower < 0.95


def test_fit_changes_are_distinguished_from_slow_declines():
    rise = np.r_[-500, -600, np.linspace(-50, -10, 20)]  # a random start may fall
    assert figures.falls(rise).tolist() == []
    slow = np.r_[rise, np.linspace(-10, -14, 20)]
    assert figures.falls(slow).tolist() == []
    changed = np.r_[slow, -2500, -300, -12, -5, -5]
    assert figures.falls(changed).tolist() == [len(slow)]


def test_log_evidences_of_optima_are_in_the_units_of_the_target(several):
    """If y is multiplied by c, log evidences fall by n log c: by 40 log 10 per target here."""
    scaled = several.data.copy()
    scaled[several.targets] *= 10.0
    again = fit(scaled, several.features, several.targets, OPTIONS)
    shift = -2 * 40 * np.log(10.0)
    before, after = (f.model.optima_["log_evidence"] for f in (several, again))
    np.testing.assert_allclose(after, before + shift, rtol=1e-6)
    assert again.model.log_evidence_ == pytest.approx(after[0])
    assert score_tables.optima_table(again)["rows"][0][1] == formats.fixed(after[0], 1)
    assert formats.fixed(after[0], 1) in verdict.verdict(again)[-1].text


def test_coverage_counts_as_right_within_what_chance_allows():
    low, high = verdict.coverage_range(100)
    assert (low, high) == pytest.approx((0.90, 0.99))


def test_graph_draws_all_edges_of_small_networks_and_kept_edges_of_large_ones(several, monkeypatch):
    graph = network_graph.network_graph(several)
    n = several.model.network_.n_parameters
    assert len(graph["edges"]) == n == 14
    assert sum(not e.pruned for e in graph["edges"]) == graph["n_kept"]
    kept = [e for e in graph["edges"] if not e.pruned]
    assert all(0.6 <= e.width <= 4.6 for e in kept)
    assert all("γ = " in e.tip and "log α = " in e.tip for e in graph["edges"])
    monkeypatch.setattr(network_graph, "MAX_PRUNED", 5)
    large = network_graph.network_graph(several)
    assert len(large["edges"]) == graph["n_kept"]
    assert not large["all_drawn"]


def test_graph_omits_neurons_without_edges():
    # A 3-4-2 network: input 2 to neuron 3 to output 1; the other output is constant.
    found = network_graph._drawn_nodes([3, 4, 2], [(0, 1, 2), (0, -1, 2), (1, 2, 0)])
    assert found == [[1], [2], [0, 1]]
    assert network_graph._drawn_nodes([3, 4, 1], []) == [[0], [0], [0]]


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
const show = document.getElementById("show"), head = document.querySelectorAll("#table th")[5];
document.querySelector("#expert + details").open = true;
show.value = "";
show.dispatchEvent(new Event("change"));
head.querySelector("button").click();
const up = column(5), arrow = head.getAttribute("aria-sort");
head.querySelector("button").click();
const down = column(5);
document.querySelectorAll("#table th")[0].querySelector("button").click();
const names = column(0);
const find = document.getElementById("find");
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
document.querySelector("#expert + details").open = true;
for (const box of document.querySelectorAll(".scroll")) box.style.width = "120px";
window.dispatchEvent(new Event("resize"));
// pictures shrink with their box, tables and the graph do not
const narrow = on(), boxes = document.querySelectorAll(".scroll > table, .scroll > svg").length;
const cells = Array.from(document.querySelectorAll("td")).filter(c => c.textContent.includes("%"));
const lines = cells.map(c => { const range = document.createRange(); range.selectNodeContents(c);
  return new Set(Array.from(range.getClientRects()).map(r => Math.round(r.top))).size; });
document.title = JSON.stringify({wide, narrow, boxes, lines: Math.max(...lines)});
"""


@pytest.fixture(scope="module")
def chromium():
    return browser.require()


def test_page_errors_are_detected(chromium, tmp_path):
    """Negative control: the helper catches them."""
    path = tmp_path / "broken.html"
    path.write_text("<title>t</title><body><script>nonsense()</script></body>")
    assert "nonsense" in " ".join(browser.visit(path).console)


def test_console_is_empty_and_table_content_is_not_executed(chromium, report):
    seen = browser.visit(report)
    assert seen.console == []
    assert "parameters" in seen.dom
    assert " of 14 parameters" in seen.dom
    assert seen.title == "y, </title><b>z: a sparse Bayesian neural network"


def test_pointing_at_an_edge_shows_its_parameter(chromium, report):
    seen = browser.visit(report, HOVER)
    assert seen.console == []
    before, text, after = seen.title.split("|")
    assert (before, after) == ("block", "none")
    assert re.search(r"[Wb]\[\d\]\[", text)
    assert "γ = " in text
    assert "log α = " in text


def test_table_sorts_and_filters(chromium, report, several):
    seen = browser.visit(report, SORT)
    assert seen.console == []
    found = json.loads(seen.title)
    assert found["up"] == sorted(found["up"])
    assert found["down"] == sorted(found["down"], reverse=True)
    assert found["up"] != found["down"]
    assert found["arrow"] == "ascending"
    rows = score_tables.parameter_table(several)
    assert found["names"] == list(range(len(rows)))
    assert found["kept"] == several.model.n_parameters_kept_
    named = sum("speed" in row["path"] for row in rows)
    assert found["found"] == [True] * named
    assert found["count"] == f"{named} of {len(rows)} parameters"


def test_scroll_hint_appears_only_above_wide_content(chromium, report):
    seen = browser.visit(report, HINTS)
    assert seen.console == []
    found = json.loads(seen.title)
    assert found["wide"] < found["narrow"] == found["boxes"] == 7
    assert found["lines"] == 1  # no cell separates a number from its unit


@pytest.mark.parametrize("width", [400, 1400])
def test_page_fits_its_window(chromium, report, width):
    content, window = browser.widths(report, width)
    assert window == width
    assert content <= width


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast_in_light_and_dark(chromium, report, dark):
    ratio, *where = browser.visit(report, CONTRAST, dark=dark).title.split(" ", 1)
    assert float(ratio) >= 4.5, where
    assert ("rgb(22, 24, 28)" in where[0]) is dark


def test_page_can_be_printed_and_captured(chromium, report, tmp_path):
    printed = browser.pdf(report, tmp_path / "report.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 30
    light = browser.picture(report, tmp_path / "light.png", 1400).read_bytes()
    dark = browser.picture(report, tmp_path / "dark.png", 400, dark=True).read_bytes()
    assert light.startswith(b"\x89PNG")
    assert light != dark
