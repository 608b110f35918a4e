"""Model comparison: the table, Bayes factors, and results that cannot be compared."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

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


def test_table_names_what_the_evidence_is_maximised_over():
    inferred = sbnn.network_problem(X, Y, (), noise_std=None)
    methods = ["standard", "nsbl", "laplace", "laplace_nsbl"]
    same = [made(-1.0, problem=inferred, method=name) for name in methods]
    assert sbnn.compare(same)["maximised"].tolist() == ["", "α", "noise", "α, noise"]
    known = [made(-1.0, method=name) for name in methods]
    assert sbnn.compare(known)["maximised"].tolist() == ["", "α", "", "α"]


@pytest.mark.parametrize(("n", "nats"), [(20, 2.2), (80, 2.9)])
def test_laplace_evidence_is_at_the_best_noise_level(n, nats):
    """A line with two N(0, 3²) parameters: p(y | σ) = N(0, σ² I + 9 X Xᵀ) is closed-form."""
    t = np.linspace(0.0, 1.0, n)
    y = 1.0 + 2.0 * t + 0.3 * np.random.default_rng(0).normal(size=n)
    flat = {name: Normal(0.0, 3.0) for name in "ab"}
    problem = sbnn.Problem.from_model(
        lambda theta, x: theta[0] + theta[1] * x, y, x=t, names=["a", "b"], priors=flat
    )
    design = np.column_stack([np.ones(n), t])
    log_sigma = np.linspace(-2.2, 0.2, 97)
    log_evidence = [
        multivariate_normal(cov=np.exp(2 * s) * np.eye(n) + 9 * design @ design.T).logpdf(y)
        for s in log_sigma
    ]
    found = sbnn.laplace(problem, key=0, n_particles=10).log_evidence
    assert found == pytest.approx(max(log_evidence), abs=0.15)
    # The default prior of log σ is N(log of a third of the spread of y, 1.5²).
    prior = norm(np.log(y.std() / 3), 1.5).logpdf(log_sigma)
    step = log_sigma[1] - log_sigma[0]
    integral = logsumexp(np.array(log_evidence) + prior) + np.log(step)
    assert found - integral == pytest.approx(nats, abs=0.3)


def test_an_estimate_by_laplace_has_no_error():
    table = sbnn.compare([made(-1.0), made(-2.0, error=0.0, method="laplace")])
    assert table.loc["standard", "log_evidence_error"] == 0.1
    assert np.isnan(
        table.loc["laplace", ["log_evidence_error", "log_bayes_factor_error"]].astype(float)
    ).all()
