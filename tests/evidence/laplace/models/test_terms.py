"""Gram matrices of many rows."""

from __future__ import annotations

import numpy as np
from helpers import rng

from sbnn.evidence.laplace.models.terms import BLOCK, gram_matrix


def test_gram_matrix_of_many_rows_equals_the_product():
    jac, root = rng(0).normal(size=(7, 3 * BLOCK + 5)), rng(1).uniform(1, 2, size=3 * BLOCK + 5)
    np.testing.assert_allclose(gram_matrix(jac), jac @ jac.T, rtol=1e-12, atol=1e-9)
    scaled = jac * root
    np.testing.assert_allclose(gram_matrix(jac, root), scaled @ scaled.T, rtol=1e-12, atol=1e-9)


def test_blocks_keep_the_error_of_single_precision_small():
    jac = rng(2).uniform(1, 2, size=(5, 200 * BLOCK)).astype(np.float32)
    exact = jac.astype(float) @ jac.astype(float).T
    error = lambda found: np.abs(found / exact - 1).max()
    # Sums of 1,024 products, of which each rounding contributes at most 2⁻²⁴ on average.
    assert gram_matrix(jac).dtype == float
    assert error(gram_matrix(jac)) < 1e-6
    one_sum = np.array([np.add.accumulate(jac[0] * row)[-1] for row in jac])
    assert np.abs(one_sum / exact[0] - 1).max() > 1e-6  # the control: one long sum
