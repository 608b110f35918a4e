"""Inputs of `SparseBNNRegressor`: arrays, sparse matrices and DataFrames as encoded numbers."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import check_X_y
from sklearn.utils.validation import validate_data

from sbnn._core.arrays import unmasked
from sbnn._core.text import plain_repr, plural
from sbnn.methods.registry import SAMPLING
from sbnn.regressor.data.targets import check_target
from sbnn.tables.cells import fault, is_identifier
from sbnn.tables.column_types import Column, ColumnType, read_series
from sbnn.tables.encoder import ColumnEncoder, Encoded

FROM_DTYPE = "from_dtype"
MISSING = ("impute", "error")
MAX_CELLS = 10**8  # of a sparse matrix: 800 MB


def check(categorical_features: Any, missing: Any) -> None:
    """Raise a ValueError for invalid options."""
    if missing not in MISSING:
        raise ValueError(f"`missing` must be one of {', '.join(MISSING)}; got {missing!r}.")
    if isinstance(categorical_features, str) and categorical_features != FROM_DTYPE:
        raise ValueError(
            "`categorical_features` must be 'from_dtype', None, or names, positions or a mask of "
            f"columns; got {categorical_features!r}."
        )


def read_training(
    estimator: Any, X: Any, y: Any, categorical_features: Any, missing: str
) -> tuple[ColumnEncoder, Encoded, np.ndarray]:
    """Check a table, learn how its columns are encoded, and encode them.

    Numbers that may be codes get hat functions, unless the method samples, for which they are too
    many.

    Parameters
    ----------
    estimator : SparseBNNRegressor
        Gets `n_features_in_` and `feature_names_in_`.
    X : array_like, sparse matrix or DataFrame, shape (n, n_features)
    y : array_like, shape (n,) or (n, n_outputs)
    categorical_features, missing
        See `SparseBNNRegressor`.

    Returns
    -------
    encoder : ColumnEncoder
    encoded : Encoded
    y : ndarray, of the shape of y
    """
    check(categorical_features, missing)
    hats = estimator.method not in SAMPLING
    finite: Any = "allow-nan" if missing == "impute" else True
    X, y = _dense(X), unmasked(y)
    check_target(y)
    declared = _declared(X, categorical_features)
    if not isinstance(X, pd.DataFrame) and not any(declared):
        X, y = validate_data(
            estimator, X, y, dtype="numeric", multi_output=True, y_numeric=True,
            ensure_min_samples=2, ensure_all_finite=finite,
        )  # fmt: skip
        values = np.asarray(X, dtype=float)
        encoder = ColumnEncoder.of_numbers(values)
        if hats:
            encoder = encoder.with_hats(encoder.encode_numbers(values))
        return encoder, encoder.encode_numbers(values), np.asarray(y, dtype=float)
    frame = _frame(validate_data(estimator, X, skip_check_array=True))
    # Checks of y and of the lengths are scikit-learn's, with any inputs.
    _, y = check_X_y(
        np.zeros((len(frame), 1)), y, multi_output=True, y_numeric=True, ensure_min_samples=2
    )
    columns = _columns(frame, None, declared, categorical_features is not None)
    _check_cells(frame, columns, missing)
    encoder = ColumnEncoder.of(columns)
    if hats:
        encoder = encoder.with_hats(encoder.encode(columns))
    return encoder, encoder.encode(columns), np.asarray(y, dtype=float)


def count_encoded(frame: pd.DataFrame) -> int:
    """Number of inputs that the network would have for a table without indicators."""
    columns = [read_series(frame.iloc[:, k]) for k in range(frame.shape[1])]
    return len(ColumnEncoder.of(columns).groups)


def read_new(estimator: Any, X: Any, encoder: ColumnEncoder, missing: str) -> Encoded:
    """Check new rows and encode them as in the fit.

    Parameters
    ----------
    estimator : SparseBNNRegressor
    X : array_like, sparse matrix or DataFrame, shape (m, n_features)
    encoder : ColumnEncoder
    missing : str
        See `SparseBNNRegressor`.

    Returns
    -------
    Encoded
    """
    X = _dense(X)
    kinds = {column.kind for column in encoder.columns}
    if not isinstance(X, pd.DataFrame) and kinds <= {"number", "empty"}:
        finite: Any = "allow-nan" if missing == "impute" else True
        X = validate_data(estimator, X, dtype="numeric", reset=False, ensure_all_finite=finite)
        return encoder.encode_numbers(np.asarray(X, dtype=float))
    frame = _frame(validate_data(estimator, X, skip_check_array=True, reset=False))
    types = [column.type for column in encoder.columns]
    columns = _columns(frame, types)
    _check_cells(frame, columns, missing, types)
    return encoder.encode(columns)


def _dense(X: Any) -> Any:
    """A sparse matrix as an array, masked cells as NaN; anything else as it is."""
    if not sparse.issparse(X):
        return unmasked(X)
    n_cells = int(np.prod(X.shape, dtype=float))
    if n_cells > MAX_CELLS:
        raise ValueError(
            f"X is a sparse matrix of {X.shape[0]:,} × {X.shape[1]:,} cells; the network needs all "
            f"of them in memory, at most {MAX_CELLS:,}. Choose rows or columns, or reduce the "
            "columns first, for example with sklearn.decomposition.TruncatedSVD."
        )
    return X.toarray()


def _frame(X: Any) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: X has one row per case.")
    return pd.DataFrame(X)


def _declared(X: Any, categorical_features: Any) -> list[bool]:
    """Which columns the user declared to hold categories; none for "from_dtype"."""
    if categorical_features is None or isinstance(categorical_features, str):
        return []
    names = list(X.columns) if isinstance(X, pd.DataFrame) else None
    n = len(names) if names is not None else np.shape(X)[1] if np.ndim(X) == 2 else 0
    given: Sequence[Any] = list(categorical_features)
    if given and all(isinstance(g, bool | np.bool_) for g in given):
        if len(given) != n:
            raise ValueError(
                f"`categorical_features` is a mask of {plural(len(given), 'column')}, but X has "
                f"{n}."
            )
        return [bool(g) for g in given]
    out = [False] * n
    for g in given:
        if isinstance(g, str) and names is not None and g in names:
            out[names.index(g)] = True
        elif isinstance(g, Integral) and 0 <= int(g) < n:
            out[int(g)] = True
        else:
            known = f"; X has {', '.join(map(repr, names[:8]))}" if names is not None else ""
            raise ValueError(
                f"`categorical_features` must hold names or positions of columns of X, or a mask; "
                f"got {g!r}{known}."
            )
    return out


def _columns(
    frame: pd.DataFrame,
    types: Sequence[ColumnType] | None,
    declared: Sequence[bool] = (),
    text_allowed: bool = True,
) -> list[Column]:
    out = []
    for k in range(frame.shape[1]):
        series, known = frame.iloc[:, k], None if types is None else types[k]
        if known is not None and known.kind == "empty":
            nothing = np.zeros(len(frame), dtype=bool)
            out.append(Column(known, np.zeros(len(frame)), nothing, nothing))
            continue
        try:
            column = read_series(series, known, bool(declared) and declared[k])
        except TypeError as error:
            raise TypeError(f"X, {error}") from None
        if known is None:
            _check_text(series, column, bool(declared) and declared[k], text_allowed)
        elif column.type.kind not in (known.kind, "empty") and not column.missing.all():
            raise ValueError(
                f"X, column {series.name!r} held {NAMES[known.kind]} in the fit; now it holds "
                f"{NAMES[column.type.kind]}."
            )
        elif column.type.kind != known.kind:  # all cells are missing
            column = Column(known, _unknown(known, len(frame)), column.missing, column.wrong)
        out.append(column)
    return out


NAMES = {
    "number": "numbers", "percent": "percentages", "boolean": "true or false", "date": "dates",
    "time": "times of day", "category": "text", "empty": "nothing",
}  # fmt: skip


def _unknown(known: ColumnType, n: int) -> np.ndarray:
    if known.kind == "date":
        return np.full(n, np.datetime64("NaT", "us"))
    return np.full(n, None, dtype=object) if known.kind == "category" else np.full(n, np.nan)


def _check_text(series: pd.Series, column: Column, declared: bool, text_allowed: bool) -> None:
    """Raise a ValueError for text that is not wanted or names rows."""
    if column.type.kind != "category" or declared:
        return
    filled = column.values[~column.missing]
    example = f"(such as {str(filled[0])[:20]!r})" if len(filled) else ""
    if not text_allowed:
        raise ValueError(
            f"X, column {series.name!r} holds text {example}; drop it, or use "
            "categorical_features='from_dtype'."
        )
    dtype = isinstance(series.dtype, pd.CategoricalDtype)
    if not dtype and is_identifier(len(set(filled)), len(filled)):
        raise ValueError(
            f"X, column {series.name!r} holds {len(set(filled)):,} different texts in "
            f"{plural(len(filled), 'row')} {example}, from which nothing can be learned; drop it, "
            "or convert it to the dtype 'category' if it is meant."
        )


def _check_cells(
    frame: pd.DataFrame,
    columns: Sequence[Column],
    missing: str,
    types: Sequence[ColumnType] | None = None,
) -> None:
    """Raise a ValueError for the first cell that is infinite, missing or of another type."""
    for k, column in enumerate(columns):
        wrong = column.wrong
        if column.values.dtype.kind == "f":
            wrong = wrong | np.isinf(column.values)
        if missing == "error":
            wrong = wrong | column.missing
        if wrong.any():
            row = int(np.argmax(wrong))
            cell = "NaN" if column.missing[row] else str(frame.iloc[row, k])
            n_more = int(wrong.sum()) - 1
            more = f" And {plural(n_more, 'more cell')} of the column." if n_more else ""
            kind, form = column.type
            of_fit = types is not None and bool(types[k].format)
            raise ValueError(
                f"X, row {plain_repr(frame.index[row])}, column {plain_repr(frame.columns[k])}: "
                f"{fault(cell, kind, form=form, of_fit=of_fit)}{more}"
            )
