"""Write `benchmarks/constraints.txt`: the version of every package that the benchmarks use.

    python tools/lock.py

pip resolves the extras `all` and `bench` without installing them. Packages for GPUs are left out:
the benchmarks run on CPUs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PATH = ROOT / "benchmarks" / "constraints.txt"
LEFT_OUT = re.compile(r"(sbnn|triton|nvidia-.*|cuda-.*)")
HEAD = """\
# Versions of everything the benchmarks use: Python 3.11 on Linux, without GPU packages.
# Install with: pip install -e ".[all,bench]" --constraint benchmarks/constraints.txt
# Write it again with: python tools/lock.py
"""


def main() -> None:
    """Resolve the extras and write the file."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    report = subprocess.run(
        [*pip, "--report", "-", f"{ROOT}[all,bench]"], check=True, capture_output=True, text=True
    )
    PATH.write_text(HEAD + pins(json.loads(report.stdout)), encoding="utf-8")


def pins(report: dict[str, Any]) -> str:
    """One line `name==version` per package of a report by pip, in alphabetical order.

    Parameters
    ----------
    report : dict
        From `pip install --report`.

    Returns
    -------
    str

    Examples
    --------
    >>> pins({"install": [{"metadata": {"name": "Jinja2", "version": "3.1.6"}}]})
    'jinja2==3.1.6\\n'
    """
    found = {
        re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower(): item["metadata"]["version"]
        for item in report["install"]
    }
    kept = {name: version for name, version in found.items() if not LEFT_OUT.fullmatch(name)}
    return "".join(f"{name}=={version}\n" for name, version in sorted(kept.items()))


if __name__ == "__main__":
    main()
