"""The verdict on a fit, in sentences: accuracy, calibration, noise, pruning, verification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnn._core.text import (
    listed,
    log_evidence,
    number,
    percent,
    plural,
    rounded,
)
from sbnn.regressor.noise import WORDS, NoiseChosen, NoiseNotCompared
from sbnn.regressor.posteriors.exact_posterior import ExactPosterior
from sbnn.reports.account import about_formula, about_inputs, about_weights
from sbnn.reports.cautions import noise_text
from sbnn.reports.columns import about_missing
from sbnn.reports.noise import has_heavy_tails, is_noise_known, typical_levels, varies
from sbnn.reports.sentences.accuracy import about_accuracy, about_gaps

if TYPE_CHECKING:
    from sbnn.reports.fit import Fit

# Fewer unseen rows than this say little about 95 % intervals: one row outside is expected of 20.
LITTLE = 20


@dataclass(frozen=True)
class Sentence:
    """A statement of the verdict; its tone is "good", "bad" or "plain"."""

    tone: str
    text: str


def verdict(fitted: Fit) -> list[Sentence]:
    """Judge a fit in words: accuracy, calibration, noise, pruning, inputs, verification.

    Parameters
    ----------
    fitted : Fit

    Returns
    -------
    list of Sentence
    """
    out = [Sentence(*about_accuracy(fitted, k)) for k in range(len(fitted.targets))]
    levels = typical_levels(fitted)
    out += [_sureness(fitted, k, levels[:, k]) for k in range(len(fitted.targets))]
    out += [_noise(fitted), *_outliers(fitted)]
    out += [Sentence(*about_weights(fitted)), *_inputs(fitted)]
    out += [*_missing(fitted), _verified(fitted)]
    return out


def coverage_range(n: int, level: float = 0.95) -> tuple[float, float]:
    """Central 95 % of the coverage of n rows by correct intervals (binomial distribution)."""
    from scipy.stats import binom

    low, high = binom.ppf([0.025, 0.975], n, level) / n
    return float(low), float(high)


def _sureness(fitted: Fit, k: int, levels: np.ndarray) -> Sentence:
    n, (share, effective) = len(fitted.held_out.rows), fitted.held_out.coverage(k)
    least, most = coverage_range(effective)
    own = float(own_uncertainty(fitted)[k])
    start = (
        f"95 % intervals for “{fitted.targets[k]}” cover {percent(share, n)} of {n:,} unseen rows"
    )
    start += "" if effective == n else " with their weights"
    known = "given as" if is_noise_known(fitted) else "estimated as"
    end = (
        f" They include the noise, {known} {_size(fitted, k, levels)}, and the model's own "
        f"uncertainty, {number(own, 2)} for a typical row.{about_gaps(fitted, k)}"
    )
    if share < least:
        return Sentence("bad", f"{start}, too few: the model is overconfident.{end}")
    if share > most:
        return Sentence("plain", f"{start}: the intervals are wider than necessary.{end}")
    allowed = f"{100 * least:.0f} to {100 * most:.0f} %"
    if effective < LITTLE:
        return Sentence("plain", f"{start}; so few rows say little about the intervals.{end}")
    return Sentence("good", f"{start}, within what chance allows ({allowed}).{end}")


def _size(fitted: Fit, k: int, levels: np.ndarray) -> str:
    """The size of the noise and what it means: the tails may make up most of the std."""
    std = noise_text(fitted, float(np.atleast_1d(fitted.model.noise_std_)[k]))
    heavy = has_heavy_tails(fitted)
    what = "68 % of it is within this distance" if heavy else "standard deviation"
    if varies(levels):
        low, high = (noise_text(fitted, float(q)) for q in np.quantile(levels, [0.1, 0.9]))
        return f"{low} to {high} ({what}; middle 80 % of the rows)"
    if heavy:
        typical = noise_text(fitted, float(np.median(levels)))
        return f"{typical} ({what}; with its tails, the standard deviation is {std})"
    return f"{std} ({what})"


# What each kind of noise says about the data.
PROPERTIES = {
    "student_t": "has heavy tails",
    "varying": "varies with the inputs",
    "varying_student_t": "varies with the inputs and has heavy tails",
}


def _noise(fitted: Fit) -> Sentence:
    record = fitted.record
    if record.noise_columns:
        columns = listed([f"“{name}”" for name in dict.fromkeys(record.noise_columns)])
        return Sentence("plain", f"The noise is known: the standard errors in {columns}.")
    if is_noise_known(fitted):
        return Sentence("plain", "The noise is known: Gaussian, with the given standard deviation.")
    kind = WORDS.get(record.noise, record.noise)
    if isinstance(fitted.model.noise_reason_, NoiseNotCompared):
        return Sentence("bad", "The fit ended before kinds of noise were compared, so the noise "
                        f"model is {kind}. Allow more time if noise may vary.")  # fmt: skip
    if not isinstance(fitted.model.noise_reason_, NoiseChosen):
        return Sentence("plain", f"The noise model is {kind}, as requested; it was not compared "
                        "with others.")  # fmt: skip
    if record.noise_gain is None or record.noise not in PROPERTIES:
        return Sentence("plain", "Constant Gaussian noise suffices: no other kind of noise has "
                        "clearly more evidence.")  # fmt: skip
    weights = fitted.per_row.weights
    per_row = record.noise_gain / (len(fitted.data) if weights is None else weights.sum())
    return Sentence(
        "plain",
        f"The noise {PROPERTIES[record.noise]}: with {kind} the data are more probable than with "
        f"constant Gaussian noise, by {number(record.noise_gain)} nat in log evidence "
        f"({number(per_row, 2)} nat per row) when they were compared, early in the fit and before "
        "pruning.",
    )


def _outliers(fitted: Fit, n_shown: int = 6) -> list[Sentence]:
    found = fitted.record.outliers
    if not found:
        return []
    lines = list(dict.fromkeys(row["line"] for row in found))
    farthest = sorted(lines[:n_shown])
    more = [f"{len(lines) - n_shown} more"] if len(lines) > n_shown else []
    shown = listed([*map(str, farthest), *more])
    verb = "does" if len(lines) == 1 else "do"
    distance = ("" if len(found) == 1 else "at least ") + number(found[-1]["scales"], 2)
    text = f"{plural(len(lines), 'row')} {verb} not fit the rest: line{'s' * (len(lines) > 1)} "
    text += f"{shown}, {distance} noise scales from the prediction. "
    if fitted.record.noise.endswith("student_t"):
        text += (
            "With Student-t noise, such rows have little influence on the prediction, but they "
            "widen its intervals. If they are errors, remove them and fit again."
        )
    else:
        text += "Check for errors: such rows can distort the fit."
    return [Sentence("bad", text)]


def _inputs(fitted: Fit) -> list[Sentence]:
    texts = about_inputs(fitted), about_formula(fitted)
    return [Sentence("plain", text) for text in texts if text]


def _missing(fitted: Fit) -> list[Sentence]:
    text = about_missing(fitted)
    return [Sentence("plain", text)] if text else []


def _verified(fitted: Fit) -> Sentence:
    run = fitted.record.run
    value = f"log evidence {evidence_text(fitted)}"
    if run is None and fitted.model.method_used_ == "last_layer":
        return Sentence(
            "plain",
            f"The {value} is that of the output layer, given hidden layers trained on the same "
            "rows: do not compare it with that of other methods.",
        )
    posterior = getattr(fitted.model, "posterior_", None)
    if isinstance(posterior, ExactPosterior):
        return _of_draws(posterior, value)
    if run is None and fitted.record.verification:
        return _by_sampling(fitted.record.verification, value)
    if run is None:
        return Sentence(
            "plain",
            f"Not verified by sampling: the {value} is Laplace's estimate at the best optimum. The "
            "scores on unseen rows do not depend on it. (--verify computes the exact one.)",
        )
    if run.verified is None:
        return Sentence("plain", f"Sampled directly, so there is nothing to verify: {value}.")
    gap = rounded(np.nan if run.evidence_gap is None else run.evidence_gap, run.log_evidence_error)
    if run.verified and not run.converged:
        return Sentence("plain", f"Verified, with a reservation: the {value} computed at the "
                        f"optimum agrees with the estimate that led there (off by {gap} nat), but "
                        "the sampler mixed slowly there, so its error may be larger.")  # fmt: skip
    if run.verified:
        return Sentence("good", f"Verified: the {value} was computed exactly at the optimum; the "
                        f"estimate that led there was off by {gap} nat.")  # fmt: skip
    return Sentence("bad", f"Not verified: the exact and the estimated log evidence differ by "
                    f"{gap} nat; the precisions α and the pruning may be wrong.")  # fmt: skip


def _of_draws(posterior: ExactPosterior, value: str) -> Sentence:
    """Whether the sampler converged at every optimum, and how far Laplace was off."""
    laplace, errors, good = posterior.checks.T
    gaps = laplace - [opt.log_evidence for opt in posterior.mixture.optima]
    worst = int(np.argmax(np.abs(gaps)))
    text = f"the {value} at the best optimum was computed by sampling"
    n, gap = len(gaps), rounded(gaps[worst], errors[worst])
    text += f"; Laplace's estimate was off by {gap} nat" + (
        "." if n == 1 else f" at most, at {n} optima."
    )
    if good.all():
        return Sentence("good", f"Verified: {text}")
    bad = int((good == 0).sum())
    return Sentence("bad", f"Not verified (the sampler did not converge at {bad} of {n}): {text}")


def _by_sampling(rows: list[dict[str, Any]], value: str) -> Sentence:
    """What the exact evidences of the optima say about Laplace's estimates."""
    good = sum(row["verified"] for row in rows)
    widest = max(rows, key=lambda row: abs(row["gap"]))
    gap = rounded(widest["gap"], widest["error"])
    exact = log_evidence(rows[0]["exact"], rows[0]["error"])
    text = f"Laplace's {value} at the best optimum is {exact} by sampling"
    if len(rows) == 1:
        text += f", off by {gap} nat."
    else:
        text += f"; for the {len(rows)} optima in use it is off by up to {gap} nat."
    if good == len(rows):
        return Sentence("good", f"Verified: {text}")
    return Sentence("bad", f"Not verified ({len(rows) - good} of {len(rows)} optima): {text}")


def evidence_text(fitted: Fit) -> str:
    """The log evidence, with its error if the method samples."""
    run = fitted.record.run
    error = None if run is None else run.log_evidence_error
    return log_evidence(fitted.model.log_evidence_, error)


def own_uncertainty(fitted: Fit, n_rows: int = 500) -> np.ndarray:
    """Std of the function, median over the rows of the table, shape (n_outputs,)."""
    rows = np.random.default_rng(0).permutation(len(fitted.x))[:n_rows]
    function = fitted.model.predictive(fitted.x.iloc[rows], noise=False)
    return np.atleast_1d(np.median(function.std(), axis=0))
