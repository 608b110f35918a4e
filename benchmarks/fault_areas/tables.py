"""Fuzzed tables: random damage to a CSV file; a table is fitted, or one line says what is wrong."""

from __future__ import annotations

import random
from pathlib import Path

from fault_areas.common import QUICK_FIT, Outcome, fault_of, here, instant_fits, small_fit

CELLS = [
    "", "nan", "-nan", "inf", "-inf", "1e999", "1e-999", "1,5", "1.234.567", "0x10", "1_000", "abc",
    "€", '"', '""', "'", "=1+1", "\0", "\x1b[31m", "漢", "١٢", "1 000", "1e", "--1", "9" * 400,
    "true", "2024-01-01", "NULL", "#N/A", ";", "\t", "|", "\r", "\ufeff",
]  # fmt: skip
REAL_FITS = 10


def fuzzed_tables(quick: bool, folder: Path) -> Outcome:
    """Damage a table at random and fit it; some of those that are accepted are really fitted."""
    known = small_fit(folder)
    good = (folder / "d.csv").read_bytes()
    path = folder / "fuzzed.csv"
    faults, accepted = [], []
    for k in range(15 if quick else 300):
        data = _damaged(good, random.Random(k))
        path.write_bytes(data)
        with instant_fits(known):
            done = here("fit", path, "--target", "y", "--out", folder / f"out-{k}")
        fault = fault_of(done, 0, 2)
        if done.code == 0:
            accepted.append(data)
        faults.append(fault and f"table {k}: {fault}")
    for k, data in enumerate(accepted[: 0 if quick else REAL_FITS]):
        path.write_bytes(data)
        fault = fault_of(here("fit", path, *QUICK_FIT, "--out", folder / f"real-{k}"), 0, 2)
        if fault:
            faults.append(f"accepted table {k}: {fault}")
    return Outcome.of(faults)


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
