"""Laplace optima against closed forms."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sbnn.evidence.laplace import fit as sl
from sbnn.evidence.laplace import mixture as lm
from sbnn.evidence.laplace import optimum as lo
from sbnn.evidence.laplace import pruning as lp
from sbnn.evidence.laplace.models import layout as gn
from sbnn.evidence.laplace.models import precision as lq
from sbnn.evidence.laplace.models.known_priors import KnownPriors
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.priors import Hyperprior, Normal
from sbnn.problems.activations import ACTIVATIONS
from sbnn.problems.network import Network

RNG = np.random.default_rng


def moments(mixture, x_t):
    """Mean and standard deviation of the prediction, each (n_out, m)."""
    predicted = lm.predictive(mixture, x_t)
    return predicted.mean().T, predicted.std().T


def boxcar():
    x = np.linspace(-3, 3, 50)
    y = 2 * np.tanh(5 * x + 5) + 2 * np.tanh(-5 * x + 5) + 0.5 * RNG(0).normal(size=50)
    return NetworkModel(x_t=x[None], y_t=y[None], sizes=(1, 3, 1), noise=np.log([[0.5]]))


def linear_model(n=30, p=4, n_out=1, seed=0, **options):
    rng = RNG(seed)
    x = rng.normal(size=(p, n))
    w = np.zeros((n_out, p))
    w[:, :2] = rng.normal(size=(n_out, 2)) + 1.5
    y = w @ x + 0.3 * rng.normal(size=(n_out, n))
    return NetworkModel(x_t=x, y_t=y, sizes=(p, n_out), activation="identity", **options)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("sizes", [(2, 1), (2, 4, 1), (3, 4, 3, 2)])
def test_jacobian_equals_central_differences(activation, sizes):
    rng = RNG(1)
    d = gn.n_parameters(sizes)
    phi, x = rng.normal(size=d), rng.normal(size=(sizes[0], 7))
    active = np.sort(rng.choice(d, d - 2, replace=False))
    pruned = np.setdiff1d(np.arange(d), active)
    phi[pruned] = 0.0
    layout = gn.Layout(sizes, active)
    f, jac = gn.jacobian(phi, x, layout, activation)

    def value(at):
        return gn.forward(at, x, gn.Layout(sizes), activation)

    np.testing.assert_allclose(f, value(phi), atol=1e-14)
    for k, i in enumerate(active):
        e = np.zeros(d)
        e[i] = 1e-6
        np.testing.assert_allclose(jac[k], (value(phi + e) - value(phi - e)) / 2e-6, atol=2e-8)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_jacobian_equals_automatic_differentiation(activation):
    network = Network((2, 4, 3, 2), activation)
    phi, x = RNG(2).normal(size=network.n_parameters), RNG(3).normal(size=(6, 2))
    f, jac = gn.jacobian(phi, x.T, gn.Layout(network.sizes), activation)
    with jax.enable_x64(True):
        outputs = lambda p: network.forward(p, jnp.asarray(x))
        expected = jax.jit(jax.jacrev(outputs))(jnp.asarray(phi))
        np.testing.assert_allclose(f.T, outputs(jnp.asarray(phi)), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(jac.transpose(2, 1, 0), expected, rtol=1e-10, atol=1e-12)


def test_flat_order_is_w1_b1_w2_b2_row_major():
    phi = np.arange(1.0, 11.0)  # 1-3-1: W11 W21 W31 b1 b2 b3 | v1 v2 v3 | b
    x = 0.3
    expect = phi[6:9] @ np.tanh(phi[0:3] * x + phi[3:6]) + phi[9]
    value = gn.forward(phi, np.array([[x]]), gn.Layout((1, 3, 1)), "tanh")[0, 0]
    assert value == pytest.approx(expect, rel=1e-14)


def test_neuron_without_a_path_to_the_output_is_not_evaluated():
    sizes = (2, 4, 3, 1)
    outgoing = 12 + 4 * np.arange(3) + 1  # W[2][:, 2]
    layout = gn.Layout(sizes, np.setdiff1d(np.arange(gn.n_parameters(sizes)), outgoing))
    assert [len(a) for a in layout.alive] == [2, 3, 3, 1]
    assert set(layout.active[layout.unseen]) == {2, 3, 9}  # W[1][2, :] and b[1][2]


@pytest.mark.parametrize("n_out", [1, 2])
@pytest.mark.parametrize(("n", "p"), [(30, 4), (6, 20)])
def test_log_evidence_is_exact_for_a_linear_gaussian_model(n, p, n_out):
    """y ~ N(0, ΦA⁻¹Φᵀ + σ²I)."""
    model = linear_model(n, p, n_out)
    opt = lo.initial(model, RNG(3))
    opt.log_alpha = RNG(4).normal(size=len(opt.phi))
    opt.noise = np.linspace(-0.5, -0.25, n_out)[:, None]
    for _ in range(60):
        lin, _ = lo.lm_step(model, opt, lo.linearise(model, opt))
    value, precision = lo.log_evidence(model, opt)
    jac = lin.jac.reshape(len(opt.phi), -1).T
    noise = np.repeat(np.exp(2 * opt.noise[:, 0]), n)
    cov = jac @ np.diag(np.exp(-opt.log_alpha)) @ jac.T + np.diag(noise)
    exact = stats.multivariate_normal.logpdf(model.y_t.ravel(), np.zeros(n * n_out), cov)
    assert value == pytest.approx(exact, rel=1e-10)
    h = jac.T @ (jac / noise[:, None]) + np.diag(np.exp(opt.log_alpha))
    np.testing.assert_allclose(
        precision.variance(jac.T), np.diag(jac @ np.linalg.solve(h, jac.T)), rtol=1e-8
    )


def test_both_forms_of_the_precision_agree():
    rng = RNG(0)
    jac, alpha, g = rng.normal(size=(40, 15)), np.exp(rng.normal(size=40) * 3), rng.normal(size=40)
    dual = lq.Precision(jac, alpha)
    wide = np.hstack([jac, np.zeros((40, 60))])  # zero columns change only the branch
    primal = lq.Precision(wide, alpha)
    assert primal.primal
    assert not dual.primal
    np.testing.assert_allclose(dual.log_det, primal.log_det, rtol=1e-8)
    np.testing.assert_allclose(dual.solve(g), primal.solve(g), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(dual.relevance(), primal.relevance(), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(dual.variance(jac[:, :5]), primal.variance(jac[:, :5]), rtol=1e-8)
    index, u = np.array([3, 7, 20]), rng.normal(size=40)
    np.testing.assert_allclose(
        lp.removal_gain(dual, u, index), lp.removal_gain(primal, u, index), rtol=1e-7
    )


@pytest.mark.parametrize("n", [15, 60])
def test_draws_have_the_posterior_covariance(n):
    rng = RNG(0)
    jac, alpha = rng.normal(size=(20, n)), np.exp(rng.normal(size=20))
    draws = lq.Precision(jac, alpha).draw(rng, 200_000)
    cov = np.linalg.inv(jac @ jac.T + np.diag(alpha))
    z = (np.cov(draws) - cov) / np.sqrt((cov**2 + np.outer(np.diag(cov), np.diag(cov))) / 200_000)
    assert np.abs(z).max() < 5


def test_removal_gain_is_the_exact_evidence_difference_of_a_linear_model():
    model = linear_model(noise=np.log([[0.3]]))
    opt = lo.initial(model, RNG(0))
    lo.relax(model, opt, 50)
    before, precision = lo.log_evidence(model, opt)
    u = opt.phi * np.exp(0.5 * opt.log_alpha)
    gain = lp.removal_gain(precision, u, np.array([2, 3]))
    new = opt.without(np.array([2, 3]))
    lo.relax(model, new, 50)
    assert new.log_evidence - before == pytest.approx(gain, abs=1e-5)


@pytest.mark.parametrize("n", [4, 60])
def test_weights_that_compensate_a_removal_are_at_the_mode_of_a_linear_model(n):
    model = linear_model(n, noise=np.log([[0.3]]))
    opt = lo.initial(model, RNG(0))
    lo.relax(model, opt, 50, tol=1e-14)
    _, precision = lo.log_evidence(model, opt)
    dead = np.array([2, 3])
    found, expected = lp.compensated(opt, precision, dead), opt.without(dead)
    lo.relax(model, expected, 50, tol=1e-14)
    np.testing.assert_allclose(found.phi, expected.phi, atol=1e-5)
    assert np.abs(opt.without(dead).phi - expected.phi).max() > 1e-3


def test_linear_network_ends_at_the_sbl_fixed_point():
    """α = γ/m² for kept weights, q² < s for pruned ones, σ² = rss/(N − Σγ)."""
    model = linear_model(80, 6, hyperprior=Hyperprior(0.0, 0.0))
    opt = lp.evolve(model, lo.initial(model, RNG(0)), 400, tol=1e-10)
    lin = lo.linearise(model, opt)
    _, precision = lo.log_evidence(model, opt, lin)
    gamma, m = precision.relevance(), opt.phi[opt.active]
    np.testing.assert_allclose(np.exp(opt.log_alpha[opt.active]), gamma / m**2, rtol=1e-3)
    assert np.exp(2 * opt.noise[0, 0]) == pytest.approx(
        ((model.y_t - lin.f_t) ** 2).sum() / (80 - gamma.sum()), rel=1e-4
    )
    assert {0, 1} <= set(opt.active)
    assert len(opt.active) < 7


@pytest.mark.parametrize("seed", range(3))
def test_boxcar_reaches_the_sparse_optimum_and_prunes_one_neuron(seed):
    best = sl.fit([[boxcar()]], RNG(seed), sl.SMALL).optima[0]
    assert best.log_evidence > -46.8
    kept = [np.isin(m, best.active).any() for m in boxcar().units()]
    assert sum(kept) == 2
    assert len(best.active) == 7


def test_almost_all_weights_are_pruned_for_pure_noise():
    """A weight or two may remain by chance, but no evidence against a constant."""
    rng = RNG(0)
    y = rng.normal(size=(1, 60))
    model = NetworkModel(x_t=rng.normal(size=(3, 60)), y_t=y, sizes=(3, 4, 1))
    mix = sl.fit([[model]], RNG(0), sl.SMALL)
    variance = np.mean(y**2)
    constant = stats.norm.logpdf(y, scale=np.sqrt(variance)).sum()  # y ~ N(0, σ²), best σ
    assert constant - 1e-3 < mix.optima[0].log_evidence < constant + 1.0
    assert len(mix.optima[0].active) <= 3
    mean, std = moments(mix, rng.normal(size=(3, 5)))
    assert np.all(np.abs(mean) < 0.5)
    assert np.allclose(std, 1.0, atol=0.25)


def test_predictions_work_without_active_weights():
    model = NetworkModel(x_t=np.ones((2, 8)), y_t=np.tile([[-1.0, 1.0]], 4), sizes=(2, 3, 1))
    opt = lo.initial(model, RNG(0)).without(np.arange(13))
    opt.log_evidence, opt.precision = lo.log_evidence(model, opt)
    mix = sl.SparseMixture((opt,), np.ones(1))
    mean, std = moments(mix, np.ones((2, 3)))
    assert np.all(mean == 0.0)
    assert np.allclose(std**2, 0.1)
    assert lm.sample(mix, np.ones((2, 3)), 4, RNG(0)).shape == (4, 1, 3)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_only_optima_equal_up_to_symmetry_are_merged(activation):
    sizes, rng = (2, 4, 3, 1), RNG(0)
    x_t, y_t = rng.normal(size=(2, 30)), rng.normal(size=(1, 30))
    model = NetworkModel(x_t=x_t, y_t=y_t, sizes=sizes, activation=activation)
    opt = lo.initial(model, rng)
    opt.log_evidence, _ = lo.log_evidence(model, opt)
    twin = opt.copy()
    w1, b1 = twin.phi[:8].reshape(4, 2), twin.phi[8:12]
    w2 = twin.phi[12:24].reshape(3, 4)
    order = np.array([2, 0, 3, 1])
    w1[:], b1[:], w2[:] = w1[order].copy(), b1[order].copy(), w2[:, order].copy()
    if activation == "tanh":
        w1[1], b1[1], w2[:, 1] = -w1[1], -b1[1], -w2[:, 1]
    other = opt.copy()
    other.phi[0] += 1.0
    assert len(lm.merge([(model, o) for o in (opt, twin, other)])) == 2


def awkward():
    rng = RNG(0)
    x = rng.normal(size=(2, 40))
    y = np.sin(2 * x[:1]) + 0.1 * rng.normal(size=(1, 40))
    return {
        "constant column": (np.vstack([x, np.zeros(40)]), y),
        "five rows": (x[:, :5], y[:, :5]),
        "one row": (x[:, :1], y[:, :1]),
        "more features than rows": (rng.normal(size=(30, 12)), y[:, :12]),
        "one feature": (x[:1], y),
        "duplicated rows": (np.tile(x, 3), np.tile(y, 3)),
        "constant target": (x, np.zeros((1, 40))),
        "two outputs": (x, np.vstack([y, x[1:] ** 2])),
        "noise-free": (x, np.tanh(x[:1])),
        "huge values": (x * 1e6, y * 1e6),
    }


@pytest.mark.parametrize("case", list(awkward()))
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_degenerate_data_give_finite_predictions(case, activation):
    x, y = awkward()[case]
    model = NetworkModel(x_t=x, y_t=y, sizes=(len(x), 6, len(y)), activation=activation)
    options = sl.Options(n_starts=3, group_iterations=20, iterations=20)
    mix = sl.fit([[model]], RNG(0), options)
    predicted = lm.predictive(mix, x)
    mean, std = predicted.mean(), predicted.std()
    q = predicted.quantiles((0.025, 0.5, 0.975))
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std > 0).all()
    assert (np.diff(q, axis=0) >= 0).all()
    assert np.isfinite(predicted.log_density(y.T)).all()
    assert lm.sample(mix, x, 7, RNG(1), noise=True).shape == (7, *y.shape)


def test_noise_is_estimated_per_output():
    rng = RNG(0)
    x = rng.normal(size=(1, 200))
    y = np.vstack([x[0] + 0.05 * rng.normal(size=200), -x[0] + 0.5 * rng.normal(size=200)])
    model = NetworkModel(x_t=x, y_t=y, sizes=(1, 3, 2))
    opt = sl.fit([[model]], RNG(0), sl.Options(n_starts=4)).optima[0]
    np.testing.assert_allclose(np.exp(opt.noise[:, 0]), [0.05, 0.5], rtol=0.2)


def test_parameters_with_a_known_prior_are_neither_updated_nor_pruned():
    """A prior narrower than the data holds the output bias at its mean."""
    known = KnownPriors([Normal(1.0, 1e-3)], np.array([9]))
    model = replace(boxcar(), known_priors=known)
    mix = sl.fit([[model]], RNG(0), sl.Options(n_starts=4, iterations=100))
    for opt in mix.optima:
        assert 9 in opt.active
        assert opt.phi[9] == pytest.approx(1.0, abs=0.01)


def test_same_seed_gives_the_same_result():
    a, b = (sl.fit([[boxcar()]], RNG(7), sl.Options(n_starts=3)) for _ in range(2))
    assert all(np.array_equal(p.phi, q.phi) for p, q in zip(a.optima, b.optima))


def test_local_weights_favour_the_more_certain_component():
    model = boxcar()
    mix = sl.fit([[model]], RNG(0), sl.Options(n_starts=4))
    v = np.array([1.0, 4.0])[:, None, None]
    two = sl.SparseMixture(mix.optima[:1] * 2, np.full(2, 0.5))
    np.testing.assert_allclose(lm.local_weights(two, v)[:, 0, 0], [0.8, 0.2])


def test_local_weights_do_not_favour_the_optimum_that_claims_less_noise():
    model = boxcar()
    opt = lo.initial(model, RNG(0))
    lo.relax(model, opt, 5)
    _, precision = lo.log_evidence(model, opt)
    loud, quiet = (replace(opt, precision=precision, noise=opt.noise + c) for c in (0.0, -3.0))
    mixture = sl.SparseMixture((loud, quiet), np.array([0.7, 0.3]))
    np.testing.assert_allclose(lm.shares_at(mixture, model.x_t)[:, 0], [0.7, 0.3])


def test_draws_agree_with_predictions_for_every_output():
    """Each of two optima is certain about a different output, so their shares differ."""
    n, draws = 30, 40_000
    rng = RNG(0)
    x_t = rng.uniform(-1, 1, size=(1, n))
    model = NetworkModel(x_t=x_t, y_t=np.stack([x_t[0], -x_t[0]]), sizes=(1, 2, 2))
    parts = []
    for k in range(2):
        opt = lo.initial(model, RNG(k))
        lo.relax(model, opt, 20)
        opt.noise = np.full((2, 1), np.log(0.1))
        precisions = np.full(len(opt.phi), 1e6)
        precisions[-1 - k] = 1.0  # the bias of the other output
        opt.precision = lq.Precision(np.zeros((len(opt.phi), len(opt.phi))), precisions)
        parts.append(opt)
    mixture = sl.SparseMixture(tuple(parts), np.full(2, 0.5))
    shares = lm.shares_at(mixture, x_t[:, :1])
    assert shares[0, 0] > 0.9 > 0.1 > shares[0, 1]
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    found = lm.sample(mixture, x_t[:, :1], draws, rng, noise=True)[:, :, 0]
    mean, std = (v[:, 0] for v in moments(mixture, x_t[:, :1]))
    fourth = ((found - mean) ** 4).mean(axis=0)
    error = np.sqrt((fourth - std**4) / draws)  # of the mean square
    assert (np.abs(((found - mean) ** 2).mean(axis=0) - std**2) < 5 * error).all()
    assert (np.abs(found.mean(axis=0) - mean) < 5 * std / np.sqrt(draws)).all()
    common = shares.mean(axis=1)  # one share for both outputs would be far off
    wrong = common @ np.array([[0.01, 1.0], [1.0, 0.01]])
    assert (np.abs(wrong - std**2) > 20 * error).all()


def test_result_does_not_depend_on_the_number_of_threads():
    options = sl.Options(n_starts=4, iterations=10)
    a, b = (sl.fit([[boxcar()]], RNG(7), replace(options, n_threads=k)) for k in (1, 3))
    assert all(np.array_equal(p.phi, q.phi) for p, q in zip(a.optima, b.optima))


def test_stored_factor_gives_the_same_variances_as_the_data():
    rng = RNG(0)
    jac = rng.normal(size=(40, 15))
    dual = lq.Precision(jac, np.exp(rng.normal(size=40)))
    np.testing.assert_allclose(dual.as_primal().variance(jac), dual.variance(jac), rtol=1e-9)
    np.testing.assert_allclose(dual.as_primal().relevance(), dual.relevance(), atol=1e-12)


def test_stacking_prefers_the_component_with_the_higher_predictive_density():
    loo = np.array([[0.0] * 20, [-2.0] * 20])
    assert lm.mixture_weights("stacking", np.zeros(2), loo)[0] > 0.99
    assert lm.mixture_weights("mixed", np.zeros(2), loo)[0] == pytest.approx(0.75, abs=0.01)
    flat = lm.mixture_weights("flat", np.array([0.0, -4 * np.sqrt(20)]), loo)
    assert flat[0] / flat[1] == pytest.approx(np.e)
    np.testing.assert_allclose(lm.mixture_weights("equal", np.array([0.0, -9.0])), 0.5)
    assert lm.mixture_weights("evidence", np.array([0.0, -9.0]))[0] > 0.999
    with pytest.raises(ValueError, match="weighting"):
        lm.mixture_weights("best", np.zeros(2))


def test_loo_density_is_exact_for_a_linear_model():
    """Against refitting without the row at the same α and σ²."""
    model = linear_model(20, 3, noise=np.log([[0.3]]))
    opt = lo.initial(model, RNG(0))
    lo.relax(model, opt, 50)
    value = model.loo_log_density(opt.phi, opt.layout, opt.noise, lo.log_evidence(model, opt)[1])
    for row in (0, 7):
        rest = model.rows(np.setdiff1d(np.arange(20), row))
        other = opt.copy()
        lo.relax(rest, other, 50)
        other.precision = lo.log_evidence(rest, other)[1]
        left = lm.predictive(sl.SparseMixture((other,), np.ones(1)), model.x_t[:, [row]])
        one = left.log_density(model.y_t[:, [row]])
        assert value[row] == pytest.approx(one[0, 0], abs=1e-4)
