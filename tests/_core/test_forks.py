"""Forked children: sampling raises at once, fits without JAX work."""

from __future__ import annotations

import os

import pytest
from fault_areas.processes import forked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.mark.parametrize(("parent", "child"), [("sample", "sample"), ("own_jax", "custom")])
def test_jax_in_a_forked_child_raises_with_a_remedy(parent, child):
    (line,) = forked(parent, child).splitlines()
    assert "parent had started JAX before it forked" in line
    assert "'spawn' or 'forkserver'" in line
    assert "loky" in line


@pytest.mark.parametrize(
    ("parent", "child"),
    [("sample", "fit"), ("fit", "fit"), ("fit", "sample")],
    ids=["fit after sampling", "fit after a fit", "sample after a fit"],
)
def test_forked_child_works_where_jax_was_not_running_or_is_not_needed(parent, child):
    assert forked(parent, child) == "finite"
