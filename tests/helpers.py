"""Test helpers: keys, statistical tolerances, and small problems.

A stochastic check compares with the truth in units of a standard error, never with a fixed number.
`SBNN_TEST_SEED=7 pytest` runs every stochastic test with other keys.
"""

from __future__ import annotations

import os

import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.special import gammaln

import sbnn
from sbnn.priors import Custom, Normal

SEED = int(os.environ.get("SBNN_TEST_SEED", "0"))
N_ERRORS = 4.0  # a true claim fails about once in 16,000 checks


def keys(n: int) -> list[int]:
    """n keys, which depend on SBNN_TEST_SEED."""
    return [10_000 * SEED + i for i in range(n)]


def rng(*salt: int) -> np.random.Generator:
    return np.random.default_rng([SEED, *salt])


def assert_within_errors(estimate, truth, error, what: str = "estimate") -> None:
    """|estimate − truth| ≤ 4 standard errors, elementwise."""
    estimate, error = np.asarray(estimate, dtype=float), np.asarray(error, dtype=float)
    assert np.isfinite(estimate).all(), f"{what} is not finite: {estimate}"
    assert (np.isfinite(error) & (error > 0)).all(), f"the error of {what} is {error}"
    z = np.abs(estimate - truth) / error
    assert (z <= N_ERRORS).all(), (
        f"{what}: {estimate} is {np.max(z):.1f} standard errors ({error}) away from {truth}"
    )


def assert_mean_within_errors(replicates, truth, what: str = "mean") -> None:
    """The mean over replicate runs (first axis) against the truth, its error from the runs."""
    replicates = np.asarray(replicates, dtype=float)
    error = replicates.std(axis=0, ddof=1) / np.sqrt(len(replicates))
    # Few replicates: Student's t has wider tails than the normal assumed by "four errors".
    widen = stats.t.isf(stats.norm.sf(N_ERRORS), len(replicates) - 1) / N_ERRORS
    assert_within_errors(replicates.mean(axis=0), truth, widen * error, what)


def assert_honest_errors(z) -> None:
    """Reported errors are neither too small nor too large, and there is no bias.

    The standard deviation of the z-scores lies in 0.6–1.6 for 20 keys; for fewer, in the wider
    interval that chance allows (χ² at 1e-4 each side).
    """
    z = np.asarray(z, dtype=float)
    n = len(z)
    low, high = 0.6, 1.6
    if n < 20:
        low, high = np.sqrt(stats.chi2.ppf([1e-4, 1 - 1e-4], n - 1) / (n - 1))
    spread = z.std(ddof=1)
    assert low <= spread <= high, f"z-scores have standard deviation {spread:.2f}: {z.round(1)}"
    assert_within_errors(z.mean(), 0.0, 1 / np.sqrt(n), "mean z-score")


def assert_shares(counts, shares, what: str = "shares") -> None:
    """Counts of independent draws against their probabilities, in multinomial standard errors."""
    counts, shares = np.asarray(counts, dtype=float), np.asarray(shares, dtype=float)
    n = counts.sum()
    assert_within_errors(counts / n, shares, np.sqrt(shares * (1 - shares) / n), what)


def assert_equal_means(columns, what: str = "means") -> None:
    """All columns of paired samples (n, k) have the same mean, within errors of the differences."""
    columns = np.asarray(columns, dtype=float)
    for j in range(1, columns.shape[1]):
        difference = columns[:, j] - columns[:, 0]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        assert_within_errors(difference.mean(), 0.0, error, f"{what}: column {j} − column 0")


def gaussian_problem(d: int, std: float = 0.1, **options):
    """N(m | θ, std²) likelihood × N(0, 1) prior in d dimensions, and its exact log evidence."""
    mean = np.linspace(-1.0, 1.0, d)
    problem = sbnn.Problem(
        gaussian_log_likelihood,
        [f"theta[{i}]" for i in range(d)],
        {"theta": Normal(0.0, 1.0)},
        data=(mean, np.float64(std)),
        **options,
    )
    # m ~ N(0, 1 + std²), independent in every dimension
    return problem, float(stats.norm.logpdf(mean, 0.0, np.hypot(1.0, std)).sum())


def gaussian_log_likelihood(theta, data):
    mean, std = data
    d = mean.shape[0]
    residual = (theta - mean) / std
    return -0.5 * jnp.sum(residual**2) - d * jnp.log(std) - 0.5 * d * np.log(2 * np.pi)


def z_score(result, exact: float) -> float:
    return (result.log_evidence - exact) / result.log_evidence_error


_PINE = {"mean": (3000.0, 185.0), "precision": (0.06, 6.0), "shape": 3.0, "rate": 2 * 300.0**2}


def line_problem(x, y, mean=_PINE["mean"], precision=_PINE["precision"], shape=3.0, rate=180000.0):
    """A straight line y ~ x − x̄ with a normal–gamma prior, and its exact log evidence.

    β ~ N(mean, diag(τ precision)⁻¹), τ ~ Gamma(shape, rate). Written with independent parts:
    t = rate·τ ~ Gamma(shape, 1) and β = mean + z / √(τ precision), z ~ N(0, I).
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    design = np.column_stack([np.ones_like(x), x - x.mean()])
    mean, precision = np.asarray(mean, dtype=float), np.asarray(precision, dtype=float)
    n = len(y)

    def log_likelihood(theta, data):
        design, y, mean, precision, rate = data
        tau = theta[0] / rate
        beta = mean + theta[1:] / jnp.sqrt(tau * precision)
        residual = y - design @ beta
        return 0.5 * n * jnp.log(tau / (2 * np.pi)) - 0.5 * tau * jnp.sum(residual**2)

    def density(t):
        inside = jnp.where(t > 0, t, 1.0)
        value = (shape - 1) * jnp.log(inside) - inside - gammaln(shape)
        return jnp.where(t > 0, value, -jnp.inf)

    def sampler(key, size):
        import jax

        return jax.random.gamma(key, shape, size)

    problem = sbnn.Problem(
        log_likelihood,
        ["t", "z[1]", "z[2]"],
        {"t": Custom(density, sampler, (0.0, np.inf)), "z": Normal(0.0, 1.0)},
        data=(design, y, mean, precision, np.float64(rate)),
    )
    # Posterior: precision Λ = Q + XᵀX, mean m, Gamma(a + n/2, b + ½(yᵀy + μᵀQμ − mᵀΛm)).
    prior, total = np.diag(precision), np.diag(precision) + design.T @ design
    posterior_mean = np.linalg.solve(total, prior @ mean + design.T @ y)
    residual = y - design @ posterior_mean
    shift = posterior_mean - mean
    # yᵀy + μᵀQμ − mᵀΛm = |y − Xm|² + (m − μ)ᵀQ(m − μ), without cancellation
    b = rate + 0.5 * (residual @ residual + shift @ prior @ shift)
    a = shape + 0.5 * n
    exact = (
        -0.5 * n * np.log(2 * np.pi)
        + 0.5 * (np.linalg.slogdet(prior)[1] - np.linalg.slogdet(total)[1])
        + shape * np.log(rate)
        - a * np.log(b)
        + gammaln(a)
        - gammaln(shape)
    )
    return problem, float(exact)
