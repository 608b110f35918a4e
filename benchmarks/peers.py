"""Other methods of the UCI benchmark: functions of training data and test inputs to a prediction.

A prediction is a Gaussian mixture (weights, means, stds), each of shape (n_components, m), in the
units of y; `stds=None` for a method that predicts points only. Packages are imported inside the
functions, so that a missing one is reported as skipped.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np


class Prediction(NamedTuple):
    weights: np.ndarray
    means: np.ndarray
    stds: np.ndarray | None
    note: str = ""


def gaussian(mean, std=None, note: str = "") -> Prediction:
    mean = np.atleast_2d(mean)
    return Prediction(np.ones_like(mean), mean, None if std is None else np.atleast_2d(std), note)


def standardised(x, y, x_test):
    centre, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale == 0] = 1.0
    return (x - centre) / scale, (y - y.mean()) / y.std(), (x_test - centre) / scale


def gaussian_process(x, y, x_test, seed) -> Prediction:
    """ARD-RBF + white noise, optimised from one start; at most 2,000 rows."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    rows = np.arange(len(y))
    if len(y) > 2000:
        rows = np.random.default_rng(seed).choice(len(y), 2000, replace=False)
    a, t, b = standardised(x[rows], y[rows], x_test)
    lengths = RBF(np.ones(x.shape[1]), (1e-2, 1e4))
    kernel = ConstantKernel(1.0, (1e-3, 1e5)) * lengths + WhiteKernel(0.1, (1e-8, 10.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(kernel, random_state=seed).fit(a, t)
        mean, std = model.predict(b, return_std=True)
    scale, centre = y[rows].std(), y[rows].mean()
    return gaussian(mean * scale + centre, std * scale, f"{len(rows)} rows")


def bayesian_ridge(x, y, x_test, seed) -> Prediction:
    from sklearn.linear_model import BayesianRidge

    a, _, b = standardised(x, y, x_test)
    return gaussian(*BayesianRidge().fit(a, y).predict(b, return_std=True))


def ard_regression(x, y, x_test, seed) -> Prediction:
    from sklearn.linear_model import ARDRegression

    a, _, b = standardised(x, y, x_test)
    return gaussian(*ARDRegression().fit(a, y).predict(b, return_std=True))


def catboost_plain(x, y, x_test, seed) -> Prediction:
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(random_seed=seed, verbose=0, allow_writing_files=False)
    return gaussian(model.fit(x, y).predict(x_test))


def catboost_uncertainty(x, y, x_test, seed) -> Prediction:
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty", random_seed=seed, verbose=0, allow_writing_files=False
    ).fit(x, y)
    mean, variance = model.predict(x_test).T
    return gaussian(mean, np.sqrt(variance))


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
    return gaussian(found.loc, found.scale, f"{n_trees} trees")


def _network(n_in: int, n_out: int, activation: str, width: int = 50):
    from torch import nn

    middle = nn.Tanh() if activation == "tanh" else nn.ReLU()
    return nn.Sequential(nn.Linear(n_in, width), middle, nn.Linear(width, n_out))


def _batches(a, t, seed, size=100):
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)  # batches are too small for more threads
    data = TensorDataset(torch.tensor(a).float(), torch.tensor(t).float()[:, None])
    order = torch.Generator().manual_seed(seed)
    return DataLoader(data, batch_size=size, shuffle=True, generator=order)


def deep_ensemble(x, y, x_test, seed, n_members=5, n_updates=4000) -> Prediction:
    """Five networks of 50 units with mean and variance outputs (Lakshminarayanan et al. 2017).

    4,000 updates of Adam each instead of the paper's 40 epochs, which underfit small tables.
    """
    import torch
    from torch.nn.functional import softplus

    torch.set_num_threads(1)  # batches are too small for more threads
    a, t, b = standardised(x, y, x_test)
    inputs, target = torch.tensor(a).float(), torch.tensor(t).float()[:, None]
    means, stds = [], []
    for member in range(n_members):
        torch.manual_seed(1000 * seed + member)
        net = _network(a.shape[1], 2, "relu")
        optimiser = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=1e-4)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, n_updates)
        for _ in range(n_updates):
            rows = torch.randint(len(t), (100,))
            mean, raw = net(inputs[rows]).split(1, dim=1)
            variance = softplus(raw) + 1e-6
            loss = (0.5 * variance.log() + 0.5 * (target[rows] - mean) ** 2 / variance).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        with torch.no_grad():
            mean, raw = net(torch.tensor(b).float()).split(1, dim=1)
        means.append(mean[:, 0].numpy() * y.std() + y.mean())
        stds.append(np.sqrt(softplus(raw)[:, 0].numpy() + 1e-6) * y.std())
    # As in the paper, the ensemble is one Gaussian with the mixture's moments.
    mean = np.mean(means, axis=0)
    variance = np.mean(np.square(stds) + np.square(means), axis=0) - mean**2
    return gaussian(mean, np.sqrt(variance))


def laplace_torch(x, y, x_test, seed, n_updates=4000) -> Prediction:
    """One tanh network of 50 units trained by marginal likelihood, full GGN, linearised."""
    import torch
    from laplace import marglik_training

    a, t, b = standardised(x, y, x_test)
    torch.manual_seed(seed)
    net = _network(a.shape[1], 1, "tanh")
    batches = _batches(a, t, seed)
    epochs = max(n_updates // len(batches), 20)
    found = marglik_training(
        net,
        batches,
        likelihood="regression",
        hessian_structure="full" if sum(p.numel() for p in net.parameters()) < 1000 else "kron",
        optimizer_kwargs={"lr": 1e-2},
        n_epochs=epochs,
        n_epochs_burnin=epochs // 10,
        marglik_frequency=max(epochs // 50, 1),
        prior_structure="layerwise",
        progress_bar=False,
    )
    fitted = found[0]
    mean, variance = fitted(torch.tensor(b).float())
    noise = float(fitted.sigma_noise) ** 2
    std = np.sqrt(variance.detach().numpy().reshape(len(b)) + noise)
    return gaussian(mean.detach().numpy()[:, 0] * y.std() + y.mean(), std * y.std())


PEERS = {
    "gp": gaussian_process,
    "bayesian_ridge": bayesian_ridge,
    "ard_regression": ard_regression,
    "catboost": catboost_plain,
    "catboost_uncertainty": catboost_uncertainty,
    "ngboost": ngboost,
    "deep_ensemble": deep_ensemble,
    "laplace_torch": laplace_torch,
}
