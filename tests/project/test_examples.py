"""The examples do what they claim: small versions by default, the full ones when slow."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sbnn

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that its classes can be pickled
    spec.loader.exec_module(module)
    return module


oscillator = load("oscillator")
subprocess_simulator = load("subprocess_simulator")
TRUTH = np.concatenate([oscillator.TRUE, oscillator.TRUE_STARTS])


def test_oscillator_integrator_agrees_with_scipy():
    """Its error is far below the noise; a shift by one step would be detected."""
    times, _ = oscillator.measure(0)
    with jax.enable_x64(True):
        motion = np.asarray(oscillator.model(TRUTH))
    assert np.abs(motion - oscillator.truth(times)).max() < oscillator.NOISE_STD / 20
    assert np.abs(motion - oscillator.truth(times + oscillator.STEP)).max() > 0.1


def test_unstable_motion_has_zero_likelihood_and_finite_gradients():
    _, y = oscillator.measure(0)
    problem = oscillator.make_problem(y)
    runaway = TRUTH.copy()
    runaway[:3] = 5.0  # negative stiffness
    values = problem.log_likelihood(np.stack([TRUTH, runaway]))
    assert np.isfinite(values[0])
    assert values[1] == -np.inf
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(lambda p: problem.target().evaluate(p[None])[0]))
        gradients = np.array([slope(jnp.asarray(p)) for p in (TRUTH, runaway)])
    assert np.isfinite(gradients).all()
    assert np.abs(gradients[0]).max() > 0


def test_oscillator_with_all_terms_fits_to_within_the_noise():
    """At the mode, residuals match the sensor noise and the truth is within its errors."""
    _, y = oscillator.measure(0)
    problem = oscillator.make_problem(y)
    result = sbnn.laplace(problem, start=TRUTH, n_particles=50)
    assert result.converged
    std = np.sqrt(np.diag(result.details.covariance))
    assert (np.abs(result.details.mode - TRUTH) < 4 * std).all()
    with jax.enable_x64(True):
        residual = y - np.asarray(oscillator.model(result.details.mode))
    freedom = y.size - len(TRUTH)
    # χ² has mean n − p and variance 2 (n − p); the effect of the prior is negligible.
    chi2 = (residual**2).sum() / oscillator.NOISE_STD**2
    assert abs(chi2 - freedom) < 4 * np.sqrt(2 * freedom)


@pytest.mark.slow
def test_nsbl_finds_exactly_the_true_terms_of_the_oscillator(tmp_path):
    result = oscillator.find_terms(seed=0)
    found = oscillator.table(result)
    assert result.verified
    assert oscillator.is_exact(found), found
    oscillator.plot(result, 0, tmp_path / "oscillator.png")
    assert (tmp_path / "oscillator.png").stat().st_size > 10_000


def test_one_superfluous_term_is_not_exact():
    table = oscillator.pd.DataFrame({"true": oscillator.TRUE, "kept": oscillator.TRUE != 0})
    assert oscillator.is_exact(table)
    table.loc[2, "kept"] = True
    assert not oscillator.is_exact(table)


@pytest.fixture
def simulator():
    simulator = subprocess_simulator.Simulator()
    yield simulator
    simulator.close()


def test_cooling_program_matches_the_exact_solution(simulator):
    """With a heater, T∞ = ambient + heater / rate."""
    rate, ambient, heater = 0.3, 15.0, 1.2
    limit = ambient + heater / rate
    exact = limit + (90.0 - limit) * np.exp(-rate * subprocess_simulator.TIMES)
    np.testing.assert_allclose(simulator([rate, ambient, heater]), exact, atol=0.01)


def test_simulator_raises_on_failure_and_restarts_after_a_crash(simulator):
    good = simulator([0.2, 20.0, 0.0])
    with pytest.raises(RuntimeError, match="failed at"):
        simulator([-0.2, 20.0, 0.0])
    simulator.process.kill()
    simulator.process.wait()
    np.testing.assert_array_equal(simulator([0.2, 20.0, 0.0]), good)
    crash = subprocess_simulator.Simulator([sys.executable, "-c", "input(); raise SystemExit(3)"])
    with pytest.raises(RuntimeError, match="exit code 3"):
        crash([0.2, 20.0, 0.0])


def test_sampling_an_external_program_counts_its_failures(simulator):
    problem = subprocess_simulator.make_problem(simulator, subprocess_simulator.measure(0))
    assert problem.black_box
    with pytest.warns(RuntimeWarning, match="The function failed"):
        result = sbnn.standard(problem, key=0, n_particles=50, max_moves=60, on_failure="reject")
    assert result.n_rejected > 0
    rate = result.phi[:, 0]
    assert (rate > 0).all()
    assert abs(rate.mean() - subprocess_simulator.TRUE["rate"]) < 4 * rate.std()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The function failed")
def test_nsbl_prunes_the_absent_heater(simulator):
    problem = subprocess_simulator.make_problem(simulator, subprocess_simulator.measure(0))
    result = subprocess_simulator.learn(problem, 50)
    assert result.verified
    assert result.prune().names == ("heater",)
