"""Default hidden-layer sizes of `SparseBNNRegressor`."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from sbnn.evidence.laplace.models.network import FEW_INPUTS

# Architectures whose optima are mixed. One and two hidden layers together score better than
# either alone, except where a few neurons suffice.
Family = tuple[tuple[int, ...], ...]
NARROW: Family = ((3,), (6,))
MIDDLE: Family = ((12,), (8, 6))
BROAD: Family = ((20,), (15, 10))
WIDE: Family = ((40,), (20, 10))
SAMPLED: Family = ((3,),)
DEEP: Family = ((20, 20, 20),)
DEEP_WIDE: Family = ((40, 40, 40),)
# Networks are pruned from wide to narrow, so few rows need not begin with many neurons; many rows
# justify the wide family.
FEW_ROWS, MANY_ROWS = 500, 2000
# Networks that join the default where it keeps most of its weights; see `growth.grow`. On draws
# from Gaussian processes with 560 to 1,200 rows, two layers score 0.02 to 0.15 nats per unseen row
# more than three of the same cost; (30, 20) gains another 0.02 on (20, 15), in 2.5 times the time.
TOO_FEW_ROWS = 100
# With few inputs an effect may have many bends, and every neuron is one: five periods of a sine
# need ten. Narrow networks end at the constant.
BENDS, ROWS_FOR_BENDS = 30, 60
ROWS_PER_WEIGHT = 4  # from which a network without hidden layers joins the default
LARGER_FEW, LARGER = (10, 10, 10), (20, 15)


def families(
    hidden_layer_sizes: Any, n_rows: float, sampled: bool, layer_wise: bool = False
) -> list[Family]:
    """Families of architectures between which the evidence chooses, from small to large.

    Parameters
    ----------
    hidden_layer_sizes : "default", "auto", int, tuple of int, or list of tuples
        See `SparseBNNRegressor`.
    n_rows : float
        Repetitions included.
    sampled : bool
        Whether a sampling method is used, which needs one small network.
    layer_wise : bool
        Whether layers are added one by one, up to the depth of one architecture.

    Returns
    -------
    list of Family
        Each a tuple of tuples of hidden widths.

    Raises
    ------
    ValueError
        If `hidden_layer_sizes` is none of the above.

    Examples
    --------
    >>> families("default", 100, False)
    [((12,), (8, 6))]
    >>> families((4, 2), 100, False)
    [((4, 2),)]
    """
    sizes = hidden_layer_sizes
    if isinstance(sizes, str):
        if sizes in ("default", "auto") and sampled:
            return [SAMPLED]
        if sizes in ("default", "auto") and layer_wise:
            return [DEEP_WIDE if n_rows > MANY_ROWS else DEEP]
        if sizes == "auto":
            return [NARROW, MIDDLE, BROAD, WIDE]
        if sizes == "default":
            return [MIDDLE if n_rows <= FEW_ROWS else WIDE if n_rows > MANY_ROWS else BROAD]
    elif isinstance(sizes, Integral):
        sizes = [(int(sizes),)]
    elif isinstance(sizes, list | tuple | np.ndarray):
        nested = len(sizes) > 0 and all(isinstance(s, list | tuple) for s in sizes)
        sizes = [tuple(s) for s in sizes] if nested else [tuple(sizes)]
    if isinstance(sizes, list) and all(
        isinstance(w, Integral) and int(w) >= 1 for s in sizes for w in s
    ):
        return [tuple(tuple(int(w) for w in s) for s in sizes)]
    raise ValueError(
        "`hidden_layer_sizes` must be 'default', 'auto', a width, a tuple of widths ≥ 1, or a "
        f"list of such tuples; got {hidden_layer_sizes!r}."
    )


def with_bends(found: list[Family], n_rows: float, n_inputs: int) -> list[Family]:
    """The default families for a table, whose first network is wider if there are few inputs.

    Examples
    --------
    >>> with_bends([MIDDLE], 100, 1), with_bends([MIDDLE], 100, 8)
    ([((30,), (8, 6))], [((12,), (8, 6))])
    """
    if n_inputs > FEW_INPUTS or n_rows <= ROWS_FOR_BENDS:
        return found
    return [((max(BENDS, family[0][0]),), *family[1:]) for family in found]


def larger(hidden_layer_sizes: Any, n_rows: float) -> tuple[int, ...]:
    """Hidden widths of the networks that may join the default ones; none with few rows.

    Examples
    --------
    >>> larger("default", 300), larger("default", 50), larger((5,), 300)
    ((10, 10, 10), (), ())
    """
    if not isinstance(hidden_layer_sizes, str) or hidden_layer_sizes != "default":
        return ()
    return () if n_rows <= TOO_FEW_ROWS else LARGER_FEW if n_rows <= FEW_ROWS else LARGER


def with_linear(hidden_layer_sizes: Any, n_rows: float, n_inputs: int) -> bool:
    """Whether a network without hidden layers joins the default ones.

    Examples
    --------
    >>> with_linear("default", 100, 3), with_linear("default", 10, 3), with_linear((5,), 100, 3)
    (True, False, False)
    """
    if not isinstance(hidden_layer_sizes, str) or hidden_layer_sizes != "default":
        return False
    return n_rows >= ROWS_PER_WEIGHT * (n_inputs + 1)
