"""The public names of the package."""

import subprocess
import sys

import pytest

import sbnn


def test_all_public_names_import():
    for name in sbnn.__all__:
        assert getattr(sbnn, name) is not None
    assert set(sbnn.__all__) <= set(dir(sbnn))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="laplase"):
        sbnn.laplase  # noqa: B018


def test_importing_sbnn_keeps_the_callers_jax_precision():
    code = (
        "import sbnn, jax, jax.numpy as jnp; sbnn.network_problem([0., 1.], [0., 1.]);"
        "print(jnp.zeros(1).dtype)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "float32"
