"""Chunks of a population: every row once, in order, with separate random numbers per chunk."""

from __future__ import annotations

import numpy as np
import pytest

from sbnn.sampling.chunks import CHUNK, chunked


@pytest.mark.parametrize("n", [50, 64, 257, 1000, 2500])
def test_chunks_cover_every_row_once_and_in_order(n):
    phi = np.arange(2.0 * n).reshape(n, 2)
    other = np.arange(float(n))
    found = chunked(
        lambda scale, phi, other, number: (scale * phi, other, np.full(len(phi), number)),
        phi,
        (other,),
        (3.0,),
        lambda i: 10 * i,
    )
    np.testing.assert_array_equal(found[0], 3 * phi)
    np.testing.assert_array_equal(found[1], other)
    # each chunk had its own random numbers
    assert len(np.unique(found[2])) == -(-n // CHUNK)
