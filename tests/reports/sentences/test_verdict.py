"""The verdict of a report: what it says about the log evidence."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from sbnn.regressor.posteriors.exact_posterior import ExactPosterior
from sbnn.reports.sentences.verdict import _verified


@pytest.mark.parametrize(
    ("method", "words"),
    [("last_layer", "given hidden layers trained on the same rows"), ("laplace_nsbl", "Laplace's")],
)
def test_verdict_says_what_the_log_evidence_is(method, words):
    model = SimpleNamespace(method_used_=method, log_evidence_=-12.3)
    fitted = SimpleNamespace(record=SimpleNamespace(run=None, verification=[]), model=model)
    assert words in _verified(fitted).text


@pytest.mark.parametrize(
    ("good", "tone", "words"),
    [(1.0, "good", "Verified"), (0.0, "bad", "did not converge at 1 of 2")],
)
def test_verdict_of_exact_draws_gives_the_largest_gap(good, tone, words):
    optima = [SimpleNamespace(log_evidence=value) for value in (-12.3, -14.0)]
    checks = np.array([[-11.8, 0.1, 1.0], [-16.5, 0.1, good]])
    nothing = np.zeros(0)
    posterior = ExactPosterior(
        SimpleNamespace(optima=optima), nothing, nothing, nothing, checks=checks
    )
    model = SimpleNamespace(method_used_="nsbl", log_evidence_=-12.3, posterior_=posterior)
    fitted = SimpleNamespace(record=SimpleNamespace(run=None, verification=[]), model=model)
    found = _verified(fitted)
    assert found.tone == tone
    assert words in found.text
    assert "off by −2.50 nat at most, at 2 optima" in found.text
