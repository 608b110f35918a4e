"""Small tables: few neurons where they suffice, convergence or a warning, and pruned networks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import sbnn
from sbnn import SparseBNNRegressor
from sbnn._core.messages import OptimaNotConverged
from sbnn.evidence.laplace import optimum as lo
from sbnn.evidence.laplace import pruning as lp
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.problems.network import Network
from sbnn.regressor.architectures import BROAD, MIDDLE, NARROW, WIDE, families, with_linear
from sbnn.regressor.data.scaling import Scaling


def reaction(n=72, seed=0):
    """A yield that depends on temperature and concentration; two more inputs hardly matter."""
    rng = np.random.default_rng(seed)
    heat, conc = rng.uniform(20, 90, n), rng.uniform(0.5, 12, n)
    stirring, humidity = rng.uniform(100, 600, n), rng.uniform(25, 70, n)
    y = 92 / (1 + np.exp(-(heat - 52) / 8)) * conc / (conc + 2) + 0.004 * stirring
    return np.column_stack([heat, conc, stirring, humidity]), y + 3.0 * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    X, y = reaction()
    return SparseBNNRegressor(random_state=0).fit(X, y), X, y


def test_families_go_from_small_to_large_and_depend_on_the_rows():
    assert families("default", 500, False) == [MIDDLE]
    assert families("default", 501, False) == [BROAD]
    assert families("default", 2001, False) == [WIDE]
    assert families("auto", 10, False) == [NARROW, MIDDLE, BROAD, WIDE]
    assert families("auto", 10, True) == families("default", 10**4, True) == [((3,),)]
    assert families([(3,), (2, 2)], 10, False) == [((3,), (2, 2))]


@pytest.mark.parametrize("n", [20, 60])
def test_noise_free_linear_data_need_no_hidden_layer(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    model = SparseBNNRegressor(random_state=0).fit(X, 1.0 + X @ [1.0, 2.0, 3.0])
    optima = model.optima_
    assert list(optima["hidden_layer_sizes"]) == [()]
    assert optima["converged"].all()
    assert model.n_parameters_kept_ == 4
    new = rng.normal(size=(50, 3))
    np.testing.assert_allclose(model.predict(new), 1.0 + new @ [1.0, 2.0, 3.0], atol=1e-3)
    asked = SparseBNNRegressor((2,), random_state=0, n_starts=2).fit(X, X[:, 0])
    assert set(asked.optima_["hidden_layer_sizes"]) == {(2,)}


def test_six_rows_are_not_taken_for_free_of_noise():
    """Networks with as many weights as rows fit these exactly, with a higher evidence."""
    rng = np.random.default_rng([3, 6, 5044])
    x, new = rng.uniform(-1, 1, size=(6, 1)), rng.uniform(-1, 1, size=(1000, 1))
    y, y_new = (np.sin(3 * v[:, 0]) + 0.2 * rng.normal(size=len(v)) for v in (x, new))
    model = SparseBNNRegressor(random_state=0).fit(x, y)
    assert (model.optima_["n_kept"] < 5).all()
    assert model.log_predictive_density(new, y_new).mean() > -5.0


@pytest.mark.parametrize("n", [2, 3])
def test_so_few_rows_that_any_line_fits_give_a_constant(n):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    model = SparseBNNRegressor(random_state=0).fit(x, y)
    assert not model.feature_relevance_.any()
    assert (model.predict(x, return_std=True)[1] > y.std()).all()
    known = SparseBNNRegressor(random_state=0, noise_std=1e-3).fit(x, y)
    assert known.feature_relevance_.any()


def test_bent_truth_keeps_its_hidden_layer():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 2))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=60)
    model = SparseBNNRegressor(random_state=0).fit(X, y)
    assert () not in set(model.optima_["hidden_layer_sizes"])


def test_network_without_hidden_layers_needs_four_rows_per_weight():
    assert with_linear("default", 16, 3)
    assert not with_linear("default", 15, 3)
    assert not with_linear("auto", 100, 3)


def test_default_does_as_well_as_a_given_small_network(fitted):
    """Many neurons alone can end in redundant optima, 20 nats lower."""
    model, X, y = fitted
    asked = SparseBNNRegressor(3, random_state=1).fit(X, y)
    assert model.log_evidence_ > asked.log_evidence_ - 3.0
    assert model.account_.most < 30
    assert 2.0 < model.noise_std_ < 4.0
    new, truth = reaction(500, seed=1)
    _, interval = model.predict(new, return_interval=0.95)
    # 500 rows: 95 % ± 1 % by chance; and R² is at most 1 − 3²/var(y) ≈ 0.985.
    inside = (interval[:, 0] < truth) & (truth < interval[:, 1])
    assert 0.88 < inside.mean() < 0.995
    assert model.score(new, truth) > 0.96


def test_trials_list_every_family_and_the_better_one_is_kept(fitted, tmp_path):
    _, X, y = fitted
    model = SparseBNNRegressor("auto", n_starts=4, random_state=0, noise="constant").fit(X, y)
    tried, values = model.trials_["hidden_layer_sizes"].tolist(), model.trials_["log_evidence"]
    assert tried == [NARROW, MIDDLE, BROAD, WIDE]
    chosen = int(np.argmax(values > values.max() - 3.0))
    assert set(model.optima_["hidden_layer_sizes"]) <= set(tried[chosen])
    # In the units of y: the final evidence is that of the chosen family, iterated further.
    assert abs(model.log_evidence_ - values[chosen]) < 15.0
    path = tmp_path / "model.nc"
    model.save(path)
    loaded = sbnn.load(path)
    assert loaded.trials_.equals(model.trials_)
    assert loaded.messages_ == model.messages_


def test_many_neurons_are_kept_if_the_data_support_them():
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-1, 1, size=(200, 1)), rng.uniform(-1, 1, size=(500, 1))
    bends = lambda x: np.sin(12 * x[:, 0])
    y = bends(X) + 0.05 * rng.normal(size=200)
    model = SparseBNNRegressor(n_starts=6, random_state=0, noise="constant").fit(X, y)
    # An estimate of n_kept parameters has an error of about 0.05 √(n_kept / 200) in the mean.
    error = np.sqrt(np.mean((model.predict(new) - bends(new)) ** 2))
    assert error < 2.0 * 0.05 * np.sqrt(model.n_parameters_kept_ / 200)
    assert model.n_parameters_kept_ > 12


def test_optima_converge_on_small_tables_or_fit_warns(fitted):
    model, X, y = fitted
    assert model.optima_["converged"].all()
    assert model.messages_ == []
    few = {"iterations": 4, "neuron_moves": 0}
    hasty = SparseBNNRegressor(6, n_starts=2, random_state=0, method_options=few)
    with pytest.warns(ConvergenceWarning, match="optima had not converged after"):
        hasty.fit(X, y)
    assert not hasty.optima_["converged"].any()
    (message,) = hasty.messages_
    assert isinstance(message, OptimaNotConverged)
    assert message.n_late == message.n_optima == len(hasty.optima_)
    assert message.n_iterations == hasty.optima_["iterations"].max()


def redundant(copies: int):
    """An optimum of one tanh neuron split into identical copies, and the model."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(2, 60))
    y = 2.0 * np.tanh(x[:1] - 0.5 * x[1:]) + 0.1 * rng.normal(size=(1, 60))
    model = NetworkModel(x_t=x, y_t=y, sizes=(2, copies, 1))
    opt = lo.initial(model, rng)
    w = np.tile([1.0, -0.5], copies)
    opt.phi = np.r_[w, np.zeros(copies), np.full(copies, 2.0 / copies), 0.0]
    opt.log_alpha[:] = 0.0
    opt.noise = np.array([[0.5 * np.log(0.1)]])
    return model, opt


def neurons_left(opt: lo.Optimum) -> int:
    return sum(
        np.isin(m, opt.active).any() for m in (n.members for n in Network(opt.sizes).neurons())
    )


def test_redundant_neurons_are_merged():
    """The evidence of copies is about a nat lower; pruning single weights would not find it."""
    copies = 12
    single = lp.evolve(*redundant(1), 60)
    model, opt = redundant(copies)
    pruned = lp.evolve(model, opt, 60)
    assert neurons_left(pruned) > 1
    removed = lp.remove_units(model, pruned, 100, max_tries=copies)
    assert neurons_left(removed) == 1
    assert removed.log_evidence == pytest.approx(single.log_evidence, abs=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_more_iterations_do_not_lower_the_evidence(seed):
    """The update of α alone drifts downhill in a redundant network, by 9 to 20 nats here."""
    X, y = reaction()
    x_t, y_t = Scaling.of(X, y[:, None]).training(X, y[:, None])
    model = NetworkModel(x_t=x_t, y_t=y_t, sizes=(4, 20, 1))
    rng = np.random.default_rng(seed)
    dense = lp.evolve(model, lo.initial(model, rng), 60, model.groups(), warm_up=8)
    short, long = lp.evolve(model, dense, 40), lp.evolve(model, dense, 400)
    assert long.converged
    assert long.log_evidence > short.log_evidence - 1.0
    assert long.log_evidence == pytest.approx(lo.log_evidence(model, long)[0], abs=1e-9)


def test_compact_keeps_the_weights_that_are_kept(fitted):
    posterior = fitted[0].posterior_
    small = posterior.compact(fitted[0].fitted_state().inputs)
    kept = posterior.table()["n_kept"].tolist()
    assert small.table()["n_parameters"].tolist() == small.table()["n_kept"].tolist() == kept
    assert small.counts == (sum(kept), sum(kept))
    assert [len(opt.active) for opt in small.mixture.optima] == kept


@pytest.mark.parametrize(("periods", "n"), [(3, 60), (5, 120)])
def test_oscillating_function_is_learned(periods, n):
    """Smooth starts alone end at the constant, and so do narrow networks with many periods."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, size=(n, 1))
    truth = lambda x: np.sin(2 * periods * np.pi * x[:, 0])
    y = truth(x) + 0.1 * rng.normal(size=n)
    model = SparseBNNRegressor(random_state=0).fit(x, y)
    grid = np.linspace(0.05, 0.95, 50)[:, None]
    assert np.sqrt(np.mean((model.predict(grid) - truth(grid)) ** 2)) < 0.2  # the constant: 0.7


def test_save_replaces_an_estimator_only_with_overwrite(fitted, tmp_path):
    model, _, _ = fitted
    path = tmp_path / "model.nc"
    model.save(path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.save(path)
    assert path.read_bytes() == before
    model.save(path, overwrite=True)
    assert sbnn.load(path).n_parameters_kept_ == model.n_parameters_kept_


def test_save_rejects_other_file_endings(fitted, tmp_path):
    with pytest.raises(
        ValueError, match=r"NetCDF file; give a name that ends in \.nc, not '\.pkl'"
    ):
        fitted[0].save(tmp_path / "model.pkl")
    assert list(tmp_path.iterdir()) == []
