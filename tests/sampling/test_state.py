"""Samplers as steps: stepping by hand equals the run, and stored states round-trip."""

from __future__ import annotations

import json

import numpy as np
from helpers import gaussian_problem

from sbnn.sampling import tmcmc
from sbnn.sampling.state import TmcmcState


def through_json(saved):
    arrays, values = saved
    return dict(arrays), json.loads(json.dumps(values))


def test_steps_from_stored_states_give_the_run_bitwise():
    target = gaussian_problem(2)[0].target()
    run = tmcmc.tmcmc(target, 3, n_particles=100)
    state = tmcmc.init(3, target, n_particles=100)
    stages = []
    while state.beta < 1.0:
        state, stage = tmcmc.step(3, TmcmcState.unpacked(through_json(state.packed())), target)
        stages.append(stage)
    assert tuple(stages) == run.stages == state.stages
    np.testing.assert_array_equal(state.particles.phi, run.particles.phi)
    assert state.log_evidence == run.log_evidence
    assert run.beta == 1.0
    assert run.worst_correlation == max(stage.correlation for stage in stages)
