"""The release script: versions, the changelog and the state of the repository are checked."""

from __future__ import annotations

import datetime
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TODAY = datetime.date(2030, 1, 2)


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_final_versions_are_released(release):
    assert release.version_of('x = 1\n__version__ = "0.2.0"\n') == "0.2.0"
    for version in ("0.2", "0.2.0.dev0", "0.2.0rc1"):
        with pytest.raises(SystemExit, match=r"must be MAJOR\.MINOR\.PATCH"):
            release.version_of(f'__version__ = "{version}"\n')


def test_changelog_must_describe_the_version_under_today_s_date(release):
    text = (
        "# Changelog\n\n## [0.2.0] - 2030-01-02\n\n### Added\n- More.\n\n## [0.1.0] - 2029-01-01\n"
    )
    assert release.changelog_section(text, "0.2.0", TODAY) == "### Added\n- More."
    for wrong in (
        text.replace("[0.2.0] - 2030-01-02", "[Unreleased]"),
        text.replace("01-02", "01-03"),
        text.replace("0.2.0", "0.2.1"),
        "# Changelog\n",
    ):
        with pytest.raises(SystemExit, match=r"must start with '## \[0\.2\.0\] - 2030-01-02'"):
            release.changelog_section(wrong, "0.2.0", TODAY)
    with pytest.raises(SystemExit, match="says nothing"):
        release.changelog_section("## [0.2.0] - 2030-01-02\n", "0.2.0", TODAY)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"status": " M README.md\n"}, "uncommitted changes"),
        ({"status": "", "tag": "v1.0.0\n"}, "exists; raise __version__"),
    ],
)
def test_nothing_is_built_from_a_changed_tree_or_for_an_old_tag(
    release, monkeypatch, answers, message
):
    monkeypatch.setattr(release, "output", lambda git, command, *rest: answers[command])
    monkeypatch.setattr(release, "version_of", lambda source: "1.0.0")
    monkeypatch.setattr(release, "run", lambda *command: pytest.fail("must not run"))
    with pytest.raises(SystemExit, match=message):
        release.main()
