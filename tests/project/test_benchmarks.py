"""Benchmark tables match the CSV files, and benchmark scripts match the package."""

import importlib
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import plain_c  # noqa: E402
import tables  # noqa: E402

REFRESH = "run 'python benchmarks/tables.py'"


def test_benchmark_page_is_up_to_date() -> None:
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page(), REFRESH


def test_readme_table_is_up_to_date() -> None:
    text = tables.README.read_text(encoding="utf-8")
    assert tables.readme(text) == text, REFRESH


def test_missing_files_are_skipped(tmp_path: Path) -> None:
    assert tables.page(tmp_path) == tables.INTRODUCTION
    text = f"a\n{tables.START}\n| old |\n{tables.END}\nb"
    assert tables.readme(text, tmp_path) == f"a\n{tables.START}\n{tables.END}\nb"


def test_files_without_a_function_are_shown_as_they_are(tmp_path: Path) -> None:
    table = pd.DataFrame({"n": range(30), "a|time_s": 0.12345})
    table.to_csv(tmp_path / "new_thing.csv", index=False)
    text = tables.page(tmp_path)
    assert "## New thing\n\n| n | a\\|time s |\n| --- | --- |\n| 0 | 0.123 |" in text
    assert "| 19 | 0.123 |\n\nThe first 20 of 30 rows." in text


def test_devices_table_reports_speed_up_and_differing_bits(tmp_path: Path) -> None:
    runs = pd.DataFrame(
        {
            "particles": [10, 10, 20, 20],
            "devices": [1, 2, 1, 2],
            "repeat": 0,
            "seconds": [3.0, 2.0, 8.0, 4.0],
            "log_evidence": -1.0,
            "digest": ["a", "a", "b", "c"],
        }
    )
    runs.to_csv(tmp_path / "devices.csv", index=False)
    text = tables.page(tmp_path)
    assert "| 10 | 3 | 2 | 1.5 | yes |\n| 20 | 8 | 4 | 2 | no |" in text


def test_predictions_from_exact_draws_are_compared_in_pairs(tmp_path: Path) -> None:
    names = ("linearised", "draws", "nsbl", "evidence")
    scores = {f"rmse_{name}": [1.0, 2.0] for name in names}
    scores |= {f"log_density_{name}": [-1.0, -3.0] for name in names}
    scores["log_density_nsbl"] = [-0.5, -2.7]
    runs = {"table": "yacht", "optima": [2, 3], "converged": [2, 2], "gain": [1.0, 2.0]}
    pd.DataFrame(runs | scores).to_csv(tmp_path / "exact_draws.csv", index=False)
    text = tables.page(tmp_path)
    assert "converged at 4 of 5 optima" in text
    assert "| linearised Laplace | 1.500 | −2.000 |" in text
    # Differences 0.5 and 0.3: mean 0.4, standard error 0.1.
    assert "| 1.500 (+0.000 ± 0.000) | −1.600 (+0.400 ± 0.100) |" in text


def test_purpose_is_the_first_line_of_a_script() -> None:
    assert tables.purpose("verified").startswith("Verification on the study's 1-3-1 problem")
    assert tables.purpose("no_such_script") == ""


@pytest.mark.parametrize(
    "path", sorted(Path(tables.__file__).parent.glob("*.py")), ids=lambda p: p.stem
)
def test_benchmark_script_imports(path: Path) -> None:
    """Every name a script imports from sbnn exists; other packages are imported when needed."""
    importlib.import_module(path.stem)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_the_sampler_in_c_finds_the_log_evidence() -> None:
    runs = plain_c.in_c(500, 8, "gcc")
    found = plain_c.summary("C", 500, runs)
    error = found["spread"] / 8**0.5
    assert abs(found["bias"]) < 4 * error < 0.5
    theirs = found | {"language": "sbnn", "ns_per_move": 1.5 * found["ns_per_move"]}
    assert "500 particles: **1.50**" in plain_c.plain_c(pd.DataFrame([found, theirs]))
