"""Release the version in `sbnn.__version__`: check, build, check the build, tag.

Run by `make release`. Nothing is uploaded or pushed; the last lines say how.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Check, build and tag; any problem ends the release with one line."""
    version = version_of((ROOT / "src" / "sbnn" / "__init__.py").read_text(encoding="utf-8"))
    tag = f"v{version}"
    if output("git", "status", "--porcelain"):
        sys.exit("release: the working tree has uncommitted changes; commit them first.")
    if output("git", "tag", "--list", tag):
        sys.exit(f"release: the tag {tag} exists; raise __version__ in src/sbnn/__init__.py.")
    notes = changelog_section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    files = build(ROOT / "dist", version)
    run("git", "tag", "--annotate", tag, "--message", f"sbnn {version}\n\n{notes}")
    print(f"\nTagged {tag} and built {', '.join(files)}. To publish:")
    print(f"  git push origin {tag}")
    print(f"  python -m twine upload {' '.join(f'dist/{name}' for name in files)}")


def version_of(source: str) -> str:
    """The version in the text of `__init__.py`; development versions are an error."""
    found = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    if found is None or not re.fullmatch(r"\d+\.\d+\.\d+", found[1]):
        sys.exit("release: __version__ must be MAJOR.MINOR.PATCH, such as 0.2.0.")
    return found[1]


def changelog_section(text: str, version: str, today: datetime.date | None = None) -> str:
    """The changes of a version, which must be the newest one, with today's date."""
    today = today or datetime.date.today()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    newest, _, body = (sections or [""])[0].partition("\n")
    expected = f"[{version}] - {today.isoformat()}"
    if newest.strip().replace("–", "-") != expected:
        sys.exit(f"release: CHANGELOG.md must start with '## {expected}'; got '## {newest}'.")
    if not body.strip():
        sys.exit(f"release: CHANGELOG.md says nothing about {version}.")
    return body.strip()


def build(folder: Path, version: str) -> list[str]:
    """Build and check the sdist and the wheel; return the names of the files."""
    with tempfile.TemporaryDirectory() as name:
        fresh = Path(name)
        run(sys.executable, "-m", "build", "--outdir", str(fresh))
        files = sorted(path.name for path in fresh.iterdir())
        if files != [f"sbnn-{version}-py3-none-any.whl", f"sbnn-{version}.tar.gz"]:
            sys.exit(f"release: unexpected files {', '.join(files)}.")
        run(sys.executable, "-m", "twine", "check", "--strict", *(str(fresh / f) for f in files))
        folder.mkdir(exist_ok=True)
        for file in files:
            (folder / file).write_bytes((fresh / file).read_bytes())
    return files


def output(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def run(*command: str) -> None:
    """Run a command; if it fails, stop."""
    print("$", " ".join(command[:6]), flush=True)
    if subprocess.run(command, cwd=ROOT).returncode:
        sys.exit(f"release: {' '.join(command[:4])} failed; nothing was tagged.")


if __name__ == "__main__":
    main()
