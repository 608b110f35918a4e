"""How a run of the sampler is reported in a `Result`: stages, messages."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pandas as pd

from sbnn._core.float64 import float64
from sbnn._core.messages import (
    Message,
    PointsRejected,
    SamplerStuck,
)
from sbnn.evidence.candidates import Search
from sbnn.evidence.exact.cold import ExactRun
from sbnn.priors import Hyperprior
from sbnn.problems.problem import Problem
from sbnn.problems.target import Target
from sbnn.sampling.state import Stage
from sbnn.sampling.tmcmc import TmcmcResult
from sbnn.sampling.warm_start import WarmStartResult
from sbnn.sampling.warm_start.sampler import WarmStage

N_DRAWS = 256  # of the prior, at which to look for NaN and +inf


def rejections_of(run: TmcmcResult) -> tuple[Message, ...]:
    """A message about points of zero likelihood, if there were any."""
    return (PointsRejected(run.n_rejected, run.n_evaluations),) if run.n_rejected else ()


@float64
def undefined_fraction(problem: Problem) -> float:
    """Fraction of prior draws at which a compiled log-likelihood is NaN or +inf.

    Zero for networks, whose likelihood is finite.
    """
    if problem.network is not None:
        return 0.0
    values = np.asarray(_raw(problem.target(), problem.known_prior().sample(0, N_DRAWS)))
    return float((np.isnan(values) | (values == np.inf)).mean())


@jax.jit
def _raw(target: Target, phi: Any) -> Any:
    return target.log_likelihood(target.data, phi)


def with_undefined(messages: tuple[Message, ...], undefined: float) -> tuple[Message, ...]:
    """The messages, of which the one about rejected points knows the fraction of NaN and +inf."""
    return tuple(
        dataclasses.replace(m, undefined=undefined) if isinstance(m, PointsRejected) else m
        for m in messages
    )


def messages_of(run: TmcmcResult) -> tuple[Message, ...]:
    """Messages about the run."""
    stuck = (SamplerStuck(run.reason),) if run.stuck else ()
    return (*rejections_of(run), *stuck)


def stage_table(run: ExactRun) -> pd.DataFrame:
    """One row per tempering stage."""
    kind = WarmStage if isinstance(run, WarmStartResult) else Stage
    return pd.DataFrame(run.stages, columns=list(kind._fields))


def optima_table(found: Search, shares: np.ndarray, hyperprior: Hyperprior) -> pd.DataFrame:
    """The optima found, best first: exact evidence, estimates of it, and shares."""
    return pd.DataFrame(
        {
            "origin": [c.origin for c in found.optima],
            "log_evidence": [c.exact.log_evidence for c in found.optima],
            "log_evidence_error": [c.exact.log_evidence_error for c in found.optima],
            "objective": [c.objective(hyperprior) for c in found.optima],
            "estimate": [c.estimate for c in found.optima],
            "gap": [c.gap for c in found.optima],
            "surrogate": [c.surrogate for c in found.optima],
            "share": shares,
        }
    )


def search_history(sample: TmcmcResult, found: Search) -> dict[str, pd.DataFrame]:
    """Stages of the first run, steps of the ascent and, if there was a mixture, Newton's steps."""
    tables = {
        "stages": stage_table(sample if found.surrogate_optima else found.optima[0].exact),
        "refine": pd.DataFrame({"log_evidence": [s.log_evidence for s in found.optima[0].steps]}),
    }
    if found.surrogate_optima:
        steps = found.surrogate_optima[0].history
        tables["newton"] = pd.DataFrame({"objective": [s.objective for s in steps]})
    return tables
