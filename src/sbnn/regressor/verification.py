"""`SparseBNNRegressor.verify`: the exact evidence at every optimum that predictions use."""

from __future__ import annotations

import itertools
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
from sbnn.regressor.posteriors.exact_posterior import ExactPosterior
from sbnn.regressor.posteriors.laplace_posterior import LaplacePosterior
from sbnn.regressor.training import Task, known_noise_of
from sbnn.sampling.state import check_n_particles
from sbnn.sampling.warm_start import WarmStartResult

MIN_WEIGHT = 1e-3  # of an optimum in predictions, below which it is not verified
# Largest difference between Laplace and exact log evidence, in nats per weight, and at least
# `TIE`, at which an optimum counts as verified: less than strong evidence for another choice.
GAP_PER_WEIGHT = 0.1


class Verification:
    """Verification of a fitted estimator by sampling."""

    _posterior: Any
    _task: Task | None
    _scaling: Any

    def verify(
        self,
        key: Key = 0,
        n_particles: int = 256,
        on_optimum: Callable[[int, int], None] | None = None,
    ) -> pd.DataFrame:
        """Compare the Laplace evidence of every optimum with the exact one, by sampling.

        Warm-start SMC leads from the Gaussian at each optimum to the exact posterior at its
        precisions and noise (`sbnn.sampling.warm_start`). Takes seconds for a few weights and
        minutes for hundreds. Call it after `fit`: it needs the training data, which files and
        pickles do not contain. With a joblib backend or a Dask client, the optima run there.

        Parameters
        ----------
        key : int or JAX key
            The same key gives the same numbers.
        n_particles : int
        on_optimum : callable, optional
            Called with the number of optima done and in total.

        Returns
        -------
        DataFrame
            One row per optimum with a share of at least 0.1 % in predictions, also kept as
            `verification_`: its row in `optima_`, weight, weights kept, `laplace` and `exact` log
            evidence (for y in original units, one of the images under sign flips), `error` of the
            exact one, `gap` = laplace − exact, one-sided estimates `forward` and `backward`, Pareto
            `k_hat` of the Gaussian, `seconds`, and `verified`: the sampler converged, its
            estimates agree, and the gap is at most 3 nats or 0.1 nat per weight. If not, `reason`
            says what failed. `verified_` is True if all rows are verified.

        Raises
        ------
        ValueError
            If the estimator was loaded from a file, or does not use the Laplace approximation.

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
        count = itertools.count(1)

        def one(k: int) -> dict[str, Any]:
            found = verify_optimum(posterior, task, k, derive_key(key, k), n_particles)
            return {"optimum": k, "weight": float(shares[k]), **found.row()}

        def tell(row: dict[str, Any]) -> None:
            if on_optimum is not None:
                on_optimum(next(count), len(chosen))

        table = pd.DataFrame(run_all(one, chosen.tolist(), on_done=tell))
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
        """The columns of the table that `verify` returns."""
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


def verify_optimum(
    posterior: LaplacePosterior, task: Task, k: int, key: Any, n_particles: int
) -> VerifiedOptimum:
    """The exact evidence at optimum k."""
    started, opt = time.perf_counter(), posterior.mixture.optima[k]
    x_t, y_t = task.scaling.training(task.rows.x, task.rows.y)
    noise = known_noise_of(task)
    model = NetworkModel(
        x_t=x_t, y_t=y_t, sizes=opt.sizes, activation=opt.activation, noise=noise,
        likelihood=posterior.mixture.likelihood, weights=task.rows.weights,
    )  # fmt: skip
    local = around_optimum(model, opt if noise is None else opt.with_noise(noise))
    run = local.sample(key, n_particles)
    seconds = time.perf_counter() - started
    laplace = opt.log_evidence
    if isinstance(posterior, ExactPosterior):
        laplace = float(posterior.checks[k, 0])
    return VerifiedOptimum(laplace, run, len(local.positions), seconds)
