"""Modes: all eight of the small net are found as one orbit with equal masses."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_shares, keys

import sbnn
from sbnn.methods.orbits import _distinct
from sbnn.priors import Uniform


@pytest.fixture(scope="module")
def orbits(small_result):
    return small_result.modes()


def test_small_net_has_one_orbit_of_eight_modes(orbits, small_net):
    assert len(orbits) == 1
    images = orbits[0].images
    assert images.shape == (8, 7)
    assert len(np.unique(images.round(6), axis=0)) == 8
    # Boxcar: two neurons with output weights of size 2 and input weights of opposite sign.
    np.testing.assert_allclose(np.abs(orbits[0].phi[4:6]), 2.0, atol=0.5)
    np.testing.assert_allclose(small_net.symmetry.fold(images), np.tile(orbits[0].phi, (8, 1)))
    values = small_net.log_likelihood(images)
    np.testing.assert_allclose(values, values[0], rtol=1e-10)
    assert orbits[0].log_posterior == pytest.approx(values[0] - 7 * np.log(20), rel=1e-9)


def test_the_eight_modes_have_equal_mass(orbits, small_result):
    assert orbits[0].masses.sum() == pytest.approx(1.0)
    assert_shares(len(small_result.phi) * orbits[0].masses, np.full(8, 1 / 8), "masses of modes")


def test_no_draw_has_higher_posterior_than_the_mode(orbits, small_result):
    log_prior = -7 * np.log(20)
    assert orbits[0].log_posterior >= (small_result.log_likelihood + log_prior).max()


def two_peaks(theta):
    return jnp.logaddexp(
        jnp.log(0.3) - 0.5 * jnp.sum((theta + 4) ** 2),
        jnp.log(0.7) - 0.5 * jnp.sum((theta - 4) ** 2),
    )


def test_modes_without_symmetry_are_separate_orbits():
    problem = sbnn.Problem(two_peaks, ["a", "b"], {"a": Uniform(-9, 9), "b": Uniform(-9, 9)})
    result = sbnn.standard(problem, key=keys(1)[0], n_particles=1000)
    orbits = result.modes(n_starts=200)
    heights = [orbit.log_posterior for orbit in orbits]
    assert heights == sorted(heights, reverse=True)
    np.testing.assert_allclose(orbits[0].phi, 4.0, atol=1e-2)
    assert [orbit.images.shape for orbit in orbits] == [(1, 2)] * len(orbits)
    assert sum(orbit.masses.sum() for orbit in orbits) == pytest.approx(1.0)


def test_mode_at_the_edge_of_its_box_is_kept():
    problem = sbnn.Problem(lambda t: 3.0 * t[0], ["a"], {"a": Uniform(-1.0, 1.0)})
    orbits = sbnn.standard(problem, key=keys(1)[0], n_particles=500).modes()
    assert orbits[0].phi[0] == pytest.approx(1.0)


def test_modes_of_a_black_box_raise():
    def log_likelihood(theta):
        return -0.5 * float(theta[0]) ** 2 / 0.1**2

    problem = sbnn.Problem(log_likelihood, ["a"], {"a": Uniform(-1, 1)})
    assert problem.black_box
    result = sbnn.standard(problem, key=keys(1)[0], n_particles=100)
    with pytest.raises(ValueError, match=r"needs gradients.*black box"):
        result.modes(n_starts=3)


def test_mode_that_equals_its_image_is_listed_once():
    points = np.array([[1.0, 0.0], [1.0, 1e-9], [-1.0, 0.0]])
    assert len(_distinct(points)) == 2
