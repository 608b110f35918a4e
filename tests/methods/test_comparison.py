"""Model comparison: the table, Bayes factors, and results that cannot be compared."""

from __future__ import annotations

import numpy as np
import pytest

import sbnn
from sbnn._core.messages import SamplingFinished
from sbnn.methods.result import Result
from sbnn.priors import Normal

X, Y = sbnn.datasets.boxcar(n=8)


def made(log_evidence: float, error: float = 0.1, y=Y, problem=None, method="standard") -> Result:
    problem = problem or sbnn.network_problem(X, y, (), noise_std=0.5)
    return Result(
        method=method, problem=problem, phi=np.zeros((5, problem.n_parameters)),
        log_likelihood=np.zeros(5), log_evidence=log_evidence, log_evidence_error=error,
        n_evaluations=700, seconds=1.5, converged=True, reason=SamplingFinished(),
        key=(0, 0), settings={}, description=problem.description(),
    )  # fmt: skip


def test_table_is_sorted_and_has_bayes_factors():
    table = sbnn.compare({"poor": made(-12.0, 0.3), "good": made(-10.0, 0.4), "mid": made(-11.0)})
    assert list(table.index) == ["good", "mid", "poor"]
    np.testing.assert_array_equal(table["log_evidence"], [-10.0, -11.0, -12.0])
    np.testing.assert_allclose(table["log_bayes_factor"], [0.0, -1.0, -2.0])
    np.testing.assert_allclose(
        table["log_bayes_factor_error"], [0.0, np.hypot(0.1, 0.4), np.hypot(0.3, 0.4)]
    )
    assert (table["evaluations"] == 700).all()
    assert (table["seconds"] == 1.5).all()
    assert (table["parameters"] == 2).all()


def test_results_without_names_are_named_by_their_method():
    table = sbnn.compare([made(-1.0), made(-2.0), made(-3.0, method="nsbl")])
    assert list(table.index) == ["standard 1", "standard 2", "nsbl"]


def test_models_of_different_size_can_be_compared():
    wider = sbnn.network_problem(X, Y, (3,), noise_std=0.5)
    assert len(sbnn.compare([made(-1.0), made(-2.0, problem=wider)])) == 2


def test_different_data_raise():
    with pytest.raises(ValueError, match=r"different data.*same X and y"):
        sbnn.compare([made(-1.0), made(-2.0, y=Y + 1e-9)])


def test_too_few_results_raise():
    with pytest.raises(ValueError, match="at least two results to compare; got 1"):
        sbnn.compare([made(-1.0)])
    with pytest.raises(ValueError, match="got 0"):
        sbnn.compare([])


@pytest.mark.parametrize("other", ["a string", 3.0, None, {"log_evidence": -3.0}])
def test_other_objects_raise(other):
    with pytest.raises(TypeError, match=f"takes sbnn results; got {type(other).__name__}"):
        sbnn.compare([made(-1.0), other])


def own_problem(data):
    if data is None:
        return sbnn.Problem(lambda theta: -0.5 * (theta**2).sum(), ["a"], {"a": Normal(0, 1)})
    return sbnn.Problem(
        lambda theta, data: -0.5 * ((theta - data) ** 2).sum(),
        ["a"],
        {"a": Normal(0, 1)},
        data=data,
    )


def test_custom_problems_are_compared_by_their_data():
    same = [made(v, problem=own_problem(np.ones(1))) for v in (-1.0, -2.0)]
    assert len(sbnn.compare(same)) == 2
    with pytest.raises(ValueError, match="different data"):
        sbnn.compare([same[0], made(-1.0, problem=own_problem(np.zeros(1)))])
    with pytest.raises(ValueError, match=r"are not known.*`data=`"):
        sbnn.compare([made(v, problem=own_problem(None)) for v in (-1.0, -2.0)])
