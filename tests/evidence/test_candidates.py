"""The search for α: candidates are refined, verified and ranked by the exact evidence."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from closed_forms import linear
from helpers import keys
from scipy.optimize import brentq

import sbnn
from sbnn.evidence import candidates as search
from sbnn.evidence.closed_form import evaluate
from sbnn.evidence.exact import permutations
from sbnn.evidence.mixture import GaussianMixture
from sbnn.evidence.newton import maximise
from sbnn.evidence.resolution import too_coarse
from sbnn.priors import Hyperprior, Normal
from sbnn.sampling.tmcmc import TmcmcResult

HYPERPRIOR = Hyperprior()


@pytest.fixture(scope="module")
def from_a_wrong_mixture():
    """Exact particles of the linear model with a mixture at the wrong place and scale."""
    problem, mixture = linear()
    particles = mixture.draws(np.random.default_rng(80), 500)
    wrong = GaussianMixture(
        np.zeros((1, 1)), np.array([[[0.0, 0.0, 6.0]]]), 1e-4 * np.eye(3)[None], 200.0
    )
    events: list[str] = []
    found = search.search(
        problem, particles, wrong, HYPERPRIOR, jax.random.key(keys(1)[0]), n_particles=400,
        n_starts=3, on_event=events.append,
    )  # fmt: skip
    return problem, mixture, found, events


def test_search_recovers_from_a_wrong_mixture(from_a_wrong_mixture):
    problem, mixture, found, _ = from_a_wrong_mixture
    best = found.optima[0]
    assert found.surrogate_optima[0].log_evidence - found.first_exact > 50  # it was wrong
    optimum = maximise(np.zeros(3), mixture, problem.ard, HYPERPRIOR)
    reached = evaluate(best.log_alpha, mixture, problem.ard, HYPERPRIOR)
    assert optimum.objective - reached.objective < 0.6  # 0.5 may be given up for sparsity
    assert abs(best.gap) <= 1.0
    assert abs(best.exact.log_evidence - reached.log_evidence) < 5 * best.exact.log_evidence_error


def test_search_reports_events_and_counts_evaluations(from_a_wrong_mixture):
    _, _, found, events = from_a_wrong_mixture
    assert events[0] == "proposing candidates"
    assert any("verifying" in e for e in events)
    assert found.n_evaluations > 0


def candidate(evidence: float, gamma, gap: float = 0.0) -> search.Candidate:
    exact = TmcmcResult(None, evidence, 0.1, (), 0, 0, True)
    gamma = np.asarray(gamma, dtype=float)
    return search.Candidate("made", np.zeros(len(gamma)), 0.0, evidence + gap, exact, (), gamma)


def test_ranking_is_by_exact_evidence_then_sparsity():
    dense, sparse = candidate(-10.0, [1, 1, 1]), candidate(-10.3, [1, 1, 0])
    poor = candidate(-12.0, [1, 0, 0])
    ranked = search._rank([poor, dense, sparse], HYPERPRIOR, sparsify=0.5, tolerance=1.0)
    assert [r.exact.log_evidence for r in ranked] == [-10.3, -10.0, -12.0]
    ranked = search._rank([poor, dense, sparse], HYPERPRIOR, sparsify=0.0, tolerance=1.0)
    assert [r.exact.log_evidence for r in ranked] == [-10.0, -10.3, -12.0]


def test_unverified_optimum_ranks_lower_unless_clearly_better():
    verified = candidate(-10.8, [1, 1, 1])
    close, far = candidate(-10.0, [1, 1, 0], gap=2.0), candidate(-9.0, [1, 1, 0], gap=2.0)
    ranked = search._rank([close, verified], HYPERPRIOR, sparsify=0.5, tolerance=1.0)
    assert ranked[0] is verified
    ranked = search._rank([far, verified], HYPERPRIOR, sparsify=0.5, tolerance=1.0)
    assert ranked[0] is far


def study_net(**options):
    x, y = sbnn.datasets.boxcar()
    return sbnn.network_problem(x, y, (3,), noise_std=0.5, **options)


def test_one_pruned_neuron_of_three_has_multiplicity_three():
    gamma = np.ones(10)
    gamma[[2, 5, 8]] = 0.0  # the third neuron
    assert permutations.multiplicity(study_net(), gamma) == 3
    assert permutations.multiplicity(study_net(), np.ones(10)) == 1


def test_models_with_different_terms_are_distinct_optima():
    """Without a network there is no symmetry: [1, 0] and [0, 1] keep different terms."""
    problem = sbnn.Problem(lambda t: -(t**2).sum(), ["a", "b"], ard=["a", "b"])
    assert permutations.alike(problem, np.array([1.0, 0.0]), np.array([0.9, 0.1]))
    assert not permutations.alike(problem, np.array([1.0, 0.0]), np.array([0.0, 1.0]))


def test_relevances_are_compared_up_to_permutations_of_neurons():
    third, first = np.ones(10), np.ones(10)
    third[[2, 5, 8]] = first[[0, 3, 6]] = 0.0
    assert permutations.alike(study_net(), third, first)
    assert not permutations.alike(study_net(), third, np.ones(10))


def test_permutations_are_ignored_without_ard_parameters():
    assert permutations.permutations(study_net(priors={"W": Normal(), "b": Normal()})) is None
    assert permutations.permutations(study_net()).order == 6


@pytest.mark.parametrize(("precision", "too_large"), [(400.0, True), (4.0, False)])
def test_message_suggests_a_rate_that_allows_pruning(precision, too_large):
    problem = sbnn.Problem(lambda theta: theta.sum(), ["idle", "needed"], ard=["idle", "needed"])
    hyperprior = Hyperprior()

    def at_rest(rate):
        # an irrelevant parameter: zero mean, so ½γ = rα with γ = Λ/(Λ + α)
        alpha = brentq(lambda a: 0.5 * precision / (precision + a) - rate * a, 1e-9, 1e12)
        gamma = precision / (precision + alpha)
        # and a relevant one, whose α is set by its mean
        return np.array([np.log(alpha), 0.0]), np.array([gamma, 0.99])

    found = too_coarse(problem, *at_rest(hyperprior.rate), hyperprior)
    assert (found is not None) == too_large
    if too_large:
        assert found.names == ("idle",)
        better = found.smaller_rate
        assert f"Hyperprior(rate={better:.0e})" in str(found)
        assert at_rest(better)[1][0] < 0.1
        assert too_coarse(problem, *at_rest(better), Hyperprior(rate=better)) is None


def straight_line(theta, data):
    x, y = data
    return -0.5 * jnp.sum((y - theta[0] * x - theta[1] * x**2) ** 2) / 0.01


def test_search_works_without_a_laplace_proposal(monkeypatch):
    x = np.linspace(-1, 1, 20)
    problem = sbnn.Problem(
        straight_line, ["slope", "bend"], ard=["slope", "bend"], bound=3.0, data=(x, x)
    )
    options = {"n_particles": 200, "n_starts": 2, "average": False}
    with_it = sbnn.nsbl(problem, key=0, **options)

    def fails(*args):
        raise ValueError("no start had a finite log-likelihood")

    monkeypatch.setattr(search, "laplace_optima", fails)
    without = sbnn.nsbl(problem, key=0, **options)
    assert without.verified
    error = np.hypot(with_it.log_evidence_error, without.log_evidence_error)
    assert abs(without.log_evidence - with_it.log_evidence) < 4 * error + 0.5
