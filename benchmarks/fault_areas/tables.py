"""Fuzzed tables: random damage to CSV files.

A table is fitted or predicted, or one line says what is wrong.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

from fault_areas.common import (
    QUICK_FIT,
    ROW_COLUMNS,
    Done,
    Outcome,
    fault_of,
    here,
    instant_fits,
    small_fit,
    typed_table,
)  # fmt: skip

CELLS = [
    "", "nan", "-nan", "inf", "-inf", "1e999", "1e-999", "1,5", "1.234.567", "0x10", "1_000", "abc",
    "€", '"', '""', "'", "=1+1", "\0", "\x1b[31m", "漢", "١٢", "1 000", "1e", "--1", "9" * 400,
    "true", "2024-01-01", "NULL", "#N/A", ";", "\t", "|", "\r", "\ufeff",
]  # fmt: skip
REAL_FITS = 10


def fuzzed_tables(quick: bool, folder: Path) -> Outcome:
    """Damage two tables at random and fit them; some of those accepted are really fitted.

    One table holds numbers, the other text, dates, percentages, empty cells, errors and weights.
    """
    known = small_fit(folder)
    typed_table().to_csv(folder / "typed.csv", index=False)
    good = [((folder / name).read_bytes(), more) for name, more in
            (("d.csv", []), ("typed.csv", []), ("typed.csv", ROW_COLUMNS))]  # fmt: skip
    path = folder / "fuzzed.csv"
    faults: list[str] = []
    accepted: list[tuple[bytes, list[str]]] = []
    for k in range(15 if quick else 300):
        original, more = good[k % 4 % 3]  # every other table holds numbers only
        data = _damaged(original, random.Random(k))
        path.write_bytes(data)
        with instant_fits(known):
            done = here("fit", path, "--target", "y", *more, "--out", folder / f"out-{k}")
        fault = fault_of(done, 0, 2)
        if done.code == 0:
            accepted.append((data, more))
        faults.append(fault and f"table {k}: {fault}")
    for k, (data, more) in enumerate(accepted[: 0 if quick else REAL_FITS]):
        path.write_bytes(data)
        done = here("fit", path, *QUICK_FIT, *more, "--out", folder / f"real-{k}")
        fault = fault_of(done, 0, 2)
        if fault:
            faults.append(f"accepted table {k}: {fault}")
    return Outcome.of(faults)


def fuzzed_predictions(quick: bool, folder: Path) -> Outcome:
    """Damage a table at random and predict its rows: one line, or a finite number for each row."""
    typed_table().to_csv(folder / "typed.csv", index=False)
    model = folder / "model"
    done = here("fit", folder / "typed.csv", *QUICK_FIT, *ROW_COLUMNS, "--out", model)
    assert done.code == 0, done.err
    good = typed_table(6).drop(columns="y").to_csv(index=False).encode()
    path = folder / "new.csv"
    faults = []
    for k in range(15 if quick else 200):
        path.write_bytes(_damaged(good, random.Random(k)))
        fault = _prediction_fault(here("predict", model, path, "--json"))
        faults.append(fault and f"table {k}: {fault}")
    return Outcome.of(faults)


def _prediction_fault(done: Done) -> str:
    fault = fault_of(done, 0, 2)
    if fault or done.code == 2:
        return fault
    answer = json.loads(done.out)
    columns = np.array(list(answer["predictions"]["y"].values()), dtype=float)
    if columns.shape[1] != answer["rows"]:
        return f"{columns.shape[1]} predictions for {answer['rows']} rows"
    return "" if np.isfinite(columns).all() else "a prediction is not finite"


def _damaged(data: bytes, rng: random.Random) -> bytes:
    """One to three kinds of damage."""
    for _ in range(rng.randint(1, 3)):
        lines = data.split(b"\n")
        row = rng.randrange(len(lines))
        kind = rng.randrange(8)
        if kind == 0:  # a bit
            place = rng.randrange(max(len(data), 1))
            data = data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]
        elif kind == 1:  # the end is missing
            data = data[: rng.randrange(len(data) + 1)]
        elif kind == 2:  # a line is missing, doubled or moved
            line = lines.pop(row)
            lines[rng.randrange(len(lines) + 1) : 0] = [line] * rng.randrange(3)
            data = b"\n".join(lines)
        elif kind == 3:  # another separator
            data = data.replace(b",", rng.choice([b";", b"\t", b"|", b" ", b",,", b", "]))
        elif kind == 4:  # another line end
            data = data.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b"\n\r"]))
        elif kind == 5:  # another encoding
            text = data.decode("utf-8", "replace")
            data = text.encode(rng.choice(["utf-16", "utf-8-sig", "utf-16-le", "utf-32"]))
        else:  # another cell
            cells = lines[row].split(b",")
            cells[rng.randrange(len(cells))] = rng.choice(CELLS).encode()
            lines[row] = b",".join(cells)
            data = b"\n".join(lines)
    return data
