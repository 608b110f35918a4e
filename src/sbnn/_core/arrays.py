"""Shared code for NumPy and JAX arrays; arrays of real numbers from what users give."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any  # a NumPy or a JAX array
_NUMPY = (np.ndarray, np.generic, float, int)


def namespace(*arrays: Array) -> Any:
    """`numpy` if all arrays are NumPy's or plain numbers, else `jax.numpy`."""
    for a in arrays:
        if type(a) is not np.ndarray and not isinstance(a, _NUMPY):
            break
    else:
        return np
    import jax.numpy

    return jax.numpy


class NotRealError(ValueError):
    """Values that are not real numbers: complex, text or other objects."""


def reject_complex(name: str, values: Any) -> None:
    """Raise NotRealError for complex numbers, which would lose their imaginary part later."""
    if np.iscomplexobj(values):
        raise NotRealError(
            f"{name} is complex; give real numbers, for example real and imaginary parts as two "
            "outputs."
        )


def unmasked(values: Any) -> Any:
    """Masked cells of a NumPy array as NaN; anything else as it is.

    NumPy and scikit-learn drop the mask and use the numbers under it.
    """
    if not isinstance(values, np.ma.MaskedArray) or not np.ma.getmaskarray(values).any():
        return values
    kind = values.dtype.kind
    if kind in "mM":
        missing = np.array("NaT", values.dtype)
        return np.where(np.ma.getmaskarray(values), missing, np.ma.getdata(values))
    if kind not in "fcO":  # integers and text have no NaN
        values = np.ma.MaskedArray(values, dtype=float if kind in "biu" else object)
    return values.filled(np.nan)


def as_real(name: str, values: Any) -> np.ndarray:
    """A new array of float64 from real numbers, never from text, dates or complex numbers.

    NumPy alone would read the text "3.0" as a number, dates as nanoseconds, and drop imaginary
    parts. Masked cells become NaN.

    Parameters
    ----------
    name : str
        What the values are, for error messages.
    values : array-like

    Returns
    -------
    ndarray

    Raises
    ------
    NotRealError

    Examples
    --------
    >>> as_real("y", [1, 2.5])
    array([1. , 2.5])
    >>> as_real("y", ["1", "2.5"])
    Traceback (most recent call last):
    ...
    sbnn._core.arrays.NotRealError: y must be numeric; could not convert the text '1'
    """
    try:
        array = np.asarray(unmasked(values))
    except (TypeError, ValueError) as error:
        raise NotRealError(f"{name} must be numeric; {error}") from None
    reject_complex(name, array)
    if array.dtype.kind == "O":
        for cell in array.ravel():
            reject_complex(name, cell)
    if array.dtype.kind in "mM":
        raise NotRealError(f"{name} must be numeric; give dates and times as numbers")
    if array.dtype.kind in "OUST":  # T: variable-length strings of NumPy
        cells = array.ravel().tolist()
        text = next((cell for cell in cells if isinstance(cell, str | bytes)), None)
        if text is not None:
            raise NotRealError(f"{name} must be numeric; could not convert the text {text!r}")
    try:
        return np.array(array, dtype=float)
    except (TypeError, ValueError) as error:
        raise NotRealError(f"{name} must be numeric; {error}") from None
