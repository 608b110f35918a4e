"""`sbnn.last_layer`: features, targets and noise in; posterior of the output layer out."""

from __future__ import annotations

import time
from numbers import Integral
from typing import Any

import numpy as np

from sbnn._core.arrays import as_real
from sbnn._core.messages import Message, warn
from sbnn.evidence.linear.blocks import Reader
from sbnn.evidence.linear.layer import KINDS, KnownNoise, Layer, learn_layer
from sbnn.evidence.linear.sources import is_dask, observations
from sbnn.likelihoods import Likelihood, StudentT, resolve
from sbnn.methods.last_layer.messages import EvidenceBound, EvidenceNotMaximised, Interpolated
from sbnn.methods.last_layer.result import LastLayerResult
from sbnn.problems.noise import check_noise_std, require_gaussian


def last_layer(
    features: Any,
    y: Any = None,
    *,
    x: Any = None,
    noise: str | Likelihood = "constant",
    noise_std: Any = None,
    sample_weight: Any = None,
    intercept: bool = True,
    block_rows: int | None = None,
) -> LastLayerResult:
    """Sparse Bayesian learning of a linear layer on top of any features.

    y = Φw + b + noise, with a precision α for every weight and for b. The log evidence, the
    posterior and the relevance are exact for Gaussian noise. They need only ΦᵀΦ, Φᵀy and yᵀy
    (in factored form), so the rows are read once, in blocks, and may exceed the memory.

    Parameters
    ----------
    features : array, DataFrame, Dask array or DataFrame, iterable, or callable
        Features, shape (n, n_features); a memory-mapped file is an array too. Or a function that
        maps rows of `x` to features: of NumPy, JAX or PyTorch (a module or a function). Or, if `y`
        is None, an iterable of blocks (features, y).
    y : array or Dask collection, shape (n,) or (n, n_targets)
        The weights of several targets are independent.
    x : as `features`
        Rows for a feature function, shape (n, n_columns), or blocks (rows, y).
    noise : {"constant", "student_t"} or Likelihood
        Gaussian noise, or Student-t noise with scale and ν inferred, which tolerates outliers. The
        latter reads the rows many times, keeps a few numbers per row in memory, and its log
        evidence is a lower bound.
    noise_std : float or array, shape (n_targets,), (n,) or (n, n_targets), optional
        Known standard deviation of Gaussian noise: one, one per target, or one per row.
    sample_weight : array, shape (n,), optional
        How many times every row counts.
    intercept : bool
        Whether to add a constant feature.
    block_rows : int, optional
        Rows to read at a time; by default about 16 MiB of features.

    Returns
    -------
    LastLayerResult

    Raises
    ------
    TypeError, ValueError
        If an argument is missing, of the wrong kind or shape, or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import sbnn
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, size=(500, 1))
    >>> y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=500)
    >>> waves = lambda x: np.sin(x * np.arange(1, 21))
    >>> result = sbnn.last_layer(waves, y, x=x)
    >>> int(result.relevance.argmax()), bool(result.relevance[0] > 0.99)
    (0, True)
    >>> mean, std, interval = result.predict([[0.5]], return_interval=0.95)
    >>> bool(interval[0, 0] < np.sin(0.5) < interval[0, 1])
    True
    """
    started = time.perf_counter()
    likelihood = _check_noise(noise, noise_std)
    function, rows = _function_and_rows(features, x)
    if block_rows is not None and not (isinstance(block_rows, Integral) and block_rows >= 1):
        raise ValueError(f"`block_rows` must be a whole number ≥ 1; got {block_rows!r}.")
    counts = _check_counts(sample_weight)
    known = None if noise_std is None else _check_known(noise_std, y)
    given = observations(rows, y, counts, None if known is None else known.precision)
    if likelihood == StudentT() and not given.repeatable:
        raise ValueError(
            "Student-t noise reads the rows several times, and this iterator can be read once. "
            "Give a list of blocks, or an object whose __iter__ starts from the first block."
        )
    reader = Reader(function, bool(intercept), None if block_rows is None else int(block_rows))
    layer = learn_layer(given.source, reader, likelihood, known, counts)
    result = LastLayerResult(
        layer=layer,
        feature_names=_feature_names(None if function else given.names, layer, reader),
        intercept=reader.intercept,
        one_dimensional=len(layer.fits) == 1 and given.one_dimensional is not False,
        noise_known=known is not None,
        seconds=time.perf_counter() - started,
        messages=tuple(messages(layer)),
        feature_function=function,
    )
    warn(result.messages)
    return result


def messages(layer: Layer) -> list[Message]:
    """Notes on a fitted layer."""
    found: list[Message] = []
    for k, fit in enumerate(layer.fits):
        if fit.interpolates:
            std = float(np.exp(layer.theta[k, 0]))
            found.append(Interpolated(len(fit.kept), layer.n_rows, std))
    if not layer.converged:
        found.append(EvidenceNotMaximised())
    if layer.likelihood == StudentT():
        found.append(EvidenceBound())
    return found


def _check_noise(noise: Any, noise_std: Any) -> Likelihood:
    likelihood = resolve(noise)
    if likelihood not in KINDS:
        raise ValueError(
            "`noise` of a linear layer must be 'constant' or 'student_t'; got "
            f"{noise!r}. SparseBNNRegressor has noise that varies with the inputs."
        )
    if noise_std is not None:
        require_gaussian(likelihood)
    return likelihood


def _function_and_rows(features: Any, x: Any) -> tuple[Any, Any]:
    """The feature function, None if there is none, and the rows."""
    if callable(features) and not hasattr(features, "shape"):
        if x is None:
            raise ValueError("A feature function needs the rows it is applied to; give `x`.")
        return features, x
    if x is not None:
        raise ValueError("`x` belongs to a feature function; give a function, or leave `x` out.")
    return None, features


def _check_counts(sample_weight: Any) -> np.ndarray | None:
    if sample_weight is None:
        return None
    if is_dask(sample_weight):
        sample_weight = sample_weight.compute()
    counts = as_real("`sample_weight`", sample_weight)
    if counts.ndim != 1 or not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError("`sample_weight` must hold one finite number ≥ 0 per row.")
    return counts


def _check_known(noise_std: Any, y: Any) -> KnownNoise:
    if is_dask(noise_std):
        noise_std = noise_std.compute()
    if y is None:  # of blocks, whose y have not been read
        shape = (*np.shape(noise_std), *(1,) * (2 - np.ndim(noise_std)))
    else:
        shape = (*np.shape(y), 1) if np.ndim(y) == 1 else np.shape(y)
    found = check_noise_std(noise_std, shape)
    if found.ndim == 2 and (len(found) == shape[0] or y is None):
        return KnownNoise(found, per_row=True)
    return KnownNoise(found.reshape(-1), per_row=False)


def _feature_names(names: tuple[str, ...] | None, layer: Layer, reader: Reader) -> tuple[str, ...]:
    n_features = len(layer.fits[0].mean) - int(reader.intercept)
    if names is None:
        names = tuple(f"w[{i}]" for i in range(1, n_features + 1))
    return (*names, "b") if reader.intercept else names
