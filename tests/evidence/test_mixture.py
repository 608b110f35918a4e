"""Mixtures fitted to particles: density, draws, symmetry, and invalid input."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_within_errors, rng
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from sbnn.evidence.mixture import (
    GaussianMixture,
    expectation_maximisation,
    kernel_density,
)
from sbnn.problems.network import Network
from sbnn.problems.symmetry import Symmetry


def two_clusters(n: int = 400) -> np.ndarray:
    r = rng(20)
    right = r.normal(size=(n, 2)) @ np.array([[1.0, 0.0], [0.6, 0.5]])
    return np.where(r.uniform(size=(n, 1)) < 0.3, right - [4.0, 1.0], right - [-3.0, -2.0])


def made(kind: str, particles: np.ndarray, log_normaliser: float = 0.0) -> GaussianMixture:
    if kind == "kde":
        return kernel_density(particles, log_normaliser)
    return expectation_maximisation(particles, 2, log_normaliser)


@pytest.mark.parametrize("kind", ["kde", "em"])
def test_density_integrates_to_its_normaliser(kind):
    mixture = made(kind, two_clusters(60), log_normaliser=-2.5)
    axis = np.linspace(-12, 12, 241)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    total = np.exp(mixture.log_density(grid)).sum() * (axis[1] - axis[0]) ** 2
    assert np.isclose(np.log(total), -2.5, atol=1e-4)


@pytest.mark.parametrize("kind", ["kde", "em"])
def test_draws_have_the_moments_of_the_density(kind):
    mixture = made(kind, two_clusters())
    weights = np.exp(mixture.log_weights)
    mean = np.einsum("gk,gki->i", weights, mixture.means)
    second = np.einsum("g,gij->ij", weights.sum(axis=1), mixture.covariances)
    second += np.einsum("gk,gki,gkj->ij", weights, mixture.means, mixture.means)
    draws = mixture.draws(rng(21), 100_000)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert_within_errors(draws.mean(axis=0), mean, error, "mean of the draws")
    products = np.einsum("ni,nj->nij", draws, draws)
    error = products.std(axis=0) / np.sqrt(len(draws))
    assert_within_errors(products.mean(axis=0), second, error, "second moments")


def test_density_is_the_sum_of_its_kernels():
    mixture = expectation_maximisation(two_clusters(), 3, 1.7)
    points = rng(22).normal(size=(50, 2)) * 3
    kernels = [
        w[0] + multivariate_normal.logpdf(points, m[0], c)
        for w, m, c in zip(mixture.log_weights, mixture.means, mixture.covariances)
    ]
    np.testing.assert_allclose(
        mixture.log_density(points), 1.7 + logsumexp(kernels, axis=0), rtol=1e-10
    )


def test_density_is_accurate_far_from_the_origin():
    """Distances are computed from differences of points, not of their squares."""
    particles = two_clusters(50)
    points = rng(23).normal(size=(20, 2))
    near, far = kernel_density(particles), kernel_density(particles + 1e6)
    np.testing.assert_allclose(
        far.log_density(points + 1e6), near.log_density(points), rtol=0, atol=1e-6
    )


def test_kernel_covariance_is_bandwidth_squared_times_particle_covariance():
    particles = two_clusters()
    mixture = kernel_density(particles, bandwidth=0.3)
    assert mixture.n_kernels == len(particles)
    assert mixture.covariances.shape == (1, 2, 2)
    np.testing.assert_allclose(
        mixture.covariances[0], 0.09 * np.cov(particles.T, bias=True), rtol=1e-5, atol=1e-5
    )


def test_em_finds_two_clusters_with_their_masses():
    mixture = expectation_maximisation(two_clusters(4000), 2)
    order = np.argsort(mixture.means[:, 0, 0])
    error = np.sqrt(0.3 * 0.7 / 4000)
    assert_within_errors(np.exp(mixture.log_weights[order[0], 0]), 0.3, error, "mass")
    np.testing.assert_allclose(mixture.means[order, 0], [[-4, -1], [3, 2]], atol=0.2)


def test_em_chooses_the_number_of_components_by_bic():
    assert expectation_maximisation(two_clusters(2000), [1, 2, 4, 8]).n_kernels == 2


def test_em_does_not_depend_on_units():
    """The variance floor is relative to the scale of the particles."""
    particles = two_clusters()
    scale = np.array([1e6, 1e-6])
    one, two = (expectation_maximisation(p, 2) for p in (particles, particles * scale))
    np.testing.assert_allclose(two.means, one.means * scale, rtol=1e-6)
    np.testing.assert_allclose(two.covariances, one.covariances * np.outer(scale, scale), rtol=1e-6)


def test_em_does_not_collapse_onto_repeated_particles():
    particles = np.repeat(two_clusters(12), 20, axis=0)
    mixture = expectation_maximisation(particles, 12)
    variance = np.diagonal(mixture.covariances, axis1=1, axis2=2)
    assert (variance >= 0.9e-3 * particles.var(axis=0)).all()


@pytest.fixture(scope="module")
def folded_mixture():
    network = Network((1, 2, 1))
    folded = Symmetry(network).fold(rng(24).normal(size=(60, network.n_parameters)))
    return network, expectation_maximisation(folded, 2, -1.3)


def test_expanding_gives_every_image_the_same_mass(folded_mixture):
    network, mixture = folded_mixture
    expanded = mixture.expand(Symmetry(network))
    assert expanded.n_kernels == 8 * mixture.n_kernels
    masses = np.exp(expanded.log_weights).reshape(8, -1).sum(axis=1)
    np.testing.assert_allclose(masses, np.full(8, 1 / 8), rtol=1e-12)
    assert expanded.log_normaliser == mixture.log_normaliser


def test_expanded_density_is_invariant_under_the_group(folded_mixture):
    network, mixture = folded_mixture
    expanded = mixture.expand(Symmetry(network))
    phi = rng(25).normal(size=(10, network.n_parameters))
    values = [expanded.log_density(image) for image in Symmetry(network).expand(phi)]
    np.testing.assert_allclose(values, np.tile(values[0], (8, 1)), rtol=1e-9)
    folded = [mixture.log_density(image) for image in Symmetry(network).expand(phi)]
    with pytest.raises(AssertionError):  # negative control: the folded one is not
        np.testing.assert_allclose(folded, np.tile(folded[0], (8, 1)), rtol=1e-2)


def test_expanding_without_symmetry_changes_nothing(folded_mixture):
    network, mixture = folded_mixture
    assert mixture.expand(None) is mixture
    assert mixture.expand(Symmetry(network, permute=False, flip=False)) is mixture


@pytest.mark.parametrize("size", [0, 13, 20])
def test_more_components_than_distinct_samples_raise(size):
    particles = np.repeat(rng(27).normal(size=(12, 2)), 5, axis=0)
    with pytest.raises(ValueError, match=rf"`n_components`={size}.*12 distinct samples; lower it"):
        expectation_maximisation(particles, size)


def plain(log_weights=0.0, mean=0.0, covariance=None):
    covariance = np.eye(2) if covariance is None else np.asarray(covariance, dtype=float)
    return GaussianMixture(
        np.atleast_2d(np.asarray(log_weights, dtype=float)),
        np.full((1, np.size(log_weights), 2), mean),
        covariance[None],
    )


@pytest.mark.parametrize("covariance", [[[1, 2], [2, 1]], [[1, 0], [0, 0]], [[-1, 0], [0, 1]]])
def test_covariance_that_is_not_positive_definite_raises(covariance):
    with pytest.raises(ValueError, match="positive definite; the smallest eigenvalue"):
        plain(covariance=covariance)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_values_raise(bad):
    with pytest.raises(ValueError, match="finite"):
        plain(mean=bad)
    with pytest.raises(ValueError, match="finite"):
        plain(covariance=[[bad, 0], [0, 1]])
    with pytest.raises(ValueError, match="weight above zero"):
        plain(log_weights=[0.0, np.nan])
    particles = two_clusters(20)
    particles[3, 1] = bad
    with pytest.raises(ValueError, match=r"finite|NaN|infinity"):
        kernel_density(particles)
    with pytest.raises(ValueError, match=r"finite|NaN|infinity"):
        expectation_maximisation(particles, 2)


def test_some_but_not_all_kernels_can_have_zero_weight():
    with_zero = plain(log_weights=[0.0, -np.inf])
    np.testing.assert_allclose(with_zero.log_density(np.ones((1, 2))), plain().log_density([1, 1]))
    assert np.isfinite(with_zero.draws(rng(28), 10)).all()
    weighted = kernel_density(two_clusters(5), weights=np.array([1.0, 0.0, 2.0, 0.0, 1.0]))
    assert np.isfinite(weighted.log_density(np.zeros((1, 2)))).all()
    with pytest.raises(ValueError, match="At least one kernel"):
        plain(log_weights=[-np.inf, -np.inf])


def test_inconsistent_mixture_shapes_raise():
    with pytest.raises(ValueError, match="shapes do not fit"):
        GaussianMixture(np.zeros((1, 2)), np.zeros((1, 3, 2)), np.eye(2)[None])


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.nan])
def test_invalid_bandwidth_raises(bandwidth):
    with pytest.raises(ValueError, match="`bandwidth` must be a finite number above zero"):
        kernel_density(two_clusters(20), bandwidth=bandwidth)


def test_constant_particles_raise():
    with pytest.raises(ValueError, match="constant in a coordinate"):
        kernel_density(np.ones((10, 2)))
