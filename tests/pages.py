"""Documentation pages as notebooks: run their cells and compare or update the outputs.

A block marked `python` or `sh` is a cell; a `text` block directly after it shows its output. Other
blocks (`py`, `shell`, …) are not run. To update the outputs of a page:

    python tests/pages.py docs/tutorials/table.md
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
NUMBER = re.compile(r"([-−]?\d[\d,]*(?:\.\d*)?(?:e[-+]?\d+)?)")


class Cell(NamedTuple):
    """A code block that is run."""

    language: str
    source: str
    shown: str | None  # the output that the page shows


def cells(text: str) -> list[Cell]:
    return [Cell(*found.groups()) for found in BLOCK.finditer(text)]


def run(page: list[Cell], folder: Path) -> tuple[list[str], dict]:
    """Run all cells in a folder; return the output of each, and the variables at the end."""
    names: dict = {"__name__": "page"}
    printed = []
    with contextlib.chdir(folder):
        for cell in page:
            if cell.language == "sh":
                printed.append(_shell(cell.source))
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(cell.source, "page", "exec"), names)
            printed.append(out.getvalue())
    return printed, names


def _shell(source: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        ["sh", "-e", "-c", source], capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, f"{source}\n{done.stderr}"
    return done.stdout


def agree(shown: str, printed: str) -> bool:
    """Whether words are equal, and numbers within 2 % or two units of the last digit shown.

    Numbers differ between processors, because rounding affects where an optimiser stops.
    """
    ours, theirs = (NUMBER.split(" ".join(text.split())) for text in (shown, printed))
    return len(ours) == len(theirs) and all(
        _close(a, b) if k % 2 else a == b for k, (a, b) in enumerate(zip(ours, theirs))
    )


def _close(shown: str, printed: str) -> bool:
    a, b = (float(text.replace("−", "-").replace(",", "")) for text in (shown, printed))
    digits = len(shown.partition(".")[2].partition("e")[0])
    power = int(shown.partition("e")[2] or 0)
    return abs(a - b) <= max(2.01 * 10.0 ** (power - digits), 0.02 * abs(a))


def refresh(path: Path) -> None:
    """Update the outputs that a page shows."""
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        printed, _ = run(cells(text), Path(folder))
    outputs = iter(printed)

    def block(found: re.Match) -> str:
        language, source, shown = found.groups()
        lines = [line.rstrip() for line in next(outputs).rstrip().splitlines()]
        code = f"```{language}\n{source}```\n"
        return code if shown is None else f"{code}\n```text\n" + "\n".join(lines) + "\n```\n"

    path.write_text(BLOCK.sub(block, text), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name).resolve())
