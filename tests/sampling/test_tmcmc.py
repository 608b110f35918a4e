"""Transitional MCMC against closed forms, with negative controls."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from closed_forms import naive_mutate
from helpers import (
    assert_honest_errors,
    assert_mean_within_errors,
    assert_within_errors,
    gaussian_log_likelihood,
    gaussian_problem,
    keys,
    line_problem,
    rng,
    z_score,
)
from scipy import stats

import sbnn
from sbnn._core.messages import PointsRejected, SamplingFinished, SamplingSlow
from sbnn.priors import Normal, Uniform
from sbnn.sampling import chunks, tmcmc
from sbnn.sampling.moves import random_walk

PINE = Path(__file__).resolve().parents[3] / "shared" / "data" / "evidence" / "radiata_pine.dat"


def evidence_z(d, n_keys, n_particles):
    problem, exact = gaussian_problem(d)
    runs = [sbnn.standard(problem, key=k, n_particles=n_particles) for k in keys(n_keys)]
    return np.array([z_score(run, exact) for run in runs])


# Closed forms: Gaussian likelihood × Gaussian prior.


@pytest.mark.parametrize("d", [2, 10, 30])
def test_log_evidence_is_exact_and_its_error_honest_for_gaussians(d):
    z = evidence_z(d, 8 if d < 30 else 4, 500 if d < 30 else 1000)
    assert_within_errors(z, 0.0, 1.0, "log evidence in reported errors")
    assert_honest_errors(z)


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 10, 30])
def test_log_evidence_is_exact_and_its_error_honest_over_twenty_keys(d):
    z = evidence_z(d, 20, 2000)
    print(f"\nd={d}: z-scores of mean {z.mean():.2f} and std {z.std(ddof=1):.2f}: {z.round(2)}")
    assert_within_errors(z, 0.0, 1.0, "log evidence in reported errors")
    assert_honest_errors(z)


def test_naive_sampler_fails_the_gaussian_check(monkeypatch):
    """Negative control: the check above detects a fixed scale and one move per stage."""
    monkeypatch.setattr(tmcmc, "mutate", naive_mutate)
    z = evidence_z(10, 4, 500)
    with pytest.raises(AssertionError, match="standard"):
        assert_honest_errors(z)
    with pytest.raises(AssertionError, match="standard errors"):
        assert_within_errors(z, 0.0, 1.0)


def test_posterior_draws_have_the_exact_mean_and_variance():
    problem, _ = gaussian_problem(2)
    mean, std = problem.data
    variance = 1 / (1 + 1 / std**2)
    moments = []
    for key in keys(10):
        z = (sbnn.standard(problem, key=key, n_particles=500).phi - variance * mean / std**2) / (
            np.sqrt(variance)
        )
        moments.append(np.concatenate([z.mean(axis=0), (z**2).mean(axis=0)]))
    assert_mean_within_errors(moments, [0.0, 0.0, 1.0, 1.0], "moments of the posterior")


# Two modes, twenty standard deviations apart.


def two_modes(theta):
    def mode(mass, centre):
        return np.log(mass / (2 * np.pi)) - 0.5 * jnp.sum((theta - centre) ** 2)

    return jnp.logaddexp(mode(0.3, -10 / np.sqrt(2)), mode(0.7, 10 / np.sqrt(2)))


def test_two_distant_modes_keep_their_masses():
    problem = sbnn.Problem(two_modes, ["a", "b"], {"a": Uniform(-15, 15), "b": Uniform(-15, 15)})
    runs = [sbnn.standard(problem, key=key, n_particles=500) for key in keys(12)]
    left = [(run.phi[:, 0] < 0).mean() for run in runs]
    assert_mean_within_errors(left, 0.3, "mass of the lighter mode")
    for run in runs:  # ∫ likelihood = 1 up to 1e-14; the prior's density is 1/30²
        assert_within_errors(run.log_evidence, -2 * np.log(30), run.log_evidence_error)
    with pytest.raises(AssertionError):  # the check distinguishes 0.3 from equal masses
        assert_mean_within_errors(left, 0.5)


# Competing straight lines with a conjugate prior.


def check_rivals(first, second, n_particles):
    found, errors, exact = [], [], []
    for problem, truth in (first, second):
        run = sbnn.standard(problem, key=keys(1)[0], n_particles=n_particles)
        assert_within_errors(run.log_evidence, truth, run.log_evidence_error, "log evidence")
        found.append(run.log_evidence)
        errors.append(run.log_evidence_error)
        exact.append(truth)
    assert_within_errors(
        found[1] - found[0], exact[1] - exact[0], np.hypot(*errors), "log Bayes factor"
    )
    with pytest.raises(AssertionError):  # the evidences differ by more than the errors
        assert_within_errors(found[0], exact[1], errors[0])


def test_competing_lines_have_closed_form_evidence_and_bayes_factor():
    generator = rng(40)
    x = generator.uniform(-1, 1, size=30)
    z = x + 0.3 * generator.normal(size=30)
    y = 1.0 + 2.0 * x + 0.2 * generator.normal(size=30)
    prior = {"mean": (0.5, 1.0), "precision": (0.5, 0.5), "shape": 3.0, "rate": 0.2}
    check_rivals(line_problem(z, y, **prior), line_problem(x, y, **prior), 1000)


@pytest.mark.skipif(
    not PINE.exists(), reason=f"Radiata pine data not found at {PINE}; they are not part of sbnn"
)
def test_radiata_pine_has_its_published_evidence_and_bayes_factor():
    _, y, x, z = np.loadtxt(PINE, comments="#").T
    first, second = line_problem(x, y), line_problem(z, y)
    assert first[1] == pytest.approx(-310.12829, abs=1e-5)
    assert second[1] == pytest.approx(-301.70460, abs=1e-5)
    check_rivals(first, second, 1000)


# Likelihoods that fail somewhere.


def truncated(theta):
    """N(θ | ½, 0.05²) on |θ − ½| < 0.15, zero elsewhere: the support is 9 % of the unit square."""
    value = jax.scipy.stats.norm.logpdf(theta, 0.5, 0.05).sum()
    return jnp.where(jnp.all(jnp.abs(theta - 0.5) < 0.15), value, -jnp.inf)


UNIT = {"a": Uniform(0, 1), "b": Uniform(0, 1)}


@pytest.mark.parametrize("move", ["random_walk", "hmc"])
def test_evidence_is_exact_if_most_of_the_prior_has_zero_likelihood(move):
    problem = sbnn.Problem(truncated, ["a", "b"], UNIT)
    exact = 2 * np.log(2 * stats.norm.cdf(3) - 1)
    runs = [sbnn.standard(problem, key=k, n_particles=1000, move=move) for k in keys(4)]
    for run in runs:
        assert_within_errors(run.log_evidence, exact, run.log_evidence_error)
        assert (np.abs(run.phi - 0.5) < 0.15).all()
        assert run.history["stages"]["beta"][0] == 0.0  # a stage that only finds the support
        assert run.n_rejected > 800


@pytest.mark.parametrize("move", ["random_walk", "hmc"])
def test_points_without_likelihood_are_rejected_counted_and_reported(move):
    def log_likelihood(theta):
        value = -0.5 * jnp.sum(theta**2) / 0.3**2
        return jnp.where(theta[0] > 0.5, jnp.nan, jnp.where(theta[1] > 0.5, -jnp.inf, value))

    problem = sbnn.Problem(log_likelihood, ["a", "b"], {"a": Uniform(-1, 1), "b": Uniform(-1, 1)})
    with pytest.warns(RuntimeWarning, match="NaN or .inf at 2. % of the prior draws"):
        run = sbnn.standard(problem, key=keys(1)[0], n_particles=500, move=move)
    assert (run.phi <= 0.5).all()
    assert np.isfinite(run.log_likelihood).all()
    # 7/16 of the prior has no likelihood; some later proposals end there, too.
    assert run.n_rejected > 300
    message = run.messages[0]
    assert isinstance(message, PointsRejected)
    assert (message.n_rejected, message.n_evaluations) == (run.n_rejected, run.n_evaluations)
    assert 0.2 < message.undefined < 0.3  # a quarter is NaN
    inside = 0.3 * np.sqrt(2 * np.pi) * (stats.norm.cdf(0.5 / 0.3) - stats.norm.cdf(-1 / 0.3))
    assert_within_errors(run.log_evidence, 2 * np.log(inside / 2), run.log_evidence_error)


def test_finite_likelihood_gives_no_messages():
    run = sbnn.standard(gaussian_problem(2)[0], key=keys(1)[0], n_particles=500)
    assert run.n_rejected == 0
    assert run.messages == ()
    assert run.converged


# The two kinds of problem and the two kinds of move.


def numpy_log_likelihood(theta, data):
    mean, std = data
    return float(stats.norm.logpdf(np.asarray(theta), mean, std).sum())


def test_black_box_has_closed_form_evidence():
    jax_problem, exact = gaussian_problem(2)

    def fast(theta, data):
        residual = (np.asarray(theta) - data[0]) / data[1]
        return float(-0.5 * residual @ residual - 2 * np.log(data[1]) - np.log(2 * np.pi))

    problem = sbnn.Problem(fast, jax_problem.names, {"theta": Normal()}, data=jax_problem.data)
    assert problem.black_box
    runs = [sbnn.standard(problem, key=k, n_particles=200) for k in keys(3)]
    z = [z_score(run, exact) for run in runs]
    assert_within_errors(z, 0.0, 1.0, "log evidence of a black box")
    assert fast(np.ones(2), problem.data) == pytest.approx(
        numpy_log_likelihood(np.ones(2), problem.data)
    )


def test_hamiltonian_moves_agree_with_the_random_walk():
    problem, exact = gaussian_problem(10)
    walk, hmc = (
        sbnn.standard(problem, key=keys(1)[0], n_particles=500, move=m) for m in ("auto", "hmc")
    )
    assert_within_errors(hmc.log_evidence, exact, hmc.log_evidence_error)
    error = np.hypot(hmc.log_evidence_error, walk.log_evidence_error)
    assert_within_errors(hmc.log_evidence - walk.log_evidence, 0.0, error)


def test_hmc_raises_for_a_black_box_before_it_runs():
    def never(theta):
        raise RuntimeError("was run")

    problem = sbnn.Problem(never, ["a"], {"a": Normal()}, black_box=True)
    with pytest.raises(ValueError, match="'hmc' needs gradients; a black-box likelihood has none"):
        sbnn.standard(problem, move="hmc")


# Reproducibility.

SCRIPT = """
import jax, test_tmcmc
print(len(jax.devices()), *test_tmcmc.answer())
"""


def answer():
    x, y = sbnn.datasets.boxcar()
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(1,), noise_std=0.5, bound=10.0)
    # more than one chunk of particles, so that both devices work
    run = sbnn.standard(problem, key=3, n_particles=1100, max_moves=20)
    digest = hashlib.sha256(run.phi.tobytes() + run.log_likelihood.tobytes()).hexdigest()
    return [digest, run.log_evidence.hex(), run.log_evidence_error.hex()]


def answer_with_devices(n):
    environment = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={n}"}
    environment |= {
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    devices, *words = done.stdout.split()
    assert int(devices) == n
    return words


def test_result_is_bitwise_the_same_on_one_and_two_devices():
    here = answer() if len(jax.devices()) == 1 else answer_with_devices(1)
    assert here == answer_with_devices(2)


def test_same_key_gives_the_same_bits_and_another_key_does_not():
    problem, _ = gaussian_problem(2)
    first, again, other = (sbnn.standard(problem, key=k, n_particles=500) for k in (1, 1, 2))

    def digest(run):
        return hashlib.sha256(run.phi.tobytes()).hexdigest(), run.log_evidence

    assert digest(first) == digest(again)
    assert digest(first) != digest(other)
    same = sbnn.standard(problem, key=jax.random.key(1), n_particles=500)
    assert digest(first) == digest(same)
    assert first.key == same.key


def test_new_data_of_the_same_shape_do_not_recompile():
    def problem(shift):
        data = (np.linspace(-1, 1, 2) + shift, np.float64(0.1))
        return sbnn.Problem(
            gaussian_log_likelihood, ["theta[0]", "theta[1]"], {"theta": Normal()}, data=data
        )

    sbnn.standard(problem(0.0), key=0, n_particles=500)
    before = random_walk._walk_block._cache_size(), chunks._evaluate_chunk._cache_size()
    sbnn.standard(problem(0.5), key=1, n_particles=500)
    assert (random_walk._walk_block._cache_size(), chunks._evaluate_chunk._cache_size()) == before
    sbnn.standard(problem(0.5), key=1, n_particles=300)  # other shapes do recompile
    assert random_walk._walk_block._cache_size() > before[0]


# The record of a run.


def test_result_records_stages_and_acceptance():
    seen = []
    problem, _ = gaussian_problem(2)
    run = sbnn.standard(problem, key=keys(1)[0], n_particles=500, progress=seen.append)
    table = run.history["stages"]
    assert len(seen) == len(table)
    assert table["beta"].iloc[-1] == 1.0
    assert (np.diff(table["beta"]) > 0).all()
    assert table["ess"].between(249.9, 500).all()  # CoV ≤ 1 ⇔ ESS ≥ N/2
    assert table["log_evidence"].iloc[-1] == run.log_evidence
    assert np.sqrt(table["log_evidence_variance"].sum()) == pytest.approx(run.log_evidence_error)
    assert table["n_evaluations"].sum() + 500 == run.n_evaluations
    assert (table["n_moves"] >= 2).all()
    assert run.reason == SamplingFinished()


def test_hitting_the_move_cap_is_reported():
    problem, _ = gaussian_problem(10)
    run = sbnn.standard(problem, key=keys(1)[0], n_particles=500, max_moves=10)
    assert not run.converged
    assert isinstance(run.reason, SamplingSlow)


def test_run_that_exhausts_its_stages_is_not_converged():
    run = tmcmc.tmcmc(gaussian_problem(10)[0].target(), 0, n_particles=500, max_stages=3)
    assert not run.converged
    assert "after 3 stages" in str(run.reason)
    assert run.stages[-1].beta < 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_particles": 49}, "`n_particles` must be a whole number of at least 50; got 49"),
        ({"n_particles": 300.0}, "`n_particles` must be a whole number"),
        ({"n_particles": True}, "`n_particles` must be a whole number"),
        ({"n_particles": float("nan")}, "`n_particles` must be a whole number"),
        ({"n_particles": None}, "`n_particles` must be a whole number"),
        ({"move": "gibbs"}, "`move` must be one of 'auto', 'random_walk', 'hmc'; got 'gibbs'"),
        ({"max_moves": 0}, "`max_moves` must be at least 1"),
    ],
)
def test_invalid_settings_raise_before_anything_runs(options, message):
    problem, _ = gaussian_problem(2)
    with pytest.raises(ValueError, match=message):
        sbnn.standard(problem, **options)
