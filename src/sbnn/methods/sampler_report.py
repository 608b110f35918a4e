"""How a run of the sampler is reported in a `Result`: outcome, stages, messages."""

from __future__ import annotations

import pandas as pd

from sbnn._core.messages import (
    Message,
    PointsRejected,
    SamplerStuck,
    SamplingFinished,
    SamplingSlow,
    SamplingStopped,
)
from sbnn.sampling.tmcmc import STUCK, Stage, TmcmcResult

MIXED = 0.2  # correlation below which the moves of a stage suffice


def outcome_of(run: TmcmcResult) -> Message:
    """How the run ended."""
    beta = run.stages[-1].beta
    if beta < 1.0:
        return SamplingStopped(beta, len(run.stages))
    if run.converged:
        return SamplingFinished()
    correlations = [stage.correlation for stage in run.stages]
    return SamplingSlow(sum(c > MIXED for c in correlations), max(correlations))


def is_stuck(run: TmcmcResult) -> bool:
    """Whether the moves of some stage were too slow for the result to be trusted."""
    return max(stage.correlation for stage in run.stages) > STUCK


def rejections_of(run: TmcmcResult) -> tuple[Message, ...]:
    """A message about points of zero likelihood, if there were any."""
    return (PointsRejected(run.n_rejected, run.n_evaluations),) if run.n_rejected else ()


def messages_of(run: TmcmcResult) -> tuple[Message, ...]:
    """Messages about the run."""
    stuck = (SamplerStuck(outcome_of(run)),) if is_stuck(run) else ()
    return (*rejections_of(run), *stuck)


def stage_table(run: TmcmcResult) -> pd.DataFrame:
    """One row per tempering stage."""
    return pd.DataFrame(run.stages, columns=list(Stage._fields))
