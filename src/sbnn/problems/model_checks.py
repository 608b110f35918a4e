"""Checks behind `Problem.from_model`: from a model and observations to the parts of a problem."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.arrays import as_real
from sbnn._core.float64 import float64
from sbnn._core.forks import require_usable_jax
from sbnn._core.text import plain_repr, plural
from sbnn.likelihoods import Likelihood
from sbnn.likelihoods.model import ModelAt, ModelLikelihood, check_predictions
from sbnn.priors import KnownPrior
from sbnn.problems.noise import check_noise_std, noise_priors, require_gaussian
from sbnn.problems.regression import Regression


class ModelParts(NamedTuple):
    """The parts of a problem made by `Problem.from_model`."""

    function: ModelLikelihood
    data: tuple[np.ndarray, np.ndarray]  # y and the known parameters of the likelihood
    names: list[str]
    priors: dict[str, KnownPrior]
    traceable: bool  # by JAX
    regression: Regression


def around_model(
    model: Callable[..., Any],
    y: Any,
    noise_std: Any,
    likelihood: Likelihood,
    names: Sequence[str],
    priors: Mapping[str, KnownPrior] | None,
    noise_prior: KnownPrior | None,
    black_box: bool | None,
    x: Any = None,
) -> ModelParts:
    """Check a model and its observations and return the parts of a problem.

    The parameters are those of `Problem.from_model`, with `noise` resolved to `likelihood`.

    Raises
    ------
    TypeError
        If `model` is not callable.
    ValueError
        If y is not numeric and finite, its shape differs from the predictions, or its noise
        cannot be inferred.
    """
    if not callable(model):
        raise TypeError(f"`model` must be a function; got {model!r}.")
    _check_arguments(model, x is not None)
    users, model = model, model if x is None else ModelAt(model, as_inputs(x, traced=True))
    names, given, y = list(names), dict(priors or {}), check_observations(y)
    shape: tuple[int, ...] | None
    if black_box is False:  # let JAX raise its own tracing error
        shape = shape_of(model, len(names))
    else:
        shape = None if black_box else traced_shape(model, len(names), users)
        if shape is None and x is not None:
            model = ModelAt(users, as_inputs(x))
    function = ModelLikelihood(model, len(names), likelihood, noise_std is None)
    n_outputs = len(likelihood.outputs)
    if shape is not None:
        check_predictions(shape, y.shape if n_outputs == 1 else (*y.shape, n_outputs))
    columns = y[:, None] if y.ndim == 1 else y
    n_model, known = len(names), None
    if noise_std is None:
        if noise_prior is None and (columns.std(axis=0) <= 1e-12 * np.abs(y).max()).any():
            raise ValueError(
                "y is constant, so its noise level cannot be inferred; give `noise_std` or "
                "`noise_prior`."
            )
        added, given = noise_priors(likelihood, columns, given, noise_prior, names)
        data = (y, np.zeros(len(likelihood.parameters)))
        names = names + added
    else:
        require_gaussian(likelihood)
        sigma = np.broadcast_to(check_noise_std(noise_std, y.shape), y.shape)
        data = (y, np.log(sigma)[..., None])
        known = data[1].reshape(*columns.shape, 1)

    def outputs(phi: Any, inputs: None) -> Any:
        return model(phi[:n_model]).reshape(*columns.shape, n_outputs)

    regression = Regression(
        outputs, None, n_model, likelihood, columns, known, users, x is not None
    )
    return ModelParts(function, data, names, given, shape is not None, regression)


def _check_arguments(model: Callable[..., Any], with_inputs: bool) -> None:
    """Raise TypeError if the function cannot be called with θ, and with x if it is given."""
    try:
        signature = inspect.signature(model)
    except (TypeError, ValueError):  # a function without a signature, such as some of NumPy's
        return
    try:
        signature.bind(*[None] * (1 + with_inputs))
    except TypeError:
        call = "model(theta, x)" if with_inputs else "model(theta)"
        remedy = "leave out `x`" if with_inputs else "give the inputs as `x`"
        raise TypeError(
            f"The model is called as {call}, but its arguments are {signature}; {remedy}, or "
            "change the function."
        ) from None


def as_inputs(x: Any, traced: bool = False) -> Any:
    """Inputs as a user's model gets them: lists and tuples as arrays, anything else as it is.

    JAX cannot calculate with pandas, so a model that JAX traces gets the array of a Series and a
    dict with the arrays of a DataFrame.

    Parameters
    ----------
    x : any
    traced : bool
        Whether JAX traces the model.

    Returns
    -------
    any

    Raises
    ------
    ValueError
        If JAX traces the model, and `x` is an array that does not hold numbers.
    """
    if isinstance(x, list | tuple):
        x = np.asarray(x)
    if traced and isinstance(x, np.ndarray) and x.size and x.dtype.kind not in "biufc":
        raise ValueError(f"`x` must hold numbers; got {plain_repr(x.ravel()[0])}.")
    if not traced or not hasattr(x, "to_numpy"):
        return x
    if hasattr(x, "columns"):
        return {name: x[name].to_numpy() for name in x.columns}
    return x.to_numpy()


def traced_shape(
    model: Callable, n: int, function: Callable | None = None
) -> tuple[int, ...] | None:
    """Shape of model(θ) from abstract tracing; None if JAX cannot trace the model.

    A result that is not a tracer was computed outside JAX, for example by a program that received
    the tracer as text: the model is then a black box too. A function that uses JAX but cannot be
    traced most likely has a bug. If it can be traced with another number of parameters, this
    raises; otherwise it warns.

    Parameters
    ----------
    model : callable
        Function of θ.
    n : int
        Number of parameters.
    function : callable, optional
        The user's function, if `model` wraps it.

    Returns
    -------
    tuple of int or None

    Raises
    ------
    ValueError
        If the function takes a different number of parameters.
    NameError
        If the function uses a name that does not exist.
    """
    require_usable_jax()  # below, any error means that the function cannot be traced
    traced = False

    def watched(theta: Any) -> Any:
        nonlocal traced
        out = model(theta)
        traced = isinstance(out, jax.core.Tracer)
        return out

    try:
        shape = shape_of(watched, n)
    except NameError:  # no black box either
        raise
    except Exception as error:
        if _uses_jax(function or model):
            _reject_count(n, _another_count(model, n))
            reason = (str(error).strip() or "no message").splitlines()[0]
            warnings.warn(
                f"The function uses JAX, but JAX cannot trace it with {n} parameters "
                f"({type(error).__name__}: {reason}). It is called as plain Python: slowly and "
                "without gradients. Fix it, or set black_box=True.",
                stacklevel=4,
            )
        return None
    if not traced:
        return None
    if not _reads_within(model, n):
        _reject_count(n, next((m for m in range(n + 1, n + 60) if _reads_within(model, m)), None))
    return shape


def _reject_count(n: int, expected: int | None) -> None:
    if expected is not None:
        raise ValueError(
            f"`names` has {plural(n, 'name')}, but the function takes "
            f"{plural(expected, 'parameter')}; give one name for each."
        ) from None


def _reads_within(model: Callable, n: int) -> bool:
    """Whether every static index the function reads, such as theta[2], is below n.

    By default JAX silently clamps an index beyond the end to the last entry.
    """
    option = "jax_check_static_indices"
    before = getattr(jax.config, option, None)
    if before is None:  # an older JAX
        return True
    jax.config.update(option, True)
    try:
        shape_of(model, n)
    except Exception:
        return False
    finally:
        jax.config.update(option, before)
    return True


def _another_count(model: Callable, n: int) -> int | None:
    """The number of parameters nearest to n with which JAX can trace the function, or None."""
    stop = time.perf_counter() + 1.0  # a function may run for long before tracing fails
    for m in sorted(range(1, 2 * n + 10), key=lambda m: (abs(m - n), -m))[1:60]:
        try:
            shape_of(model, m)
        except Exception:
            if time.perf_counter() > stop:
                return None
        else:
            return m
    return None


def _uses_jax(function: Callable) -> bool:
    """Whether the function's own code refers to a JAX module."""
    function = getattr(function, "func", function)  # functools.partial
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    names = {*code.co_names, *code.co_freevars}
    reached = {**inspect.getclosurevars(function).nonlocals, **function.__globals__}
    return any(
        isinstance(reached.get(name), ModuleType)
        and reached[name].__name__.partition(".")[0] == "jax"
        for name in names
    )


@float64
def shape_of(model: Callable, n: int) -> tuple[int, ...]:
    """Shape of model(θ), traced in float64 as it will be compiled: JAX caches constants' types."""
    return jax.eval_shape(model, jax.ShapeDtypeStruct((n,), jnp.float64)).shape


def check_observations(y: Any) -> np.ndarray:
    """Check that y is a non-empty, finite array with one or two dimensions, and return it."""
    if np.ma.is_masked(y):
        raise ValueError(
            "y has masked entries; remove them and their predictions first (y.compressed())."
        )
    array = as_real("y", y)
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"y must have one or two dimensions and not be empty; got shape {array.shape}."
        )
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"y contains {array[at]} at index {at[0] if len(at) == 1 else at}; remove missing "
            "values and their predictions first."
        )
    return array
