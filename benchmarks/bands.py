"""Does NSBL predict like hierarchical Bayes? 95 % bands of the function on boxcar data, seed 0.

Compares NSBL (averaged over log α, the default, and at α* alone), hierarchical Bayes in 20
dimensions by TMCMC, by BlackJAX's NUTS and by NumPyro's NUTS, and standard Bayes with bounds ±10.
Reports means and band widths at five points, widths relative to the reference (on which 4-chain
NUTS and tempered SMC with 2,000 moves per stage agree), likelihood evaluations and seconds.

    python benchmarks/bands.py [--key 0] [--nuts-samples 4000] [--without-nuts]

Prints a table and the cost of NSBL, including verification, relative to hierarchical TMCMC. Writes
benchmarks/results/bands.csv after every method. Skips NumPyro if it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from nuts import nuts

import sbnn
from sbnn._core.float64 import float64
from sbnn.priors import Hyperprior
from sbnn.problems.network import push_forward
from sbnn.sampling.joint import joint_target, to_parameters

OUT = Path(__file__).parent / "results" / "bands.csv"
AT = np.array([-6.0, -3.0, 0.0, 3.0, 6.0])
REFERENCE = np.array([0.59, 0.51, 0.65, 0.51, 0.59])
ALLOWED = 0.25


def row(name: str, problem, phi, evaluations, seconds) -> dict[str, float]:
    values = push_forward(problem.network, np.asarray(phi), AT[:, None])[..., 0]
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    width = high - low
    return {
        "method": name,
        **{f"mean({x:+.0f})": m for x, m in zip(AT, values.mean(axis=0))},
        **{f"width({x:+.0f})": w for x, w in zip(AT, width)},
        **{f"ratio({x:+.0f})": r for x, r in zip(AT, width / REFERENCE)},
        "evaluations": evaluations,
        "seconds": seconds,
        "load": os.getloadavg()[0],
    }


@float64
def nuts_draws(problem, starts, key: int, n_samples: int) -> np.ndarray:
    chains = nuts(problem, Hyperprior(), starts, jax.random.key(key), 1000, n_samples)
    joint = chains.reshape(-1, chains.shape[-1])
    return np.asarray(to_parameters(joint, problem.ard))[:: max(1, len(joint) // 8000)]


@float64
def numpyro_draws(problem, starts, key, n_samples, n_warmup=1000) -> tuple[np.ndarray, int]:
    """Draws by NumPyro's NUTS from the same density and starts, and the number of gradients."""
    from numpyro.infer import MCMC, NUTS

    target = joint_target(problem, Hyperprior())

    def potential(joint):
        return -(target.evaluate(joint[None])[0] + target.prior.log_density(joint))

    run = MCMC(
        NUTS(potential_fn=potential, target_accept_prob=0.9),
        num_warmup=n_warmup,
        num_samples=n_samples,
        num_chains=len(starts),
        chain_method="vectorized",
        progress_bar=False,
    )
    run.run(jax.random.key(key), init_params=jax.numpy.asarray(starts), extra_fields=("num_steps",))
    joint = run.get_samples()
    steps = int(np.asarray(run.get_extra_fields()["num_steps"]).sum())
    draws = np.asarray(to_parameters(joint, problem.ard))[:: max(1, len(joint) // 8000)]
    return draws, steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--key", type=int, default=0)
    parser.add_argument("--nuts-samples", type=int, default=4000)
    parser.add_argument("--without-nuts", action="store_true", help="run only the TMCMC methods")
    options = parser.parse_args()
    OUT.parent.mkdir(exist_ok=True)
    x, y = sbnn.datasets.boxcar(seed=0)
    problem = sbnn.network_problem(x, y, hidden_layer_sizes=(3,), noise_std=0.5)
    bounded = sbnn.network_problem(x, y, hidden_layer_sizes=(3,), noise_std=0.5, bound=10.0)
    rows: list[dict] = []

    def add(*values) -> None:
        rows.append(row(*values))
        pd.DataFrame(rows).to_csv(OUT, index=False)
        print(f"{values[0]}: {values[-1]:.0f} s", flush=True)

    result = sbnn.nsbl(problem, key=options.key)
    spent = (result.n_evaluations, result.seconds)
    add("nsbl, averaged", problem, result.phi, *spent)
    add("nsbl, at α*", problem, result.details.best_phi, *spent)
    joint = sbnn.hierarchical(problem, key=options.key)
    add("hierarchical, TMCMC", problem, joint.phi, joint.n_evaluations, joint.seconds)
    wide = sbnn.standard(bounded, key=options.key)
    add("standard, ±10", bounded, wide.phi, wide.n_evaluations, wide.seconds)
    starts = joint.details.joint[:4]
    if not options.without_nuts:
        started = time.perf_counter()
        draws = nuts_draws(problem, starts, options.key, options.nuts_samples)
        # BlackJAX's gradients are not counted here
        add("hierarchical, NUTS", problem, draws, np.nan, time.perf_counter() - started)
    if not options.without_nuts and importlib.util.find_spec("numpyro") is not None:
        started = time.perf_counter()
        draws, steps = numpyro_draws(problem, starts, options.key, options.nuts_samples)
        add("hierarchical, NumPyro NUTS", problem, draws, steps, time.perf_counter() - started)

    table = pd.DataFrame(rows).set_index("method")
    with pd.option_context("display.width", 250, "display.max_columns", 40):
        print(table.round(2).T.to_string())
    for name in table.index:
        ratios = table.loc[name, [f"ratio({x:+.0f})" for x in AT]].astype(float)
        worst = float(np.abs(ratios - 1).max())
        verdict = "within" if worst <= ALLOWED else "beyond"
        print(f"{name}: widths {verdict} 25 % of the reference (worst {100 * worst:.0f} %)")
    cost = table.loc["nsbl, averaged", ["evaluations", "seconds"]].astype(float)
    other = table.loc["hierarchical, TMCMC", ["evaluations", "seconds"]].astype(float)
    print(
        f"NSBL with verification against hierarchical TMCMC: {cost.iloc[0] / other.iloc[0]:.2f} × "
        f"the evaluations, {cost.iloc[1] / other.iloc[1]:.2f} × the time; the other way round "
        f"{other.iloc[0] / cost.iloc[0]:.2f} × and {other.iloc[1] / cost.iloc[1]:.2f} ×"
    )


if __name__ == "__main__":
    main()
