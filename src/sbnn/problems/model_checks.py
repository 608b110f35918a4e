"""From a model and observations to the parts of a problem: what `Problem.from_model` checks."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.float64 import float64
from sbnn._core.text import plural
from sbnn.likelihoods.gaussian import GaussianLikelihood, check_predictions, refuse_complex
from sbnn.priors import KnownPrior, Normal


def around_model(
    model: Callable,
    y,
    noise_std,
    names: Sequence[str],
    priors: Mapping[str, KnownPrior] | None,
    noise_prior: KnownPrior | None,
    black_box: bool | None,
) -> tuple[GaussianLikelihood, tuple[np.ndarray, np.ndarray], list[str], dict, bool]:
    """What a problem is made of: likelihood, (y, σ), names, priors, and whether JAX traces it."""
    if not callable(model):
        raise TypeError(f"`model` must be a function; got {model!r}.")
    names, given, y = list(names), dict(priors or {}), check_observations(y)
    function = GaussianLikelihood(model, len(names), noise_std is None)
    shape: tuple[int, ...] | None
    if black_box is False:  # let JAX say what it cannot trace
        shape = shape_of(model, len(names))
    else:
        shape = None if black_box else traced_shape(model, len(names))
    if shape is not None:
        check_predictions(shape, y.shape)
    if noise_std is not None:
        return function, (y, check_noise(noise_std, y)), names, given, shape is not None
    added, given = noise_parameters(y, names, given, noise_prior)
    return function, (y, np.ones(y.shape)), names + added, given, shape is not None


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

    def watched(theta):
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


def check_observations(y) -> np.ndarray:
    """y as a finite array of one or two dimensions, or an error that says why not."""
    if np.ma.is_masked(y):
        raise ValueError(
            "y has masked entries; remove them, and their predictions, first (y.compressed())."
        )
    refuse_complex("y", y)
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


def check_noise(noise_std, y: np.ndarray) -> np.ndarray:
    """Known σ of every observation, from one number, one per output or one per observation."""
    sigma = np.asarray(noise_std, dtype=float)
    try:
        full = np.broadcast_to(sigma, y.shape).copy()
    except ValueError:
        raise ValueError(
            f"`noise_std` must be one number, one per output (the last axis of y) or one per "
            f"observation; got shape {sigma.shape} for y of shape {y.shape}."
        ) from None
    if not (np.isfinite(full).all() and (full > 0).all()):
        raise ValueError(f"`noise_std` must be finite and above zero; got {noise_std}.")
    return full


def default_noise_prior(spread: float) -> Normal:
    """Of log σ: noise between a sixtieth and six times of y's spread."""
    return Normal(float(np.log(spread / 3)), 1.5)


def noise_parameters(
    y: np.ndarray,
    names: Sequence[str],
    priors: Mapping[str, KnownPrior],
    noise_prior: KnownPrior | None,
) -> tuple[list[str], dict[str, KnownPrior]]:
    """Names of log σ, one per output, and the priors with those of log σ added where missing."""
    columns = y[:, None] if y.ndim == 1 else y
    n_outputs = columns.shape[1]
    added = ["log_sigma"] if n_outputs == 1 else [f"log_sigma[{k + 1}]" for k in range(n_outputs)]
    if taken := set(added) & set(names):
        raise ValueError(
            f"{sorted(taken)[0]!r} is the name of the inferred noise; call your parameter "
            "something else, or give `noise_std`."
        )
    out = dict(priors)
    for name, width in zip(added, columns.std(axis=0)):
        if not any(name.startswith(key) for key in priors if key.startswith("log_sigma")):
            if noise_prior is None and width <= 1e-12 * np.abs(y).max():
                raise ValueError(
                    "y does not vary, so it says nothing of the size of its noise; give "
                    "`noise_std` or `noise_prior`."
                )
            out[name] = noise_prior or default_noise_prior(width)
    return added, out
