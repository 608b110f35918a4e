"""Warm-start SMC against closed forms, with references that are off, and its negative control."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_honest_errors, assert_within_errors, keys

import sbnn
from sbnn._core.keys import as_key
from sbnn.sampling.warm_start import Reference, Shear, moving, sampler, warm_start
from sbnn.sampling.warm_start.path import Path

Normal = sbnn.priors.Normal


def gaussian(d):
    """exp(−½|Aᵀ(θ − μ)|²) × N(0, 1): the problem, posterior mean and covariance, log evidence."""
    rng = np.random.default_rng(d)
    a, mu = rng.normal(size=(d, d)) / np.sqrt(d) + np.eye(d), rng.normal(size=d)
    names = [f"t{i}" for i in range(d)]
    problem = sbnn.Problem(
        lambda theta, data: -0.5 * jnp.sum((data[0].T @ (theta - data[1])) ** 2),
        names, {name: Normal(0.0, 1.0) for name in names}, data=(a, mu),
    )  # fmt: skip
    data = a @ a.T
    precision = data + np.eye(d)
    covariance = np.linalg.inv(precision)
    mean = covariance @ data @ mu
    truth = -0.5 * mu @ data @ mu + 0.5 * mean @ precision @ mean
    truth -= 0.5 * np.linalg.slogdet(precision)[1]
    return problem, mean, covariance, truth


def off(mean, covariance):
    """A reference whose mean is off by two standard deviations and its covariance by four."""
    shift = 2.0 * np.linalg.cholesky(covariance).sum(axis=1) / np.sqrt(len(mean))
    return Reference.of([mean + shift], [4.0 * covariance])


def z_scores(d, n_keys, **options):
    problem, mean, covariance, truth = gaussian(d)
    runs = [
        warm_start(problem.target(), off(mean, covariance), key, **options) for key in keys(n_keys)
    ]
    assert all(run.agreeing and run.converged for run in runs)
    return np.array([(run.log_evidence - truth) / run.log_evidence_error for run in runs])


def test_errors_are_honest_from_a_reference_that_is_off():
    assert_honest_errors(z_scores(10, 20, n_particles=256))


@pytest.mark.slow
@pytest.mark.parametrize("d", [100, 300])
def test_errors_are_honest_in_many_dimensions(d):
    assert_honest_errors(z_scores(d, 20))


def test_an_exact_reference_gives_the_exact_evidence():
    problem, mean, covariance, truth = gaussian(10)
    run = warm_start(problem.target(), Reference.of([mean], [covariance]), 0, n_particles=64)
    assert abs(run.log_evidence - truth) < 1e-9
    assert len(run.stages) == 1
    assert run.k_hat < 0.5


def test_draws_have_the_posterior_moments():
    problem, mean, covariance, _ = gaussian(5)
    phi = warm_start(problem.target(), off(mean, covariance), keys(1)[0]).particles.phi
    std = np.sqrt(np.diag(covariance))
    # The draws of one ancestor are correlated; half of them count as independent.
    assert_within_errors(phi.mean(axis=0), mean, std * np.sqrt(2 / len(phi)))
    assert_within_errors(phi.std(axis=0), std, std / np.sqrt(len(phi)))


def test_particles_that_hardly_move_are_not_called_converged(monkeypatch):
    """Negative control."""
    problem, mean, covariance, _ = gaussian(10)
    monkeypatch.setattr(moving, "MAX_STEPS", 1)
    run = warm_start(problem.target(), off(mean, covariance), keys(1)[0], max_moves=2)
    assert not run.converged
    assert "not" in str(run.reason)


def test_each_half_is_scaled_by_the_other_where_it_is_now(monkeypatch):
    """Otherwise the halves depend on one another, and the moves do not keep the density."""
    seen = []

    def shape(z):
        seen.append(z.copy())
        return np.eye(z.shape[1])

    def shifted(path, key, beta, shape, step_size, n_steps, z, *rest):
        return (z + 100.0, *rest, np.ones(len(z)))

    monkeypatch.setattr(moving, "_shape", shape)
    monkeypatch.setattr(moving, "hamiltonian_move", shifted)
    problem, mean, covariance, _ = gaussian(3)
    path = Path.between(Reference.of([mean], [covariance]), problem.target(), np.zeros((0, 3)))
    z, flat = np.random.default_rng(0).normal(size=(32, 3)), np.zeros(32)
    moving.move(
        path, as_key(0), 1.0, moving.Moved(z, flat, flat), moving.Tuning.start(3), max_moves=1
    )
    _, of_first, of_second = seen  # the first call is for the check of decorrelation
    np.testing.assert_array_equal(of_first, z[16:])
    np.testing.assert_array_equal(of_second, z[:16] + 100.0)


def banana(d, bend):
    """Standard normal with θ₂ bent by bend·(θ₁² − 1), a map of unit Jacobian: log evidence 0."""
    names = [f"t{i}" for i in range(d)]

    def log_likelihood(theta):
        straight = theta.at[1].add(-bend * (theta[0] ** 2 - 1.0))
        flat = -0.5 * jnp.sum(straight**2) - 0.5 * d * jnp.log(2 * jnp.pi)
        return flat + d * jnp.log(2 * 1e3)  # cancels the uniform prior's density

    box = sbnn.priors.Uniform(-1e3, 1e3)
    return sbnn.Problem(log_likelihood, names, dict.fromkeys(names, box))


@pytest.mark.slow
def test_a_banana_in_fifty_dimensions_has_its_known_evidence():
    reference = Reference.of([np.zeros(50)], [np.eye(50)])
    runs = [warm_start(banana(50, 1.0).target(), reference, key) for key in keys(5)]
    for run in runs:
        assert run.agreeing
        assert_within_errors(run.log_evidence, 0.0, run.log_evidence_error)


def along_banana(bend, u):
    """θ₂ moved by bend·(θ₁² − 1)."""
    return jnp.zeros_like(u).at[:, 1].set(bend * (u[:, 0] ** 2 - 1.0))


def test_the_evidence_of_a_banana_does_not_depend_on_the_shear():
    """The right one leaves a standard normal; a wrong one bends it the other way."""
    problem, reference = banana(5, 1.0), Reference.of([np.zeros(5)], [np.eye(5)])
    runs = {
        bend: warm_start(
            problem.target(), reference, keys(1)[0], n_particles=256,
            shear=Shear(np.float64(bend), along_banana),
        )
        for bend in (1.0, 0.0, -0.5)
    }  # fmt: skip
    assert len(runs[1.0].stages) == 1
    assert abs(runs[1.0].log_evidence) < 1e-9
    assert min(len(runs[-0.5].stages), len(runs[0.0].stages)) > 1
    for run in runs.values():
        assert_within_errors(run.log_evidence, 0.0, run.log_evidence_error)
        assert_within_errors(run.particles.phi.mean(axis=0), np.zeros(5), np.sqrt(3 * 2 / 256))


def two_modes():
    """¾ N(−4, ½²) + ¼ N(4, 1) in two dimensions, with a wide uniform prior: log evidence 0."""

    def log_likelihood(theta):
        parts = [
            jnp.log(w) - 0.5 * jnp.sum((theta - m) ** 2) / s**2 - jnp.log(2 * jnp.pi * s**2)
            for w, m, s in ((0.75, -4.0, 0.5), (0.25, 4.0, 1.0))
        ]
        return jnp.logaddexp(*parts) + 2 * jnp.log(200.0)

    box = sbnn.priors.Uniform(-100, 100)
    return sbnn.Problem(log_likelihood, ["a", "b"], {"a": box, "b": box})


def test_both_modes_are_weighed_if_the_reference_has_both():
    both = Reference.of([[-4.0, -4.0], [4.0, 4.0]], [np.eye(2), np.eye(2)])
    for key in keys(3):
        run = warm_start(two_modes().target(), both, key)
        assert_within_errors(run.log_evidence, 0.0, run.log_evidence_error)
        share = (run.particles.phi[:, 0] < 0).mean()
        assert_within_errors(share, 0.75, np.sqrt(0.75 * 0.25 / len(run.particles.phi) * 4))


def test_a_mode_the_reference_misses_is_left_out_of_the_evidence():
    one = Reference.of([[4.0, 4.0]], [np.eye(2)])
    run = warm_start(two_modes().target(), one, keys(1)[0])
    assert (run.particles.phi[:, 0] > 0).all()
    assert_within_errors(run.log_evidence, np.log(0.25), run.log_evidence_error)


def test_walls_halve_a_symmetric_posterior():
    problem = sbnn.Problem(lambda theta: -0.5 * jnp.sum(theta**2), ["a"], {"a": Normal(0.0, 1.0)})
    reference = Reference.of([[0.5]], [[[0.5]]])
    run = warm_start(problem.target(), reference, keys(1)[0], walls=[[1.0]])
    assert run.particles.phi.min() > 0
    assert_within_errors(run.log_evidence, np.log(0.5 * np.sqrt(0.5)), run.log_evidence_error)


def test_a_reference_outside_the_support_is_refused():
    problem = sbnn.Problem(lambda theta: -(theta[0] ** 2), ["a"], {"a": sbnn.priors.Uniform(-1, 1)})
    with pytest.raises(ValueError, match="start from another point"):
        warm_start(problem.target(), Reference.of([[50.0]], [[[1.0]]]), 0)


class Memory:
    """A checkpoint in memory that stops the run after some stages."""

    def __init__(self, n_stages):
        self.saved, self.left = None, n_stages

    def read(self):
        return self.saved

    def write(self, arrays, values):
        self.saved = ({k: v.copy() for k, v in arrays.items()}, values)
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_an_interrupted_run_continues_with_the_same_numbers():
    problem, mean, covariance, _ = gaussian(3)
    reference = off(mean, covariance)
    whole = warm_start(problem.target(), reference, 0, n_particles=64)
    assert len(whole.stages) > 3
    memory = Memory(2)
    with pytest.raises(KeyboardInterrupt):
        warm_start(problem.target(), reference, 0, n_particles=64, checkpoint=memory)
    resumed = warm_start(problem.target(), reference, 0, n_particles=64, checkpoint=memory)
    assert resumed.log_evidence == whole.log_evidence
    assert (resumed.particles.phi == whole.particles.phi).all()
    assert resumed.stages == whole.stages


def test_the_groups_resample_apart():
    """Rows of a group come from that group only, or its spread would be no error."""
    problem, mean, covariance, _ = gaussian(3)
    target, reference = problem.target(), off(mean, covariance)
    path = sampler.Path.between(reference, target, np.zeros((0, 3)))
    state = sampler.init(0, path, reference, n_particles=64)
    marked = state._replace(excess=np.where(np.arange(64) < 8, 0.0, state.excess - 1e6))
    after, _ = sampler.step(0, marked, path)
    assert after.groups[0].argmax() == 0
