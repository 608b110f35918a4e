"""A move written outside the package: Langevin (MALA), through `sbnn.standard`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import sbnn
from sbnn.sampling.moves import BlockInfo, halves, moved

MEAN, STD = np.array([0.8, -1.5]), 0.05
EXACT = norm.logpdf(MEAN, 0.0, np.hypot(1.0, STD)).sum()  # prior N(0, 1), N(MEAN | θ, STD²)


class Langevin:
    name, needs_gradients, block, evaluations_per_move = "langevin", True, 5, 1
    target_acceptance = None  # the scale stays
    initial_scale = lambda self, n_parameters: 1.0

    def accept(self, density, rng, here, proposal, log_correction):
        return density.metropolis(rng, here, proposal, log_correction)

    def kernel(self, density, factor, key):
        rng, target = np.random.default_rng(key), density.target

        def log_density(phi):
            return jnp.sum(density.beta * target.evaluate(phi) + target.prior.log_density(phi))

        gradient = jax.jit(jax.grad(log_density))

        def run(particles, scale):
            here, n_accepted = density.here(particles), 0
            root = scale * factor[halves(particles)]
            step = root @ root.mT
            drift = lambda phi: phi + 0.5 * np.einsum("nij,nj->ni", step, gradient(phi))
            log_q = lambda x: -0.5 * (np.linalg.solve(root, x[..., None]) ** 2).sum((1, 2))
            for _ in range(self.block):
                noise = rng.standard_normal(here.phi.shape)
                new = drift(here.phi) + np.einsum("nij,nj->ni", root, noise)
                correction = log_q(here.phi - drift(new)) - log_q(new - drift(here.phi))
                here, info = self.accept(density, rng, here, new, correction)
                n_accepted += info.n_accepted
            return moved(particles, here), BlockInfo(n_accepted, 0)

        return run


class Uncorrected(Langevin):
    def accept(self, density, rng, here, proposal, log_correction):
        return density.there(proposal), BlockInfo(len(proposal), 0)


@pytest.mark.parametrize(("move", "exact"), [(Langevin(), True), (Uncorrected(), False)])
def test_new_move_gives_exact_evidence_only_with_its_metropolis_correction(move, exact):
    model = lambda theta: jax.scipy.stats.norm.logpdf(MEAN, theta, STD).sum()
    problem = sbnn.Problem(model, ["a", "b"], {name: sbnn.priors.Normal() for name in "ab"})
    result = sbnn.standard(problem, key=0, n_particles=500, move=move)
    assert result.settings["move"] == "langevin"
    assert (abs(result.log_evidence - EXACT) < 4 * result.log_evidence_error) == exact
