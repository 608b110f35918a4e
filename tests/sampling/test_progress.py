"""Progress: silent by default, a line per stage in a log, a live display on a terminal."""

from __future__ import annotations

import numpy as np
import pytest

from sbnn.sampling.progress import TimeLeft, events, fraction, reporter
from sbnn.sampling.tmcmc import Stage


def stage(beta, n_evaluations=12345):
    return Stage(beta, 500.0, 0.25, 0.1, 40, n_evaluations, 0.1, -10.0, 1e-3)


def test_no_progress_is_shown_by_default(capfd):
    with reporter(False, "Run") as on_stage:
        assert on_stage is None
    assert capfd.readouterr() == ("", "")


def test_progress_function_receives_every_stage():
    seen = []
    with reporter(seen.append, "Run") as on_stage:
        on_stage(stage(0.1))
        on_stage(stage(1.0))
    assert [s.beta for s in seen] == [0.1, 1.0]


def test_progress_object_receives_search_events(capfd):
    class Listener(list):
        __call__ = event = list.append

    seen = Listener()
    events(seen)("verifying")
    assert seen == ["verifying"]
    assert events(print) is None  # accepts stages only
    assert events(False) is None
    events(True)("verifying")
    assert capfd.readouterr().err.strip() == "verifying"


def test_log_file_gets_one_plain_line_per_stage(capsys):
    with reporter(True, "Standard Bayes") as on_stage:
        on_stage(stage(0.25))
    out, err = capsys.readouterr()
    assert out == ""
    words = " ".join(err.split())
    assert "Standard Bayes: β 0.2500 ESS 500 acceptance 0.25 12,345 evaluations" in words
    assert "\x1b" not in err


def test_terminal_shows_live_display_with_time_left(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    with reporter(True, "Standard Bayes") as on_stage:
        for beta in (0.001, 0.01, 0.1, 1.0):
            on_stage(stage(beta))
    out, err = capsys.readouterr()
    assert out == ""
    assert "\x1b" in err


def test_time_left_follows_recent_pace_of_log_beta(monkeypatch):
    times = iter([0.0, 2.0, 8.0, 9.0, 10.0])
    monkeypatch.setattr("sbnn.sampling.progress.time.perf_counter", lambda: next(times))
    clock = TimeLeft()
    assert clock.left(1e-6) == ""
    assert clock.left(1e-4) == "at least 4.0 s left"  # two decades in 2 s, four more to go
    assert clock.left(1e-3) == "at least 8.0 s left"  # three decades in 8 s, three more to go
    # the last two stages: two decades in 7 s, two more to go; all stages would give 4.5 s
    assert clock.left(1e-2) == "at least 7.0 s left"
    assert clock.left(1.0) == ""


@pytest.mark.parametrize("beta", [0.0, 1e-300, 1e-5, 0.5, 1.0])
def test_progress_fraction_stays_between_zero_and_one(beta):
    assert 0 < fraction(beta) <= 1
    assert np.all(np.diff([fraction(b) for b in (1e-4, 1e-2, 1.0)]) > 0)
