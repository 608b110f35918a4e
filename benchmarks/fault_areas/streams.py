"""Closed, full and odd standard streams: the result is written and the exit code is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fault_areas.common import QUICK_FIT, Done, Outcome, fault_of, program, small_fit
from sbnn.reports import fit_folder


def odd_streams(quick: bool, folder: Path) -> Outcome:
    """Run `predict` with closed streams, `fit` with encodings that lack characters."""
    known = small_fit(folder)

    def predict(end: str, *codes: int) -> str:
        out = folder / "predictions.csv"
        done = program("predict", known, folder / "new.csv", "--out", out, "--force", end=end)
        written = out.exists() and out.read_text().count("\n") == 4
        out.unlink(missing_ok=True)
        return fault_of(done, *codes) or ("" if written else "no predictions")

    def fit(encoding: str, *more: str) -> str:
        out = folder / f"fit-{encoding}{''.join(more)}"
        command = ["fit", folder / "d.csv", *QUICK_FIT, "--out", out, *more]
        done: Done = program(*command, environment={"PYTHONIOENCODING": encoding})
        fit_folder.load(out)
        return fault_of(done, 0) or ("" if done.out.strip() else "no output")

    cases: dict[str, Callable[[], str]] = {
        "stdout closed": lambda: predict("1>&-", 0),
        "stderr closed": lambda: predict("2>&-", 0),
        "all closed": lambda: predict("0<&- 1>&- 2>&-", 0),
        "stdout full": lambda: predict("1>/dev/full", 1),
        "stderr full": lambda: predict("2>/dev/full", 0),
        "stdout in ASCII": lambda: fit("ascii"),
        "stdout in cp1252": lambda: fit("cp1252"),
        "JSON in ASCII": lambda: fit("ascii", "--json"),
    }
    chosen = ["all closed", "stderr full"] if quick else list(cases)
    return Outcome.of([(fault := cases[name]()) and f"{name}: {fault}" for name in chosen])
