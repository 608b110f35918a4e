"""Claims of the study, each judged by the numbers of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from sbnn.evidence.exact.particle_estimates import savage_dickey
from sbnn.methods.details import NsblDetails
from sbnn.study.runs import Study, details
from sbnn.study.tables import table_1, widths


class Claim(NamedTuple):
    """A claim of the study, the measured values, and whether it holds in this run."""

    claim: str
    measured: str
    holds: bool


def judge(study: Study) -> list[Claim]:
    """Judge the study's claims by the numbers of this run alone.

    Parameters
    ----------
    study : Study

    Returns
    -------
    list of Claim
    """
    nsbl, hierarchical = study.results["nsbl"], study.results["hierarchical"]
    return [
        _symmetric_modes(study),
        *_irrelevant_parameters(study),
        _newton(study),
        _bands(study),
        *_overfitting(study),
        Claim(
            "NSBL needs fewer likelihood evaluations than hierarchical Bayes, all counted",
            f"{nsbl.n_evaluations:,} against {hierarchical.n_evaluations:,}",
            nsbl.n_evaluations < hierarchical.n_evaluations,
        ),
    ]


def table(judged: Sequence[Claim]) -> pd.DataFrame:
    """The claims as a table, indexed by claim."""
    return pd.DataFrame(judged).set_index("claim")


def _symmetric_modes(study: Study) -> Claim:
    orbit = study.orbit
    share = orbit.masses.sum() / len(orbit.masses)
    error = 4 * np.sqrt(share * (1 - share) / len(study.small.phi))
    even = bool(np.abs(orbit.masses - share).max() < error)
    return Claim(
        "The 1-2-1 posterior has eight symmetric modes",
        f"one orbit of {len(orbit.images)} modes with masses from "
        f"{orbit.masses.min():.3f} to {orbit.masses.max():.3f}",
        len(orbit.images) == 8 and even,
    )


def _irrelevant_parameters(study: Study) -> list[Claim]:
    nsbl, gamma = study.results["nsbl"], table_1(study)["gamma"]
    outputs = gamma[[f"W[2][1,{j}]" for j in (1, 2, 3)]].to_numpy()
    assert nsbl.log_alpha is not None
    without_bias = savage_dickey(details(nsbl, NsblDetails).best_phi, nsbl.log_alpha)[-1]
    return [
        Claim(
            "One output weight is irrelevant (γ < 0.1), the other two relevant (γ > 0.9)",
            "γ = " + ", ".join(f"{g:.3f}" for g in outputs),
            bool((outputs < 0.1).sum() == 1 and (outputs > 0.9).sum() == 2),
        ),
        Claim(
            "The output bias is irrelevant (γ < 0.1, or less than 1 nat of evidence lost with it)",
            f"γ = {gamma['b[2][1]']:.3f}; without it log p(D|α) changes by {without_bias:+.2f}",
            bool(gamma["b[2][1]"] < 0.1 or without_bias > -1),
        ),
    ]


def _newton(study: Study) -> Claim:
    iterations = details(study.results["nsbl"], NsblDetails).newton_iterations
    assert iterations is not None
    typical = float(np.median(iterations))
    return Claim(
        "Newton's method converges in about 16 iterations (8 to 32)",
        f"median {typical:g} over {len(iterations)} optima of the mixture's evidence "
        f"({iterations.min()} to {iterations.max()})",
        8 <= typical <= 32,
    )


def _bands(study: Study) -> Claim:
    ratio = widths(study.results["nsbl"]) / widths(study.results["hierarchical"])
    unlike = float(np.abs(ratio - 1).mean())
    return Claim(
        # A single width is a quantile of few draws in the tails, known to about 10 %.
        "NSBL and hierarchical Bayes predict alike (95 % bands differ by at most 25 %, mean of "
        "five points)",
        f"{100 * unlike:.0f} %; ratios of widths at x = −6, −3, 0, 3, 6: "
        + ", ".join(f"{r:.2f}" for r in ratio),
        unlike <= 0.25,
    )


def _overfitting(study: Study) -> list[Claim]:
    edge = widths(study.results["hierarchical"])[[0, -1]].mean()
    out = []
    for name, title in (
        ("standard", "Standard Bayes overfits"),
        ("laplace", "Laplace overfits"),
        ("laplace_nsbl", "Laplace with NSBL overfits"),
    ):
        times = widths(study.results[name])[[0, -1]].mean() / edge
        out.append(
            Claim(
                f"{title} outside the data (band at ±6 over twice the hierarchical one)",
                f"{times:.1f} × as wide",
                bool(times > 2),
            )
        )
    return out
