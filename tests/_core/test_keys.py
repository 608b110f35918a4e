"""float64 inside and unchanged outside, and keys of every kind."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbnn._core.float64 import float64
from sbnn._core.keys import as_key, key_data


def test_float64_holds_inside_and_leaves_the_callers_setting_alone():
    before = jax.config.jax_enable_x64
    inside = float64(lambda: jnp.ones(3).dtype)
    assert inside() == jnp.float64
    assert jax.config.jax_enable_x64 == before
    with jax.enable_x64(False):
        assert inside() == jnp.float64
        assert jnp.ones(3).dtype == jnp.float32


def test_float64_leaves_the_callers_setting_alone_after_an_error():
    @float64
    def fails():
        raise RuntimeError("inside")

    with jax.enable_x64(False):
        with pytest.raises(RuntimeError, match="inside"):
            fails()
        assert jnp.ones(3).dtype == jnp.float32


def test_importing_the_package_changes_no_global_setting():
    import sbnn  # noqa: F401

    assert jnp.zeros(2).dtype == jnp.float32


def test_key_may_be_an_integer_or_a_jax_key_of_either_style():
    words = key_data(7)
    for key in (7, np.int64(7), jax.random.key(7), jax.random.PRNGKey(7), np.asarray(words)):
        np.testing.assert_array_equal(key_data(as_key(key)), words)


def test_negative_key_raises_with_a_remedy():
    with pytest.raises(ValueError, match=r"must not be negative.*Use 0"):
        as_key(-1)


@pytest.mark.parametrize("key", [1.5, "0", None, True, np.zeros(3)])
def test_invalid_keys_raise(key):
    with pytest.raises(TypeError, match="integer or one JAX random key"):
        as_key(key)


def test_batch_of_keys_raises():
    with pytest.raises(TypeError, match="one JAX random key"):
        as_key(jax.random.split(jax.random.key(0), 3))
