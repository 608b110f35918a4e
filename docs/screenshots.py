"""Pictures of every section of a report, for the page docs/how-to/report.md.

    python docs/screenshots.py

fits scikit-learn's diabetes table as in the tutorial "A table of data", opens the report in
headless Chromium and writes docs/images/report-*.webp.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_diabetes

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))
import browser  # noqa: E402

WIDTH = 900
SECTIONS = (
    "verdict", "whatif", "predictions", "inputs", "network", "calibration", "noise", "expert",
    "reproduce",
)  # fmt: skip
# Keep one section, from its heading to the next; limit the height of long tables.
ONLY = """
const main = document.querySelector("main"), head = document.getElementById("%s");
let keep = false;
for (const e of Array.from(main.children)) {
  if (e.tagName === "H2") keep = e === head;
  if (!keep) e.remove();
}
document.querySelector("nav").remove();
document.body.style.width = "%dpx";
head.style.marginTop = "0";
for (const e of document.querySelectorAll(".tall")) e.style.maxHeight = "16rem";
for (const e of document.querySelectorAll("#expert + details")) e.open = true;
document.title = String(Math.ceil(main.getBoundingClientRect().height));
"""


def shoot(report: Path, section: str, folder: Path) -> None:
    script = ONLY % (section, WIDTH)
    height = int(browser.visit(report, script).title)
    page = folder / "page.html"
    text = report.read_text(encoding="utf-8")
    page.write_text(browser.with_script(text, script), "utf-8")
    # A headless window loses some height to an invisible title bar.
    shot = browser.picture(page, folder / "shot.png", WIDTH, height + 200)
    with Image.open(shot) as image:
        small = image.crop((0, 0, WIDTH, height))
        small.save(DOCS / "images" / f"report-{section}.webp", quality=70, method=6)


def main() -> None:
    x, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        x.assign(progression=y).to_csv(folder / "diabetes.csv", index=False)
        program = Path(sys.executable).with_name("sbnn")
        command = [program, "fit", "diabetes.csv", "--target", "progression", "--hidden", "3"]
        subprocess.run([*command, "--out", "fit"], cwd=folder, check=True)
        for section in SECTIONS:
            shoot(folder / "fit" / "report.html", section, folder)


if __name__ == "__main__":
    main()
