"""NSBL end to end: the study, hybrid priors, a physics model, black boxes."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_within_errors, keys, rng
from sklearn.exceptions import ConvergenceWarning

import sbnn
from sbnn._core.messages import FirstRunStuck, NotVerified
from sbnn.evidence.exact import warm_modes
from sbnn.evidence.exact.cold import cold_evidence
from sbnn.evidence.mixture import GaussianMixture, expectation_maximisation
from sbnn.evidence.newton import surrogate_optima
from sbnn.methods.details import NsblDetails
from sbnn.priors import Hyperprior, Normal
from sbnn.problems.network import push_forward

BEST = -44.6  # exact log evidence at the sparse optimum of boxcar seed 0, from long runs


def study_net(**options):
    x, y = sbnn.datasets.boxcar(seed=0)
    return sbnn.network_problem(x, y, (3,), noise_std=0.5, **options)


@pytest.fixture(scope="module")
def study():
    """The NSBL run on the study's network shared by the default tests."""
    return sbnn.nsbl(study_net(), key=keys(1)[0], n_particles=500, n_starts=6)


def test_nsbl_on_the_study_is_verified_and_near_the_optimum(study):
    assert study.verified
    assert abs(study.evidence_gap) <= 1.0
    assert abs(study.log_evidence - BEST) <= 1.5
    assert study.optima["log_evidence"].iloc[0] == study.log_evidence
    assert np.isclose(study.optima["share"].sum(), 1.0)


def test_nsbl_on_the_study_prunes_one_neuron(study):
    assert (study.neuron_relevance()[0] < 0.1).sum() == 1
    pruned = study.prune()
    assert len(pruned.neurons) == 1
    assert pruned.network.sizes == (1, 2, 1)
    j = pruned.neurons[0][1]
    assert f"W[2][1,{j}]" in pruned.names
    x = np.linspace(-6, 6, 7)[:, None]
    small, full = (
        push_forward(n, p, x)
        for n, p in ((pruned.network, pruned.small_phi), (study.problem.network, pruned.phi))
    )
    np.testing.assert_allclose(small, full, rtol=0, atol=1e-12)


def test_nsbl_records_its_history(study):
    newton = study.history["newton"]["objective"]
    assert (np.diff(newton) >= -1e-9).all()
    assert len(study.details.newton_log_alpha) == len(newton)
    assert len(study.history["refine"]) > 0
    assert np.isfinite(study.history["refine"]["log_evidence"]).all()
    assert study.details.log_alpha_draws.shape == (500, 10)
    assert np.isfinite(study.phi).all()
    np.testing.assert_allclose(
        study.log_likelihood, study.problem.log_likelihood(study.phi), rtol=1e-9
    )


def test_nsbl_predictions_are_narrow_outside_the_data(study):
    """Standard Bayes is ten times wider there."""
    band = np.diff(np.quantile(study.push_forward([[-6.0], [6.0]]), [0.025, 0.975], axis=0), axis=0)
    assert (band < 1.5).all()


def test_nsbl_result_is_saved_and_loaded_exactly(study, tmp_path):
    study.save(tmp_path / "study.nc")
    again = sbnn.load(tmp_path / "study.nc")
    assert again.equals(study)
    np.testing.assert_array_equal(again.phi, study.phi)
    np.testing.assert_array_equal(again.relevance, study.relevance)
    assert again.verified is study.verified
    assert again.reason == study.reason
    assert isinstance(again.details, NsblDetails)
    for name, value in study.details.arrays().items():
        assert again.details.arrays()[name].tobytes() == value.tobytes()
    assert again.details.mixture.means.shape[-1] == 10
    assert again.prune().names == study.prune().names


SIGMA = 0.1
# The data resolve the spurious coefficients to a precision of 1e3. The default rate e⁻¹⁰ caps α at
# 2e4, too low for γ < 0.1 (the stationary value is γ ≈ √(2rΛ)).
FINE = Hyperprior(rate=1e-11)


def michaelis_menten(theta, data):
    """Vₘ x / (Kₘ + x) and two spurious terms: a leak and an oscillation."""
    x, y = data
    rate, constant, leak, wave = theta
    model = rate * x / (jnp.abs(constant) + x) + leak * x + wave * jnp.sin(3 * x)
    return -0.5 * jnp.sum(((y - model) / SIGMA) ** 2) - len(x) * np.log(SIGMA * np.sqrt(2 * np.pi))


@pytest.fixture(scope="module")
def enzyme():
    x = np.linspace(0.2, 8.0, 30)
    y = 5.0 * x / (1.5 + x) + SIGMA * np.random.default_rng(3).normal(size=30)
    names = ["rate", "constant", "leak", "wave"]
    return sbnn.Problem(michaelis_menten, names, ard=names, data=(x, y))


def run_enzyme(enzyme, **options):
    options = {"hyperprior": FINE, "n_particles": 300, "n_starts": 4, "average": False, **options}
    return sbnn.nsbl(enzyme, key=keys(1)[0], **options)


@pytest.fixture(scope="module")
def enzyme_result(enzyme):
    return run_enzyme(enzyme)


def test_nsbl_keeps_only_the_true_terms_of_a_physics_model(enzyme_result):
    assert enzyme_result.verified
    pruned = enzyme_result.prune()
    assert pruned.names == ("leak", "wave")
    assert (enzyme_result.relevance[:2] > 0.5).all()
    assert abs(enzyme_result.phi[:, 0].mean() - 5.0) < 0.3
    assert abs(np.abs(enzyme_result.phi[:, 1]).mean() - 1.5) < 0.3
    np.testing.assert_array_equal(pruned.phi[:, 2:], 0.0)


def test_laplace_nsbl_keeps_the_true_terms_of_a_physics_model(enzyme):
    """It trades no evidence for sparsity, so a spurious term favoured by noise may stay."""
    result = sbnn.laplace_nsbl(enzyme, key=keys(1)[0], n_starts=4, n_particles=100, hyperprior=FINE)
    assert "leak" in result.prune().names
    assert (result.relevance[:2] > 0.9).all()
    assert result.relevance[3] < 0.6


def test_draws_without_averaging_are_those_at_the_optimum(enzyme_result):
    np.testing.assert_array_equal(enzyme_result.draws(), enzyme_result.details.best_phi)
    assert enzyme_result.details.log_alpha_draws is None


def test_same_key_gives_the_same_result(enzyme, enzyme_result):
    again = run_enzyme(enzyme)
    np.testing.assert_array_equal(again.phi, enzyme_result.phi)
    assert again.log_evidence == enzyme_result.log_evidence


def test_unverified_result_warns(enzyme):
    """With a tolerance that cannot be met: a flag, a warning and a message."""
    with pytest.warns(ConvergenceWarning, match="Not verified.*Raise `n_particles`"):
        result = run_enzyme(enzyme, tolerance=1e-9)
    assert result.verified is False
    (message,) = (m for m in result.messages if isinstance(m, NotVerified))
    assert message.exact == result.log_evidence
    assert message.tolerance == 1e-9
    assert message.estimate - message.exact == result.evidence_gap
    assert "verified=False" in repr(result)


def assert_raises(error, match, problem=None, **options):
    with pytest.raises(error, match=match):
        sbnn.nsbl(problem if problem is not None else study_net(), **options)


def test_invalid_input_raises_before_sampling(monkeypatch):
    monkeypatch.setattr("sbnn.methods._nsbl.sample_posterior", None)  # sampling would crash
    known = study_net(priors={"W": Normal(), "b": Normal()})
    assert_raises(ValueError, "has none; name some in `ard`", known)
    assert_raises(TypeError, "must be an sbnn.Problem", [1.0])
    assert_raises(ValueError, "'kde', 'em' or a GaussianMixture; got 'kmeans'", mixture="kmeans")
    flat = GaussianMixture(np.zeros((1, 1)), np.zeros((1, 1, 4)), np.eye(4)[None])
    assert_raises(ValueError, "4 dimensions.*10 parameters", mixture=flat)
    assert_raises(ValueError, "n_particles", n_particles=1)
    assert_raises(ValueError, "`n_starts` must be at least 1", n_starts=0)
    assert_raises(ValueError, "`tolerance` must be above zero", tolerance=0.0)
    assert_raises(ValueError, "`sparsify` must not be negative", sparsify=-1.0)


def test_hierarchical_without_ard_raises():
    with pytest.raises(ValueError, match=r"use sbnn\.standard"):
        sbnn.hierarchical(study_net(priors={"W": Normal(), "b": Normal()}))


def test_likelihood_that_is_zero_everywhere_raises():
    problem = sbnn.Problem(lambda t: -jnp.inf * (1 + jnp.sum(t**2)), ["a", "b"], ard=["a", "b"])
    with pytest.raises(ValueError, match="log-likelihood"):
        sbnn.nsbl(problem, n_particles=100)


HYBRID = {"b[2]": Normal(0.0, 0.1)}


def check_hybrid(result):
    assert np.isfinite(result.phi).all()
    assert np.isfinite(result.log_evidence)
    assert abs(result.phi[:, 9].mean()) < 0.2
    assert result.phi[:, 9].std() < 0.15  # the known prior holds
    if result.log_alpha is not None:
        assert np.isnan(result.log_alpha[9])
        assert not np.isnan(result.log_alpha[:9]).any()  # infinite where pruned
    if result.relevance is not None:
        assert np.isnan(result.relevance[9])
        assert (result.neuron_relevance()[0] < 0.1).sum() == 1


@pytest.mark.parametrize("method", ["laplace", "laplace_nsbl"])
def test_laplace_methods_accept_a_hybrid_prior(method):
    check_hybrid(
        getattr(sbnn, method)(study_net(priors=HYBRID), key=keys(1)[0], n_starts=3, n_particles=300)
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["standard", "nsbl", "hierarchical"])
def test_sampling_methods_accept_a_hybrid_prior(method):
    result = getattr(sbnn, method)(study_net(priors=HYBRID), key=keys(1)[0], n_particles=500)
    check_hybrid(result)
    if method == "nsbl":
        assert result.verified


def plain_numpy(theta):
    x = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    y = np.array([-1.1, -0.4, 0.1, 0.55, 0.9])
    residual = (y - theta[0] * x - theta[1] * x**2) / 0.2
    return float(-0.5 * residual @ residual)


@pytest.mark.parametrize("method", ["standard", "nsbl", "hierarchical"])
def test_sampling_methods_run_on_a_black_box(method):
    problem = sbnn.Problem(
        plain_numpy, ["slope", "bend"], ard=["slope", "bend"], bound=3.0, black_box=True
    )
    # Without gradients γ is one minus a ratio of variances, with error √(2/N), here 0.06.
    n_particles = 500 if method == "nsbl" else 60
    options = {"n_starts": 2, "average": False} if method == "nsbl" else {"max_moves": 40}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = getattr(sbnn, method)(problem, key=keys(1)[0], n_particles=n_particles, **options)
    assert abs(result.phi[:, 0].mean() - 1.0) < 0.2
    assert result.n_evaluations > 0
    if method == "nsbl":
        assert result.prune().names == ("bend",)


@pytest.fixture(scope="module")
def failing_mixture():
    """EM with K = 20 on the particles of standard Bayes, as in the study."""
    problem = study_net()
    base = sbnn.standard(problem, key=keys(1)[0])
    normaliser = base.log_evidence + problem.log_box_volume()
    return problem, base.phi, expectation_maximisation(base.phi, 20, normaliser)


@pytest.mark.slow
def test_unverified_surrogate_optimum_is_wrong_by_many_nats(failing_mixture):
    """Negative control: the surrogate's optimum without verification."""
    problem, phi, mixture = failing_mixture
    found = surrogate_optima(problem, phi, mixture, Hyperprior(), np.random.default_rng(0), 12)[0]
    exact = cold_evidence(problem, found.log_alpha, keys(1)[0], move="hmc", max_moves=40)
    print(f"\nEM 20: surrogate {found.log_evidence:.1f}, exact {exact.log_evidence:.1f}")
    assert found.log_evidence - exact.log_evidence > 5
    assert found.log_evidence > BEST - 2  # it looks like success


@pytest.mark.slow
def test_nsbl_recovers_from_the_failing_mixture(failing_mixture):
    problem, _, mixture = failing_mixture
    result = sbnn.nsbl(problem, key=keys(1)[0], mixture=mixture)
    print(f"\nrefined from EM 20: {result}, gap {result.evidence_gap:.2f}")
    assert BEST - result.log_evidence <= 1.0 + 4 * result.log_evidence_error
    assert result.verified == (abs(result.evidence_gap) <= 1.0)
    again = cold_evidence(
        problem, result.log_alpha, keys(2)[1], n_particles=4000, move="hmc", max_moves=40
    )
    if result.verified:
        assert abs(again.log_evidence - result.log_evidence) < 1.0
    assert (result.neuron_relevance()[0] < 0.1).sum() == 1


def test_stuck_first_run_warns_at_the_callers_line(enzyme, monkeypatch):
    monkeypatch.setattr("sbnn.sampling.tmcmc.STUCK", -1.0)  # every run counts as stuck
    with pytest.warns(ConvergenceWarning, match="an optimum may have been missed") as caught:
        result = run_enzyme(enzyme, mixture="kde")
    assert caught[0].filename == __file__
    assert any(isinstance(message, FirstRunStuck) for message in result.messages)


def test_search_from_laplace_optima_finds_the_same_terms(enzyme, enzyme_result, monkeypatch):
    monkeypatch.setattr("sbnn.sampling.tmcmc.STUCK", -1.0)  # the first run is given up
    result = run_enzyme(enzyme)
    assert result.details.mixture is None
    assert result.verified
    assert result.prune().names == ("leak", "wave")
    error = np.hypot(result.log_evidence_error, enzyme_result.log_evidence_error)
    assert abs(result.log_evidence - enzyme_result.log_evidence) < 4 * error + 0.75


def inferred_noise(seed):
    r = rng(100, seed)
    x = r.uniform(-2, 2, size=(60, 2))
    y = np.sin(x[:, 0]) + 0.5 * np.tanh(2 * x[:, 1]) + 0.2 * r.normal(size=60)
    return sbnn.network_problem(x, y, hidden_layer_sizes=(3,))


def test_a_network_with_inferred_noise_is_searched_from_laplace_optima():
    problem = inferred_noise(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sbnn.nsbl(problem, key=0, n_particles=256, average=False)
    assert result.verified
    assert result.converged
    assert result.details.mixture is None
    assert result.phi.shape == (256, 14)
    assert abs(result.phi[:, -1].mean() - np.log(0.2)) < 0.5


@pytest.mark.slow
def test_a_large_network_is_searched_from_one_mode(monkeypatch):
    """Its evidence again by a run in plain coordinates."""
    r = rng(0)
    x = r.uniform(-2, 2, (80, 2))
    y = np.sin(2 * x[:, 0]) + np.tanh(3 * x[:, 1]) + 0.1 * r.normal(size=80)
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(5,))
    assert warm_modes.is_large(problem)
    result = sbnn.nsbl(problem, key=0, n_particles=300, average=False)
    assert result.verified
    assert result.phi.shape == (300, 22)
    monkeypatch.setitem(warm_modes.LARGE, "inferred noise", 1000)
    monkeypatch.setattr(warm_modes, "sheared", lambda *_: None)
    start = result.details.best_phi.mean(axis=0)
    again = sbnn.exact_evidence(problem, result.log_alpha, start=start, key=1)
    assert again.verified
    error = np.hypot(result.log_evidence_error, again.error)
    assert_within_errors(result.log_evidence, again.log_evidence, error, "log evidence")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_networks_with_inferred_noise_are_verified(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sbnn.nsbl(inferred_noise(seed), key=seed)
    assert result.verified
    assert result.converged


@pytest.mark.slow
def test_sampled_and_laplace_posteriors_with_student_t_noise_agree():
    """Quantiles to a tenth of the width of the 95 % interval.

    The posterior of log(ν − 2) is skewed: Laplace's approximation is centred at the mode, which was
    0.01 and 0.11 standard deviations from the mean for two sets of data.
    """
    grid, levels = np.linspace(-1.9, 1.9, 20)[:, None], [0.025, 0.25, 0.5, 0.75, 0.975]

    def problem(scale):
        r = np.random.default_rng(0)
        x = np.sort(r.uniform(-2, 2, 80))
        y = np.tanh(2 * x) + scale * r.standard_t(3, 80)
        return sbnn.network_problem(x[:, None], y, hidden_layer_sizes=(2,), noise="student_t")

    def quantiles(result):
        return np.quantile(result.predictive(grid, n=20_000), levels, axis=0)

    laplace, exact = sbnn.laplace_nsbl(problem(0.15)), sbnn.nsbl(problem(0.15))
    tolerance = 0.1 * np.diff(quantiles(exact)[[0, -1]], axis=0)
    assert (np.abs(quantiles(laplace) - quantiles(exact)) < tolerance).all()
    log_nu = [result.draws(4000)[:, -1] for result in (laplace, exact)]
    assert abs(log_nu[0].mean() - log_nu[1].mean()) < 0.2 * log_nu[1].std()
    noisier = sbnn.laplace_nsbl(problem(0.2))  # the tolerance tells noise of 0.2 from that of 0.15
    assert not (np.abs(quantiles(noisier) - quantiles(exact)) < tolerance).all()
