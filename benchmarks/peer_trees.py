"""Trees in the comparison: boosting, forests, BART, diffusion; conformal intervals.

Every function takes training inputs and targets, test inputs and a seed. Packages are imported
inside the functions, so that a missing one is reported as skipped.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from prediction import LEVELS, Prediction, gaussian, mixture_of_draws

FOLDS = 5


# ---------------------------------------------------------------------------------------- boosting
def _catboost(seed: int, **options):
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        random_seed=seed, verbose=0, allow_writing_files=False, thread_count=1, **options
    )


def catboost_plain(x, y, x_test, seed) -> Prediction:
    """Points only, with the default options."""
    model = _catboost(seed).fit(x, y)
    return Prediction(model.predict(x_test), parameters=len(model.get_leaf_values()))


def catboost_uncertainty(x, y, x_test, seed) -> Prediction:
    """Mean and variance by boosting of the Gaussian log-likelihood."""
    model = _catboost(seed, loss_function="RMSEWithUncertainty").fit(x, y)
    mean, variance = model.predict(x_test).T
    return gaussian(mean, np.sqrt(variance), len(model.get_leaf_values()))


def ngboost(x, y, x_test, seed) -> Prediction:
    """Choose the number of trees on a held-out fifth of the rows, then fit to all rows."""
    from ngboost import NGBRegressor

    rows = np.random.default_rng(seed).permutation(len(y))
    held, rest = rows[: len(y) // 5], rows[len(y) // 5 :]
    options = {"learning_rate": 0.01, "verbose": False, "random_state": seed}
    probe = NGBRegressor(n_estimators=2000, **options)
    probe.fit(x[rest], y[rest], X_val=x[held], Y_val=y[held], early_stopping_rounds=50)
    n_trees = int(probe.best_val_loss_itr or 2000)
    model = NGBRegressor(n_estimators=n_trees, **options).fit(x, y)
    found = model.pred_dist(x_test)
    return gaussian(found.loc, found.scale, note=f"{n_trees} trees")


# --------------------------------------------------------------------------- conformal predictions
def _conformal(make: Callable, x, y, x_test, count: Callable, folded: Callable) -> Prediction:
    """Quantiles of a conformal predictive system around the predictions of a point method.

    The model that `make` returns is fitted to all rows. The residuals are those of five-fold
    cross-validation of the model that `folded` returns. They are divided by a difficulty, the mean
    absolute residual of the 25 nearest neighbours.
    """
    from crepes import ConformalPredictiveSystem
    from crepes.extras import DifficultyEstimator
    from sklearn.model_selection import KFold
    from sklearn.preprocessing import StandardScaler

    folds = KFold(min(FOLDS, len(y)), shuffle=True, random_state=0)
    residuals = np.empty(len(y))
    for rest, held in folds.split(x):
        residuals[held] = y[held] - folded().fit(x[rest], y[rest]).predict(x[held])
    model = make().fit(x, y)
    mean = np.asarray(model.predict(x_test), dtype=float)

    scaler = StandardScaler().fit(x)
    neighbours = min(25, len(y) - 1)
    difficulty = DifficultyEstimator().fit(
        X=scaler.transform(x), residuals=residuals, k=neighbours, scaler=True, oob=True
    )
    system = ConformalPredictiveSystem().fit(residuals, sigmas=difficulty.apply())
    low, high = 100 * LEVELS[LEVELS < 0.5], 100 * LEVELS[LEVELS > 0.5]
    # The system has no quantiles beyond its largest residuals; the range of y ends them there.
    found = system.predict_percentiles(
        mean, sigmas=difficulty.apply(scaler.transform(x_test)), lower_percentiles=list(low),
        higher_percentiles=list(high), y_min=y.min(), y_max=y.max(),
    )  # fmt: skip
    return Prediction(mean, quantiles=np.sort(found.T, axis=0), parameters=count(model))


def catboost_conformal(x, y, x_test, seed) -> Prediction:
    """CatBoost with the default options and conformal intervals by crepes."""
    make = lambda: _catboost(seed)
    return _conformal(make, x, y, x_test, lambda model: len(model.get_leaf_values()), make)


def ebm_conformal(x, y, x_test, seed) -> Prediction:
    """Explainable boosting machine with the default options and conformal intervals by crepes.

    Cross-validation bags two models instead of 14: with 14 it takes minutes on 300 rows.
    """
    from interpret.glassbox import ExplainableBoostingRegressor

    make = lambda **options: ExplainableBoostingRegressor(random_state=seed, n_jobs=1, **options)
    count = lambda model: sum(np.size(scores) for scores in model.term_scores_)
    return _conformal(make, x, y, x_test, count, lambda: make(outer_bags=2))


# ----------------------------------------------------------------------------------------- forests
def quantile_forest(x, y, x_test, seed) -> Prediction:
    """Quantile regression forest of 500 trees, at least five rows per leaf."""
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(
        n_estimators=500, min_samples_leaf=5, random_state=seed, n_jobs=1
    ).fit(x, y)
    quantiles = model.predict(x_test, quantiles=list(LEVELS)).T
    leaves = sum(tree.tree_.n_leaves for tree in model.estimators_)
    return Prediction(
        model.predict(x_test, quantiles="mean"), quantiles=quantiles, parameters=leaves
    )


def _bart(x, y, x_test, seed, **options):
    from stochtree import BARTModel

    model = BARTModel()
    general = {"random_seed": seed, "num_threads": 1, **options.pop("general", {})}
    model.sample(
        X_train=x, y_train=y, X_test=x_test, num_gfr=10, num_burnin=200, num_mcmc=500,
        general_params=general, **options,
    )  # fmt: skip
    return model


def bart(x, y, x_test, seed) -> Prediction:
    """BART with 200 trees: 10 warm-start sweeps, 200 burn-in sweeps, 500 draws."""
    model = _bart(x, y, x_test, seed)
    return mixture_of_draws(model.y_hat_test.T, np.sqrt(model.global_var_samples)[:, None])


def bart_heteroscedastic(x, y, x_test, seed) -> Prediction:
    """The same with 50 more trees for the logarithm of the variance."""
    model = _bart(
        x, y, x_test, seed, general={"sample_sigma2_global": False},
        mean_forest_params={"sample_sigma2_leaf": False}, variance_forest_params={"num_trees": 50},
    )  # fmt: skip
    return mixture_of_draws(model.y_hat_test.T, np.sqrt(model.sigma2_x_test.T))


def treeffuser(x, y, x_test, seed, n_draws=200) -> Prediction:
    """Diffusion with boosted trees, default options; 200 draws per point."""
    from treeffuser import Treeffuser

    model = Treeffuser(seed=seed, n_jobs=1).fit(x, y)
    draws = np.asarray(model.sample(x_test, n_samples=n_draws, seed=seed)).reshape(n_draws, -1)
    return Prediction(draws.mean(axis=0), draws=draws)
