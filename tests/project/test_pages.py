"""The documentation as a whole: complete, consistent with the package, and up to date."""

import inspect
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.optimize import brentq
from scipy.stats import chi2

import sbnn

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
import generated  # noqa: E402

PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+\.md)\)")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def titles() -> dict[Path, str]:
    """Path → title of every page in the navigation."""
    found: dict[Path, str] = {}
    for section in yaml.safe_load(read(ROOT / "mkdocs.yml"))["nav"]:
        for name, content in section.items():
            items = [{name: content}] if isinstance(content, str) else content
            found |= {DOCS / path: title for item in items for title, path in item.items()}
    return found


def test_reference_documents_every_public_name():
    shown = set(re.findall(r"^::: sbnn\.(\S+)$", read(DOCS / "reference" / "api.md"), re.M))
    assert set(sbnn.__all__) - {"__version__"} <= shown


def test_navigation_lists_every_page_with_its_own_title():
    listed = titles()
    assert sorted(listed) == PAGES
    for path, title in listed.items():
        heading = read(path).splitlines()[0].removeprefix("# ")
        assert heading == ("sbnn" if path.name == "index.md" else title)


def test_readme_links_to_pages_by_their_titles():
    listed = titles()
    links = [(text, ROOT / target) for text, target in LINK.findall(read(ROOT / "README.md"))]
    links = [(text, path) for text, path in links if path.is_relative_to(DOCS)]
    assert links
    for text, path in links:
        assert text == listed[path]


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda p: p.stem
)
def test_relative_links_and_images_exist(path: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)\)", read(path))
    for target in targets:
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize(
    "path",
    [ROOT / "CONTRIBUTING.md", *sorted((DOCS / "how-to").glob("add_*.md"))],
    ids=lambda p: p.stem,
)
def test_contributor_docs_name_existing_files(path: Path) -> None:
    """Except new files, whose names contain NAME."""
    named = re.findall(r"`((?:src|tests|docs|benchmarks)/[\w./-]*)`", read(path))
    assert named
    missing = [name for name in named if "NAME" not in name and not (ROOT / name).exists()]
    assert not missing


def test_report_guide_explains_every_section_with_a_small_picture():
    template = Path(sbnn.__file__).parent / "reports" / "templates" / "fit.html"
    sections = re.findall(r'<h2 id="(\w+)">', read(template))
    page = read(DOCS / "how-to" / "report.md")
    assert sections.pop() == "glossary"  # it has its own page
    assert "reference/glossary.md)" in page
    assert re.findall(r"images/report-(\w+)\.webp", page) == sections
    for section in sections:
        assert (DOCS / "images" / f"report-{section}.webp").stat().st_size < 150_000


def test_architecture_page_lists_the_rooms_in_the_order_of_the_import_contract():
    contract = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"][0]
    layers = [set(layer.replace(" ", "").split("|")) for layer in contract["layers"]]
    text = read(DOCS / "explanation" / "architecture.md")
    table = text[text.index("| room |") : text.index("Three protocols")].strip()
    rows = [set(re.findall(r"`(\w+)`", line.split("|")[1])) for line in table.splitlines()[2:]]
    assert rows == [layer for layer in layers if layer != {"__main__"}]
    picture = read(DOCS / "images" / "architecture.svg")
    for layer in rows:
        for room in layer:
            assert f">{room}</text>" in picture


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_generated_parts_are_up_to_date(path: Path) -> None:
    text = read(path)
    assert generated.fill(text) == text, "run 'python docs/generated.py'"


def test_every_generated_part_is_used_in_one_page():
    used = [name for path in PAGES for _, name, _ in generated.PART.findall(read(path))]
    assert sorted(used) == sorted(generated.PARTS)


def test_generated_claims_name_those_that_fail(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "seed": [0, 1, 0, 1],
            "claim": ["A", "A", "B", "B"],
            "measured": ["a0", "a1", "b0", "b1"],
            "holds": [True, True, False, True],
        }
    )
    table.to_csv(tmp_path / "claims.csv", index=False)
    text = generated.fill("<!-- generated: claims -->\noutdated\n<!-- end -->", tmp_path)
    assert "Of the 2 claims, 1 hold on all 2 data seeds" in text
    assert "*B*: holds on 1 of 2 seeds; measured on seed 0: b0" in text
    assert "*A*" not in text
    assert "outdated" not in text


@pytest.mark.parametrize(("nats", "once_in"), [(0.75, 20), (3.0, 400)])
def test_chance_of_keeping_a_superfluous_term_is_as_documented(nats: float, once_in: int) -> None:
    """½(z² − 1 − log z²) > `nats` with z ~ N(0, 1) and z² > 1, as theory.md has it."""
    z2 = brentq(lambda z2: 0.5 * (z2 - 1 - np.log(z2)) - nats, 1.0, 100.0)
    assert chi2.sf(z2, df=1) * once_in == pytest.approx(1, abs=0.05)
    text = read(DOCS / "tutorials" / "oscillator.md")
    assert f"once in {once_in} times" in " ".join(text.split())


def test_documented_default_of_sparsify_is_the_one_in_the_code():
    default = inspect.signature(sbnn.nsbl).parameters["sparsify"].default
    for path in ("docs/tutorials/oscillator.md", "examples/oscillator.py"):
        text = " ".join(read(ROOT / path).split())
        assert f"{default} nat of evidence (the default)" in text
