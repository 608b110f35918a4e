"""Curvatures against automatic differentiation and expectations over the data."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import rng

import sbnn
from sbnn.evidence.curvature import curvatures


def wave(theta):
    t = jnp.linspace(0.0, 3.0, 12)
    return jnp.stack([theta[0] * jnp.sin(theta[1] * t), theta[2] * t], axis=1)


@pytest.mark.parametrize("noise_std", [None, [0.2, 0.5]])
def test_curvature_of_a_model_is_the_expected_curvature_over_data(noise_std):
    """Fisher information = −E ∂² log p over y; log p is quadratic in y, so two points suffice.

    With residuals ±σ in every observation, E r = 0 and E r² = σ² hold exactly.
    """
    theta = np.array([1.3, 2.1, -0.4])
    sigma = np.array([0.2, 0.5])
    with jax.enable_x64(True):
        clean = np.asarray(wave(theta))
    phi = theta if noise_std is not None else np.concatenate([theta, np.log(sigma)])
    hessians = []
    for sign in (-1, 1):
        problem = sbnn.Problem.from_model(
            wave, clean + sign * sigma, names=["a", "b", "c"], noise_std=noise_std,
            ard=["a", "b", "c"],
            **({} if noise_std else {"noise_prior": sbnn.priors.Uniform(-9.0, 9.0)}),
        )  # fmt: skip
        with jax.enable_x64(True):
            target = problem.target()
            density = lambda p, target=target: target.evaluate(p[None])[0]
            hessians.append(-np.asarray(jax.jit(jax.hessian(density))(jnp.asarray(phi))))
    np.testing.assert_allclose(
        curvatures(problem, phi)[0], np.mean(hessians, axis=0), rtol=1e-9, atol=1e-9
    )
    assert np.abs(hessians[0] - hessians[1]).max() > 1.0  # one data set alone is not enough


def test_gauss_newton_equals_the_hessian_at_a_perfect_fit():
    """For zero residuals, Gauss–Newton is the Hessian."""
    x, y = sbnn.datasets.boxcar(seed=0)
    problem = sbnn.network_problem(x, y, (3,), noise_std=0.5)
    phi = rng(44).normal(size=10)
    y = np.asarray(problem.network.forward(jnp.asarray(phi), problem.x))
    perfect = sbnn.network_problem(problem.x, y, (3,), noise_std=0.5)
    with jax.enable_x64(True):
        target = perfect.target()
        hessian = -jax.jit(jax.hessian(lambda t: target.evaluate(t[None])[0]))(jnp.asarray(phi))
    np.testing.assert_allclose(curvatures(perfect, phi)[0], hessian, rtol=1e-5, atol=1e-4)
