"""Fit folders edited by hand: values of the wrong kind, with and without a renewed checksum."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

from fault_areas.common import Outcome, fault_of, here, small_fit
from sbnn._core.files.digests import seal_mapping

VALUES: list[Any] = [None, [], {}, "x", -1, 1e400, True, [None], {"a": 1}]


def edited_folders(quick: bool, folder: Path) -> Outcome:
    """Edit one value of fit.json, or one of the other files, then rewrite the report."""
    known = small_fit(folder)
    record = json.loads((known / "fit.json").read_text(encoding="utf-8"))
    edits = [(name, value) for name in record for value in VALUES if value != record[name]]
    chosen = random.Random(0).sample(edits, 8 if quick else 52)
    faults = []
    for k, (name, value) in enumerate(chosen):
        copy = shutil.copytree(known, folder / f"copy-{k}")
        found, renewed = {**record, name: value}, k % 2 == 1
        text = json.dumps(seal_mapping(found) if renewed else found)
        (copy / "fit.json").write_text(text, encoding="utf-8")
        # With a renewed checksum, a value of the right type counts as intended.
        faults.append(_fault(copy, f"{name} = {value!r}", 0 if renewed else 2))
    for k, name in enumerate(("model.nc", "training.csv", "held_out.csv", "fit.json")):
        for how in ("shortened", "emptied"):
            copy = shutil.copytree(known, folder / f"{how}-{k}")
            content = (copy / name).read_bytes()
            (copy / name).write_bytes(content[: len(content) // 2 if how == "shortened" else 0])
            faults.append(_fault(copy, f"{name} {how}", 2))
    return Outcome.of(faults)


def _fault(copy: Path, what: str, also: int) -> str:
    fault = fault_of(here("report", copy), 2, also)
    shutil.rmtree(copy)
    return fault and f"{what}: {fault}"
