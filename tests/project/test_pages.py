"""The documentation as a whole: every public name, every page, small pictures."""

import re
from pathlib import Path

import sbnn

DOCS = Path(__file__).parents[2] / "docs"


def test_every_public_name_is_in_the_reference():
    shown = set(re.findall(r"^::: sbnn\.(\S+)$", (DOCS / "api.md").read_text("utf-8"), re.M))
    assert set(sbnn.__all__) - {"__version__"} <= shown


def test_every_page_is_in_the_table_of_contents():
    contents = (DOCS.parent / "mkdocs.yml").read_text("utf-8")
    for page in DOCS.glob("*.md"):
        assert f": {page.name}\n" in contents


def test_every_section_of_a_report_is_explained_with_a_small_picture():
    template = Path(sbnn.__file__).parent / "reports" / "templates" / "fit.html"
    sections = re.findall(r'<h2 id="(\w+)">', template.read_text("utf-8"))
    page = (DOCS / "report.md").read_text("utf-8")
    assert sections.pop() == "glossary"  # words only: a page of its own
    assert "(glossary.md)" in page
    assert re.findall(r"images/report-(\w+)\.webp", page) == sections
    for section in sections:
        assert (DOCS / "images" / f"report-{section}.webp").stat().st_size < 150_000
