"""The samplers that benchmarks/samplers.py compares, each a function of (x, y, seed).

Run by samplers.py as `python sampler_methods.py METHOD SEED DATA.npz DRAWS.npz`, in a fresh
process. Packages are imported inside the functions, because import time is part of a cold run.
Every method returns the log evidence (NaN if it does not estimate it), draws (n, 10) in the order
W[1], b[1], W[2], b[2], their weights, and the number of likelihood evaluations (NaN if unknown).
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import numpy as np
from harness import report, since_start

D, BOUND, STD = 10, 10.0, 0.5


class Found(NamedTuple):
    log_evidence: float
    draws: np.ndarray
    weights: np.ndarray
    evaluations: float


def equal(draws) -> np.ndarray:
    return np.full(len(draws), 1.0 / len(draws))


class Likelihood:
    """The log-likelihood in vectorised NumPy, with a counter of its evaluations."""

    def __init__(self, x, y) -> None:
        self.x, self.y, self.count = x, y, 0

    def outputs(self, phi: np.ndarray) -> np.ndarray:
        self.count += len(phi)
        w, b, v, c = phi[:, :3], phi[:, 3:6], phi[:, 6:9], phi[:, 9]
        hidden = np.tanh(w[:, :, None] * self.x + b[:, :, None])
        return np.einsum("nk,nkm->nm", v, hidden) + c[:, None]

    def __call__(self, phi: np.ndarray) -> np.ndarray:
        residual = (self.y - self.outputs(phi)) / STD
        constant = len(self.y) * np.log(STD * np.sqrt(2 * np.pi))
        return -0.5 * (residual**2).sum(axis=1) - constant


# ------------------------------------------------------------------------------------------ sbnn
def sbnn_standard(x, y, seed, n=2000) -> Found:
    import sbnn

    problem = sbnn.network_problem(x, y, (3,), noise_std=STD, bound=BOUND)
    result = sbnn.standard(problem, key=seed, n_particles=n)
    return Found(result.log_evidence, result.phi, equal(result.phi), result.n_evaluations)


# -------------------------------------------------------------------------------------- BlackJAX
def _jax_model(x, y):
    import jax.numpy as jnp

    x, y = jnp.asarray(x), jnp.asarray(y)

    def log_likelihood(phi):
        hidden = jnp.tanh(phi[:3, None] * x + phi[3:6, None])
        residual = (y - phi[6:9] @ hidden - phi[9]) / STD
        return -0.5 * (residual**2).sum() - len(y) * jnp.log(STD * jnp.sqrt(2 * jnp.pi))

    def log_prior(phi):
        inside = (jnp.abs(phi) <= BOUND).all()
        return jnp.where(inside, -D * jnp.log(2 * BOUND), -jnp.inf)

    return log_likelihood, log_prior


COMPILED: dict = {}  # BlackJAX's steps, so that a second run in the same process does not compile


def _blackjax_step(x, y, moves, kind, leapfrog):
    """One step of adaptive tempered SMC, tuned as an expert would, compiled as a whole.

    The proposal covariance is the population's × 2.38²/d × a scale steered to an acceptance of
    0.25 (random walk); HMC is preconditioned by the population's variances, its step steered to
    an acceptance of 0.75.
    """
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.smc import adaptive_tempered, resampling

    log_likelihood, log_prior = _jax_model(x, y)
    if kind == "random walk":
        inner = blackjax.additive_step_random_walk
        kernel = inner.build_kernel()

        def step(key, state, log_density, factor):
            return kernel(key, state, log_density, blackjax.mcmc.random_walk.normal(factor))

    else:
        inner = blackjax.hmc
        kernel = inner.build_kernel()

        def step(key, state, log_density, step_size, variances):
            return kernel(key, state, log_density, step_size, variances, leapfrog)

    smc = adaptive_tempered.build_kernel(
        log_prior, log_likelihood, step, inner.init, resampling.systematic, 0.5
    )

    @jax.jit
    def advance(key, state, scale):
        weights = state.weights[:, None]
        centred = state.particles - (weights * state.particles).sum(axis=0)
        covariance = (weights * centred).T @ centred
        if kind == "random walk":
            factor = scale * 2.38 / jnp.sqrt(D) * jnp.linalg.cholesky(covariance)
            state, info = smc(key, state, moves, {"factor": factor[None]})
            goal = 0.25
        else:
            parameters = {"step_size": scale[None], "variances": jnp.diag(covariance)[None]}
            state, info = smc(key, state, moves, parameters)
            goal = 0.75
        acceptance = info.update_info.acceptance_rate.mean()
        return state, info.log_likelihood_increment, scale * jnp.exp(4 * (acceptance - goal))

    return advance


def _blackjax(x, y, seed, n, moves, kind, leapfrog=10) -> Found:
    import jax
    import jax.numpy as jnp
    from blackjax.smc import adaptive_tempered

    setting = (moves, kind, leapfrog)
    if setting not in COMPILED:
        COMPILED[setting] = _blackjax_step(x, y, *setting)
    advance = COMPILED[setting]
    key = jax.random.key(seed)
    start = jax.random.uniform(jax.random.fold_in(key, 0), (n, D), minval=-BOUND, maxval=BOUND)
    state, scale = adaptive_tempered.init(start), jnp.asarray(1.0 if kind != "hmc" else 0.3)
    log_evidence, stages = 0.0, 0
    while state.tempering_param < 1:
        stages += 1
        state, increment, scale = advance(jax.random.fold_in(key, stages), state, scale)
        log_evidence += float(increment)
    per_move = leapfrog if kind == "hmc" else 1
    weights = np.asarray(state.weights, float)
    evaluations = stages * n * (moves * per_move + 3)  # plus next β, start of the chain, weights
    return Found(log_evidence, np.asarray(state.particles), weights / weights.sum(), evaluations)


def blackjax_random_walk(x, y, seed, n=2000, moves=20) -> Found:
    return _blackjax(x, y, seed, n, moves, "random walk")


def blackjax_hmc(x, y, seed, n=2000, moves=5) -> Found:
    return _blackjax(x, y, seed, n, moves, "hmc")


# --------------------------------------------------------------------------------------- NumPyro
def numpyro_nuts(x, y, seed, n=2000, warmup=1000) -> Found:
    """Two parallel chains; no estimate of the evidence."""
    import jax
    import numpyro
    from numpyro import distributions
    from numpyro.infer import MCMC, NUTS

    numpyro.set_host_device_count(2)
    log_likelihood, _ = _jax_model(x, y)

    def model():
        phi = numpyro.sample("phi", distributions.Uniform(-BOUND, BOUND).expand([D]).to_event(1))
        numpyro.factor("likelihood", log_likelihood(phi))

    run = MCMC(NUTS(model), num_warmup=warmup, num_samples=n // 2, num_chains=2, progress_bar=False)
    run.run(jax.random.key(seed), extra_fields=("num_steps",))
    draws = np.asarray(run.get_samples()["phi"])
    steps = float(np.asarray(run.get_extra_fields()["num_steps"]).sum())
    return Found(np.nan, draws, equal(draws), steps * (1 + 2 * warmup / n))


# ------------------------------------------------------------------------------------------ PyMC
def pymc_smc(x, y, seed, n=2000, **effort) -> Found:
    """Two chains of n particles in two processes, PyMC's default on two cores."""
    import pymc
    from scipy.special import logsumexp

    with pymc.Model():
        phi = pymc.Uniform("phi", -BOUND, BOUND, shape=D)
        hidden = pymc.math.tanh(phi[:3, None] * x + phi[3:6, None])
        mean = (phi[6:9, None] * hidden).sum(axis=0) + phi[9]
        pymc.Normal("y", mean, STD, observed=y)
        data = pymc.sample_smc(n, random_seed=seed, cores=2, progressbar=False, **effort)
    chains = data.sample_stats["log_marginal_likelihood"].values
    if any(isinstance(v, list) for v in chains.ravel()):  # of unequal length, one per chain
        chains = chains.ravel()
    finals = [[v for v in chain if np.isfinite(v)][-1] for chain in chains]
    draws = data.posterior["phi"].values.reshape(-1, D)
    evidence = logsumexp(finals) - np.log(len(finals))
    return Found(float(evidence), draws, equal(draws), np.nan)


def pymc_smc_more(x, y, seed) -> Found:
    """Random-walk kernel, smaller temperature steps, a stricter stopping rule for the moves."""
    import pymc

    return pymc_smc(x, y, seed, kernel=pymc.smc.MH, threshold=0.7, correlation_threshold=0.001)


# ---------------------------------------------------------------------------------------- pocoMC
def _pocomc(x, y, seed, **options) -> Found:
    import pocomc
    from scipy.stats import uniform

    function = Likelihood(x, y)
    sampler = pocomc.Sampler(
        prior=pocomc.Prior(D * [uniform(-BOUND, 2 * BOUND)]),
        likelihood=function,
        vectorize=True,
        random_state=seed,
        pytorch_threads=1,  # its default; with two, flows take far longer on two cores
        **options,
    )
    sampler.run(progress=False)
    draws, weights, *_ = sampler.posterior()
    return Found(sampler.evidence()[0], draws, weights / weights.sum(), function.count)


def pocomc_plain(x, y, seed, n=2000) -> Found:
    return _pocomc(x, y, seed, n_effective=n, n_active=n // 2, precondition=False)


def pocomc_flow(x, y, seed) -> Found:
    """All defaults: 512 effective particles and a normalising flow."""
    return _pocomc(x, y, seed)


# -------------------------------------------------------------------------------------- particles
def _particles(x, y, seed, n, length, wastefree) -> Found:
    if not hasattr(np, "float"):  # the package uses a name that NumPy has removed
        np.float = float  # noqa: NPY001
    import particles
    from particles import distributions, smc_samplers

    function = Likelihood(x, y)
    names = [f"p{i}" for i in range(D)]

    class Model(smc_samplers.StaticModel):
        def loglik(self, theta, t=None):
            return function(np.stack([theta[name] for name in names], axis=1))

    np.random.seed(seed)  # noqa: NPY002 (the package draws from NumPy's global generator)
    prior = distributions.StructDist({k: distributions.Uniform(-BOUND, BOUND) for k in names})
    target = smc_samplers.AdaptiveTempering(
        model=Model(data=y, prior=prior), wastefree=wastefree, len_chain=length
    )
    run = particles.SMC(fk=target, N=n // length if wastefree else n, verbose=False)
    run.run()
    draws = np.stack([run.X.theta[name] for name in names], axis=1)
    return Found(run.logLt, draws, run.W, function.count)


def particles_standard(x, y, seed, n=2000, length=51) -> Found:
    return _particles(x, y, seed, n, length, wastefree=False)


def particles_waste_free(x, y, seed, n=100_000, length=50) -> Found:
    """2,000 chains of 50 steps, every step a particle."""
    return _particles(x, y, seed, n, length, wastefree=True)


# ---------------------------------------------------------------------- TMCMC and SMC in Python
def uqpy_tmcmc(x, y, seed, n=2000, burn=0) -> Found:
    """UQpy multiplies densities instead of adding logarithms; without the shift they underflow."""
    from UQpy.distributions import JointIndependent, Uniform
    from UQpy.sampling import MetropolisHastings, SequentialTemperingMCMC

    function = Likelihood(x, y)
    at_random = np.random.default_rng(seed).uniform(-BOUND, BOUND, (n, D))
    shift = Likelihood(x, y)(at_random).max()
    prior = JointIndependent([Uniform(-BOUND, 2 * BOUND)] * D)
    run = SequentialTemperingMCMC(
        log_pdf_intermediate=lambda phi, temper: temper * (function(np.atleast_2d(phi)) - shift),
        distribution_reference=prior,
        sampler=MetropolisHastings(dimension=D, n_chains=20),
        nsamples=n,
        resampling_burn_length=burn,
        random_state=seed,
    )
    log_evidence = float(np.log(np.ravel(run.evidence)[0])) + shift
    return Found(log_evidence, run.samples, equal(run.samples), function.count)


class OneByOne:
    """The same likelihood for one particle at a time, with the index that the sampler passes."""

    def __init__(self, x, y) -> None:
        self.function = Likelihood(x, y)

    def __call__(self, number, phi) -> float:
        return float(self.function(np.atleast_2d(phi))[0])


def pyuncertainnumber_tmcmc(x, y, seed, n=2000) -> Found:
    """It starts (number of cores − 2) processes, so two cores are reported as four.

    Its log evidence omits the factor by which it divides the weights; ours uses its trace.
    """
    import multiprocessing
    import tempfile

    multiprocessing.cpu_count = lambda: 4  # two processes
    from pyuncertainnumber import pba
    from pyuncertainnumber.calibration.tmcmc import TMCMC
    from scipy.special import logsumexp

    np.random.seed(seed)  # noqa: NPY002 - it takes no generator
    with tempfile.TemporaryDirectory() as folder:
        trace = TMCMC(
            N=n,
            parameters=[pba.D("uniform", (-BOUND, BOUND)) for _ in range(D)],
            names=[f"p{i}" for i in range(D)],
            log_likelihood=OneByOne(x, y),
            status_file_name=f"{folder}/status.txt",
        ).run()
    stages = [stage if isinstance(stage, list) else list(vars(stage).values()) for stage in trace]
    beta, log_evidence = 0.0, 0.0
    for _, values, _, _, new, resampled in stages:
        if resampled is not None and not isinstance(resampled, str):
            log_evidence += float(logsumexp((new - beta) * values) - np.log(n))
            beta = new
    last = np.asarray(stages[-1][0])
    return Found(log_evidence, last, equal(last), np.nan)


def smcpy_adaptive(x, y, seed, n=2000, moves=20) -> Found:
    from scipy.stats import uniform
    from smcpy import AdaptiveSampler, VectorMCMC, VectorMCMCKernel

    function = Likelihood(x, y)
    names = [f"p{i}" for i in range(D)]
    mcmc = VectorMCMC(function.outputs, y, [uniform(-BOUND, 2 * BOUND)] * D, STD)
    kernel = VectorMCMCKernel(mcmc, param_order=names, rng=np.random.default_rng(seed))
    sampler = AdaptiveSampler(kernel, show_progress_bar=False)
    steps, evidences = sampler.sample(n, moves, target_ess=0.5)
    last = steps[-1]
    weights = np.ravel(last.weights)
    return Found(float(evidences[-1]), last.params, weights / weights.sum(), function.count)


METHODS = {
    "sbnn": sbnn_standard,
    "sbnn, two devices": sbnn_standard,
    "sbnn, two devices, 20,000 particles": lambda x, y, seed: sbnn_standard(x, y, seed, 20_000),
    "BlackJAX, random walk, 20 moves": blackjax_random_walk,
    "BlackJAX, random walk, 50 moves": lambda x, y, s: blackjax_random_walk(x, y, s, moves=50),
    "BlackJAX, random walk, 100 moves": lambda x, y, s: blackjax_random_walk(x, y, s, moves=100),
    "BlackJAX, HMC, 5 moves": blackjax_hmc,
    "BlackJAX, HMC, 10 moves": lambda x, y, s: blackjax_hmc(x, y, s, moves=10),
    "pocoMC, no flow": pocomc_plain,
    "pocoMC, flow, defaults": pocomc_flow,
    "PyMC SMC, defaults": pymc_smc,
    "PyMC SMC, random walk": pymc_smc_more,
    "particles, 50 moves": particles_standard,
    "particles, waste-free": particles_waste_free,
    "SMCPy, 20 moves": smcpy_adaptive,
    "UQpy TMCMC, defaults": uqpy_tmcmc,
    "pyuncertainnumber TMCMC, defaults": pyuncertainnumber_tmcmc,
    "NumPyro NUTS": numpyro_nuts,
}
PACKAGES = {
    "sbnn": "sbnn", "BlackJAX": "blackjax", "pocoMC": "pocomc", "PyMC": "pymc",
    "particles": "particles", "SMCPy": "smcpy", "UQpy": "UQpy", "NumPyro": "numpyro",
    "pyuncertainnumber": "pyuncertainnumber",
}  # fmt: skip


def main() -> None:
    import importlib.metadata

    name, seed, data, out, again = sys.argv[1:]
    with np.load(data) as loaded:
        x, y = loaded["x"], loaded["y"]
    method = METHODS[name]
    found = method(x, y, int(seed))
    cold = since_start()
    np.savez(out, draws=found.draws, weights=found.weights)
    second, began = {}, time.perf_counter()
    if cold["seconds"] < float(again):  # a second run, already compiled, with a new seed
        before = since_start()["cpu_seconds"]
        more = method(x, y, int(seed) + 1000)
        seconds = time.perf_counter() - began
        second = {
            "second_log_evidence": float(more.log_evidence),
            "second_seconds": seconds,
            "second_cpu_seconds": since_start()["cpu_seconds"] - before,
            "evaluations_per_second": float(more.evaluations) / seconds,
        }
    package = next(p for key, p in PACKAGES.items() if name.startswith(key))
    report(
        version=importlib.metadata.version(package),
        log_evidence=float(found.log_evidence),
        evaluations=float(found.evaluations),
        cold_seconds=cold["seconds"],
        cold_cpu_seconds=cold["cpu_seconds"],
        peak_gib=cold["peak_gib"],
        **second,
    )


if __name__ == "__main__":
    main()
