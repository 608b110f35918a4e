"""Code in the README and the documentation runs as written."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(path: Path, folder: Path, monkeypatch, n_blocks: int | None = None, **replace) -> dict:
    monkeypatch.chdir(folder)
    names: dict = {}
    for block in python_blocks(path)[:n_blocks]:
        for old, new in replace.items():
            block = block.replace(old, new)
        exec(compile(block, str(path), "exec"), names)
    return names


def test_the_five_minute_start_runs_as_written(tmp_path, monkeypatch, capsys):
    names = run(ROOT / "docs" / "start.md", tmp_path, monkeypatch)
    assert names["result"].verified
    assert names["small"].network.sizes == (1, 2, 1)


def test_the_page_on_a_model_of_ones_own_finds_the_two_true_terms(tmp_path, monkeypatch, capsys):
    names = run(ROOT / "docs" / "physics.md", tmp_path, monkeypatch)
    assert set(names["result"].prune().names) == {"linear", "quadratic"}


@pytest.mark.slow
def test_the_readme_prints_what_it_says(tmp_path, monkeypatch, capsys):
    run(ROOT / "README.md", tmp_path, monkeypatch, n_blocks=1)
    printed = capsys.readouterr().out
    claimed = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    strip = lambda text: [line.rstrip() for line in text.strip().splitlines()]
    assert strip(printed) == strip(claimed[0])
