"""Which forces drive an oscillator? Eight candidate terms, noisy displacements, four true terms.

A body is released twice, once near its rest position and once far from it. Both times it settles on
the same limit cycle. Its displacement x is measured; the law of motion is unknown:

    ẍ = c₁ x + c₂ x³ + c₃ x⁵ + c₄ ẋ + c₅ |ẋ|ẋ + c₆ ẋ³ + c₇ x²ẋ + c₈ x⁴ẋ

Four of the true coefficients are zero. `sbnn.nsbl` does not know this: all eight have ARD priors.

    python examples/oscillator.py --seed 0 --out oscillator-results

Known are the noise level of the sensor, the fact that the body starts at rest, and units in which
displacement and time are of order one, so that coefficients are, too. The data are generated with a
different integrator (SciPy, ten digits) from the one in the model.

Two settings differ from the defaults:

- `hyperprior` rate 1e-10. The hyperprior caps every precision: an irrelevant coefficient that the
  data resolve to a standard deviation s keeps a relevance of about √(2 rate) / s. The default rate,
  e⁻¹⁰ = 4.5e-5 (√(2 rate) = 0.0095), suits network weights, which are known to about 0.1. A
  coefficient known to 0.01 would always look relevant. With 1e-10, coefficients known to 2e-4 or
  worse can be pruned.
- `sparsify` 3 nats. By chance alone, a superfluous term gains more than 0.75 nat of evidence (the
  default) about once in 20 times, and more than 3 nats about once in 400 times. In a network, such
  a weight does no harm, but a law of motion should not contain it. A Bayes factor of twenty, which
  is 3 nats, counts as strong evidence.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

import sbnn

TERMS = ["x", "x³", "x⁵", "ẋ", "|ẋ|ẋ", "ẋ³", "x²ẋ", "x⁴ẋ"]
STARTS = ["start[1]", "start[2]"]
TRUE = np.array([-1.0, -0.5, 0.0, 0.5, 0.0, 0.0, -2.0, 0.0])
TRUE_STARTS = np.array([0.2, 1.5])
NOISE_STD = 0.03
STEP = 0.16  # of the integrator; its error is 0.0007, a fortieth of the noise
EVERY = 2  # the sensor measures at every second step
N_STEPS = 60
LIMIT = 10.0  # a motion beyond ±10 is unstable; measurements stay within ±2
HYPERPRIOR = sbnn.priors.Hyperprior(rate=1e-10)
SPARSIFY = 3.0


def measure(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) and noisy displacements (n, 2) of the two releases."""
    times = STEP * EVERY * np.arange(1, N_STEPS // EVERY + 1)
    noise = NOISE_STD * np.random.default_rng(seed).normal(size=(len(times), len(TRUE_STARTS)))
    return times, truth(times) + noise


def truth(times: np.ndarray) -> np.ndarray:
    """True displacements, shape (n, 2), integrated with SciPy."""

    def law(_, state):
        x, v = state
        return [v, TRUE @ [x, x**3, x**5, v, abs(v) * v, v**3, x**2 * v, x**4 * v]]

    runs = [
        solve_ivp(law, (0, times[-1]), [start, 0.0], t_eval=times, rtol=1e-10, atol=1e-10)
        for start in TRUE_STARTS
    ]
    return np.stack([run.y[0] for run in runs], axis=1)


def simulate(theta, n_steps: int):
    """Displacements after each step, shape (n_steps, 2); all infinite if the motion is unstable.

    Infinite predictions make the log-likelihood −∞. The forces are clipped beyond ±LIMIT, which no
    stable motion reaches, so the motion stays finite and gradients are never NaN.
    """
    c = tuple(theta[i] for i in range(len(TERMS)))
    start = theta[len(TERMS) :]

    def acceleration(x, v):
        x, v = jnp.clip(x, -LIMIT, LIMIT), jnp.clip(v, -LIMIT, LIMIT)
        xx = x * x
        stiffness = c[0] + xx * (c[1] + xx * c[2])
        damping = c[3] + c[4] * jnp.abs(v) + c[5] * v * v + xx * (c[6] + xx * c[7])
        return x * stiffness + v * damping

    # The four Runge–Kutta stages are a loop, and the gradient recomputes them from the state:
    # unrolled and stored, the gradient takes ten times as long.
    @jax.checkpoint
    def stage(carry, weights):
        (x, v), (dx, dv), (sum_x, sum_v) = carry
        ahead, share = weights
        slope = v + ahead * dv, acceleration(x + ahead * dx, v + ahead * dv)
        return ((x, v), slope, (sum_x + share * slope[0], sum_v + share * slope[1])), None

    weights = STEP * np.array([0, 0.5, 0.5, 1]), STEP * np.array([1, 2, 2, 1]) / 6

    @jax.checkpoint
    def step(state, _):
        still = jnp.zeros_like(start), jnp.zeros_like(start)
        (_, _, state), _ = jax.lax.scan(stage, (state, still, state), weights)
        return state, state

    _, (x, v) = jax.lax.scan(step, (start, jnp.zeros_like(start)), None, length=n_steps)
    stable = jnp.maximum(jnp.abs(x).max(), jnp.abs(v).max()) < LIMIT
    return jnp.where(stable, x, jnp.inf)


def model(theta):
    """Predictions of the measured displacements."""
    return simulate(theta, N_STEPS)[EVERY - 1 :: EVERY]


def make_problem(y: np.ndarray) -> sbnn.Problem:
    return sbnn.Problem.from_model(
        model,
        y,
        names=[*TERMS, *STARTS],
        noise_std=NOISE_STD,
        priors={"start": sbnn.priors.Normal(0.0, 1.0)},
        ard=TERMS,
        bound=5.0,
    )


def find_terms(seed: int, n_particles: int = 500, **options) -> sbnn.methods.result.Result:
    """Run NSBL on measurements with this noise seed."""
    _, y = measure(seed)
    options = {"hyperprior": HYPERPRIOR, "sparsify": SPARSIFY, **options}
    return sbnn.nsbl(make_problem(y), key=0, n_particles=n_particles, **options)


def table(result) -> pd.DataFrame:
    """One row per candidate term: truth, estimate, relevance, and whether it is kept."""
    summary = result.summary().loc[TERMS]
    pruned = result.prune().names
    return pd.DataFrame(
        {
            "true": TRUE,
            "estimate": summary["mean"],
            "std": summary["std"],
            "relevance": summary["relevance"],
            "kept": [term not in pruned for term in TERMS],
        },
        index=pd.Index(TERMS, name="term"),
    )


def is_exact(found: pd.DataFrame) -> bool:
    """Whether the kept terms are exactly the true ones."""
    return bool((found["kept"] == (found["true"] != 0)).all())


def band(phi: np.ndarray, n_steps: int) -> np.ndarray:
    """2.5 %, 50 % and 97.5 % quantiles of the motion over the draws, shape (3, n_steps, 2).

    Draws that are unstable are left out.
    """
    with jax.enable_x64(True):
        motion = np.array(jax.jit(jax.vmap(lambda p: simulate(p, n_steps)))(phi))
    return np.nanquantile(np.where(np.isinf(motion), np.nan, motion), [0.025, 0.5, 0.975], axis=0)


def plot(result, seed: int, path: Path) -> None:
    """Plot data, truth and 95 % bands before and after NSBL, up to twice the measured time."""
    import matplotlib.pyplot as plt

    times, y = measure(seed)
    n_steps = 2 * N_STEPS
    grid = STEP * np.arange(1, n_steps + 1)
    true = truth(grid)
    before, after = result.details.standard_phi, result.phi
    colours = {"before": "#d08a2e", "after": "#2a6f97"}
    figure = plt.figure(figsize=(11, 5.4), layout="constrained")
    parts = figure.subplot_mosaic([["first", "terms"], ["second", "terms"]], width_ratios=[2.1, 1])
    for column, name in enumerate(("first", "second")):
        ax = parts[name]
        for label, phi in (("before", before), ("after", after)):
            low, _, high = band(phi, n_steps)[:, :, column]
            text = "all eight terms" if label == "before" else "after NSBL"
            ax.fill_between(
                grid, low, high, color=colours[label], alpha=0.35, lw=0, label=f"95 %, {text}"
            )
        ax.plot(grid, true[:, column], "k-", lw=0.9, label="truth")
        ax.plot(times, y[:, column], "o", ms=3, mfc="white", mec="k", mew=0.7, label="measured")
        ax.axvline(times[-1], color="0.5", lw=0.8, ls=":")
        ax.set(ylabel="x", ylim=(-2, 2), xlim=(0, grid[-1]))
        ax.set_title(f"released at {TRUE_STARTS[column]}", fontsize=10, loc="left")
    parts["first"].tick_params(labelbottom=False)
    parts["second"].set_xlabel("time (measured up to the dotted line, predicted beyond)")
    handles, labels = parts["first"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False, fontsize=9)
    ax = parts["terms"]
    rows = np.arange(len(TERMS))
    for label, phi, shift in (("before", before, -0.15), ("after", after, 0.15)):
        values = phi[:, : len(TERMS)]
        ax.errorbar(
            values.mean(axis=0), rows + shift, xerr=2 * values.std(axis=0), fmt="o", ms=4,
            color=colours[label], capsize=2,
        )  # fmt: skip
    ax.plot(TRUE, rows, "k|", ms=18, mew=1.2)
    ax.axvline(0, color="0.8", lw=0.8, zorder=0)
    ax.set_yticks(rows, TERMS)
    ax.invert_yaxis()
    ax.set_xlabel("coefficient, ± 2 standard deviations")
    ax.set_title("black: truth", fontsize=10, loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the measurement noise")
    parser.add_argument("--particles", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("oscillator-results"))
    options = parser.parse_args()
    result = find_terms(options.seed, options.particles, progress=True)
    found = table(result)
    shown = found.assign(kept=np.where(found["kept"], "yes", "no")).round(
        {"estimate": 3, "std": 3, "relevance": 3}
    )
    print(shown.to_string())
    print(
        f"\nlog evidence {result.log_evidence:.2f} ± {result.log_evidence_error:.2f}, "
        f"verified: {result.verified} (gap {result.evidence_gap:+.2f} nats), "
        f"{result.seconds:.0f} s"
    )
    print("exactly the true terms" if is_exact(found) else "NOT exactly the true terms")
    for message in result.messages:
        print("note:", message)
    path = options.out / f"oscillator-{options.seed}.png"
    plot(result, options.seed, path)
    print(f"figure: {path}")


if __name__ == "__main__":
    main()
