"""The areas of the hostile test about likelihoods: a part of the cases, and a control."""

from __future__ import annotations

from fault_areas.likelihoods import CASES, Case, black_box, fault_of, odd_likelihoods


def test_odd_likelihoods_are_handled(tmp_path):
    tried, handled, rest = odd_likelihoods(True, tmp_path)
    assert rest == []
    assert tried == handled == len(list(CASES)[::5])


def test_every_kind_of_wrong_outcome_is_reported():
    fine = black_box(lambda t: 0.0)
    assert fault_of(Case(fine, error="text")) == "no error"
    assert fault_of(Case(fine, warning="half")).startswith("another warning")
    assert fault_of(Case(fine, log_evidence=1.0)).startswith("log evidence")
    assert fault_of(Case(black_box(lambda t: "3.0"), log_evidence=3.0)).startswith("another error")
    assert fault_of(Case(fine, log_evidence=0.0)) == ""
