"""`SparseBNNRegressor.verify`: the exact evidence at every optimum that predictions use."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from sbnn._core.keys import Key, derive_key
from sbnn._core.parallel import run_all
from sbnn.evidence.exact.warm import around_optimum
from sbnn.evidence.laplace.models.network import NetworkModel
from sbnn.evidence.laplace.options import TIE
from sbnn.regressor.options import check_time_limit
from sbnn.regressor.posteriors.exact_posterior import ExactPosterior
from sbnn.regressor.posteriors.laplace_posterior import LaplacePosterior
from sbnn.regressor.training import Task, known_noise_of
from sbnn.sampling.state import check_n_particles
from sbnn.sampling.warm_start import WarmStartResult

MIN_WEIGHT = 1e-3  # of an optimum in predictions, below which it is not verified
# Largest difference between Laplace and exact log evidence, in nats per weight, and at least
# `TIE`, at which an optimum counts as verified: less than strong evidence for another choice.
GAP_PER_WEIGHT = 0.1
# Of the table: the first and the last ones are shown where it is wider than the screen.
COLUMNS = [
    "optimum", "laplace", "exact", "error", "gap", "weight", "n_kept", "forward", "backward",
    "k_hat", "seconds", "verified", "reason",
]  # fmt: skip


class Verification:
    """Verification of a fitted estimator by sampling."""

    _posterior: Any
    _task: Task | None
    _scaling: Any
    verbose: Any

    def verify(
        self,
        key: Key = 0,
        n_particles: int = 256,
        on_optimum: Callable[[int, int], None] | None = None,
        time_limit: float | None = None,
    ) -> pd.DataFrame:
        """Compare the Laplace evidence of every optimum with the exact one, by sampling.

        Warm-start SMC leads from the Gaussian at each optimum to the exact posterior at its
        precisions and noise (`sbnn.sampling.warm_start`). Takes seconds for a few weights and
        minutes for hundreds, or for networks whose weights the data do not determine, as without
        pruning. Call it after `fit`: it needs the training data, which files and pickles do not
        contain. With a joblib backend or a Dask client, the optima run there. If the estimator is
        `verbose`, every optimum is reported when it is done.

        Parameters
        ----------
        key : int or JAX key
            The same key gives the same numbers.
        n_particles : int
        on_optimum : callable, optional
            Called with the number of optima done and in total.
        time_limit : float, optional
            Seconds after which the optima that are left have no exact evidence (NaN) and are not
            verified.

        Returns
        -------
        DataFrame
            One row per optimum with a share of at least 0.1 % in predictions, also kept as
            `verification_`: its row in `optima_`, `laplace` and `exact` log evidence (for y in
            original units, one of the images under sign flips), `error` of the exact one, `gap` =
            laplace − exact, weight, weights kept, one-sided estimates `forward` and `backward`,
            Pareto `k_hat` of the Gaussian, `seconds`, and `verified`: the sampler converged, its
            estimates agree, and the gap is at most 3 nats or 0.1 nat per weight. If not, `reason`
            says what failed. `verified_` is True if all rows are verified.

        Raises
        ------
        ValueError
            If the estimator was loaded from a file, or does not use the Laplace approximation; if
            `n_particles` is below 50 or `time_limit` not above zero.

        Examples
        --------
        >>> import numpy as np
        >>> from sbnn import SparseBNNRegressor
        >>> X = np.linspace(-2, 2, 40)[:, None]
        >>> y = np.tanh(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
        >>> model = SparseBNNRegressor((2,), noise="constant", n_starts=2, random_state=0)
        >>> found = model.fit(X, y).verify(n_particles=64)
        >>> bool((abs(found["gap"]) < 3).all())
        True
        """
        check_is_fitted(self)
        check_n_particles(n_particles)
        check_time_limit(time_limit)
        posterior, task = self._posterior, getattr(self, "_task", None)
        if not isinstance(posterior, LaplacePosterior):
            raise ValueError(
                "`verify` checks the Laplace approximation, which this method does not use."
            )
        if task is None:
            raise ValueError(
                "`verify` needs the training data, which are not stored; call it after `fit`."
            )
        shift = task.rows.n_rows * float(np.log(self._scaling.y_scale).sum())
        shares = posterior.shares.mean(axis=1)
        chosen = np.flatnonzero((shares >= MIN_WEIGHT) | (np.arange(len(shares)) == 0))
        count, end = itertools.count(1), np.inf if time_limit is None else time.time() + time_limit

        def one(k: int) -> dict[str, Any]:
            started = time.perf_counter()
            try:
                found = verify_optimum(posterior, task, k, derive_key(key, k), n_particles, end)
                row = found.row()
            except OutOfTime:
                row = _unfinished(posterior, k, time.perf_counter() - started)
            return {"optimum": k, "weight": float(shares[k]), **row}

        def tell(row: dict[str, Any]) -> None:
            number = next(count)
            if self.verbose:
                said = "verified" if row["verified"] else f"not verified: {row['reason']}"
                place = f"optimum {number} of {len(chosen)}"
                print(f"sbnn: {place}, {row['seconds']:.0f} s, {said}", file=sys.stderr, flush=True)
            if on_optimum is not None:
                on_optimum(number, len(chosen))

        table = pd.DataFrame(run_all(one, chosen.tolist(), on_done=tell), columns=COLUMNS)
        table[["laplace", "exact", "forward", "backward"]] -= shift
        self.verification_ = table
        self.verified_ = bool(table["verified"].all())
        return table


@dataclass(frozen=True)
class VerifiedOptimum:
    """The exact evidence at one optimum, for standardised data."""

    laplace: float
    run: WarmStartResult
    n_kept: int
    seconds: float

    @property
    def gap(self) -> float:
        """Laplace minus exact log evidence."""
        return self.laplace - self.run.log_evidence

    @property
    def verified(self) -> bool:
        """Whether the run converged, its estimates agree, and the gap is small."""
        return not self.reason

    @property
    def reason(self) -> str:
        """Why the optimum is not verified; empty if it is."""
        if not self.run.converged:
            return "the sampler did not converge"
        if not self.run.agreeing:
            return "the estimates of the exact evidence disagree"
        if abs(self.gap) > max(TIE, GAP_PER_WEIGHT * self.n_kept):
            return "Laplace is far from the exact evidence"
        return ""

    def row(self) -> dict[str, Any]:
        """The columns of the table that `verify` returns, but for number and weight."""
        run = self.run
        return {
            "n_kept": self.n_kept,
            "laplace": self.laplace,
            "exact": run.log_evidence,
            "error": run.log_evidence_error,
            "gap": self.gap,
            "forward": run.forward,
            "backward": run.backward,
            "k_hat": run.k_hat,
            "seconds": self.seconds,
            "verified": self.verified,
            "reason": self.reason,
        }


class OutOfTime(Exception):
    """The exact evidence was not reached in time."""


def _unfinished(posterior: LaplacePosterior, k: int, seconds: float) -> dict[str, Any]:
    """The row of an optimum whose exact evidence was not reached in time."""
    unknown = dict.fromkeys(("exact", "error", "gap", "forward", "backward", "k_hat"), np.nan)
    return {
        **unknown,
        "laplace": _laplace_evidence(posterior, k),
        "n_kept": len(posterior.mixture.optima[k].active),
        "seconds": seconds,
        "verified": False,
        "reason": "there was no time left",
    }


def _laplace_evidence(posterior: LaplacePosterior, k: int) -> float:
    if isinstance(posterior, ExactPosterior):
        return float(posterior.checks[k, 0])
    return posterior.mixture.optima[k].log_evidence


def verify_optimum(
    posterior: LaplacePosterior,
    task: Task,
    k: int,
    key: Any,
    n_particles: int,
    end: float = np.inf,
) -> VerifiedOptimum:
    """The exact evidence at optimum k; raises `OutOfTime` at the time `end`."""

    def check(stage: object = None) -> None:
        if time.time() > end:
            raise OutOfTime

    check()
    started, opt = time.perf_counter(), posterior.mixture.optima[k]
    x_t, y_t = task.scaling.training(task.rows.x, task.rows.y)
    noise = known_noise_of(task)
    model = NetworkModel(
        x_t=x_t, y_t=y_t, sizes=opt.sizes, activation=opt.activation, noise=noise,
        likelihood=posterior.mixture.likelihood, weights=task.rows.weights,
    )  # fmt: skip
    local = around_optimum(model, opt if noise is None else opt.with_noise(noise))
    run = local.sample(key, n_particles, on_stage=check)
    seconds = time.perf_counter() - started
    return VerifiedOptimum(_laplace_evidence(posterior, k), run, len(local.positions), seconds)
