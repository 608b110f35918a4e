"""Pages of the documentation run as notebooks, and print what they say they print."""

from pathlib import Path

import jupytext
import pages
import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = ("start.md", "table.md", "boxcar.md", "physics.md")


def check(path: Path, folder: Path) -> dict:
    page = pages.cells(path.read_text(encoding="utf-8"))
    printed, names = pages.run(page, folder)
    for cell, text in zip(page, printed):
        if cell.shown is not None:
            assert pages.agree(cell.shown, text), f"{cell.source}\nprints\n{text}"
    return names


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_opens_as_a_notebook_with_the_same_cells(name):
    path = ROOT / "docs" / name
    notebook = jupytext.read(path)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    ours = [
        cell.source.rstrip() if cell.language == "python" else f"%%sh\n{cell.source.rstrip()}"
        for cell in pages.cells(path.read_text(encoding="utf-8"))
    ]
    assert code == ours
    assert ours


def test_the_five_minute_start_prints_what_it_says(tmp_path):
    names = check(ROOT / "docs" / "start.md", tmp_path)
    assert names["result"].verified
    assert names["small"].network.sizes == (1, 2, 1)


def test_the_page_on_a_model_of_ones_own_finds_the_two_true_terms(tmp_path):
    names = check(ROOT / "docs" / "physics.md", tmp_path)
    assert set(names["result"].prune().names) == {"linear", "quadratic"}


def test_the_page_on_a_simulator_samples_its_program(tmp_path):
    names = check(ROOT / "docs" / "simulator.md", tmp_path)
    phi = names["result"].phi  # y was made with a rate of 0.2 and a room of 20, and noise
    assert (abs(phi.mean(axis=0) - [0.2, 20.0]) < 4 * phi.std(axis=0)).all()
    assert phi[:, 0].std() < 0.02  # the data were heard: the prior's is 0.8


def test_the_page_on_any_model_and_machine_prints_what_it_says(tmp_path):
    check(ROOT / "docs" / "any_model.md", tmp_path)


def test_the_page_on_interrupted_runs_prints_what_it_says(tmp_path):
    check(ROOT / "docs" / "checkpoints.md", tmp_path)


def test_the_page_on_a_real_table_prints_what_it_says(tmp_path):
    check(ROOT / "docs" / "table.md", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md", "docs/boxcar.md"])
def test_what_takes_long_prints_what_it_says(tmp_path, name):
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
def test_outputs_that_differ_are_seen(printed, same):
    assert pages.agree("rmse 0.49 of −2,406 ok", printed) is same
