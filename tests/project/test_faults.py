"""The hostile test in short: every area of benchmarks/faults.py handles all faults well."""

from __future__ import annotations

from pathlib import Path

import faults
import numpy as np
import pytest
from fault_areas import common, files, likelihoods

import sbnn
from sbnn._core.files import netcdf

# Tested in full: tests/_core/test_memory.py and tests/_core/test_forks.py.
ELSEWHERE = {"memory limits", "forks"}


@pytest.mark.parametrize("area", [area for area in faults.AREAS if area not in ELSEWHERE])
def test_all_faults_of_an_area_are_handled_well(area: str) -> None:
    tried, handled, rest = faults.run(area, quick=True)
    if tried == 0:
        pytest.skip(rest[0])
    assert rest == []
    assert handled == tried


def test_changed_bits_are_not_detected_without_checksums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the area finds silent damage."""
    data = common.table()
    x, y = data[["a", "b"]].to_numpy(), data["y"].to_numpy()
    problem = sbnn.network_problem(x, y, (1,), noise_std=0.1)
    result = sbnn.laplace(problem, key=0, n_particles=50)
    path = tmp_path / "result.nc"
    result.save(path)
    content, right = path.read_bytes(), result.predict(x)
    # Only in the draws: damage in HDF5's own tables makes old versions of its library crash.
    first = content.index(np.ascontiguousarray(result.phi).tobytes())
    flipped = [
        content[:place] + bytes([content[place] ^ 8]) + content[place + 1 :]
        for place in range(first, first + 20)
    ]

    def faults_found() -> list[str]:
        found = []
        for changed in flipped:
            path.write_bytes(changed)
            found.append(files.flip_fault(path, x, right, "place"))
        return [fault for fault in found if fault]

    assert faults_found() == []
    length = len(netcdf.sealed(b""))
    monkeypatch.setattr(netcdf, "unsealed", lambda data: data[:-length])
    assert faults_found().count("place: other predictions") > 10


@pytest.mark.parametrize(
    "done",
    [
        common.Done(1, "", "sbnn: failed: ValueError: raw text"),
        common.Done(2, "", "sbnn: one line\nsbnn: another"),
        common.Done(2, "", "Traceback (most recent call last)"),
        common.Done(0, "", "Exception ignored in: <function>"),
    ],
)
def test_bad_endings_are_faults(done: common.Done) -> None:
    assert common.fault_of(done, 0, 2)
    assert not common.fault_of(common.Done(2, "", "sbnn: x.csv does not exist."), 0, 2)


def test_wrong_outcomes_of_odd_likelihoods_are_faults() -> None:
    case, fault_of = likelihoods.Case, likelihoods.fault_of
    fine, text = likelihoods.black_box(lambda t: 0.0), likelihoods.black_box(lambda t: "3.0")
    assert fault_of(case(fine, error="text")) == "no error"
    assert fault_of(case(fine, warning="half")).startswith("another warning")
    assert fault_of(case(fine, log_evidence=1.0)).startswith("log evidence")
    assert fault_of(case(text, log_evidence=3.0)).startswith("another error")
    assert fault_of(case(fine, log_evidence=0.0)) == ""


def test_table_of_results_keeps_the_other_areas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "OUT", tmp_path / "faults.csv")
    first, second, *_ = faults.AREAS
    row = {"tried": 3, "handled": 3, "rest": ""}
    faults.write([{"area": second, **row}, {"area": first, **row}])
    faults.write([{"area": second, **row, "tried": 4}])
    lines = (tmp_path / "faults.csv").read_text().splitlines()
    assert lines == ["area,tried,handled,rest", f"{first},3,3,", f"{second},4,3,"]
