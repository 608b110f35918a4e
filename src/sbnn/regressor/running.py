"""A running fit of `SparseBNNRegressor`: options of the engine, progress, time limit, stopping."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sbnn._core.messages import Message, OptimaNotConverged
from sbnn._core.watch import FitProgress, Watch
from sbnn.evidence.laplace.options import FOR_FEW_ROWS, Options
from sbnn.methods.registry import SAMPLING
from sbnn.regressor import options as checks
from sbnn.regressor.architectures import FEW_ROWS, larger, with_linear


@dataclass(frozen=True)
class FitStopped(Message, code="fit_stopped"):
    """A fit was stopped before all of its optima had converged."""

    n_late: int
    n_optima: int
    warns = "ConvergenceWarning"

    def __str__(self) -> str:
        return (
            f"The fit was stopped before {self.n_late} of its {self.n_optima} optima had "
            "converged; allow more time for a better one."
        )


class Running:
    """Mixin of `SparseBNNRegressor`: what happens while `fit` runs."""

    hidden_layer_sizes: Any
    method: str
    method_used_: str
    n_starts: int
    n_jobs: int | None
    method_options: dict[str, Any] | None
    time_limit: float | None
    verbose: bool | Callable[[FitProgress], None]
    messages_: list[Message]
    _watch: Watch

    def stop(self) -> None:
        """End a running `fit` with the best result so far.

        For another thread or a signal handler. `fit` finishes the current iteration, and at least
        20 iterations of one start; without sampling only.
        """
        watch = getattr(self, "_watch", None)
        if watch is not None:
            watch.stop()

    @property
    def ended_early(self) -> bool:
        """Whether the last `fit` ended by `time_limit` or `stop`; False for a loaded model."""
        return getattr(self, "_ended_early", False)

    def _begin(self) -> None:
        """Check `time_limit` and `verbose`, and start the clock."""
        limit, verbose = self.time_limit, self.verbose
        checks.check_time_limit(limit)
        if limit is not None and self.method in SAMPLING:
            raise ValueError(
                f"`time_limit` applies to methods without sampling, not to {self.method!r}; "
                "leave it out, or use method='laplace_nsbl'."
            )
        report = verbose if callable(verbose) else _print if verbose else None
        self._watch = Watch(None if limit is None else float(limit), report)

    def _end(self) -> None:
        """Note how the fit ended."""
        self._ended_early = self._watch.over
        if self._ended_early:
            late = OptimaNotConverged
            self.messages_ = [
                FitStopped(m.n_late, m.n_optima) if isinstance(m, late) else m
                for m in self.messages_
            ]

    def _options(self, n_rows: float, n_inputs: int) -> Options:
        """Options of the Laplace engine; a sampling method uses it to choose the noise model."""
        sampled = self.method_used_ in SAMPLING
        return Options(
            **{
                "n_starts": self.n_starts,
                "sparse": self.method_used_ != "laplace",
                "constant": True,
                "n_threads": checks.n_threads(self.n_jobs),
                "watch": self._watch,
                "larger": larger(self.hidden_layer_sizes, n_rows),
                **(FOR_FEW_ROWS if n_rows <= FEW_ROWS else {}),
                "linear": self.method_used_ == "laplace_nsbl"
                and with_linear(self.hidden_layer_sizes, n_rows, n_inputs),
                **({} if sampled else self.method_options or {}),
            }
        )


def _print(progress: FitProgress) -> None:
    print(f"sbnn: {progress}", file=sys.stderr, flush=True)
