"""Pages run their own scripts only, and show no control characters."""

from __future__ import annotations

import re

import browser
import numpy as np
import pandas as pd
import pytest

from sbnn._core.web_pages import content_security_policy, visible
from sbnn.reports import page
from sbnn.reports.fit import fit

ESCAPE = "\x1b[31mred\x00\x07\x9b\u202egnp"
OPTIONS = {
    "hidden_layer_sizes": (2,), "method": "laplace_nsbl", "noise_std": None, "n_starts": 2,
    "random_state": 0, "n_jobs": 1,
}  # fmt: skip
INJECTED = (
    "<script>document.title = 'injected'</script>",
    "<img src='data:,x' onerror=\"document.title = 'injected'\">",
    "<svg onload=\"document.title = 'injected'\"></svg>",
    "<iframe srcdoc=\"<script>parent.document.title = 'injected'</script>\"></iframe>",
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(30, 2))
    data = pd.DataFrame(x, columns=[ESCAPE, "b"]).assign(**{f"y{ESCAPE}": x.sum(axis=1)})
    fitted = fit(data, [ESCAPE, "b"], [f"y{ESCAPE}"], OPTIONS, command=f"sbnn fit '{ESCAPE}'")
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page.render(fitted), encoding="utf-8")
    return path


def test_control_characters_of_names_do_not_reach_the_page(report):
    text = report.read_text(encoding="utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert "�[31mred�" in text


def test_visible_text_is_unchanged():
    assert visible("größe 漢 👩‍🚀\n") == "größe 漢 👩‍🚀\n"
    assert visible(3) == 3
    assert visible("\udcff") == "�"


def test_policy_names_the_only_script_of_the_page(report):
    text = report.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text).group(1)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert policy == content_security_policy(script)
    assert "unsafe" not in policy.replace("style-src 'unsafe-inline'", "")


def test_own_scripts_run_and_the_console_is_empty(report):
    seen = browser.visit(report)
    assert seen.console == []
    assert re.search(r"\d+ of \d+ parameters", seen.dom)


@pytest.mark.parametrize("markup", INJECTED, ids=["script", "image", "svg", "frame"])
def test_injected_scripts_do_not_run(report, tmp_path, markup):
    text = report.read_text(encoding="utf-8")
    path = tmp_path / "page.html"
    path.write_text(text.replace("</main>", f"{markup}</main>"), encoding="utf-8")
    assert browser.visit(path).title != "injected"
    # Negative control: without the policy, it would run.
    open_to_all = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", text)
    path.write_text(open_to_all.replace("</main>", f"{markup}</main>"), encoding="utf-8")
    assert browser.visit(path).title == "injected"
