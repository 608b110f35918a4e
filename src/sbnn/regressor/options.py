"""Options of `SparseBNNRegressor`: checks, the choice of the method, and which methods can run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from threadpoolctl import threadpool_info

from sbnn._core.messages import Message, MethodChosen, MethodRequested
from sbnn.evidence.laplace.models.layout import n_parameters
from sbnn.methods.registry import AUTO, CHOICES, METHODS, SAMPLING
from sbnn.problems.activations import ACTIVATIONS
from sbnn.regressor.architectures import Family, families, with_bends

MAX_SAMPLED = 30  # parameters up to which sampling from the prior is feasible


def check_options(method: Any, activation: Any, n_starts: Any) -> None:
    """Raise a ValueError that names the first invalid option."""
    if method not in CHOICES:
        raise ValueError(f"`method` must be one of {', '.join(CHOICES)}; got {method!r}.")
    if canonical_activation(activation) not in ACTIVATIONS:
        known = ", ".join((*ACTIVATIONS, "logistic"))
        raise ValueError(f"`activation` must be one of {known}; got {activation!r}.")
    if not isinstance(n_starts, Integral) or int(n_starts) < 1:
        raise ValueError(f"`n_starts` must be a whole number ≥ 1; got {n_starts!r}.")


def check_time_limit(limit: Any) -> None:
    """Raise a ValueError unless the limit is None or a time in seconds."""
    if limit is not None and (
        not isinstance(limit, Real) or isinstance(limit, bool) or not float(limit) > 0
    ):
        raise ValueError(f"`time_limit` must be seconds above 0, or None; got {limit!r}.")


def check_level(level: Any) -> float:
    """The probability of an interval, strictly between 0 and 1."""
    if not (isinstance(level, Real) and 0 < float(level) < 1):
        raise ValueError(
            f"`return_interval` must be a probability between 0 and 1, such as 0.95; got {level!r}."
        )
    return float(level)


def canonical_activation(name: Any) -> Any:
    """The library's name for an activation: scikit-learn's "logistic" is "sigmoid"."""
    return "sigmoid" if name == "logistic" else name


def choose_method(method: str, architectures: Sequence[Family]) -> tuple[str, Message]:
    """The method to use, and the reason."""
    if method == "auto":
        return AUTO, MethodChosen()
    one = {*SAMPLING, "layer_wise"} - {"nsbl"}
    if method in one and len(architectures[0]) > 1:
        raise ValueError(
            f"method={method!r} needs one architecture; got {len(architectures[0])}. "
            "Pass one tuple, or use method='laplace_nsbl'."
        )
    if method == "layer_wise" and not architectures[0][0]:
        raise ValueError(
            "method='layer_wise' adds hidden layers; give the width of at least one, such as (20,)."
        )
    return method, MethodRequested()


def samples_optima(
    method: str, architectures: Sequence[Family], n_inputs: int, n_outputs: int
) -> bool:
    """Whether "nsbl" samples around Laplace optima: for networks too large for `sbnn.nsbl`.

    Examples
    --------
    >>> samples_optima("nsbl", [((3,),)], 1, 1), samples_optima("nsbl", [((10,),)], 6, 1)
    (False, True)
    """
    if method != "nsbl":
        return False
    family = architectures[0]
    return len(family) > 1 or n_parameters((n_inputs, *family[0], n_outputs)) > MAX_SAMPLED


def architectures_for(
    method: str, hidden_layer_sizes: Any, n_rows: float, n_inputs: int, n_outputs: int
) -> list[Family]:
    """Families of hidden widths for a method and a table, see `families`."""
    found = families(hidden_layer_sizes, n_rows, method in SAMPLING, method == "layer_wise")
    default = isinstance(hidden_layer_sizes, str) and hidden_layer_sizes == "default"
    if default and method not in (*SAMPLING, "layer_wise"):
        return with_bends(found, n_rows, n_inputs)
    if samples_optima(method, found, n_inputs, n_outputs):
        return families(hidden_layer_sizes, n_rows, sampled=False)
    return found


def n_threads(n_jobs: int | None) -> int:
    """Number of parallel starts: `n_jobs`, or the number of threads of the linear algebra."""
    if n_jobs is None or n_jobs == -1:
        allowed = [m["num_threads"] for m in threadpool_info() if m["user_api"] == "blas"]
        return max(1, min([*allowed, os.cpu_count() or 1]))
    return max(1, int(n_jobs))


def infeasible(hidden_layer_sizes: Any, n_inputs: int, n_outputs: int) -> dict[str, str]:
    """For every method, why it cannot run in reasonable time, or "" if it can.

    Parameters
    ----------
    hidden_layer_sizes : see `SparseBNNRegressor`
    n_inputs, n_outputs : int

    Returns
    -------
    dict of str
        By method, those without sampling first.

    Examples
    --------
    >>> infeasible((20,), 3, 1)["standard"]
    'samples, and 101 parameters are more than 30'
    """
    widths = families(hidden_layer_sizes, 0, sampled=True)[0][0]
    size = n_parameters((n_inputs, *widths, n_outputs))
    why = f"samples, and {size} parameters are more than {MAX_SAMPLED}"
    return {
        name: why if method.samples and name != "nsbl" and size > MAX_SAMPLED else ""
        for name, method in METHODS.items()
    }
