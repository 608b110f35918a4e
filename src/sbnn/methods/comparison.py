"""Model choice: log evidences of several results side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from sbnn.methods.result import Result

LAPLACE = ("laplace", "laplace_nsbl")


def compare(results: Sequence[Result] | Mapping[str, Result]) -> pd.DataFrame:
    """Log evidences with errors, Bayes factors against the best, evaluations and time.

    Evidences are comparable only for the same data. `sbnn.nsbl` and `sbnn.laplace_nsbl` maximise
    the evidence over α. `sbnn.laplace` and `sbnn.laplace_nsbl` also take an inferred noise level at
    its best value, where methods that sample integrate over it: their log evidence is higher by
    about 2 nats for 20 observations, 3 for 80 and 4 for 400, for each noise level. The column
    `maximised` names these parameters; compare results that agree in it, or fit all of them with
    the same method.

    Parameters
    ----------
    results : sequence of Result, or mapping of names to results

    Returns
    -------
    DataFrame
        One row per result, best first: method, parameters, log_evidence, log_evidence_error,
        maximised (what the evidence is maximised over), converged, verified, evaluations, seconds,
        log_bayes_factor and log_bayes_factor_error. Laplace's estimate has no error: NaN.

    Raises
    ------
    TypeError
        If an item is not a result.
    ValueError
        If there are fewer than two results, or their data differ or are unknown.

    Examples
    --------
    >>> import sbnn
    >>> x, y = sbnn.datasets.boxcar()
    >>> one, two = (
    ...     sbnn.standard(sbnn.network_problem(x, y, (h,), noise_std=0.5), n_particles=200)
    ...     for h in (1, 2)
    ... )
    >>> sbnn.compare({"one neuron": one, "two neurons": two}).index[0]
    'two neurons'
    """
    if isinstance(results, Mapping):
        names, items = list(results), list(results.values())
    else:
        items = list(results)
        names = [r.method if isinstance(r, Result) else "?" for r in items]
        names = [n if names.count(n) == 1 else f"{n} {i + 1}" for i, n in enumerate(names)]
    if len(items) < 2:
        raise ValueError(f"Give at least two results to compare; got {len(items)}.")
    for item in items:
        if not isinstance(item, Result):
            raise TypeError(f"`compare` takes sbnn results; got {type(item).__name__}.")
    prints = {None if r.problem is None else r.problem.data_fingerprint() for r in items}
    if len(prints) > 1:
        raise ValueError(
            "The results use different data, so their evidences cannot be compared. "
            "Fit all models to the same X and y."
        )
    if prints == {None}:
        raise ValueError(
            "The data of the problems are not known; pass them to sbnn.Problem as `data=`."
        )
    table = pd.DataFrame(
        {
            "method": [r.method for r in items],
            "parameters": [r.phi.shape[1] for r in items],
            "log_evidence": [r.log_evidence for r in items],
            "log_evidence_error": [_error(r) for r in items],
            "maximised": [_maximised(r) for r in items],
            "converged": [r.converged for r in items],
            "verified": [r.verified for r in items],
            "evaluations": [r.n_evaluations for r in items],
            "seconds": [r.seconds for r in items],
        },
        index=pd.Index(names, name="model"),
    ).sort_values("log_evidence", ascending=False)
    best = table.iloc[0]
    table["log_bayes_factor"] = table["log_evidence"] - best["log_evidence"]
    error = np.hypot(table["log_evidence_error"], best["log_evidence_error"])
    table["log_bayes_factor_error"] = np.where(np.arange(len(table)) == 0, 0.0, error)
    return table


def _error(result: Result) -> float:
    return np.nan if result.method in LAPLACE else result.log_evidence_error


def _maximised(result: Result) -> str:
    """The parameters that the evidence is maximised over, rather than integrated."""
    regression = None if result.problem is None else result.problem.regression
    inferred = regression is not None and regression.known is None
    parts = {"α": ("nsbl", "laplace_nsbl"), "noise": LAPLACE * inferred}
    return ", ".join(name for name, methods in parts.items() if result.method in methods)
