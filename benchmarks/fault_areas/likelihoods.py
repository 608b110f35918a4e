"""Area of odd likelihoods: values that are no real numbers, NaN, failures, odd shapes and types.

Every case names what must happen: one clear error, a warning, or the right evidence without a word.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import sbnn
from fault_areas.common import Outcome
from sbnn.priors import Normal, Uniform

X = np.linspace(0.0, 1.0, 6)
PRIORS = {"a": Normal()}
COMPLEX, TEXT = "is complex; give real numbers", "must be numeric; could not convert the text"
HALF = r"NaN or \+inf at \d+ % of the prior draws"


class Case(NamedTuple):
    """A call and what must happen: an error or a warning that matches, or this log evidence."""

    call: Callable[[], Any]
    error: str | None = None
    warning: str | None = None
    log_evidence: float | None = None


def black_box(function: Callable) -> Callable[[], Any]:
    return lambda: _sample(sbnn.Problem(function, ["a"], PRIORS, black_box=True))


def jax(function: Any, **options: Any) -> Callable[[], Any]:
    return lambda: _sample(sbnn.Problem(function, ["a"], PRIORS, **options))


def model(function: Callable, y: Any = 2.0 * X, noise_std: Any = 0.5, **more: Any) -> Callable:
    options = {"names": ["a"], "priors": PRIORS, "noise_std": noise_std, **more}
    return lambda: _sample(sbnn.Problem.from_model(function, y, **options))


def _sample(problem: sbnn.Problem) -> Any:
    return sbnn.standard(problem, key=0, n_particles=400)


def _raise(error: BaseException) -> float:
    raise error


def _in_place(theta: np.ndarray) -> float:
    theta *= theta
    return -0.5 * float(theta[0])


def _half(value: float) -> Callable:
    return lambda t: value if t[0] > 0 else 0.0


def _half_jax(value: float) -> Callable:
    return lambda t: jnp.where(t[0] > 0, value, 0.0)


LINE = lambda t: t[0] * X
NEVER = r"at every one of the 400 prior draws"
CASES: dict[str, Case] = {
    "text": Case(black_box(lambda t: "3.0"), error=TEXT),
    "bytes": Case(black_box(lambda t: b"3.0"), error=TEXT),
    "an array of text": Case(black_box(lambda t: np.array("3.0")), error=TEXT),
    "text that is no number": Case(black_box(lambda t: "high"), error=TEXT),
    "true": Case(black_box(lambda t: True), error="must return a number"),
    "true in an array": Case(black_box(lambda t: np.array([True])), error="must return a number"),
    "a date": Case(black_box(lambda t: np.datetime64("2020-01-01")), error="must be numeric"),
    "a duration": Case(black_box(lambda t: np.timedelta64(3, "s")), error="must be numeric"),
    "a masked number": Case(black_box(lambda t: np.ma.masked), error=NEVER),
    "None": Case(black_box(lambda t: None), error="does it end with `return`"),
    "two numbers": Case(black_box(lambda t: [1.0, 2.0]), error="must return one number"),
    "no number": Case(black_box(lambda t: []), error="must return one number"),
    "a dictionary": Case(black_box(lambda t: {"value": 1.0}), error="must be numeric"),
    "a generator": Case(black_box(lambda t: (v for v in t)), error="must be numeric"),
    "complex": Case(black_box(lambda t: 1j * t[0]), error=COMPLEX),
    "complex on half the prior": Case(
        black_box(lambda t: complex(t[0]) if t[0] > 0 else 0.0), error=COMPLEX
    ),
    "complex without imaginary part": Case(black_box(lambda t: complex(t[0])), error=COMPLEX),
    "complex in an object": Case(
        black_box(lambda t: np.array([1j], dtype=object)), error=COMPLEX
    ),
    "division by zero": Case(black_box(lambda t: 1 / 0), error="ZeroDivisionError"),
    "exit": Case(black_box(lambda t: _raise(SystemExit(1))), error="SystemExit"),
    "NaN everywhere": Case(black_box(lambda t: np.nan), error=NEVER),
    "-inf everywhere": Case(black_box(lambda t: -np.inf), error=NEVER),
    "+inf everywhere": Case(black_box(lambda t: np.inf), error=NEVER),
    "JAX, complex": Case(jax(lambda t: 1j * t[0]), error=COMPLEX),
    "JAX, true or false": Case(jax(lambda t: t[0] > 0), error="must return one number"),
    "JAX, a vector": Case(jax(lambda t: jnp.stack([t[0], t[0]])), error="Sum over the data"),
    "JAX, None": Case(jax(lambda t: None, black_box=False), error="must return one number"),
    "JAX, NaN everywhere": Case(jax(lambda t: t[0] * jnp.nan), error=NEVER),
    "JAX, too few names": Case(jax(lambda t: t[0] * t[2]), error="takes 3 parameters"),
    "not a function": Case(jax(3.0), error="must be a function"),
    "model, complex": Case(model(lambda t: 1j * t[0] * X), error=COMPLEX),
    "model, complex black box": Case(
        model(lambda t: 1j * t[0] * X, black_box=True), error=COMPLEX
    ),
    "model, text": Case(model(lambda t: [str(x) for x in X], black_box=True), error=TEXT),
    "model, wrong shape": Case(model(lambda t: t[0] * X[1:]), error="one prediction per obs"),
    "y of text": Case(model(LINE, y=[str(x) for x in X]), error=TEXT),
    "y complex": Case(model(LINE, y=X + 1j), error=COMPLEX),
    "y with NaN": Case(model(LINE, y=np.where(X > 0.5, np.nan, X)), error="y contains nan"),
    "noise of text": Case(model(LINE, noise_std="0.5"), error="`noise_std` must be numeric"),
    "noise below zero": Case(model(LINE, noise_std=-1.0), error="finite and above zero"),
    "prior of text": Case(lambda: Normal("0", 1.0), error="needs a finite `mean`"),
    "prior, complex": Case(lambda: Uniform(0.0, 1j), error="needs a finite `high`"),
    "NaN on half the prior": Case(black_box(_half(np.nan)), warning=HALF),
    "+inf on half the prior": Case(black_box(_half(np.inf)), warning=HALF),
    "JAX, NaN on half the prior": Case(jax(_half_jax(np.nan)), warning=HALF),
    "JAX, +inf on half the prior": Case(jax(_half_jax(np.inf)), warning=HALF),
    "errors on half the prior": Case(
        black_box(lambda t: 1 / 0 if t[0] > 0 else 0.0), warning="The function failed in"
    ),
    "-inf on half the prior": Case(black_box(_half(-np.inf)), log_evidence=float(np.log(0.5))),
    "JAX, -inf on half the prior": Case(
        jax(_half_jax(-np.inf)), log_evidence=float(np.log(0.5))
    ),
    "changes its argument": Case(black_box(_in_place), log_evidence=float(-0.5 * np.log(2.0))),
    "a decimal number": Case(black_box(lambda t: Decimal("1.5")), log_evidence=1.5),
    "a fraction": Case(black_box(lambda t: Fraction(3, 2)), log_evidence=1.5),
    "an integer": Case(black_box(lambda t: 3), log_evidence=3.0),
    "an array of one": Case(black_box(lambda t: np.array([[1.5]])), log_evidence=1.5),
    "single precision": Case(black_box(lambda t: np.float32(1.5)), log_evidence=1.5),
    "JAX, integers": Case(jax(lambda t: jnp.where(t[0] > 0, 3, 3)), log_evidence=3.0),
}  # fmt: skip


def odd_likelihoods(quick: bool, folder: Path) -> Outcome:
    """Run every case: its error, its warning or its evidence must be as expected."""
    chosen = list(CASES)[:: 5 if quick else 1]
    return Outcome.of([(fault := fault_of(CASES[name])) and f"{name}: {fault}" for name in chosen])


def fault_of(case: Case) -> str:
    """What went wrong in a case; "" if nothing did."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = case.call()
        except (TypeError, ValueError) as error:
            return _mismatch("error", case.error, str(error))
        except BaseException as error:
            return f"{type(error).__name__}: {str(error)[:100]}"
    if case.error is not None:
        return "no error"
    said = " ".join(str(warning.message) for warning in caught)
    if case.warning is not None:
        return _mismatch("warning", case.warning, said)
    if said:
        return f"an unexpected warning: {said[:100]}"
    assert case.log_evidence is not None
    tolerance = 4.0 * result.log_evidence_error + 1e-9
    off = abs(result.log_evidence - case.log_evidence)
    return "" if off <= tolerance else f"log evidence {result.log_evidence}"


def _mismatch(what: str, expected: str | None, text: str) -> str:
    if expected is None or not re.search(expected, text):
        return f"another {what}: {text[:100]!r}"
    return f"an {what} of several lines" if "\n" in text else ""
