"""NUTS on the joint problem over (φ, log α): an independent reference for tests and benchmarks."""

from __future__ import annotations

from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.float64 import float64
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem
from sbnn.sampling.joint import joint_target


@float64
def nuts(
    problem: Problem,
    hyperprior: Hyperprior,
    starts: np.ndarray,
    key: Any,
    n_warmup: int = 1000,
    n_samples: int = 2000,
    target_acceptance: float = 0.9,
) -> np.ndarray:
    """BlackJAX's NUTS on the joint problem, one chain per row of `starts`.

    Returns draws of (z, log α), shape (n_chains, n_samples, d + n_α). The box around log α is
    smooth for NUTS: outside it the density is zero and the trajectory is rejected.
    """
    target = joint_target(problem, hyperprior)

    def log_density(joint):
        return target.evaluate(joint[None])[0] + target.prior.log_density(joint)

    def one_chain(key, start):
        key_warmup, key_sample = jax.random.split(key)
        warmup = blackjax.window_adaptation(
            blackjax.nuts, log_density, target_acceptance_rate=target_acceptance
        )
        (state, parameters), _ = warmup.run(key_warmup, start, n_warmup)
        kernel = blackjax.nuts(log_density, **parameters).step

        def step(state, key):
            state, _ = kernel(key, state)
            return state, state.position

        return jax.lax.scan(step, state, jax.random.split(key_sample, n_samples))[1]

    keys = jax.random.split(key, len(starts))
    return np.asarray(jax.jit(jax.vmap(one_chain))(keys, jnp.asarray(starts)))
