"""One fit of the comparison in its own process; started by benchmarks/rivals.py.

    python benchmarks/rival_worker.py METHOD IN OUT

IN has training inputs and targets and test inputs, but no test targets; OUT receives the
prediction. Modules are imported before the clock starts. CPU seconds are those of fit and
prediction, compilation included, in all threads and child processes.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from harness import report
from peers import METHODS


def cpu_seconds() -> float:
    """CPU seconds of this process and its finished children so far."""
    return sum(os.times()[:4])


def main() -> None:
    name, given, out = sys.argv[1:]
    warnings.simplefilter("ignore")
    method = METHODS[name]
    try:
        for module in method.modules:
            importlib.import_module(module)
    except ImportError as error:
        report(missing=str(error))
        return
    with np.load(given) as data:
        x, y, x_test, seed = data["x"], data["y"], data["x_test"], int(data["seed"])
    started, cpu = time.perf_counter(), cpu_seconds()
    found = method.fit(x, y, x_test, seed)
    spent = {"seconds": time.perf_counter() - started, "cpu_seconds": cpu_seconds() - cpu}
    Path(out).write_bytes(pickle.dumps(found))
    report(**spent)


if __name__ == "__main__":
    main()
