"""Fit: a model fitted to a table, its scores on unseen rows, and the record of both."""

from __future__ import annotations

import contextlib
import hashlib
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from sbnn import __version__
from sbnn._core.json_text import plain
from sbnn._core.messages import SamplingFinished, SearchEnded, for_command_line
from sbnn._core.text import duration
from sbnn.methods.registry import SAMPLING
from sbnn.methods.result import Result
from sbnn.regressor.estimator import SparseBNNRegressor
from sbnn.reports.account import described
from sbnn.reports.baselines import baseline_scores
from sbnn.reports.cautions import about_time, cautions
from sbnn.reports.columns import describe
from sbnn.reports.noise import (
    coverage_by_fifths,
    gain_over_constant,
    outliers,
    outlying,
    typical_levels,
)
from sbnn.reports.sentences.verdict import Sentence, verdict
from sbnn.reports.validation import HeldOut, PerRow, for_users, held_out, n_refits
from sbnn.tables.column_types import ColumnType
from sbnn.tables.numerals import PLAIN, Signs

# Columns of the tables of a run that are log evidences, up to a constant of the units.
LOG_EVIDENCES = ("log_evidence", "objective", "estimate", "surrogate")
FORMAT = 8
Step = Callable[[str], None]
Folds = Callable[[int, int], None]
Watched = Callable[[SparseBNNRegressor], contextlib.AbstractContextManager]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Source:
    """The table a model was fitted to."""

    rows: int
    file: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Run:
    """Output of a sampling method; log evidences are for the targets in original units."""

    verified: bool | None
    evidence_gap: float | None
    log_evidence_error: float | None
    converged: bool
    reason: str = ""
    slow: bool = False  # the last run mixed slowly, and no message reports it
    n_evaluations: int = 0
    n_rejected: int = 0
    messages: list[str] = field(default_factory=list)
    stages: Rows = field(default_factory=list)
    newton: Rows = field(default_factory=list)
    refine: Rows = field(default_factory=list)
    optima: Rows = field(default_factory=list)


@dataclass(frozen=True)
class Record:
    """The contents of fit.json: how a fit was made, its scores, verdict and warnings."""

    data: Source
    features: list[str]
    targets: list[str]
    options: dict[str, Any]
    validation: str
    scores: dict[str, dict[str, float]]  # by target
    baselines: Rows = field(default_factory=list)  # scores of simple models on unseen rows
    method: str = ""
    method_reason: str = ""
    seconds: float = 0.0
    seconds_unseen: float = 0.0
    log_evidence: float = np.nan
    noise_std: list[float] = field(default_factory=list)
    typical_noise: list[float] = field(default_factory=list)  # 68 % of the noise is within
    noise: str = ""
    noise_reason: str = ""
    noise_gain: float | None = None  # log evidence above constant Gaussian noise, if compared
    noise_columns: list[str] = field(default_factory=list)  # one per target, or none
    weight_column: str | None = None
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)  # of the inputs, by name
    signs: dict[str, Any] = field(default_factory=dict)  # in the numbers of the table, see `Signs`
    coverage_by_fifths: Rows = field(default_factory=list)
    outliers: Rows = field(default_factory=list)
    verification: Rows = field(default_factory=list)  # one per optimum, if it was asked for
    feature_relevance: dict[str, float] = field(default_factory=dict)
    input_relevance: dict[str, dict[str, Any]] = field(default_factory=dict)  # by column
    n_parameters: int = 0
    n_parameters_kept: int = 0
    account: dict[str, Any] = field(default_factory=dict)  # of the predictor, see `described`
    verdict: list[Sentence] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    run: Run | None = None
    command: str = ""
    created: str = ""
    format: int = FORMAT
    version: str = __version__
    python: str = platform.python_version()
    numpy: str = np.__version__

    def as_json(self) -> dict[str, Any]:
        """Plain values, as in fit.json and `--json`."""
        return {**asdict(self), "run": {} if self.run is None else asdict(self.run)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Record:
        """The inverse of `as_json`; raises KeyError or TypeError if `found` is not a record."""
        known = {f.name: found[f.name] for f in fields(cls) if f.name in found}
        known["data"] = Source(**found["data"])
        known["run"] = Run(**found["run"]) if found["run"] else None
        known["verdict"] = [Sentence(**sentence) for sentence in found.get("verdict", [])]
        return cls(**known)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model with everything its report shows."""

    model: SparseBNNRegressor
    features: list[str]
    targets: list[str]
    data: pd.DataFrame  # features, targets, errors, weights; the index is the line of the file
    held_out: HeldOut
    record: Record

    @property
    def x(self) -> pd.DataFrame:
        return self.model.encoder_.with_blanks(self.data[self.features])

    @property
    def y(self) -> np.ndarray:
        """Shape (n, n_outputs)."""
        return self.data[self.targets].to_numpy()

    @property
    def per_row(self) -> PerRow:
        """Known standard errors and weights of the rows."""
        return per_row(self.data, self.record.noise_columns, self.record.weight_column)


def per_row(data: pd.DataFrame, noise_columns: Sequence[str], weight_column: str | None) -> PerRow:
    """Standard errors and weights from columns of the table."""
    return PerRow(
        data[list(noise_columns)].to_numpy() if noise_columns else None,
        None if weight_column is None else data[weight_column].to_numpy(),
    )


def fit(
    data: pd.DataFrame,
    features: Sequence[str],
    targets: Sequence[str],
    options: dict[str, Any],
    source: str | Path | None = None,
    command: str = "",
    step: Step = lambda text: None,
    on_fold: Folds | None = None,
    on_stage: Callable[[Any], None] | None = None,
    noise_columns: Sequence[str] = (),
    weight_column: str | None = None,
    types: dict[str, ColumnType] | None = None,
    signs: Signs = PLAIN,
    verify: bool = False,
    time_limit: float | None = None,
    watched: Watched = contextlib.nullcontext,
    quick: bool = False,
) -> Fit:
    """Fit a model to a table and score it on unseen rows.

    Parameters
    ----------
    data : DataFrame
        Features, targets, standard errors and weights; features may also be text or dates.
    features, targets : sequence of str
        Names of columns.
    options : dict
        Constructor parameters of `SparseBNNRegressor`, with method and random_state.
    source : path, optional
        File the table came from.
    command : str
        Command line that repeats the fit.
    step, on_fold, on_stage : function, optional
        Progress callbacks: the current step; folds finished and in total; sampler stages.
    noise_columns : sequence of str
        Columns of known standard errors, one per target, or none.
    weight_column : str, optional
        Column that says how many times each row counts.
    types : dict of ColumnType, optional
        Types of the features in the file.
    signs : Signs
        In the numbers of the file.
    verify : bool
        Compute the exact evidence of every optimum.
    time_limit : float, optional
        Seconds, half for the fit and half for the fits without the unseen rows; they end with
        their best results so far.
    watched : function of the model, optional
        A context in which the model is fitted.
    quick : bool
        Score fewer rows, 100 or more; see `n_refits`.

    Returns
    -------
    Fit
        Verdict and warnings are part of its record.
    """
    x = data[list(features)]
    y = data[list(targets)].to_numpy()
    known = per_row(data, noise_columns, weight_column)
    is_known = known.noise_std is not None or options.get("noise_std") is not None
    model = SparseBNNRegressor(**options)
    if on_stage is not None and options["method"] in SAMPLING:
        model.set_params(method_options={"progress": on_stage})
    model.set_params(time_limit=None if time_limit is None else time_limit / 2)
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with watched(model):
            model.fit(x, y[:, 0] if len(targets) == 1 else y, **known.to_fit())
        model.set_params(method_options=None, verbose=False, time_limit=None)
    seconds = time.perf_counter() - started
    early = model.ended_early
    # Whoever stopped the fit does not want to wait longer for its scores.
    rest = seconds if early and time_limit is None else time_limit and time_limit / 2
    step(f"fitted by {model.method_used_} in {duration(seconds)}")
    verification = _verification(model, step) if verify else []
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught_again:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)  # from refits; visible in the scores
        n_run, seed = n_refits(len(y), quick), options["random_state"] or 0
        refits: list[SparseBNNRegressor] = []

        def make() -> SparseBNNRegressor:
            refits.append(SparseBNNRegressor(**options, time_limit=rest and rest / n_run))
            return refits[-1]

        scored = held_out(model, make, x, y, seed, on_fold, known, n_run)
        short = any(refit.ended_early for refit in refits)
        if len(scored.rows) < len(y) and quick:
            scored = replace(scored, how=f"{scored.how} (without --quick, more rows are held out)")
    unseen = time.perf_counter() - begun
    record = _record(model, list(features), list(targets), scored)
    record = replace(
        record,
        data=_source(source, len(data)),
        # What was used: with known errors there is no choice.
        options=plain({**options, "noise": model.noise_used_} if is_known else options),
        seconds=seconds,
        seconds_unseen=unseen,
        noise_columns=list(noise_columns),
        weight_column=weight_column,
        columns=describe(model, list(features), types),
        signs=signs._asdict(),
        verification=verification,
        command=command,
    )
    fitted = Fit(model, record.features, record.targets, data, scored, record)
    said = about_time(seconds if early else None, short)
    fitted = judged(fitted, [*said, *for_users([*caught, *caught_again])])
    step("scoring simple models")
    return _with_baselines(fitted, seed, n_run)


def _with_baselines(fitted: Fit, seed: int, n_run: int) -> Fit:
    """The fit with the scores of simple models in its record."""
    far = np.column_stack([outlying(fitted, k) for k in range(len(fitted.targets))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simple = baseline_scores(fitted.x, fitted.y, seed, fitted.per_row, n_run, far)
    return replace(fitted, record=replace(fitted.record, baselines=plain(simple)))


def _verification(model: SparseBNNRegressor, step: Step) -> Rows:
    """The exact evidences of the optima as plain rows."""
    step("verifying the optima by sampling")
    table = model.verify(
        key=model.random_state or 0,
        on_optimum=lambda done, total: step(f"verified optimum {done} of {total}"),
    )
    return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]


def judged(fitted: Fit, warned: Sequence[str] = ()) -> Fit:
    """The fit with coverage by fifths, outliers, verdict and warnings in its record.

    Parameters
    ----------
    fitted : Fit
    warned : sequence of str
        Warnings raised while fitting and scoring.

    Returns
    -------
    Fit
    """
    fifths, far = coverage_by_fifths(fitted), outliers(fitted)
    typical = np.median(typical_levels(fitted), axis=0).tolist()
    record = replace(fitted.record, coverage_by_fifths=fifths, outliers=far, typical_noise=typical)
    fitted = replace(fitted, record=record)
    sentences, warned = verdict(fitted), cautions(fitted, warned)
    return replace(fitted, record=replace(fitted.record, verdict=sentences, warnings=warned))


def _record(
    model: SparseBNNRegressor, features: list[str], targets: list[str], scored: HeldOut
) -> Record:
    """The part of the record given by the model and its scores."""
    return Record(
        data=Source(0),
        features=features,
        targets=targets,
        options={},
        validation=scored.how,
        scores={t: scored.of_target(k) for k, t in enumerate(targets)},
        method=model.method_used_,
        method_reason=str(model.method_reason_.for_command_line()),
        log_evidence=model.log_evidence_,
        noise_std=np.atleast_1d(model.noise_std_).tolist(),
        noise=model.noise_used_,
        noise_reason=str(model.noise_reason_.for_command_line()),
        noise_gain=gain_over_constant(model),
        feature_relevance=dict(zip(features, model.feature_relevance_.tolist())),
        input_relevance=dict(zip(features, plain(model.input_relevance_.to_dict("records")))),
        n_parameters=model.n_parameters_,
        n_parameters_kept=model.n_parameters_kept_,
        account=plain(described(model, targets)),
        run=_run(model),
        created=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    )


def _run(model: SparseBNNRegressor) -> Run | None:
    result = getattr(model, "result_", None)
    if result is None:
        return None
    # The method saw standardised targets; log evidences are reported for those of the table.
    units = model.log_evidence_ - result.log_evidence
    return Run(
        verified=result.verified,
        evidence_gap=result.evidence_gap,
        log_evidence_error=result.log_evidence_error,
        converged=bool(result.converged),
        reason=str(result.reason.for_command_line()),
        slow=_slow(result),
        n_evaluations=int(result.n_evaluations),
        n_rejected=int(result.n_rejected),
        messages=for_command_line(result.messages),
        stages=_records(result.history.get("stages")),
        newton=_records(result.history.get("newton"), units),
        refine=_records(result.history.get("refine"), units),
        optima=_records(result.optima, units),
    )


def _slow(result: Result) -> bool:
    """Whether the last run of the sampler mixed slowly and no message reports it."""
    ended = result.reason.exact if isinstance(result.reason, SearchEnded) else result.reason
    reported = any(getattr(message, "outcome", None) == ended for message in result.messages)
    return not isinstance(ended, SamplingFinished) and not reported


def _source(source: str | Path | None, n_rows: int) -> Source:
    if source is None:
        return Source(n_rows)
    path = Path(source)
    digest = None
    if path.is_file():  # a pipe cannot be read again
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Source(n_rows, path.name, digest)


def _records(table: pd.DataFrame | None, units: float = 0.0) -> Rows:
    """Rows of a table, log evidences shifted by `units`."""
    if table is None:
        return []
    shifted = {name: table[name] + units for name in LOG_EVIDENCES if name in table}
    return plain(table.assign(**shifted).to_dict("records"))
