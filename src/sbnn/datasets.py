"""Synthetic data sets for the documentation, tests and study: known functions plus noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Dataset:
    """Noisy observations of a known function; unpacks as ``x, y = dataset``.

    Attributes
    ----------
    x : ndarray, shape (n,) or (n, n_features)
    y : ndarray, shape (n,)
    truth : callable
        The noise-free function of x.
    noise_std : float
        Standard deviation of the Gaussian noise in y.
    """

    x: np.ndarray
    y: np.ndarray
    truth: Callable[[np.ndarray], np.ndarray]
    noise_std: float

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.x, self.y))


def _observe(x: np.ndarray, truth: Callable, noise_std: float, seed: int) -> Dataset:
    if len(x) < 1:
        raise ValueError("`n` must be at least 1.")
    if not noise_std >= 0:
        raise ValueError(f"`noise_std` must not be negative; got {noise_std}.")
    noise = noise_std * np.random.default_rng(seed).normal(size=len(x))
    return Dataset(x, truth(x) + noise, truth, noise_std)


def boxcar(n: int = 50, noise_std: float = 0.5, seed: int = 0) -> Dataset:
    """The study's data: 2 tanh(5x + 5) + 2 tanh(−5x + 5) at n evenly spaced points in [−3, 3].

    Parameters
    ----------
    n : int
        Number of points.
    noise_std : float
        Standard deviation of the noise.
    seed : int

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from sbnn import datasets
    >>> x, y = datasets.boxcar()
    >>> x.shape, y.shape
    ((50,), (50,))
    """

    def truth(x: np.ndarray) -> np.ndarray:
        return 2 * np.tanh(5 * x + 5) + 2 * np.tanh(-5 * x + 5)

    return _observe(np.linspace(-3.0, 3.0, n), truth, noise_std, seed)


def sine(n: int = 40, noise_std: float = 0.1, seed: int = 0) -> Dataset:
    """sin(2x) on [−2, −0.5] and [0.5, 2], with a gap to test predictive uncertainty.

    Parameters
    ----------
    n : int
        Number of points.
    noise_std : float
        Standard deviation of the noise.
    seed : int

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from sbnn import datasets
    >>> datasets.sine().x.shape
    (40,)
    """
    left, right = np.linspace(-2.0, -0.5, (n + 1) // 2), np.linspace(0.5, 2.0, n // 2)
    return _observe(np.concatenate([left, right]), lambda x: np.sin(2 * x), noise_std, seed)


def ridge(n: int = 200, noise_std: float = 0.1, n_spurious: int = 0, seed: int = 0) -> Dataset:
    """tanh(2 (x₁ + x₂)) with inputs uniform on [−1, 1].

    Parameters
    ----------
    n : int
        Number of points.
    noise_std : float
        Standard deviation of the noise.
    n_spurious : int
        Number of further inputs that have no effect.
    seed : int

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from sbnn import datasets
    >>> datasets.ridge(n_spurious=3).x.shape
    (200, 5)
    """
    inputs = np.random.default_rng([seed, 1]).uniform(-1, 1, size=(n, 2 + n_spurious))
    return _observe(inputs, lambda x: np.tanh(2 * (x[:, 0] + x[:, 1])), noise_std, seed)


def saddle(n: int = 200, noise_std: float = 0.1, seed: int = 0) -> Dataset:
    """x₁² − x₂² + x₁ on [−1, 1]²: a surface without interactions.

    Parameters
    ----------
    n : int
        Number of points.
    noise_std : float
        Standard deviation of the noise.
    seed : int

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from sbnn import datasets
    >>> datasets.saddle(n=10).x.shape
    (10, 2)
    """
    inputs = np.random.default_rng([seed, 2]).uniform(-1, 1, size=(n, 2))
    return _observe(inputs, lambda x: x[:, 0] ** 2 - x[:, 1] ** 2 + x[:, 0], noise_std, seed)
