"""Hamiltonian Monte Carlo: BlackJAX's kernel, one chain per particle."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.keys import derive_key, derive_words
from sbnn.problems.target import Target
from sbnn.sampling.chunks import chunked
from sbnn.sampling.moves.base import BlockInfo, Kernel, Random, Tempered, halves, words_of
from sbnn.sampling.state import Particles

LEAPFROG_STEPS = 12


class HMC:
    """Hamiltonian Monte Carlo, preconditioned by the population's standard deviations."""

    name = "hmc"
    needs_gradients = True
    block = 2
    evaluations_per_move = LEAPFROG_STEPS
    # Near the optimum, 0.65–0.85 (Beskos et al. 2013).
    target_acceptance = 0.75

    def initial_scale(self, n_parameters: int) -> float:
        """Step size in units of the population's standard deviations."""
        return 0.3

    def kernel(self, density: Tempered, factor: np.ndarray, key: Random) -> Kernel:
        """Compiled blocks of moves; the step size is the scale."""
        words, positions = words_of(key), itertools.count(0, self.block)

        def run(particles: Particles, scale: float) -> tuple[Particles, BlockInfo]:
            own = derive_words(words, next(positions))
            phi, log_likelihood, accepted, failed = chunked(
                _hmc_block,
                particles.phi,
                (halves(particles),),
                (density.target, np.float64(density.beta), scale * factor),
                lambda i: derive_key(own, i),
            )
            info = BlockInfo(int(accepted.sum()), int(failed.sum()))
            return particles._replace(phi=phi, log_likelihood=log_likelihood), info

        return run


@jax.jit
def _hmc_block(
    target: Target,
    beta: jax.Array,
    factor: jax.Array,
    phi: jax.Array,
    half: jax.Array,
    key: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Step sizes are jittered per particle and move."""
    from blackjax.mcmc import hmc

    kernel = hmc.build_kernel()
    # The population's standard deviations precondition; their scale sets the step size.
    variances = (factor**2).sum(axis=-1)

    def log_density(theta: jax.Array) -> jax.Array:
        value = target.evaluate(theta[None])[0]
        return jnp.where(value > -jnp.inf, beta * value, -jnp.inf) + target.prior.log_density(theta)

    def one_chain(
        key: jax.Array, theta: jax.Array, half: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        def step(
            state: hmc.HMCState, key: jax.Array
        ) -> tuple[hmc.HMCState, tuple[jax.Array, jax.Array]]:
            key_jitter, key_move = jax.random.split(key)
            step_size = jnp.exp(0.3 * jax.random.normal(key_jitter))
            state, info = kernel(
                key_move, state, log_density, step_size, variances[half], LEAPFROG_STEPS
            )
            # Failures of the likelihood: its gradient made the path NaN, or it ended at −inf.
            end = info.proposal.position
            inside = jnp.isnan(end).any() | (target.prior.log_density(end) > -jnp.inf)
            return state, (info.is_accepted, inside & ~(info.proposal.logdensity > -jnp.inf))

        state = hmc.init(theta, log_density)
        state, (accepted, failed) = jax.lax.scan(step, state, jax.random.split(key, HMC.block))
        return state.position, accepted.sum(), failed.sum()

    phi, accepted, failed = jax.vmap(one_chain)(jax.random.split(key, phi.shape[0]), phi, half)
    return phi, target.evaluate(phi), accepted, failed
