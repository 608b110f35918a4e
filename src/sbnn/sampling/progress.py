"""Progress on a terminal: one line per run, updated after every tempering stage."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from sbnn._core.extras import require
from sbnn._core.text import duration


class Tempering(Protocol):
    """What a display shows of a finished stage."""

    @property
    def beta(self) -> float: ...

    @property
    def ess(self) -> float: ...

    @property
    def acceptance(self) -> float: ...

    @property
    def n_evaluations(self) -> int: ...


Progress = bool | Callable[[Any], None]


@contextlib.contextmanager
def reporter(progress: Progress, title: str) -> Iterator[Callable[[Any], None] | None]:
    """A function to call with each finished stage: the user's, a live display, or None.

    Parameters
    ----------
    progress : bool or callable
    title : str
        Shown in front of the display.

    Yields
    ------
    callable or None
    """
    if callable(progress):
        yield progress
        return
    if not progress:
        yield None
        return
    require("cli", "A progress display", "rich")
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Display

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda stage: console.print(_line(title, stage), highlight=False)
        return
    columns: list[Any] = [
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
    ]
    with Display(*columns, console=console, transient=True) as display:
        task = display.add_task(title, total=1.0, text="sampling the prior")
        clock = TimeLeft()

        def on_stage(stage: Tempering) -> None:
            text = f"{_numbers(stage)}  {clock.left(stage.beta)}"
            display.update(task, completed=fraction(stage.beta), text=text)

        yield on_stage


def events(progress: Progress) -> Callable[[str], None] | None:
    """A function to call with one line of text per step of a search, or None.

    If `progress` is a user's object, this is its method `event(text)`, if it has one.
    """
    if callable(progress):
        return getattr(progress, "event", None)
    if not progress:
        return None
    require("cli", "A progress display", "rich")
    from rich.console import Console

    console = Console(stderr=True)
    return lambda text: console.print(f"  {text}", highlight=False)


def fraction(beta: float) -> float:
    """Progress of a run, from 0 to 1."""
    # β grows about geometrically from 1e-4 or so, so its logarithm measures progress.
    return min(1.0, max(0.02, 1.0 + math.log10(max(beta, 1e-5)) / 5.0))


def _numbers(stage: Tempering) -> str:
    return (
        f"β {stage.beta:.4f}  ESS {stage.ess:.0f}  acceptance {stage.acceptance:.2f}  "
        f"{stage.n_evaluations:,} evaluations"
    )


def _line(title: str, stage: Tempering) -> str:
    return f"{title}: {_numbers(stage)}"


class TimeLeft:
    """Time left, from the pace of log β over the last two stages; it slows towards the end."""

    def __init__(self) -> None:
        self.recent: deque[tuple[float, float]] = deque(maxlen=3)

    def left(self, beta: float) -> str:
        self.recent.append((time.perf_counter(), math.log(max(beta, 1e-12))))
        passed, gained = (b - a for a, b in zip(self.recent[0], self.recent[-1]))
        if gained <= 0 or beta >= 1:
            return ""
        return f"at least {duration(-math.log(beta) / gained * passed)} left"
