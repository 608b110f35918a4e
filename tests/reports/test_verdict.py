"""The verdict of a report: what it says about the log evidence."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sbnn.reports.verdict import _verified


@pytest.mark.parametrize(
    ("method", "words"),
    [("last_layer", "given hidden layers trained on the same rows"), ("laplace_nsbl", "Laplace's")],
)
def test_verdict_says_what_the_log_evidence_is(method, words):
    model = SimpleNamespace(method_used_=method, log_evidence_=-12.3)
    fitted = SimpleNamespace(record=SimpleNamespace(run=None, verification=[]), model=model)
    assert words in _verified(fitted).text
