"""`suggest` of a fitted estimator: where to measure next, and what to expect from it."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sbnn._core.text import plain_repr
from sbnn.design.candidates import Axis, axes, spread
from sbnn.design.criteria import Chosen, improve, reduce_variance

GOALS = ("accuracy", "minimum", "maximum")
N_CANDIDATES = 1024
N_REFERENCE = 256
N_DRAWS = 1000
GAIN, MEAN, STD = "gain", "predicted_mean", "predicted_std"


class Suggestions:
    """Mixin of `SparseBNNRegressor`: the next measurements."""

    encoder_: Any
    _posterior: Any
    _scaling: Any
    _inputs: np.ndarray
    _encoded: Any
    feature_relevance_: np.ndarray
    predict: Any

    def suggest(
        self,
        n: int = 5,
        candidates: Any = None,
        ranges: Mapping[Any, Any] | None = None,
        goal: str = "accuracy",
        random_state: Any = 0,
    ) -> pd.DataFrame:
        """Rows to measure next, best first.

        For accuracy, they reduce the average variance of the predicted function over the candidates
        most. For a minimum or maximum, they improve most on the best of the training rows. A batch
        accounts for what its earlier rows are expected to show.

        Parameters
        ----------
        n : int
        candidates : array_like or DataFrame, shape (m, n_features), optional
            Rows to choose from. Default: points spread over `ranges`.
        ranges : mapping, optional
            By column: (low, high), one value to hold, or a list of categories. Default: the range
            of the training rows, and the categories in them.
        goal : {"accuracy", "minimum", "maximum"}
        random_state : int, RandomState or None

        Returns
        -------
        DataFrame
            The rows, with the columns predicted_mean and predicted_std (noise included; one of each
            per target) and gain: what the row adds to those above it. For accuracy, a share of the
            present average variance; otherwise, the expected improvement in the units of y.

        Raises
        ------
        ValueError
            If an argument is invalid, or the candidates are too few or have missing cells in
            columns that the model uses.

        Examples
        --------
        >>> import numpy as np
        >>> from sbnn import SparseBNNRegressor
        >>> X = np.r_[np.linspace(-2, -1, 20), np.linspace(1, 2, 20)][:, None]
        >>> y = X[:, 0] ** 2 + 0.05 * np.random.default_rng(0).normal(size=40)
        >>> model = SparseBNNRegressor((4,), n_starts=4, random_state=0).fit(X, y)
        >>> bool(abs(model.suggest(1).loc[0, 0]) < 1)  # inside the gap
        True
        """
        check_is_fitted(self)
        _check(self, n, goal)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        frame, reference = self._choices(candidates, ranges, seed)
        if len(frame) < n:
            raise ValueError(
                f"There are {len(frame)} different candidates inside the ranges, fewer than the "
                f"{n} rows to suggest; widen `ranges`, give more `candidates`, or lower `n`."
            )
        chosen = self._chosen(frame, reference, goal, n, seed)
        rows = frame.iloc[chosen.rows]
        mean, std = self.predict(_as_given(self, rows), return_std=True)
        added = {MEAN: mean, STD: std} if mean.ndim == 1 else {
            f"{name}_{k}": values[:, k]
            for k in range(mean.shape[1]) for name, values in ((MEAN, mean), (STD, std))
        }  # fmt: skip
        gains = chosen.gains if goal == "accuracy" else chosen.gains * self._scaling.y_scale[0]
        return rows.assign(**added, **{GAIN: gains}).reset_index(drop=candidates is None)

    def _choices(
        self, candidates: Any, ranges: Mapping[Any, Any] | None, seed: int
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows to choose from, and rows where predictions matter."""
        names = list(getattr(self, "feature_names_in_", range(len(self.encoder_.columns))))
        seen = self._inputs.T * self._scaling.x_scale + self._scaling.x_centre
        allowed = axes(names, self.encoder_, seen, ranges)
        if candidates is None:
            return spread(allowed, N_CANDIDATES, seed, True), spread(
                allowed, N_REFERENCE, seed + 1, False
            )
        given = candidates if isinstance(candidates, pd.DataFrame) else pd.DataFrame(
            np.asarray(candidates), columns=names)  # fmt: skip
        encoded = self._encoded(candidates)
        gaps = (encoded.missing | encoded.unseen)[:, self.feature_relevance_ > 0].any(axis=1)
        if gaps.any():
            row = given.index[int(np.argmax(gaps))]
            raise ValueError(
                "Candidates must have a known value in every column that the model uses; row "
                f"{plain_repr(row)} has a missing cell or a category that the fit did not have."
            )
        frame = given[names]
        frame = frame[_inside(frame, allowed, ranges)].drop_duplicates()
        some = np.random.default_rng(seed).permutation(len(frame))[:N_REFERENCE]
        return frame, frame.iloc[np.sort(some)]

    def _chosen(
        self, frame: pd.DataFrame, reference: pd.DataFrame, goal: str, n: int, seed: int
    ) -> Chosen:
        posterior, m = self._posterior, len(frame)
        rng = np.random.default_rng(seed)
        x_t = self._standardised(frame)
        if goal == "accuracy":
            both = np.concatenate([x_t, self._standardised(reference)], axis=1)
            draws = posterior.sample(both, N_DRAWS, rng)
            noise = posterior.noise_at(x_t).std() ** 2
            return reduce_variance(draws[:, :m], draws[:, m:], noise, n)
        draws = posterior.sample(np.concatenate([x_t, self._inputs], axis=1), N_DRAWS, rng)[..., 0]
        draws = -draws if goal == "maximum" else draws
        return improve(draws[:, :m], draws[:, m:], n)

    def _standardised(self, frame: pd.DataFrame) -> np.ndarray:
        """Standardised inputs (n_encoded, m); unknown cells have no effect and become zero."""
        values = self._encoded(_as_given(self, frame)).values
        return np.nan_to_num(self._scaling.inputs(values), nan=0.0)


def _check(model: Any, n: int, goal: str) -> None:
    """Raise a ValueError for arguments that cannot be meant."""
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"`n` must be a whole number ≥ 1; got {n!r}.")
    if goal not in GOALS:
        raise ValueError(f"`goal` must be one of {', '.join(map(repr, GOALS))}; got {goal!r}.")
    if goal != "accuracy" and model._scaling.n_outputs > 1:
        raise ValueError(
            f"goal={goal!r} needs a model with one target; this one has "
            f"{model._scaling.n_outputs}. Fit the target to be optimised alone."
        )
    if not model._inputs.shape[1]:
        raise ValueError(
            "A compact model holds no training rows, from which suggestions start; use the full "
            "model."
        )


def _inside(
    frame: pd.DataFrame, allowed: list[Axis], ranges: Mapping[Any, Any] | None
) -> np.ndarray:
    """Which rows are inside the ranges that were given."""
    out = np.ones(len(frame), dtype=bool)
    for axis in allowed:
        if axis.name in (ranges or {}):
            out &= axis.allows(frame[axis.name])
    return out


def _as_given(model: Any, frame: pd.DataFrame) -> Any:
    """A table with names only if the fit had names."""
    return frame if hasattr(model, "feature_names_in_") else frame.to_numpy()
