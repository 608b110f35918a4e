"""Optional dependencies: the core works without them, and errors say which extra to install."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
EXTRAS = {
    "cli": ("platformdirs", "rich", "typer"),
    "report": ("arviz_stats", "jinja2", "matplotlib"),
    "distributed": ("dask", "distributed"),
    "parquet": ("pyarrow",),
    "onnx": ("onnx",),
}
HIDE = "import sys; sys.modules.update(dict.fromkeys({modules!r}))\n"


def run(code, *hidden):
    """Run code in a process where some modules cannot be imported."""
    code = HIDE.format(modules=hidden) + code
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


def last_line(code, *hidden):
    done = run(code, *hidden)
    assert done.returncode != 0, done.stdout
    return done.stderr.splitlines()[-1]


def test_extras_list_the_modules_that_are_hidden_here():
    declared = PROJECT["optional-dependencies"]
    for extra, modules in EXTRAS.items():
        names = {requirement.split(">")[0].replace("-", "_") for requirement in declared[extra]}
        assert names - {"sbnn[report]"} == set(modules)
    assert "sbnn[report]" in declared["cli"]
    assert declared["all"] == ["sbnn[cli,distributed,onnx,parquet]"]
    assert "sbnn[all]" in declared["dev"]


def test_core_fits_saves_and_loads_without_any_extra(tmp_path):
    code = f"""
import numpy as np, sbnn
x = np.linspace(-1, 1, 12)[:, None]
model = sbnn.SparseBNNRegressor((1,), method="laplace", n_starts=2).fit(x, np.tanh(x[:, 0]))
model.save({str(tmp_path / "m.nc")!r})
assert (sbnn.load({str(tmp_path / "m.nc")!r}).predict(x) == model.predict(x)).all()
result = sbnn.standard(sbnn.network_problem(x, x[:, 0], (1,), noise_std=1.0), n_particles=50)
result.save({str(tmp_path / "r.nc")!r})
print(sbnn.load({str(tmp_path / "r.nc")!r}).log_evidence == result.log_evidence)
"""
    done = run(code, *(module for modules in EXTRAS.values() for module in modules))
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.parametrize("module", [*EXTRAS["cli"], *EXTRAS["report"]])
@pytest.mark.parametrize(
    "program", ["from sbnn.cli.main import main; main()", "import sbnn.__main__ as m; m.main()"]
)
def test_command_line_names_its_extra(program, module):
    done = run(program, module)
    assert done.stderr == (
        f'sbnn: The command line needs {module}; install it with: pip install "sbnn[cli]"\n'
    )
    assert done.returncode == 1


MISSING = {
    "matplotlib": (
        "from sbnn.reports.drawing import plots; plots.plot_data([0], [1])",
        "A plot",
        "report",
    ),
    "jinja2": ("from sbnn.reports import page; page.render(None)", "A report", "report"),
    "arviz_stats": (
        "from sbnn.reports import validation; validation.leave_one_out(None, None, None)",
        "Leave-one-out validation",
        "report",
    ),
    "rich": (
        "from sbnn.sampling import progress; progress.reporter(True, 'run').__enter__()",
        "A progress display",
        "cli",
    ),
}


@pytest.mark.parametrize("module", MISSING)
def test_missing_module_names_its_extra(module):
    code, what, extra = MISSING[module]
    assert last_line(code, module) == (
        "sbnn._core.extras.MissingExtraError: "
        f'{what} needs {module}; install it with: pip install "sbnn[{extra}]"'
    )


def test_parquet_names_its_extra(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    code = f"from sbnn.tables.reader import read; read({str(tmp_path / 't.parquet')!r})"
    assert last_line(code, "pyarrow").endswith(
        'needs pyarrow; install it with: pip install "sbnn[parquet]"'
    )


def test_unknown_executor_names_the_extra_for_dask():
    code = "from sbnn.sampling.workers import make_backend; make_backend(None, 'dask')"
    assert 'dask.distributed.Client (pip install "sbnn[distributed]"); got' in last_line(
        code, *EXTRAS["distributed"]
    )
