"""A user's plain Python log-likelihood, called on one parameter vector at a time.

Workers load this module: it needs no JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sbnn._core.arrays import NotRealError, as_real


class BlackBox(NamedTuple):
    """The parts of a problem that a worker needs."""

    function: Callable
    data: Any
    names: tuple[str, ...]

    def value(self, theta: np.ndarray) -> float:
        """Evaluate the function at one θ and check that it returns a single number."""
        with np.errstate(all="ignore"):  # a likelihood of zero is not worth a warning
            value = self.function(theta) if self.data is None else self.function(theta, self.data)
        if value is None:
            raise ValueError("`log_likelihood` returned None; does it end with `return`?")
        if isinstance(value, bool) or getattr(value, "dtype", "") == "bool":
            raise NotRealError(f"`log_likelihood` must return a number; it returned {value}.")
        value = as_real("log_likelihood(theta)", value)
        if value.size != 1:
            raise ValueError(
                f"`log_likelihood` must return one number; it returned shape {value.shape}. "
                "Sum over the data inside it."
            )
        return float(value.reshape(()))
