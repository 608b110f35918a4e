"""Time of the closed-form evidence, its derivatives and its maximisation.

Evaluates the evidence with gradient and Hessian for various numbers of kernels K and parameters d,
with fitted exponents. Compares 32 starts of the optimiser at K = 200, d = 10 with the same starts
by SciPy's `trust-ncg` with derivatives by JAX (compiled before the measurement).

    python benchmarks/optimiser.py

Prints a table and writes benchmarks/results/optimiser.csv.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.scipy.special import logsumexp
from jax.scipy.stats import multivariate_normal
from scipy.optimize import minimize

from sbnn._core.float64 import float64
from sbnn.evidence.closed_form import evaluate
from sbnn.evidence.mixture import GaussianMixture
from sbnn.evidence.newton import multistart
from sbnn.priors import Hyperprior

OUT = Path(__file__).parent / "results" / "optimiser.csv"
HYPERPRIOR = Hyperprior()


def mixture_of(n_kernels: int, d: int) -> GaussianMixture:
    """Random kernels; half of the parameters have means far from zero, the others zero means."""
    rng = np.random.default_rng([n_kernels, d])
    root = 0.3 * rng.normal(size=(n_kernels, d, d)) / np.sqrt(d)
    covariances = root @ root.mT + 0.05 * np.eye(d)
    means = rng.normal(size=(n_kernels, 1, d)) * np.where(np.arange(d) % 2, 1.5, 0.0)
    return GaussianMixture(np.full((n_kernels, 1), -np.log(n_kernels)), means, covariances)


def best_of(function, repeats: int = 5) -> float:
    """The shortest of several timings: other load on the machine only adds time."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def evaluation_seconds(n_kernels: int, d: int) -> float:
    mixture, ard = mixture_of(n_kernels, d), np.ones(d, bool)
    return best_of(lambda: evaluate(np.zeros(d), mixture, ard, HYPERPRIOR))


def exponent(sizes, seconds) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


@float64
def by_autodiff(starts: np.ndarray, mixture: GaussianMixture) -> tuple[float, float]:
    """Best objective and seconds of the same starts with derivatives by JAX."""
    means, covariances = jnp.asarray(mixture.means[:, 0]), jnp.asarray(mixture.covariances)

    def objective(log_alpha, means, covariances):
        spread = covariances + jnp.diag(jnp.exp(-log_alpha))
        # One kernel at a time: batched factorisations have been seen to deadlock on two cores.
        densities = jax.lax.map(
            lambda mc: multivariate_normal.logpdf(jnp.zeros_like(mc[0]), *mc), (means, spread)
        )
        evidence = logsumexp(densities + mixture.log_weights[:, 0])
        hyper = HYPERPRIOR.shape * log_alpha - HYPERPRIOR.rate * jnp.exp(log_alpha)
        return -(evidence + hyper.sum())

    value, gradient, hessian = (
        functools.partial(jax.jit(f), means=means, covariances=covariances)
        for f in (objective, jax.grad(objective), jax.hessian(objective))
    )
    for function in (value, gradient, hessian):
        function(starts[0]).block_until_ready()
    started = time.perf_counter()
    best = min(
        minimize(
            lambda z: float(value(z)),
            start,
            jac=lambda z: np.asarray(gradient(z)),
            hess=lambda z: np.asarray(hessian(z)),
            method="trust-ncg",
            options={"gtol": 1e-5, "maxiter": 100, "max_trust_radius": 8.0},
        ).fun
        for start in starts
    )
    return -best, time.perf_counter() - started


def main() -> None:
    rows = []
    kernels, dimensions = (100, 200, 400, 800), (10, 20, 40, 80)
    by_kernels = [evaluation_seconds(k, 10) for k in kernels]
    by_dimension = [evaluation_seconds(200, d) for d in dimensions]
    for k, s in zip(kernels, by_kernels):
        rows.append({"what": "evaluation", "kernels": k, "parameters": 10, "seconds": s})
    for d, s in list(zip(dimensions, by_dimension))[1:]:
        rows.append({"what": "evaluation", "kernels": 200, "parameters": d, "seconds": s})
    mixture = mixture_of(200, 10)
    starts = 2 * np.random.default_rng(1).normal(size=(32, 10))
    started = time.perf_counter()
    found = multistart(starts, mixture, np.ones(10, bool), HYPERPRIOR)
    ours = time.perf_counter() - started
    objective, autodiff = by_autodiff(starts, mixture)
    for what, s in (("32 starts", ours), ("32 starts, autodiff", autodiff)):
        rows.append({"what": what, "kernels": 200, "parameters": 10, "seconds": s})
    table = pd.DataFrame(rows)
    print(table.to_string(index=False, float_format="%.4g"))
    print(f"\nseconds ~ K^{exponent(kernels, by_kernels):.2f} (theory 1)")
    print(f"seconds ~ d^{exponent(dimensions, by_dimension):.2f} (theory 3, less while d is small)")
    print(f"best objective {found[0].objective:.6f}, by autodiff {objective:.6f}")
    print(f"autodiff takes {autodiff / ours:.1f} times as long")
    OUT.parent.mkdir(exist_ok=True)
    table.to_csv(OUT, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
