"""Hostile names of columns in a report, opened in a real browser."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fault_areas.common import Outcome, table
from sbnn.reports import page
from sbnn.reports.fit import fit

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import browser

OPTIONS = {
    "hidden_layer_sizes": (1,),
    "method": "laplace",
    "noise_std": None,
    "random_state": 0,
}
NAMES = [
    "<script>document.title = 'hacked'</script>",
    "<img src=x onerror=\"document.title='hacked'\">",
    "</title><script>document.title = 'hacked'</script>",
    '"><svg onload="document.title=\'hacked\'">',
    "' onmouseover='document.title=\"hacked\"' x='",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[31mred\x07\x00",
    "\u202egnp.exe\u2066",
    "</script><!-- <b>",
    "$\\mathrm{x}^{$ " + "wide" * 60,
]


def hostile_names(quick: bool, folder: Path) -> Outcome:
    """Show each name as input, target, file and command; only the page's own script may run."""
    if browser.find() is None:
        return Outcome(0, 0, ["no browser was found, so nothing was tried"])
    names = [NAMES[0] + NAMES[6]] if quick else NAMES
    return Outcome.of([_fault(name, folder / "page.html") for name in names])


def _fault(name: str, path: Path) -> str:
    columns = [name, "b", f"y {name}"]
    data = table().set_axis(columns, axis=1)
    fitted = fit(data, columns[:2], columns[2:], OPTIONS, source=name, command=f"sbnn {name}")
    text = page.render(fitted)
    path.write_text(text, encoding="utf-8")
    seen = browser.visit(path)
    if seen.console:
        return f"{name!r}: {seen.console[0][:100]}"
    if not seen.title.startswith("y "):
        return f"{name!r}: the title is {seen.title[:60]!r}"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text):
        return f"{name!r}: control characters in the page"
    if not re.search(r"\d+ of \d+ parameters", seen.dom):
        return f"{name!r}: the script of the page did not run"
    return ""
