"""Manners of the command line: one-line errors, exit codes, progress, text fit for a terminal."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import signal
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import typer

from sbnn._core.text import duration

FAILED, USAGE, INTERRUPTED = 1, 2, 130


class UsageProblem(Exception):
    """Wrong usage; the text is one line for the user."""


def printable(text: str) -> str:
    """On one line, without control characters: a column's name must not steer the terminal."""
    return "".join(c if c.isprintable() else "�" for c in text.replace("\n", " "))


def say(text: str) -> None:
    print(_wrapped(printable(text)) if sys.stdout.isatty() else printable(text), flush=True)


def _wrapped(text: str) -> str:
    """Lines that fit the terminal and break between words, not inside --option."""
    width = max(shutil.get_terminal_size().columns, 40)
    if len(text) <= width:
        return text
    return textwrap.fill(
        text, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def tell(text: str) -> None:
    """A line that is no part of the answer, on stderr."""
    print(printable(text), file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """One line on stderr."""
    print(f"sbnn: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)


def command_line() -> str:
    """The command as it could be typed again."""
    return shlex.join(["sbnn", *sys.argv[1:]])


@contextlib.contextmanager
def manners(debug: bool, interrupted: str = "interrupted; nothing was written.") -> Iterator[None]:
    """Errors become one line and an exit code: 2 for usage and data, 1 for failures."""
    from sbnn.tables.header import TableError

    try:
        with _interruptible():
            yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        complain(interrupted)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        sys.stderr.close()
        raise typer.Exit(0) from None
    except (UsageProblem, TableError) as error:
        _trace(debug)
        complain(str(error))
        raise typer.Exit(USAGE) from None
    except MemoryError:
        _trace(debug)
        complain("out of memory; fit fewer rows, columns or neurons.")
        raise typer.Exit(FAILED) from None
    except OSError as error:
        _trace(debug)
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror or error}.")
        raise typer.Exit(FAILED) from None
    except Exception as error:
        _trace(debug)
        hint = "" if debug else " (--debug shows where)"
        complain(f"failed: {type(error).__name__}: {error}{hint}")
        raise typer.Exit(FAILED) from None


def _trace(debug: bool) -> None:
    if debug:
        traceback.print_exc()


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM cleans up as Ctrl-C does, and no interrupt is lost.

    One that falls into a place that cannot raise, such as a callback of the garbage collector, is
    ignored by Python; it comes again a moment later.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number, frame):
        raise KeyboardInterrupt

    def again(lost):
        if lost.exc_type is KeyboardInterrupt and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
        else:
            hook(lost)

    wanted = [getattr(signal, name) for name in ("SIGTERM", "SIGALRM") if hasattr(signal, name)]
    before = {number: signal.signal(number, stop) for number in wanted}
    hook, sys.unraisablehook = sys.unraisablehook, again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)


class Steps:
    """Plain lines: what is being done, folds, time left. Called with a sampler's stages."""

    def __init__(self, write) -> None:
        self.write = write
        self.started = time.perf_counter()
        self.last_stage = 0.0
        self.folds_started = 0.0
        self.clock: Any = None

    def step(self, text: str) -> None:
        self.write(text)

    def on_fold(self, done: int, total: int) -> None:
        now = time.perf_counter()
        if done == 0:
            self.folds_started = now
        if done < total and self._is_due(done, total):
            left = (now - self.folds_started) / max(done, 1) * (total - done)
            more = f", about {duration(left)} left" if done else ""
            self.step(f"unseen rows: fold {done + 1} of {total}{more}")

    def _is_due(self, done: int, total: int) -> bool:
        """At most ten lines, however many folds there are."""
        return done * 10 // total > (done - 1) * 10 // total

    def __call__(self, stage: Any) -> None:
        text, now = self.sampling(stage), time.perf_counter()
        if now - self.last_stage > 10 or stage.beta >= 1:
            self.last_stage = now
            self.event(text)

    def sampling(self, stage: Any) -> str:
        """How far a run of the sampler has come; the next stage after its last is another run's."""
        from sbnn.sampling.progress import TimeLeft, fraction

        self.clock = self.clock or TimeLeft()
        left = self.clock.left(stage.beta)
        if stage.beta >= 1:
            self.clock = None
        done = f"sampling, {int(100 * fraction(stage.beta))} % of this step"
        return f"{done}, {left}" if left else done

    def event(self, text: str) -> None:
        self.step(f"{text}, {duration(time.perf_counter() - self.started)} so far")


class LiveSteps(Steps):
    """A line that moves, with the time passed."""

    def __init__(self, display, task) -> None:
        super().__init__(lambda text: display.update(task, description=text))

    def _is_due(self, done: int, total: int) -> bool:
        return True

    def __call__(self, stage: Any) -> None:
        self.event(self.sampling(stage))

    def event(self, text: str) -> None:
        self.step(text)


@contextlib.contextmanager
def show_steps(quiet: bool = False) -> Iterator[Steps]:
    """Progress on stderr: alive on a terminal, plain lines elsewhere, none if `quiet` there."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
        with Progress(
            *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
        ) as display:
            yield LiveSteps(display, display.add_task("", total=None))
    elif quiet:
        yield Steps(lambda text: None)
    else:
        yield Steps(tell)
