"""Priors: known densities for single parameters, ARD priors, and the hyperprior on log α.

Examples
--------
>>> from sbnn import priors
>>> priors.Normal(std=3.0)
Normal(mean=0.0, std=3.0)
>>> priors.LogNormal().support
(0.0, inf)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbnn._core.arrays import Array
from sbnn._core.keys import derive_key, generator

_LOG_2PI = math.log(2 * math.pi)


def _positive(owner: str, name: str, value: float) -> None:
    if not (_is_finite(value) and value > 0):
        raise ValueError(f"{owner} needs a finite `{name}` above zero; got {value!r}.")


def _finite(owner: str, name: str, value: float) -> None:
    if not _is_finite(value):
        raise ValueError(f"{owner} needs a finite `{name}`; got {value!r}.")


def _is_finite(value: Any) -> bool:
    """Whether a value is a finite real number; neither text nor complex numbers are."""
    array = np.asarray(value)
    return array.dtype.kind in "biuf" and bool(np.isfinite(array).all())


@dataclass(frozen=True)
class Uniform:
    """Uniform density on [low, high].

    Parameters
    ----------
    low, high : float
        Finite, with low < high.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _finite("Uniform", "low", self.low)
        _finite("Uniform", "high", self.high)
        if not self.low < self.high:
            raise ValueError(
                f"Uniform({self.low}, {self.high}) has empty support: `low` must be below `high`."
            )

    @staticmethod
    def log_density(x: Array, low: Array, high: Array) -> Array:
        return jnp.where((x >= low) & (x <= high), -jnp.log(high - low), -jnp.inf)

    @staticmethod
    def sample(
        rng: np.random.Generator, shape: tuple[int, ...], low: Array, high: Array
    ) -> np.ndarray:
        return rng.uniform(low, high, shape)

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high


@dataclass(frozen=True)
class Normal:
    """Normal density.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation.
    """

    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        _finite("Normal", "mean", self.mean)
        _positive("Normal", "std", self.std)

    @staticmethod
    def log_density(x: Array, mean: Array, std: Array) -> Array:
        return -0.5 * ((x - mean) / std) ** 2 - jnp.log(std) - 0.5 * _LOG_2PI

    @staticmethod
    def sample(
        rng: np.random.Generator, shape: tuple[int, ...], mean: Array, std: Array
    ) -> np.ndarray:
        return rng.normal(mean, std, shape)

    @property
    def support(self) -> tuple[float, float]:
        return -np.inf, np.inf


@dataclass(frozen=True)
class LogNormal:
    """Log-normal density, of exp(z) with z normal.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation of the logarithm.
    """

    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        _finite("LogNormal", "mean", self.mean)
        _positive("LogNormal", "std", self.std)

    @staticmethod
    def log_density(x: Array, mean: Array, std: Array) -> Array:
        log_x = jnp.log(jnp.where(x > 0, x, 1.0))
        return jnp.where(x > 0, Normal.log_density(log_x, mean, std) - log_x, -jnp.inf)

    @staticmethod
    def sample(
        rng: np.random.Generator, shape: tuple[int, ...], mean: Array, std: Array
    ) -> np.ndarray:
        return rng.lognormal(mean, std, shape)

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf


@dataclass(frozen=True)
class HalfNormal:
    """Half-normal density, of |z| with z normal around zero.

    Parameters
    ----------
    std : float
        Standard deviation of z.
    """

    std: float = 1.0

    def __post_init__(self) -> None:
        _positive("HalfNormal", "std", self.std)

    @staticmethod
    def log_density(x: Array, std: Array) -> Array:
        return jnp.where(x >= 0, Normal.log_density(x, 0.0, std) + math.log(2.0), -jnp.inf)

    @staticmethod
    def sample(rng: np.random.Generator, shape: tuple[int, ...], std: Array) -> np.ndarray:
        return np.abs(rng.normal(0.0, std, shape))

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf


@dataclass(frozen=True)
class Custom:
    """User-defined density.

    Parameters
    ----------
    density : callable
        ``density(x)`` returns the log density elementwise, written with `jax.numpy`.
    sampler : callable
        ``sampler(key, shape)`` returns independent draws.
    support : tuple of float
        Bounds of the support.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from sbnn.priors import Custom
    >>> Custom(lambda x: -jnp.abs(x) - jnp.log(2.0), jax.random.laplace).support
    (-inf, inf)
    """

    density: Callable
    sampler: Callable
    support: tuple[float, float] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        if not (callable(self.density) and callable(self.sampler)):
            raise TypeError("Custom needs two functions: `density(x)` and `sampler(key, shape)`.")
        if not self.support[0] < self.support[1]:
            raise ValueError(f"Custom has empty support {self.support}.")


KnownPrior = Uniform | Normal | LogNormal | HalfNormal | Custom
_KINDS: dict[str, Any] = {k.__name__: k for k in (Uniform, Normal, LogNormal, HalfNormal)}


@dataclass(frozen=True)
class Hyperprior:
    """Gamma hyperprior on every precision α, as a density of log α: log p = s log α − r α + const.

    The defaults e⁻¹⁰ are flat over log α up to about +10, where the rate cuts it off; the study's
    Laplace table uses rate e⁻²⁵.

    Parameters
    ----------
    shape, rate : float
        s and r, both ≥ 0.

    Examples
    --------
    >>> from sbnn.priors import Hyperprior
    >>> float(Hyperprior(shape=1.0, rate=0.5).log_density([0.0, 0.0]))
    -1.0
    """

    shape: float = math.exp(-10)
    rate: float = math.exp(-10)

    def __post_init__(self) -> None:
        for name, value in (("shape", self.shape), ("rate", self.rate)):
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"Hyperprior needs a finite `{name}` ≥ 0; got {value}.")

    def log_density(self, log_alpha: np.ndarray) -> np.ndarray:
        """Unnormalised log density of log α, summed over the last axis."""
        log_alpha = np.asarray(log_alpha)
        return (self.shape * log_alpha - self.rate * np.exp(log_alpha)).sum(axis=-1)


@jax.tree_util.register_pytree_node_class
class JointPrior:
    """Independent priors over φ, grouped by kind so that each kind is one vector operation.

    The numbers are leaves of a pytree, the kinds its structure: two problems that differ only in
    numbers share one compilation.
    """

    def __init__(self, groups: Sequence[tuple[Any, np.ndarray, tuple]], n: int):
        self.groups = tuple(groups)  # (kind, positions in φ, numbers), one per kind
        self.n = n

    @classmethod
    def of(cls, priors: Sequence[KnownPrior]) -> JointPrior:
        """Joint prior from one prior per parameter."""
        groups: list[tuple[Any, np.ndarray, tuple]] = []
        for kind in _KINDS.values():
            where = np.array([i for i, p in enumerate(priors) if type(p) is kind], dtype=int)
            if len(where):
                rows = [tuple(asdict(priors[i]).values()) for i in where]
                groups.append((kind, where, tuple(np.array(c, dtype=float) for c in zip(*rows))))
        for i, p in enumerate(priors):
            if isinstance(p, Custom):
                groups.append((p, np.array([i]), ()))
        return cls(groups, len(priors))

    @classmethod
    def replace_ard(
        cls, priors: Sequence[KnownPrior], ard: np.ndarray, log_alpha: np.ndarray
    ) -> JointPrior:
        """Hybrid prior at given α: N(0, 1/α) where `ard` is True, the known priors elsewhere."""
        std = np.exp(-0.5 * np.asarray(log_alpha, dtype=float))
        where = np.flatnonzero(ard)
        known = cls.of([p for p, a in zip(priors, ard) if not a])
        elsewhere = np.flatnonzero(~np.asarray(ard))
        groups = [(kind, elsewhere[at], numbers) for kind, at, numbers in known.groups]
        return cls([*groups, (Normal, where, (np.zeros(len(where)), std))], len(priors))

    def log_density(self, phi: Array) -> Array:
        """Log density of φ, shape (…, n) → (…)."""
        total = jnp.zeros(phi.shape[:-1])
        for kind, where, numbers in self.groups:
            density = kind.density if isinstance(kind, Custom) else kind.log_density
            total = total + density(phi[..., where], *numbers).sum(axis=-1)
        return total

    def sample(self, key: Any, n: int) -> np.ndarray:
        """n independent draws, shape (n, self.n)."""
        out = np.zeros((n, self.n))
        for i, (kind, where, numbers) in enumerate(self.groups):
            shape = (n, len(where))
            if isinstance(kind, Custom):
                out[:, where] = kind.sampler(derive_key(key, i), shape)
            else:
                out[:, where] = kind.sample(generator(key, i), shape, *numbers)
        return out

    def marginals(self) -> list[tuple[Any, tuple[float, ...]]]:
        """(kind, numbers) of every parameter, in the order of φ."""
        out: list[Any] = [None] * self.n
        for kind, where, numbers in self.groups:
            for k, i in enumerate(where):
                out[i] = (kind, tuple(float(column[k]) for column in numbers))
        return out

    def tree_flatten(self) -> tuple[Any, Any]:
        numbers = tuple(g[2] for g in self.groups)
        return numbers, (tuple((g[0], tuple(g[1].tolist())) for g in self.groups), self.n)

    @classmethod
    def tree_unflatten(cls, structure: Any, numbers: Any) -> JointPrior:
        kinds, n = structure
        return cls([(k, np.array(at, int), v) for (k, at), v in zip(kinds, numbers)], n)


def resolve_priors(
    names: Sequence[str], priors: Mapping[str, KnownPrior] | None, default: KnownPrior | None
) -> list[KnownPrior]:
    """One prior per name, from a mapping of names or groups.

    A key selects the parameter with that name or the group with that prefix (``"W[1]"`` is the
    first weight matrix, ``"b"`` every bias). The longest match wins.

    Parameters
    ----------
    names : sequence of str
    priors : mapping or None
    default : prior or None
        For names without a match.

    Returns
    -------
    list of priors, one per name

    Raises
    ------
    ValueError
        If a key matches no name, or a name has neither a prior nor a default.
    """
    priors = dict(priors or {})
    matched = {key: select_names(names, [key]) for key in priors}
    for key, prior in priors.items():
        if not isinstance(prior, KnownPrior):
            raise TypeError(
                f"The prior of {key!r} must be an instance of an sbnn.priors class; got {prior!r}."
            )
    out: list[KnownPrior] = []
    for i, name in enumerate(names):
        candidates = [key for key, where in matched.items() if where[i]]
        if candidates:
            out.append(priors[name if name in candidates else max(candidates, key=len)])
        elif default is None:
            raise ValueError(f"{name!r} has no prior; give one in `priors`, or name it in `ard`.")
        else:
            out.append(default)
    return out


def select_names(names: Sequence[str], patterns: Sequence[str]) -> np.ndarray:
    """Boolean mask, shape (n_names,), of the names that match a pattern, exactly or as a group.

    A group is a prefix that ends at a word boundary: "W" and "W[1]" match ``W[1][2,1]``; "slop"
    does not match ``slope``. Raises ValueError if a pattern matches no name.
    """
    mask = np.zeros(len(names), dtype=bool)
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(f"Parameter names are strings; got {pattern!r}.")
        exact = np.array([name == pattern for name in names])
        hits = exact if exact.any() else np.array([_in_group(name, pattern) for name in names])
        if not pattern or not hits.any():
            raise ValueError(
                f"Unknown parameter {pattern!r}; the names are {', '.join(names[:12])}"
                + (", …" if len(names) > 12 else ".")
            )
        mask |= hits
    return mask


def _in_group(name: str, group: str) -> bool:
    rest = name.removeprefix(group)
    return rest != name and not rest[:1].isalnum()


def prior_to_json(prior: KnownPrior) -> dict[str, Any]:
    """Description for a file; of a `Custom` prior only kind and support are kept."""
    if isinstance(prior, Custom):
        return {"kind": "Custom", "support": [str(b) for b in prior.support]}
    return {"kind": type(prior).__name__, **asdict(prior)}


def prior_from_json(description: Mapping[str, Any]) -> KnownPrior:
    """Inverse of `prior_to_json`; raises ValueError for `Custom`: its functions are not stored."""
    description = dict(description)
    kind = description.pop("kind")
    if kind not in _KINDS:
        raise ValueError(f"A prior of kind {kind!r} cannot be rebuilt from a file.")
    return _KINDS[kind](**description)
