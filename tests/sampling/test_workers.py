"""Executors: the same numbers wherever a black box runs, even if workers die."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import dask
import distributed
import jax.numpy as jnp
import numpy as np
import pytest

import sbnn
from sbnn.priors import Normal
from sbnn.sampling.evaluator import TASK_SECONDS, Evaluator, n_tasks
from sbnn.sampling.workers import EvaluationError

N = 50
MAIN = os.getpid()
RUN = {"key": 3, "n_particles": N, "max_moves": 20}
# Functions of this module are pickled by value: workers import neither it nor its imports.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def log_likelihood(theta):
    """A curved, correlated density; its last bits depend on all of θ."""
    bend = theta[1] - np.sin(theta[0])
    return float(-0.5 * ((theta[0] - 0.4) ** 2 / 0.09 + bend**2 / 0.04))


def problem_of(function, ard=()):
    names = ["a", "b"]
    priors = {n: Normal() for n in names if n not in ard}
    return sbnn.Problem(function, names, priors, ard, bound=5.0, black_box=True)


@functools.cache
def reference():
    """The serial run without failures, and the prior draws it started from."""
    seen = []

    def watched(theta):
        seen.append(theta.copy())
        return log_likelihood(theta)

    return sbnn.standard(problem_of(watched), **RUN), np.array(seen[:N])


def assert_same(result, expected):
    np.testing.assert_array_equal(result.phi, expected.phi)
    np.testing.assert_array_equal(result.log_likelihood, expected.log_likelihood)
    assert result.log_evidence == expected.log_evidence
    assert result.n_evaluations == expected.n_evaluations


@pytest.fixture(scope="module")
def client():
    """Two worker processes. A task is returned after the first death, not the fourth."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


@pytest.fixture(params=["processes", "dask"])
def executor(request):
    return 2 if request.param == "processes" else request.getfixturevalue("client")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


# Where the function runs.


def test_workers_give_the_bits_of_a_serial_run(executor):
    assert_same(sbnn.standard(problem_of(log_likelihood), executor=executor, **RUN), reference()[0])


def test_another_function_or_key_gives_other_numbers():
    """Negative control of the comparison above."""
    other = sbnn.standard(problem_of(log_likelihood), **{**RUN, "key": 4})
    with pytest.raises(AssertionError):
        assert_same(other, reference()[0])


def only_in_workers(theta):
    if os.getpid() == MAIN:
        raise RuntimeError("called in the process of the tests")
    return log_likelihood(theta)


def test_hierarchical_evaluates_in_workers_and_gives_the_serial_numbers():
    options = {"key": 5, "n_particles": N, "max_moves": 20}
    found = sbnn.hierarchical(
        problem_of(only_in_workers, ["b"]), executor=2, on_failure="raise", **options
    )
    assert_same(found, sbnn.hierarchical(problem_of(log_likelihood, ["b"]), **options))


def test_function_does_not_run_in_this_process_when_there_are_workers():
    """Negative control: serially the same function fails."""
    with pytest.raises(EvaluationError, match="called in the process of the tests"):
        sbnn.standard(problem_of(only_in_workers), on_failure="raise", **RUN)


@pytest.mark.slow
def test_nsbl_evaluates_in_workers_and_gives_the_serial_numbers(client):
    options = {"key": 1, "n_particles": 100, "n_starts": 2}
    expected = sbnn.nsbl(problem_of(log_likelihood, ["b"]), **options)
    for where in (2, client):
        found = sbnn.nsbl(
            problem_of(only_in_workers, ["b"]), executor=where, on_failure="raise", **options
        )
        assert_same(found, expected)
        np.testing.assert_array_equal(found.log_alpha, expected.log_alpha)


def test_functions_using_jax_keep_double_precision_in_workers():
    """Also if the function itself first loads JAX, during an evaluation."""

    def loads_jax(theta):
        import jax.numpy as jnp

        return float(-jnp.sum(jnp.asarray(theta) ** 2))

    problem = problem_of(loads_jax)
    theta = np.random.default_rng(0).normal(size=(5, 2))
    with Evaluator(problem, 1) as evaluate:
        np.testing.assert_array_equal(evaluate(theta), problem.log_likelihood(theta))
    np.testing.assert_allclose(problem.log_likelihood(theta), -(theta**2).sum(axis=1), rtol=1e-14)


def test_workers_do_not_load_jax_unless_the_model_does():
    """It would cost each of them a second and 150 MB."""

    def model(theta):
        return np.array([float("jax" in sys.modules), 0.0])

    problem = sbnn.Problem.from_model(
        model, [0.0, 0.0], names=["a"], priors={"a": Normal()}, noise_std=1.0, black_box=True
    )
    with Evaluator(problem, 1) as evaluate:
        assert evaluate(np.zeros((1, 1)))[0] == pytest.approx(-np.log(2 * np.pi))
    assert problem.log_likelihood(np.zeros(1)) == pytest.approx(-np.log(2 * np.pi) - 0.5)


def test_function_that_modifies_its_argument_does_no_harm():
    def careless(theta):
        value = log_likelihood(theta)
        theta[:] = np.nan
        return value

    assert_same(sbnn.standard(problem_of(careless), **RUN), reference()[0])


# Batches.


def test_short_evaluations_are_batched_and_long_ones_spread_evenly():
    assert n_tasks(2000, 10e-6, 2) == 2
    assert n_tasks(100, 10e-6, 2) == 1
    assert n_tasks(100, 0.05, 2) == 50
    assert n_tasks(100, 60.0, 64) == 100
    assert n_tasks(1, 60.0, 2) == 1
    for n, seconds, workers in ((2000, 1e-3, 2), (2000, 1e-3, 7), (500, 4e-3, 16)):
        tasks = n_tasks(n, seconds, workers)
        assert tasks % workers == 0
        assert n * seconds / tasks <= TASK_SECONDS
        assert n * seconds / tasks > 0.5 * TASK_SECONDS


def test_fast_evaluations_are_never_sent_singly():
    with Evaluator(problem_of(log_likelihood), 2) as evaluate:
        for seed in range(5):
            evaluate(np.random.default_rng(seed).normal(size=(1000, 2)))
        assert evaluate.n_sent == 5000
        assert evaluate.n_tasks <= 2 + 5 * 2


# Deaths of workers.


def dies_once(flag: Path):
    """Kills its process at the first call anywhere, and works from then on."""

    def function(theta):
        try:
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return log_likelihood(theta)
        die()

    return function


def test_worker_killed_during_an_evaluation_loses_nothing(executor, tmp_path):
    result = sbnn.standard(
        problem_of(dies_once(tmp_path / "flag")), executor=executor, on_failure="raise", **RUN
    )
    assert (tmp_path / "flag").exists()
    assert_same(result, reference()[0])
    assert result.n_failed == 0


def test_worker_killed_from_outside_loses_nothing(executor, tmp_path):
    def signs_in(theta):
        (tmp_path / str(os.getpid())).touch()
        time.sleep(2e-4)
        return log_likelihood(theta)

    killed, timers = [], []

    def kill():
        killed.append(int(min(path.name for path in tmp_path.iterdir())))
        os.kill(killed[0], signal.SIGKILL)

    def kill_soon(stage):
        if not timers:
            timers.append(threading.Timer(0.05, kill))
            timers[0].start()

    result = sbnn.standard(
        problem_of(signs_in), executor=executor, on_failure="raise", progress=kill_soon, **RUN
    )
    assert killed, "the run was over before anybody was killed"
    assert MAIN not in killed
    assert_same(result, reference()[0])


def test_points_that_always_kill_their_worker_are_rejected_and_the_run_completes(executor):
    """One of the prior draws kills its worker; the result equals zero likelihood there."""
    deadly = reference()[1][30]

    def kills(theta):
        if np.abs(theta - deadly).max() < 1e-9:
            die()
        return log_likelihood(theta)

    def zero(theta):
        return -np.inf if np.abs(theta - deadly).max() < 1e-9 else log_likelihood(theta)

    expected = sbnn.standard(problem_of(zero), **RUN)
    assert expected.n_rejected == 1
    with pytest.warns(RuntimeWarning, match="failed in 1 evaluation,"):
        result = sbnn.standard(problem_of(kills), executor=executor, **RUN)
    assert_same(result, expected)
    assert result.n_failed == 1
    np.testing.assert_array_equal(result.failures[["a", "b"]], [deadly])
    assert "worker process died" in result.failures["error"][0]


def test_worker_death_stops_the_run_with_on_failure_raise():
    deadly = np.array([0.25, -1.0])

    def kills(theta):
        return die() if np.array_equal(theta, deadly) else log_likelihood(theta)

    theta = np.concatenate([np.zeros((3, 2)), [deadly]])
    with (
        Evaluator(problem_of(kills), 2, "raise") as evaluate,
        pytest.raises(EvaluationError, match=r"a = 0.25, b = -1.0: The worker process died"),
    ):
        evaluate(theta)


# Failures of the function.


def diverges(theta):
    if theta[0] > 1.0:
        raise FloatingPointError("the solver diverged")
    return log_likelihood(theta)


def zero_beyond_one(theta):
    return -np.inf if theta[0] > 1.0 else log_likelihood(theta)


@pytest.mark.parametrize("where", [None, 2])
def test_failures_are_rejected_counted_and_kept(where, tmp_path):
    expected = sbnn.standard(problem_of(zero_beyond_one), **RUN)
    with pytest.warns(RuntimeWarning, match="The function failed"):
        result = sbnn.standard(problem_of(diverges), executor=where, on_failure="reject", **RUN)
    assert_same(result, expected)
    assert result.n_failed == expected.n_rejected > 0
    assert len(result.failures) == result.n_failed
    assert (result.failures["a"] > 1.0).all()
    assert "solver diverged" in str(result.messages[-1])
    result.save(tmp_path / "result.nc")
    again = sbnn.load(tmp_path / "result.nc")
    assert again.n_failed == result.n_failed
    assert again.messages == result.messages
    assert again.failures.equals(result.failures)
    assert again.failures["error"].str.startswith("FloatingPointError: the solver diverged").all()


def test_result_without_failures_has_an_empty_table():
    result = reference()[0]
    assert result.n_failed == 0
    assert list(result.failures.columns) == ["a", "b", "error"]
    assert len(result.failures) == 0


@pytest.mark.parametrize(("policy", "n_failed"), [("retry", 0), ("reject", 40)])
def test_retry_recovers_points_that_fail_once(policy, n_failed, tmp_path):
    def fails_first(theta):
        flag = tmp_path / theta.tobytes().hex()
        if theta[0] > 0 and not flag.exists():
            flag.touch()
            raise OSError("no licence")
        return log_likelihood(theta)

    theta = np.random.default_rng(1).normal(size=(100, 2))
    theta[:, 0] = np.abs(theta[:, 0]) * np.where(np.arange(100) < 40, 1, -1)
    theta = theta[np.random.default_rng(2).permutation(100)]
    with Evaluator(problem_of(fails_first), None, policy) as evaluate:
        values = evaluate(theta)
    assert evaluate.n_failed == n_failed
    expected = problem_of(log_likelihood).log_likelihood(theta)
    lost = (theta[:, 0] > 0) & (n_failed > 0)
    np.testing.assert_array_equal(values, np.where(lost, -np.inf, expected))


@pytest.mark.parametrize("where", [None, 2])
def test_on_failure_raise_stops_at_the_first_failure_and_names_the_point(where):
    with pytest.raises(EvaluationError, match=r"a = 1\.\d+, b = .*FloatingPointError: the solver"):
        sbnn.standard(problem_of(diverges), executor=where, on_failure="raise", **RUN)


@pytest.mark.parametrize("where", [None, 2])
def test_function_that_always_fails_stops_the_run_early_with_its_error(where, tmp_path):
    def broken(theta):
        with (tmp_path / "calls").open("a") as file:
            file.write(".")
        raise KeyError("no such column")

    with pytest.raises(ValueError, match=r"each of the first 20 .*KeyError: 'no such column'"):
        sbnn.standard(problem_of(broken), executor=where, **{**RUN, "n_particles": 1000})
    assert (tmp_path / "calls").stat().st_size == 40  # each tried twice


def test_function_that_exits_counts_as_a_failure_of_that_point():
    def leaves(theta):
        return exit(3) if theta[0] > 1.0 else log_likelihood(theta)

    with Evaluator(problem_of(leaves)) as evaluate:
        values = evaluate(np.array([[0.0, 0.0]] * 30 + [[2.0, 0.0]]))
    assert np.isfinite(values[:30]).all()
    assert values[30] == -np.inf
    assert "SystemExit: 3" in evaluate.failures[0].error


# Errors.


def test_invalid_executor_raises_with_a_remedy():
    for bad in ("threads", 0, -1, 1.5, True):
        with pytest.raises((TypeError, ValueError), match="`executor` must be"):
            sbnn.standard(problem_of(log_likelihood), executor=bad, **RUN)
    with pytest.raises(ValueError, match="'reject', 'retry' or 'raise'; got 'ignore'"):
        sbnn.standard(problem_of(log_likelihood), on_failure="ignore", **RUN)


def test_executor_raises_for_a_compiled_problem():
    problem = sbnn.Problem(lambda t: -jnp.sum(t**2), ["a"], {"a": Normal()})
    with pytest.raises(ValueError, match=r"compiled by JAX.*black_box=True"):
        sbnn.standard(problem, executor=2, **RUN)


def test_function_that_cannot_be_pickled_raises():
    lock = threading.Lock()

    def locked(theta):
        with lock:
            return log_likelihood(theta)

    with pytest.raises(TypeError, match=r"cannot be sent to workers.*locks inside the function"):
        sbnn.standard(problem_of(locked), executor=2, **RUN)


def test_methods_that_need_gradients_raise_for_a_black_box():
    problem = problem_of(log_likelihood, ["b"])
    result = sbnn.standard(problem, **RUN)
    for call in (
        lambda: sbnn.standard(problem, move="hmc"),
        lambda: sbnn.hierarchical(problem, move="hmc"),
        lambda: sbnn.laplace(problem),
        lambda: sbnn.laplace_nsbl(problem),
        lambda: result.modes(),
    ):
        with pytest.raises(ValueError, match=r"needs gradients.*black.box"):
            call()
