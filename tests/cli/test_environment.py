"""What the command line sets for JAX: where compiled programs are kept and found, and devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sbnn import SparseBNNRegressor
from sbnn.cli import environment as jax_settings
from sbnn.cli.environment import cache_folder, use_cache, use_cores
from sbnn.reports.fit import FORMAT
from sbnn.reports.output_paths import FIT, MODEL

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")


@pytest.fixture
def environment(tmp_path):
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "LOCALAPPDATA": str(tmp_path / "cache")}


@pytest.mark.parametrize(
    ("platform", "given", "expected"),
    [
        ("linux", {}, Path("home/.cache/sbnn/jax")),
        ("linux", {"XDG_CACHE_HOME": "relative"}, Path("home/.cache/sbnn/jax")),
        ("linux", {"XDG_CACHE_HOME": os.path.abspath("x")}, Path("x/sbnn/jax").absolute()),
        ("darwin", {}, Path("home/Library/Caches/sbnn/jax")),
        ("win32", {"LOCALAPPDATA": "local"}, Path("local/sbnn/Cache/jax")),
        ("win32", {}, None),
    ],
)
def test_the_folder_is_where_the_platform_keeps_caches(platform, given, expected):
    assert cache_folder(given, Path("home"), platform) == expected


def test_jax_is_told_the_folder_and_to_keep_small_programs(environment):
    folder = use_cache(environment)
    assert folder.is_dir()
    assert environment["JAX_COMPILATION_CACHE_DIR"] == str(folder)
    assert float(environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"]) == 0


def test_an_environment_variable_turns_it_off(environment):
    assert use_cache({**environment, "SBNN_NO_CACHE": "1"}) is None
    assert use_cache({**environment, "SBNN_NO_CACHE": "0"}) is not None


def test_what_the_user_set_for_jax_stays(environment):
    environment |= {"JAX_COMPILATION_CACHE_DIR": "mine"}
    before = dict(environment)
    assert use_cache(environment) is None
    assert environment == before


def test_a_folder_that_cannot_be_made_is_no_error(environment, tmp_path):
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert use_cache(environment) is None
    assert "JAX_COMPILATION_CACHE_DIR" not in environment


@POSIX
def test_a_folder_that_others_can_write_to_is_not_trusted(environment):
    folder = use_cache(dict(environment))
    folder.chmod(0o777)
    assert use_cache(environment) is None
    folder.chmod(0o700)
    assert use_cache(environment) == folder


@POSIX
def test_a_folder_that_cannot_be_written_is_not_used(environment, monkeypatch):
    # Who runs as root may write anywhere: what the system says is replaced.
    monkeypatch.setattr(jax_settings.os, "access", lambda path, mode: False)
    assert use_cache(environment) is None


def test_the_oldest_programs_go_when_the_cache_is_full(environment, monkeypatch):
    folder = use_cache(dict(environment))
    for age in range(10):
        (folder / f"{age}").write_bytes(bytes(100))
        os.utime(folder / f"{age}", (1e9 - age, 1e9 - age))
    use_cache(dict(environment))
    assert len(list(folder.iterdir())) == 10
    monkeypatch.setattr(jax_settings._shrink, "__defaults__", (900,))
    use_cache(environment)
    assert {path.name for path in folder.iterdir()} == {"0", "1", "2", "3"}


@pytest.fixture
def sampled(tmp_path):
    """What `sbnn predict` needs of a fit by sampling: model, record and rows to predict."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(-1, 1, 12)})
    y = np.tanh(frame["x"]) + 0.1 * rng.normal(size=12)
    model = SparseBNNRegressor((1,), method="standard", noise_std=1.0, random_state=0)
    model.fit(frame, y).save(tmp_path / MODEL)
    record = {"format": FORMAT, "features": ["x"], "targets": ["y"], "validation": {}}
    record |= {"data": {"rows": 12}, "scores": {}, "options": {}, "run": {}}
    (tmp_path / FIT).write_text(json.dumps(record))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def test_a_second_process_compiles_nothing_again(sampled):
    """`sbnn predict` twice: what the first stored, the second finds."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("JAX_")},
        **dict.fromkeys(("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"), str(sampled / "cache")),
        "JAX_LOGGING_LEVEL": "DEBUG",
    }
    program = [sys.executable, "-c", "from sbnn.cli.main import main; main()", "predict"]

    def hits_and_misses() -> tuple[int, ...]:
        command = [*program, str(sampled), str(sampled / "rows.csv")]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=120
        )
        # JAX says so in its log of debugging, misses in capitals
        said = done.stderr.lower()
        return tuple(said.count(f"persistent compilation cache {w}") for w in ("hit", "miss"))

    first, second = hits_and_misses(), hits_and_misses()
    assert first[0] == 0
    assert first[1] > 0
    assert second == (first[1], 0)


def test_every_core_is_a_device_unless_the_user_said_otherwise():
    environment: dict[str, str] = {}
    use_cores(environment)
    assert int(environment["JAX_NUM_CPU_DEVICES"]) >= 1
    chosen = {"JAX_NUM_CPU_DEVICES": "7"}
    use_cores(chosen)
    assert chosen == {"JAX_NUM_CPU_DEVICES": "7"}
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}
    use_cores(flags)
    assert "JAX_NUM_CPU_DEVICES" not in flags


def test_jax_obeys_the_number_of_devices():
    environment = dict(os.environ)
    environment.pop("JAX_NUM_CPU_DEVICES", None)
    script = (
        "import os; os.sched_getaffinity = lambda pid: {0, 1, 2}\n"
        "from sbnn.cli.environment import use_cores; use_cores()\n"
        "import jax; print(jax.device_count())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == "3", done.stderr
