"""The starts of a fit: what each carries along, and how a stage runs all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sbnn._core.parallel import run_all
from sbnn._core.watch import Watch
from sbnn.evidence.laplace.models.base import Model
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.optimum import Optimum


@dataclass(frozen=True)
class Start:
    """One start: the number of its family, model, current optimum, random number generator."""

    family: int
    model: Model
    optimum: Optimum
    rng: np.random.Generator

    def at(self, optimum: Optimum) -> Start:
        """The same start with an updated optimum."""
        return replace(self, optimum=optimum)


@dataclass(frozen=True)
class Stage:
    """A stage of a fit: its name, and the shares of the work before and in it."""

    name: str
    before: float
    share: float


def on_rows(model: Model, n_values: int) -> Model:
    """The model on at most `n_values` observed values.

    Their rows are random, but the same for all starts, which are compared by their evidence.
    """
    n_out, n = model.shape
    few = max(n_values // max(n_out, 1), 1)
    if few >= n:
        return model
    return model.rows(np.sort(np.random.default_rng([n, few]).choice(n, few, replace=False)))


def run_stage(
    stage: Stage,
    function: Callable[[Start], Optimum],
    starts: Sequence[Start],
    n_threads: int,
    watch: Watch,
) -> list[Start]:
    """Continue every start; the results do not depend on where they run.

    Once the watch is over, starts stay as they are, and those that had not begun are left out if
    others had.

    Parameters
    ----------
    stage : Stage
    function : callable
        From a start to its new optimum.
    starts : sequence of Start
    n_threads : int
    watch : Watch

    Returns
    -------
    list of Start
    """

    def run(numbered: tuple[int, Start]) -> Start:
        number, start = numbered
        if watch.over and (number or start.optimum.iterations):
            return start
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is rejected
            return start.at(function(start))

    watch.begin(stage.name, len(starts), stage.before, stage.share)
    distribute = all(isinstance(start.model, NetworkModel) for start in starts)
    done = run_all(
        run,
        list(enumerate(starts)),
        n_threads,
        lambda start: watch.done(start.optimum.log_evidence),
        distribute,
    )
    if watch.over:
        return [start for start in done if start.optimum.iterations] or done
    return done


def is_possible(model: Model, opt: Optimum) -> bool:
    """Whether a start has a finite log-likelihood."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(model.misfit(model.evaluate(opt.phi, opt.layout), opt.noise)))


def require_starts(starts: Sequence[object]) -> None:
    """Raise ValueError if no start is left."""
    if not starts:
        raise ValueError("No start had a finite log-likelihood; check the function and the priors.")
