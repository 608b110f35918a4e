"""The import contract in pyproject.toml: it holds, and a forbidden import breaks it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def lint(folder):
    """Run `lint-imports` on the package in `folder`, with the configuration of the project."""
    return subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache", "--config", "pyproject.toml"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture
def copy(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "sbnn", tmp_path / "src" / "sbnn", ignore=ignore)
    return tmp_path


def test_imports_follow_the_contract():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [("_core/text.py", "sbnn.scores"), ("sampling/progress.py", "sbnn.reports.page")],
)
def test_forbidden_import_breaks_the_contract(copy, module, forbidden):
    path = copy / "src" / "sbnn" / module
    path.write_text(f"{path.read_text()}\n\ndef late():\n    import {forbidden}\n")
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    importer = f"sbnn.{module.removesuffix('.py').replace('/', '.')}"
    assert f"{importer} -> {forbidden}" in done.stdout


def test_new_room_outside_the_contract_breaks_it(copy):
    (copy / "src" / "sbnn" / "attic.py").write_text('"""A module in no layer."""\n')
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "attic" in done.stdout
