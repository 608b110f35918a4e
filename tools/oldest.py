"""Test the lower bounds in `pyproject.toml`: install the oldest allowed versions and run the tests.

    python tools/oldest.py FOLDER [arguments of pytest]

Creates a virtual environment in FOLDER with the lower bound of every dependency and of every extra
that users install, and runs pytest there; without arguments, the default tests. Run by
`make test-oldest`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("cli", "report", "distributed", "onnx", "parquet")  # all but those for developers
# Needed by the tests, in the newest version that suits the bounds.
TOOLS = ("import-linter", "jupytext", "onnxruntime", "pytest", "pytest-cov", "pytest-xdist")


def main() -> None:
    """Build the environment and run pytest in it; exit with its status."""
    if len(sys.argv) < 2:
        sys.exit("usage: python tools/oldest.py FOLDER [arguments of pytest]")
    folder = Path(sys.argv[1]).resolve()
    arguments = sys.argv[2:] or ["-n", "auto", "--dist", "loadfile"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    install(python, oldest(project))
    status = subprocess.run([python, "-m", "pytest", *arguments], cwd=ROOT, check=False)
    sys.exit(status.returncode)


def install(python: Path, constraints: list[str]) -> None:
    """Install the package with its extras and the tools of the tests under the constraints."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "constraints.txt"
        path.write_text("\n".join(constraints) + "\n", encoding="utf-8")
        wanted = ["--editable", f"{ROOT}[{','.join(EXTRAS)}]", *TOOLS]
        # Not quiet: if bounds contradict each other, pip's log says which.
        pip = [python, "-m", "pip", "install", "--progress-bar", "off", "--constraint", path]
        if subprocess.run([*pip, *wanted], check=False).returncode != 0:
            sys.exit("oldest: pip cannot install the lower bounds together; see its output above.")


def oldest(project: dict) -> list[str]:
    """The lower bounds as pins, such as "numpy==2.0".

    Parameters
    ----------
    project : dict
        The table `project` of pyproject.toml.

    Returns
    -------
    list of str

    Raises
    ------
    SystemExit
        If a dependency has no lower bound.

    Examples
    --------
    >>> oldest({"dependencies": ["numpy>=2.0"], "optional-dependencies": {}})
    ['numpy==2.0']
    """
    extras = project["optional-dependencies"]
    listed = [*project["dependencies"], *(r for e in EXTRAS for r in extras.get(e, ()))]
    pins = []
    for requirement in listed:
        if requirement.startswith(f"{project.get('name', 'sbnn')}["):
            continue  # another extra of this project
        found = re.fullmatch(r"([\w.-]+)>=([\w.]+)(,.*)?", requirement.replace(" ", ""))
        if found is None:
            sys.exit(f"oldest: {requirement!r} has no lower bound (name>=version).")
        pins.append(f"{found[1]}=={found[2]}")
    return pins


if __name__ == "__main__":
    main()
