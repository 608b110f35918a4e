"""`Problem`: a log-likelihood with named parameters and priors."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.arrays import NotRealError, as_real, reject_complex
from sbnn._core.float64 import float64
from sbnn.likelihoods import Likelihood, resolve
from sbnn.priors import (
    JointPrior,
    KnownPrior,
    Uniform,
    prior_to_json,
    resolve_priors,
    select_names,
)
from sbnn.problems.black_box import BlackBox
from sbnn.problems.fingerprints import fingerprint, function_identity
from sbnn.problems.model_checks import around_model, traced_shape
from sbnn.problems.network import Network
from sbnn.problems.regression import Regression
from sbnn.problems.symmetry import Symmetry
from sbnn.problems.target import Target


@dataclass(frozen=True, eq=False)
class _Itself:
    """A function compared by identity, whether or not it is hashable."""

    function: Callable

    def __hash__(self) -> int:
        return id(self.function)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.function is other.function


@functools.lru_cache(maxsize=256)
def _vectorise(itself: _Itself, with_data: bool, uses: str) -> Callable:
    function = itself.function
    one = function if with_data else lambda theta, _: function(theta)
    return lambda data, phi: jax.vmap(lambda theta: _floating(one(theta, data)))(phi)


def _floating(value: Any) -> Any:
    """Integers as floats, which JAX can differentiate; anything else as it is."""
    return value.astype(float) if getattr(value, "dtype", np.dtype(float)).kind in "iu" else value


class Problem:
    """A model to learn: a log-likelihood, named parameters, known priors, and an ARD selection.

    Parameters
    ----------
    log_likelihood : callable
        ``log_likelihood(theta)`` for theta of shape (n_parameters,), returning a scalar; or
        ``log_likelihood(theta, data)`` when `data` is given. A function written with `jax.numpy`
        is compiled, vectorised and differentiated; any other Python function is called once per
        parameter vector.
    names : sequence of str
        One name per parameter.
    priors : mapping, optional
        Known priors by name or by group (a common prefix of names); see `sbnn.priors`.
    ard : sequence of str, optional
        Names or groups whose relevance is learned. Before that they are uniform on ±`bound`,
        unless `priors` gives them another uniform box.
    bound : float
        Half-width of that box.
    data : optional
        Passed to the function unchanged; it also identifies the data when results are compared.
    labels : sequence of str, optional
        Labels for figures, one per parameter; by default `names`.
    black_box : bool, optional
        True for a plain Python function, False for a JAX function; None detects which.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, or the function does not return a scalar.

    Examples
    --------
    >>> import jax.numpy as jnp, sbnn
    >>> problem = sbnn.Problem(
    ...     lambda theta: -0.5 * jnp.sum((theta - 1.0) ** 2),
    ...     names=["a", "b"],
    ...     priors={"a": sbnn.priors.Normal(0.0, 3.0)},
    ...     ard=["b"],
    ... )
    >>> problem.n_parameters, problem.black_box
    (2, False)
    """

    network: Network | None = None
    regression: Regression | None = None

    def __init__(
        self,
        log_likelihood: Callable,
        names: Sequence[str],
        priors: Mapping[str, KnownPrior] | None = None,
        ard: Sequence[str] = (),
        *,
        bound: float = 20.0,
        data: Any = None,
        labels: Sequence[str] | None = None,
        black_box: bool | None = None,
    ):
        if not callable(log_likelihood):
            raise TypeError(f"`log_likelihood` must be a function; got {log_likelihood!r}.")
        self._set_parameters(names, priors, ard, bound, labels)
        self.function = log_likelihood
        self.data = self.observations = data
        if black_box is None:
            black_box = not _is_traceable(log_likelihood, self.n_parameters, data)
        self.black_box = bool(black_box)
        if not self.black_box:
            self._check_output_shape()

    @classmethod
    def from_model(
        cls,
        model: Callable,
        y: Any,
        *,
        names: Sequence[str],
        noise_std: float | Sequence[float] | np.ndarray | None = None,
        noise: str | Likelihood = "constant",
        priors: Mapping[str, KnownPrior] | None = None,
        ard: Sequence[str] = (),
        noise_prior: KnownPrior | None = None,
        bound: float = 20.0,
        black_box: bool | None = None,
        x: Any = None,
    ) -> Problem:
        """Problem for a model that predicts y: a JAX or Python function, or a simulator.

        Parameters
        ----------
        model : callable
            ``model(theta)`` for theta of shape (len(names),), returning predictions of y's shape.
        y : array, shape (n,) or (n, n_outputs)
        noise_std : float, one per output, one per observation, or None
            Known standard deviation of the noise. None infers its logarithm as ``log_sigma`` (or
            ``log_sigma[1]``, … for several outputs) with `noise_prior` (default: normal around
            log(std(y) / 3), std 1.5); the model does not see it.
        noise : {"constant", "student_t"} or Likelihood
            Gaussian or Student-t noise of constant scale, or a custom
            `sbnn.likelihoods.Likelihood`. For a likelihood with p outputs ("varying" and
            "varying_student_t" have two) the model returns one more axis of length p.
        noise_prior : prior, optional
            Prior of ``log_sigma``.
        names, priors, ard, bound, black_box
            As for `Problem`. Set ``black_box=True`` for a model that runs a program or writes
            files, so that JAX does not try to trace it.
        x : optional
            Inputs of the observations. The model is then called as ``model(theta, x)``, and
            `Result.predict` with other inputs.

        Returns
        -------
        Problem

        Raises
        ------
        TypeError, ValueError
            If an argument or the shape of the predictions is invalid.

        Examples
        --------
        >>> import numpy as np, sbnn
        >>> t = np.linspace(0.0, 1.0, 5)
        >>> problem = sbnn.Problem.from_model(
        ...     lambda theta: float(theta[0]) * np.exp(-float(theta[1]) * t),
        ...     y=2.0 * np.exp(-t),
        ...     names=["size", "decay"],
        ...     priors={"size": sbnn.priors.LogNormal(), "decay": sbnn.priors.LogNormal()},
        ... )
        >>> problem.names, problem.black_box
        (('size', 'decay', 'log_sigma'), True)
        """
        parts = around_model(
            model, y, noise_std, resolve(noise), names, priors, noise_prior, black_box, x
        )
        problem = cls(
            parts.function, parts.names, parts.priors, ard,
            bound=bound, data=parts.data, black_box=not parts.traceable,
        )  # fmt: skip
        problem.observations = parts.data[0]
        problem.regression = parts.regression
        return problem

    def _set_parameters(
        self,
        names: Sequence[str],
        priors: Mapping[str, KnownPrior] | None,
        ard: Sequence[str],
        bound: float,
        labels: Sequence[str] | None,
    ) -> None:
        self.names = tuple(names)
        if not self.names or not all(isinstance(n, str) and n for n in self.names):
            raise ValueError("`names` must hold one non-empty string per parameter.")
        if len(set(self.names)) != len(self.names):
            twice = next(n for n in self.names if self.names.count(n) > 1)
            raise ValueError(f"Parameter names must differ; {twice!r} appears more than once.")
        real = isinstance(bound, int | float | np.integer | np.floating)
        if not (real and np.isfinite(bound) and bound > 0):
            raise ValueError(f"`bound` must be a finite number above zero; got {bound!r}.")
        self.bound = float(bound)
        self.labels = tuple(labels) if labels is not None else self.names
        if len(self.labels) != len(self.names):
            raise ValueError(f"{len(self.labels)} labels for {len(self.names)} names.")
        self.ard = select_names(self.names, ard)
        box = Uniform(-self.bound, self.bound)
        default = {n: box for n, a in zip(self.names, self.ard) if a}
        given = dict(priors or {})
        for key in given:  # a group key covers ARD parameters too: it beats their default box
            for n, hit in zip(self.names, select_names(self.names, [key])):
                if hit:
                    default.pop(n, None)
        self.priors = tuple(resolve_priors(self.names, {**default, **given}, None))
        for name, prior, is_ard in zip(self.names, self.priors, self.ard):
            if is_ard and not isinstance(prior, Uniform):
                raise ValueError(
                    f"{name!r} is ARD, so its known prior can only be the uniform box it is "
                    f"sampled in; got {prior}. Drop it from `ard` or from `priors`."
                )

    @float64
    def _check_output_shape(self) -> None:
        phi = jax.ShapeDtypeStruct((3, self.n_parameters), jnp.float64)
        found = jax.eval_shape(self._batched, self._arrays, phi)
        if getattr(found, "dtype", np.dtype(bool)).kind == "b":
            raise NotRealError(f"`log_likelihood` must return one number; it returns {found}.")
        reject_complex("log_likelihood(theta)", found)
        if found.shape != (3,):
            raise ValueError(
                f"`log_likelihood` must return one number per parameter vector; it returns an "
                f"array of shape {found.shape[1:]}. Sum over the data inside it."
            )

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:6]) + (", …" if len(self.names) > 6 else "")
        kind, size = "black box" if self.black_box else "JAX", f"{self.n_parameters} parameters"
        ard = f"{int(self.ard.sum())} of them ARD"
        return f"<sbnn problem: {size} ({shown}), {ard}; {kind} log-likelihood>"

    @property
    def n_parameters(self) -> int:
        return len(self.names)

    @property
    def _arrays(self) -> Any:
        """The data as a pytree for JAX."""
        return self.data if self.data is not None else ()

    @functools.cached_property
    def _batched(self) -> Callable:
        """The function of one θ as a batched function of (data, φ).

        JAX compiles the globals and attributes that a function reads as constants. Problems share
        a compiled function only if these are equal, so a new problem sees their current values.
        """
        uses = json.dumps(function_identity(self.function), sort_keys=True)
        return _vectorise(_Itself(self.function), self.data is not None, uses)

    @property
    def _rapid(self) -> Callable | None:
        """A faster form of `_batched` for random walks, or None."""
        return None

    @property
    def symmetry(self) -> Symmetry | None:
        """Group under which the likelihood is invariant, or None."""
        return None

    @functools.cached_property
    def _known_prior(self) -> JointPrior:
        return JointPrior.of(self.priors)

    def known_prior(self) -> JointPrior:
        """Prior of standard Bayes: known priors, and the uniform box for ARD parameters."""
        return self._known_prior

    def prior_at(self, log_alpha: np.ndarray) -> JointPrior:
        """Hybrid prior p(φ|α): N(0, 1/α) for ARD parameters, known priors for the others."""
        return JointPrior.replace_ard(self.priors, self.ard, log_alpha)

    def target(self, prior: JointPrior | None = None) -> Target:
        """The problem in the form a sampler needs, under `prior` (default: `known_prior()`)."""
        function = self.function if self.black_box else self._batched
        data = () if self.black_box else self._arrays
        return Target(data, prior or self.known_prior(), function, self._rapid)

    def smooth_target(self, prior: JointPrior | None = None) -> Target:
        """The same with fast gradients, for samplers that follow them."""
        return self.target(prior)

    def log_box_volume(self) -> float:
        """Log volume of the box of the ARD parameters, the difference log Z₀ − log Z."""
        boxes = (p for p, a in zip(self.priors, self.ard) if a)
        return float(sum(math.log(box.high - box.low) for box in boxes))  # type: ignore

    @float64
    def log_likelihood(self, phi: Any) -> np.ndarray:
        """Log-likelihood at φ, shape (d,) or (n, d); NaN and +inf become −inf."""
        phi = as_real("φ", phi)
        batch = np.atleast_2d(phi)
        if batch.shape[-1] != self.n_parameters:
            raise ValueError(f"φ has {batch.shape[-1]} entries; expected {self.n_parameters}.")
        if self.black_box:
            value = np.array([self.call(theta) for theta in batch])
            value = np.where(np.isnan(value) | (value == np.inf), -np.inf, value)
        else:
            value = np.asarray(_evaluate(self.target(), batch))
        return value if phi.ndim == 2 else value[0]

    def call(self, theta: np.ndarray) -> float:
        """Evaluate the black-box function at one θ and check that it returns a single number."""
        return BlackBox(self.function, self.data, self.names).value(theta)

    def description(self) -> dict[str, Any]:
        """Configuration without the function and the data, ready to be stored as JSON."""
        return {
            "names": list(self.names),
            "labels": list(self.labels),
            "priors": [prior_to_json(p) for p in self.priors],
            "ard": self.ard.tolist(),
            "bound": self.bound,
            "black_box": self.black_box,
            "data": self.data_fingerprint(),
        }

    def data_fingerprint(self) -> str | None:
        """Hash of the data, or None if there are none."""
        return None if self.data is None else fingerprint(self.observations)

    def fingerprint(self) -> str:
        """Hash of the configuration and the data."""
        text = json.dumps(self.description(), sort_keys=True)
        return hashlib.sha256((text + fingerprint(self.data)).encode()).hexdigest()[:16]


@jax.jit
def _evaluate(target: Target, phi: Any) -> Any:
    return target.evaluate(phi)


def _is_traceable(function: Callable, n: int, data: Any) -> bool:
    """Whether JAX can trace the function; it is not run on numbers."""
    one = function if data is None else lambda theta: function(theta, data)
    return traced_shape(one, n, function) is not None


def prunable_units(problem: Problem) -> list[tuple[np.ndarray, np.ndarray]]:
    """Units that are pruned as a whole: (gate, members), positions among the ARD parameters.

    For a network these are hidden neurons, gated by their outgoing weights; for other models,
    single parameters. Single weights and biases of a network are left to the evidence: forcing
    marginal ones to zero made predictions overconfident outside the range of the data.
    """
    network = problem.network
    if network is None:
        return [(np.array([i]), np.array([i])) for i in range(int(problem.ard.sum()))]
    position = np.full(problem.n_parameters, -1)
    position[problem.ard] = np.arange(int(problem.ard.sum()))
    units = [(position[n.outgoing], position[n.members]) for n in network.neurons()]
    return [(gate, members) for gate, members in units if (members >= 0).all()]


def require_problem(problem: Any) -> None:
    """Raise TypeError unless `problem` is a `Problem`."""
    if not isinstance(problem, Problem):
        raise TypeError(
            f"The first argument must be an sbnn.Problem; got {type(problem).__name__}. "
            "Make one with sbnn.network_problem(X, y, …) or sbnn.Problem(log_likelihood, …)."
        )


def require_ard(problem: Any, method: str) -> None:
    """Raise ValueError unless `problem` has ARD parameters; `method` is named in the message."""
    require_problem(problem)
    if not problem.ard.any():
        raise ValueError(
            f"`{method}` learns the relevance of ARD parameters, but the problem has none; "
            "name some in `ard`, or use sbnn.standard."
        )
