"""Sheared coordinates keep volumes and are inverted."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from helpers import rng

from sbnn._core.float64 import float64
from sbnn.sampling.warm_start import Shear, straightened


def along_banana(bend, u):
    """θ₂ moved by bend·(θ₁² − 1)."""
    return jnp.zeros_like(u).at[:, 1].set(bend * (u[:, 0] ** 2 - 1.0))


def test_a_shear_is_inverted_and_keeps_volumes():
    shear, u = Shear(np.float64(2.0), along_banana), rng(5).normal(size=(7, 4))

    @float64
    def values():
        slope = jax.jacobian(lambda point: shear.bend(point[None])[0])(jnp.asarray(u[0]))
        return shear.straighten(shear.bend(u)), np.linalg.det(slope)

    back, volume = values()
    np.testing.assert_allclose(back, u, atol=1e-12)
    assert abs(volume - 1.0) < 1e-12


def test_a_gaussian_is_straightened_to_first_order():
    """Against the covariance of many straightened draws of a narrow Gaussian."""
    shear, r = Shear(np.float64(1.5), along_banana), rng(6)
    mean, root = np.array([0.7, -0.2, 0.1]), r.normal(size=(3, 3)) / 3
    covariance = 1e-6 * root @ root.T
    own_mean, own = straightened(shear, mean, covariance)
    draws = np.random.default_rng(1).multivariate_normal(mean, covariance, size=40_000)
    u = float64(shear.straighten)(draws)
    np.testing.assert_allclose(own_mean, np.asarray(u).mean(axis=0), atol=3e-5)
    np.testing.assert_allclose(own, np.cov(np.asarray(u).T), atol=0.03 * np.abs(own).max())
    plain_mean, plain = straightened(None, mean, covariance)
    assert (plain_mean == mean).all()
    assert (plain == covariance).all()
