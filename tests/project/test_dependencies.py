"""Dependencies: lower bounds that are tested, and pinned versions for the benchmarks."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bounds(requirements):
    found = [Requirement(text) for text in requirements if not text.startswith("sbnn[")]
    return {canonicalize_name(requirement.name): requirement.specifier for requirement in found}


def test_oldest_environment_pins_the_lower_bound_of_every_dependency():
    listed = [*PROJECT["dependencies"], *(r for e in tool("oldest").EXTRAS for r in EXTRAS[e])]
    pins = {canonicalize_name(p.split("==")[0]): p.split("==")[1] for p in pinned()}
    assert pins.keys() == bounds(listed).keys()
    for name, specifier in bounds(listed).items():
        assert specifier.contains(pins[name])
        assert f">={pins[name]}" in str(specifier)


def pinned():
    return tool("oldest").oldest(PROJECT)


def test_dependency_without_a_lower_bound_ends_the_tool():
    with pytest.raises(SystemExit, match="'numpy' has no lower bound"):
        tool("oldest").oldest({"dependencies": ["numpy"], "optional-dependencies": {}})


def test_every_requirement_of_the_project_has_a_lower_bound():
    for requirements in (PROJECT["dependencies"], *EXTRAS.values()):
        for name, specifier in bounds(requirements).items():
            assert any(s.operator == ">=" for s in specifier), name


def test_benchmark_versions_are_complete_and_allowed():
    text = (ROOT / "benchmarks" / "constraints.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == sorted(lines, key=lambda line: line.split("=="))
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", line) for line in lines)  # no paths or hosts
    versions = dict(line.split("==") for line in lines)
    used = ("cli", "report", "distributed", "parquet", "bench")
    wanted = [*PROJECT["dependencies"], *(text for extra in used for text in EXTRAS[extra])]
    for name, specifier in bounds(wanted).items():
        assert specifier.contains(versions[name]), name


def test_lock_leaves_out_packages_for_gpus_and_the_project():
    names = ("Torch", "nvidia-nccl-cu13", "triton", "sbnn", "lazy_loader")
    report = {"install": [{"metadata": {"name": name, "version": "1.0"}} for name in names]}
    assert tool("lock").pins(report) == "lazy-loader==1.0\ntorch==1.0\n"


def test_workflow_tests_every_declared_python_and_the_oldest_versions():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert declared[0] == PROJECT["requires-python"].removeprefix(">=")
    assert re.search(r"python-version: \[(.*)\]", workflow)[1] == ", ".join(
        f'"{version}"' for version in declared
    )
    assert "make test-oldest" in workflow


def test_type_checks_before_a_commit_use_the_bounds_of_the_project():
    line = re.search(
        r"additional_dependencies: \[(.*)\]", (ROOT / ".pre-commit-config.yaml").read_text()
    )[1]
    known = bounds([*PROJECT["dependencies"], *EXTRAS["cli"], *EXTRAS["dev"]])
    for name, specifier in bounds(re.findall(r'"(.*?)"', line)).items():
        assert specifier == known[name]


def test_oldest_environment_has_everything_the_default_tests_import():
    tools = {canonicalize_name(name) for name in tool("oldest").TOOLS}
    only_for_checks = {"build", "mypy", "pre-commit", "ruff", "twine"}
    assert tools == bounds(EXTRAS["dev"]).keys() - only_for_checks
