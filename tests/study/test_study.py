"""The study at small size: parts, tables, claims and the report in a real browser."""

import functools
import json
import re
import shutil

import numpy as np
import pytest
from browser import visit
from helpers import assert_within_errors

from sbnn.evidence.closed_form import log_evidence
from sbnn.evidence.closed_form import posterior as closed_form_posterior
from sbnn.methods.details import NsblDetails
from sbnn.sampling.checkpoints import Folder
from sbnn.study import claims as judged_claims
from sbnn.study import runs
from sbnn.study.explorer import explorer_data
from sbnn.study.page import write_report
from sbnn.study.tables import write_tables

SMALL = 80


@pytest.fixture(scope="module")
def small_settings():
    patch = pytest.MonkeyPatch()
    patch.setattr(
        runs.Settings, "of", classmethod(lambda cls, seed, quick: runs.Settings(seed, SMALL))
    )
    patch.setattr(runs, "nsbl", functools.partial(runs.nsbl, n_starts=1))
    yield
    patch.undo()


@pytest.fixture(scope="module")
def study_folder(tmp_path_factory, small_settings):
    out = tmp_path_factory.mktemp("study")
    lines: list[str] = []
    study = runs.run(out, seed=0, say=lines.append)
    report, claims = write_report(study, out)
    return out, study, report, claims, lines


def test_all_figures_and_tables_of_the_study_are_written(study_folder):
    out, *_ = study_folder
    names = {path.stem for path in (out / "figures").glob("*.png")}
    assert {name[:5] for name in names} == {f"fig{number:02d}" for number in range(1, 19)}
    assert names == {path.stem for path in (out / "figures").glob("*.pdf")}
    for table in ("table1", "table2", "evidence", "scores", "claims"):
        assert (out / "tables" / f"{table}.csv").stat().st_size > 100
        assert (out / "tables" / f"{table}.tex").read_text("utf-8").startswith("\\begin{tabular}")
    assert not list(out.rglob("*.part"))


def test_report_opens_from_disk_without_errors_and_navigation_works(study_folder):
    *_, report, _, _ = study_folder
    text = report.read_text("utf-8")
    assert not re.search(r'(src|href)="https?:', text), "the report needs no network"
    for target in re.findall(r'href="#([^"]+)"', text):
        assert f'id="{target}"' in text
    assert text.count("<img ") == text.count('alt="') == 18
    page = visit(
        report,
        "document.title = [...document.images].filter(i => i.complete && i.naturalWidth > 0).length"
        " + ' images';",
    )
    assert page.console == []
    assert page.title == "18 images"


def test_scripts_do_not_run_in_the_report(study_folder, tmp_path):
    *_, report, _, _ = study_folder
    path = tmp_path / "page.html"
    injected = "<script>document.title = 'injected'</script></main>"
    text = report.read_text("utf-8").replace("</main>", injected)
    assert injected in text
    path.write_text(text, "utf-8")
    assert visit(path).title != "injected"


EXPLORE = """
const slider = document.getElementById("alpha-6");
const shown = document.getElementById("evidence-value");
const before = shown.textContent;
slider.value = 9;
slider.dispatchEvent(new Event("input"));
requestAnimationFrame(() => setTimeout(() => {
  const some = explorer.draws(explorer.data.logAlpha);
  document.title = JSON.stringify({
    evidences: %s.map((at) => explorer.logEvidence(at)), before, after: shown.textContent,
    mean: some[0].map((_, k) => some.reduce((s, phi) => s + phi[k], 0) / some.length),
    charts: document.querySelectorAll("#profile path, #bands path").length}); }, 50));
"""


def test_explorer_of_the_evidence_equals_the_closed_form(study_folder):
    _, study, report, *_ = study_folder
    nsbl = study.results["nsbl"]
    found = runs.details(nsbl, NsblDetails)
    ard, best = nsbl.network_problem.ard, found.newton_log_alpha[-1]
    rng = np.random.default_rng(0)
    at = best + np.where(np.arange(10) // 3 == 2, rng.uniform(-6, 6, size=(20, 10)), 0.0)
    page = visit(report, EXPLORE % json.dumps(at.tolist()))
    assert page.console == []
    seen = json.loads(page.title)
    exact = [log_evidence(log_alpha, found.mixture, ard) for log_alpha in at]
    np.testing.assert_allclose(seen["evidences"], exact, rtol=1e-10)
    assert seen["before"].startswith(
        f"log evidence {log_evidence(best, found.mixture, ard):.2f}".replace("-", "−")
    )
    assert seen["after"] != seen["before"]
    assert seen["charts"] == 4
    # The bands come from draws of the mixture's posterior.
    posterior = closed_form_posterior(best, found.mixture, ard)
    mean = np.einsum("gk,gkd->d", posterior.weights, posterior.means)
    n = len(explorer_data(study)["uniform"])
    spread = posterior.draws(np.random.default_rng(1), 4000).std(axis=0)
    mean_seen = np.array(list(seen["mean"].values()))  # a typed array as JSON
    assert_within_errors(mean_seen, mean, spread / np.sqrt(n), "mean of the draws")


def test_finished_parts_are_reused_and_missing_ones_computed(study_folder, tmp_path):
    out, study, *_ = study_folder
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    (copy / "results" / "laplace.nc").unlink()
    (copy / "results" / "standard.nc").write_bytes(b"half written")
    lines: list[str] = []
    again = runs.run(copy, seed=0, say=lines.append)
    running = [line.split()[1] for line in lines if "running" in line]
    assert running == ["standard:", "laplace:"]
    assert np.array_equal(again.results["standard"].phi, study.results["standard"].phi)


@pytest.mark.parametrize("damaged", [False, True])
def test_interrupted_part_continues_or_else_starts_over(
    study_folder, tmp_path, monkeypatch, damaged
):
    out, study, *_ = study_folder
    assert not list(out.rglob("*.checkpoint"))
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    (copy / "results" / "standard.nc").unlink()
    write, writes = Folder.write, []

    def stop_after_three(self, *arguments):
        write(self, *arguments)
        writes.append(arguments[0])
        if len(writes) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Folder, "write", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        runs.run(copy, seed=0, say=lambda text: None)
    if damaged:
        (copy / "results" / "standard.checkpoint" / "tmcmc.sbnn").write_bytes(b"half written")
    lines: list[str] = []
    again = runs.run(copy, seed=0, say=lines.append)
    stages = len(study.results["standard"].history["stages"])
    assert len(writes) == (3 + stages if damaged else stages)
    assert damaged == any("Starting over" in line for line in lines)
    assert np.array_equal(again.results["standard"].phi, study.results["standard"].phi)
    assert not list(copy.rglob("*.checkpoint"))


def test_same_seed_gives_byte_identical_tables(study_folder, tmp_path):
    out, *_ = study_folder
    # Recomputed from the stored results; other tests check that a key fixes the results.
    again = runs.run(out, seed=0, say=lambda text: None)
    write_tables(again, tmp_path, judged_claims.table(judged_claims.judge(again)))
    for path in sorted((out / "tables").iterdir()):
        assert path.read_bytes() == (tmp_path / "tables" / path.name).read_bytes()


@pytest.mark.slow
def test_study_run_twice_gives_byte_identical_tables(study_folder, tmp_path):
    out, *_ = study_folder
    again = runs.run(tmp_path, seed=0, say=lambda text: None)
    write_tables(again, tmp_path, judged_claims.table(judged_claims.judge(again)))
    for path in sorted((out / "tables").iterdir()):
        assert path.read_bytes() == (tmp_path / "tables" / path.name).read_bytes()


def test_claims_are_judged_by_the_numbers_and_can_fail(study_folder):
    _, study, _, claims, _ = study_folder
    assert len(claims) == 9
    # A study whose NSBL draws are those of standard Bayes must fail the claim on bands.
    fake = dict(study.results)
    fake["nsbl"] = study.results["nsbl"].__class__(
        **{**study.results["nsbl"].__dict__, "phi": study.results["standard"].phi}
    )
    judged = judged_claims.judge(study._replace(results=fake))
    bands = next(c for c in judged if "predict alike" in c.claim)
    assert not bands.holds
    # One whose relevances are all one prunes nothing and must fail the claim on output weights.
    fake["nsbl"] = study.results["nsbl"].__class__(
        **{**study.results["nsbl"].__dict__, "relevance": np.ones(10)}
    )
    judged = judged_claims.judge(study._replace(results=fake))
    assert not next(c for c in judged if "One output weight" in c.claim).holds


def test_changing_the_seed_starts_over(small_settings, tmp_path):
    folder = tmp_path / "results"
    folder.mkdir(parents=True)
    (folder / "standard.nc").write_bytes(b"of another seed")
    stamp = folder / "settings.json"
    stamp.write_text('{"seed": 3}', encoding="utf-8")
    assert not runs._same_settings(stamp, runs.Settings(0, SMALL))
