"""Fixtures of the command line: a table of the test module, and a fit of it."""

from __future__ import annotations

import pytest
from command_line import QUICK, run


@pytest.fixture(scope="module")
def place(request, tmp_path_factory):
    """A folder with data.csv: what the function `table` of the test module returns."""
    path = tmp_path_factory.mktemp("cli")
    request.module.table().to_csv(path / "data.csv", index=False)
    return path


@pytest.fixture(scope="module")
def fitted(request, place):
    """The folder of a quick fit with the options FIT of the test module, and what it printed."""
    out = place / "fit"
    return out, run("fit", place / "data.csv", *request.module.FIT, *QUICK, "--out", out)
