"""Progress and limits of a fit: how far it is, what it has reached, and when it has to end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sbnn._core.text import duration, plural


@dataclass(frozen=True)
class FitProgress:
    """How far a fit is.

    Attributes
    ----------
    stage : str
    done, total : int
        Networks of the stage that are done, and in total. A stage may have fewer networks than
        starts (only the best go on) or more (several sizes or kinds of noise).
    log_evidence : float or None
        The best of the stage so far. It is that of standardised data, and early stages use some of
        the rows only, so it is not comparable with the log evidence of the fit.
    seconds : float
        Since the fit began.
    left : float or None
        Estimated seconds left; None at the beginning.
    """

    stage: str
    done: int
    total: int
    log_evidence: float | None
    seconds: float
    left: float | None

    def __str__(self) -> str:
        parts = [f"{self.stage}: {self.done} of {plural(self.total, 'network')}"]
        if self.left is not None:
            parts.append(f"about {duration(self.left)} left")
        return ", ".join(parts)


class Watch:
    """Follows a fit, and tells it when to end.

    Parameters
    ----------
    time_limit : float, optional
        Seconds from now.
    report : callable, optional
        Called with a `FitProgress` after every start.

    Examples
    --------
    >>> watch = Watch()
    >>> watch.over
    False
    >>> watch.stop()
    >>> watch.over
    True
    """

    def __init__(
        self,
        time_limit: float | None = None,
        report: Callable[[FitProgress], None] | None = None,
    ) -> None:
        self.started = time.time()
        self.deadline = None if time_limit is None else self.started + time_limit
        self._report = report
        self._stopped = False
        self._stage, self._total, self._done = "", 0, 0
        self._before, self._share = 0.0, 0.0
        self._best: float | None = None
        self._began, self._preparing = self.started, ""

    @property
    def over(self) -> bool:
        """Whether the fit has to end, with the best result so far."""
        return self._stopped or (self.deadline is not None and time.time() > self.deadline)

    def stop(self) -> None:
        """End the fit."""
        self._stopped = True

    @contextlib.contextmanager
    def preparing(self, purpose: str) -> Iterator[None]:
        """A short fit before the main one: it counts neither as work done nor for the time left."""
        self._preparing = purpose
        try:
            yield
        finally:
            self._preparing, self._began = "", time.time()

    def begin(self, stage: str, total: int, before: float, share: float) -> None:
        """Begin a stage with `total` starts, and the shares of the work before and in it."""
        self._stage, self._total, self._done = stage, total, 0
        self._before, self._share, self._best = before, share, None
        self._tell()

    def done(self, log_evidence: float) -> None:
        """One more start is done."""
        self._done += 1
        if log_evidence > (self._best if self._best is not None else -float("inf")):
            self._best = log_evidence
        self._tell()

    def _tell(self) -> None:
        if self._report is None:
            return
        now = time.time()
        part = self._before + self._share * self._done / max(self._total, 1)
        known = part > 0.03 and not self._preparing
        left = (now - self._began) * (1.0 - part) / part if known else None
        if self.deadline is not None:
            rest = max(self.deadline - now, 0.0)
            left = rest if left is None else min(left, rest)
        stage = f"{self._preparing}, {self._stage}" if self._preparing else self._stage
        self._report(
            FitProgress(stage, self._done, self._total, self._best, now - self.started, left)
        )

    def __getstate__(self) -> dict[str, Any]:
        # Another process observes the deadline; it does not report.
        return {**self.__dict__, "_report": None}


NEVER = Watch()  # no limit, no report
