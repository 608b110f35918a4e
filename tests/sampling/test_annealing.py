"""Draws of p(φ, log α|D) from a population at an optimum, against integrals on a grid."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import rng
from scipy import stats
from scipy.special import logsumexp

import sbnn
from sbnn._core.float64 import float64
from sbnn.priors import Hyperprior, Normal
from sbnn.sampling.annealing import _data_information, heat_and_cool
from sbnn.sampling.checkpoints import Folder, FolderCheckpoint
from sbnn.sampling.joint import LOG_ALPHA_RANGE, redraw_log_alpha, to_parameters
from sbnn.sampling.moves.base import prior_log_density

# Three parameters that the likelihood does not couple, so that each marginal is an integral over
# one dimension: one the data support, one they hardly inform, and one with a known prior.
MEANS, STDS = np.array([2.0, 0.3, 0.0]), np.array([0.2, 1.0, 0.5])


def log_likelihood(phi, xp=jnp):
    return -0.5 * xp.sum(((phi - MEANS) / STDS) ** 2, axis=-1)


def toy():
    return sbnn.Problem(
        lambda phi: log_likelihood(phi),
        names=["asked", "spare", "known"],
        priors={"known": Normal(1.0, 1.0)},
        ard=["asked", "spare"],
    )


@functools.cache
def marginal(i: int, hyperprior: Hyperprior):
    """Grid of φ and p(φᵢ|D) on it: the likelihood times ∫ N(φ|0, 1/α) p(log α) d log α."""
    phi = np.linspace(-8.0, 8.0, 8_001)
    like = stats.norm.logpdf(phi, MEANS[i], STDS[i])
    if i == 2:
        log_p = like + stats.norm.logpdf(phi, 1.0, 1.0)
    else:
        log_alpha = np.linspace(*LOG_ALPHA_RANGE, 801)
        log_h = hyperprior.shape * log_alpha - hyperprior.rate * np.exp(log_alpha)
        # ∫ over log α in chunks of φ
        parts = [
            logsumexp(log_h + 0.5 * log_alpha - 0.5 * np.exp(log_alpha) * p[:, None] ** 2, axis=1)
            for p in np.array_split(phi, 20)
        ]
        log_p = like + np.concatenate(parts)
    p = np.exp(log_p - log_p.max())
    return phi, p / p.sum()


def start(n: int, seed: int) -> np.ndarray:
    """The posterior at an optimum that prunes the second parameter."""
    return rng(seed).normal([2.0, 0.0, 0.2], [0.2, 0.01, 0.45], size=(n, 3))


@functools.cache
@float64
def draws(n=2000, key=3, **options):
    problem = toy()
    joint, ll, n_evaluations = heat_and_cool(problem, Hyperprior(), start(n, 1), key, **options)
    return problem, np.asarray(to_parameters(joint, problem.ard)), joint, ll, n_evaluations


def z_scores(phi: np.ndarray) -> list[float]:
    """Share of draws below three levels of each parameter against the integral; N/4 independent."""
    scores = []
    for i, levels in enumerate([(1.8, 2.0, 2.2), (-0.5, 0.05, 0.6), (-0.3, 0.2, 0.6)]):
        grid, p = marginal(i, Hyperprior())
        for level in levels:
            exact = float(p[grid < level].sum())
            error = np.sqrt(exact * (1 - exact) / (len(phi) / 4))
            scores.append((float((phi[:, i] < level).mean()) - exact) / error)
    return scores


def test_draws_follow_the_hierarchical_posterior():
    problem, phi, _, ll, n_evaluations = draws()
    assert np.abs(z_scores(phi)).max() < 4
    np.testing.assert_allclose(ll, problem.log_likelihood(phi), rtol=1e-10)
    assert n_evaluations > 500 * len(phi)


def test_initial_population_does_not_follow_the_hierarchical_posterior():
    assert np.abs(z_scores(start(2000, 1))).max() > 10


def test_log_alpha_follows_its_marginal():
    """p(log α|D) of the spare parameter: ∫ L(φ) N(φ|0, 1/α) dφ is a Gaussian in its mean."""
    _, _, joint, _, _ = draws()
    log_alpha = np.linspace(*LOG_ALPHA_RANGE, 20_001)
    h = Hyperprior()
    log_p = h.shape * log_alpha - h.rate * np.exp(log_alpha)
    log_p += stats.norm.logpdf(MEANS[1], 0.0, np.sqrt(STDS[1] ** 2 + np.exp(-log_alpha)))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    for level in (0.0, 4.0, 8.0):
        exact = float(p[log_alpha < level].sum())
        error = np.sqrt(exact * (1 - exact) / (len(joint) / 4))
        assert abs((joint[:, 4] < level).mean() - exact) < 4 * error


@float64
def test_redrawing_log_alpha_keeps_phi_and_range():
    problem = toy()
    joint = np.column_stack([rng(5).normal(size=(500, 3)), rng(6).uniform(-13, 13, (500, 2))])
    new = redraw_log_alpha(rng(7), problem, joint, Hyperprior())
    before, after = (np.asarray(to_parameters(j, problem.ard)) for j in (joint, new))
    np.testing.assert_allclose(after, before, rtol=1e-12)
    assert (new[:, 3:] != joint[:, 3:]).mean() > 0.9
    assert ((new[:, 3:] > LOG_ALPHA_RANGE[0]) & (new[:, 3:] < LOG_ALPHA_RANGE[1])).all()


def test_estimated_information_of_gaussian_draws_is_that_of_the_data():
    """Draws of N(0, (H + diag α)⁻¹) at an α with αE[φ²] = 1 give H."""
    alpha = np.array([0.5, 40.0])
    information = np.array([[9.0, 2.0], [2.0, 1.0]])
    covariance = np.linalg.inv(information + np.diag(alpha))
    mean = np.sqrt(np.maximum(1 / alpha - np.diag(covariance), 0.0))
    phi = rng(8).multivariate_normal(mean, covariance, size=200_000)
    found = _data_information(phi, np.array([True, True]))
    np.testing.assert_allclose(found, information, atol=0.02 * 41)
    assert (np.linalg.eigvalsh(found) > 0).all()


def test_black_box_gives_the_same_distribution():
    seen: list[np.ndarray] = []

    def evaluate(phi):
        seen.append(phi)
        return log_likelihood(phi, np)

    _, phi, _, _, _ = draws(n=600, key=4, evaluate=evaluate)
    assert np.abs(z_scores(phi)).max() < 4
    lows = min(batch[:, 2].min() for batch in seen)
    assert len(seen) > 500  # the black box was sampled
    assert lows < -1


def test_interrupted_annealing_continues_to_the_same_result(tmp_path):
    whole = draws(n=100)
    folder = Folder(tmp_path, {"a": 1})
    calls = 0

    def evaluate(phi):
        nonlocal calls
        calls += 1
        if calls == 500:
            raise KeyboardInterrupt
        return log_likelihood(phi, np)

    with pytest.raises(KeyboardInterrupt):
        draws(n=100, evaluate=evaluate, checkpoint=FolderCheckpoint(folder, "average"))
    folder.close()
    again = Folder(tmp_path, {"a": 1})
    calls = 10_000
    on = draws(n=100, evaluate=evaluate, checkpoint=FolderCheckpoint(again, "average"))
    again.close()
    unbroken = draws(n=100, evaluate=lambda phi: log_likelihood(phi, np))
    np.testing.assert_array_equal(on[2], unbroken[2])
    assert on[4] == unbroken[4] == whole[4] - 100  # the last, exact evaluation
    assert np.isfinite(np.asarray(prior_log_density(toy().prior_at(np.zeros(2)), on[1]))).all()
