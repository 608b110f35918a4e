"""What a fitted `SparseBNNRegressor` says about itself: account, summary, compact form, formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from sbnn.methods.posterior import Posterior, summary
from sbnn.regressor.account.counts import Account, account_of
from sbnn.regressor.account.formula import formula_of, symbols
from sbnn.regressor.account.left_out import LeftOut
from sbnn.regressor.account.relevance import input_relevance, unknown_relevance
from sbnn.regressor.posteriors.laplace_posterior import LaplacePosterior
from sbnn.regressor.state import FittedState
from sbnn.regressor.training import Task
from sbnn.tables.encoder import ColumnEncoder


def with_losses(
    posterior: Posterior, task: Task, encoder: ColumnEncoder, names: Sequence[str]
) -> tuple[Posterior, pd.DataFrame]:
    """The posterior with the loss of every optimum alone, and the relevance of the inputs.

    Methods without leave-one-out densities have neither.
    """
    if not isinstance(posterior, LaplacePosterior):
        return posterior, unknown_relevance(names)
    left_out = LeftOut(task, posterior.mixture)
    losses = np.array(left_out.loss_alone())
    return replace(posterior, losses=losses), input_relevance(left_out, encoder.groups, names)


class Description:
    """Mixin of `SparseBNNRegressor`: one account of the predictor, and smaller forms of it."""

    _posterior: Posterior
    encoder_: ColumnEncoder
    optima_: pd.DataFrame
    fitted_state: Callable[[], FittedState]
    from_state: Callable[..., Any]
    get_params: Callable[..., dict[str, Any]]
    _flat: bool
    _scaling: Any

    @property
    def _names(self) -> list[str]:
        """Names of the columns, or x0, x1, …"""
        found = getattr(self, "feature_names_in_", None)
        return (
            [f"x{j}" for j in range(len(self.encoder_.columns))] if found is None else
            [str(name) for name in found]
        )  # fmt: skip

    @property
    def account_(self) -> Account:
        """What the predictor consists of: networks, weights, inputs."""
        check_is_fitted(self)
        return account_of(self._posterior, self.encoder_.groups, self._names)

    def summary(self) -> pd.DataFrame:
        """Summarise every parameter of `network_`, in standardised units.

        Returns
        -------
        DataFrame
            One row per parameter: median, spread (half the width of the central 68 %; the std of a
            Gaussian), log α, relevance γ and whether it is pruned. For the first of `optima_`, or
            for posterior draws, of which one of each set of mirror images counts.
        """
        check_is_fitted(self)
        return summary(self._posterior)

    def compact(self, single: bool = False) -> Any:
        """Return a fitted estimator with smaller, pruned networks and the same predictions.

        Pruned weights and neurons that are not connected to the output are removed, so that
        `n_parameters_` and `n_parameters_kept_` both are what was `n_parameters_kept_`. (Posterior
        draws have no pruned weights: those removed change no mean and no standard deviation at the
        training inputs by more than 0.3 % of the standard deviation.) The file omits the training
        inputs.

        Parameters
        ----------
        single : bool
            Keep one network instead of the average of several: the sparsest one that predicts
            left-out rows as well as all together (`account_.single`), else the one that predicts
            them best. Column `loss` of `optima_` says how much it loses.

        Returns
        -------
        SparseBNNRegressor

        Raises
        ------
        ValueError
            If `single` is asked of an estimator that is compact or was not fitted by the Laplace
            approximation.
        """
        state = self.fitted_state()
        if single:
            state = self._single(state)
        small = state.posterior.compact(state.inputs)
        # A compacted posterior stays unchanged and no longer needs the inputs.
        n = 0 if small.compacted else None
        state = replace(state, inputs=state.inputs[:, :n], training=state.training[:, :n])
        return self.from_state(self.get_params(deep=False), replace(state, posterior=small))

    def _single(self, state: FittedState) -> FittedState:
        """The state of the estimator that has one of the optima only."""
        posterior = state.posterior
        if not isinstance(posterior, LaplacePosterior):
            raise ValueError(
                "`single` takes one of several optima, which this method does not have; use "
                "method='laplace_nsbl', or compact() without it."
            )
        if len(self.optima_) == 1:
            return state
        if posterior.compacted:
            raise ValueError(
                "`single` needs the full estimator, and this one is compact; call "
                "compact(single=True) on the estimator that was fitted or loaded."
            )
        found = self.account_.single
        k = int(self.optima_["loss"].argmin()) if found is None else found.optimum
        posterior = posterior.alone(k, state.inputs)
        shares = posterior.sensitivities(
            state.inputs, np.random.default_rng(0), self.encoder_.groups
        )
        task: Task | None = getattr(self, "_task", None)
        relevance = unknown_relevance(self._names)
        if task is not None:
            relevance = with_losses(posterior, task, self.encoder_, self._names)[1]
        return replace(
            state,
            posterior=posterior,
            log_evidence=float(self.optima_["log_evidence"].iloc[k]),
            feature_relevance=shares[0],
            feature_relevance_std=shares[1],
            input_relevance=relevance,
        )

    def formula(self, digits: int = 12, targets: Sequence[str] | None = None) -> str:
        """The mean prediction as a formula in plain text, for a single network.

        It holds in the units of X and y, for rows without missing cells. A column is written as its
        name, in backticks unless it is a plain word; x0, x1, … without names. [city = Rome] is 1
        where it is true and 0 elsewhere. Networks with several hidden layers have lines for
        neurons, h1_1 = …, before that of the target.

        Parameters
        ----------
        digits : int
            Significant digits of the coefficients; with 12, the formula reproduces `predict`.
        targets : sequence of str, optional
            Names of the targets; y, or y0, y1, … by default.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            If the prediction averages several networks; see `compact`.

        Examples
        --------
        >>> import numpy as np
        >>> from sbnn import SparseBNNRegressor
        >>> X = np.linspace(-1, 1, 40)[:, None]
        >>> y = 3.0 + 2.0 * X[:, 0] + 0.01 * np.random.default_rng(0).normal(size=40)
        >>> model = SparseBNNRegressor((1,), noise="constant", n_starts=2, random_state=0)
        >>> model.fit(X, y).compact(single=True).formula(digits=3).split(" = ")[0]
        'y'
        """
        check_is_fitted(self)
        posterior = self._posterior
        if not isinstance(posterior, LaplacePosterior):
            raise ValueError(
                "A formula needs a single network, not posterior draws or a last layer; use "
                "method='laplace_nsbl'."
            )
        if len(posterior.mixture.optima) > 1:
            raise ValueError(
                f"The prediction averages {len(posterior.mixture.optima)} networks; take one of "
                "them: compact(single=True).formula()."
            )
        n_targets = self._scaling.n_outputs
        if targets is None:
            targets = ["y"] if self._flat else [f"y{k}" for k in range(n_targets)]
        if len(targets) != n_targets:
            raise ValueError(f"`targets` must be {n_targets} names; got {len(targets)}.")
        return formula_of(
            posterior.best,
            self._scaling,
            symbols(self.encoder_, self._names),
            targets,
            len(posterior.mixture.likelihood.outputs),
            digits,
        )
