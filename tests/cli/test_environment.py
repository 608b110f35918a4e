"""What the command line sets for JAX: the cache of compiled programs, and devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import platformdirs
import pytest
from command_line import PROGRAM

from sbnn import SparseBNNRegressor
from sbnn._core.files.digests import file_digest, seal_mapping
from sbnn._core.json_text import dumps
from sbnn.cli import environment as settings
from sbnn.cli.environment import use_cache, use_cores
from sbnn.reports.columns import describe
from sbnn.reports.fit import Record, Source
from sbnn.reports.fit_folder import DIGESTS
from sbnn.reports.output_paths import FIT, MODEL

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="XDG folders")


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """An empty environment, with the user's caches in a temporary folder."""
    monkeypatch.setattr(
        platformdirs, "user_cache_path", lambda name, appauthor: tmp_path / "cache" / name
    )
    return {}


@LINUX
def test_cache_folder_follows_the_platform(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert use_cache({}) == tmp_path / "elsewhere" / "sbnn" / "jax"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert use_cache({}) == tmp_path / ".cache" / "sbnn" / "jax"


def test_jax_caches_small_programs_too(environment):
    folder = use_cache(environment)
    assert folder.is_dir()
    assert environment["JAX_COMPILATION_CACHE_DIR"] == str(folder)
    assert float(environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"]) == 0


def test_environment_variable_turns_the_cache_off(environment):
    assert use_cache({**environment, "SBNN_NO_CACHE": "1"}) is None
    assert use_cache({**environment, "SBNN_NO_CACHE": "0"}) is not None


def test_jax_settings_of_the_user_take_precedence(environment):
    environment |= {"JAX_COMPILATION_CACHE_DIR": "mine"}
    before = dict(environment)
    assert use_cache(environment) is None
    assert environment == before


def test_cache_folder_that_cannot_be_made_is_not_an_error(environment, tmp_path):
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert use_cache(environment) is None
    assert "JAX_COMPILATION_CACHE_DIR" not in environment


@POSIX
def test_cache_folder_that_others_can_write_to_is_not_used(environment):
    folder = use_cache(dict(environment))
    folder.chmod(0o777)
    assert use_cache(environment) is None
    folder.chmod(0o700)
    assert use_cache(environment) == folder


@POSIX
def test_cache_folder_that_is_not_writable_is_not_used(environment, monkeypatch):
    # Root may write anywhere, so the answer of the system is replaced.
    monkeypatch.setattr(settings.os, "access", lambda path, mode: False)
    assert use_cache(environment) is None


def test_oldest_programs_are_removed_from_a_full_cache(environment, monkeypatch):
    folder = use_cache(dict(environment))
    for age in range(10):
        (folder / f"{age}").write_bytes(bytes(100))
        os.utime(folder / f"{age}", (1e9 - age, 1e9 - age))
    use_cache(dict(environment))
    assert len(list(folder.iterdir())) == 10
    monkeypatch.setattr(settings, "LIMIT", 900)
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
    columns = describe(model, ["x"], None)
    record = Record(Source(12), ["x"], ["y"], {}, "", {"y": {}}, columns=columns).as_json()
    record |= {DIGESTS: {MODEL: file_digest(tmp_path / MODEL)}}
    (tmp_path / FIT).write_text(dumps(seal_mapping(json.loads(dumps(record)))))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def test_second_process_compiles_nothing(sampled):
    """`sbnn predict` twice: what the first stored, the second finds."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("JAX_")},
        **dict.fromkeys(("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"), str(sampled / "cache")),
        "JAX_LOGGING_LEVEL": "DEBUG",
    }

    def hits_and_misses() -> tuple[int, ...]:
        command = [*PROGRAM, "predict", str(sampled), str(sampled / "rows.csv")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        # from the debugging log of JAX
        said = done.stderr.lower()
        return tuple(said.count(f"persistent compilation cache {w}") for w in ("hit", "miss"))

    first, second = hits_and_misses(), hits_and_misses()
    assert first[0] == 0
    assert first[1] > 0
    assert second == (first[1], 0)


def test_every_core_is_a_device_unless_the_user_chose_otherwise():
    environment: dict[str, str] = {}
    use_cores(environment)
    assert int(environment["JAX_NUM_CPU_DEVICES"]) >= 1
    chosen = {"JAX_NUM_CPU_DEVICES": "7"}
    use_cores(chosen)
    assert chosen == {"JAX_NUM_CPU_DEVICES": "7"}
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}
    use_cores(flags)
    assert "JAX_NUM_CPU_DEVICES" not in flags


def test_jax_has_one_device_per_core():
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
