"""Progress of a command on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from sbnn._core.text import duration
from sbnn.cli.terminal import note
from sbnn.methods.registry import SAMPLING

STAGE_SECONDS = 10.0  # between two plain lines of one run of a sampler
FOLD_LINES = 10  # plain lines at most, however many folds there are


class Progress:
    """What a command is doing: steps, folds, starts of a fit, and the stages of samplers.

    Parameters
    ----------
    write : function of str
        Shows a line.
    live : bool
        Whether a line replaces the one before, with a clock beside it. Otherwise lines stay, so
        they are fewer and give the time themselves.
    """

    def __init__(self, write: Callable[[str], None], live: bool = False) -> None:
        self.step = write
        self.live = live
        self._started = time.perf_counter()
        self._last_stage = 0.0
        self._folds_started = 0.0
        self._clock: Any = None

    def on_fold(self, done: int, total: int) -> None:
        """Show how many folds of a cross-validation are done."""
        now = time.perf_counter()
        if done == 0:
            self._folds_started = now
        due = done * FOLD_LINES // total > (done - 1) * FOLD_LINES // total
        if done < total and (self.live or due):
            left = (now - self._folds_started) / max(done, 1) * (total - done)
            more = f", about {duration(left)} left" if done else ""
            self.step(f"held-out rows: fold {done + 1} of {total}{more}")

    def __call__(self, stage: Any) -> None:
        """Show how far a run of the sampler is after a tempering stage."""
        text, now = self._sampling(stage.beta), time.perf_counter()
        if self.live or now - self._last_stage > STAGE_SECONDS or stage.beta >= 1:
            self._last_stage = now
            self.event(text)

    def on_start(self, progress: Any) -> None:
        """Show how far a fit without sampling is: starts, log evidence, time left."""
        now = time.perf_counter()
        if self.live or now - self._last_stage > STAGE_SECONDS:
            self._last_stage = now
            self.step(str(progress))

    @contextlib.contextmanager
    def fitting(self, model: Any) -> Iterator[None]:
        """Show how far the fit of a model is; Ctrl-C ends it with the best result so far.

        A second Ctrl-C interrupts the command.
        """
        if model.method in SAMPLING or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def stop(number: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGINT, before)
            self.step("stopping with the best result so far; press Ctrl-C again to quit without it")
            model.stop()

        model.set_params(verbose=self.on_start)
        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def event(self, text: str) -> None:
        """Show a step within a method."""
        passed = "" if self.live else f", {duration(time.perf_counter() - self._started)} so far"
        self.step(text + passed)

    def _sampling(self, beta: float) -> str:
        from sbnn.sampling.progress import TimeLeft, fraction

        self._clock = self._clock or TimeLeft()
        left = self._clock.left(beta)
        if beta >= 1:  # the next stage is the first of another run
            self._clock = None
        done = f"sampling, {int(100 * fraction(beta))} % of this step"
        return f"{done}, {left}" if left else done


@contextlib.contextmanager
def show_progress(quiet: bool = False) -> Iterator[Progress]:
    """Show progress on stderr; with `quiet`, only if it is a terminal."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress as Display
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
        with Display(
            *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
        ) as display:
            task = display.add_task("", total=None)
            yield Progress(lambda text: display.update(task, description=text), live=True)
    elif quiet:
        yield Progress(lambda text: None)
    else:
        yield Progress(note)
