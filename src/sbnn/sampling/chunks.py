"""Compiled functions over a whole population, in equal chunks spread over the devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from sbnn.problems.target import Target
from sbnn.sampling.state import Evaluate

CHUNK = 1000  # particles per call: enough to fill the vector units, few enough for the cache


def chunks(n: int) -> tuple[int, int]:
    """Number and size of the chunks of n particles.

    >>> chunks(2500)
    (3, 834)
    """
    n_chunks = -(-n // CHUNK)
    return n_chunks, -(-n // n_chunks)


def chunked(
    function: Callable[..., Any],
    phi: np.ndarray,
    rest: tuple[np.ndarray, ...],
    common: tuple[Any, ...],
    random: Callable[[int], Any] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
    size: int | None = None,
) -> list[np.ndarray]:
    """Run function(*common, φ chunk, *rest chunks, random(i)) over equal chunks i.

    The chunk size depends on the population alone, and each chunk has its own random numbers:
    the same program sees the same numbers on any number of devices, so the result is bitwise
    the same. Calls return before they are done, so devices work in parallel, and `meanwhile`
    runs on the host.

    Parameters
    ----------
    function : callable
        Compiled; returns a tuple of arrays with one row per particle.
    phi : ndarray, shape (n, d)
    rest : tuple of ndarray
        More arrays to split, n rows each.
    common : tuple
        First arguments, the same for every chunk.
    random : callable, optional
        Last argument of chunk i.
    meanwhile : callable
        Called once after all chunks have been started.
    size : int, optional
        Particles in a chunk, whatever their number: populations of different sizes then share one
        compiled program. By default as many as `chunks` says.

    Returns
    -------
    list of ndarray
        The arrays that `function` returned, with the chunks concatenated.
    """
    n = len(phi)
    n_chunks, size = chunks(n) if size is None else (-(-n // size), size)
    devices = jax.devices()
    parts = []
    for i in range(n_chunks):
        rows: Any = slice(i * size, (i + 1) * size)
        if rows.stop > n:  # the last chunk is padded with the first particles
            rows = np.resize(np.arange(n), n_chunks * size)[rows]
        own = () if random is None else (random(i),)
        with jax.default_device(devices[i % len(devices)]):
            parts.append(function(*common, phi[rows], *(r[rows] for r in rest), *own))
    meanwhile()
    return [np.concatenate([np.asarray(leaf) for leaf in leaves])[:n] for leaves in zip(*parts)]


def evaluate_all(target: Target, phi: np.ndarray, evaluate: Evaluate | None) -> np.ndarray:
    """Log-likelihood of every row, by `evaluate` if given."""
    if evaluate is not None:
        return evaluate(phi)
    (values,) = chunked(_evaluate_chunk, phi, (), (target,))
    return values


@jax.jit
def _evaluate_chunk(target: Target, phi: jax.Array) -> tuple[jax.Array]:
    return (target.evaluate_rapidly(phi),)
