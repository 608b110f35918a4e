"""Methods of the comparison by name: sbnn, linear models and Gaussian processes, and the rest.

A method is a function of training inputs and targets, test inputs and a seed to a `Prediction`.
`METHODS` lists them in the order in which they are run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from peer_networks import bde, bde_long, deep_ensemble, laplace_torch
from peer_trees import (
    bart,
    bart_heteroscedastic,
    catboost_conformal,
    catboost_plain,
    catboost_uncertainty,
    ebm_conformal,
    ngboost,
    quantile_forest,
    treeffuser,
)
from prediction import Prediction, gaussian, standardised

MOST_ROWS = 2000  # of an exact Gaussian process


class Method(NamedTuple):
    """A method: its function, name in tables, modules it imports and most splits per table."""

    fit: Callable[..., Prediction]
    title: str
    modules: tuple[str, ...]
    splits: int = 20
    tables: tuple[str, ...] | None = None


def sparse_bnn(x, y, x_test, seed) -> Prediction:
    """The default configuration, the same for every table."""
    from sbnn import SparseBNNRegressor

    model = SparseBNNRegressor(random_state=seed).fit(x, y)
    found = model.predictive(x_test)
    return Prediction(
        found.mean(), predictive=found, parameters=model.n_parameters_,
        extra={"kept": model.n_parameters_kept_, "noise": model.noise_used_},
    )  # fmt: skip


def bayesian_ridge(x, y, x_test, seed) -> Prediction:
    from sklearn.linear_model import BayesianRidge

    a, _, b = standardised(x, y, x_test)
    return gaussian(*BayesianRidge().fit(a, y).predict(b, return_std=True), a.shape[1] + 1)


def ard_regression(x, y, x_test, seed) -> Prediction:
    from sklearn.linear_model import ARDRegression

    a, _, b = standardised(x, y, x_test)
    return gaussian(*ARDRegression().fit(a, y).predict(b, return_std=True), a.shape[1] + 1)


def _rows(n: int, seed: int) -> np.ndarray:
    """All rows, or `MOST_ROWS` of them at random."""
    if n <= MOST_ROWS:
        return np.arange(n)
    return np.random.default_rng(seed).choice(n, MOST_ROWS, replace=False)


def gaussian_process(x, y, x_test, seed) -> Prediction:
    """ARD-RBF + white noise, optimised from one start; at most 2,000 rows."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    rows = _rows(len(y), seed)
    a, t, b = standardised(x[rows], y[rows], x_test)
    lengths = RBF(np.ones(x.shape[1]), (1e-2, 1e4))
    kernel = ConstantKernel(1.0, (1e-3, 1e5)) * lengths + WhiteKernel(0.1, (1e-8, 10.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(kernel, random_state=seed).fit(a, t)
        mean, std = model.predict(b, return_std=True)
    scale, centre = y[rows].std(), y[rows].mean()
    return gaussian(
        mean * scale + centre, std * scale, len(model.kernel_.theta), f"{len(rows)} rows"
    )


def gpytorch_matern(x, y, x_test, seed, n_updates=150) -> Prediction:
    """GPyTorch: ARD-Matérn-5/2 in double precision, 150 updates of Adam; at most 2,000 rows."""
    import gpytorch
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rows = _rows(len(y), seed)
    a, t, b = (torch.tensor(v) for v in standardised(x[rows], y[rows], x_test))

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood) -> None:
            super().__init__(a, t, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            lengths = gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=a.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(lengths)

        def forward(self, at):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(at), self.covar_module(at)
            )

    noise = gpytorch.likelihoods.GaussianLikelihood(
        noise_constraint=gpytorch.constraints.GreaterThan(1e-6)
    )
    model = Model(noise).double()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(noise, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    # Cholesky factors instead of conjugate gradients: exact up to rounding.
    with gpytorch.settings.fast_computations(False, False, False):
        for _ in range(n_updates):
            optimiser.zero_grad()
            loss = -objective(model(a), t)
            loss.backward()
            optimiser.step()
        model.eval()
        noise.eval()
        with torch.no_grad():
            found = noise(model(b))
            mean, std = found.mean.numpy(), found.variance.sqrt().numpy()
    scale, centre = y[rows].std(), y[rows].mean()
    size = sum(p.numel() for p in model.parameters())
    return gaussian(mean * scale + centre, std * scale, size, f"{len(rows)} rows")


METHODS = {
    "sbnn": Method(sparse_bnn, "**sbnn**", ("sbnn.regressor.estimator",)),
    "catboost_conformal": Method(
        catboost_conformal, "CatBoost, conformal (crepes)", ("catboost", "crepes.extras")
    ),
    "bart_heteroscedastic": Method(
        bart_heteroscedastic, "BART with varying noise (stochtree)", ("stochtree",)
    ),
    "gpytorch": Method(gpytorch_matern, "Gaussian process, ARD-Matérn (GPyTorch)", ("gpytorch",)),
    "gp": Method(
        gaussian_process, "Gaussian process, ARD-RBF (scikit-learn)", ("sklearn.gaussian_process",)
    ),
    "bart": Method(bart, "BART (stochtree)", ("stochtree",)),
    "quantile_forest": Method(quantile_forest, "quantile forest", ("quantile_forest",)),
    "treeffuser": Method(treeffuser, "Treeffuser", ("treeffuser",)),
    "ebm": Method(
        ebm_conformal,
        "EBM (interpret), conformal (crepes)",
        ("interpret.glassbox", "crepes.extras"),
        splits=10,
    ),
    "deep_ensemble": Method(deep_ensemble, "deep ensemble", ("torch",)),
    "ngboost": Method(ngboost, "NGBoost", ("ngboost",)),
    "laplace_torch": Method(laplace_torch, "Laplace (laplace-torch)", ("laplace",)),
    "catboost_uncertainty": Method(
        catboost_uncertainty, "CatBoost with uncertainty", ("catboost",)
    ),
    "catboost": Method(catboost_plain, "CatBoost", ("catboost",)),
    "bayesian_ridge": Method(
        bayesian_ridge, "Bayesian ridge (scikit-learn)", ("sklearn.linear_model",)
    ),
    "ard_regression": Method(
        ard_regression, "ARD regression (scikit-learn)", ("sklearn.linear_model",)
    ),
    "bde": Method(bde, "sampled networks (bde)", ("bde",)),
    "bde_long": Method(
        bde_long, "sampled networks, long (bde)", ("bde",), splits=1, tables=("airfoil",)
    ),
}
TITLES = {name: method.title for name, method in METHODS.items()}
