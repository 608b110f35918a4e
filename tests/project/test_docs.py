"""Documentation pages run as notebooks, and their outputs match what the pages show."""

from pathlib import Path

import jupytext
import pages
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TUTORIALS = ("start.md", "table.md", "boxcar.md", "physics.md")


def check(path: Path, folder: Path) -> dict:
    page = pages.cells(path.read_text(encoding="utf-8"))
    printed, names = pages.run(page, folder)
    for cell, text in zip(page, printed):
        if cell.shown is not None:
            assert pages.agree(cell.shown, text), f"{cell.source}\nprints\n{text}"
    return names


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorial_converts_to_a_notebook_with_the_same_cells(name: str) -> None:
    path = DOCS / "tutorials" / name
    notebook = jupytext.read(path)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    expected = [
        cell.source.rstrip() if cell.language == "python" else f"%%sh\n{cell.source.rstrip()}"
        for cell in pages.cells(path.read_text(encoding="utf-8"))
    ]
    assert code == expected
    assert expected


def test_five_minute_start_verifies_and_prunes_one_neuron(tmp_path: Path) -> None:
    names = check(DOCS / "tutorials" / "start.md", tmp_path)
    assert names["result"].verified
    assert names["small"].network.sizes == (1, 2, 1)


def test_physics_tutorial_prunes_the_two_superfluous_terms(tmp_path: Path) -> None:
    names = check(DOCS / "tutorials" / "physics.md", tmp_path)
    assert set(names["result"].prune().names) == {"linear", "quadratic"}


def test_simulator_guide_recovers_the_true_parameters(tmp_path: Path) -> None:
    names = check(DOCS / "how-to" / "simulator.md", tmp_path)
    phi = names["result"].phi  # y was generated with rate 0.2, ambient 20, and noise
    assert (abs(phi.mean(axis=0) - [0.2, 20.0]) < 4 * phi.std(axis=0)).all()
    assert phi[:, 0].std() < 0.02  # narrower than the prior, whose std is about 0.8


@pytest.mark.parametrize(
    "name",
    [
        "how-to/next.md",
        "how-to/export.md",
        "how-to/checkpoints.md",
        "how-to/add_likelihood.md",
        "how-to/add_move.md",
    ],
)
def test_page_outputs_match(tmp_path: Path, name: str) -> None:
    check(DOCS / name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/tutorials/boxcar.md",
        "docs/tutorials/table.md",
        "docs/how-to/deep.md",
        "docs/how-to/noise.md",
        "docs/how-to/own_model.md",
    ],
)
def test_slow_page_outputs_match(tmp_path: Path, name: str) -> None:
    check(ROOT / name, tmp_path)


@pytest.mark.parametrize(
    ("printed", "same"),
    [
        ("rmse 0.49 of −2,406\n ok", True),
        ("rmse 0.51 of −2,410 ok", True),  # two units of the last digit; less than 2 %
        ("rmse 0.52 of −2,406 ok", False),
        ("rmse 0.49 of 2,406 ok", False),
        ("rmse 0.49 of −2,406", False),
        ("rmse 0.49 of −2,406 bad", False),
        ("rmse 0.49 of −2,406 ok 1", False),
    ],
)
def test_comparison_of_outputs_tolerates_rounding_but_no_other_difference(
    printed: str, same: bool
) -> None:
    assert pages.agree("rmse 0.49 of −2,406 ok", printed) is same
