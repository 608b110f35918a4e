"""From a model and observations to the parts of a problem: what `Problem.from_model` checks."""

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

from sbnn._core.float64 import float64
from sbnn._core.text import plural
from sbnn.likelihoods import Likelihood
from sbnn.likelihoods.model import ModelLikelihood, check_predictions, reject_complex
from sbnn.priors import KnownPrior
from sbnn.problems.noise import check_noise_std, noise_priors, require_gaussian
from sbnn.problems.regression import Regression


class ModelParts(NamedTuple):
    """What `Problem.from_model` is made of."""

    function: ModelLikelihood
    data: tuple[np.ndarray, np.ndarray]  # y and the known parameters of the likelihood
    names: list[str]
    priors: dict[str, KnownPrior]
    traceable: bool  # by JAX
    regression: Regression


def around_model(
    model: Callable[[Any], Any],
    y: Any,
    noise_std: Any,
    likelihood: Likelihood,
    names: Sequence[str],
    priors: Mapping[str, KnownPrior] | None,
    noise_prior: KnownPrior | None,
    black_box: bool | None,
) -> ModelParts:
    """A model and observations, checked, as the parts of a problem."""
    if not callable(model):
        raise TypeError(f"`model` must be a function; got {model!r}.")
    names, given, y = list(names), dict(priors or {}), check_observations(y)
    function = ModelLikelihood(model, len(names), likelihood, noise_std is None)
    shape: tuple[int, ...] | None
    if black_box is False:  # let JAX say what it cannot trace
        shape = shape_of(model, len(names))
    else:
        shape = None if black_box else traced_shape(model, len(names))
    n_outputs = len(likelihood.outputs)
    if shape is not None:
        check_predictions(shape, y.shape if n_outputs == 1 else (*y.shape, n_outputs))
    columns = y[:, None] if y.ndim == 1 else y
    n_model, known = len(names), None
    if noise_std is None:
        if noise_prior is None and (columns.std(axis=0) <= 1e-12 * np.abs(y).max()).any():
            raise ValueError(
                "y does not vary, so it does not show how large its noise is; give `noise_std` or "
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

    regression = Regression(outputs, None, n_model, likelihood, columns, known)
    return ModelParts(function, data, names, given, shape is not None, regression)


def traced_shape(
    model: Callable, n: int, function: Callable | None = None
) -> tuple[int, ...] | None:
    """Shape of model(θ) as JAX sees it, found without numbers; None where JAX cannot trace it.

    An answer that does not carry the tracer along was made outside JAX (by a file or a program
    that was handed the tracer's text, say): that is a black box too. A function that uses JAX and
    cannot be traced has a mistake, most likely: where another number of parameters would do, that
    is an error, else a warning. `function` is the user's own, where `model` is made of it.
    """
    traced = False

    def watched(theta: Any) -> Any:
        nonlocal traced
        out = model(theta)
        traced = isinstance(out, jax.core.Tracer)
        return out

    try:
        shape = shape_of(watched, n)
    except Exception as error:
        if _uses_jax(function or model):
            _refuse_count(n, _another_count(model, n))
            reason = (str(error).strip() or "no message").splitlines()[0]
            warnings.warn(
                f"The function uses JAX, but JAX cannot trace it with {n} parameters "
                f"({type(error).__name__}: {reason}). It is called as plain Python: slowly and "
                "without gradients. Correct it, or say black_box=True.",
                stacklevel=4,
            )
        return None
    if not traced:
        return None
    if not _reads_within(model, n):
        _refuse_count(n, next((m for m in range(n + 1, n + 60) if _reads_within(model, m)), None))
    return shape


def _refuse_count(n: int, expected: int | None) -> None:
    if expected is not None:
        raise ValueError(
            f"`names` has {plural(n, 'name')}, but the function takes "
            f"{plural(expected, 'parameter')}; give one name for each."
        ) from None


def _reads_within(model: Callable, n: int) -> bool:
    """Whether n parameters hold all that the function reads by number, as theta[2] does.

    Beyond the end JAX quietly hands out the last one, unless it is told to look.
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
    """The number of parameters next to n that JAX can trace the function with, if there is one."""
    stop = time.perf_counter() + 1.0  # a function may do much before it meets the tracer
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
    """Whether the function itself names a module of JAX."""
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
    """Shape of model(θ), traced as it will be compiled: JAX remembers the type of constants."""
    return jax.eval_shape(model, jax.ShapeDtypeStruct((n,), jnp.float64)).shape


def check_observations(y: Any) -> np.ndarray:
    """y as a finite array of one or two dimensions, or an error that says why not."""
    if np.ma.is_masked(y):
        raise ValueError(
            "y has masked entries; remove them, and their predictions, first (y.compressed())."
        )
    reject_complex("y", y)
    try:
        array = np.array(y, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must be numeric; {error}.") from None
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"y must have one or two dimensions and not be empty; got shape {array.shape}."
        )
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"y holds {array[at]} at index {at[0] if len(at) == 1 else at}; remove missing values, "
            "and their predictions, first."
        )
    return array
