"""Networks in the comparison: deep ensemble, laplace-torch and sampled networks (bde).

Every function takes training inputs and targets, test inputs and a seed. Packages are imported
inside the functions, so that a missing one is reported as skipped.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from prediction import Prediction, gaussian, mixture_of_draws, standardised


def _network(n_in: int, n_out: int, activation: str, width: int = 50):
    from torch import nn

    middle = nn.Tanh() if activation == "tanh" else nn.ReLU()
    return nn.Sequential(nn.Linear(n_in, width), middle, nn.Linear(width, n_out))


def _size(net) -> int:
    return sum(p.numel() for p in net.parameters())


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
    return gaussian(mean, np.sqrt(variance), n_members * _size(net))


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
        hessian_structure="full" if _size(net) < 1000 else "kron",
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
    return gaussian(mean.detach().numpy()[:, 0] * y.std() + y.mean(), std * y.std(), _size(net))


def _bde(x, y, x_test, seed, **options) -> Prediction:
    """Sampled networks with mean and variance outputs; the mixture over members and draws."""
    from bde import BdeRegressor
    from bde.loss import GaussianNLL

    a, t, b = standardised(x, y, x_test)
    model = BdeRegressor(
        seed=seed, loss=GaussianNLL(), validation_split=0.15, lr=1e-3, weight_decay=1e-4, **options
    ).fit(a, t)
    raw = np.asarray(model.predict(b, raw=True), dtype=float).reshape(-1, len(b), 2)
    stds = np.logaddexp(0.0, raw[..., 1]) + 1e-6  # as bde maps the second output to a scale
    widths = [a.shape[1], *options["hidden_layers"], 2]
    size = sum((i + 1) * o for i, o in pairwise(widths))
    return mixture_of_draws(
        raw[..., 0] * y.std() + y.mean(), stds * y.std(), size * len(raw), f"{len(raw)} draws"
    )


def bde(x, y, x_test, seed) -> Prediction:
    """sklearn-contrib-bde as in its README: 8 members of 16-16, 5,000 steps of warm-up."""
    return _bde(
        x, y, x_test, seed, hidden_layers=[16, 16], n_members=8, epochs=200, warmup_steps=5000,
        n_samples=2000, n_thinning=2, patience=10,
    )  # fmt: skip


def bde_long(x, y, x_test, seed) -> Prediction:
    """sklearn-contrib-bde as in its paper: 10 members of 16-16-16-16, 50,000 steps of warm-up."""
    return _bde(
        x, y, x_test, seed, hidden_layers=[16] * 4, n_members=10, epochs=1200, warmup_steps=50000,
        n_samples=1000, n_thinning=10, patience=20,
    )  # fmt: skip
