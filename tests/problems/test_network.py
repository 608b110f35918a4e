"""Networks: names, forward pass, Jacobian, and the symmetry group."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_shares, rng

from sbnn.evidence.laplace.models.layout import Layout, jacobian
from sbnn.problems.activations import ACTIVATIONS
from sbnn.problems.network import Network
from sbnn.problems.symmetry import Symmetry

NETS = [
    Network((1, 3, 1)),
    Network((2, 4, 3)),
    Network((2, 3, 2, 2)),
    Network((1, 2, 3, 1), "sin"),
    Network((3, 3, 2), "relu"),
    Network((1, 3, 2, 1), "sigmoid"),
    Network((2, 10, 1), "softplus"),
    Network((2, 1)),
]
ids = [f"{'-'.join(map(str, n.sizes))} {n.activation}" for n in NETS]
every_net = pytest.mark.parametrize("net", NETS, ids=ids)
small_nets = [n for n in NETS if Symmetry(n).order <= 400]
every_small_net = pytest.mark.parametrize("net", small_nets, ids=[str(n.sizes) for n in small_nets])


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def draws(net, n=7, salt=0):
    generator = rng(1, salt)
    return generator.normal(size=(n, net.n_parameters)), generator.normal(size=(5, net.n_inputs))


def outputs(net, phi, x):
    """The network at every row of φ: (n, m, n_outputs)."""
    return np.asarray(jax.jit(jax.vmap(net.forward, in_axes=(0, None)))(phi, x))


def test_names_and_labels_follow_the_study():
    net = Network((1, 3, 1))
    assert net.names == (
        *("W[1][1,1]", "W[1][2,1]", "W[1][3,1]", "b[1][1]", "b[1][2]", "b[1][3]"),
        *("W[2][1,1]", "W[2][1,2]", "W[2][1,3]", "b[2][1]"),
    )
    assert net.labels[1] == r"$W^{[1]}_{21}$"
    assert net.labels[4] == r"$b^{[1]}_{2}$"
    assert Network((1, 12, 1)).labels[11] == r"$W^{[1]}_{12,1}$"
    assert (net.n_inputs, net.n_outputs, net.n_layers, net.n_parameters) == (1, 1, 2, 10)
    assert net.slices[1] == (slice(6, 9), slice(9, 10))


@every_net
def test_flatten_inverts_unflatten_and_names_match_the_entries(net):
    phi, _ = draws(net)
    np.testing.assert_array_equal(net.flatten(net.unflatten(phi)), phi)
    layers = net.unflatten(phi[0])
    for name, value in zip(net.names, phi[0]):
        kind, layer, where = name[0], int(name[2]), name[5:-1].split(",")
        entry = layers[layer - 1][kind == "b"][tuple(int(i) - 1 for i in where)]
        assert entry == value
    assert len(set(net.names)) == len(set(net.labels)) == net.n_parameters


@every_net
def test_forward_matches_the_textbook_formula(net):
    phi, x = draws(net)
    activation = ACTIVATIONS[net.activation].value
    for one, found in zip(phi, outputs(net, phi, x)):
        hidden = x
        layers = net.unflatten(one)
        for weights, biases in layers[:-1]:
            hidden = np.asarray(activation(hidden @ weights.T + biases))
        expected = hidden @ layers[-1][0].T + layers[-1][1]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@every_net
def test_closed_form_jacobian_matches_automatic_differentiation(net):
    phi, x = draws(net)
    expected = jax.jit(jax.jacrev(lambda p: net.forward(p, x)))(jnp.asarray(phi[0]))
    _, found = jacobian(phi[0], x.T, Layout(net.sizes), net.activation)
    assert found.shape == (net.n_parameters, net.n_outputs, 5)
    np.testing.assert_allclose(found.T, expected, rtol=1e-11, atol=1e-12)


def test_symmetry_group_has_the_expected_order():
    assert Symmetry(Network((1, 2, 1))).order == 8
    assert Symmetry(Network((1, 3, 1))).order == 48
    assert Symmetry(Network((1, 2, 3, 1))).order == 8 * 48
    assert Symmetry(Network((1, 3, 1), "relu")).order == 6  # permutations only
    assert Symmetry(Network((2, 1))).order == 1


@every_small_net
def test_every_group_element_leaves_the_output_unchanged(net):
    phi, x = draws(net)
    images = np.array([sign * phi[0][index] for index, sign in Symmetry(net).elements()])
    values = outputs(net, images, x)
    np.testing.assert_allclose(
        values, np.broadcast_to(values[0], values.shape), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_array_equal(images[0], phi[0])  # the identity comes first
    assert len(np.unique(images, axis=0)) == len(images) == Symmetry(net).order


def test_flipping_a_single_sign_changes_the_output():
    """Negative control: the check above can fail."""
    net = Network((1, 3, 1))
    phi, x = draws(net)
    wrong = phi[0].copy()
    wrong[0] *= -1
    assert not np.allclose(net.forward(wrong, x), net.forward(phi[0], x))


@every_net
def test_random_elements_preserve_outputs_and_extra_parameters(net):
    symmetry = Symmetry(net, n_extra=2)
    phi, x = draws(net, n=20)
    with_extra = np.hstack([phi, rng(2).normal(size=(20, 2))])
    moved = symmetry.apply_random(rng(3), with_extra)
    np.testing.assert_array_equal(moved[:, -2:], with_extra[:, -2:])
    np.testing.assert_allclose(
        outputs(net, moved[:, :-2], x), outputs(net, phi, x), rtol=1e-10, atol=1e-12
    )


def test_random_elements_are_uniform_over_the_group():
    net = Network((1, 3, 1))
    phi, _ = draws(net, n=1)
    moved = Symmetry(net).apply_random(rng(4), np.repeat(phi, 9600, axis=0))
    images, counts = np.unique(moved, axis=0, return_counts=True)
    assert len(images) == 48
    assert_shares(counts, np.full(48, 1 / 48))


@every_small_net
def test_folding_any_image_gives_the_same_representative(net):
    phi, x = draws(net, n=4)
    folded = Symmetry(net).fold(phi)
    for image in Symmetry(net).expand(phi):
        np.testing.assert_array_equal(Symmetry(net).fold(image), folded)
    np.testing.assert_array_equal(Symmetry(net).fold(folded), folded)
    np.testing.assert_allclose(
        outputs(net, folded, x), outputs(net, phi, x), rtol=1e-10, atol=1e-12
    )


@every_small_net
def test_expand_returns_the_orbit_including_the_fold(net):
    phi, _ = draws(net, n=3)
    orbit = Symmetry(net).expand(phi)
    assert orbit.shape == (Symmetry(net).order, 3, net.n_parameters)
    folded = Symmetry(net).fold(phi)
    for i in range(3):
        assert np.any(np.all(orbit[:, i] == folded[i], axis=1))


@pytest.mark.parametrize(("permute", "flip", "order"), [(True, False, 6), (False, True, 8)])
def test_symmetry_can_be_restricted_to_a_subgroup(permute, flip, order):
    net = Network((1, 3, 1))
    part = Symmetry(net, permute=permute, flip=flip)
    phi, _ = draws(net, n=2)
    assert part.order == order == len(part.expand(phi))
    folded = part.fold(phi)
    for image in part.expand(phi):
        np.testing.assert_array_equal(part.fold(image), folded)
    outgoing = np.abs(part.apply_random(rng(5), phi)) if flip else part.apply_random(rng(5), phi)
    kept = np.abs(phi) if flip else phi
    if permute:
        outgoing, kept = np.sort(outgoing, axis=1), np.sort(kept, axis=1)
    np.testing.assert_array_equal(outgoing, kept)


def test_listing_a_large_group_raises_with_a_remedy():
    with pytest.raises(ValueError, match=r"more than `limit`.*use `random`"):
        next(Symmetry(Network((1, 8, 1))).elements())


def test_unknown_activation_raises_and_lists_the_choices():
    with pytest.raises(ValueError, match=r"'gelu'.*choose one of tanh, relu"):
        Network((1, 3, 1), "gelu")


@pytest.mark.parametrize("sizes", [(1,), (), (1, 0, 1), (1, -3, 1), (1, 2.5, 1)])
def test_invalid_sizes_raise(sizes):
    with pytest.raises(ValueError, match="widths"):
        Network(sizes)
