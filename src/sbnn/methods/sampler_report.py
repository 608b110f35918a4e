"""How a run of the sampler is reported in a `Result`: stages, messages."""

from __future__ import annotations

import pandas as pd

from sbnn._core.messages import (
    Message,
    PointsRejected,
    SamplerStuck,
)
from sbnn.sampling.tmcmc import Stage, TmcmcResult


def rejections_of(run: TmcmcResult) -> tuple[Message, ...]:
    """A message about points of zero likelihood, if there were any."""
    return (PointsRejected(run.n_rejected, run.n_evaluations),) if run.n_rejected else ()


def messages_of(run: TmcmcResult) -> tuple[Message, ...]:
    """Messages about the run."""
    stuck = (SamplerStuck(run.reason),) if run.stuck else ()
    return (*rejections_of(run), *stuck)


def stage_table(run: TmcmcResult) -> pd.DataFrame:
    """One row per tempering stage."""
    return pd.DataFrame(run.stages, columns=list(Stage._fields))
