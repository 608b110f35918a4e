"""What starts begin with, where the targets have outliers."""

import numpy as np
import pytest
from scipy.stats import norm

from sbnn import SparseBNNRegressor
from sbnn.evidence.laplace.noise_choice import has_outliers, paths_for
from sbnn.likelihoods import Gaussian, StudentT, VaryingStudentT


@pytest.mark.parametrize(
    ("far", "expected"), [(3.0, VaryingStudentT), (9.0, StudentT), (200.0, StudentT)]
)
def test_outliers_change_what_starts_begin_with(far, expected):
    y = np.random.default_rng(0).standard_normal((1, 100))
    y[0, 7] = far
    kinds = paths_for(y)
    assert {type(kind) for kind in kinds} == {Gaussian, expected}
    assert (kinds[Gaussian()] == 1.0) == (expected is VaryingStudentT)


def test_skewed_targets_have_no_outliers():
    """The quantiles of a lognormal distribution reach 10 standard deviations without a leap."""
    y = np.exp(norm.ppf((np.arange(100) + 0.5) / 100))[None]
    assert not has_outliers(y)
    assert not has_outliers(-y)
    assert has_outliers(np.append(y, [[2.6 * y.max()]], axis=1))


def test_mostly_equal_targets_have_no_gross_outliers():
    y = np.zeros((1, 100))
    y[0, :10] = np.arange(10)
    assert paths_for(y)[Gaussian()] == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_few_starts_survive_gross_outliers(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (150, 3))
    truth = np.sin(3 * x[:, 0]) + x[:, 1]
    y = truth + 0.1 * rng.standard_normal(150)
    y[[3, 60, 90]] += [80.0, -40.0, 120.0]
    reg = SparseBNNRegressor(n_starts=2, random_state=seed, n_jobs=1).fit(x, y)
    error = np.sqrt(np.mean((reg.predict(x) - truth) ** 2))
    assert error < 0.1  # the noise of one row
