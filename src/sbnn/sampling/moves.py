"""Markov moves of a whole population of particles: random walk and Hamiltonian Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.keys import derive_key, derive_words, key_data, seed_of
from sbnn.problems.target import Target

# Acceptance rates the scales are steered to: 0.25 is near the optimum of a random walk in several
# dimensions (Roberts et al. 1997, 0.234), 0.75 near that of HMC (Beskos et al. 2013, 0.65–0.85).
TARGET_ACCEPTANCE = {"random_walk": 0.25, "hmc": 0.75}
BLOCK = {"random_walk": 20, "hmc": 2}
LEAPFROG_STEPS = 12
CHUNK = 1000  # particles per call: enough to fill the vector units, few enough for the cache


class Particles(NamedTuple):
    """A population: φ (N, d), its log-likelihood (N,), and the ancestor of each (N,)."""

    phi: np.ndarray
    log_likelihood: np.ndarray
    ancestor: np.ndarray


class MoveInfo(NamedTuple):
    """What a sequence of moves did."""

    acceptance: float
    scale: float
    n_moves: int
    n_evaluations: int
    n_rejected: int  # proposals at which the log-likelihood was NaN, +inf or −inf
    correlation: float  # of the log-likelihood with its value before the moves
    decorrelated: bool


Evaluate = Callable[[np.ndarray], np.ndarray]


def mutate(
    target: Target,
    key,
    particles: Particles,
    beta: float,
    factor: np.ndarray,
    scale: float,
    *,
    move: str = "random_walk",
    max_moves: int = 400,
    threshold: float = 0.2,
    evaluate: Evaluate | None = None,
) -> tuple[Particles, MoveInfo]:
    """Move all particles under p(φ) p(D|φ)^β until they have forgotten where they started.

    After every block of moves the scale is steered to the target acceptance, and the moves stop
    once the correlation, over the population, between the log-likelihood now and before the first
    move is at most `threshold` in two checks in a row, or after `max_moves`. The log-likelihood is
    the quantity from which the evidence is built; single coordinates of a multimodal posterior
    never decorrelate by local moves, whatever their number, nor need they, because the masses of
    modes come from resampling.

    Parameters
    ----------
    factor : ndarray, shape (d, d) or (2, d, d)
        Cholesky factor of the population's covariance; its row norms precondition HMC. With two
        of them, particles whose ancestor stood in the first half of the population use the first,
        the others the second (`sbnn.sampling.tmcmc.split_factors`).
    evaluate : callable, optional
        For black-box problems: log-likelihood of (n, d) on the host.
    """
    phi, log_likelihood = particles.phi, particles.log_likelihood
    start = log_likelihood
    n, block = len(phi), BLOCK[move]
    factor = np.broadcast_to(factor, (2, *np.shape(factor)[-2:]))
    half = (2 * particles.ancestor >= n).astype(np.int32)
    accepted = rejected = evaluations = n_moves = 0
    acceptance, correlation, calm = 0.0, 1.0, 0
    words = key_data(key)
    walk = None
    while n_moves < max_moves and calm < 2:
        arguments = (phi, log_likelihood, half, beta, scale * factor)
        if evaluate is not None:
            result = _host_block(target, derive_words(words, n_moves), *arguments, evaluate)
        elif move == "hmc":
            result = _hmc(target, derive_words(words, n_moves), *arguments)
        else:
            walk = walk or _Walk(words, phi.shape)
            result = walk(target, n_moves, *arguments)
        phi, log_likelihood, accepted, bad = result
        n_moves += block
        rejected += bad
        evaluations += block * n * (LEAPFROG_STEPS if move == "hmc" else 1)
        acceptance = accepted / (block * n)
        # Robbins–Monro without decay: the target moves from stage to stage, and the population
        # average over thousands of particles is steady enough to follow it.
        scale = float(scale * np.exp(2.0 * (acceptance - TARGET_ACCEPTANCE[move])))
        correlation = _correlation(start, log_likelihood)
        calm = calm + 1 if correlation <= threshold else 0
    info = MoveInfo(acceptance, scale, n_moves, evaluations, rejected, correlation, calm >= 2)
    return Particles(phi, log_likelihood, particles.ancestor), info


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def chunked(
    function: Callable,
    phi: np.ndarray,
    rest: tuple,
    common: tuple,
    random: Callable[[int], Any] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> list:
    """Run function(*common, φ chunk, *rest chunks, random(i)) over equal chunks i.

    The chunk size depends on the population alone, and each chunk has random numbers of its own:
    the same program sees the same numbers whatever the number of devices, so the answer is
    bitwise the same. Calls return before they are done, so devices work side by side, and
    `meanwhile` on the host.
    """
    n = len(phi)
    n_chunks, size = chunks(n)
    devices = jax.devices()
    parts = []
    for i in range(n_chunks):
        rows: Any = slice(i * size, (i + 1) * size)
        if rows.stop > n:  # the last chunk is filled up with the first particles
            rows = np.resize(np.arange(n), n_chunks * size)[rows]
        own = () if random is None else (random(i),)
        with jax.default_device(devices[i % len(devices)]):
            parts.append(function(*common, phi[rows], *(r[rows] for r in rest), *own))
    meanwhile()
    return [np.concatenate([np.asarray(leaf) for leaf in leaves])[:n] for leaves in zip(*parts)]


def chunks(n: int) -> tuple[int, int]:
    """Number and size of the chunks of n particles."""
    n_chunks = -(-n // CHUNK)
    return n_chunks, -(-n // n_chunks)


class _Walk:
    """Blocks of random walks; the random numbers of the next are made while one is running."""

    def __init__(self, words: np.ndarray, shape: tuple[int, ...]) -> None:
        self.words, self.n_chunks = words, chunks(shape[0])[0]
        self.shape = (BLOCK["random_walk"], n_words(shape[1]), chunks(shape[0])[1])
        self.ready: dict[int, list[np.ndarray]] = {}

    def draw(self, n_moves: int) -> list[np.ndarray]:
        own = derive_words(self.words, n_moves)
        return [random_words(seed_of(own, i), self.shape) for i in range(self.n_chunks)]

    def __call__(self, target, n_moves: int, phi, log_likelihood, half, beta, factor):
        now = self.ready.get(n_moves) or self.draw(n_moves)

        def prepare() -> None:
            following = n_moves + BLOCK["random_walk"]
            self.ready = {following: self.draw(following)}

        phi, log_likelihood, accepted, bad = chunked(
            _walk_block,
            phi,
            (log_likelihood, half),
            (target, np.float64(beta), factor),
            now.__getitem__,
            prepare,
        )
        return phi, log_likelihood, int(accepted.sum()), int(bad.sum())


def _hmc(target, key, phi, log_likelihood, half, beta, factor):
    phi, log_likelihood, accepted, bad = chunked(
        _hmc_block,
        phi,
        (half,),
        (target, np.float64(beta), factor),
        lambda i: derive_key(key, i),
    )
    return phi, log_likelihood, int(accepted.sum()), int(bad.sum())


def random_words(seed: np.random.SeedSequence, shape: tuple[int, ...]) -> np.ndarray:
    """Random 32-bit words out of NumPy's SFC64: ten times as fast as JAX's generator on a CPU."""
    raw = np.random.SFC64(seed).random_raw(-(-int(np.prod(shape)) // 2))
    return raw.view(np.uint32)[: int(np.prod(shape))].reshape(shape)


def n_words(d: int) -> int:
    """Words per particle and move: half a word per coordinate, and one to accept by."""
    return (d + 1) // 2 + 1


def _symmetric_noise(words, d):
    """Zero-mean, unit-variance, symmetric noise (d, n) out of (⌈d/2⌉, n) random 32-bit words.

    A random walk is exact for any symmetric proposal. Sixteen bits of a uniform on ±√3 per
    coordinate cost a fifth of float64 normals to generate and to compile, and mix as well.
    """
    halves = jnp.concatenate([words & 0xFFFF, words >> 16])[:d]
    return ((halves.astype(jnp.float64) + 0.5) / 65536.0 - 0.5) * np.sqrt(12.0)


def _propose(words, phi, factor, half):
    noise = _symmetric_noise(words[:-1], phi.shape[-1])
    return phi + jnp.where(half == 0, factor[0] @ noise, factor[1] @ noise).T


def _accept(target, word, beta, phi, log_likelihood, log_prior, proposal, new_log_likelihood):
    """Metropolis rule under p(φ) p(D|φ)^β; at β = 0 the support of the likelihood still counts."""
    new_log_prior = target.prior.log_density(proposal)
    possible = (new_log_likelihood > -jnp.inf) & (new_log_prior > -jnp.inf)
    ratio = beta * (new_log_likelihood - log_likelihood) + new_log_prior - log_prior
    log_u = jnp.log((word.astype(jnp.float64) + 0.5) / 2.0**32)
    accept = possible & (log_u < ratio)
    pick = lambda new, old: jnp.where(accept, new, old)
    phi = jnp.where(accept[:, None], proposal, phi)
    log_likelihood = pick(new_log_likelihood, log_likelihood)
    # Outside the prior's support the likelihood does not matter: no failure is counted there.
    bad = (new_log_prior > -jnp.inf) & (new_log_likelihood == -jnp.inf)
    return phi, log_likelihood, pick(new_log_prior, log_prior), accept, bad


@jax.jit
def _walk_block(target, beta, factor, phi, log_likelihood, half, words):
    n = phi.shape[0]

    def step(carry, words):
        phi, log_likelihood, log_prior, accepted, bad = carry
        proposal = _propose(words, phi, factor, half)
        new = target.evaluate_rapidly(proposal)
        phi, log_likelihood, log_prior, accept, failed = _accept(
            target, words[-1], beta, phi, log_likelihood, log_prior, proposal, new
        )
        return (phi, log_likelihood, log_prior, accepted + accept, bad + failed), None

    zeros = jnp.zeros(n, jnp.int32)
    carry = (phi, log_likelihood, target.prior.log_density(phi), zeros, zeros)
    (phi, log_likelihood, _, accepted, bad), _ = jax.lax.scan(step, carry, words)
    return phi, log_likelihood, accepted, bad


_host_propose = jax.jit(_propose)


@jax.jit
def _host_accept(prior, word, beta, phi, log_likelihood, proposal, new):
    target = Target((), prior, _no_likelihood)
    log_prior = prior.log_density(phi)
    out = _accept(target, word, beta, phi, log_likelihood, log_prior, proposal, new)
    return out[0], out[1], out[3], out[4]


def _no_likelihood(data, phi):
    raise RuntimeError("a black-box likelihood is evaluated on the host")


@jax.jit
def prior_log_density(prior, phi):
    return prior.log_density(phi)


def _host_block(target, key, phi, log_likelihood, half, beta, factor, evaluate):
    """The same random walk, the likelihood evaluated on the host between two compiled halves."""
    accepted = bad = 0
    for i in range(BLOCK["random_walk"]):
        words = random_words(seed_of(key, i), (n_words(phi.shape[1]), len(phi)))
        proposal = np.asarray(_host_propose(words, phi, factor, half))
        inside = np.asarray(prior_log_density(target.prior, proposal)) > -np.inf
        new = np.full(len(phi), -np.inf)
        new[inside] = evaluate(proposal[inside])  # outside the prior nothing needs a run
        phi, log_likelihood, accept, failed = (
            np.asarray(a)
            for a in _host_accept(target.prior, words[-1], beta, phi, log_likelihood, proposal, new)
        )
        accepted += int(accept.sum())
        bad += int(failed.sum())
    return phi, log_likelihood, accepted, bad


@jax.jit
def _hmc_block(target, beta, factor, phi, half, key):
    """BlackJAX's HMC kernel, one chain per particle, step sizes jittered per particle and move."""
    from blackjax.mcmc import hmc

    kernel = hmc.build_kernel()
    # The population's standard deviations precondition; their scale sets the step size.
    variances = (factor**2).sum(axis=-1)

    def log_density(theta):
        value = target.evaluate(theta[None])[0]
        return jnp.where(value > -jnp.inf, beta * value, -jnp.inf) + target.prior.log_density(theta)

    def one_chain(key, theta, half):
        def step(state, key):
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
        state, (accepted, bad) = jax.lax.scan(step, state, jax.random.split(key, BLOCK["hmc"]))
        return state.position, accepted.sum(), bad.sum()

    phi, accepted, bad = jax.vmap(one_chain)(jax.random.split(key, phi.shape[0]), phi, half)
    return phi, target.evaluate(phi), accepted, bad
