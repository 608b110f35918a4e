"""Progress and limits of a fit."""

from __future__ import annotations

import pickle

from sbnn._core import watch as watches
from sbnn._core.watch import Watch


def test_time_left_follows_from_the_share_of_the_work_done(monkeypatch):
    now, seen = [100.0], []
    monkeypatch.setattr(watches.time, "time", lambda: now[0])
    watch = Watch(report=seen.append)
    watch.begin("training", 4, before=0.0, share=0.5)
    assert seen[-1].left is None
    now[0] += 10.0
    watch.done(-5.0)
    watch.done(-7.0)
    # Half of the first half is done: a quarter of the work in 10 s leaves 30 s.
    assert (seen[-1].left, seen[-1].log_evidence, seen[-1].done) == (30.0, -5.0, 2)
    assert str(seen[-1]) == "training: 2 of 4 networks, about 30 s left"


def test_preparations_do_not_count_for_the_time_left(monkeypatch):
    now, seen = [100.0], []
    monkeypatch.setattr(watches.time, "time", lambda: now[0])
    watch = Watch(report=seen.append)
    with watch.preparing("filling missing cells"):
        watch.begin("training", 1, before=0.0, share=1.0)
        now[0] += 50.0
        watch.done(-5.0)
    assert str(seen[-1]) == "filling missing cells, training: 1 of 1 network"
    watch.begin("training", 4, before=0.0, share=1.0)
    now[0] += 10.0
    watch.done(-5.0)
    assert seen[-1].left == 30.0
    assert seen[-1].seconds == 60.0


def test_watch_is_over_at_its_deadline_or_when_stopped(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(watches.time, "time", lambda: now[0])
    limited, free = Watch(time_limit=5.0), Watch()
    now[0] = 4.9
    assert not limited.over
    now[0] = 5.1
    assert limited.over
    assert not free.over
    free.stop()
    assert free.over


def test_other_processes_get_the_deadline_without_the_report():
    copy = pickle.loads(pickle.dumps(Watch(1e9, report=lambda progress: None)))
    copy.begin("training", 1, 0.0, 1.0)  # reports nothing
    assert copy.deadline is not None
