"""Problems: likelihoods against closed forms, and errors with a remedy for invalid input."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers import gaussian_problem, keys, rng
from scipy import stats

import sbnn
from sbnn.priors import Custom, JointPrior, LogNormal, Normal, Uniform
from sbnn.problems.fingerprints import fingerprint
from sbnn.problems.network import Network
from sbnn.problems.symmetry import Symmetry, invariant_symmetry

X, Y = sbnn.datasets.boxcar(n=8)


def net(**options):
    options = {"hidden_layer_sizes": (2,), "noise_std": 0.5, **options}
    return sbnn.network_problem(options.pop("X", X), options.pop("y", Y), **options)


def test_network_log_likelihood_is_gaussian():
    problem = net()
    phi = rng(20).normal(size=(5, 7))
    outputs = np.array([np.asarray(problem.network.forward(p, X[:, None]))[:, 0] for p in phi])
    expected = stats.norm.logpdf(Y, outputs, 0.5).sum(axis=1)
    found = problem.log_likelihood(phi)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-5)  # forward above ran in float32
    with jax.enable_x64(True):
        outputs = np.array([np.asarray(problem.network.forward(p, X[:, None]))[:, 0] for p in phi])
    np.testing.assert_allclose(found, stats.norm.logpdf(Y, outputs, 0.5).sum(axis=1), rtol=1e-12)
    assert problem.log_likelihood(phi[0]) == found[0]


def test_each_output_has_its_own_noise_level():
    y = np.column_stack([Y, 3 * Y, -Y])
    known = net(y=y, noise_std=[0.1, 0.2, 0.3], hidden_layer_sizes=())
    inferred = net(y=y, noise_std=None, hidden_layer_sizes=())
    assert inferred.names[-3:] == ("log_sigma[1]", "log_sigma[2]", "log_sigma[3]")
    assert r"\log\sigma_{2}" in inferred.labels[-2]
    phi = rng(21).normal(size=(4, known.n_parameters))
    both = np.hstack([phi, np.log(np.tile([0.1, 0.2, 0.3], (4, 1)))])
    np.testing.assert_allclose(inferred.log_likelihood(both), known.log_likelihood(phi), rtol=1e-12)
    outputs = np.zeros((4, 1, 3))
    np.testing.assert_allclose(
        inferred.centre_and_noise(both, outputs)[1], known.centre_and_noise(phi, outputs)[1]
    )
    np.testing.assert_allclose(known.centre_and_noise(phi, outputs)[1][0, 0], [0.1, 0.2, 0.3])
    assert not inferred.ard[-3:].any()
    assert inferred.ard[:-3].all()
    assert isinstance(inferred.priors[-1], Normal)
    assert net(noise_std=None, noise_prior=Normal(-1.0, 0.3)).priors[-1] == Normal(-1.0, 0.3)


def test_likelihood_with_inferred_noise_is_invariant_under_the_symmetry_group():
    problem = net(noise_std=None, hidden_layer_sizes=(3, 2))
    phi = rng(22).normal(size=(30, problem.n_parameters))
    moved = problem.symmetry.apply_random(rng(23), phi)
    assert not np.allclose(moved, phi)
    np.testing.assert_allclose(
        problem.log_likelihood(moved), problem.log_likelihood(phi), rtol=1e-10
    )


def rapid_and_exact(problem, phi):
    with jax.enable_x64(True):
        target = problem.target()
        return tuple(
            np.asarray(jax.jit(f)(phi)) for f in (target.evaluate_rapidly, target.evaluate)
        )


@pytest.mark.parametrize(("hidden", "activation"), [((3,), "tanh"), ((4, 3), "relu"), ((), "tanh")])
@pytest.mark.parametrize("noise_std", [None, 0.5, 1e-7])
def test_rapid_log_likelihood_is_exact_up_to_rounding(hidden, activation, noise_std):
    x, y = rng(20).normal(size=(40, 2)), rng(21).normal(size=(40, 2))
    problem = sbnn.network_problem(x, y, hidden, activation, noise_std)
    phi = rng(22).normal(size=(200, problem.n_parameters))
    rapid, exact = rapid_and_exact(problem, phi)
    single = problem._walk_precision == "float32"
    assert single == (noise_std == 0.5)  # inferred or tiny noise: float32 would not be enough
    np.testing.assert_allclose(rapid, exact, rtol=1e-6 if single else 1e-12)


def test_single_precision_changes_the_log_likelihood_by_less_than_the_bound():
    x, y = sbnn.datasets.boxcar()
    problem = sbnn.network_problem(x, y, (3,), noise_std=0.5)
    assert problem._walk_precision == "float32"
    # near the posterior mode, which determines the log evidence
    draws = sbnn.laplace(problem, key=1).draws(500)
    rapid, exact = rapid_and_exact(problem, draws)
    near = exact > exact.max() - 30
    assert near.sum() > 20
    difference = np.abs(rapid - exact)[near]
    assert 0 < difference.max() < 1e-3


def test_known_priors_replace_ard_by_name_and_group():
    problem = net(priors={"b": Normal(0, 1), "b[1][2]": LogNormal()})
    known = {n: p for n, p, a in zip(problem.names, problem.priors, problem.ard) if not a}
    assert known == {"b[1][1]": Normal(0, 1), "b[1][2]": LogNormal(), "b[2][1]": Normal(0, 1)}
    assert all(p == Uniform(-20, 20) for p, a in zip(problem.priors, problem.ard) if a)
    assert problem.log_box_volume() == pytest.approx(4 * np.log(40))
    hybrid = problem.prior_at(np.zeros(4))
    phi = np.full((1, 7), 0.5)
    assert np.asarray(hybrid.log_density(phi))[0] == pytest.approx(
        6 * stats.norm.logpdf(0.5) + stats.lognorm.logpdf(0.5, 1.0), rel=1e-5
    )


def test_ard_box_can_be_another_uniform_prior():
    problem = net(priors={"W[1]": Uniform(-5, 5)}, ard=["W", "b"])
    assert problem.ard.all()
    assert problem.priors[0] == Uniform(-5, 5)
    assert problem.priors[-1] == Uniform(-20, 20)


def test_jax_and_black_box_functions_are_distinguished_without_running_them():
    def black_box(theta):
        assert isinstance(theta, np.ndarray), "called with a tracer"
        return float(np.sum(theta))

    calls = []

    def counted(theta):
        calls.append(1)
        return float(theta[0])

    assert sbnn.Problem(black_box, ["a"], {"a": Normal()}).black_box
    sbnn.Problem(counted, ["a"], {"a": Normal()}, black_box=True)
    assert calls == []
    assert not gaussian_problem(2)[0].black_box


def test_black_box_and_jax_problems_have_the_same_log_likelihood():
    jax_problem, _ = gaussian_problem(3)
    black_box, _ = gaussian_problem(3, black_box=True)
    theta = rng(24).normal(size=(6, 3))
    # The black box calls jnp too: its values agree only if it runs in 64-bit mode.
    np.testing.assert_allclose(
        black_box.log_likelihood(theta), jax_problem.log_likelihood(theta), rtol=1e-12
    )


def test_nan_and_infinite_log_likelihoods_become_minus_infinity():
    def log_likelihood(theta):
        return jnp.where(theta[0] > 1, jnp.nan, jnp.where(theta[0] < -1, jnp.inf, theta[0]))

    def plain(theta):
        return float("nan") if theta[0] > 1 else float("inf") if theta[0] < -1 else theta[0].item()

    points = np.array([[2.0], [-2.0], [0.5]])
    for function in (log_likelihood, plain):
        problem = sbnn.Problem(function, ["a"], {"a": Uniform(-3, 3)})
        np.testing.assert_array_equal(problem.log_likelihood(points), [-np.inf, -np.inf, 0.5])


# Invalid input raises when the problem is created, with a remedy.

BAD = {
    "NaN in X": ({"X": np.r_[np.nan, X[1:]]}, "X contains nan in row 0.*remove or fill"),
    "inf in X": ({"X": np.r_[X[:-1], np.inf]}, "X contains inf in row 7.*remove or fill"),
    "NaN in y": ({"y": np.r_[Y[:3], np.nan, Y[4:]]}, "y contains nan in row 3.*remove or fill"),
    "inf in y": ({"y": np.r_[-np.inf, Y[1:]]}, "y contains -inf in row 0.*remove or fill"),
    "rows differ": ({"y": Y[:-1]}, "X has 8 rows and y has 7; they must be equal"),
    "three dimensions": ({"X": np.zeros((8, 1, 1))}, "X must have one or two dimensions"),
    "no columns": ({"X": np.zeros((8, 0))}, "X must have one or two dimensions"),
    "a scalar": ({"y": 3.0}, "y must have one or two dimensions"),
    "text": ({"X": ["a"] * 8}, "X must be numeric"),
    "no samples": ({"X": [], "y": []}, "At least two samples are needed; got 0"),
    "one sample": ({"X": [1.0], "y": [1.0]}, "At least two samples are needed; got 1"),
    "zero noise": ({"noise_std": 0.0}, "`noise_std` must be finite and above zero"),
    "negative noise": ({"noise_std": -0.5}, "`noise_std` must be finite and above zero"),
    "NaN noise": ({"noise_std": np.nan}, "`noise_std` must be finite and above zero"),
    "noise of two": ({"noise_std": [0.1, 0.2]}, r"one per output.*; got shape \(2,\)"),
    "activation": ({"activation": "gelu"}, "Unknown activation 'gelu'; choose one of tanh"),
    "prior's name": ({"priors": {"W[7]": Normal()}}, r"Unknown parameter 'W\[7\]'; the names"),
    "ARD's name": ({"ard": ["c"]}, r"Unknown parameter 'c'; the names are W\[1\]\[1,1\]"),
    "no prior left": ({"ard": ["W"]}, r"'b\[1\]\[1\]' has no prior; give one"),
    "ARD and known": ({"ard": ["W", "b"], "priors": {"b": Normal()}}, "Drop it from `ard`"),
    "bound": ({"bound": 0.0}, "`bound` must be a finite number above zero"),
    "infinite bound": ({"bound": np.inf}, "`bound` must be a finite number above zero"),
    "widths": ({"hidden_layer_sizes": (0,)}, "widths"),
    "constant target": (
        {"y": np.full(8, 2.0), "noise_std": None}, "All values of y are 2, .*give `noise_std`",
    ),
    "one of two targets": (
        {"y": np.c_[Y, np.ones(8)], "noise_std": None, "noise": "student_t"},
        r"All values of y\[:, 1\] are 1, .*give `noise_std`",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD.keys())
def test_network_problem_with_invalid_input_raises_with_a_remedy(options, message):
    with pytest.raises(ValueError, match=message):
        net(**options)


def test_a_constant_target_needs_known_noise_or_a_prior_of_it():
    y = np.full(8, 2.0)
    assert net(y=y, noise_std=0.1).n_parameters == net().n_parameters
    assert "log_sigma" in net(y=y, noise_std=None, noise_prior=Normal(-1.0, 1.0)).names


def constant(theta):
    return jnp.sum(theta)


BAD_MODELS = {
    "no function": (("not callable", ["a"]), {}, TypeError, "must be a function"),
    "vector": ((lambda t: t, ["a", "b"]), {}, ValueError, r"one number.*shape \(2,\).*Sum"),
    "no names": ((constant, []), {}, ValueError, "one non-empty string per parameter"),
    "same names": ((constant, ["a", "a"]), {}, ValueError, "'a' appears more than once"),
    "labels": ((constant, ["a"]), {"labels": ["x", "y"]}, ValueError, "2 labels for 1 names"),
    "unknown": ((constant, ["a"]), {"ard": ["z"]}, ValueError, "Unknown parameter 'z'"),
}


@pytest.mark.parametrize(("arguments", "options", "kind", "message"), BAD_MODELS.values())
def test_problem_with_invalid_arguments_raises_with_a_remedy(arguments, options, kind, message):
    priors = {} if "ard" in options else dict.fromkeys(arguments[1], Normal())
    with pytest.raises(kind, match=message):
        sbnn.Problem(*arguments, priors, **options)


def test_black_box_returning_the_wrong_shape_raises_at_its_first_call():
    problem = sbnn.Problem(
        lambda theta: [float(t) for t in np.asarray(theta)],
        ["a", "b"],
        {"a": Normal(), "b": Normal()},
    )
    assert problem.black_box
    with pytest.raises(ValueError, match=r"one number; it returned shape .*Sum over the data"):
        sbnn.standard(problem, n_particles=100)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_log_likelihood_that_is_never_finite_raises_with_a_remedy(value):
    problem = sbnn.Problem(lambda t: value + 0.0 * t[0], ["a"], {"a": Normal()})
    with pytest.raises(ValueError, match=r"every one of the 100 prior draws; check.*narrow"):
        sbnn.standard(problem, key=keys(1)[0], n_particles=100)


def test_parameters_of_the_wrong_length_raise():
    with pytest.raises(ValueError, match="φ has 3 entries; expected 7"):
        net().log_likelihood(np.zeros(3))


# Symmetries of the prior.


def usable(problem):
    return invariant_symmetry(problem.symmetry, problem.known_prior(), jax.random.key(keys(1)[0]))


def test_only_symmetries_of_the_prior_are_used():
    assert usable(net()).order == 8
    assert usable(net(noise_std=None)).order == 8
    # One bias has a different prior: its neuron cannot be exchanged, but signs can still flip.
    part = usable(net(priors={"b[1][1]": Normal(0, 0.3)}))
    assert (part.permute, part.flip) == (False, True)
    part = usable(net(priors={"W[2]": LogNormal()}))
    assert (part.permute, part.flip) == (True, False)
    assert usable(net(priors={"b[1][1]": Normal(1.0, 0.3)})) is None
    assert usable(gaussian_problem(2)[0]) is None
    assert usable(net(hidden_layer_sizes=())) is None


def test_slightly_asymmetric_box_is_not_symmetric():
    part = usable(net(priors={"W[2]": Uniform(-20.0, 20.001)}))
    assert not part.flip
    assert part.permute
    assert usable(net(priors={"W[2][1,1]": Uniform(-20.001, 20.0)})) is None


def test_symmetry_of_a_custom_prior_is_tested_on_draws():
    def prior(shift):
        return Custom(
            lambda x: -0.5 * (x - shift) ** 2 - 0.5 * np.log(2 * np.pi),
            lambda key, shape: shift + jax.random.normal(key, shape),
        )

    same = prior(0.0)
    with jax.enable_x64(True):
        symmetry = Symmetry(Network((1, 2, 1)))
        whole = invariant_symmetry(symmetry, JointPrior.of([same] * 7), jax.random.key(0))
        assert whole.order == 8
        part = invariant_symmetry(symmetry, JointPrior.of([prior(1.0)] * 7), jax.random.key(0))
        assert not part.flip


# Identity of problems.


def test_fingerprints_distinguish_problems():
    assert net().fingerprint() == net().fingerprint()
    others = [net(noise_std=0.4), net(y=Y + 1e-12), net(bound=19.0), net(activation="sin")]
    assert len({p.fingerprint() for p in [net(), *others]}) == 5
    assert net().data_fingerprint() == net(bound=3.0).data_fingerprint()
    assert gaussian_problem(2)[0].data_fingerprint() is not None
    assert sbnn.Problem(constant, ["a"], {"a": Normal()}).data_fingerprint() is None
    assert fingerprint({"a": [1.0, "x"]}) == fingerprint({"a": [1.0, "x"]})
    assert fingerprint({"a": np.arange(3.0)}) != fingerprint({"a": np.arange(3)})


def test_public_names_are_listed_and_unknown_names_raise():
    assert {"Problem", "network_problem", "standard", "load", "datasets"} <= set(dir(sbnn))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = sbnn.nonsense


def test_jax_function_that_cannot_be_traced_warns_or_raises():
    def three(theta):
        a, b, c = theta
        return -jnp.sum(jnp.stack([a, b, c]) ** 2)

    def model(theta):
        return theta[:3] * jnp.arange(3.0) if theta[0] > 0 else theta[:3]

    def plain(theta):
        return -(float(theta[0]) ** 2) - float(theta[1]) ** 2

    flat = {"a": Normal(), "b": Normal()}
    for names, count in (
        (["a", "b"], "has 2 names"),
        (["a"], "has 1 name"),
        (list("abcde"), "has 5 names"),
    ):
        message = f"`names` {count}, but the function takes 3 parameters; give one name for each"
        with pytest.raises(ValueError, match=message):
            sbnn.Problem(three, names=names, priors=dict.fromkeys(names, Normal()))
    if hasattr(jax.config, "jax_check_static_indices"):
        with pytest.raises(ValueError, match="2 names, but the function takes 5 parameters"):
            sbnn.Problem(lambda theta: -(theta[0] ** 2) - theta[4], ["a", "b"], flat)
        assert not jax.config.jax_check_static_indices
    beyond = sbnn.Problem(lambda theta: -(theta[0] ** 2) * jnp.arange(3.0)[7], ["a", "b"], flat)
    assert not beyond.black_box  # an index beyond another array does not count
    with pytest.raises(ValueError, match="2 names, but the function takes 3 parameters"):
        sbnn.Problem.from_model(three, np.zeros(3), names=["a", "b"], priors=flat, noise_std=1.0)
    with pytest.warns(UserWarning, match="cannot trace it"):
        sbnn.Problem.from_model(model, np.ones(3), names=["a", "b"], noise_std=1.0, priors=flat)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sbnn.Problem(plain, names=["a", "b"], priors=flat).black_box
        assert sbnn.Problem(three, names=["a", "b"], priors=flat, black_box=True).black_box
        three_priors = {**flat, "c": Normal()}
        assert not sbnn.Problem(three, names=["a", "b", "c"], priors=three_priors).black_box


def test_error_names_the_text_column():
    frame = pd.DataFrame({"a": X, "city": ["x"] * len(X)})
    with pytest.raises(ValueError, match=r"could not convert.* in column 'city'; drop it"):
        net(X=frame)
