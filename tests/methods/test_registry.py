"""The registry of methods is complete, and each entry loads its function."""

from __future__ import annotations

import subprocess
import sys

import pytest

import sbnn
from sbnn.methods.registry import AUTO, CHOICES, COMPARED, METHODS, SAMPLING, colour_of, title_of


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].module])
def test_method_loads_the_public_function_of_its_name(name):
    assert METHODS[name].load() is getattr(sbnn, name)


def test_methods_have_distinct_titles_colours_and_summaries():
    others = {"laplace", "laplace_nsbl", "last_layer", "layer_wise"}
    assert set(METHODS) == {"standard", "nsbl", "hierarchical", *others}
    assert set(SAMPLING) == {"standard", "nsbl", "hierarchical"}
    for attribute in ("title", "colour", "summary"):
        assert len({getattr(method, attribute) for method in METHODS.values()}) == len(METHODS)
    assert AUTO in METHODS
    assert AUTO in COMPARED
    assert ("auto", *METHODS) == CHOICES
    assert title_of("nsbl") == "NSBL"
    assert title_of("another") == "another"
    assert colour_of("another") == colour_of("nsbl")


def test_registry_does_not_import_jax():
    code = "import sys, sbnn.methods.registry; print('jax' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
