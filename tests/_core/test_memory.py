"""Low memory, with real limits on the address space: one clear error, no hang, nothing written."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from sbnn._core.extras import why_not_imported
from sbnn._core.memory import is_lack_of_memory, naming_lack_of_memory

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits differ between systems")

GIB = 2**30
TABLE = "a,y\n" + "".join(f"{k},{k % 7}\n" for k in range(40))
# Leaves little more than what is mapped after the imports.
TIGHT = """
import resource
mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + {spare} * 2**20,) * 2)
"""


def run(*command, limit=None):
    def lower():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=180,
        preexec_fn=lower if limit else None,
    )  # fmt: skip


@pytest.mark.parametrize("limit", [GIB // 2, GIB, 3 * GIB // 2])
def test_command_line_says_that_memory_is_short_and_writes_nothing(tmp_path, limit):
    data, out = tmp_path / "data.csv", tmp_path / "model"
    data.write_text(TABLE)
    done = run(
        "-m", "sbnn", "fit", str(data), "--target", "y", "--out", str(out), limit=limit
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("sbnn: Not enough memory for loading")
    assert f"limited to {limit // 2**20:,} MiB" in done.stderr
    assert "install" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_help_needs_no_memory_for_the_libraries():
    done = run("-m", "sbnn", "--version", limit=GIB)
    assert done.returncode == 0
    assert done.stdout.startswith("sbnn ")


@pytest.mark.parametrize(
    ("code", "doing"),
    [
        ("sbnn.SparseBNNRegressor((1,), n_starts=2).fit(x, x[:, 0])", "fitting the network"),
        ("sbnn.standard(sbnn.network_problem(x, x[:, 0], (1,), noise_std=1.0))", "JAX"),
    ],
    ids=["laplace_nsbl", "sampling"],
)
def test_library_raises_before_a_hang_or_an_abort(code, doing):
    program = f"""
import numpy as np, sbnn, sbnn._core.float64
sbnn.SparseBNNRegressor, sbnn.standard, sbnn.network_problem
x = np.linspace(-1, 1, 9)[:, None]
{TIGHT.format(spare=64)}
try:
    {code}
except MemoryError as error:
    print(error)
"""
    done = run("-c", program)
    assert done.stdout.startswith(f"Not enough memory for {doing}"), done.stderr


def test_installed_package_is_not_called_missing():
    program = f"""
import json, xarray as xr, h5netcdf.core
from sbnn._core.extras import why_not_imported
import sys
for name in [n for n in sys.modules if n.partition(".")[0] == "h5py"]:
    del sys.modules[name]
{TIGHT.format(spare=1)}
print(why_not_imported(ImportError("No module named 'h5py', backend not available.")))
"""
    done = run("-c", program)
    assert done.stdout.startswith("h5py is installed, but "), done.stderr
    assert "memory" in done.stdout


def test_absent_package_is_called_missing():
    error = ImportError("No module named 'no_such_module'")
    assert importlib.util.find_spec("no_such_module") is None
    assert why_not_imported(error) == "No module named 'no_such_module'."


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        ImportError("libjax.so: failed to map segment from shared object"),
    ],
    ids=["MemoryError", "OSError", "thread", "loader"],
)
def test_lack_of_memory_is_recognised_and_says_what_was_being_done(error):
    assert is_lack_of_memory(error)
    with (
        pytest.raises(MemoryError, match="Not enough memory for writing the report"),
        naming_lack_of_memory("writing the report"),
    ):
        raise error


@pytest.mark.parametrize("error", [ValueError("out of memory"), OSError(28, "No space left")])
def test_other_errors_are_left_alone(error):
    assert not is_lack_of_memory(error)
    with pytest.raises(type(error)), naming_lack_of_memory("writing the report"):
        raise error
