"""Headless Chromium for tests of pages: a page's final DOM, its console, pictures and PDF.

    python tests/browser.py

installs one if there is none and no consent is needed (`make test` runs it first).
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import html
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--virtual-time-budget=3000",
)
LIGHT, DARK = 1, 0
TRIES = 3
REMEDY = (
    "Install it, for example with 'apt install chromium', or set SBNN_CHROMIUM to its path, to "
    "test pages in a browser."
)


class Page(NamedTuple):
    """A page as rendered by a browser."""

    dom: str
    console: list[str]  # everything written to the console, including script errors

    @property
    def title(self) -> str:
        found = re.search(r"<title>(.*?)</title>", self.dom, re.DOTALL)
        return html.unescape(found.group(1)) if found else ""


def find() -> str | None:
    """The path of a browser that starts: `SBNN_CHROMIUM`, or the first one on the PATH.

    `SBNN_CHROMIUM=none` means no browser.
    """
    named = os.environ.get("SBNN_CHROMIUM")
    if named == "none":
        return None
    found = [named] if named else [path for name in NAMES if (path := shutil.which(name))]
    return next((path for path in found if _starts(path)), None)


@functools.cache
def _starts(path: str) -> bool:
    """Whether it prints its version; some systems have a placeholder of the same name."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and "chrom" in done.stdout.lower()


def require() -> str:
    """The path of a browser; skips the test if there is none."""
    path = find()
    if path is None:
        pytest.skip(f"no Chromium that starts: {REMEDY}")
    return path


def install() -> str:
    """Install Chromium if it is missing and no consent is needed; return what was done."""
    path = find()
    if path is not None:
        return f"tests of pages use {path}"
    if os.environ.get("SBNN_CHROMIUM"):
        return "SBNN_CHROMIUM names no browser that starts; tests of pages will be skipped"
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return f"no Chromium that starts; tests of pages will be skipped. {REMEDY}"
    print("installing Chromium for the tests of pages (apt-get)", flush=True)
    get = ["apt-get", "-qq", "-y", "--no-install-recommends"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ([*get, "update"], [*get, "install", "chromium", "fonts-dejavu-core"]):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, timeout=900)
    _starts.cache_clear()
    path = find()
    if path is None:
        return f"Chromium could not be installed; tests of pages will be skipped. {REMEDY}"
    return f"tests of pages use {path}"


def run(page: Path, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess:
    """Open a page from disk in a fresh profile."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [require(), *FLAGS, f"--user-data-dir={profile}", *arguments]
        return subprocess.run(
            [*command, page.resolve().as_uri()],
            capture_output=True, text=True, timeout=timeout, encoding="utf-8", errors="replace",
        )  # fmt: skip


def visit(page: Path, script: str = "", dark: bool = False) -> Page:
    """The DOM after the page's scripts, and after `script` if one is given, have run.

    `script` runs in a copy of the page, at its end, and stores its findings in document.title. On a
    busy machine a page may be returned before its first frame is drawn; it is then opened again.
    """
    original = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "page.html"
        copy.write_text(with_script(original, script) if script else original, encoding="utf-8")
        for _ in range(TRIES):
            done = run(copy, "--enable-logging=stderr", "--v=0", _scheme(dark), "--dump-dom")
            seen = Page(done.stdout, re.findall(r"CONSOLE[:(].*", done.stderr))
            if not script or seen.title != Page(original, []).title:
                break
    assert seen.dom.strip(), f"no page came back: {done.stderr[-2000:]}"
    return seen


def widths(page: Path, width: int) -> tuple[int, int]:
    """Width of the page's content and of its window, in a frame: windows are 500 or wider."""
    script = "parent.postMessage(document.documentElement.scrollWidth + ' ' + innerWidth, '*')"
    frame = (
        "<!doctype html><title></title><body>"
        "<script>addEventListener('message', e => { document.title = e.data; });</script>"
        f"<iframe src='framed.html' style='border: 0; width: {width}px; height: 900px'></iframe>"
    )
    with tempfile.TemporaryDirectory() as folder:
        text = page.read_text(encoding="utf-8")
        text = with_script(text, script)
        (Path(folder) / "framed.html").write_text(text, encoding="utf-8")
        outer = Path(folder) / "frame.html"
        outer.write_text(frame, encoding="utf-8")
        done = run(outer, "--window-size=1600,1000", "--dump-dom")
    content, window = map(int, Page(done.stdout, []).title.split())
    return content, window


def picture(page: Path, out: Path, width: int, height: int = 1600, dark: bool = False) -> Path:
    """A screenshot."""
    done = run(page, f"--window-size={width},{height}", _scheme(dark), f"--screenshot={out}")
    assert out.exists(), done.stderr[-2000:]
    return out


def pdf(page: Path, out: Path) -> Path:
    """The page as printed."""
    done = run(page, "--no-pdf-header-footer", f"--print-to-pdf={out}")
    assert out.exists(), done.stderr[-2000:]
    return out


def with_script(text: str, script: str) -> str:
    """The page with a script at its end that its Content-Security-Policy allows."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = text.replace("script-src 'none'", "script-src")
    text = text.replace("script-src", f"script-src 'sha256-{digest}'", 1)
    return text.replace("</body>", f"<script>{script}</script></body>")


def _scheme(dark: bool) -> str:
    return f"--blink-settings=preferredColorScheme={DARK if dark else LIGHT}"


if __name__ == "__main__":
    print(install())
